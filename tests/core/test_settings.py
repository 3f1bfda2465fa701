"""Settings of the process, threads of BLAS, the state of the random numbers."""

from __future__ import annotations

import os
import subprocess
import sys
import warnings
from collections.abc import Iterator

import numpy as np
import pytest

import torchlab as torch
from torchlab import random
from torchlab._core import settings, threads


@pytest.fixture(autouse=True)
def as_before() -> Iterator[None]:
    yield
    torch.use_deterministic_algorithms(False)
    torch.set_float32_matmul_precision("highest")
    torch.set_warn_always(False)


def test_deterministic_modes_are_two_views_of_one_setting() -> None:
    for mode, number in (("default", 0), ("warn", 1), ("error", 2)):
        torch.set_deterministic_debug_mode(mode)
        assert torch.get_deterministic_debug_mode() == number
        assert torch.are_deterministic_algorithms_enabled() is (number > 0)
        assert torch.is_deterministic_algorithms_warn_only_enabled() is (number == 1)
    torch.use_deterministic_algorithms(True, warn_only=True)
    assert torch.get_deterministic_debug_mode() == 1


def test_wrong_values_change_nothing() -> None:
    torch.use_deterministic_algorithms(True)
    for wrong, error in (("x", RuntimeError), (7, RuntimeError), (1.5, TypeError)):
        with pytest.raises(error):
            torch.set_deterministic_debug_mode(wrong)
    with pytest.raises(TypeError):
        torch.use_deterministic_algorithms(1)
    assert torch.get_deterministic_debug_mode() == 2
    with pytest.warns(UserWarning, match="no effect"):
        torch.set_float32_matmul_precision("low")
    assert torch.get_float32_matmul_precision() == "highest"
    with pytest.raises(RuntimeError):
        torch.set_warn_always(1)


def test_a_warning_comes_once_unless_always_is_set() -> None:
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        for _ in range(3):
            settings.warn_once("test_settings", "only once")
        assert len(seen) == 1
        torch.set_warn_always(True)
        settings.warn_once("test_settings", "only once")
        assert len(seen) == 2


def test_the_number_of_threads_reaches_blas() -> None:
    before = torch.get_num_threads()
    if not list(threads._controls()):
        with pytest.raises(RuntimeError, match="no BLAS"):
            torch.set_num_threads(2)
        return
    try:
        torch.set_num_threads(1)
        assert torch.get_num_threads() == 1
        assert [get() for get, _ in threads._controls()] == [1] * len(list(threads._controls()))
    finally:
        torch.set_num_threads(before)
    with pytest.raises(RuntimeError, match="positive"):
        torch.set_num_threads(0)


def test_the_number_of_threads_reaches_a_blas_that_is_loaded_later() -> None:
    code = (
        "import torchlab as torch; from torchlab._core import threads\n"
        "before = len(list(threads._controls())); torch.set_num_threads(2)\n"
        "torch.set_num_threads(1); torch.linalg.lu_factor(torch.eye(3))\n"
        "print(before, *(get() for get, _ in threads._controls()))"
    )
    env = {k: v for k, v in os.environ.items() if not k.endswith("_NUM_THREADS")}
    told = subprocess.run(
        [sys.executable, "-c", code], env=env, capture_output=True, text=True, check=False
    )
    before, *counts = (int(n) for n in told.stdout.split())
    assert before == 0 or (len(counts) >= before and set(counts) == {1}), told


def test_denormals_are_never_flushed() -> None:
    assert torch.set_flush_denormal(True) is False
    assert (torch.tensor(1e-310, dtype=torch.float64) * 1).item() == 1e-310


def test_fork_rng_leaves_the_stream_as_it_was() -> None:
    torch.manual_seed(3)
    expected = torch.rand(4).tolist()
    torch.manual_seed(3)
    with random.fork_rng():
        torch.manual_seed(99)
        torch.rand(7)
    assert torch.rand(4).tolist() == expected
    with random.fork_rng(enabled=False):
        torch.rand(1)
    assert torch.rand(4).tolist() != expected


def test_the_state_goes_there_and_back() -> None:
    random.manual_seed(5)
    assert random.initial_seed() == 5
    state = random.get_rng_state()
    assert (state.dtype, state.shape) == (torch.uint8, (5056,))
    first = torch.randn(33)
    random.set_rng_state(state)
    np.testing.assert_array_equal(torch.randn(33).numpy(), first.numpy())
    assert random.seed() == random.initial_seed()

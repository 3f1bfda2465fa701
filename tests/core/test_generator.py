"""The random stream: numbers and a state's hash obtained from PyTorch 2.13; how states behave."""

from __future__ import annotations

import copy
import hashlib
import pickle
import threading
from typing import Any

import numpy as np
import pytest

from torchlab._core.box_muller import fma64
from torchlab._core.generator import Generator


def fresh(seed: int = 0) -> Generator:
    return Generator().manual_seed(seed)


def f32(*values: float) -> list[float]:
    return np.array(values, np.float32).tolist()


def test_uniform_numbers_of_pytorch() -> None:
    assert fresh().uniform(3).tolist() == f32(
        0.49625658988952637, 0.7682217955589294, 0.08847743272781372
    )
    assert fresh().uniform(2, np.float64).tolist() == [0.9700530018065531, 0.707819864399788]
    assert fresh(1234).uniform(2).tolist() == f32(0.028979241847991943, 0.4018985629081726)
    # One rounding, as the processor's fused multiply-add has it: two would end in ...45 here.
    assert fresh().uniform(3, np.float32, 0.1, 0.3).tolist() == f32(
        0.19925132393836975, 0.2536443769931793, 0.11769548803567886
    )


def test_normal_numbers_of_pytorch() -> None:
    assert fresh().normal(3).tolist() == f32(
        1.5409960746765137, -0.293428897857666, -2.1787893772125244
    )
    assert fresh().normal(16)[:3].tolist() == f32(
        -1.1258398294448853, -1.152360200881958, -0.2505785822868347
    )
    assert fresh().normal(17)[-2:].tolist() == f32(-0.843676745891571, 0.9318265914916992)
    assert fresh().normal(16, dtype=np.float64)[:2].tolist() == [
        -2.310411800234176, -0.3732508612577643,
    ]  # fmt: skip


def test_integers_of_pytorch() -> None:
    assert fresh().randint(8, 0, 10).tolist() == [4, 9, 3, 0, 3, 9, 7, 3]
    assert fresh().randint(2, -5, 2**40).tolist() == [741234585336, 506077272957]
    assert fresh().randperm(10).tolist() == [4, 1, 7, 5, 3, 9, 0, 8, 6, 2]
    assert fresh().random(3, np.uint8).tolist() == [172, 47, 117]
    assert fresh().random(2).tolist() == [900450186894289455, 3969543146641149120]


def test_other_distributions_of_pytorch() -> None:
    assert fresh().exponential(3).tolist() == f32(
        3.508326292037964, 1.2303847074508667, 0.615044116973877
    )
    assert fresh().bernoulli_p(8, 0.5).astype(int).tolist() == [0, 0, 1, 0, 0, 0, 1, 1]
    p = np.full(8, 0.5, np.float32)
    assert fresh().bernoulli_tensor(p).astype(int).tolist() == [1, 0, 1, 1, 1, 0, 1, 0]
    weights = np.array([0.1, 0.2, 0.3, 0.4], np.float32)
    assert fresh().multinomial(weights, 4).tolist() == [2, 1, 3, 0]
    assert fresh().multinomial(weights, 6, replacement=True).tolist() == [3, 3, 2, 3, 3, 3]
    assert fresh().geometric(5, 0.3).tolist() == [1, 1, 3, 1, 2]
    assert fresh().cauchy(2).tolist() == f32(10.597729682922363, 0.7647672891616821)
    assert fresh().log_normal(3).tolist() == f32(
        59.2634162902832, 1.5115599632263184, 0.03481946140527725
    )
    assert fresh().poisson(np.array([1.0, 4.0, 30.0, 0.0])).tolist() == [2, 5, 26, 0]


def test_state_is_pytorchs_byte_for_byte() -> None:
    generator = fresh()
    generator.normal(3)  # leaves a normal number behind
    state = generator.get_state()
    assert (state.dtype, state.shape) == (np.uint8, (5056,))
    digest = "5f273c33f4160de64fac7c23955badc140a32e236e861b993e52685fd195d97d"
    assert hashlib.sha256(state.tobytes()).hexdigest() == digest


def test_the_second_of_a_pair_is_kept() -> None:
    whole = fresh().normal(4, dtype=np.float64)
    generator = fresh()
    parts = [generator.normal(1, dtype=np.float64)[0] for _ in range(4)]
    assert parts == whole.tolist()
    generator.normal(1)
    generator.manual_seed(0)  # forgets it
    assert generator.normal(4, dtype=np.float64).tolist() == whole.tolist()


def test_long_draws_leave_the_kept_one_alone() -> None:
    generator = fresh()
    first, second = fresh().normal(2, dtype=np.float64)
    assert generator.normal(1, dtype=np.float64)[0] == first
    generator.normal(16)
    assert generator.normal(1, dtype=np.float64)[0] == second


def test_set_state_continues_where_it_was() -> None:
    generator = fresh(7)
    generator.uniform(1000)
    generator.normal(1)
    state = generator.get_state()
    expected = (generator.normal(3).tolist(), generator.words(700).tolist())
    for other in (Generator(), fresh(9)):
        other.set_state(state)
        assert other.initial_seed() == 7
        assert (other.normal(3).tolist(), other.words(700).tolist()) == expected


@pytest.mark.parametrize("draws", [0, 1, 623, 624, 625, 1248])
def test_state_at_the_edges_of_a_block(draws: int) -> None:
    generator = fresh(5)
    generator.words(draws)
    copies = [generator.clone_state(), copy.deepcopy(generator)]
    copies.append(pickle.loads(pickle.dumps(generator)))
    expected = generator.words(3).tolist()
    assert expected == fresh(5).words(draws + 3)[-3:].tolist()
    for other in copies:
        assert other.words(3).tolist() == expected


def test_normal_into_a_strided_array() -> None:
    out = np.zeros((20, 2), np.float64)
    fresh().normal_into(out[:, 1], 0.0, 1.0)
    assert out[:2, 1].tolist() == fresh().normal(2, dtype=np.float64).tolist()
    assert not out[:, 0].any()
    whole = np.zeros((4, 5), np.float32)
    fresh().normal_into(whole)
    assert whole.ravel().tolist() == fresh().normal(20).tolist()


def test_seeds() -> None:
    assert Generator().initial_seed() == 67280421310721
    assert fresh(-1).initial_seed() == 2**64 - 1
    assert fresh(2**32 + 5).words(4).tolist() == fresh(5).words(4).tolist()
    generator = Generator()
    assert generator.seed() == generator.initial_seed()
    assert generator.manual_seed(3) is generator
    assert generator.device.type == "cpu"


@pytest.mark.parametrize(
    ("seed", "error"),
    [(1.5, RuntimeError), (True, RuntimeError), ("a", RuntimeError), (2**64, ValueError)],
)
def test_bad_seed_changes_nothing(seed: Any, error: type[Exception]) -> None:
    generator = fresh(3)
    before = generator.get_state().tobytes()
    with pytest.raises(error):
        generator.manual_seed(seed)
    assert generator.get_state().tobytes() == before


@pytest.mark.parametrize(
    ("state", "error", "says"),
    [
        (np.zeros(5, np.uint8), RuntimeError, "size 5056"),
        (np.zeros(5056, np.uint8), RuntimeError, "Invalid mt19937 state"),
        (np.zeros(5056, np.float32), TypeError, "ByteTensor"),
        ([1], TypeError, "ByteTensor"),
    ],
)
def test_bad_state_changes_nothing(state: Any, error: type[Exception], says: str) -> None:
    generator = fresh(3)
    before = generator.get_state().tobytes()
    with pytest.raises(error, match=says):
        generator.set_state(state)
    assert generator.get_state().tobytes() == before


def test_empty_range() -> None:
    with pytest.raises(RuntimeError, match="'from' to be less than 'to'"):
        fresh().randint(3, 5, 5)


def test_threads_share_a_generator_without_losing_words() -> None:
    generator, drawn = fresh(), []

    def draw() -> None:
        for _ in range(50):
            drawn.append(generator.words(7))

    threads = [threading.Thread(target=draw) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    got = np.sort(np.concatenate(drawn))
    assert np.array_equal(got, np.sort(fresh().words(4 * 50 * 7)))


def test_fma_rounds_once() -> None:
    # (1 + 2^-52)^2 - (1 + 2^-51) is 2^-104; two roundings give 0.
    assert fma64(np.array([1 + 2.0**-52]), 1 + 2.0**-52, -(1 + 2.0**-51)).tolist() == [2.0**-104]

"""Devices that torchlab does not reach: they can be named and asked for, and there are none."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any

import pytest

import torchlab as torch

ELSEWHERE = ["mps", "xpu", "mtia", "hpu", "xla"]


@pytest.mark.parametrize("name", ELSEWHERE)
def test_they_have_names(name: str) -> None:
    d = torch.device(name)
    assert (str(d), d.type, d.index) == (name, name, None)
    assert repr(torch.device(name, 1)) == f"device(type='{name}', index=1)"
    assert d == torch.device(name) and torch.ones(1).device != d


@pytest.mark.parametrize("name", ELSEWHERE)
def test_nothing_can_be_put_there(name: str) -> None:
    file = io.BytesIO()
    torch.save({"a": torch.ones(2)}, file)

    def enter() -> None:
        with torch.device(name):
            pass

    def load() -> None:
        file.seek(0)
        torch.load(file, map_location=name)

    calls: list[Callable[[], Any]] = [
        lambda: torch.empty(1, device=name), lambda: torch.tensor([1.0], device=name),
        lambda: torch.ones(1).to(name), lambda: torch.nn.Linear(1, 1, device=name),
        lambda: torch.nn.Linear(1, 1).to(torch.device(name)), enter, load,
    ]  # fmt: skip
    for call in calls:
        with pytest.raises((RuntimeError, AssertionError), match=f"(?i){name}"):
            call()
    assert torch.get_default_device() == torch.device("cpu")


def test_other_names_are_unknown() -> None:
    with pytest.raises(RuntimeError, match="Expected one of cpu, .*xpu.* at start of .*: vpu"):
        torch.device("vpu")


def test_there_are_none_of_intels() -> None:
    xpu = torch.xpu
    assert not xpu.is_available() and xpu.device_count() == 0 and not xpu.is_bf16_supported()
    assert (xpu.memory_allocated(), xpu.max_memory_allocated(), xpu.memory_reserved()) == (0, 0, 0)
    assert xpu.memory_stats() == {} and xpu.memory_snapshot() == [] and xpu.get_arch_list() == []
    assert xpu.get_rng_state_all() == [] and xpu.set_rng_state_all([]) is None
    assert xpu.seed() is xpu.seed_all() is xpu.reset_peak_memory_stats() is None
    with xpu.stream(None), xpu.device_of(torch.ones(1)), xpu.device(-1):
        pass
    for call in (
        xpu.current_device, xpu.synchronize, xpu.get_rng_state, xpu.get_device_properties,
        xpu.mem_get_info, xpu.get_device_name, xpu.initial_seed, lambda: xpu.set_device(0),
        lambda: xpu.set_rng_state_all([torch.ones(1)]),
    ):  # fmt: skip
        with pytest.raises(AssertionError, match="Torch not compiled with XPU enabled"):
            call()


def test_there_are_none_of_apples() -> None:
    mps = torch.mps
    assert not mps.is_available() and mps.device_count() == 0
    for call, name in (
        (mps.current_allocated_memory, "getCurrentAllocatedMemory"),
        (mps.driver_allocated_memory, "getDriverAllocatedMemory"),
        (mps.recommended_max_memory, "getRecommendedMaxMemory"),
        (mps.empty_cache, "emptyCache"),
        (mps.synchronize, "deviceSynchronize"),
        (mps.get_rng_state, "getDefaultGenerator"),
    ):
        with pytest.raises(RuntimeError, match=rf"Cannot execute {name}\(\) without MPS backend."):
            call()
    with pytest.raises(TypeError, match="must be `float`"):
        mps.set_per_process_memory_fraction(1)


def test_there_are_none_of_metas() -> None:
    mtia = torch.mtia
    assert not mtia.is_available() and mtia.device_count() == 0 and not mtia.is_initialized()
    assert (mtia.memory_allocated(), mtia.memory_stats()) == (0, {})
    assert mtia.manual_seed_all(1) is None
    with pytest.raises(AttributeError, match="does not reach Meta's accelerators"):
        mtia.stream  # noqa: B018

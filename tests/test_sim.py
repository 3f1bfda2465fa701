"""`torchlab.sim`: the names of torch.cuda, over the simulated device's allocator."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator

import pytest

from torchlab import sim
from torchlab._core.backends import sim as backend
from torchlab._core.device import device
from torchlab._core.memory.caching_allocator import CachingAllocator

MIB = 1024 * 1024


@pytest.fixture
def allocator(monkeypatch: pytest.MonkeyPatch) -> Iterator[CachingAllocator]:
    """Two fresh devices of 64 MiB in the place of the process's own; the allocator of the first."""
    monkeypatch.setattr(backend, "_allocators", {})
    monkeypatch.setattr(backend, "device_count", lambda: 2)
    monkeypatch.setattr(backend, "capacity_bytes", lambda: 64 * MIB)
    yield backend.sim_allocator(0)


def test_allocated_reserved_and_peaks(allocator: CachingAllocator) -> None:
    block = allocator.malloc(1000)
    assert (sim.memory_allocated(), sim.memory_reserved()) == (1024, 2 * MIB)
    allocator.free(block)
    assert (sim.memory_allocated(), sim.max_memory_allocated()) == (0, 1024)
    assert sim.mem_get_info() == (62 * MIB, 64 * MIB)
    sim.empty_cache()
    assert (sim.memory_reserved(), sim.max_memory_reserved()) == (0, 2 * MIB)
    assert sim.mem_get_info() == (64 * MIB, 64 * MIB)
    sim.reset_peak_memory_stats()
    assert (sim.max_memory_allocated(), sim.max_memory_reserved()) == (0, 0)
    sim.reset_accumulated_memory_stats()
    assert set(sim.memory_stats().values()) == {0, -1}  # -1: no max_split_size


def test_devices_are_separate_and_named_in_every_way(allocator: CachingAllocator) -> None:
    backend.sim_allocator(1).malloc(512)
    assert [sim.memory_allocated(d) for d in (1, "sim:1", device("sim", 1))] == [512] * 3
    assert [sim.memory_allocated(d) for d in (None, 0, "sim", device("sim"))] == [0] * 4
    assert sim.device_count() == 2 and sim.is_available() and sim.current_device() == 0
    assert [s["device"] for s in sim.memory_snapshot()] == [1]
    assert sim.memory_snapshot(0) == []
    with pytest.raises(RuntimeError, match=r"invalid device ordinal.*TORCHLAB_SIM_DEVICES"):
        sim.memory_allocated(2)
    with pytest.raises(ValueError, match="Expected a sim device, but got: cpu"):
        sim.memory_allocated("cpu")


def test_addresses_are_the_same_every_time_and_apart_between_devices() -> None:
    one, again = backend.SimDevice(0), backend.SimDevice(0)
    first = one.raw_alloc(2 * MIB)
    second = one.raw_alloc(4 * MIB)
    assert second.address == first.address + 2 * MIB
    one.raw_free(first)
    third = one.raw_alloc(3 * MIB)  # does not fit into the gap
    assert third.address == second.address + 4 * MIB
    assert one.raw_alloc(2 * MIB).address == first.address
    assert again.raw_alloc(5 * MIB).address == first.address
    assert backend.SimDevice(1).raw_alloc(5 * MIB).address - first.address == 1 << 44


def test_limits(allocator: CachingAllocator) -> None:
    sim.set_memory_limit("20MiB")
    with pytest.raises(sim.OutOfMemoryError, match="sim:0 has a total capacity of"):
        allocator.malloc(21 * MIB)
    sim.set_memory_limit(None)
    sim.set_per_process_memory_fraction(0.25)
    assert allocator.limit == 16 * MIB
    with pytest.raises(ValueError, match=r"Invalid fraction value: 1\.5\. Allowed range: 0~1"):
        sim.set_per_process_memory_fraction(1.5)
    with pytest.raises(TypeError, match="fraction"):
        sim.set_per_process_memory_fraction(1)
    with pytest.raises(ValueError, match=r"memory limit.*TORCHLAB_SIM_MEMORY"):
        sim.set_memory_limit("1GiB")
    assert allocator.limit == 16 * MIB


def test_properties_and_summary(allocator: CachingAllocator) -> None:
    properties = sim.get_device_properties("sim:1")
    assert properties.total_memory == 64 * MIB and properties.multi_processor_count >= 1
    assert sim.get_device_name() == properties.name == "Simulated accelerator"
    assert sim.memory_summary(abbreviated=True).startswith("Memory of sim:0: 64.00 MiB in all")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("268435456", 268435456),
        ("0", 0),
        ("512MiB", 512 * MIB),
        ("2GiB", 2048 * MIB),
        (" 1.5 kib ", 1536),
        ("2GB", 2 * 10**9),
        ("7b", 7),
    ],
)
def test_sizes_in_words(text: str, expected: int) -> None:
    assert backend.parse_size(text) == expected


@pytest.mark.parametrize("text", ["", "MiB", "-1", "1 XB", "1e6", "lots"])
def test_sizes_that_are_none(text: str) -> None:
    with pytest.raises(ValueError, match=r"capacity must be bytes or a size such as '512MiB'"):
        backend.parse_size(text, "capacity")


def run(code: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p), **environment},
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_environment_sets_number_and_capacity() -> None:
    code = "from torchlab import sim; print(sim.device_count(), sim.mem_get_info(1))"
    done = run(code, TORCHLAB_SIM_DEVICES="2", TORCHLAB_SIM_MEMORY="1MiB")
    assert done.stdout == "2 (1048576, 1048576)\n", done.stderr
    done = run("from torchlab import sim; print(sim.is_available())", TORCHLAB_SIM_DEVICES="0")
    assert done.stdout == "False\n", done.stderr
    done = run(code, TORCHLAB_SIM_DEVICES="two")
    assert "TORCHLAB_SIM_DEVICES must be a number from 0 to 999, got 'two'" in done.stderr

"""torchlab.cpu: the host under the names of torch.cuda."""

from __future__ import annotations

import threading

import pytest

import torchlab as torch
import torchlab.cpu as cpu


def test_there_is_one() -> None:
    assert cpu.is_available() and cpu.is_initialized()
    assert cpu.device_count() == 1
    assert cpu.current_device() == "cpu"
    cpu.set_device(0)
    cpu.synchronize()


def test_streams_are_current_inside_their_context_and_thread() -> None:
    usual = cpu.current_stream()
    mine = cpu.Stream()
    seen = []
    with cpu.stream(mine):
        assert cpu.current_stream() is mine
        other = threading.Thread(target=lambda: seen.append(cpu.current_stream()))
        other.start()
        other.join()
    assert cpu.current_stream() is usual
    assert seen == [usual]
    event = cpu.Event()
    event.record()
    event.synchronize()
    assert event.query()


def test_capabilities_do_not_change() -> None:
    facts = cpu.get_capabilities()
    assert facts["num_logical_cores"] >= 1
    with pytest.raises(TypeError):
        facts["avx2"] = True  # type: ignore[index]


def test_the_module_of_a_device() -> None:
    assert torch.get_device_module() is torch.get_device_module("cpu") is cpu
    assert torch.get_device_module("sim").__name__ == "torchlab.sim"
    with pytest.raises(RuntimeError, match="does not have a corresponding module"):
        torch.get_device_module("meta")
    assert isinstance(torch.has_openmp, bool)

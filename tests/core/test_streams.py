"""`torch.Stream` and `torch.Event` where work is done before a call returns."""

from __future__ import annotations

import pytest

import torchlab as torch
from torchlab._core.backends import accelerator


def test_a_stream_of_the_cpu() -> None:
    s = torch.Stream()
    assert (s.device, s.stream_id, s.device_index, s.device_type) == (torch.device("cpu"), 0, -1, 0)
    assert repr(s) == "torch.Stream device_type=cpu, device_index=-1, stream_id=0"
    assert s.query() and not s.is_capturing() and s == torch.Stream("cpu", priority=1)
    assert len({s, torch.Stream("cpu")}) == 1 and s != torch.Stream("meta")
    s.synchronize()
    s.wait_event(torch.Event())
    with s as inside:
        assert inside is s
    for call in (s.record_event, lambda: s.record_event(torch.Event()), lambda: s.wait_stream(s)):
        with pytest.raises(RuntimeError, match="cpu backend doesn't support events."):
            call()


def test_an_event_of_the_cpu() -> None:
    e = torch.Event(enable_timing=True)
    assert repr(e) == "torch.Event device_type=cpu, device_index=-1, event_flag=1, event_id=0"
    assert e.query() and e.event_id == 0 and e.device == torch.device("cpu")
    e.wait()
    e.wait(torch.Stream())
    e.synchronize()
    with pytest.raises(RuntimeError, match="cpu backend doesn't support events."):
        e.record()
    with pytest.raises(ValueError, match="must be created with argument 'enable_timing=True'."):
        e.elapsed_time(torch.Event())


def test_there_is_no_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(accelerator, "kind", lambda: None)
    for kind in (torch.Stream, torch.Event):
        with pytest.raises(RuntimeError, match="not linked with support for cuda devices"):
            kind("cuda")
    with pytest.raises(RuntimeError, match="Cannot access accelerator device"):
        torch.Stream(0)


def test_those_of_gpus_are_streams_and_events() -> None:
    assert issubclass(torch.cuda.Stream, torch.Stream)
    assert issubclass(torch.cuda.Event, torch.Event)

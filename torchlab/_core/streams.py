"""`torch.Stream` and `torch.Event`: orders of work on any device, and points in them.

What works off each call before it returns (the CPU, meta, the simulated accelerator) has one stream
in which nothing is waiting. Those of GPUs are `torchlab.cuda`'s, which registers itself in MAKERS.

Source: https://docs.pytorch.org/docs/2.13/torch.html#accelerators
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torchlab._core.backends import accelerator
from torchlab._core.device import device as _device

__all__ = ["MAKERS", "Event", "Stream"]

MAKERS: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {}
"""For a type of devices that works off calls later: what makes its streams and its events."""

_TYPES = {"cpu": 0, "cuda": 1, "meta": 14, "sim": 20}  # PyTorch's numbers; sim is a private one


def _wanted(device: Any) -> _device:
    """The device a stream is asked for on: by default the accelerator, else the CPU."""
    if device is None:
        found = _device(accelerator.kind() or "cpu")
    elif isinstance(device, int):
        found = _device(accelerator.require("torch.Stream"), device)
    else:
        found = _device(device)
    if found.type == "cuda" and accelerator.kind() != "cuda":
        raise RuntimeError("PyTorch is not linked with support for cuda devices")
    return found


class Stream:
    """An order of work on a device: `torch.Stream(device=None, *, priority=0)`.

    device: by default the accelerator, or the CPU where there is none. RuntimeError for a device
        that there is not.
    """

    __module__ = "torchlab"
    device: _device
    stream_id = 0

    def __new__(cls, device: Any = None, *args: Any, **kwargs: Any) -> Any:
        """A stream of the class that belongs to the device."""
        if cls is not Stream:
            return object.__new__(cls)
        where = _wanted(device)
        if where.type in MAKERS:
            return MAKERS[where.type][0](where, **kwargs)
        self = object.__new__(cls)
        self.device = where
        return self

    def __init__(self, device: Any = None, *, priority: int = 0) -> None:
        pass

    @property
    def device_index(self) -> int:
        """The device's index, -1 if it has none."""
        return -1 if self.device.index is None else self.device.index

    @property
    def device_type(self) -> int:
        """The number of the device's type."""
        return _TYPES[self.device.type]

    def query(self) -> bool:
        """Whether the stream's work is done."""
        return True

    def synchronize(self) -> None:
        """Wait until the stream's work is done."""

    def is_capturing(self) -> bool:
        """Whether its work is recorded as a graph instead of done."""
        return False

    def wait_event(self, event: Any) -> None:
        """Let what is given to the stream from now on wait for `event`."""

    def wait_stream(self, stream: Any) -> None:
        """Let what is given to the stream from now on wait for all work of `stream`."""
        self.wait_event(stream.record_event())

    def record_event(self, event: Any = None) -> Any:
        """A point in the stream. RuntimeError for devices that have none."""
        event = Event(self.device) if event is None else event
        event.record(self)
        return event

    def __enter__(self) -> Stream:
        return self

    def __exit__(self, *exc: object) -> None:
        pass

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Stream)
            and other.device == self.device
            and other.stream_id == self.stream_id
        )

    def __hash__(self) -> int:
        return hash((self.device, self.stream_id))

    def __repr__(self) -> str:
        return (
            f"torch.Stream device_type={self.device.type}, device_index={self.device_index},"
            f" stream_id={self.stream_id}"
        )


class Event:
    """A point in a stream: `torch.Event(device=None, *, enable_timing=False)`. RuntimeError for a
    device that there is not."""

    __module__ = "torchlab"
    device: _device
    event_id = 0
    _timed = False

    def __new__(cls, device: Any = None, *args: Any, **kwargs: Any) -> Any:
        """An event of the class that belongs to the device."""
        if cls is not Event:
            return object.__new__(cls)
        where = _wanted(device)
        if where.type in MAKERS:
            return MAKERS[where.type][1](**kwargs)
        self = object.__new__(cls)
        self.device = where
        return self

    def __init__(
        self,
        device: Any = None,
        *,
        enable_timing: bool = False,
        blocking: bool = False,
        interprocess: bool = False,
    ) -> None:
        self._timed = enable_timing

    def record(self, stream: Any = None) -> None:
        """Let the event happen when the work given so far to `stream` is done."""
        raise RuntimeError(f"{self.device.type} backend doesn't support events.")

    def wait(self, stream: Any = None) -> None:
        """Let what is given to `stream` from now on wait for the event."""

    def query(self) -> bool:
        """Whether the event has happened, or was never recorded."""
        return True

    def synchronize(self) -> None:
        """Wait for the event."""

    def elapsed_time(self, end_event: Any) -> float:
        """Milliseconds from this event to `end_event`. ValueError unless both measure time."""
        if not (self._timed and end_event._timed):
            raise ValueError("Both events must be created with argument 'enable_timing=True'.")
        raise RuntimeError(f"{self.device.type} backend doesn't support events.")

    def __repr__(self) -> str:
        index = -1 if self.device.index is None else self.device.index
        return (
            f"torch.Event device_type={self.device.type}, device_index={index},"
            f" event_flag={int(self._timed)}, event_id={self.event_id}"
        )

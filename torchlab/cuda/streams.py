"""Streams and events of GPUs, which are CuPy's.

Source: https://docs.pytorch.org/docs/2.13/cuda.html#streams-and-events
"""

from __future__ import annotations

from typing import Any

from torchlab._core import device as devices
from torchlab._core import streams
from torchlab._core.backends import cuda as _gpus
from torchlab.cuda.devices import Device, index_of

cupy = _gpus.cupy


class Stream(streams.Stream):
    """An order of work on a GPU; different streams may overlap. RuntimeError if there is no GPU.

    device: the GPU, by default the current one. priority: lower is more urgent.
    """

    def __init__(self, device: Device = None, priority: int = 0, **kwargs: Any) -> None:
        if not _gpus.device_count():
            raise RuntimeError(f"torch.cuda.Stream requires CUDA support: {_gpus.found()[1]}")
        index = index_of(device)
        self.device = devices.device("cuda", index)
        self.priority = priority
        self._raw = kwargs.pop("_raw", None)
        if kwargs:
            raise TypeError(f"Stream() got an unexpected keyword argument {next(iter(kwargs))!r}")
        if self._raw is None:
            with cupy.cuda.Device(index):
                self._raw = cupy.cuda.Stream(non_blocking=True, priority=priority)

    @property
    def cuda_stream(self) -> int:
        """The address of the driver's stream."""
        return int(self._raw.ptr)

    def synchronize(self) -> None:
        """Wait until the stream's work is done."""
        self._raw.synchronize()

    def query(self) -> bool:
        """Whether the stream's work is done."""
        return bool(self._raw.done)

    def wait_event(self, event: Event) -> None:
        """Let what is given to the stream from now on wait for `event`."""
        self._raw.wait_event(event._raw)

    def wait_stream(self, stream: Stream) -> None:
        """Let what is given to the stream from now on wait for all work of `stream`."""
        self.wait_event(stream.record_event())

    def record_event(self, event: Event | None = None) -> Event:
        """A point in the stream: the event happens when the work given so far is done."""
        event = Event() if event is None else event
        event.record(self)
        return event

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Stream) and other.cuda_stream == self.cuda_stream

    def __hash__(self) -> int:
        return hash(self.cuda_stream)

    def __repr__(self) -> str:
        return f"<torch.cuda.Stream device={self.device} cuda_stream={self.cuda_stream:#x}>"


class Event(streams.Event):
    """A point in a stream, to wait for and to measure time between. RuntimeError without a GPU."""

    def __init__(
        self,
        enable_timing: bool = False,
        blocking: bool = False,
        interprocess: bool = False,
        external: bool = False,
    ) -> None:
        if not _gpus.device_count():
            raise RuntimeError(f"torch.cuda.Event requires CUDA support: {_gpus.found()[1]}")
        if interprocess or external:
            raise NotImplementedError("torchlab has no events between processes or graphs")
        self._raw = cupy.cuda.Event(block=blocking, disable_timing=not enable_timing)

    def record(self, stream: Stream | None = None) -> None:
        """Let the event happen when the work given so far to `stream` (the current one) is done."""
        self._raw.record((current_stream() if stream is None else stream)._raw)

    def wait(self, stream: Stream | None = None) -> None:
        """Let what is given to `stream` (the current one) from now on wait for the event."""
        (current_stream() if stream is None else stream)._raw.wait_event(self._raw)

    def query(self) -> bool:
        """Whether the event has happened."""
        return bool(self._raw.done)

    def synchronize(self) -> None:
        """Wait for the event."""
        self._raw.synchronize()

    def elapsed_time(self, end_event: Event) -> float:
        """Milliseconds from this event to `end_event`; both were made with enable_timing."""
        return float(cupy.cuda.get_elapsed_time(self._raw, end_event._raw))


class StreamContext:
    """`with torch.cuda.stream(s):` — work goes to `s` inside. None changes nothing."""

    def __init__(self, stream: Stream | None) -> None:
        self.stream = stream

    def __enter__(self) -> None:
        if self.stream is not None:
            self.stream._raw.__enter__()

    def __exit__(self, type: Any, value: Any, traceback: Any) -> None:
        if self.stream is not None:
            self.stream._raw.__exit__(type, value, traceback)


def stream(stream: Stream | None) -> StreamContext:
    """A context in which work goes to `stream`."""
    return StreamContext(stream)


def current_stream(device: Device = None) -> Stream:
    """The stream that work goes to now. AssertionError if there is no GPU."""
    _gpus.require()
    index = index_of(device)
    with cupy.cuda.Device(index):
        return Stream(index, _raw=cupy.cuda.get_current_stream())


def default_stream(device: Device = None) -> Stream:
    """The stream that work goes to when nobody chooses. AssertionError if there is no GPU."""
    _gpus.require()
    return Stream(index_of(device), _raw=cupy.cuda.Stream.null)


def set_stream(stream: Stream | None) -> None:
    """Let this thread's work go to `stream`; None changes nothing."""
    if stream is not None:
        stream._raw.use()


streams.MAKERS["cuda"] = (Stream, Event)

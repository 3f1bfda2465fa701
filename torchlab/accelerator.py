"""`torchlab.accelerator`: the device that is not the CPU, whichever it is.

That is the GPU if there is one. The simulated accelerator is one only for those who ask for it,
since it is there to be looked at and not to be fast: set TORCHLAB_ACCELERATOR=sim in the
environment, and a program that takes whatever accelerator it finds runs on `torch.device("sim")`.

What needs an accelerator raises PyTorch's RuntimeError where there is none.

Source: https://docs.pytorch.org/docs/2.13/accelerator.html
"""

from __future__ import annotations

import importlib
from types import TracebackType
from typing import Any

from torchlab._core import device as _devices
from torchlab._core.backends import accelerator as _found

Device = _devices.device | str | int | None

__all__ = [
    "current_accelerator",
    "current_device_idx",
    "current_device_index",
    "device_count",
    "device_index",
    "empty_cache",
    "get_memory_info",
    "is_available",
    "max_memory_allocated",
    "max_memory_reserved",
    "memory_allocated",
    "memory_reserved",
    "memory_stats",
    "reset_accumulated_memory_stats",
    "reset_peak_memory_stats",
    "set_device_idx",
    "set_device_index",
    "synchronize",
]


_kind = _found.kind


def _module(doing: str) -> Any:
    return importlib.import_module(f"torchlab.{_found.require(doing)}")


def _ask(name: str, *args: Any) -> Any:
    """Call the device module's function of that name, if it has it."""
    module = _module(name)
    function = getattr(module, name, None)
    if function is None:
        raise NotImplementedError(f"{module.__name__} has no {name}()")
    return function(*args)


def _index(device: Device, doing: str, optional: bool = True) -> int | None:
    """The index of a device of the accelerator's kind."""
    if device is None or isinstance(device, int):
        if device is None and not optional:
            raise ValueError(
                "Expected a torch.device with a specified index or an integer, but got:None"
            )
        return device
    d = _devices.device(device)
    if d.type == "cpu" or (_kind() is not None and d.type != _kind()):
        raise (RuntimeError("Accelerator expected") if _kind() is None else ValueError(
            f"{d.type} doesn't match the current accelerator {_kind()}."
        ))  # fmt: skip
    if d.index is None and not optional:
        raise ValueError(
            f"Expected a torch.device with a specified index or an integer, but got:{device}"
        )
    return d.index


def is_available() -> bool:
    """Whether there is an accelerator."""
    return _kind() is not None


def device_count() -> int:
    """The number of its devices; 0 if there is none."""
    return _ask("device_count") if is_available() else 0


def current_accelerator(check_available: bool = False) -> _devices.device | None:
    """The accelerator's device without an index, or None. What is found is available, so
    `check_available` changes nothing."""
    kind = _kind()
    return None if kind is None else _devices.device(kind)


def current_device_index() -> int:
    """The index of the current device."""
    return _ask("current_device")


def current_device_idx() -> int:
    """The old name of `current_device_index`."""
    return current_device_index()


def set_device_index(device: Device, /) -> None:
    """Make a device, with an index or as one, the current one."""
    index = _index(device, "set_device_index", optional=False)
    _ask("set_device", index)


def set_device_idx(device: Device, /) -> None:
    """The old name of `set_device_index`."""
    set_device_index(device)


class device_index:
    """`with torch.accelerator.device_index(1):` makes that device the current one; None changes
    nothing."""

    def __init__(self, device: int | None, /) -> None:
        self.idx = device
        self.prev_idx = -1

    def __enter__(self) -> None:
        if self.idx is not None:
            self.prev_idx = current_device_index()
            set_device_index(self.idx)

    def __exit__(
        self, type: type | None, value: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self.idx is not None:
            set_device_index(self.prev_idx)


def synchronize(device: Device = None, /) -> None:
    """Wait until the device has done all work that was given to it."""
    index = _index(device, "synchronize")
    _ask("synchronize", index)


def empty_cache() -> None:
    """Give what the allocator keeps for later back to the devices."""
    _ask("empty_cache")


def get_memory_info(device_index: Device = None, /) -> tuple[int, int]:
    """(free, total) of the device, in bytes."""
    return _ask("mem_get_info", _index(device_index, "get_memory_info"))


def memory_allocated(device_index: Device = None, /) -> int:
    """Bytes that tensors hold."""
    return _ask("memory_allocated", _index(device_index, "memory_allocated"))


def max_memory_allocated(device_index: Device = None, /) -> int:
    """The peak of `memory_allocated`."""
    return _ask("max_memory_allocated", _index(device_index, "max_memory_allocated"))


def memory_reserved(device_index: Device = None, /) -> int:
    """Bytes that the allocator holds from the device."""
    return _ask("memory_reserved", _index(device_index, "memory_reserved"))


def max_memory_reserved(device_index: Device = None, /) -> int:
    """The peak of `memory_reserved`."""
    return _ask("max_memory_reserved", _index(device_index, "max_memory_reserved"))


def memory_stats(device_index: Device = None, /) -> dict[str, Any]:
    """All counters of the allocator."""
    return _ask("memory_stats", _index(device_index, "memory_stats"))


def reset_accumulated_memory_stats(device_index: Device = None, /) -> None:
    """Set sums over time and counters to zero."""
    _ask("reset_accumulated_memory_stats", _index(device_index, "reset_accumulated_memory_stats"))


def reset_peak_memory_stats(device_index: Device = None, /) -> None:
    """Let all peaks start again from the present values."""
    _ask("reset_peak_memory_stats", _index(device_index, "reset_peak_memory_stats"))

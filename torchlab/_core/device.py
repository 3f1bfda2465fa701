"""`torch.device`: where a tensor's memory lies."""

from __future__ import annotations

import re
import threading
from typing import Any

TYPES = ("cpu", "cuda", "sim", "meta")
ELSEWHERE = (
    "ipu", "xpu", "mkldnn", "opengl", "opencl", "ideep", "hip", "ve", "fpga", "maia", "xla", "lazy",
    "vulkan", "mps", "hpu", "mtia", "privateuseone",
)  # fmt: skip
"""Types that PyTorch knows and torchlab does not reach. Programs name them to ask whether a tensor
is there; none ever is, and to put one there raises."""
_TEXT = re.compile(r"([a-z_]+)(?::(0|[1-9]\d*))?\Z")
_interned: dict[tuple[str, int | None], device] = {}


class device:
    """`device("cpu")`, `device("sim:0")`, `device("cuda", 1)`. Also a context manager: tensors made
    inside without `device=` go there. One object per (type, index)."""

    __module__ = "torchlab"
    __slots__ = ("type", "index", "_previous", "__weakref__")
    type: str
    index: int | None

    def __new__(cls, type: str | device | int, index: int | None = None) -> device:
        if isinstance(type, device):
            return type
        if isinstance(type, int):
            type, index = "cuda", type
        if not isinstance(type, str):
            raise TypeError(f"device(): argument 'type' (position 1) must be str, not {type!r}")
        if not type:
            raise RuntimeError("Device string must not be empty")
        m = _TEXT.match(type)
        if m is None:
            raise RuntimeError(f"Invalid device string: '{type}'")
        if m[1] not in TYPES and m[1] not in ELSEWHERE:
            raise RuntimeError(
                f"Expected one of {', '.join(TYPES + ELSEWHERE)} device type at start of device"
                f" string: {m[1]}"
            )
        if m[2] is not None:
            if index is not None:
                raise RuntimeError(
                    f"type (string) must not include an index because index was passed "
                    f"explicitly: {type}"
                )
            index = int(m[2])
        if index is not None and index < 0:
            raise RuntimeError(f"Device index must not be negative, got {index}")
        key = (m[1], index)
        found = _interned.get(key)
        if found is None:
            found = object.__new__(cls)
            found.type, found.index = key
            found._previous = []
            found = _interned.setdefault(key, found)
        return found

    def __repr__(self) -> str:
        return (
            f"device(type='{self.type}')"
            if self.index is None
            else f"device(type='{self.type}', index={self.index})"
        )

    def __str__(self) -> str:
        return self.type if self.index is None else f"{self.type}:{self.index}"

    def __reduce__(self) -> tuple[Any, ...]:
        return (device, (self.type, self.index))

    def __enter__(self) -> device:
        _state.stack.append(_state.default)
        _go_to(concrete(self))
        return self

    def __exit__(self, *exc: object) -> None:
        _go_to(_state.stack.pop())


class _State(threading.local):
    def __init__(self) -> None:
        self.default = device("cpu")
        self.stack: list[device] = []


def concrete(d: device) -> device:
    """The device that tensors report: accelerators always with an index, the others never (there is
    one CPU and one meta device, whatever index the user wrote). Raises for types ELSEWHERE."""
    if d.type in ("cuda", "sim"):
        return device(d.type, 0) if d.index is None else d
    if d.type in ELSEWHERE:
        if d.type in ("xpu", "mtia"):
            raise AssertionError(f"Torch not compiled with {d.type.upper()} enabled")
        raise RuntimeError(f"PyTorch is not linked with support for {d.type} devices")
    return d if d.index is None else device(d.type)


cpu = device("cpu")
_state = _State()
AWAY: list[device] = []  # one entry per thread whose tensors do not go to the CPU by default


def _go_to(d: device) -> None:
    if (d.type != "cpu") != (_state.default.type != "cpu"):
        if d.type != "cpu":
            AWAY.append(d)
        else:
            AWAY.pop()
    _state.default = d


def get_default_device() -> device:
    """Where tensors go when no `device=` is given (per thread)."""
    return _state.default


def set_default_device(device: Any) -> None:
    """Set where this thread's tensors go when no `device=` is given; None means the CPU."""
    _go_to(cpu if device is None else as_device(device))


def as_device(d: Any) -> device:
    """A concrete device from what users pass: a device, a string, an index, or None (the
    default)."""
    if d is None:
        return _state.default
    return concrete(device(d))

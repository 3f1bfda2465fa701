"""`torch.layout` and `torch.memory_format`: how elements lie in memory, as named constants.

Source: https://docs.pytorch.org/docs/2.13/tensor_attributes.html
"""

from __future__ import annotations

from typing import Any, NoReturn

_NAMED: dict[str, Any] = {}


class _Named:
    """A constant that is known by its name, and only by that: one object, pickled by name."""

    __slots__ = ("name",)
    name: str

    def __init_subclass__(cls) -> None:
        cls.__module__ = "torchlab"

    def __new__(cls, *args: Any, **kwargs: Any) -> NoReturn:
        raise TypeError(f"cannot create 'torch.{cls.__name__}' instances")

    def __repr__(self) -> str:
        return self.name

    def __reduce__(self) -> Any:
        return (named, (self.name,))


class layout(_Named):
    """Whether a tensor is strided or sparse, and how: `torch.strided`."""

    __slots__ = ()


class memory_format(_Named):
    """The order of a strided tensor's dims in memory: `torch.channels_last`."""

    __slots__ = ()


def named(name: str) -> Any:
    """The constant of that name, "torch.strided" say."""
    return _NAMED[name]


def define(cls: type, name: str) -> Any:
    """Make the constant `torch.<name>` of a class."""
    constant: Any = object.__new__(cls)
    constant.name = f"torch.{name}"
    return _NAMED.setdefault(constant.name, constant)


strided: layout = define(layout, "strided")
contiguous_format: memory_format = define(memory_format, "contiguous_format")
channels_last: memory_format = define(memory_format, "channels_last")
channels_last_3d: memory_format = define(memory_format, "channels_last_3d")
preserve_format: memory_format = define(memory_format, "preserve_format")

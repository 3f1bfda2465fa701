"""The value that stands for another while a program is traced: it notes what is done with it."""

from __future__ import annotations

import dis
import operator
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from torchlab.fx.node import Node

if TYPE_CHECKING:
    from torchlab.fx.tracer import Tracer


class TraceError(ValueError):
    """Tracing met something that depends on values: a branch, a loop, a length."""


class Proxy:
    """A value that is not known yet. Operators, methods, functions and attributes become nodes."""

    def __init__(self, node: Node, tracer: Tracer) -> None:
        self.node = node
        self.tracer = tracer

    def __repr__(self) -> str:
        return f"Proxy({self.node.name})"

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") and name.endswith("__"):
            raise AttributeError(name)
        return Attribute(self, name)

    def __getitem__(self, index: Any) -> Proxy:
        return self.tracer.create_proxy("call_function", operator.getitem, (self, index), {})

    def __setitem__(self, index: Any, value: Any) -> None:
        raise TypeError("'Proxy' object does not support item assignment")

    def __iter__(self) -> Iterator[Any]:
        f = sys._getframe(1)
        # `a, b = proxy`: the number of names tells how many values there are
        for instruction in dis.get_instructions(f.f_code):
            if instruction.offset == f.f_lasti and instruction.opname == "UNPACK_SEQUENCE":
                return (self[i] for i in range(instruction.argval))
        return self.tracer.iter(self)

    def __bool__(self) -> bool:
        f = sys._getframe(1)
        for instruction in dis.get_instructions(f.f_code):
            if instruction.offset == f.f_lasti and instruction.opname == "ASSERT":
                return True
        return self.tracer.to_bool(self)

    def __len__(self) -> int:
        raise RuntimeError(
            "'len' is not supported in symbolic tracing by default. If you want this "
            "call to be recorded, please call torch.fx.wrap('len') at module scope"
        )

    def __contains__(self, item: Any) -> bool:
        return self.tracer.to_bool(self)

    def __int__(self) -> int:
        raise TraceError(
            "symbolically traced variables cannot be converted to int: their value is not known"
        )

    def __float__(self) -> float:
        raise TraceError(
            "symbolically traced variables cannot be converted to float: their value is not known"
        )

    def __index__(self) -> int:
        raise TraceError(
            "symbolically traced variables cannot be used as an index: their value is not known"
        )

    def __call__(self, *args: Any, **kwargs: Any) -> Proxy:
        return self.tracer.create_proxy("call_method", "__call__", (self, *args), kwargs)

    def keys(self) -> Any:
        return self.tracer.keys(self)

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """An operator was called with a Proxy among its arguments."""
        tracer = find_proxy((args, kwargs)).tracer
        kwargs = kwargs or {}
        return tracer.create_proxy("call_function", func, args, kwargs)


class Attribute(Proxy):
    """`proxy.name`: a method if it is called next, else the value of the attribute."""

    def __init__(self, root: Proxy, attr: str) -> None:
        self.root = root
        self.attr = attr
        self.tracer = root.tracer
        self._node: Node | None = None

    @property
    def node(self) -> Node:  # type: ignore[override]
        # made late, because most attributes are called
        if self._node is None:
            self._node = self.tracer.create_proxy(
                "call_function", getattr, (self.root, self.attr), {}
            ).node
        return self._node

    def __call__(self, *args: Any, **kwargs: Any) -> Proxy:
        return self.tracer.create_proxy("call_method", self.attr, (self.root, *args), kwargs)


def find_proxy(value: Any) -> Any:
    """The first Proxy in nested arguments, or None."""
    if isinstance(value, Proxy):
        return value
    parts = (
        value.values()
        if isinstance(value, dict)
        else value
        if isinstance(value, (tuple, list))
        else ()
    )
    if isinstance(value, slice):
        parts = (value.start, value.stop, value.step)
    for x in parts:
        found = find_proxy(x)
        if found is not None:
            return found
    return None


def _binary(name: str, fn: Any) -> None:
    def forward(self: Proxy, other: Any) -> Proxy:
        return self.tracer.create_proxy("call_function", fn, (self, other), {})

    setattr(Proxy, f"__{name}__", forward)


def _reflected(name: str, fn: Any) -> None:
    def backward(self: Proxy, other: Any) -> Proxy:
        return self.tracer.create_proxy("call_function", fn, (other, self), {})

    setattr(Proxy, f"__r{name}__", backward)


for _name in (
    "add",
    "sub",
    "mul",
    "floordiv",
    "truediv",
    "mod",
    "lshift",
    "rshift",
    "and",
    "or",
    "xor",
    "matmul",
    "pow",
):
    _fn = getattr(operator, _name + "_" if _name in ("and", "or") else _name)
    _binary(_name, _fn)
    _reflected(_name, _fn)
for _name in ("eq", "ne", "lt", "gt", "le", "ge"):
    _binary(_name, getattr(operator, _name))
Proxy.__hash__ = object.__hash__  # type: ignore[method-assign]


def _unary(name: str, fn: Any) -> None:
    def apply(self: Proxy) -> Proxy:
        return self.tracer.create_proxy("call_function", fn, (self,), {})

    setattr(Proxy, f"__{name}__", apply)


for _name in ("neg", "pos", "invert"):
    _unary(_name, getattr(operator, _name))
_unary("abs", abs)

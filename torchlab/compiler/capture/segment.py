"""The segment, and the guards that say whether it may be used.

Note [What guards watch]
The arguments' structure, values and tensors' metadata make one comparable key. Everything else that
the
function may read is watched where it lies: (dictionary, key, value) entries for globals, attributes
and
modules' tables, cells of closures, and copies of lists and tuples. Tensors are watched by identity
and
metadata, never by value: their values are the graph's inputs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from torchlab._core import dtype as dt
from torchlab._core.device import device
from torchlab._core.tensor import Parameter, Size, Tensor
from torchlab.compiler.capture.breaks import Break
from torchlab.fx.graph import Graph
from torchlab.nn.module import Module

SCALARS = (bool, int, float, complex, str, bytes, type(None), dt.dtype, device, type(Ellipsis))


def same(a: Any, b: Any) -> bool:
    """The same object, or equal plain values of one type."""
    return a is b or (type(a) is type(b) and isinstance(a, SCALARS) and a == b)


def arguments_key(args: Any, kwargs: Any, tensors: list[Tensor]) -> Any:
    """What of the arguments a segment depends on, as a comparable value; `tensors` collects the
    tensors.

    Raises:
        Break: an argument that capture does not take.
    """
    key = [_key(x, tensors) for x in args]
    if kwargs:
        key.append(tuple((k, _key(v, tensors)) for k, v in kwargs.items()))
    return tuple(key)


def _key(x: Any, tensors: list[Tensor]) -> Any:
    c = type(x)
    if c is Tensor or c is Parameter:
        tensors.append(x)
        a = x._a
        return (x._k, a.shape, a.strides, x.requires_grad)
    if c in (tuple, list, Size):
        return (c, *[_key(y, tensors) for y in x])
    if c is dict:
        return (c, *[(k, _key(v, tensors)) for k, v in x.items()])
    if isinstance(x, tuple) and hasattr(x, "_fields"):
        return (c, *[_key(y, tensors) for y in x])
    if c is slice:
        return (c, _key(x.start, tensors), _key(x.stop, tensors), _key(x.step, tensors))
    if isinstance(x, SCALARS):
        return (c, x, str(x)) if c is float else (c, x)  # str: -0.0 is not 0.0, nan is nan
    if isinstance(x, Tensor):
        raise Break(f"an argument is of the tensor subclass {c.__name__}")
    if isinstance(x, Module) or callable(x) and hasattr(x, "__code__"):
        return (c, id(x))
    raise Break(
        f"an argument is of type {c.__name__}; capture takes tensors, numbers, strings "
        "and containers of them"
    )


@dataclass
class Guards:
    """What must be as it was when the segment was made. `check()` gives None, or what has
    changed.
    """

    key: Any = ()
    environment: Any = ()
    entries: list[tuple[dict[Any, Any], Any, Any, str]] = field(default_factory=list)
    cells: list[tuple[Any, Any, str]] = field(default_factory=list)
    copies: list[tuple[Any, Any, str]] = field(default_factory=list)
    sizes: list[tuple[dict[Any, Any], int, str]] = field(default_factory=list)
    tensors: list[tuple[Tensor, Any, str]] = field(default_factory=list)

    def check(self) -> tuple[str, Any, Any] | None:
        """(what, expected, got) of the first guard outside the arguments that fails, or None."""
        for d, k, v, what in self.entries:
            got = d.get(k, _MISSING)
            if got is not v and not same(got, v):
                return what, v, got
        for d, n, what in self.sizes:
            if len(d) != n:
                return f"the number of entries of {what}", n, len(d)
        for cell, v, what in self.cells:
            try:
                got = cell.cell_contents
            except ValueError:
                got = _MISSING
            if got is not v and not same(got, v):
                return what, v, got
        for container, copy, what in self.copies:
            if len(container) != len(copy) or not all(
                a is b or same(a, b) for a, b in zip(container, copy, strict=True)
            ):
                return what, copy, container
        for t, (k, shape, strides, grad), what in self.tensors:
            a = t._a
            if (
                t._k is not k
                or a.shape != shape
                or a.strides != strides
                or (t._e is not None) != grad
            ):
                return (
                    what,
                    (k.dtype, shape, strides, grad),
                    (t._k.dtype, a.shape, a.strides, t._e is not None),
                )
        return None

    def restore(self) -> None:
        """Put lists back as they were: a capture that is given up must leave no trace."""
        for container, copy, _ in self.copies:
            if isinstance(container, list) and (
                len(container) != len(copy)
                or any(a is not b for a, b in zip(container, copy, strict=True))
            ):
                container[:] = copy

    def describe(self) -> list[str]:
        """One line for each guard."""
        lines = [f"argument {i}: {part}" for i, part in enumerate(self.key)]
        lines += [
            f"{what} is {v!r}"[:200] for _, _, v, what in self.entries if isinstance(v, SCALARS)
        ]
        lines += [
            f"{what} is the same object"
            for _, _, v, what in self.entries
            if not isinstance(v, SCALARS)
        ]
        lines += [f"{what} is {v!r}"[:200] for _, v, what in self.cells]
        lines += [f"{what} has {len(copy)} unchanged items" for _, copy, what in self.copies]
        lines += [
            f"{what}: {m[0].dtype} {m[1]}, requires_grad={m[3]}" for _, m, what in self.tensors
        ]
        return [*lines, f"grad mode, default dtype, autocast: {self.environment}"]


_MISSING = type("missing", (), {"__repr__": lambda self: "<missing>"})()


@dataclass
class Captured:
    """What capture hands to a backend.

    graph: aten operators; placeholders stand for `inputs` (example tensors; those after `given`
        are read by
    the function itself: parameters, globals). fakes, outputs, tape: for the joint graph (see
    `aot.joint`).
    """

    graph: Graph
    inputs: list[Tensor]
    given: int
    fakes: list[Tensor]
    outputs: list[Tensor]
    mode: Any
    name: str = "fn"


@dataclass
class Segment:
    """`guards` hold → `run(args' tensors)` gives what the function would have returned.

    lifted: tensors that are inputs of the graph beside the arguments. recipe: rebuilds the result's
    structure from the graph's outputs.
    """

    graph: Graph
    guards: Guards
    call: Callable[..., Sequence[Tensor]]
    lifted: list[Tensor]
    recipe: Callable[[Sequence[Tensor], Sequence[Tensor]], Any]
    programs: list[Any]

    def run(self, tensors: list[Tensor]) -> Any:
        """The function's result for the arguments' tensors; guards must have been checked."""
        if self.lifted:
            tensors = tensors + self.lifted
        return self.recipe(self.call(tensors), tensors)

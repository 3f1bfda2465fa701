"""Functional tensors: what `functionalize` wraps. Writes become new values, of all views, too.

A wrapper of a view remembers which wrapper it is a view of and by which operator. A write gives it
a new value, and by the view's inverse (`select_scatter` for `select`) the wrapper that it is a view
of, down to the base; other views of the base are made anew when they are read next.

Source: https://docs.pytorch.org/docs/2.13/generated/torch.func.functionalize.html
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torchlab._core.dispatch import writes
from torchlab._core.dispatch.levels import Level, again, mapped, wrapper
from torchlab._core.dispatch.overload import bind
from torchlab._core.dispatch.registry import aten
from torchlab._core.tensor import Tensor

VIEWS_REMOVED: dict[int, bool] = {}  # level → whether views become copies, too
KEPT: list[Callable[[Any], bool]] = []  # which composites are not taken apart


class Functional(Level):
    """A wrapper whose value changes with each write; what it holds is never written to."""

    __slots__ = ()
    value: Tensor
    source: Any  # the wrapper that this is a view of
    step: Any  # (declaration, arguments after the first, number of the output or None)
    writes: int  # of a base: how many there were. Of a view: those that its value has in it

    @classmethod
    def run(cls, op: Any, args: tuple[Any, ...], level: int) -> Any:
        bare = [mapped(lambda x: current(x, level), a) for a in args]
        x = args[0] if args else None
        if op.family != "view" or not isinstance(x, Tensor) or x._level != level:  # type: ignore[attr-defined]
            return mapped(lambda r: functional(r, level), again(op, bare))
        result = _view(op, bare, level)
        if isinstance(result, Tensor):
            return functional(result, level, x, (op, args[1:], None))
        return type(result)(
            functional(r, level, x, (op, args[1:], i)) for i, r in enumerate(result)
        )

    @classmethod
    def run_inplace(cls, op: Any, args: tuple[Any, ...], level: int) -> None:
        target = args[0]
        bare = [mapped(lambda x: current(x, level), a) for a in args]
        result = again(op, bare)
        if target._level != level:
            raise RuntimeError(
                f"functionalize: {op.name}_ would write to a tensor that is no argument of the"
                " function; give it as one"
            )
        if tuple(result._a.shape) != tuple(target._a.shape):
            raise RuntimeError(
                f"{op.name}_: output with shape {list(target._a.shape)} doesn't match the broadcast"
                f" shape {list(result._a.shape)}"
            )
        writes.check_cast(op, result._k.dtype, target._k.dtype)
        assign(target, result, level)

    @classmethod
    def run_overload(cls, overload: Any, args: Any, kwargs: Any, level: int) -> Any:
        if overload._opname == "copy_":
            if args[0]._level != level:
                raise RuntimeError(
                    "functionalize: copy_ would write to a tensor that is no argument of the"
                    " function; give it as one"
                )
            shape = tuple(args[0]._a.shape)
            assign(args[0], aten.expand(current(args[1], level), shape), level)
            return args[0]
        bare = [mapped(lambda x: current(x, level), a) for a in args]
        if overload.form == "out":
            raise NotImplementedError(f"functionalize: {overload}; assign the result instead")
        if overload.form == "inplace":
            cls.run_inplace(overload.op, bind(overload.parsed, args, kwargs), level)
            return args[0]
        if overload._opname.endswith("_"):  # a draw
            value = aten.clone(bare[0])
            assign(args[0], overload(value, *bare[1:], **kwargs), level)
            return args[0]
        return mapped(lambda r: functional(r, level), overload(*bare, **kwargs))

    @classmethod
    def lift(cls, x: Tensor, level: int) -> Any:
        return functional(x, level)

    @classmethod
    def whole(cls, op: Any) -> bool:
        return bool(KEPT) and any(keep(op) for keep in KEPT)

    def each(self, fn: Callable[[Tensor], Tensor]) -> Any:
        return functional(fn(current(self, self._level)), self._level)

    def take(self, other: Any) -> None:
        self.__dict__.update(other.__dict__)

    def __repr__(self, *, tensor_contents: Any = None) -> str:
        return f"FunctionalTensor(lvl={self._level}, value=\n{current(self, self._level)!r}\n)"

    __str__ = __repr__


def functional(value: Tensor, level: int, source: Any = None, step: Any = None) -> Functional:
    """A new functional tensor of `level`."""
    r: Functional = wrapper(Functional, value, level)
    r.value, r.source, r.step = value, source, step
    r.writes = 0 if source is None else _base(source).writes
    return r


def _base(x: Any) -> Any:
    while x.source is not None:
        x = x.source
    return x


def current(x: Any, level: int) -> Any:
    """The value of a functional tensor of this level, all writes in it; others as they are."""
    if x._level != level:
        return x
    if x.source is not None:
        count = _base(x).writes
        if x.writes != count:
            op, rest, number = x.step
            made = _view(op, [current(x.source, level), *rest], level)
            x.value = made if number is None else made[number]
            x.writes = count
    return x.value


def _view(op: Any, args: list[Any], level: int) -> Any:
    if op.name in ("view", "_reshape_alias", "_unsafe_view"):
        # A new value has strides of its own: the wrapper's may have allowed the view.
        made = aten.reshape(args[0], tuple(args[1]))
        return aten.clone(made) if VIEWS_REMOVED.get(level) else made
    if not VIEWS_REMOVED.get(level):
        return again(op, args)
    copied = getattr(aten, f"{op.name}_copy", None) if op.public else None
    if copied is not None and op.name not in ("as_strided", "squeeze", "unsafe_split"):
        return copied(*args[: 2 if op.name == "expand" else None])
    return mapped(aten.clone, again(op, args))


def assign(x: Any, value: Tensor, level: int) -> None:
    """Give a functional tensor, and what it is a view of, a new value."""
    if value._k.dtype is not x._k.dtype:
        value = aten.to(value, x._k.dtype)
    if x.source is None:
        x.writes += 1
    else:
        base = current(x.source, level)
        assign(x.source, _inverse(x.step, base, value), level)
        x.writes = _base(x).writes
    x.value = value


def _inverse(step: Any, base: Any, new: Any) -> Any:
    """`base` with `new` in the place that the view shows."""
    op, rest, number = step
    name, shape = op.name, tuple(base._a.shape)
    if name in ("select", "slice", "diagonal"):
        return getattr(aten, f"{name}_scatter")(base, new, *rest)
    if name == "transpose":
        return aten.transpose(new, *rest)
    if name == "t":
        return aten.t(new)
    if name == "permute":
        dims = [d % len(shape) for d in rest[0]]
        return aten.permute(new, tuple(dims.index(i) for i in range(len(dims))))
    if name in ("view", "_unsafe_view", "_reshape_alias", "unsqueeze", "squeeze"):
        return aten.reshape(new, shape)
    if name in ("alias", "detach"):
        return new
    if name in ("split", "unsafe_split", "split_with_sizes", "unsafe_split_with_sizes"):
        sizes, dim = rest
        before = sizes * number if isinstance(sizes, int) else sum(sizes[:number])
        return aten.slice_scatter(base, new, dim, before, before + new._a.shape[dim])
    if name == "unbind":
        return aten.select_scatter(base, new, rest[0], number)
    if name == "as_strided":
        size, stride, relative = rest
        place = base.storage_offset() + relative
        return aten.as_strided_scatter(base, new, tuple(size), tuple(stride), place)
    if name == "_view_as_real":
        return aten.view_as_complex(new)
    if name == "_view_as_complex":
        return aten.view_as_real(new)
    raise RuntimeError(
        f"functionalize: a write through '{name}' is not there: several of its elements may be one,"
        " or its inverse is no operator. Write to a clone()"
    )


__all__ = ["KEPT", "VIEWS_REMOVED", "Functional", "assign", "current", "functional"]

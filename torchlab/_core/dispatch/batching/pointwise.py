"""Batching rules of operators element by element."""

from __future__ import annotations

from typing import Any

from torchlab._core.dispatch.batches import RULES, batched, front, is_batched
from torchlab._core.dispatch.batching.calls import Call, each, padded, rule
from torchlab._core.dispatch.compute import result_dtypes
from torchlab._core.dispatch.levels import again
from torchlab._core.dispatch.registry import aten
from torchlab._core.formats import contiguous_format, preserve_format
from torchlab._core.tensor import Tensor

# Their operands do not meet in one type.
_UNPROMOTED = frozenset(("masked_fill", "_prelu_kernel", "rrelu_with_noise"))


def elementwise(op: Any, args: tuple[Any, ...], level: int) -> Any:
    """Ranks are filled up after the hidden dimension. A 0-d tensor has no say in the result's type
    against others; with the hidden dimension it would: it is converted before."""
    if len(args) == 1 or not any(isinstance(x, Tensor) for x in args[1:]):
        x = args[0]
        if isinstance(x, Tensor):  # one tensor: the hidden dimension stays where it is
            return batched(again(op, [x.value, *args[1:]]), x.bdim, level)  # type: ignore[attr-defined]
    tensors = [x for x in args if isinstance(x, Tensor)]
    rank = max(len(x._a.shape) for x in tensors)
    values = [
        padded(front(x, level), rank) if is_batched(x, level)
        else front(x, level) if isinstance(x, Tensor) else x
        for x in args
    ]  # fmt: skip
    if _mixed(tensors) and op.name not in _UNPROMOTED:
        n = sum(a.type.base == "Tensor" for a in op.schema.arguments)
        common = result_dtypes(op, args[:n])[0]
        first = 1 if op.promote == "where" else 0
        for i, x in enumerate(args[first:n], first):
            if isinstance(x, Tensor) and not x._a.shape and x._k.dtype is not common:
                values[i] = aten.to(values[i], common)
    return batched(again(op, values), 0, level)


def _mixed(tensors: list[Tensor]) -> bool:
    first = tensors[0]._k.dtype
    return any(x._k.dtype is not first for x in tensors[1:]) and any(
        not x._a.shape for x in tensors
    )


RULES["<elementwise>"] = elementwise


@rule("masked_fill")
def masked_fill(c: Call) -> Any:
    if not c.has("value"):
        return elementwise(c.op, c.args, c.level)
    if c.rank("value"):
        c.call()  # says what is wrong
    x = c.raw("self")
    value = aten.to(c.raw("value"), x._k.dtype)
    return aten.where(c.raw("mask"), value, x)


def _same_place(c: Call) -> Any:
    """One tensor, whose dimensions do not matter."""
    x = c.raw("self")
    return c.wrap(c.call(self=x.value), x.bdim)


each("zero fill.Scalar _fill.Scalar _random_write detach alias _real _imag _conj _neg_view",
     _same_place)  # fmt: skip


@rule("clone", "_to_copy")
def copies(c: Call) -> Any:
    """A memory format concerns what the function sees: the hidden dimension is put outside."""
    wanted = c.raw("memory_format")
    if wanted is None or wanted is preserve_format:
        return _same_place(c)
    x = c.front("self")
    if wanted is contiguous_format or c.rank("self") not in (4, 5):
        return c.run(self=x)
    made = c.call(self=aten.movedim(x, 2, -1), memory_format=contiguous_format)
    return c.wrap(aten.movedim(made, -1, 2))


@rule("fill.Tensor", "_fill.Tensor")
def fill(c: Call) -> Any:
    if not c.has("value"):
        return _same_place(c)
    if c.rank("value"):
        c.call()  # says what is wrong
    x = c.raw("self")
    return aten.expand(aten.to(c.raw("value"), x._k.dtype), tuple(x._a.shape))


@rule("copy")
def copy(c: Call) -> Any:
    x = c.raw("self")
    return aten.clone(aten.expand(aten.to(c.raw("src"), x._k.dtype), tuple(x._a.shape)))


@rule("complex")
def make_complex(c: Call) -> Any:
    rank = max(c.rank("real"), c.rank("imag"))
    parts = {n: padded(c.front(n), rank) if c.has(n) else c.front(n) for n in ("real", "imag")}
    return c.run(**parts)


@rule(
    "_drawn_bernoulli", "_drawn_for_mean", "_drawn_for_std", "_standard_gamma_grad",
    "_dirichlet_grad",
)  # fmt: skip
def of_one_shape(c: Call) -> Any:
    """All tensors have the same shape, and only elements (or the last dimension) meet."""
    if len({c.shape(n) for n in c.tensors()}) != 1:
        return c.loop()
    return c.run(**{n: c.full(n) for n in c.tensors()})


@rule("isin")
def isin(c: Call) -> Any:
    return _same_elements(c) if c.only("elements") else c.loop()


def _same_elements(c: Call) -> Any:
    x = c.raw("elements")
    return c.wrap(c.call(elements=x.value), x.bdim)


@rule("frexp")
def frexp(c: Call) -> Any:
    return _same_place(c)


__all__ = ["elementwise"]

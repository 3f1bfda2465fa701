"""Makers of tensors inside vmap, and what it refuses: numbers out of tensors, results whose shape
the data decide.

Source: https://docs.pytorch.org/docs/2.13/func.ux_limitations.html
"""

from __future__ import annotations

from typing import Any, NoReturn

from torchlab._core.dispatch.batches import MAKERS, batched, front, held, is_batched, write
from torchlab._core.dispatch.batching.calls import Call, each, rule
from torchlab._core.dispatch.levels import mapped
from torchlab._core.dispatch.registry import aten
from torchlab._core.layout import broadcast_shapes


def _like(overload: Any, args: Any, kwargs: Any, level: int) -> Any:
    """`zeros_like`: of what the wrapper holds."""
    x = args[0]
    if not is_batched(x, level):
        return overload(*(mapped(lambda t: held(t, level), a) for a in args), **kwargs)
    if kwargs.get("memory_format") is not None:
        made = overload(front(x, level), *args[1:], **{**kwargs, "memory_format": None})
        return batched(made, 0, level)
    return batched(overload(x.value, *args[1:], **kwargs), x.bdim, level)


def _new(overload: Any, args: Any, kwargs: Any, level: int) -> Any:
    """`new_zeros`: of the size that the function says, for each element."""
    x = args[0]
    if not is_batched(x, level):
        return overload(held(x, level), *args[1:], **kwargs)
    n = x.value._a.shape[x.bdim]
    if overload._opname == "new_empty_strided":
        size, stride = args[1], args[2]
        span = 1 + sum((s - 1) * t for s, t in zip(size, stride, strict=True))
        return batched(overload(x.value, [n, *size], [span, *stride], **kwargs), 0, level)
    size = args[1] if isinstance(args[1], (list, tuple)) else (args[1],)
    return batched(overload(x.value, [n, *size], *args[2:], **kwargs), 0, level)


def _copy(overload: Any, args: Any, kwargs: Any, level: int) -> Any:
    target, source = args[0], args[1]
    if not is_batched(target, level):
        if is_batched(source, level):
            raise RuntimeError(
                "vmap: copy_(self, *extra_args) is not possible because there exists a Tensor"
                " `other` in extra_args that has more elements than `self`: `other` is vmapped over"
                " and `self` is not. Use an out-of-place operator, or write to a copy that is"
                " batched, for example torch.zeros_like(other)."
            )
        return held(target, level).copy_(held(source, level))
    write(target, source, level)
    return target


def _number(overload: Any, args: Any, kwargs: Any, level: int) -> Any:
    if not is_batched(args[0], level):
        return overload(held(args[0], level))
    raise RuntimeError(
        "vmap: It looks like you're calling .item() on a Tensor. We don't support vmap over calling"
        " .item() on a Tensor, please try to rewrite what you're doing with other operations. If"
        " it is in data-dependent control flow (`if x > 0`), use torch.where(condition, a, b)."
    )


def _same(overload: Any, args: Any, kwargs: Any, level: int) -> Any:
    return args[0]


for _n in ("zeros", "ones", "empty", "full", "rand", "randn"):
    MAKERS[f"{_n}_like"] = _like
for _n in ("new_zeros", "new_ones", "new_empty", "new_full", "new_empty_strided"):
    MAKERS[_n] = _new
MAKERS["copy_"] = _copy
MAKERS["_local_scalar_dense"] = _number
MAKERS["lift_fresh"] = _same


def _dynamic(c: Call) -> NoReturn:
    raise RuntimeError(
        "vmap: We do not support batching operators that can output dynamic shape. Attempted to"
        f" vmap over aten::{c.op.name}. The shape of its result depends on the data, which differ"
        " for each element: call it outside vmap."
    )


each(
    "nonzero _unique2 unique_dim unique_consecutive",
    _dynamic,
)


@rule("masked_select")
def masked_select(c: Call) -> Any:
    """With the same mask for all, the shape is the same, too."""
    if c.has("mask"):
        _dynamic(c)
    x, mask = c.raw("self"), c.raw("mask")
    shape = broadcast_shapes(x._a.shape, mask._a.shape)
    places = aten.nonzero(aten.reshape(aten.expand(mask, shape), (-1,)))
    flat = aten.reshape(aten.expand(x, shape), (-1,))
    return aten.index_select(flat, 0, aten.select(places, 1, 0))

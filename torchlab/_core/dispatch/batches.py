"""Batched tensors: what `vmap` hides from the function that it runs is one of their dimensions.

An operator on them runs by a rule that knows where the hidden dimension is (`rule`), else once for
each element of the batch, the results stacked.

Source: https://docs.pytorch.org/docs/2.13/generated/torch.func.vmap.html
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torchlab._core.dispatch.levels import Level, again, mapped, wrapper
from torchlab._core.dispatch.registry import aten
from torchlab._core.tensor import Tensor

RULES: dict[str, Callable[..., Any]] = {}


class Batched(Level):
    """A wrapper that holds a tensor and the number of its hidden dimension; None for a constant,
    which is the same for all of the batch."""

    __slots__ = ("value", "bdim")
    value: Tensor
    bdim: int | None

    @classmethod
    def run(cls, op: Any, args: tuple[Any, ...], level: int) -> Any:
        rule = RULES.get(f"{op.name}.{op.overload}") or RULES.get(op.name) or one_by_one
        return rule(op, args, level)

    @classmethod
    def lift(cls, x: Tensor, level: int) -> Any:
        return batched(x, None, level)

    @classmethod
    def run_overload(cls, overload: Any, args: Any, kwargs: Any, level: int) -> Any:
        x = args[0]
        if overload._opname.endswith("_like") or overload._opname == "detach":
            return batched(overload(x.value, *args[1:], **kwargs), x.bdim, level)
        raise NotImplementedError(f"{overload} inside vmap")


def batched(value: Tensor, bdim: int | None, level: int) -> Batched:
    """A new batched tensor of `level`."""
    r = wrapper(Batched, value, level, bdim)
    r.value, r.bdim = value, bdim
    return r


def size_of(args: Any, level: int) -> int:
    """The size of the hidden dimension; 0 if none of them has one."""
    sizes: list[int] = []
    for a in args:
        mapped(
            lambda x: (
                x._level == level and x.bdim is not None and sizes.append(x.value.shape[x.bdim])
            ),
            a,
        )
    return sizes[0] if sizes else 0


def one_by_one(op: Any, args: tuple[Any, ...], level: int) -> Any:
    """The operator once for each element of the batch."""
    n = size_of(args, level)  # (1 if all are constants: then the result is one, too)
    constant, n = not n, n or 1

    def element(x: Any, i: int) -> Any:
        if x._level != level:
            return x
        return x.value if x.bdim is None else aten.select(x.value, x.bdim, i)

    rows = [again(op, [mapped(lambda x, i=i: element(x, i), a) for a in args]) for i in range(n)]
    if constant:
        return mapped(lambda r: batched(r, None, level), rows[0])
    if isinstance(rows[0], Tensor):
        return batched(aten.stack(rows), 0, level)
    made = [batched(aten.stack(list(r)), 0, level) for r in zip(*rows, strict=True)]
    return made if type(rows[0]) in (list, tuple) else type(rows[0])(*made)


__all__ = ["RULES", "Batched", "batched", "one_by_one", "size_of"]

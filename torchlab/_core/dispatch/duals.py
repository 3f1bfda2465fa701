"""Dual tensors: a value and its tangent, for forward-mode derivatives.

An operator on duals gives the dual of its value and of its derivative along the tangents. Where the
derivative comes from: a rule entered with `jvp_rule`; for linear operators the operator itself; for
operators element by element the declaration's vjp formula; for all others the vjp of the vjp,
which is the jvp.

Source: https://docs.pytorch.org/docs/2.13/autograd.html#forward-mode-automatic-differentiation
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torchlab._core.dispatch.levels import Level, again, mapped, wrapper
from torchlab._core.dispatch.registry import aten
from torchlab._core.tensor import Tensor

RULES: dict[str, Callable[..., Any]] = {}  # declaration → rule(primals, tangents, result) → tangent
twice: list[Callable[..., Any]] = []  # torchlab.autograd: the vjp of the vjp of any operator


class Dual(Level):
    """A wrapper that holds a value and its tangent, both of the same shape and type."""

    __slots__ = ("primal", "tangent")
    primal: Tensor
    tangent: Tensor

    @classmethod
    def run(cls, op: Any, args: tuple[Any, ...], level: int) -> Any:
        primals = [mapped(lambda x: primal_of(x, level), a) for a in args]
        tangents = [mapped(lambda x: tangent_of(x, level), a) for a in args]
        result = again(op, primals)
        rule = RULES.get(f"{op.name}.{op.overload}") or RULES.get(op.name) or twice[0]
        made = rule(op, primals, tangents, result)
        if isinstance(result, Tensor):
            return result if made is None else dual(result, made, level)
        return type(result)(
            r if t is None else dual(r, t, level) for r, t in zip(result, made, strict=True)
        )

    @classmethod
    def lift(cls, x: Tensor, level: int) -> Any:
        return dual(x, aten.zeros_like(x), level)

    @classmethod
    def run_overload(cls, overload: Any, args: Any, kwargs: Any, level: int) -> Any:
        def bare(x: Any) -> Any:
            return mapped(lambda t: primal_of(t, level), x)

        result = overload(*map(bare, args), **{k: bare(v) for k, v in kwargs.items()})
        if overload.op is not None and overload.form == "functional":
            raise NotImplementedError(f"{overload}: no tangent")
        return result  # makers: of no tangent


def dual(primal: Tensor, tangent: Tensor, level: int) -> Dual:
    """A new dual of `level`."""
    r = wrapper(Dual, primal, level)
    r.primal, r.tangent = primal, tangent
    return r


def primal_of(x: Tensor, level: int) -> Tensor:
    """What a dual of this level holds; other tensors as they are."""
    return x.primal if x._level == level else x  # type: ignore[attr-defined]


def tangent_of(x: Tensor, level: int) -> Any:
    """The tangent of a dual of this level; None for others."""
    return x.tangent if x._level == level else None  # type: ignore[attr-defined]


__all__ = ["RULES", "Dual", "dual", "primal_of", "tangent_of", "twice"]

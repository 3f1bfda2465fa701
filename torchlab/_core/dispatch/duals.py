"""Dual tensors: a value and its tangent, for forward-mode derivatives.

Note [Duals]
~~~~~~~~~~~~
An operator on duals gives the dual of its value and of its derivative along the tangents. Where the
derivative comes from (`tangent_rules`): a rule entered for the operator; for linear operators and
views the operator itself on the tangents; for operators element by element the vjp formula of the
declaration, which is the derivative times what comes in, whichever way that goes; for all others
the vjp of the vjp, which is the jvp.

A dual lies on the memory of its value, so that whatever reads elements reads the value. Other
tensors *become* duals when a tangent is written to them (`out[0] = dual`), their base included: the
tangent of a view is a view of the tangent of its base, as in PyTorch. When the level ends every
dual of it becomes the tensor again that it was.

Source: https://docs.pytorch.org/docs/2.13/autograd.html#forward-mode-automatic-differentiation
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

from torchlab._core.dispatch.levels import LEVELS, Level, again, mapped
from torchlab._core.dispatch.registry import aten
from torchlab._core.dispatch.wrappers import wrapper_kind
from torchlab._core.tape import base_of, geometry, storage_of
from torchlab._core.tensor import Tensor, strides_of

tangent_rule: list[Callable[..., Any]] = []  # torchlab.autograd.tangents: (op, primals, tangents,
# result) → the tangent of each result, None where there is none


class Dual(Level):
    """A wrapper that holds a value and its tangent, both of the same shape."""

    __slots__ = ()
    primal: Tensor
    tangent: Tensor

    @classmethod
    def run(cls, op: Any, args: tuple[Any, ...], level: int) -> Any:
        primals, tangents = _split(args, level)
        result = again(op, primals)
        if op.name == "detach":
            return result
        made = tangent_rule[0](op, primals, tangents, result)
        if isinstance(result, Tensor):
            return result if made is None else dual(result, made, level)
        if made is None:
            return result
        pairs = zip(result, made, strict=True)
        both = [r if t is None else dual(r, t, level) for r, t in pairs]
        return type(result)(*both) if hasattr(result, "_fields") else type(result)(both)

    @classmethod
    def run_inplace(cls, op: Any, args: tuple[Any, ...], level: int) -> None:
        primals, tangents = _split(args, level)
        result = again(op, primals)
        made = tangent_rule[0](op, primals, tangents, result)
        write(args[0], result, made, level)

    def each(self, fn: Callable[[Tensor], Tensor]) -> Any:
        r = dual(fn(self.primal), fn(self.tangent), self._level)
        r._v, r._e = self._v, self._e
        if r._e is not None:
            r._e.k = r._k
        return r

    def take(self, other: Any) -> None:
        self.primal, self.tangent = other.primal, other.tangent

    @classmethod
    def lift(cls, x: Tensor, level: int) -> Any:
        return dual(x, aten.zeros_like(x), level)

    @classmethod
    def run_overload(cls, overload: Any, args: Any, kwargs: Any, level: int) -> Any:
        if overload._opname == "copy_":
            value, given = primal_of(args[1], level), tangent_of(args[1], level)
            write(args[0], value, given, level)
            return args[0]
        if overload._opname == "_to_copy":
            return dual(
                overload(primal_of(args[0], level), **kwargs),
                overload(tangent_of(args[0], level), **kwargs),
                level,
            )
        if overload.op is not None and overload.form == "functional":
            return overload.op.call(*args, **kwargs)
        bare = [mapped(lambda x: primal_of(x, level), a) for a in args]
        result = overload(*bare, **kwargs)  # a maker, a draw, a number: of no tangent
        if overload._opname.endswith("_") and args[0]._level == level:
            aten.zero_(args[0].tangent)
            return args[0]
        return result


def _split(args: Any, level: int) -> tuple[list[Any], list[Any]]:
    """The values of arguments, and their tangents: None for what has none."""

    def tangents(x: Any) -> Any:
        if isinstance(x, Tensor):
            return tangent_of(x, level)
        return [tangents(y) for y in x] if type(x) in (list, tuple) else None

    return [mapped(lambda x: primal_of(x, level), a) for a in args], [tangents(a) for a in args]


def dual(primal: Tensor, tangent: Tensor, level: int) -> Dual:
    """A new dual of `level` over the memory of `primal`."""
    if not primal._k.differentiable:
        return primal  # type: ignore[return-value]
    r: Any = object.__new__(Dual)
    _take(r, primal, tangent, level)
    r._e = r._v = r._g = None
    return r


def _take(r: Any, primal: Tensor, tangent: Tensor, level: int) -> None:
    k = wrapper_kind(primal._k.dtype, primal._k.device)
    r._a, r._k, r._s = primal._a, k if primal._k.contiguous else k.v, storage_of(primal)
    r._level, r.primal, r.tangent = level, primal, tangent
    duals = LEVELS.duals.get(level)
    if duals is None:
        duals = LEVELS.duals[level] = {}
    duals[id(r)] = weakref.ref(r)


def become(x: Tensor, tangent: Tensor, level: int) -> None:
    """Let the tensor `x` itself be a dual of `level` from now on."""
    primal: Any = object.__new__(type(x) if x._level else Tensor)
    if x._level:
        primal.__dict__.update(x.__dict__)
    primal._a, primal._k, primal._e, primal._s = x._a, x._k, x._e, storage_of(x)
    primal._v, primal._g = x._v, None
    was = type(x)
    x.__class__ = Dual  # type: ignore[assignment]
    _take(x, primal, tangent, level)
    x.__dict__["_was"] = was


def zeros_of(x: Tensor) -> Tensor:
    """A tangent of zeros, laid out as `x` is."""
    r = aten.empty_strided(x._a.shape, strides_of(x), dtype=x.dtype, device=x.device)
    return r.zero_()


def write(x: Any, value: Tensor, tangent: Any, level: int) -> None:
    """Write a value and a tangent into `x`, which becomes a dual if it is none."""
    if x._level != level:
        if tangent is None:
            aten.copy_(x, value)
            return
        base = base_of(x)
        if base is not None:
            if base._level != level:
                become(base, zeros_of(base), level)
            shape, strides, offset = geometry(x)
            own = geometry(base)[2]
            at = aten.as_strided(
                base.tangent, shape, strides, offset - own + geometry(base.tangent)[2]
            )
            become(x, at, level)
        else:
            become(x, zeros_of(x), level)
    given = aten.clone(tangent) if tangent is not None else None
    aten.copy_(x.primal, value)
    if given is None:
        aten.zero_(x.tangent)
    else:
        aten.copy_(x.tangent, given)


def end(level: int) -> None:
    """Let every dual of `level` that is still alive be a tensor without tangent."""
    for ref in LEVELS.duals.pop(level, {}).values():
        x = ref()
        if x is not None:
            primal = x.primal
            x.__class__ = x.__dict__.pop("_was", type(primal))
            x._k = primal._k
            if x._e is None:
                x._e = primal._e
            if x._v is None:
                x._v = primal._v
            for name in ("_level", "primal", "tangent"):
                del x.__dict__[name]
            if primal._level:  # a wrapper of a transform further out
                x.__dict__.update(primal.__dict__)


def primal_of(x: Tensor, level: int) -> Tensor:
    """What a dual of this level holds; other tensors as they are."""
    return x.primal if x._level == level else x


def tangent_of(x: Tensor, level: int) -> Any:
    """The tangent of a dual of this level; None for others."""
    return x.tangent if x._level == level else None


__all__ = [
    "Dual", "become", "dual", "end", "primal_of", "tangent_of", "tangent_rule", "write",
]  # fmt: skip

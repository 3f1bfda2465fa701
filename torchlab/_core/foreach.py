"""`torch._foreach_*`: one operator on every tensor of a list. Averaged weights and optimizers of
users' own are written with them; here each is a loop over the operator that its name names.

A second operand is one number, one tensor without dimensions, or a list of as many tensors or
numbers. The forms with `_` write to the tensors and give back the list they got.

Source: https://docs.pytorch.org/docs/2.13/torch.html#foreach-operations
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torchlab._core.dispatch import watching
from torchlab._core.dispatch.registry import aten
from torchlab._core.tensor import Tensor

_UNARY = (
    "abs acos asin atan ceil cos cosh erf erfc exp expm1 floor frac lgamma log log10 log1p log2"
    " neg reciprocal round rsqrt sigmoid sign sin sinh sqrt tan tanh trunc"
).split()
_BINARY = "add clamp_max clamp_min div maximum minimum mul pow sub".split()
_TERNARY = "addcdiv addcmul lerp".split()
_OPERATOR = {"maximum": "clamp_min", "minimum": "clamp_max"}  # of numbers; of tensors by name


def _listed(name: str, tensors: Any) -> list[Tensor]:
    if not isinstance(tensors, (list, tuple)) or not all(isinstance(t, Tensor) for t in tensors):
        raise TypeError(
            f"{name}() received an invalid combination of arguments: the first must be a list or"
            f" tuple of Tensors, not {type(tensors).__name__}"
        )
    if not tensors:
        raise RuntimeError("Tensor list must have at least one tensor.")
    return list(tensors)


def _spread(name: str, operand: Any, count: int, single: bool = False) -> list[Any]:
    """The operand of each tensor."""
    if isinstance(operand, (list, tuple)):
        if len(operand) != count:
            if operand and isinstance(operand[0], Tensor):
                raise RuntimeError(
                    f"Tensor lists must have the same number of tensors, got {count} and"
                    f" {len(operand)}"
                )
            raise RuntimeError("Tensor list must have same number of elements as scalar list.")
        return list(operand)
    if isinstance(operand, Tensor):
        if operand.dim() and not single:
            raise RuntimeError(
                f"scalar tensor expected to be 0 dim but it has {operand.dim()} dimensions and"
                f" {operand.numel()} elements."
            )
        return [operand] * count
    if not isinstance(operand, (bool, int, float, complex)):
        raise TypeError(
            f"{name}() received an invalid combination of arguments: a number, a tensor or a list"
            f" is expected, not {type(operand).__name__}"
        )
    return [operand] * count


def _call(op: str, write: bool, t: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    if write:
        return getattr(t, op + "_")(*args, **kwargs)
    return getattr(aten, op)(t, *args, **kwargs)


def _finish(write: bool, given: Any, results: list[Tensor]) -> Any:
    return given if write else tuple(results)


def _unary(op: str, write: bool) -> Callable[..., Any]:
    name = f"_foreach_{op}{'_' * write}"

    def call(self: Any) -> Any:
        return _finish(write, self, [_call(op, write, t) for t in _listed(name, self)])

    return _named(call, name, f"`{op}` of each tensor.")


def _binary(op: str, write: bool) -> Callable[..., Any]:
    name = f"_foreach_{op}{'_' * write}"

    def of_two(t: Tensor, x: Any, keywords: dict[str, Any]) -> Tensor:
        if isinstance(x, Tensor) and op in _OPERATOR:
            r = getattr(aten, op)(t, x)
            return t.copy_(r) if write else r  # type: ignore[attr-defined]
        return _call(_OPERATOR.get(op, op), write, t, x, **keywords)

    def call(self: Any, other: Any, *, alpha: Any = 1) -> Any:
        if op == "pow" and not write and isinstance(self, (int, float, complex)):
            return tuple(aten.pow(self, t) for t in _listed(name, other))
        tensors = _listed(name, self)
        keywords = {"alpha": alpha} if op in ("add", "sub") else {}
        if alpha != 1 and not keywords:
            raise TypeError(f"{name}() got an unexpected keyword argument 'alpha'")
        operands = _spread(name, other, len(tensors))
        pairs = zip(tensors, operands, strict=True)
        return _finish(write, self, [of_two(t, x, keywords) for t, x in pairs])

    return _named(call, name, f"`{op}` of each tensor and its operand.")


def _ternary(op: str, write: bool) -> Callable[..., Any]:
    name = f"_foreach_{op}{'_' * write}"

    def products(self: Any, tensor1: Any, tensor2: Any, value: Any = 1) -> Any:
        tensors = _listed(name, self)
        n = len(tensors)
        numbers = value.tolist() if isinstance(value, Tensor) and value.dim() else value
        rows = zip(
            tensors,
            _spread(name, tensor1, n),
            _spread(name, tensor2, n),
            _spread(name, numbers, n),
            strict=True,
        )
        return _finish(write, self, [_call(op, write, t, a, b, value=v) for t, a, b, v in rows])

    def lerp(self: Any, tensors1: Any, weight: Any) -> Any:
        tensors = _listed(name, self)
        n = len(tensors)
        rows = zip(tensors, _spread(name, tensors1, n), _spread(name, weight, n), strict=True)
        return _finish(write, self, [_call(op, write, t, end, w) for t, end, w in rows])

    return _named(lerp if op == "lerp" else products, name, f"`{op}` of each row of operands.")


def _named(fn: Any, name: str, doc: str) -> Callable[..., Any]:
    fn.__name__ = fn.__qualname__ = name
    fn.__doc__, fn.__module__ = doc, "torchlab"
    return fn


def _foreach_norm(self: Any, ord: Any = 2, dtype: Any = None) -> tuple[Tensor, ...]:
    """The vector norm of each tensor."""
    tensors = _listed("_foreach_norm", self)
    return tuple(aten.linalg_vector_norm(t, ord, dtype=dtype) for t in tensors)


def _foreach_powsum(self: Any, ord: Any = 2, dtype: Any = None) -> tuple[Tensor, ...]:
    """The sum of |x| ** ord over each tensor."""
    tensors = _listed("_foreach_powsum", self)
    return tuple(aten.sum(aten.pow(aten.abs(t), ord), dtype=dtype) for t in tensors)


def _foreach_max(self: Any) -> tuple[Tensor, ...]:
    """The largest element of each tensor."""
    return tuple(aten.amax(t) for t in _listed("_foreach_max", self))


def _foreach_mm(self: Any, mat2: Any) -> tuple[Tensor, ...]:
    """The product of each pair of matrices."""
    tensors = _listed("_foreach_mm", self)
    others = _spread("_foreach_mm", mat2, len(tensors), single=True)
    return tuple(aten.mm(a, b) for a, b in zip(tensors, others, strict=True))


def _foreach_clone(self: Any, *, memory_format: Any = None) -> tuple[Tensor, ...]:
    """A copy of each tensor."""
    return tuple(
        aten.clone(t, memory_format=memory_format) for t in _listed("_foreach_clone", self)
    )


def _foreach_zero_(self: Any) -> Any:
    """Zeros into each tensor."""
    return _finish(True, self, [t.zero_() for t in _listed("_foreach_zero_", self)])  # type: ignore[attr-defined]


def _foreach_copy_(self: Any, src: Any, non_blocking: bool = False) -> Any:
    """Each tensor of `src` into the one at its place."""
    tensors = _listed("_foreach_copy_", self)
    for t, s in zip(tensors, _spread("_foreach_copy_", src, len(tensors)), strict=True):
        t.copy_(s, non_blocking)  # type: ignore[attr-defined]
    return self


_OTHERS = "norm powsum max mm clone zero_ copy_".split()
NAMES = tuple(
    f"_foreach_{n}"
    for n in (*(m + e for m in (*_UNARY, *_BINARY, *_TERNARY) for e in ("", "_")), *_OTHERS)
)


def __getattr__(name: str) -> Any:
    op = name.removeprefix("_foreach_")
    write = op.endswith("_")
    op = op.removesuffix("_")
    for makes, ops in ((_unary, _UNARY), (_binary, _BINARY), (_ternary, _TERNARY)):
        if name in NAMES and op in ops:
            value = globals()[name] = makes(op, write)
            watching.watch(value)
            return value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


for _name in _OTHERS:
    watching.watch(globals()[f"_foreach_{_name}"])

"""How many floating-point operations a call does, from the shapes of its arguments.

A multiplication and an addition count as two. Known are the operators whose formulas PyTorch's
profiler has: matrix products, convolutions in two dimensions, `add` and `mul`.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

from torchlab._core.tensor import Tensor


def _product(x: Any, y: Any) -> int:
    return 2 * prod(x.shape) * y.shape[-1]


def _convolution(
    x: Any, weight: Any, bias: Any, stride: Any, padding: Any, dilation: Any,
    transposed: bool = False, output_padding: Any = (), groups: int = 1,
) -> int:  # fmt: skip
    if transposed or len(weight.shape) != 4:
        return 0
    out = [
        (n + 2 * p - d * (k - 1) - 1) // s + 1
        for n, p, d, k, s in zip(
            x.shape[-2:], padding, dilation, weight.shape[-2:], stride, strict=True
        )
    ]
    batch = x.shape[0] if len(x.shape) == 4 else 1
    return 2 * batch * prod(out) * prod(weight.shape)


def _each(x: Any, y: Any = None, *rest: Any) -> int:
    return prod(x.shape)


_FORMULAS: dict[str, Callable[..., int]] = {
    "aten::mm": _product,
    "aten::addmm": lambda c, x, y, *rest: _product(x, y),
    "aten::bmm": _product,
    "aten::baddbmm": lambda c, x, y, *rest: _product(x, y),
    "aten::convolution": _convolution,
    "aten::add": _each,
    "aten::mul": _each,
}


def flops_of(name: str, args: Any) -> int:
    """The count for one call; 0 where no formula is known."""
    formula = _FORMULAS.get(name)
    if formula is None or not isinstance(args[0], Tensor):
        return 0
    return formula(*args)


__all__ = ["flops_of"]

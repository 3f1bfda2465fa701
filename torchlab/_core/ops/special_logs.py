"""Logarithms with a factor, a base or a guard: xlogy, logit, logaddexp2 and others.

Source of the semantics: https://docs.pytorch.org/docs/2.13/special.html
"""

from __future__ import annotations

from typing import Any

import numpy as np

from torchlab._core.dispatch.op import binary, pointwise, unary
from torchlab._core.dispatch.registry import aten, vjp_helper
from torchlab._core.ops._special import floating, scipy_kernel
from torchlab._core.ops.kernels import into
from torchlab._core.tensor import Tensor


@vjp_helper
def xlogy_slope(g: Any, x: Any, y: Any) -> Any:
    """g · ln(y), 0 where x · ln(y) was taken to be 0; x or y may be a number."""
    like = x if isinstance(x, Tensor) else g
    y = y if isinstance(y, Tensor) else aten.full((), y, dtype=like.dtype, device=like.device)
    return aten.masked_fill(aten.xlogy(g, y), (x == 0) & (y <= 0), 0)


binary(
    "xlogy.Tensor(Tensor self, Tensor other) -> Tensor",
    scipy_kernel("xlogy"),
    promote=floating("xlogy_cpu"),
    spaces=("torch", "special"),
    grad_name="XlogyBackward2|XlogyBackward0|XlogyBackward1",
    vjp={
        "self": "xlogy_slope(g, self, other)",
        "other": "g * (self / other)",
    },
    doc="self · ln(other); 0 where self is 0.",
)
binary(
    "xlog1py(Tensor self, Tensor other) -> Tensor",
    scipy_kernel("xlog1py"),
    promote=floating("xlog1py_cpu"),
    spaces=("special",),
    method=False,
    inplace=False,
    vjp={
        "self": "xlog1py(g, other).masked_fill((self == 0) & (other <= -1), 0)",
        "other": "g * (self / (other + 1))",
    },
    grad_name="SpecialXlog1PyBackward2|SpecialXlog1PyBackward0|SpecialXlog1PyBackward1",
    doc="self · ln(1 + other); 0 where self is 0.",
)
binary(
    "logaddexp2(Tensor self, Tensor other) -> Tensor",
    lambda xp, a, b, out=None: xp.logaddexp2(a, b, out=out),
    promote=floating("logaddexp2_cpu", ints=False),
    numbers=(),
    inplace=False,
    vjp={
        "self": "g / (1 + exp2(other - self))",
        "other": "g / (1 + exp2(self - other))",
    },
    doc="log₂(2^self + 2^other).",
)


@pointwise(
    "logit(Tensor self, float? eps=None) -> Tensor",
    promote=floating("logit_cpu"),
    spaces=("torch", "special"),
    numbers=(),
    vjp={"self": "logit_backward(g, self, eps)"},
)
def logit(xp: Any, a: Any, eps: float | None, out: Any = None) -> Any:
    """ln(x / (1 − x)); x is first brought into [eps, 1 − eps] if eps is given."""
    if eps is not None:
        low = a.dtype.type(eps)
        a = xp.where(a < low, low, xp.minimum(a, 1 - low))  # (of bounds that cross, the lower)
    return into(xp.log(a / (1 - a)), out)


@vjp_helper
def logit_backward(g: Any, x: Any, eps: float | None) -> Any:
    """1 / (x (1 − x)); NaN outside the domain, or 0 outside the bounds."""
    low, outside = (0.0, float("nan")) if eps is None else (eps, 0.0)
    inside = (x >= low) & (x <= 1 - low)
    return aten.where(inside, g / (x * (1 - x)), outside)


def _sinc(xp: Any, a: Any, out: Any = None) -> Any:
    return into(xp.sinc(a).astype(a.dtype), out)


unary(
    "sinc",
    _sinc,
    promote=floating("sinc_cpu", complex=True),
    spaces=("torch", "special"),
    vjp={"self": "sinc_backward(g, self)"},
    doc="sin(πx) / (πx); 1 at 0.",
)


@vjp_helper
def sinc_backward(g: Any, x: Any) -> Any:
    """(πx cos πx − sin πx) / (πx²), whose limit at 0 is 0."""
    t = x * np.pi
    square = x * x * np.pi
    slope = (t * aten.cos(t) - aten.sin(t)) / square
    return aten.where(square == 0, 0.0, g * aten.conj(slope))

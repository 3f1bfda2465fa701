"""Activation functions of neural networks.

Source of the semantics:
https://docs.pytorch.org/docs/2.13/nn.functional.html#non-linear-activation-functions
ELU: arXiv:1511.07289. SELU: arXiv:1706.02515.
SiLU/swish: arXiv:1710.05941. Mish: arXiv:1908.08681. PReLU: arXiv:1502.01852.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from torchlab._core import dtype as dt
from torchlab._core import layout
from torchlab._core.backends.meta import MetaArray
from torchlab._core.dispatch.op import composite, face, op, pointwise
from torchlab._core.dispatch.registry import aten, vjp_helper
from torchlab._core.ops._kinds import FLOATS, ORDERED, need
from torchlab._core.ops.kernels import into, limit, number

_SELU_ALPHA = 1.6732632423543772
_SELU_SCALE = 1.0507009873554805
_F = ("nn.functional",)
_TORCH_F = ("torch", "nn.functional")


def _inexact(op_: Any, common: dt.dtype) -> tuple[dt.dtype, dt.dtype]:
    ints = op_.name in ("hardtanh", "threshold")
    if ints and common is dt.bool_ and op_.name == "hardtanh":
        raise RuntimeError("Bool inputs not supported for hardtanh")
    complex_too = op_.name == "silu"
    if common.category < dt.FLOAT and not ints or common.is_complex and not complex_too:
        raise NotImplementedError(
            f"\"{op_.name}_cpu\" not implemented for '{common.scalar_name}': use a floating type"
        )
    return common, common


def _activation(text: str, vjp: str, expr: str | None, **facts: Any) -> Any:
    """Declare a pointwise activation: no method, not public; a face speaks for it."""
    facts.setdefault("out", False)
    facts.setdefault("promote", _inexact)
    return pointwise(text, method=False, public=False, expr=expr, vjp={"self": vjp}, **facts)


def _sigmoid(xp: Any, x: Any) -> Any:
    r = xp.exp(-x)
    r = r + 1 if r.ndim == 0 else xp.add(r, r.dtype.type(1), out=r)
    return 1 / r


# ---- smooth relatives of relu -------------------------------------------------------------------


@_activation(
    "silu(Tensor self) -> Tensor",
    "silu_backward(g, self)",
    "self / (1 + exp(-self))",
    tags=("pointwise", "real_gradient"),
)
def silu(xp: Any, x: Any, out: Any = None) -> Any:
    """x · sigmoid(x)."""
    return xp.multiply(x, _sigmoid(xp, x), out=out)


@pointwise(
    "silu_backward(Tensor grad_output, Tensor self) -> Tensor",
    inplace=False,
    out=False,
    public=False,
    expr="grad_output * (1 / (1 + exp(-self))) * (1 + self * (1 - 1 / (1 + exp(-self))))",
    vjp={"grad_output": "silu_backward(g, self)", "self": "silu_curvature(g * grad_output, self)"},
)
def silu_backward(xp: Any, g: Any, x: Any, out: Any = None) -> Any:
    """grad · s · (1 + x · (1 − s)), s = sigmoid(x)."""
    s = _sigmoid(xp, x)
    r = 1 - s
    r *= x
    r += 1
    r *= s
    return xp.multiply(g, r, out=out)


@vjp_helper
def silu_curvature(g: Any, self: Any) -> Any:
    """g · silu''(self)."""
    s = aten.sigmoid(self)
    return g * (s * (1 - s) * (2 + self * (1 - 2 * s)))


def _softplus(xp: Any, x: Any) -> Any:
    return xp.log1p(xp.exp(-xp.abs(x))) + xp.maximum(x, x.dtype.type(0))


@vjp_helper
def mish_slope(g: Any, self: Any) -> Any:
    """g · mish'(self)."""
    t = aten.tanh(aten.logaddexp(self, aten.zeros_like(self)))
    return g * (t + self * aten.sigmoid(self) * (1 - t * t))


@_activation("mish(Tensor self) -> Tensor", "mish_slope(g, self)", "self * tanh(log1p(exp(self)))")
def mish(xp: Any, x: Any, out: Any = None) -> Any:
    """x · tanh(softplus(x))."""
    return xp.multiply(x, xp.tanh(_softplus(xp, x)), out=out)


@_activation(
    "elu(Tensor self, Scalar alpha=1, Scalar scale=1, Scalar input_scale=1) -> Tensor",
    "elu_slope(g, self, alpha, scale, input_scale)",
    "where(self <= 0, expm1(self * input_scale) * alpha * scale, self * scale)",
)
def elu(
    xp: Any, x: Any, alpha: Any = 1, scale: Any = 1, input_scale: Any = 1, out: Any = None
) -> Any:
    """scale · x where x > 0, else scale · alpha · (exp(x · input_scale) − 1)."""
    one = x.dtype.type
    low = xp.expm1(limit(xp.minimum, x, one(0)) * one(input_scale)) * one(alpha * scale)
    return into(xp.where(x <= 0, low, x * one(scale)), out)


@vjp_helper
def elu_slope(g: Any, self: Any, alpha: Any, scale: Any, input_scale: Any) -> Any:
    """g times the derivative of elu."""
    low = g * (alpha * scale * input_scale) * aten.exp(aten.clamp(self, max=0) * input_scale)
    return aten.where(self <= 0, low, g * scale)


@_activation(
    "celu(Tensor self, Scalar alpha=1) -> Tensor",
    "elu_slope(g, self, alpha, 1, 1 / alpha)",
    "where(self <= 0, expm1(self / alpha) * alpha, self)",
)
def celu(xp: Any, x: Any, alpha: Any = 1, out: Any = None) -> Any:
    """max(0, x) + min(0, alpha · (exp(x / alpha) − 1))."""
    if alpha == 0:
        raise RuntimeError("ZeroDivisionError: alpha cannot be 0 for CELU")
    return elu.kernel(xp, x, alpha, 1, 1 / alpha, out)


@_activation(
    "selu(Tensor self) -> Tensor",
    f"elu_slope(g, self, {_SELU_ALPHA}, {_SELU_SCALE}, 1)",
    f"where(self <= 0, expm1(self) * {_SELU_ALPHA * _SELU_SCALE}, self * {_SELU_SCALE})",
    grad_name="EluBackward0",
)
def selu(xp: Any, x: Any, out: Any = None) -> Any:
    """ELU with the constants that keep mean 0 and variance 1."""
    return elu.kernel(xp, x, _SELU_ALPHA, _SELU_SCALE, 1, out)


@_activation(
    "softplus(Tensor self, Scalar beta=1, Scalar threshold=20) -> Tensor",
    "softplus_slope(g, self, beta, threshold)",
    "where(self * beta > threshold, self, log1p(exp(self * beta)) / beta)",
    inplace=False,
    out=True,
    autocast="float32:accelerator",
)
def softplus(xp: Any, x: Any, beta: Any = 1, threshold: Any = 20, out: Any = None) -> Any:
    """log(1 + exp(beta · x)) / beta; x itself where beta · x exceeds the threshold."""
    one = x.dtype.type
    t = x * one(beta)
    return into(xp.where(t > threshold, x, xp.log1p(xp.exp(t)) / one(beta)), out)


@vjp_helper
def softplus_slope(g: Any, self: Any, beta: Any, threshold: Any) -> Any:
    """g · sigmoid(beta · x), g beyond the threshold."""
    t = self * beta
    return aten.where(t > threshold, g, g * aten.sigmoid(t))


@_activation(
    "log_sigmoid(Tensor self) -> Tensor",
    "g * sigmoid(-self)",
    "minimum(self, 0) - log1p(exp(-abs(self)))",
    inplace=False,
    out=True,
)
def log_sigmoid(xp: Any, x: Any, out: Any = None) -> Any:
    """log(sigmoid(x)), without overflow."""
    r = xp.log1p(xp.exp(-xp.abs(x)))
    return xp.subtract(xp.minimum(x, x.dtype.type(0)), r, out=out)


# ---- piecewise linear ---------------------------------------------------------------------------


@_activation(
    "leaky_relu(Tensor self, Scalar negative_slope=0.01) -> Tensor",
    "leaky_relu_backward(g, self, negative_slope)",
    "where(self > 0, self, self * negative_slope)",
)
def leaky_relu(xp: Any, x: Any, negative_slope: Any = 0.01, out: Any = None) -> Any:
    """x where x > 0, else negative_slope · x."""
    return into(xp.where(x > 0, x, x * number(negative_slope, x.dtype)), out)


@pointwise(
    "leaky_relu_backward(Tensor grad_output, Tensor self, Scalar negative_slope) -> Tensor",
    inplace=False,
    out=False,
    public=False,
    expr="where(self > 0, grad_output, grad_output * negative_slope)",
    vjp={"grad_output": "leaky_relu_backward(g, self, negative_slope)", "self": "zeros_like(self)"},
)
def leaky_relu_backward(xp: Any, g: Any, x: Any, negative_slope: Any, out: Any = None) -> Any:
    """grad where x > 0, else negative_slope · grad."""
    return into(xp.where(x > 0, g, g * number(negative_slope, g.dtype)), out)


@_activation(
    "hardtanh(Tensor self, Scalar min_val=-1, Scalar max_val=1) -> Tensor",
    "masked(g, (self > min_val) & (self < max_val))",
    "minimum(max_val, maximum(min_val, self))",
)
def hardtanh(xp: Any, x: Any, min_val: Any = -1, max_val: Any = 1, out: Any = None) -> Any:
    """x limited to [min_val, max_val]."""
    if min_val > max_val:
        raise ValueError("min_val cannot be greater than max_val")
    if x.dtype == np.uint8 and (min_val < 0 or max_val < 0):
        raise RuntimeError("cannot do hardtanh on an unsigned type with negative limits")
    low, high = number(min_val, x.dtype), number(max_val, x.dtype)
    return limit(xp.minimum, limit(xp.maximum, x, low), high, out)


@_activation(
    "hardsigmoid(Tensor self) -> Tensor",
    "masked(g / 6, (self > -3) & (self < 3))",
    "minimum(maximum(self + 3, 0), 6) / 6",
    out=True,
)
def hardsigmoid(xp: Any, x: Any, out: Any = None) -> Any:
    """min(max(x + 3, 0), 6) / 6."""
    one = x.dtype.type
    return xp.divide(xp.minimum(xp.maximum(x + one(3), one(0)), one(6)), one(6), out=out)


@vjp_helper
def hardswish_slope(g: Any, self: Any) -> Any:
    """g times the derivative of hardswish."""
    return aten.where(self <= -3, 0, aten.where(self < 3, g * (self / 3 + 0.5), g))


@_activation(
    "hardswish(Tensor self) -> Tensor",
    "hardswish_slope(g, self)",
    "self * minimum(maximum(self + 3, 0), 6) / 6",
    out=True,
)
def hardswish(xp: Any, x: Any, out: Any = None) -> Any:
    """x · hardsigmoid(x)."""
    one = x.dtype.type
    return xp.divide(x * xp.minimum(xp.maximum(x + one(3), one(0)), one(6)), one(6), out=out)


@_activation(
    "threshold(Tensor self, Scalar threshold, Scalar value) -> Tensor",
    "threshold_backward(g, self, threshold)",
    "where(self <= threshold, value, self)",
)
def threshold_op(xp: Any, x: Any, threshold: Any, value: Any, out: Any = None) -> Any:
    """x where x > threshold, else value."""
    need(ORDERED, "threshold_cpu", x)
    return into(xp.where(x <= number(threshold, x.dtype), number(value, x.dtype), x), out)


@_activation(
    "hardshrink(Tensor self, Scalar lambd=0.5) -> Tensor",
    "masked(g, (self > lambd) | (self < -lambd))",
    "where((self >= -lambd) & (self <= lambd), 0, self)",
    inplace=False,
    out=True,
)
def hardshrink_op(xp: Any, x: Any, lambd: Any = 0.5, out: Any = None) -> Any:
    """x outside [−lambd, lambd], else 0."""
    return into(xp.where((x >= -lambd) & (x <= lambd), x.dtype.type(0), x), out)


@_activation(
    "softshrink(Tensor self, Scalar lambd=0.5) -> Tensor",
    "masked(g, (self > lambd) | (self < -lambd))",
    "where(self > lambd, self - lambd, where(self < -lambd, self + lambd, 0 * self))",
    inplace=False,
    out=True,
)
def softshrink_op(xp: Any, x: Any, lambd: Any = 0.5, out: Any = None) -> Any:
    """x moved towards 0 by lambd; 0 inside [−lambd, lambd]."""
    if lambd < 0:
        raise RuntimeError(f"lambda must be greater or equal to 0, but found to be {lambd}")
    one = x.dtype.type
    return into(
        xp.where(x > lambd, x - one(lambd), xp.where(x < -lambd, x + one(lambd), x * one(0))), out
    )


@face("celu", method=False, spaces=_TORCH_F)
def celu_face(self: Any, alpha: float = 1.0, inplace: bool = False) -> Any:
    """max(0, x) + min(0, alpha · (exp(x / alpha) − 1))."""
    return celu.inplace(self, alpha) if inplace else celu.call(self, alpha)


@face("celu_", method=False, spaces=_TORCH_F)
def celu_(self: Any, alpha: float = 1.0) -> Any:
    """In-place version of `celu`."""
    return celu.inplace(self, alpha)


@face("selu", method=False, spaces=_TORCH_F)
def selu_face(self: Any, inplace: bool = False) -> Any:
    """Scaled ELU: keeps mean 0 and variance 1."""
    return selu.inplace(self) if inplace else selu.call(self)


@face("selu_", method=False, spaces=_TORCH_F)
def selu_(self: Any) -> Any:
    """In-place version of `selu`."""
    return selu.inplace(self)


@face("softplus", method=False, spaces=_F)
def softplus_face(self: Any, beta: float = 1.0, threshold: float = 20.0, *, out: Any = None) -> Any:
    """log(1 + exp(beta · x)) / beta; x itself where beta · x exceeds the threshold."""
    if out is not None:
        return softplus.out(self, beta, threshold, out=out)
    return softplus.call(self, beta, threshold)


@face("logsigmoid", method=False, spaces=_F)
def logsigmoid(self: Any, *, out: Any = None) -> Any:
    """log(sigmoid(x)), without overflow."""
    if out is not None:
        return log_sigmoid.out(self, out=out)
    return log_sigmoid.call(aten.contiguous(self))  # row-major, as PyTorch's result


@face("threshold", method=False, out=True)
def torch_threshold(self: Any, threshold: Any, value: Any) -> Any:
    """x where x > threshold, else value."""
    return threshold_op.call(self, threshold, value)


@face("threshold", method=False, spaces=_F)
def threshold(self: Any, threshold: Any, value: Any, inplace: bool = False) -> Any:
    """x where x > threshold, else value."""
    return (
        threshold_op.inplace(self, threshold, value)
        if inplace
        else threshold_op.call(self, threshold, value)
    )


@face("threshold_", method=False, spaces=_TORCH_F)
def threshold_(self: Any, threshold: Any, value: Any) -> Any:
    """In-place version of `threshold`."""
    return threshold_op.inplace(self, threshold, value)


@face("hardshrink", spaces=_TORCH_F)
def hardshrink(self: Any, lambd: float = 0.5, *, out: Any = None) -> Any:
    """x outside [−lambd, lambd], else 0."""
    if out is not None:
        return hardshrink_op.out(self, lambd, out=out)
    return hardshrink_op.call(self, lambd)


@face("softshrink", method=False, spaces=_F)
def softshrink(self: Any, lambd: float = 0.5, *, out: Any = None) -> Any:
    """x moved towards 0 by lambd; 0 inside [−lambd, lambd]."""
    if out is not None:
        return softshrink_op.out(self, lambd, out=out)
    return softshrink_op.call(self, lambd)


@composite("softsign(Tensor self) -> Tensor", spaces=_F, method=False)
def softsign(self: Any) -> Any:
    """x / (1 + |x|)."""
    return self / (aten.abs(self) + 1)


@composite("tanhshrink(Tensor self) -> Tensor", spaces=_F, method=False)
def tanhshrink(self: Any) -> Any:
    """x − tanh(x)."""
    return self - aten.tanh(self)


# ---- with a second operand ----------------------------------------------------------------------


@pointwise(
    "_prelu_kernel(Tensor self, Tensor weight) -> Tensor",
    public=False,
    inplace=False,
    out=False,
    expr="where(self > 0, self, weight * self)",
    vjp={
        "self": "where(self > 0, g, g * weight)",
        "weight": "kept(where(self > 0, 0, g * self), weight)",
    },
)
def _prelu_kernel(xp: Any, x: Any, weight: Any, out: Any = None) -> Any:
    """x where x > 0, else weight · x."""
    return into(xp.where(x > 0, x, x * weight), out)


@composite("prelu(Tensor self, Tensor weight) -> Tensor", spaces=_TORCH_F, autocast="lower")
def prelu(self: Any, weight: Any) -> Any:
    """x where x > 0, else weight · x; `weight` has one element, or one for each channel (dimension
    1)."""
    a, w = self._a, weight._a
    if self._k.dtype is not weight._k.dtype:
        raise RuntimeError(
            f"prelu: Type promoting not supported. Got {self._k.dtype.scalar_name} and "
            f"{weight._k.dtype.scalar_name}"
        )
    need(FLOATS, "prelu_cpu", a)
    if w.size != 1:
        channels = a.shape[1] if a.ndim >= 2 else 1
        if a.ndim == 0:
            raise RuntimeError("Not allow zero-dim input tensor.")
        if channels != w.size:
            raise RuntimeError(
                "Mismatch of parameter numbers and input channel size. Found parameter numbers = "
                f"{w.size} and "
                f"channel size = {channels}."
            )
    if w.ndim > 1:
        raise RuntimeError(
            f"prelu: Expected `weight` to be a scalar or 1D tensor, but got: ndim = {w.ndim}"
        )
    if a.ndim >= 2 and w.ndim == 1:
        weight = aten.view(weight, (1, -1, *(1,) * (a.ndim - 2)))
    elif a.ndim == 0:
        weight = aten.reshape(weight, ())
    return _prelu_kernel.call(self, weight)


def _glu_shape(a: Any, dim: int) -> tuple[int, int]:
    """(dimension, half its length), checked."""
    if a.ndim == 0:
        raise RuntimeError("glu does not support 0-dimensional tensors")
    d = layout.wrap_dim(dim, a.ndim)
    if a.shape[d] % 2:
        raise RuntimeError(
            f"Halving dimension must be even, but dimension {d} is size {a.shape[d]}"
        )
    return d, a.shape[d] // 2


def _glu_meta(a: Any, dim: int = -1) -> Any:
    d, n = _glu_shape(a, dim)
    return MetaArray((*a.shape[:d], n, *a.shape[d + 1 :]), a.dtype)


@vjp_helper
def glu_backward(g: Any, self: Any, dim: int) -> Any:
    """The gradients of both halves, side by side."""
    d = layout.wrap_dim(dim, self._a.ndim)
    n = self._a.shape[d] // 2
    a, s = aten.narrow(self, d, 0, n), aten.sigmoid(aten.narrow(self, d, n, n))
    left = g * s
    return aten.cat([left, left * a * (1 - s)], d)


@op(
    "glu(Tensor self, int dim=-1) -> Tensor",
    method=False,
    spaces=_F,
    vjp={"self": "glu_backward(g, self, dim)"},
    meta=_glu_meta,
)
def glu(xp: Any, x: Any, dim: int) -> Any:
    """The first half along `dim` times the sigmoid of the second (arXiv:1612.08083)."""
    need(FLOATS, "glu_cpu", x)
    d, n = _glu_shape(x, dim)
    a, b = xp.split(x, [n], axis=d)
    return xp.multiply(a, _sigmoid(xp, b), order="C")


# rrelu draws one slope for each element that is not positive, in order, as PyTorch does.


@pointwise(
    "rrelu_with_noise(Tensor self, Tensor noise) -> Tensor",
    public=False,
    out=False,
    expr="self * noise",
    vjp={"self": "g * noise"},
)
def rrelu_with_noise(xp: Any, x: Any, noise: Any, out: Any = None) -> Any:
    """x times its slope."""
    return xp.multiply(x, noise, out=out)


def _rrelu(
    self: Any, lower: float, upper: float, training: bool, inplace: bool, generator: Any
) -> Any:
    need(FLOATS, "rrelu_with_noise_out_cpu", self._a)
    if lower > upper:
        raise RuntimeError(
            f"rrelu: Lower bound should be less than or equal to the upper bound, but got {lower} "
            f"and {upper}"
        )
    if not inplace:
        self = aten.contiguous(self)  # the result is row-major, whatever the input
    if not training:
        slope = (lower + upper) / 2
        return leaky_relu.inplace(self, slope) if inplace else leaky_relu.call(self, slope)
    x = aten.detach(self)
    low = aten.le(x, 0)
    draws = aten.uniform_(
        aten.empty((int(aten.sum(low).item()),), dtype=dt.float64, device=self._k.device),
        lower,
        upper,
        generator=generator,
    )
    slopes = aten.masked_scatter(aten.ones_like(x), low, aten.to(draws, self._k.dtype))
    return (
        rrelu_with_noise.inplace(self, slopes) if inplace else rrelu_with_noise.call(self, slopes)
    )


@face("rrelu", method=False)
def torch_rrelu(
    self: Any,
    lower: float = 1 / 8,
    upper: float = 1 / 3,
    training: bool = False,
    generator: Any = None,
) -> Any:
    """x where x > 0, else slope · x: a random slope from [lower, upper] in training, their mean
    else (arXiv:1505.00853)."""
    return _rrelu(self, lower, upper, training, False, generator)


@face("rrelu", method=False, spaces=_F)
def rrelu(
    self: Any,
    lower: float = 1 / 8,
    upper: float = 1 / 3,
    training: bool = False,
    inplace: bool = False,
) -> Any:
    """x where x > 0, else slope · x: a random slope from [lower, upper] in training, their mean
    else (arXiv:1505.00853)."""
    return _rrelu(self, lower, upper, training, inplace, None)


@face("rrelu_", method=False, spaces=_TORCH_F)
def rrelu_(
    self: Any,
    lower: float = 1 / 8,
    upper: float = 1 / 3,
    training: bool = False,
    generator: Any = None,
) -> Any:
    """In-place `rrelu`."""
    return _rrelu(self, lower, upper, training, True, generator)

"""Pointwise functions of one tensor, comparisons, logic and bits.

Source of the semantics: https://docs.pytorch.org/docs/2.13/torch.html#pointwise-ops
"""

from __future__ import annotations

from typing import Any

import numpy as np

from torchlab._core import dtype as dt
from torchlab._core.dispatch.op import binary, face, pointwise, unary
from torchlab._core.dispatch.registry import alias, aten, vjp_helper
from torchlab._core.ops._kinds import need
from torchlab._core.ops._special import floating, scipy_kernel, special
from torchlab._core.ops.kernels import exact, fast, into, limit, negative
from torchlab._core.settings import warn_user
from torchlab._core.tensor import Tensor


def _float(
    name: str,
    vjp: str,
    expr: str | None = None,
    kernel: Any = None,
    promote: Any = "float",
    **facts: Any,
) -> Any:
    return unary(
        name,
        kernel or getattr(np, name),
        promote=promote,
        vjp={"self": vjp},
        expr=expr or f"{name}(self)",
        **facts,
    )


exp = _float("exp", "g * conj_of(result)", autocast="float32:accelerator")
exp2 = _float("exp2", "g * (0.6931471805599453 * conj_of(result))")
expm1 = _float("expm1", "g * (conj_of(result) + 1)", autocast="float32:accelerator")
log = _float("log", "g / conj_of(self)", autocast="float32:accelerator")
log2 = _float("log2", "g / (conj_of(self) * 0.6931471805599453)", autocast="float32:accelerator")
log10 = _float("log10", "g / (conj_of(self) * 2.302585092994046)", autocast="float32:accelerator")


_NAN = complex(np.nan, np.nan)


def _log1p_array(a: Any, out: Any = None) -> Any:
    r = np.log1p(a, out=out)
    if a.dtype.kind == "c":  # infinity does not win over NaN
        r = into(np.where(np.isnan(r.imag) & np.isinf(r.real), _NAN, r).astype(a.dtype), out)
    return r


@fast(_log1p_array)
def _log1p(xp: Any, a: Any, out: Any = None) -> Any:
    return xp.log1p(a, out=out) if a.dtype.kind != "c" else _log1p_array(a, out)


log1p = _float(
    "log1p",
    "g / (conj_of(self) + 1)",
    kernel=_log1p,
    autocast="float32:accelerator",
    grad_name="Log1PBackward0",
)
sqrt = _float("sqrt", "g / (2 * conj_of(result))")
rsqrt = _float(
    "rsqrt",
    "conj_of(result).pow(3) * (-0.5 * g)",
    "1 / sqrt(self)",
    lambda xp, a, out=None: xp.true_divide(a.dtype.type(1), xp.sqrt(a), out=out),
    autocast="float32:accelerator",
)
sin = _float("sin", "g * cos(conj_of(self))")
cos = _float("cos", "g * -sin(conj_of(self))")
tan = _float("tan", "g * (1 + conj_of(result) * conj_of(result))", autocast="float32:accelerator")
asin = _float(
    "asin",
    "g * rsqrt(conj_of(1 - self * self))",
    "asin(self)",
    np.arcsin,
    autocast="float32:accelerator",
)
acos = _float(
    "acos",
    "-g * rsqrt(conj_of(1 - self * self))",
    "acos(self)",
    np.arccos,
    autocast="float32:accelerator",
)
atan = _float("atan", "g / conj_of(self * self + 1)", "atan(self)", np.arctan)
sinh = _float("sinh", "g * cosh(conj_of(self))", autocast="float32:accelerator")
cosh = _float("cosh", "g * sinh(conj_of(self))", autocast="float32:accelerator")
tanh = _float("tanh", "tanh_backward(g, result)")
asinh = _float(
    "asinh", "g * rsqrt(conj_of(self * self + 1))", "asinh(self)", np.arcsinh, inplace=False
)
acosh = _float("acosh", "acosh_backward(g, self)", "acosh(self)", np.arccosh, inplace=False)
atanh = _float("atanh", "g / conj_of(1 - self * self)", "atanh(self)", np.arctanh, inplace=False)


def _without_inplace_derivative(name: str, kernel: Any) -> None:
    """The in-place form as PyTorch has it: its backward refuses."""
    into_self = unary(
        f"_{name}",
        kernel,
        promote="float",
        public=False,
        method=False,
        out=False,
        vjp={"self": f"no_derivative('inplace version of {name}', g)"},
        grad_name=f"{name.capitalize()}Backward1",
    )

    def written(self: Any) -> Any:
        return into_self.inplace(self)

    written.__doc__ = f"In-place version of `{name}`. It has no derivative, as in PyTorch."
    face(f"{name}_")(written)


for _name, _kernel in (("asinh", np.arcsinh), ("acosh", np.arccosh), ("atanh", np.arctanh)):
    _without_inplace_derivative(_name, _kernel)


@vjp_helper
def acosh_backward(g: Any, x: Any) -> Any:
    """1 / √(x² − 1), of complex numbers on the branch of acosh."""
    if x._k.dtype.is_complex:
        return g * aten.conj(aten.rsqrt(x + 1) * aten.rsqrt(x - 1))
    return g * aten.rsqrt(x * x - 1)


erf = _float(
    "erf",
    "g * (1.1283791670955126 * exp(-(self * self)))",
    kernel=scipy_kernel("erf"),
    promote=floating("erf_vml_cpu"),
)
erfc = _float(
    "erfc",
    "g * (-1.1283791670955126 * exp(-(self * self)))",
    kernel=scipy_kernel("erfc"),
    promote=floating("erfc_vml_cpu"),
)


def _lgamma(xp: Any, a: Any, out: Any = None) -> Any:
    r = special.gammaln(a)
    tiny = xp.abs(a) < np.finfo(np.float64).tiny  # scipy's is infinite there
    if tiny.any():
        r = xp.where(tiny, -xp.log(xp.abs(a)), r)
    return into(xp.where(a == -xp.inf, xp.inf, r).astype(a.dtype), out)


lgamma = _float(
    "lgamma",
    "g * digamma(self)",
    kernel=_lgamma,
    promote=floating("lgamma_vml_cpu"),
)


def _digamma(xp: Any, a: Any, out: Any = None) -> Any:
    # PyTorch gives ∓inf at ±0; scipy gives ±inf there.
    r = special.digamma(a)
    return into(xp.where(a == 0, xp.copysign(xp.inf, -a), r).astype(a.dtype), out)


digamma = unary(
    "digamma", _digamma, promote=floating("digamma"), vjp={"self": "g * _polygamma(self, 1)"}
)


def _sigmoid(xp: Any, a: Any, out: Any = None) -> Any:
    if a.dtype.kind == "c":
        return into(1 / (1 + xp.exp(-a)), out)
    r = negative(xp, a, out)
    r = xp.exp(r, out=r) if type(r) is np.ndarray else np.asarray(xp.exp(r))
    r = xp.add(r, r.dtype.type(1), out=r)
    return xp.reciprocal(r, out=r)


sigmoid = unary(
    "sigmoid",
    _sigmoid,
    promote="float",
    expr="1 / (1 + exp(-self))",
    vjp={"self": "sigmoid_backward(g, result)"},
)


@pointwise(
    "tanh_backward(Tensor grad_output, Tensor output) -> Tensor",
    inplace=False,
    out=False,
    public=False,
    expr="grad_output * (1 - output * output)",
    vjp={
        "grad_output": "tanh_backward(g, conj_of(output))",
        "output": "conj_of(g) * (-2 * conj_of(output) * grad_output)",
    },
)
def tanh_backward(xp: Any, g: Any, y: Any, out: Any = None) -> Any:
    """grad · (1 − y²)."""
    r = xp.multiply(y, y)
    r = xp.subtract(r.dtype.type(1), r, out=r if r.ndim else None)
    if r.dtype.kind == "c":
        r = xp.conj(r)
    return xp.multiply(g, r, out=out)


@pointwise(
    "sigmoid_backward(Tensor grad_output, Tensor output) -> Tensor",
    inplace=False,
    out=False,
    public=False,
    expr="grad_output * (1 - output) * output",
    vjp={
        "grad_output": "sigmoid_backward(g, conj_of(output))",
        "output": "conj_of(g) * (grad_output * (1 - 2 * conj_of(output)))",
    },
)
def sigmoid_backward(xp: Any, g: Any, y: Any, out: Any = None) -> Any:
    """grad · y · (1 − y)."""
    r = (1 - y) * y
    return xp.multiply(g, xp.conj(r) if r.dtype.kind == "c" else r, out=out)


def _rounding(f: Any) -> Any:
    def kernel(xp: Any, a: Any, out: Any = None) -> Any:
        if a.dtype.kind in "iu":
            return into(a, out) if out is not None else a.copy()
        if a.dtype.kind == "b":
            raise NotImplementedError(f"\"{f.__name__}_vml_cpu\" not implemented for 'Bool'")
        return getattr(xp, f.__name__)(a, out=out)

    kernel.fast_ufunc = None
    return kernel


floor = unary("floor", _rounding(np.floor), expr="floor(self)", vjp={"self": "zeros_like(g)"})
ceil = unary("ceil", _rounding(np.ceil), expr="ceil(self)", vjp={"self": "zeros_like(g)"})
trunc = unary("trunc", _rounding(np.trunc), expr="trunc(self)", vjp={"self": "zeros_like(g)"})


def _frac(xp: Any, a: Any, out: Any = None) -> Any:
    if a.dtype.kind in "iubc":
        raise NotImplementedError(f'"frac_cpu" not implemented for {a.dtype.name}')
    return xp.subtract(a, xp.trunc(a), out=out)


frac = unary(
    "frac",
    _frac,
    expr="self - trunc(self)",
    vjp={"self": "g"},
)
alias("fix", "trunc")
for _name in ("sin", "cos", "tan"):
    for _form in (_name, _name + "h"):
        alias("arc" + _form, "a" + _form)


@pointwise(
    "round.decimals(Tensor self, *, int decimals=0) -> Tensor",
    vjp={"self": "zeros_like(g)"},
    grad_name="RoundBackward0",
)
def round_decimals(xp: Any, a: Any, decimals: int = 0, out: Any = None) -> Any:
    """Round half to even."""
    if a.dtype.kind in "bc":
        raise NotImplementedError(f'"round_vml_cpu" not implemented for {a.dtype.name}')
    if a.dtype.kind in "iu":
        return into(a, out) if out is not None else a.copy()
    return into(xp.round(a, decimals), out) if decimals else xp.rint(a, out=out)


def _relu(xp: Any, a: Any, out: Any = None) -> Any:
    if a.dtype == np.bool_:
        raise RuntimeError("Boolean inputs not supported for relu")
    return _relu.fast_ufunc(a, out)  # type: ignore[attr-defined]


_ZEROS: dict[Any, Any] = {}


def _relu_ufunc(a: Any, out: Any = None) -> Any:
    """relu as one call on one array: NumPy's maximum keeps NaN, as PyTorch does."""
    zero = _ZEROS.get(a.dtype)
    if zero is not None:
        return np.maximum(zero, a, out=out)  # see kernels.limit
    if a.dtype.kind == "c":
        raise NotImplementedError('"relu_cpu" not implemented for complex tensors')
    zero = np.zeros((), a.dtype)
    if a.dtype != np.float16:
        _ZEROS[a.dtype] = zero
    return limit(np.maximum, a, zero, out)


_relu.fast_ufunc = _relu_ufunc  # type: ignore[attr-defined]
relu = unary(
    "relu",
    _relu,
    expr="where(self < 0, 0, self)",
    vjp={"self": "threshold_backward(g, result, 0)"},
    spaces=("torch", "nn.functional"),
    doc="max(self, 0); NaN stays.",
)


@pointwise(
    "threshold_backward(Tensor grad_output, Tensor self, Scalar threshold) -> Tensor",
    inplace=False,
    out=False,
    public=False,
    expr="where(self <= threshold, 0, grad_output)",
    vjp={"grad_output": "threshold_backward(g, self, threshold)", "self": "zeros_like(g)"},
)
def threshold_backward(xp: Any, g: Any, x: Any, threshold: Any, out: Any = None) -> Any:
    """grad where x > threshold (NaN lets it through), else 0."""
    if (
        xp is np
        and g.dtype == x.dtype == np.float32
        and g.shape == x.shape
        and g.ndim
        and g.flags.c_contiguous
    ):
        # Masking the bits: where() with a number takes four times as long.
        bits = np.less_equal(x, np.float32(threshold)).astype(np.int32)
        bits -= 1
        bits &= g.view(np.int32)
        return into(bits.view(np.float32), out)
    return into(xp.where(x <= threshold, g.dtype.type(0), g), out)


# ---- comparison ---------------------------------------------------------------------------------


def _compare(name: str, ufunc: Any, symbol: str, dunder: str) -> Any:
    return binary(
        name,
        ufunc,
        promote="bool",
        py=(dunder,),
        expr=f"self {symbol} other",
        numbers=("other",),
        write_vjp={"self": "zeros_like(g)", "other": "zeros_like(g)"},
        grad_name=f"{name.title()}Backward0|{name.title()}Backward1",
    )


eq = _compare("eq", np.equal, "==", "__eq__")
ne = _compare("ne", np.not_equal, "!=", "__ne__")
lt = _compare("lt", np.less, "<", "__lt__")
le = _compare("le", np.less_equal, "<=", "__le__")
gt = _compare("gt", np.greater, ">", "__gt__")
ge = _compare("ge", np.greater_equal, ">=", "__ge__")
for _new, _old in (
    ("not_equal", "ne"),
    ("less", "lt"),
    ("less_equal", "le"),
    ("greater", "gt"),
    ("greater_equal", "ge"),
):
    alias(_new, _old)


def _test(name: str, expr: str) -> Any:
    def kernel(xp: Any, a: Any, out: Any = None) -> Any:
        if out is not None and not out.flags.c_contiguous:
            return into(getattr(xp, name)(a), out)  # NumPy's signbit and isfinite ignore strides
        return getattr(xp, name)(a, out=out)

    kernel.__name__ = name
    return unary(
        name,
        kernel,
        promote="bool",
        inplace=False,
        expr=expr,
        out=name not in ("isnan", "isinf", "isfinite"),
        tags=("pointwise", "asks_history") if name == "isfinite" else ("pointwise",),
    )


isnan = _test("isnan", "self != self")
isinf = _test("isinf", "isinf(self)")
isfinite = _test("isfinite", "isfinite(self)")
signbit = _test("signbit", "signbit(self)")


# ---- logic and bits -----------------------------------------------------------------------------


def _logical(name: str) -> Any:
    ufunc = getattr(np, name)
    return binary(name, lambda xp, a, b, out=None: ufunc(a, b, out=out), promote="bool", numbers=())


logical_and = _logical("logical_and")
logical_or = _logical("logical_or")
logical_xor = _logical("logical_xor")
logical_not = unary(
    "logical_not", lambda xp, a, out=None: xp.logical_not(a, out=out), promote="bool"
)


def _bits(name: str, ufunc: Any, *py: str) -> Any:
    def kernel(xp: Any, a: Any, b: Any, out: Any = None) -> Any:
        if a.dtype.kind not in "iub":
            what = name.replace("bitwise_left_", "l").replace("bitwise_right_", "r")
            raise NotImplementedError(f"\"{what}_cpu\" not implemented for '{_dtype_name(a)}'")
        if name.endswith("shift"):
            need("iu", "lshift_cpu" if "left" in name else "rshift_cpu", a)
        return getattr(xp, ufunc.__name__)(a, b, out=out)

    return binary(name, kernel, py=py)


def _dtype_name(a: Any) -> str:
    return {
        "float32": "Float",
        "float64": "Double",
        "float16": "Half",
        "bfloat16": "BFloat16",
        "complex64": "ComplexFloat",
        "complex128": "ComplexDouble",
    }.get(a.dtype.name, a.dtype.name)


bitwise_and = _bits("bitwise_and", np.bitwise_and, "__and__", "__rand__", "__iand__")
bitwise_or = _bits("bitwise_or", np.bitwise_or, "__or__", "__ror__", "__ior__")
bitwise_xor = _bits("bitwise_xor", np.bitwise_xor, "__xor__", "__rxor__", "__ixor__")
bitwise_left_shift = _bits("bitwise_left_shift", np.left_shift, "__lshift__", "__ilshift__")
bitwise_right_shift = _bits("bitwise_right_shift", np.right_shift, "__rshift__", "__irshift__")


def _bitwise_not(xp: Any, a: Any, out: Any = None) -> Any:
    return xp.invert(a, out=out)


bitwise_not = unary("bitwise_not", _bitwise_not, promote=lambda op, common: _whole(common))


@face("__invert__", spaces=())
def invert(self: Any) -> Tensor:
    """~self: the bits of integers and truth values turned over."""
    if self._k.dtype.category >= dt.FLOAT:
        raise TypeError(
            "~ (operator.invert) is only implemented on integer and Boolean-type tensors"
        )
    return bitwise_not.function(self)  # type: ignore[no-any-return]


def _whole(common: dt.dtype) -> tuple[dt.dtype, dt.dtype]:
    if common.category >= dt.FLOAT:
        raise NotImplementedError(f"\"bitwise_not_cpu\" not implemented for '{common.scalar_name}'")
    return common, common


# ---- minima, maxima, selection ------------------------------------------------------------------


def _extreme(name: str, ufunc: Any, expr: str, worse: str) -> Any:
    return binary(
        name,
        ufunc,
        expr=expr,
        numbers=(),
        inplace=False,
        vjp={
            "self": f"extreme_backward(g, self {worse} other, self == other)",
            "other": f"extreme_backward(g, other {worse} self, self == other)",
        },
    )


maximum = _extreme("maximum", np.maximum, "maximum(self, other)", "<")
minimum = _extreme("minimum", np.minimum, "minimum(self, other)", ">")
fmax = binary(
    "fmax",
    np.fmax,
    numbers=(),
    inplace=False,
    vjp={
        "self": "masked(g, (self >= other) | isnan(other))",
        "other": "masked(g, ~((self >= other) | isnan(other)))",
    },
)
fmin = binary(
    "fmin",
    np.fmin,
    numbers=(),
    inplace=False,
    vjp={
        "self": "masked(g, (self <= other) | isnan(other))",
        "other": "masked(g, ~((self <= other) | isnan(other)))",
    },
)


@exact
def _where(xp: Any, c: Any, a: Any, b: Any, out: Any = None) -> Any:
    return into(xp.where(c, a, b), out)


def _where_method(self: Any, condition: Any, other: Any) -> Any:
    """Elements of this tensor where the condition holds, of `other` elsewhere."""
    return where_self.function(condition, self, other)


@face("where", method=_where_method)
def where(condition: Any, input: Any = None, other: Any = None, *, out: Any = None) -> Any:
    """Elements of `input` where the condition holds, of `other` elsewhere. With the condition
    alone: the indices where it holds."""
    if input is None and other is None:
        return aten.nonzero(condition, as_tuple=True)
    if isinstance(condition, Tensor) and condition.dtype is dt.uint8:
        warn_user(
            "where received a uint8 condition tensor. This behavior is deprecated and will be"
            " removed in a future version of PyTorch. Use a boolean condition instead.",
        )
        condition = condition.bool()
    if out is not None:
        return where_self.out(condition, input, other, out=out)
    return where_self.function(condition, input, other)


where_self = pointwise(
    "where.self(Tensor condition, Tensor self, Tensor other) -> Tensor",
    public=False,
    inplace=False,
    promote="where",
    expr="where(condition, self, other)",
    vjp={"self": "where(condition, g, 0)", "other": "where(condition, 0, g)"},
    grad_name="WhereBackward0",
)(_where)


@exact
def _masked_fill(xp: Any, a: Any, mask: Any, value: Any, out: Any = None) -> Any:
    return into(xp.where(mask, value, a), out)


masked_fill = pointwise(
    "masked_fill(Tensor self, Tensor mask, Tensor value) -> Tensor",
    promote="masked_fill",
    out=False,
    expr="where(mask, value, self)",
    grad_name="MaskedFillBackward0|MaskedFillBackward1",
    vjp={"self": "masked_fill(g, mask, 0)", "value": "sum(masked(g, mask))"},
    tags=("pointwise", "float_result"),
)(_masked_fill)


@face("clamp", spaces=("torch",))
def clamp(self: Any, min: Any = None, max: Any = None, *, out: Any = None) -> Any:
    """Limit to [min, max]: numbers or tensors; NaN wins; max wins over min."""
    min, max = _checked_bounds(self, min, max, out is None)
    if out is not None:
        return _clamp_op(min, max).out(*_bounds(self, min, max), out=out)
    return _clamp_op(min, max).function(*_bounds(self, min, max))


@face("clamp_")
def clamp_(self: Any, min: Any = None, max: Any = None) -> Any:
    """In-place `clamp`."""
    min, max = _checked_bounds(self, min, max, False)
    return _clamp_op(min, max).inplace(*_bounds(self, min, max))


def _checked_bounds(x: Any, low: Any, high: Any, new: bool) -> tuple[Any, Any]:
    """The bounds: two tensors or two numbers. Beside a number, a tensor without dimensions that
    wants no gradient counts as one. `new`: the result is a new tensor."""
    if low is None or high is None:
        if low is high:
            raise RuntimeError("torch.clamp: At least one of 'min' or 'max' must not be None")
    elif isinstance(low, Tensor) != isinstance(high, Tensor):
        low, high = _as_number(low), _as_number(high)
    if new and isinstance(x, Tensor) and x._k.dtype.is_complex:
        raise NotImplementedError("clamp is not supported for complex types")
    if type(low) is complex or type(high) is complex:
        if isinstance(x, Tensor) and not x._k.dtype.is_floating_point and new:
            raise NotImplementedError("clamp is not supported for complex types")
        low, high = (_real_bound(x, v) if type(v) is complex else v for v in (low, high))
    return low, high


def _as_number(bound: Any) -> Any:
    if not isinstance(bound, Tensor):
        return bound
    if bound._a.ndim or bound.requires_grad:
        raise TypeError(
            "clamp() received an invalid combination of arguments: its bounds must be two tensors"
            " or two numbers (a tensor without dimensions, and without gradient, counts as one)"
        )
    return bound.item()


def _real_bound(x: Any, bound: complex) -> Any:
    if bound.imag or isinstance(x, Tensor) and not x._k.dtype.is_floating_point:
        raise RuntimeError("clamp: a bound cannot be complex: complex numbers have no order")
    return bound.real


def _clamp_op(low: Any, high: Any) -> Any:
    return _clamp_low if high is None else _clamp_high if low is None else clamp_both


def _bounds(x: Any, low: Any, high: Any) -> tuple[Any, ...]:
    return tuple(v for v in (x, low, high) if v is not None)


def _between(xp: Any, a: Any, low: Any, high: Any, out: Any = None) -> Any:
    need("fcViu", "clamp_cpu", a)
    return limit(xp.minimum, limit(xp.maximum, a, low), high, out)


clamp_both = pointwise(
    "clamp.Tensor(Tensor self, Tensor min, Tensor max) -> Tensor",
    public=False,
    grad_name="ClampBackward1:0|ClampBackward0",
    expr="minimum(max, maximum(min, self))",
    vjp={
        "self": "masked(g, (self >= min) & (self <= max))",
        "min": "masked(g, (min < max) & (self < min))",
        "max": "masked(g, (self > max) | (max < min))",
    },
)(exact(_between))


def _lower(name: str, node: str, public: bool) -> Any:
    return pointwise(
        f"{name}(Tensor self, Tensor min) -> Tensor",
        public=public,
        numbers=("min",),
        grad_name=node,
        expr="maximum(min, self)",
        vjp={"self": "masked(g, self >= min)", "min": "masked(g, self < min)"},
    )(exact(lambda xp, a, low, out=None: limit(xp.maximum, a, low, out)))


def _upper(name: str, node: str, public: bool) -> Any:
    return pointwise(
        f"{name}(Tensor self, Tensor max) -> Tensor",
        public=public,
        numbers=("max",),
        grad_name=node,
        expr="minimum(max, self)",
        vjp={"self": "masked(g, self <= max)", "max": "masked(g, self > max)"},
    )(exact(lambda xp, a, high, out=None: limit(xp.minimum, a, high, out)))


clamp_min = _lower("clamp_min", "ClampMinBackward0|ClampMinBackward1", True)
clamp_max = _upper("clamp_max", "ClampMaxBackward0|ClampMaxBackward1", True)
# `clamp` with one bound: the same, under a name of its own on the tape.
_clamp_low = _lower("_clamp_low", "ClampBackward1|ClampBackward0:01-", False)
_clamp_high = _upper("_clamp_high", "ClampBackward1|ClampBackward0:0-1", False)
alias("clip", "clamp")


def _atan2(xp: Any, a: Any, b: Any, out: Any = None) -> Any:
    return xp.arctan2(a, b, out=out)


@vjp_helper
def inverse_square(x: Any, y: Any) -> Any:
    """1 / (x² + y²), 0 at the origin: the slope of atan2 there is taken for 0."""
    square = x * x + y * y
    return aten.masked_fill(aten.reciprocal(square), square == 0, 0)


_atan2.fast_ufunc = np.arctan2  # type: ignore[attr-defined]
atan2 = binary(
    "atan2",
    _atan2,
    promote="float",
    numbers=(),
    expr="atan2(self, other)",
    vjp={
        "self": "g * (other * inverse_square(self, other))",
        "other": "g * (-self * inverse_square(self, other))",
    },
    autocast="promote:accelerator",
)
alias("arctan2", "atan2")
hypot = binary(
    "hypot",
    lambda xp, a, b, out=None: xp.hypot(a, b, out=out),
    promote=floating("hypot_cpu", ints=False),
    numbers=(),
    vjp={"self": "g * (self / result)", "other": "g * (other / result)"},
)


def _logaddexp(xp: Any, a: Any, b: Any, out: Any = None) -> Any:
    if a.dtype.kind != "c":
        return xp.logaddexp(a, b, out=out)
    # The exponential that is taken has a real part of at most 0.
    first = a.real >= b.real
    high, low = xp.where(first, a, b), xp.where(first, b, a)
    r = high + xp.log1p(xp.exp(low - high))
    same = (a == b) & xp.isinf(a.real)
    return into(xp.where(same, a, r), out)


logaddexp = binary(
    "logaddexp",
    _logaddexp,
    promote=floating("logaddexp_cpu", ints=False, complex=True),
    numbers=(),
    inplace=False,
    vjp={
        "self": "g / conj_of(1 + exp(other - self))",
        "other": "g / conj_of(1 + exp(self - other))",
    },
)

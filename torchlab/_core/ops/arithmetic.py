"""Pointwise arithmetic: add, sub, mul, div, pow, remainders, sign and absolute value.

Source of the semantics: https://docs.pytorch.org/docs/2.13/torch.html#pointwise-ops
"""

from __future__ import annotations

from typing import Any

import numpy as np

from torchlab._core import dtype as dt
from torchlab._core.dispatch.op import binary, face, pointwise, unary
from torchlab._core.dispatch.registry import alias, aten, vjp_helper
from torchlab._core.ops._reduce import scalar_name
from torchlab._core.ops._renamed import renamed
from torchlab._core.ops.kernels import exact, fast, into, multiply_add, negative, number
from torchlab._core.tensor import Tensor

# Complex numbers are multiplied by alpha even if it is 1, as in PyTorch: 0 times the other part
# decides the signs of zeros, and makes nan of inf.


def _add_complex(a: Any, b: Any) -> Any:
    return np.add(a, b * (1 + 0j))


def _sub_complex(a: Any, b: Any) -> Any:
    return np.add(a, b * complex(-1, 0))


@fast(np.add, _add_complex)
def _add(xp: Any, a: Any, b: Any, alpha: Any = 1, out: Any = None) -> Any:
    _check_alpha(a, alpha)
    if alpha == 1 and b.dtype.kind != "c":
        return xp.add(a, b, out=out)
    if b.dtype == np.bool_:
        return xp.add(a, xp.logical_and(b, bool(alpha)), out=out)
    return multiply_add(xp, a, b, number(alpha, b.dtype), out)


@fast(np.subtract, _sub_complex)
def _sub(xp: Any, a: Any, b: Any, alpha: Any = 1, out: Any = None) -> Any:
    if a.dtype == np.bool_:
        raise RuntimeError(
            "Subtraction, the `-` operator, with two bool tensors is not supported. Use the `^` or"
            " `logical_xor()` operator instead."
        )
    _check_alpha(a, alpha)
    if b.dtype.kind == "c":  # (−1 as a complex number has +0 in its imaginary part)
        return multiply_add(xp, a, b, number(-alpha, b.dtype), out)
    if alpha == 1:
        return xp.subtract(a, b, out=out)
    factor = number(alpha, b.dtype)
    if b.dtype.kind in "iu":
        return xp.subtract(a, b * factor, out=out)
    return multiply_add(xp, a, b, -factor, out)


def _check_alpha(a: Any, alpha: Any) -> None:
    if type(alpha) is float and a.dtype.kind in "iub":
        raise RuntimeError(
            "For integral input tensors, argument alpha must not be a floating point number."
        )
    if type(alpha) is complex and a.dtype.kind != "c":
        raise RuntimeError(
            "For non-complex input tensors, argument alpha must not be a complex number."
        )
    if type(alpha) is bool and a.dtype != np.bool_:
        raise RuntimeError("Boolean alpha only supported for Boolean results.")


add = binary(
    "add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor",
    _add,
    numbers="all",
    expr="self + alpha * other",
    py=("__add__", "__radd__", "__iadd__"),
    vjp={"self": "g", "other": "g if alpha == 1 else g * conj_of(alpha)"},
    doc="self + alpha · other, broadcast.",
)
sub = binary(
    "sub.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor",
    _sub,
    numbers="all",
    expr="self - alpha * other",
    py=("__sub__", "__isub__"),
    vjp={"self": "g", "other": "-g if alpha == 1 else g * -conj_of(alpha)"},
    doc="self − alpha · other, broadcast.",
)
mul = binary(
    "mul",
    np.multiply,
    numbers="all",
    expr="self * other",
    py=("__mul__", "__rmul__", "__imul__"),
    vjp={"self": "g * conj_of(other)", "other": "g * conj_of(self)"},
    doc="self · other, broadcast.",
)


@face("rsub", method=False)
def rsub(self: Any, other: Any, *, alpha: Any = 1) -> Any:
    """other − alpha · self."""
    if not isinstance(self, Tensor):
        raise TypeError(
            "rsub() received an invalid combination of arguments - got"
            f" ({type(self).__name__}, {type(other).__name__}), but input must be a Tensor"
        )
    if isinstance(other, Tensor):
        return rsub_tensor.call(self, other, alpha=alpha)
    r = aten.sub(other, self, alpha=alpha)
    if r._e is not None:
        renamed(r._e, "RsubBackward1", (1,))
    return r


@face("__rsub__", spaces=())
def rsub_method(self: Any, other: Any) -> Any:
    """other − self."""
    return rsub.body(self, other)


rsub_tensor = binary(
    "rsub.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor",
    lambda xp, a, b, alpha=1, out=None: _sub(xp, b, a, alpha, out),
    public=False,
    method=False,
    inplace=False,
    out=False,
    vjp={"self": "-g if alpha == 1 else g * -conj_of(alpha)", "other": "g"},
)


div_tensor = binary(
    "div.Tensor(Tensor self, Tensor other) -> Tensor",
    np.true_divide,
    numbers="all",
    promote="float",
    expr="self / other",
    py=("__truediv__", "__itruediv__"),
    vjp={"self": "g / conj_of(other)", "other": "conj_of(self / other / other) * -g"},
    doc="self / other; integers become the default floating type.",
)


def _int_division(xp: Any, a: Any, b: Any, f: Any, out: Any) -> Any:
    if a.dtype == np.bool_:
        raise NotImplementedError(f"\"{f.__name__}_cpu\" not implemented for 'Bool'")
    if a.dtype.kind in "iu" and a.size and not xp.all(b):
        raise RuntimeError("ZeroDivisionError: integer division or modulo by zero")
    return f(a, b, out=out)


def _floor_divide(xp: Any, a: Any, b: Any, out: Any = None) -> Any:
    if a.dtype.kind in "iub":
        return _int_division(xp, a, b, xp.floor_divide, out)
    # As C's division with Python's fix-up: inf and NaN where NumPy's floor_divide differs.
    zero = b == 0
    q = xp.floor_divide(a, xp.where(zero, xp.ones_like(b), b))
    return into(xp.where(zero, a / b, q), out)


floor_divide = binary(
    "floor_divide",
    _floor_divide,
    numbers="all",
    expr="floor(self / other)",
    py=("__floordiv__", "__ifloordiv__"),
    vjp={
        "self": "no_derivative_of('floor_divide')",
        "other": "no_derivative_of('floor_divide')",
    },
    grad_name="NotImplemented|NotImplemented",
    doc="The floor of self / other; integers stay integers.",
)


@exact
def _trunc_divide(xp: Any, a: Any, b: Any, out: Any = None) -> Any:
    if a.dtype == np.bool_:
        raise NotImplementedError("\"div_trunc_cpu\" not implemented for 'Bool'")
    if a.dtype.kind in "iu":
        if a.size and not xp.all(b):
            raise RuntimeError("ZeroDivisionError: integer division or modulo by zero")
        q = xp.floor_divide(a, b)
        r = a - q * b
        return into(q + ((r != 0) & ((a < 0) != (b < 0))).astype(a.dtype), out)
    return xp.trunc(xp.true_divide(a, b), out=out)


def _rounded_div(name: str, kernel: Any, expr: str) -> Any:
    return binary(
        name,
        kernel,
        public=False,
        numbers="all",
        expr=expr,
        vjp={"self": "kept(zeros_like(g), other)", "other": "kept(zeros_like(g), self, other)"},
        grad_name="DivBackward2",
    )


_div_exact = binary(
    "_div_exact",
    np.true_divide,
    public=False,
    numbers="all",
    promote="float",
    expr="self / other",
    vjp={"self": "g / conj_of(other)", "other": "conj_of(self / other / other) * -g"},
    grad_name="DivBackward2",
)
_div_floor = _rounded_div("_div_floor", _floor_divide, "floor(self / other)")
trunc_divide = _rounded_div("trunc_divide", _trunc_divide, "trunc(self / other)")


def _div_mode(self: Any, other: Any, rounding_mode: Any) -> Any:
    if rounding_mode is None:
        return _div_exact
    if rounding_mode is _NOT_SAID:
        return div_tensor
    if rounding_mode == "floor":
        return _div_floor
    if rounding_mode == "trunc":
        return trunc_divide
    raise RuntimeError(
        "div expected rounding_mode to be one of None, 'trunc', or 'floor' but found"
        f" '{rounding_mode}'"
    )


# The default of `rounding_mode`, told by identity: PyTorch has another overload for where it is
# given, also as None.
_NOT_SAID = "".join(("no", "ne"))


@face("div")
def div(self: Any, other: Any, *, rounding_mode: str | None = _NOT_SAID, out: Any = None) -> Any:
    """self / other; `rounding_mode` "floor" or "trunc" rounds and keeps integers."""
    chosen = _div_mode(self, other, rounding_mode)
    return (
        chosen.function(self, other, out=out) if out is not None else chosen.function(self, other)
    )


@face("div_")
def div_(self: Any, other: Any, *, rounding_mode: str | None = _NOT_SAID) -> Any:
    """In-place `div`."""
    return _div_mode(self, other, rounding_mode).inplace(self, other)


def _remainder(xp: Any, a: Any, b: Any, out: Any = None) -> Any:
    if a.dtype.kind in "iub":
        return _int_division(xp, a, b, xp.remainder, out)
    r = xp.fmod(a, b)  # a zero keeps the dividend's sign, which NumPy's remainder turns
    return into(xp.where((r != 0) & ((r < 0) != (b < 0)), r + b, r), out)


remainder = binary(
    "remainder",
    _remainder,
    py=("__mod__", "__imod__"),
    expr="self - floor(self / other) * other",
    grad_name="RemainderBackward0|RemainderBackward1|NotImplemented",
    vjp={"self": "g", "other": "-g * floor_quotient(self, other)"},
    doc="The remainder with the divisor's sign.",
)


def _fmod(xp: Any, a: Any, b: Any, out: Any = None) -> Any:
    if a.dtype.kind in "iub":
        return _int_division(xp, a, b, xp.fmod, out)
    return xp.fmod(a, b, out=out)


fmod = binary(
    "fmod",
    _fmod,
    numbers=("other",),
    expr="self - trunc(self / other) * other",
    grad_name="FmodBackward0|FmodBackward1",
    vjp={"self": "g", "other": "-g * div(self, other, rounding_mode='trunc')"},
    doc="The remainder with the dividend's sign.",
)


def _pow(xp: Any, a: Any, b: Any, out: Any = None) -> Any:
    if a.dtype.kind in "iu" and b.dtype.kind == "i" and b.size and bool((b < 0).any()):
        # PyTorch raises for a negative Python exponent only; tensors give 0, 1 or -1.
        safe = xp.power(a, xp.where(b < 0, 0, b))
        one = xp.where(a == 1, 1, xp.where(a == -1, xp.where(b % 2 == 0, 1, -1), 0)).astype(a.dtype)
        return into(xp.where(b < 0, one, safe), out)
    if a.dtype == np.bool_:
        raise NotImplementedError("\"pow\" not implemented for 'Bool'")
    if a.dtype.kind == "c":
        r = xp.power(a, b)
        # As exp(b · ln a): not 1 at 0, infinity and NaN; infinite where 0 has a negative power.
        odd = (b == 0) | (a == 0) & (b.real < 0)
        return into(xp.where(odd, xp.exp(b * xp.log(a)), r) if odd.any() else r, out)
    if a.dtype.kind == "f" and b.size == 1 and b.reshape(-1)[0] == 0.5:
        # NumPy takes the root then, of which that of -infinity is none
        r = xp.where(xp.isneginf(a), xp.inf, xp.power(a, b)) + 0  # nor is -0 one's power
        return into(r.astype(a.dtype), out)
    return xp.power(a, b, out=out)


pow_tensor = binary(
    "pow.Tensor_Tensor(Tensor self, Tensor exponent) -> Tensor",
    _pow,
    expr="pow(self, exponent)",
    method=False,
    public=False,
    inplace=True,
    grad_name="PowBackward0|PowBackward1|PowBackward2",
    vjp={
        "self": "kept(pow_backward_self(g, self, exponent), result)",
        "exponent": "pow_backward_exponent(g, self, exponent, result)",
    },
    autocast="float32:accelerator",
)
pow_scalar = pointwise(
    "pow.Tensor_Scalar(Tensor self, Scalar exponent) -> Tensor",
    public=False,
    grad_name="PowBackward0",
    promote=lambda op, common: (common, common),
    vjp={"self": "pow_backward(g, self, exponent)"},
    expr="pow(self, exponent)",
    autocast="float32:accelerator",
)(lambda xp, a, e, out=None: _pow_number(xp, a, e, out))


def _pow_number(xp: Any, a: Any, e: Any, out: Any) -> Any:
    if a.dtype.kind in "iu" and e < 0:
        raise RuntimeError("Integers to negative integer powers are not allowed.")
    if e == 2 and a.dtype != np.bool_:
        return xp.multiply(a, a, out=out)
    if e == 0:
        return into(xp.ones(a.shape, a.dtype), out)
    if e == 0.5:
        return xp.sqrt(a, out=out)
    if e == 1:
        return into(a, out) if out is not None else a.copy()
    if a.dtype.kind in "fiu":
        # As PyTorch rounds these; NumPy's power takes ten times as long.
        if e == 3:
            return xp.multiply(a * a, a, out=out)
        if a.dtype.kind == "f" and e in (-1, -2, -0.5):
            base = a if e == -1 else a * a if e == -2 else xp.sqrt(a)
            return xp.divide(a.dtype.type(1), base, out=out)
    if a.dtype.kind in "iu":
        return _pow(xp, a, number(e, a.dtype), out)
    return _pow(xp, a, np.array(e, a.dtype if a.dtype != np.bool_ else None), out)


@face("pow", py=("__pow__",))
def pow(self: Any, exponent: Any, *, out: Any = None) -> Any:
    """self to the power exponent; either may be a number."""
    return _pow_entry(self, exponent, out)


def _refuse_negative(self: Any, exponent: Any) -> None:
    if type(exponent) is int and exponent < 0 and self.dtype.category < dt.FLOAT:
        raise RuntimeError("Integers to negative integer powers are not allowed.")


def _pow_entry(self: Any, exponent: Any, out: Any = None) -> Any:
    number = isinstance(exponent, (int, float, complex)) and hasattr(self, "_a")
    if number:
        _refuse_negative(self, exponent)
    if number and dt.combine(self.dtype, None, dt.of_scalar(exponent)) is self.dtype:
        if out is not None:
            return pow_scalar.out(self, exponent, out=out)
        return pow_scalar.call(self, exponent)
    if out is not None:
        return pow_tensor.out(self, exponent, out=out)
    return pow_tensor.function(self, exponent)


@face("pow_", py=("__ipow__",))
def pow_(self: Any, exponent: Any) -> Any:
    """In-place `pow`."""
    number = isinstance(exponent, (int, float, complex))
    if number:
        _refuse_negative(self, exponent)
    if number and dt.combine(self.dtype, None, dt.of_scalar(exponent)) is self.dtype:
        return pow_scalar.inplace(self, exponent)
    return pow_tensor.inplace(self, exponent)  # which refuses a result of another type


@face("__rpow__")
def rpow(self: Any, other: Any) -> Any:
    """other ** self."""
    return pow_tensor.function(other, self)


@face("__rtruediv__")
def rtruediv(self: Any, other: Any) -> Any:
    """other / self."""
    return self.reciprocal() * other


@face("__rfloordiv__")
def rfloordiv(self: Any, other: Any) -> Any:
    """other // self."""
    return aten.floor_divide(other, self)


@face("__rmod__")
def rmod(self: Any, other: Any) -> Any:
    """other % self."""
    return aten.remainder(other, self)


def _neg(xp: Any, a: Any, out: Any = None) -> Any:
    if a.dtype == np.bool_:
        raise RuntimeError(
            "Negation, the `-` operator, on a bool tensor is not supported. If you are trying to"
            " invert a mask, use the `~` or `logical_not()` operator instead."
        )
    return negative(xp, a, out)


_neg.fast_ufunc = np.negative  # type: ignore[attr-defined]
neg = unary("neg", _neg, expr="-self", py=("__neg__",), vjp={"self": "-g"}, doc="−self.")


@face("positive", py=("__pos__",))
def positive(self: Any) -> Any:
    """The tensor itself."""
    if self._k.dtype is dt.bool_:
        raise RuntimeError("The `+` operator, on a bool tensor is not supported.")
    return self


def _abs(xp: Any, a: Any, out: Any = None) -> Any:
    if a.dtype == np.bool_:
        raise NotImplementedError("\"abs_cpu\" not implemented for 'Bool'")
    return xp.absolute(a, out=out)


_abs.fast_ufunc = np.absolute  # type: ignore[attr-defined]
abs = unary(
    "abs",
    _abs,
    promote="real",
    expr="abs(self)",
    py=("__abs__",),
    vjp={"self": "g * sgn(self)"},
    doc="The absolute value; of complex numbers a real tensor.",
)


@face("abs_")
def abs_(self: Any) -> Any:
    """In-place `abs`."""
    if self._k.dtype.is_complex:
        raise RuntimeError("In-place abs is not supported for complex tensors.")
    return abs.inplace(self)


def _sign(xp: Any, a: Any, out: Any = None) -> Any:
    if a.dtype == np.bool_:
        return into(a, out) if out is not None else a.copy()
    if a.dtype.kind == "c":
        size = xp.absolute(a)
        r = xp.zeros(a.shape, a.dtype)
        r.real, r.imag = a.real / size, a.imag / size  # each part for itself: NaN at infinity
        return into(xp.where(size == 0, a, r), out)
    if a.dtype.kind == "f":
        return into((a > 0).astype(a.dtype) - (a < 0), out)  # 0 for NaN
    return xp.sign(a, out=out)


def _real_only(op: Any, common: dt.dtype) -> tuple[dt.dtype, dt.dtype]:
    if common.is_complex:
        raise NotImplementedError(
            "Unlike NumPy, torch.sign is not intended to support complex numbers. Please use"
            " torch.sgn instead."
        )
    return common, common


sign = unary(
    "sign",
    _sign,
    promote=_real_only,
    expr="sign(self)",
    vjp={"self": "zeros_like(g)"},
    doc="−1, 0 or 1.",
)
sgn = unary(
    "sgn",
    _sign,
    expr="sign(self)",
    vjp={"self": "sgn_backward(g, self, result)"},
    doc="x / |x|, 0 at 0.",
)


def _reciprocal_array(a: Any, out: Any = None) -> Any:
    if a.dtype.kind == "c":  # by the rule for quotients: infinity at 0, not NaN
        return np.true_divide(a.dtype.type(1), a, out=out)
    return np.reciprocal(a, out=out)


@fast(_reciprocal_array)
def _reciprocal(xp: Any, a: Any, out: Any = None) -> Any:
    if a.dtype.kind == "c":
        return xp.true_divide(a.dtype.type(1), a, out=out)
    return xp.reciprocal(a, out=out)


reciprocal = unary(
    "reciprocal",
    _reciprocal,
    promote="float",
    expr="1 / self",
    vjp={"self": "-g * conj_of(result * result)"},
    doc="1 / self.",
    autocast="float32:accelerator",
)


def _squared(op: Any, common: dt.dtype) -> tuple[dt.dtype, dt.dtype]:
    # The square is a power with the exponent 2, which makes integers of bools.
    d = dt.int64 if common is dt.bool_ else common
    return d, d


square = unary(
    "square",
    np.square,
    expr="self * self",
    promote=_squared,
    vjp={"self": "g * (2 * conj_of(self))"},
    grad_name="PowBackward0",
    doc="self².",
)


@pointwise(
    "addcmul(Tensor self, Tensor tensor1, Tensor tensor2, *, Scalar value=1) -> Tensor",
    numbers=(),
    expr="self + value * tensor1 * tensor2",
    vjp={
        "self": "g",
        "tensor1": "g * conj_of(tensor2 * value)",
        "tensor2": "g * conj_of(tensor1 * value)",
    },
    autocast="promote:accelerator",
)
def addcmul(xp: Any, a: Any, b: Any, c: Any, value: Any, out: Any = None) -> Any:
    """self + value · tensor1 · tensor2."""
    if a.dtype == np.bool_:
        raise NotImplementedError("\"addcmul_cpu_out\" not implemented for 'Bool'")
    return multiply_add(xp, a, _times(b, value, a.dtype), c, out)


@vjp_helper
def of_floats(divisor: Any) -> Any:
    """`addcdiv` by integers has no gradient: PyTorch divides in place there."""
    if divisor._k.dtype.category < dt.FLOAT:
        raise RuntimeError(
            "result type Float can't be cast to the desired output type"
            f" {divisor._k.dtype.scalar_name}: the gradient of addcdiv by integers"
        )
    return divisor


@pointwise(
    "addcdiv(Tensor self, Tensor tensor1, Tensor tensor2, *, Scalar value=1) -> Tensor",
    numbers=(),
    expr="self + value * tensor1 / tensor2",
    vjp={
        "self": "kept(g, tensor2)",
        "tensor1": "g * conj_of(value / of_floats(tensor2))",
        "tensor2": "-g * conj_of(value * tensor1 / (tensor2 * tensor2))",
    },
    autocast="promote:accelerator",
)
def addcdiv(xp: Any, a: Any, b: Any, c: Any, value: Any, out: Any = None) -> Any:
    """self + value · tensor1 / tensor2."""
    if a.dtype.kind in "iu":
        raise RuntimeError(
            "Integer division with addcdiv is no longer supported, and in a future release addcdiv"
            " will perform a true division of tensor1 and tensor2."
        )
    return xp.add(a, _times(b, value, a.dtype) / c, out=out)


def _times(b: Any, value: Any, dtype: np.dtype) -> Any:
    """b · value, where 1 is left out unless the numbers are complex: see `_add`."""
    return b if value == 1 and dtype.kind != "c" else b * number(value, dtype)


@pointwise(
    "lerp(Tensor self, Tensor end, Tensor weight) -> Tensor",
    expr="self + weight * (end - self)",
    grad_name="LerpBackward0|LerpBackward1",
    vjp={
        "self": "g * (1 - conj_of(weight))",
        "end": "g * conj_of(weight)",
        "weight": "kept(g * conj_of(end - self), weight)",
    },
)
def lerp(xp: Any, a: Any, b: Any, w: Any, out: Any = None) -> Any:
    """self + weight · (end − self), in the form that is exact at both ends."""
    if a.dtype.kind in "iub":
        raise NotImplementedError(f"\"lerp_cpu\" not implemented for '{scalar_name(a)}'")
    near = xp.absolute(w) < 0.5
    base, share = xp.where(near, a, b), xp.where(near, w, w - 1)
    return multiply_add(xp, base, b - a, share, out)


for _new_name, _old in (
    ("multiply", "mul"),
    ("subtract", "sub"),
    ("divide", "div"),
    ("true_divide", "div"),
    ("negative", "neg"),
    ("absolute", "abs"),
):
    alias(_new_name, _old)

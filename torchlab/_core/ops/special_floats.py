"""The anatomy of floating-point numbers: signs, neighbours, exponents, infinities.

Source of the semantics: https://docs.pytorch.org/docs/2.13/torch.html#pointwise-ops
"""

from __future__ import annotations

from typing import Any

import numpy as np

from torchlab._core import dtype as dt
from torchlab._core import layout
from torchlab._core.backends.base import empty_strided
from torchlab._core.backends.meta import MetaArray
from torchlab._core.dispatch.op import binary, composite, face, op, pointwise, unary
from torchlab._core.dispatch.registry import aten, vjp_helper
from torchlab._core.lazy import lazy
from torchlab._core.ops._special import floating
from torchlab._core.ops.kernels import exact, into
from torchlab._core.tensor import Tensor

ml_dtypes = lazy("ml_dtypes")

# ---- signs --------------------------------------------------------------------------------------

binary(
    "copysign.Tensor(Tensor self, Tensor other) -> Tensor",
    exact(lambda xp, a, b, out=None: xp.copysign(a, b, out=out)),  # keeps the sign of NaN
    promote=floating("copysign_cpu"),
    numbers=("other",),
    grad_name="CopysignBackward1|CopysignBackward0",
    vjp={"self": "copysign_backward(g, self, result)", "other": "kept(zeros_like(g), result)"},
    doc="The magnitude of self with the sign of other.",
)


@vjp_helper
def copysign_backward(g: Any, x: Any, result: Any) -> Any:
    """±g, and 0 at 0."""
    return g * aten.where(x == 0, 0.0, result / x)


@exact
def _heaviside(xp: Any, a: Any, values: Any, out: Any = None) -> Any:
    zero = a.dtype.type(0)
    return into(xp.where(a == zero, values, (a > zero).astype(a.dtype)), out)


def _same(op_: Any, common: dt.dtype) -> tuple[dt.dtype, dt.dtype]:
    if common.is_complex:
        raise RuntimeError("heaviside is not yet implemented for complex tensors.")
    return common, common


_heaviside_op = binary(
    "heaviside(Tensor self, Tensor values) -> Tensor",
    _heaviside,
    promote=_same,
    public=False,
    numbers=(),
    vjp={"self": "no_derivative_of('heaviside')", "values": "no_derivative_of('heaviside')"},
    grad_name="NotImplemented",
)


def _check_same(self: Any, values: Any) -> None:
    for name, t, at in (("input", self, 1), ("values", values, 2)):
        if not isinstance(t, Tensor):
            raise TypeError(
                f"heaviside(): argument '{name}' (position {at}) must be Tensor, not"
                f" {type(t).__name__}"
            )
    a, b = self._k.dtype, values._k.dtype
    if a.is_complex or b.is_complex:
        raise RuntimeError("heaviside is not yet implemented for complex tensors.")
    if a is not b:
        raise RuntimeError(
            "heaviside is not yet implemented for tensors with different dtypes: input is"
            f" {a}, values are {b}; convert one of them with .to()"
        )


@face("heaviside")
def heaviside(self: Any, values: Any, *, out: Any = None) -> Any:
    """0 below 0, `values` at 0, 1 above."""
    _check_same(self, values)
    if out is not None:
        if out._k.dtype is not self._k.dtype:
            raise RuntimeError(
                "heaviside is not yet implemented for tensors with different dtypes: input is"
                f" {self._k.dtype}, out is {out._k.dtype}"
            )
        return _heaviside_op.out(self, values, out=out)
    return _heaviside_op.call(self, values)


@face("heaviside_", spaces=())
def heaviside_(self: Any, values: Any) -> Any:
    """In-place `heaviside`."""
    _check_same(self, values)
    return _heaviside_op.inplace(self, values)


# ---- neighbours and exponents -------------------------------------------------------------------


@exact
def _nextafter(xp: Any, a: Any, b: Any, out: Any = None) -> Any:
    return xp.nextafter(a, b, out=out)


binary(
    "nextafter(Tensor self, Tensor other) -> Tensor",
    _nextafter,
    promote=floating("nextafter_cpu", ints=False),
    numbers=(),
    vjp={"self": "masked(g, self != other)", "other": "zeros_like(g)"},
    doc="The next floating-point number after self towards other.",
)


def _dense(a: Any) -> Any:
    """The strides of a pointwise result."""
    strides = tuple(s // a.itemsize for s in a.strides)
    return layout.ti_output_strides(a.shape, [a.shape], [strides])


@op(
    "frexp.Tensor(Tensor self) -> (Tensor mantissa, Tensor exponent)",
    out=True,
    meta=lambda a: tuple(MetaArray(a.shape, d, _dense(a)) for d in (a.dtype, np.dtype(np.int32))),
    vjp={"self": "g0 / exp2(result1)"},
    grad_name="FrexpBackward0",
)
def frexp(xp: Any, a: Any) -> Any:
    """Mantissa in ±[½, 1) and exponent: self = mantissa · 2^exponent."""
    if a.dtype.kind != "f":
        raise RuntimeError(
            f"torch.frexp() only supports floating-point dtypes, but got {a.dtype.name}"
        )
    strides = _dense(a)
    mantissa = empty_strided(a.shape, a.dtype, strides, xp)
    exponent = empty_strided(a.shape, np.dtype(np.int32), strides, xp)
    mantissa[...], exponent[...] = xp.frexp(a)
    return mantissa, exponent


def _ldexp(xp: Any, a: Any, b: Any, out: Any = None) -> Any:
    return xp.multiply(a, xp.exp2(b) if b.dtype.kind == "f" else xp.power(2.0, b), out=out)


binary(
    "ldexp",
    _ldexp,
    promote="float",
    numbers=(),
    vjp={
        "self": "kept(g * conj_of(pow(2.0, other)), result)",
        "other": "g * conj_of(result) * 0.6931471805599453",
    },
    doc="self · 2^other.",
)


def _to_double(*operands: Any) -> list[Any]:
    """Operands as float64, or complex128 if one is complex; numbers stay numbers."""
    kinds = [x._k.dtype if isinstance(x, Tensor) else dt.of_scalar(x) for x in operands]
    wide = dt.complex128 if any(k.is_complex for k in kinds) else dt.float64
    number = complex if wide.is_complex else float
    return [aten.to(x, dtype=wide) if isinstance(x, Tensor) else number(x) for x in operands]


@face("float_power")
def float_power(self: Any, exponent: Any, *, out: Any = None) -> Any:
    """self to the power exponent, computed in float64 or complex128."""
    if not isinstance(self, Tensor) and not isinstance(exponent, Tensor):
        raise TypeError(
            "float_power() received an invalid combination of arguments - got"
            f" ({type(self).__name__}, {type(exponent).__name__}), but one must be a Tensor"
        )
    base, exponent = _to_double(self, exponent)
    if out is None:
        return aten.pow(base, exponent)
    kind = next(x for x in (base, exponent) if isinstance(x, Tensor))._k.dtype
    if out._k.dtype is not kind:
        raise RuntimeError(
            f"the output given to float_power has dtype {out._k.dtype.scalar_name} but the"
            f" operation's result requires dtype {kind.scalar_name}"
        )
    return aten.pow(base, exponent, out=out)


@face("float_power_", spaces=())
def float_power_(self: Any, exponent: Any) -> Any:
    """In-place `float_power`: the tensor must have the result's type already."""
    number = not isinstance(exponent, Tensor)
    kind = dt.of_scalar(exponent) if number else exponent._k.dtype
    wide = dt.complex128 if kind.is_complex or self._k.dtype.is_complex else dt.float64
    if self._k.dtype is not wide:
        raise RuntimeError(
            f"the base given to float_power_ has dtype {self._k.dtype.scalar_name} but the"
            f" operation's result requires dtype {wide.scalar_name}"
        )
    return aten.pow_(self, _to_double(self, exponent)[1])


# ---- infinities and NaN -------------------------------------------------------------------------


def _infinite(name: str, sign: float) -> None:
    def types(op_: Any, common: dt.dtype) -> tuple[dt.dtype, dt.dtype]:
        if common.is_complex:
            raise RuntimeError(f"{name} does not support complex inputs.")
        return common, dt.bool_

    @exact
    def kernel(xp: Any, a: Any, out: Any = None) -> Any:
        return into(a == sign * np.inf if a.dtype.kind not in "iub" else a != a, out)

    word = "+∞" if sign > 0 else "−∞"
    unary(name, kernel, promote=types, inplace=False, doc=f"Whether elements are {word}.")


_infinite("isposinf", 1.0)
_infinite("isneginf", -1.0)


@composite("isreal(Tensor self) -> Tensor")
def isreal(self: Any) -> Any:
    """Whether elements have no imaginary part."""
    if self._k.dtype.is_complex:
        return aten.imag(self) == 0
    return aten.ones_like(self, dtype=dt.bool_)


@exact
def _nan_to_num(xp: Any, a: Any, nan: Any, posinf: Any, neginf: Any, out: Any = None) -> Any:
    if a.dtype.kind == "c":
        r = xp.empty(a.shape, a.dtype)
        r.real = _nan_to_num(xp, a.real, nan, posinf, neginf)
        r.imag = _nan_to_num(xp, a.imag, nan, posinf, neginf)
        return into(r, out)
    if a.dtype.kind in "iub":
        return into(a, out) if out is not None else a.copy()
    limits = (ml_dtypes.finfo if a.dtype.kind not in "fc" else np.finfo)(a.dtype)
    high = limits.max if posinf is None else posinf
    low = limits.min if neginf is None else neginf
    plain = xp.where(xp.isnan(a), a.dtype.type(0 if nan is None else nan), a)
    plain = xp.where(a == np.inf, a.dtype.type(high), plain)
    return into(xp.where(a == -np.inf, a.dtype.type(low), plain), out)


pointwise(
    "nan_to_num(Tensor self, float? nan=None, float? posinf=None, float? neginf=None) -> Tensor",
    numbers=(),
    vjp={"self": "g * isfinite(self)"},
    tags=("pointwise", "real_gradient"),
    doc="NaN and infinities replaced: by 0, the largest and the smallest number by default.",
)(_nan_to_num)

# ---- angles -------------------------------------------------------------------------------------


def _scaled(name: str, factor: float, doc: str) -> None:
    def types(op_: Any, common: dt.dtype) -> tuple[dt.dtype, dt.dtype]:
        if common.is_complex:
            raise RuntimeError(f"{name} is not supported for complex tensors.")
        common = dt.get_default_dtype() if common.category < dt.FLOAT else common
        return common, common

    unary(
        name,
        lambda xp, a, out=None: xp.multiply(a, a.dtype.type(factor), out=out),
        promote=types,
        vjp={"self": f"g * {factor!r}"},
        grad_name=f"{name[:4].title()}{name[4:].title()}Backward0",
        doc=doc,
    )


_scaled("deg2rad", np.pi / 180, "Degrees to radians.")
_scaled("rad2deg", 180 / np.pi, "Radians to degrees.")

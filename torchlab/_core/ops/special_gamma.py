"""The family of the gamma function: polygamma, incomplete and multivariate gamma, zeta.

Source of the semantics: https://docs.pytorch.org/docs/2.13/special.html
"""

from __future__ import annotations

import math
from typing import Any

from torchlab._core import dtype as dt
from torchlab._core.dispatch.op import binary, composite, face, pointwise
from torchlab._core.dispatch.registry import aten
from torchlab._core.ops._special import floating, not_implemented, special
from torchlab._core.ops.kernels import into


def _orders(op: Any, common: dt.dtype) -> tuple[dt.dtype, dt.dtype]:
    if common.is_complex:
        raise not_implemented("polygamma", common)
    if common.category < dt.FLOAT:
        return dt.float64, dt.get_default_dtype()
    return common, common


@pointwise(
    "_polygamma(Tensor self, int order) -> Tensor",
    promote=_orders,
    public=False,
    numbers=(),
    vjp={"self": "g * _polygamma(self, order + 1)"},
    grad_name="PolygammaBackward0",
)
def _polygamma(xp: Any, a: Any, order: int, out: Any = None) -> Any:
    """The derivative of digamma of this order."""
    if order == 1:
        r = _trigamma(xp, a)
    else:
        r = (-1.0) ** (order + 1) * math.factorial(order) * special.zeta(order + 1.0, a)
        r = xp.where(xp.isposinf(a), a.dtype.type("nan"), r)  # where the limit 0 is no value
    return into(r.astype(a.dtype), out)


def _trigamma(xp: Any, a: Any) -> Any:
    # By reflection below ½, the recurrence ψ′(x) = ψ′(x + 1) + 1/x² six times, then four terms of
    # the asymptotic series, in the type of `a`: good to nine digits, and PyTorch's to the bit.
    pi = a.dtype.type(math.pi)
    below = a < 0.5
    sine = xp.sin(pi * a)
    r = xp.where(below, -(pi * pi) / (sine * sine), a.dtype.type(0))
    x = xp.where(below, 1 - a, a)
    for _ in range(6):
        r = r + 1 / (x * x)
        x = x + 1
    y = 1 / (x * x)
    sixth, thirtieth, last = (a.dtype.type(1 / n) for n in (6, 30, 42))
    r = r + (1 + 1 / (2 * x) + y * (sixth - y * (thirtieth - y * last))) / x
    return xp.where(below, -r, r)


def _checked_order(n: int) -> int:
    if n < 0:
        raise RuntimeError(f"polygamma(n, x) does not support negative n, but n is {n}.")
    return n


def _polygamma_method(self: Any, n: int) -> Any:
    """The n-th derivative of `digamma`."""
    return aten.digamma(self) if _checked_order(n) == 0 else _polygamma.call(self, n)


@face("polygamma", method=_polygamma_method, spaces=("torch", "special"))
def polygamma(n: int, input: Any, *, out: Any = None) -> Any:
    """The n-th derivative of `digamma`."""
    if _checked_order(n) == 0:
        return aten.digamma(input, out=out)
    return _polygamma.call(input, n) if out is None else _polygamma.out(input, n, out=out)


@face("polygamma_", spaces=())
def polygamma_(self: Any, n: int) -> Any:
    """In-place `polygamma`."""
    return aten.digamma_(self) if _checked_order(n) == 0 else _polygamma.inplace(self, n)


def _incomplete_kernel(scipy_name: str, at_zero: float) -> Any:
    def kernel(xp: Any, a: Any, x: Any, out: Any = None) -> Any:
        # The limits in one argument hold for PyTorch even if the other is NaN.
        r = getattr(special, scipy_name)(a, x)
        lost = xp.isnan(r)
        r = xp.where(lost & xp.isnan(a) & (x == 0), at_zero, r)
        r = xp.where(lost & xp.isnan(a) & (x == xp.inf), 1 - at_zero, r)
        r = xp.where(lost & xp.isnan(x) & (a == xp.inf), at_zero, r)
        return into(r.astype(a.dtype), out)

    return kernel


def _incomplete(name: str, scipy_name: str, sign: str, doc: str) -> None:
    binary(
        f"{name}(Tensor self, Tensor other) -> Tensor",
        _incomplete_kernel(scipy_name, 0.0 if name == "igamma" else 1.0),
        promote=floating(f"{name}_cpu", ints=False),
        numbers=(),
        vjp={
            "self": f"no_derivative('{name}: input')",
            "other": f"{sign}g * exp((self - 1) * log(other) - other - lgamma(self))",
        },
        doc=doc,
    )


_incomplete("igamma", "gammainc", "", "Regularized lower incomplete gamma function P(self, other).")
_incomplete(
    "igammac", "gammaincc", "-", "Regularized upper incomplete gamma function Q(self, other)."
)


@composite("mvlgamma(Tensor self, int p) -> Tensor", out=True)
def mvlgamma(self: Any, p: int) -> Any:
    """The logarithm of the multivariate gamma function of dimension p."""
    if p < 1:
        raise RuntimeError(f"mvlgamma: p has to be greater than or equal to 1, but it is {p}")
    d = self._k.dtype
    if d.is_complex:
        raise not_implemented("mvlgamma", d)
    if not d.is_floating_point:
        self = aten.to(self, dtype=dt.get_default_dtype())
    steps = aten.arange(p, dtype=self._k.dtype, device=self._k.device) * -0.5
    terms = aten.lgamma(aten.unsqueeze(self, -1) + steps)
    return aten.sum(terms, -1) + p * (p - 1) * (math.log(math.pi) / 4)


@face("mvlgamma_", spaces=())
def mvlgamma_(self: Any, p: int) -> Any:
    """In-place `mvlgamma`."""
    if not self._k.dtype.is_floating_point:
        raise RuntimeError(
            f"mvlgamma: result type Float can't be cast to the desired output type"
            f" {self._k.dtype.scalar_name}"
        )
    return aten.copy_(self, mvlgamma.call(self, p))


def _zeta(xp: Any, x: Any, q: Any, out: Any = None) -> Any:
    r = special.zeta(x, q)
    return into(xp.where((q == xp.inf) & (x != 1), xp.nan, r).astype(x.dtype), out)


binary(
    "zeta(Tensor self, Tensor other) -> Tensor",
    _zeta,
    promote=floating("zeta_cpu", half=False),
    spaces=("special",),
    method=False,
    inplace=False,
    vjp={
        "self": "no_derivative('zeta')",
        "other": "g * (-self * zeta(self + 1, other))",
    },
    grad_name="SpecialZetaBackward2|SpecialZetaBackward0|SpecialZetaBackward1",
    doc="Hurwitz zeta function.",
)

"""Bessel and Airy functions.

Source of the semantics: https://docs.pytorch.org/docs/2.13/special.html

Only i0, i0e, i1 and i1e have derivatives, as in PyTorch.
"""

from __future__ import annotations

from typing import Any

from torchlab._core.dispatch.op import unary
from torchlab._core.dispatch.registry import aten, vjp_helper
from torchlab._core.ops._special import floating, scipy_kernel, special
from torchlab._core.ops.kernels import into

_WITHOUT_DERIVATIVE = {
    # name: (SciPy's name, what the function is)
    "bessel_j0": ("j0", "Bessel function of the first kind of order 0."),
    "bessel_j1": ("j1", "Bessel function of the first kind of order 1."),
    "bessel_y0": ("y0", "Bessel function of the second kind of order 0."),
    "bessel_y1": ("y1", "Bessel function of the second kind of order 1."),
    "modified_bessel_i0": ("i0", "Modified Bessel function of the first kind of order 0."),
    "modified_bessel_i1": ("i1", "Modified Bessel function of the first kind of order 1."),
    "modified_bessel_k0": ("k0", "Modified Bessel function of the second kind of order 0."),
    "modified_bessel_k1": ("k1", "Modified Bessel function of the second kind of order 1."),
    "scaled_modified_bessel_k0": ("k0e", "exp(x) times `modified_bessel_k0`."),
    "scaled_modified_bessel_k1": ("k1e", "exp(x) times `modified_bessel_k1`."),
}


def _declare(name: str, kernel: Any, doc: str) -> Any:
    return unary(
        name,
        kernel,
        promote=floating(f"{name}_cpu", half=False),
        spaces=("special",),
        method=False,
        inplace=False,
        tags=("pointwise", "constant"),
        doc=doc,
    )


for _name, (_scipy, _doc) in _WITHOUT_DERIVATIVE.items():
    _declare(_name, scipy_kernel(_scipy), _doc)


def _airy_ai(xp: Any, a: Any, out: Any = None) -> Any:
    # PyTorch has no value at infinity.
    wide = xp.asarray(a, "float64")
    r = xp.where(xp.isinf(a), xp.nan, special.airy(wide)[0])
    lost = xp.isnan(r) & xp.isfinite(wide)
    if lost.any():
        r = xp.where(lost, _airy_ai_far(xp, xp.where(lost, wide, -1.0)), r)
    return into(r.astype(a.dtype), out)


def _airy_ai_far(xp: Any, x: Any) -> Any:
    """The leading terms of the asymptotic series (https://dlmf.nist.gov/9.7): for |x| so large
    that SciPy gives up."""
    z = xp.absolute(x)
    zeta = 2 / 3 * z * xp.sqrt(z)
    phase = zeta - xp.pi / 4
    wave = xp.cos(phase) + xp.sin(phase) * (5 / 72) / zeta
    return xp.where(x > 0, 0.0, wave / (xp.sqrt(xp.pi) * xp.sqrt(xp.sqrt(z))))


def _spherical_j0(xp: Any, a: Any, out: Any = None) -> Any:
    r = xp.where(xp.isinf(a), 0.0, xp.sinc(xp.asarray(a, "float64") / xp.pi))
    return into(r.astype(a.dtype), out)


_declare("airy_ai", _airy_ai, "Airy function Ai.")
_declare(
    "spherical_bessel_j0", _spherical_j0, "Spherical Bessel function of the first kind, order 0."
)

unary(
    "i0",
    scipy_kernel("i0"),
    promote=floating("i0_vml_cpu"),
    vjp={"self": "g * i1(self)"},
    spaces=("torch", "special"),
    doc="Modified Bessel function of the first kind of order 0.",
)
_FACTS: dict[str, Any] = {"spaces": ("special",), "method": False, "inplace": False}
unary(
    "i0e",
    scipy_kernel("i0e"),
    promote=floating("i0e_cpu"),
    vjp={"self": "g * (i1e(self) - sgn(self) * result)"},
    grad_name="SpecialI0EBackward0",
    doc="exp(−|x|) · i0(x).",
    **_FACTS,
)
unary(
    "i1",
    scipy_kernel("i1"),
    promote=floating("i1_cpu"),
    vjp={"self": "i1_backward(g, self, result)"},
    grad_name="SpecialI1Backward0",
    doc="Modified Bessel function of the first kind of order 1.",
    **_FACTS,
)
unary(
    "i1e",
    scipy_kernel("i1e"),
    promote=floating("i1e_cpu"),
    vjp={"self": "i1e_backward(g, self, result)"},
    grad_name="SpecialI1EBackward0",
    doc="exp(−|x|) · i1(x).",
    **_FACTS,
)


def _away_from_zero(x: Any) -> tuple[Any, Any]:
    """Where x is (nearly) 0, and x with 1 there: what is divided by it stays finite."""
    near = aten.abs(x) <= 1e-16
    return near, aten.where(near, 1.0, x)


@vjp_helper
def i1_backward(g: Any, x: Any, result: Any) -> Any:
    """i0(x) − i1(x) / x, whose limit at 0 is ½."""
    near, safe = _away_from_zero(x)
    return g * aten.where(near, 0.5, aten.i0(safe) - result / safe)


@vjp_helper
def i1e_backward(g: Any, x: Any, result: Any) -> Any:
    """i0e(x) − i1e(x) · (sgn(x) + 1 / x), whose limit at 0 is ½."""
    near, safe = _away_from_zero(x)
    slope = aten.i0e(safe) - result * (aten.sgn(safe) + aten.reciprocal(safe))
    return g * aten.where(near, 0.5, slope)

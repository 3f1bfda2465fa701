"""Example arguments of the special functions and the other pointwise functions beside them."""

from __future__ import annotations

from typing import Any

from tests.core.ops.values import B, F, I

_POSITIVE = F(low=1.2, high=3.0)
_DEGREES = I([[0, 1, 2], [3, 4, 7]])
_POLYNOMIALS = (
    *(f"{shift}chebyshev_polynomial_{k}" for k in "tuvw" for shift in ("", "shifted_")),
    "hermite_polynomial_h",
    "hermite_polynomial_he",
    "laguerre_polynomial_l",
    "legendre_polynomial_p",
)

ARGUMENTS: dict[str, list[tuple[Any, ...]]] = {
    **{name: [(F(), _DEGREES)] for name in _POLYNOMIALS},
    "_div_floor.Tensor": [(F(low=2.1, high=2.7), F(low=0.75, high=0.95))],
    "trunc_divide.Tensor": [(F(low=2.1, high=2.7), F(low=0.75, high=0.95))],
    "copysign.Tensor": [(F(), F(low=-0.9, high=0.9))],
    "erfinv": [(F(low=-0.9, high=0.9),)],
    "frexp.Tensor": [(F(low=1.1, high=1.9),), (F((2, 0)),)],
    "gcd": [(I([4, 6, -9]), I([6, 0, 3]))],
    "lcm": [(I([4, 6, -9]), I([6, 0, 3]))],
    "heaviside": [(F(), F())],
    "i1": [(F(low=0.5, high=3.0),)],
    "igamma": [(I([1, 2, 3]), _POSITIVE)],
    "igammac": [(I([1, 2, 3]), _POSITIVE)],
    "isposinf": [(F(),), (B(),)],
    "logit": [(F(low=0.2, high=0.8),), (F(low=0.2, high=0.8), 0.1)],
    "mvlgamma": [(F(low=2.2, high=4.0), 3)],
    "nan_to_num": [(F(),), (F(), 1.0, 2.0, 3.0)],
    "ndtri": [(F(low=0.1, high=0.9),)],
    "xlog1py": [(F(), F())],
    "xlogy.Tensor": [(F(), F())],
    "zeta": [(I([2, 3, 4]), _POSITIVE)],
}

FLAT = frozenset({"isreal"})  # a composite that gives booleans

"""Orthogonal polynomials of integer degree.

Source of the semantics: https://docs.pytorch.org/docs/2.13/special.html

Degrees are truncated to integers; a negative degree gives 0, degree 0 gives 1 for every x. There
are no derivatives, as in PyTorch.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from torchlab._core.dispatch.op import pointwise
from torchlab._core.ops._special import floating, special
from torchlab._core.ops.kernels import into


def _scipy(name: str) -> Callable[[Any, Any], Any]:
    return lambda n, x: getattr(special, f"eval_{name}")(n, x)


def _chebyshev_v(n: Any, x: Any) -> Any:
    # V(x) = T(2n + 1, y) / y for y = sqrt((1 + x) / 2); below 0 by the reflection to W.
    return np.where(x < 0, np.where(n % 2 == 0, 1, -1) * _half_angle_w(n, -x), _half_angle_v(n, x))


def _chebyshev_w(n: Any, x: Any) -> Any:
    return np.where(x < 0, np.where(n % 2 == 0, 1, -1) * _half_angle_v(n, -x), _half_angle_w(n, x))


def _half_angle_v(n: Any, x: Any) -> Any:
    y = np.sqrt((1 + np.maximum(x, 0)) / 2)
    return special.eval_chebyt(2 * n + 1, y) / y


def _half_angle_w(n: Any, x: Any) -> Any:
    return special.eval_chebyu(2 * n, np.sqrt((1 + np.maximum(x, 0)) / 2))


def _shifted(f: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    return lambda n, x: f(n, 2 * x - 1)


def _lost_by_overflow(f: Any, n: Any, x: Any, r: Any, dtype: np.dtype) -> Any:
    """NaN where the degree two below has left the range of the type: PyTorch's recurrence then
    subtracts infinities."""
    infinite = np.isinf(r.astype(dtype))
    if not infinite.any():
        return r
    below = np.asarray(f(np.maximum(n - 2, 0), x)).astype(dtype)
    return np.where(infinite & (n >= 2) & np.isinf(below), np.nan, r)


# From these degrees on PyTorch says NaN: the values leave the type's range.
_HERMITE_LIMIT = {"float32": 128, "float64": 512}


def _declare(name: str, f: Callable[[Any, Any], Any], letter: str) -> None:
    limited = name.startswith("hermite")

    def kernel(xp: Any, x: Any, n: Any, out: Any = None) -> Any:
        degree = np.asarray(n).astype(np.int64)
        safe = np.maximum(degree, 0)
        if limited:
            top = _HERMITE_LIMIT[x.dtype.name]
            beyond = degree > top
            safe = np.minimum(safe, top)
        wide = np.asarray(x, np.float64)
        r = np.asarray(f(safe, wide), np.float64)
        r = _lost_by_overflow(f, safe, wide, r, x.dtype)
        r = np.where(degree < 0, 0.0, np.where(degree == 0, 1.0, r))
        if limited:
            r = np.where(beyond, np.nan, r)
        return into(r.astype(x.dtype), out)

    kernel.__name__ = name
    pointwise(
        f"{name}(Tensor x, Tensor n) -> Tensor",
        promote=floating(f"{name}_cpu", half=False, wide=False),
        spaces=("special",),
        method=False,
        inplace=False,
        tags=("pointwise", "constant"),
        doc=f"{letter} of degree n at x.",
    )(kernel)


_CHEBYSHEV: dict[str, Callable[[Any, Any], Any]] = {
    "t": _scipy("chebyt"),
    "u": _scipy("chebyu"),
    "v": _chebyshev_v,
    "w": _chebyshev_w,
}
_ORDINALS = {"t": "first", "u": "second", "v": "third", "w": "fourth"}
for _letter, _f in _CHEBYSHEV.items():
    _kind = f"Chebyshev polynomial of the {_ORDINALS[_letter]} kind"
    _declare(f"chebyshev_polynomial_{_letter}", _f, _kind)
    _declare(f"shifted_chebyshev_polynomial_{_letter}", _shifted(_f), f"Shifted {_kind}")
_declare("hermite_polynomial_h", _scipy("hermite"), "Physicists' Hermite polynomial")
_declare("hermite_polynomial_he", _scipy("hermitenorm"), "Probabilists' Hermite polynomial")
_declare("laguerre_polynomial_l", _scipy("laguerre"), "Laguerre polynomial")
_declare("legendre_polynomial_p", _scipy("legendre"), "Legendre polynomial")

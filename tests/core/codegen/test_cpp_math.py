"""The generated mathematics against NumPy in twice the precision, in units in the last place."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from scipy import special

from torchlab._core.codegen import pointwise_kernel

# function: (reference, largest error in units in the last place: measured 2.4 at most)
FLOAT32: dict[str, tuple[Callable[[np.ndarray], np.ndarray], float]] = {
    "exp": (np.exp, 1.5),
    "exp2": (np.exp2, 1.5),
    "expm1": (np.expm1, 2.0),
    "log": (np.log, 1.5),
    "log2": (np.log2, 2.0),
    "log1p": (np.log1p, 3.0),
    "tanh": (np.tanh, 3.0),
    "sigmoid": (special.expit, 3.0),
    "erf": (special.erf, 2.0),
    "rsqrt": (lambda x: 1 / np.sqrt(x), 2.0),
}
FLOAT64: dict[str, tuple[Callable[[np.ndarray], np.ndarray], float]] = {
    "exp": (np.exp, 1.5),
    "tanh": (np.tanh, 3.0),
}


def every_magnitude() -> np.ndarray:
    """One float32 in 50,021 of all bit patterns: NaN, infinities, subnormals among them."""
    return np.arange(0, 2**32, 50_021, dtype=np.uint64).astype(np.uint32).view(np.float32)


def check(name: str, x: np.ndarray, wanted: np.ndarray, bound: float) -> None:
    """`name` of `x` within `bound` units of `wanted`, which has more precision than `x`."""
    kernel = pointwise_kernel(f"{name}(self)", {"self": x.dtype.name}, name=name)
    got = kernel(np.empty_like(x), x)
    with np.errstate(over="ignore"):
        rounded = wanted.astype(x.dtype)
    np.testing.assert_array_equal(np.isnan(got), np.isnan(rounded))
    infinite = np.isinf(rounded)
    np.testing.assert_array_equal(got[infinite], rounded[infinite])
    finite = np.isfinite(rounded)
    unit = np.spacing(np.abs(rounded[finite]))
    error = np.abs(got[finite].astype(wanted.dtype) - wanted[finite]) / unit
    if kernel.language == "python":
        bound = 4.0  # what NumPy promises for its own functions
    assert error.max() <= bound, (x[finite][error.argmax()], error.max())


@pytest.mark.parametrize("name", FLOAT32)
def test_float32(name: str) -> None:
    reference, bound = FLOAT32[name]
    near = np.random.default_rng(0).standard_normal(50_000).astype(np.float32) * 3
    x = np.concatenate([every_magnitude(), near])
    with np.errstate(all="ignore"):
        check(name, x, reference(x.astype(np.float64)), bound)


WIDER = np.finfo(np.longdouble).nmant > 52  # elsewhere nothing can judge float64


@pytest.mark.parametrize("name", FLOAT64 if WIDER else [])
def test_float64(name: str) -> None:
    reference, bound = FLOAT64[name]
    x = np.random.default_rng(0).standard_normal(50_000) * np.array([[1e-3], [1.0], [200.0]])
    x = np.concatenate([x.ravel(), [0.0, -0.0, np.inf, -np.inf, np.nan, 5e-324, 709.7, -745.0]])
    with np.errstate(all="ignore"):
        check(name, x, reference(x.astype(np.longdouble)), bound)


@pytest.mark.parametrize("name", ["tanh", "expm1", "erf", "log1p"])
def test_signed_zeros_stay(name: str) -> None:
    x = np.array([0.0, -0.0], np.float32)
    kernel = pointwise_kernel(f"{name}(self)", {"self": "float32"}, name=name)
    assert list(np.signbit(kernel(np.empty_like(x), x))) == [False, True]

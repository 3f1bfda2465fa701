"""The special and pointwise functions at the edges of their domains, against PyTorch."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import torchlab

torch = pytest.importorskip("torch")

INF, NAN = float("inf"), float("nan")
EDGES = np.array([0.0, -0.0, 1, -1, 0.5, -0.5, 2, -2, 3.3, -3.3, 10, 1e5, INF, -INF, NAN])
PAIRS = tuple(m.ravel() for m in np.meshgrid(EDGES, EDGES))
_PARTS = tuple(m.ravel() for m in np.meshgrid(*2 * [[0.0, -0.0, 1.5, -2.0, INF, -INF, NAN]]))
COMPLEX = np.empty(len(_PARTS[0]), np.complex128)
COMPLEX.real, COMPLEX.imag = _PARTS

SPECIAL = """bessel_j0 bessel_j1 bessel_y0 bessel_y1 digamma entr erf erfc erfcx erfinv exp2 expit
expm1 gammaln i0 i0e i1 i1e log1p log_ndtr logit modified_bessel_i0 modified_bessel_i1
modified_bessel_k0 modified_bessel_k1 ndtr ndtri psi scaled_modified_bessel_k0
scaled_modified_bessel_k1 sinc spherical_bessel_j0""".split()
OF_ONE = "sign sgn signbit deg2rad rad2deg nan_to_num isposinf isneginf isfinite frac trunc".split()
OF_TWO = """copysign nextafter heaviside logaddexp logaddexp2 hypot atan2 fmod maximum fmin xlogy
igamma igammac float_power floor_divide""".split()
OF_COMPLEX = """exp log log2 log10 log1p sqrt rsqrt sin cos tan asin acos atan sinh cosh tanh asinh
acosh atanh sigmoid sgn abs angle square sinc expm1 isfinite isinf isnan nan_to_num""".split()


def _compare(name: str, *arrays: Any, space: str = "") -> None:
    ours, theirs = (getattr(m, space) if space else m for m in (torchlab, torch))
    expected = getattr(theirs, name)(*map(torch.from_numpy, arrays)).numpy()
    found = getattr(ours, name)(*map(torchlab.from_numpy, arrays)).numpy()
    assert found.dtype == expected.dtype
    for part in ("real", "imag"):  # infinite and NaN parts are compared on their own
        np.testing.assert_allclose(
            getattr(found, part), getattr(expected, part), rtol=1e-6, atol=1e-12, err_msg=name
        )


@pytest.mark.parametrize("name", SPECIAL)
def test_special_functions_of_one_number(name: str) -> None:
    _compare(name, EDGES, space="special")


@pytest.mark.parametrize("name", OF_ONE)
def test_functions_of_one_number(name: str) -> None:
    _compare(name, EDGES)


@pytest.mark.parametrize("name", OF_TWO)
def test_functions_of_two_numbers(name: str) -> None:
    _compare(name, *PAIRS)


@pytest.mark.parametrize("name", ["zeta", "xlog1py"])
def test_special_functions_of_two_numbers(name: str) -> None:
    _compare(name, *PAIRS, space="special")


@pytest.mark.parametrize("name", OF_COMPLEX)
def test_functions_of_complex_numbers(name: str) -> None:
    _compare(name, COMPLEX)


GRADIENTS = """exp2 expm1 log log2 log10 log1p sqrt rsqrt sin cos tan asin acos atan sinh cosh tanh
asinh acosh atanh square sigmoid sinc reciprocal""".split()


@pytest.mark.parametrize("name", GRADIENTS)
def test_gradients_of_complex_numbers(name: str) -> None:
    z = np.array([0.3 + 0.4j, -1.2 + 0.7j, -0.6 - 1.5j, 2.1 - 0.2j])
    weights = np.array([1.0, 2j, -1 + 1j, 0.5])
    grads = []
    for m in (torchlab, torch):
        x = m.from_numpy(z).clone().requires_grad_()
        (getattr(m, name)(x) * m.from_numpy(weights)).sum().abs().backward()
        grads.append(x.grad.numpy())
    np.testing.assert_allclose(*grads, rtol=1e-9)


POLYNOMIALS = [n for n in dir(torch.special) if "_polynomial_" in n]


@pytest.mark.parametrize("name", POLYNOMIALS)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_polynomials(name: str, dtype: str) -> None:
    x, n = (
        m.ravel()
        for m in np.meshgrid(
            np.array([-3.0, -1, -0.7, 0, 0.3, 1, 1.5]), np.array([-1.0, 0, 1, 2, 3.7, 8, 20])
        )
    )
    f, g = getattr(torchlab.special, name), getattr(torch.special, name)
    x, n = x.astype(dtype), n.astype(dtype)
    expected = g(torch.from_numpy(x), torch.from_numpy(n)).numpy()
    found = f(torchlab.from_numpy(x), torchlab.from_numpy(n)).numpy()
    rtol = 2e-4 if dtype == "float32" else 1e-9  # PyTorch's recurrence in float32 loses digits
    np.testing.assert_allclose(found, expected, rtol=rtol, atol=rtol)

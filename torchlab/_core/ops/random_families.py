"""Gamma, Dirichlet, binomial and Poisson numbers: PyTorch's for the same seed on the CPU.

The gradients of gamma and Dirichlet numbers are those of implicit reparameterisation: the
derivative of the draw at a fixed value of its cdf.

Sources: M. Figurnov, S. Mohamed, A. Mnih, arXiv:1805.08498; M. Jankowiak, F. Obermeyer,
arXiv:1806.01851; https://docs.pytorch.org/docs/2.13/torch.html#random-sampling
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from torchlab._core.backends.meta import MetaArray
from torchlab._core.dispatch.op import op
from torchlab._core.generator import Generator, default_generator
from torchlab._core.lazy import lazy
from torchlab._core.ops import _rejection
from torchlab._core.ops._places import scalar_name

special = lazy("scipy.special")


def _generator(generator: Any) -> Generator:
    if generator is None:
        return default_generator
    if not isinstance(generator, Generator):
        raise TypeError(
            f"argument 'generator' must be torch.Generator, not {type(generator).__name__}"
        )
    return generator


def _host(xp: Any, a: Any) -> np.ndarray:
    return a if xp is np else xp.asnumpy(a)


def _float_or_double(name: str, a: Any) -> None:
    if a.dtype.name not in ("float32", "float64"):
        raise NotImplementedError(
            f"\"{name}\" not implemented for '{scalar_name(a)}'; convert to float32 or float64"
        )


def _same(a: Any, generator: Any = None) -> MetaArray:
    return MetaArray(a.shape, a.dtype)


@op(
    "_standard_gamma(Tensor self, Generator? generator=None) -> Tensor",
    method=False,
    half=False,
    meta=_same,
    tags=("random",),
    vjp={"self": "g * _standard_gamma_grad(self, result)"},
)
def _standard_gamma(xp: Any, a: Any, generator: Any = None) -> Any:
    """Gamma numbers of rate 1 with the shapes that `input` holds."""
    _float_or_double("gamma_cpu", a)
    values = _rejection.standard_gamma(_generator(generator), _host(xp, a))
    return xp.asarray(values.astype(a.dtype))


@op(
    "_sample_dirichlet(Tensor self, Generator? generator=None) -> Tensor",
    method=False,
    half=False,
    meta=_same,
    tags=("random",),
    vjp={"self": "no_derivative_of('_sample_dirichlet')"},
    grad_name="NotImplemented",
)
def _sample_dirichlet(xp: Any, a: Any, generator: Any = None) -> Any:
    """Points of the simplex for the concentrations along the last dimension."""
    _float_or_double("dirichlet", a)
    alpha = _host(xp, a).astype(np.float64)
    gammas = _rejection.standard_gamma(_generator(generator), alpha)
    # From 8 on, PyTorch adds in another order: the last bit of float64 may differ.
    total = gammas.sum(-1, keepdims=True)
    points = (gammas / total).astype(a.dtype)
    limits = np.finfo(a.dtype)
    # Inside the open interval: logarithms of both x and 1 - x stay finite.
    return xp.asarray(points.clip(limits.tiny, 1 - limits.epsneg))


@op(
    "binomial(Tensor count, Tensor prob, Generator? generator=None) -> Tensor",
    method=False,
    half=False,
    meta=lambda count, prob, generator=None: MetaArray(
        np.broadcast_shapes(count.shape, prob.shape), count.dtype
    ),
    tags=("random",),
    vjp={"prob": "no_derivative_of('binomial')"},
    grad_name="NotImplemented",
)
def binomial(xp: Any, count: Any, prob: Any, generator: Any = None) -> Any:
    """Numbers of successes in `count` trials of probability `prob` (both floating point)."""
    for name, a in (("count", count), ("prob", prob)):
        if a.dtype.kind not in "fV":
            raise ValueError(
                f"binomial only supports floating-point dtypes for {name}, got: {scalar_name(a)}"
            )
    if count.dtype != prob.dtype:
        raise RuntimeError(f"Found dtype {scalar_name(prob)} but expected {scalar_name(count)}")
    _float_or_double("binomial_cpu", count)
    n, p = np.broadcast_arrays(_host(xp, count), _host(xp, prob))
    return xp.asarray(_rejection.binomial(_generator(generator), n, p).astype(count.dtype))


@op(
    "poisson(Tensor self, Generator? generator=None) -> Tensor",
    method=False,
    half=False,
    meta=_same,
    tags=("random",),
    vjp={"self": "zeros_like(self)"},
)
def poisson(xp: Any, a: Any, generator: Any = None) -> Any:
    """Poisson numbers with the rates that `input` holds."""
    if a.dtype.kind not in "fV":
        raise NotImplementedError(
            f"\"poisson_cpu\" not implemented for '{scalar_name(a)}'; convert the rates to a"
            " floating-point dtype"
        )
    rate = _host(xp, a).astype(np.float64)
    if not (rate >= 0).all():
        raise RuntimeError("invalid Poisson rate, expected rate to be non-negative")
    return xp.asarray(_generator(generator).poisson(rate).astype(a.dtype))


# Gradients


def _slope_in_parameter(
    smaller: Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]], at: np.ndarray
) -> np.ndarray:
    """The derivative, at the parameter `at`, of a cdf of which `smaller` gives both tails: central
    differences of sixth order, on the tail that is smaller there (so that it keeps its relative
    precision). The step is a hundredth of the scale on which a gamma or beta cdf varies."""
    step = 1e-2 * at / np.sqrt(1 + at)
    lower, upper = smaller(at)
    low = lower <= upper
    total = np.zeros_like(at)
    for k, weight in ((1, 3 / 4), (2, -3 / 20), (3, 1 / 60)):
        plus, minus = smaller(at + k * step), smaller(at - k * step)
        total += weight * np.where(low, plus[0] - minus[0], minus[1] - plus[1])
    return total / step


@op(
    "_standard_gamma_grad(Tensor self, Tensor output) -> Tensor",
    method=False,
    half=False,
    meta=lambda a, output: MetaArray(a.shape, a.dtype),
)
def _standard_gamma_grad(xp: Any, a: Any, output: Any) -> Any:
    """d output / d self of gamma numbers `output` with shapes `self`, at fixed cdf."""
    _float_or_double("_standard_gamma_grad_cpu", a)
    alpha, x = _host(xp, a).astype(np.float64), _host(xp, output).astype(np.float64)
    slope = _slope_in_parameter(
        lambda at: (special.gammainc(at, x), special.gammaincc(at, x)), alpha
    )
    density = np.exp(special.xlogy(alpha - 1, x) - x - special.gammaln(alpha))
    return xp.asarray((-slope / density).astype(a.dtype))


@op(
    "_dirichlet_grad(Tensor x, Tensor alpha, Tensor total) -> Tensor",
    method=False,
    half=False,
    meta=lambda x, alpha, total: MetaArray(x.shape, x.dtype),
)
def _dirichlet_grad(xp: Any, x: Any, alpha: Any, total: Any) -> Any:
    """(d x / d alpha) / (1 - x) of a coordinate x ~ Beta(alpha, total - alpha), at fixed cdf and
    fixed total - alpha: what the gradient of Dirichlet numbers is made of."""
    _float_or_double("_dirichlet_grad_cpu", x)
    value = _host(xp, x).astype(np.float64)
    a = _host(xp, alpha).astype(np.float64)
    b = _host(xp, total).astype(np.float64) - a
    slope = _slope_in_parameter(
        lambda at: (special.betainc(at, b, value), special.betaincc(at, b, value)), a
    )
    log_density = (
        special.xlogy(a - 1, value) + special.xlog1py(b, -value) - special.betaln(a, b)
    )  # times (1 - x), the divisor
    return xp.asarray((-slope / np.exp(log_density)).astype(x.dtype))

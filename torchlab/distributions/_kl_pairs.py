"""KL(p ‖ q) between different families: minus the entropy of p, minus E_p[log q].

Source: https://docs.pytorch.org/docs/2.13/distributions.html#module-torch.distributions.kl
"""

from __future__ import annotations

import math
from typing import Any

from torchlab._core.dispatch.registry import aten
from torchlab._core.tensor import Tensor
from torchlab.distributions._kl_registry import register_kl
from torchlab.distributions.bernoulli import Bernoulli
from torchlab.distributions.beta import Beta
from torchlab.distributions.binomial import Binomial
from torchlab.distributions.continuous_bernoulli import ContinuousBernoulli
from torchlab.distributions.exponential import Exponential
from torchlab.distributions.gamma import Gamma
from torchlab.distributions.gumbel import Gumbel
from torchlab.distributions.laplace import Laplace
from torchlab.distributions.normal import Normal
from torchlab.distributions.pareto import Pareto
from torchlab.distributions.poisson import Poisson
from torchlab.distributions.uniform import Uniform
from torchlab.distributions.utils import euler_constant

# Pairs where p gives weight to what q excludes; the result is like this parameter of p.
_INFINITE = (
    (Beta, "concentration1", (Pareto,)),
    (ContinuousBernoulli, "probs", (Pareto,)),
    (Exponential, "rate", (Beta, ContinuousBernoulli, Pareto, Uniform)),
    (Gamma, "concentration", (Beta, ContinuousBernoulli, Pareto, Uniform)),
    (Gumbel, "loc", (Beta, ContinuousBernoulli, Exponential, Gamma, Pareto, Uniform)),
    (Laplace, "loc", (Beta, ContinuousBernoulli, Exponential, Gamma, Pareto, Uniform)),
    (Normal, "loc", (Beta, ContinuousBernoulli, Exponential, Gamma, Pareto, Uniform)),
    (Pareto, "scale", (Beta, ContinuousBernoulli, Uniform)),
    (Poisson, "rate", (Bernoulli, Binomial)),
)


def _infinite(parameter: str) -> Any:
    return lambda p, q: aten.full_like(getattr(p, parameter), math.inf)


for _p, _parameter, _others in _INFINITE:
    for _q in _others:
        register_kl(_p, _q)(_infinite(_parameter))


@register_kl(Beta, Normal)
@register_kl(ContinuousBernoulli, Normal)
@register_kl(Exponential, Normal)
@register_kl(Gamma, Normal)
@register_kl(Gumbel, Normal)
@register_kl(Laplace, Normal)
@register_kl(Uniform, Normal)
def _kl_to_normal(p: Any, q: Any) -> Tensor:
    squared = q.scale.pow(2)
    distance = p.variance + (p.mean - q.loc).pow(2)
    return -p.entropy() + 0.5 * (2 * math.pi * squared).log() + distance / (2 * squared)


@register_kl(Pareto, Normal)
def _kl_pareto_normal(p: Any, q: Any) -> Tensor:
    # Means and variances that are infinite would give inf - inf on the way.
    return _kl_to_normal(p, q).masked_fill(p.alpha <= 2, math.inf)


@register_kl(Beta, Exponential)
@register_kl(ContinuousBernoulli, Exponential)
@register_kl(Gamma, Exponential)
def _kl_to_exponential(p: Any, q: Any) -> Tensor:
    return -p.entropy() - q.rate.log() + q.rate * p.mean


@register_kl(Pareto, Exponential)
def _kl_pareto_exponential(p: Any, q: Any) -> Tensor:
    return _kl_to_exponential(p, q).masked_fill(p.alpha <= 1, math.inf)


def _kl_to_gamma(p: Any, q: Any, mean_log: Tensor) -> Tensor:
    """With E_p[log x] given."""
    log_norm = q.concentration.lgamma() - q.concentration * q.rate.log()
    return -p.entropy() + log_norm - (q.concentration - 1) * mean_log + q.rate * p.mean


@register_kl(Beta, Gamma)
def _kl_beta_gamma(p: Any, q: Any) -> Tensor:
    total = p.concentration1 + p.concentration0
    return _kl_to_gamma(p, q, p.concentration1.digamma() - total.digamma())


@register_kl(Exponential, Gamma)
def _kl_exponential_gamma(p: Any, q: Any) -> Tensor:
    return _kl_to_gamma(p, q, -euler_constant - p.rate.log())


@register_kl(Pareto, Gamma)
def _kl_pareto_gamma(p: Any, q: Any) -> Tensor:
    kl = _kl_to_gamma(p, q, p.alpha.reciprocal() + p.scale.log())
    return kl.masked_fill(p.alpha <= 1, math.inf)


@register_kl(Uniform, Gamma)
def _kl_uniform_gamma(p: Any, q: Any) -> Tensor:
    width = p.high - p.low
    mean_log = (_x_log_x(p.high) - _x_log_x(p.low) - width) / width
    return _kl_to_gamma(p, q, mean_log).masked_fill(p.low < q.support.lower_bound, math.inf)


def _x_log_x(x: Tensor) -> Tensor:
    return aten.xlogy(x, x)


@register_kl(Bernoulli, Poisson)
def _kl_bernoulli_poisson(p: Any, q: Any) -> Tensor:
    return -p.entropy() - (p.probs * q.rate.log() - q.rate)


def _kl_to_continuous_bernoulli(p: Any, q: Any) -> Tensor:
    return -p.entropy() - p.mean * q.logits - aten.log1p(-q.probs) - q._cont_bern_log_norm()


@register_kl(Beta, ContinuousBernoulli)
def _kl_beta_continuous_bernoulli(p: Any, q: Any) -> Tensor:
    return _kl_to_continuous_bernoulli(p, q)


@register_kl(Uniform, ContinuousBernoulli)
def _kl_uniform_continuous_bernoulli(p: Any, q: Any) -> Tensor:
    outside = (p.high > q.support.upper_bound) | (p.low < q.support.lower_bound)
    return _kl_to_continuous_bernoulli(p, q).masked_fill(outside, math.inf)


@register_kl(Beta, Uniform)
@register_kl(ContinuousBernoulli, Uniform)
def _kl_to_uniform(p: Any, q: Any) -> Tensor:
    result = -p.entropy() + (q.high - q.low).log()
    outside = (q.low > p.support.lower_bound) | (q.high < p.support.upper_bound)
    return result.masked_fill(outside, math.inf)


def _kl_to_gumbel(p: Any, q: Any, mean_exp: Tensor) -> Tensor:
    """With E_p[exp(-x / q.scale)] given."""
    ratio = q.loc / q.scale
    linear = p.mean / q.scale - ratio
    return -p.entropy() + q.scale.log() + linear + ratio.exp() * mean_exp


@register_kl(Exponential, Gumbel)
def _kl_exponential_gumbel(p: Any, q: Any) -> Tensor:
    product = p.rate * q.scale
    return _kl_to_gumbel(p, q, product / (product + 1))


@register_kl(Gamma, Gumbel)
def _kl_gamma_gumbel(p: Any, q: Any) -> Tensor:
    product = p.rate * q.scale
    return _kl_to_gumbel(p, q, (1 + product.reciprocal()).pow(-p.concentration))


@register_kl(Normal, Gumbel)
def _kl_normal_gumbel(p: Any, q: Any) -> Tensor:
    mean_exp = aten.exp(-p.loc / q.scale + 0.5 * (p.scale / q.scale).pow(2))
    return _kl_to_gumbel(p, q, mean_exp)


@register_kl(Uniform, Gumbel)
def _kl_uniform_gumbel(p: Any, q: Any) -> Tensor:
    difference = aten.exp(-p.low / q.scale) - aten.exp(-p.high / q.scale)
    return _kl_to_gumbel(p, q, q.scale * difference / (p.high - p.low))


@register_kl(Normal, Laplace)
def _kl_normal_laplace(p: Any, q: Any) -> Tensor:
    distance = p.loc - q.loc
    scaled = distance / p.scale
    # E|x - q.loc|: the mean of a folded normal variable
    t1 = math.sqrt(2 / math.pi) * p.scale * aten.exp(-0.5 * scaled.pow(2))
    t2 = distance * aten.erf(math.sqrt(0.5) * scaled)
    return -p.entropy() + (2 * q.scale).log() + (t1 + t2) / q.scale


@register_kl(Uniform, Beta)
def _kl_uniform_beta(p: Any, q: Any) -> Tensor:
    width = p.high - p.low
    mean_log = (_x_log_x(p.high) - _x_log_x(p.low) - width) / width
    mean_log1m = (_x_log_x(1 - p.low) - _x_log_x(1 - p.high) - width) / width
    a, b = q.concentration1, q.concentration0
    log_beta = a.lgamma() + b.lgamma() - (a + b).lgamma()
    result = -width.log() + log_beta - (a - 1) * mean_log - (b - 1) * mean_log1m
    outside = (p.high > q.support.upper_bound) | (p.low < q.support.lower_bound)
    return result.masked_fill(outside, math.inf)


@register_kl(Uniform, Exponential)
def _kl_uniform_exponential(p: Any, q: Any) -> Tensor:
    result = q.rate * p.mean - ((p.high - p.low) * q.rate).log()
    return result.masked_fill(p.low < q.support.lower_bound, math.inf)


@register_kl(Uniform, Pareto)
def _kl_uniform_pareto(p: Any, q: Any) -> Tensor:
    width = p.high - p.low
    mean_log = (_x_log_x(p.high) - _x_log_x(p.low) - width) / width
    log_norm = (q.alpha * q.scale.pow(q.alpha) * width).log()
    result = (q.alpha + 1) * mean_log - log_norm
    return result.masked_fill(p.low < q.support.lower_bound, math.inf)

"""KL(p ‖ q) of two distributions of one family.

Source: https://docs.pytorch.org/docs/2.13/distributions.html#module-torch.distributions.kl
"""

from __future__ import annotations

import math
from typing import Any

from torchlab._core.dispatch.registry import aten
from torchlab._core.tensor import Tensor
from torchlab.autograd.api import grad
from torchlab.distributions._gaussian import (
    batch_mahalanobis,
    half_log_det,
    lowrank_logdet,
    lowrank_mahalanobis,
    solve_lower,
    trace_of_squares,
)
from torchlab.distributions._kl_registry import kl_divergence, register_kl
from torchlab.distributions.bernoulli import Bernoulli
from torchlab.distributions.beta import Beta
from torchlab.distributions.binomial import Binomial
from torchlab.distributions.categorical import Categorical
from torchlab.distributions.cauchy import Cauchy
from torchlab.distributions.continuous_bernoulli import ContinuousBernoulli
from torchlab.distributions.dirichlet import Dirichlet
from torchlab.distributions.exp_family import ExponentialFamily
from torchlab.distributions.exponential import Exponential
from torchlab.distributions.gamma import Gamma
from torchlab.distributions.geometric import Geometric
from torchlab.distributions.gumbel import Gumbel
from torchlab.distributions.half_normal import HalfNormal
from torchlab.distributions.independent import Independent
from torchlab.distributions.laplace import Laplace
from torchlab.distributions.lowrank_multivariate_normal import LowRankMultivariateNormal
from torchlab.distributions.multivariate_normal import MultivariateNormal
from torchlab.distributions.normal import Normal
from torchlab.distributions.one_hot_categorical import OneHotCategorical
from torchlab.distributions.pareto import Pareto
from torchlab.distributions.poisson import Poisson
from torchlab.distributions.transformed_distribution import TransformedDistribution
from torchlab.distributions.uniform import Uniform
from torchlab.distributions.utils import _sum_rightmost, euler_constant


@register_kl(Bernoulli, Bernoulli)
def _kl_bernoulli_bernoulli(p: Any, q: Any) -> Tensor:
    t1 = p.probs * (aten.softplus(-q.logits) - aten.softplus(-p.logits))
    t1 = t1.masked_fill(q.probs == 0, math.inf).masked_fill(p.probs == 0, 0)
    t2 = (1 - p.probs) * (aten.softplus(q.logits) - aten.softplus(p.logits))
    t2 = t2.masked_fill(q.probs == 1, math.inf).masked_fill(p.probs == 1, 0)
    return t1 + t2


@register_kl(Beta, Beta)
def _kl_beta_beta(p: Any, q: Any) -> Tensor:
    sum_p = p.concentration1 + p.concentration0
    sum_q = q.concentration1 + q.concentration0
    t1 = q.concentration1.lgamma() + q.concentration0.lgamma() + sum_p.lgamma()
    t2 = p.concentration1.lgamma() + p.concentration0.lgamma() + sum_q.lgamma()
    t3 = (p.concentration1 - q.concentration1) * aten.digamma(p.concentration1)
    t4 = (p.concentration0 - q.concentration0) * aten.digamma(p.concentration0)
    t5 = (sum_q - sum_p) * aten.digamma(sum_p)
    return t1 - t2 + t3 + t4 + t5


@register_kl(Binomial, Binomial)
def _kl_binomial_binomial(p: Any, q: Any) -> Tensor:
    if (p.total_count < q.total_count).any():
        raise NotImplementedError(
            "KL between Binomials where q.total_count > p.total_count is not implemented"
        )
    kl = p.total_count * (p.probs * (p.logits - q.logits) + (-p.probs).log1p() - (-q.probs).log1p())
    return kl.masked_fill(p.total_count > q.total_count, math.inf)


@register_kl(Categorical, Categorical)
def _kl_categorical_categorical(p: Any, q: Any) -> Tensor:
    t = p.probs * (p.logits - q.logits)
    t = t.masked_fill((q.probs == 0).expand_as(t), math.inf)
    return t.masked_fill((p.probs == 0).expand_as(t), 0).sum(-1)


@register_kl(ContinuousBernoulli, ContinuousBernoulli)
def _kl_continuous_bernoulli_continuous_bernoulli(p: Any, q: Any) -> Tensor:
    t1 = p.mean * (p.logits - q.logits)
    t2 = p._cont_bern_log_norm() + aten.log1p(-p.probs)
    t3 = -q._cont_bern_log_norm() - aten.log1p(-q.probs)
    return t1 + t2 + t3


@register_kl(Dirichlet, Dirichlet)
def _kl_dirichlet_dirichlet(p: Any, q: Any) -> Tensor:
    sum_p, sum_q = p.concentration.sum(-1), q.concentration.sum(-1)
    t1 = sum_p.lgamma() - sum_q.lgamma()
    t2 = (p.concentration.lgamma() - q.concentration.lgamma()).sum(-1)
    t3 = p.concentration - q.concentration
    t4 = p.concentration.digamma() - sum_p.digamma().unsqueeze(-1)
    return t1 - t2 + (t3 * t4).sum(-1)


@register_kl(Exponential, Exponential)
def _kl_exponential_exponential(p: Any, q: Any) -> Tensor:
    ratio = q.rate / p.rate
    return -ratio.log() + ratio - 1


@register_kl(ExponentialFamily, ExponentialFamily)
def _kl_expfamily_expfamily(p: Any, q: Any) -> Tensor:
    """The Bregman divergence of the log normaliser at the natural parameters."""
    if type(p) is not type(q):
        raise NotImplementedError(
            "The cross KL-divergence between different exponential families cannot be computed "
            "using Bregman divergences"
        )
    p_params = [v.detach().requires_grad_() for v in p._natural_params]
    q_params = q._natural_params
    normalizer = p._log_normalizer(*p_params)
    gradients = grad(normalizer.sum(), p_params, create_graph=True)
    result = q._log_normalizer(*q_params) - normalizer
    for a, b, g in zip(p_params, q_params, gradients, strict=True):
        term = (b - a) * g
        result = result - _sum_rightmost(term, len(q.event_shape))
    return result


@register_kl(Gamma, Gamma)
def _kl_gamma_gamma(p: Any, q: Any) -> Tensor:
    t1 = q.concentration * (p.rate / q.rate).log()
    t2 = aten.lgamma(q.concentration) - aten.lgamma(p.concentration)
    t3 = (p.concentration - q.concentration) * aten.digamma(p.concentration)
    t4 = (q.rate - p.rate) * (p.concentration / p.rate)
    return t1 + t2 + t3 + t4


@register_kl(Gumbel, Gumbel)
def _kl_gumbel_gumbel(p: Any, q: Any) -> Tensor:
    ratio = p.scale / q.scale
    to_q, to_p = q.loc / q.scale, p.loc / q.scale
    t1 = -ratio.log() - to_q + to_p
    t2 = ratio * euler_constant
    t3 = aten.exp(to_q + (1 + ratio).lgamma() - to_p)
    return t1 + t2 + t3 - (1 + euler_constant)


@register_kl(Geometric, Geometric)
def _kl_geometric_geometric(p: Any, q: Any) -> Tensor:
    return -p.entropy() - aten.log1p(-q.probs) / p.probs - q.logits


@register_kl(HalfNormal, HalfNormal)
def _kl_halfnormal_halfnormal(p: Any, q: Any) -> Tensor:
    return _kl_normal_normal(p.base_dist, q.base_dist)


@register_kl(Laplace, Laplace)
def _kl_laplace_laplace(p: Any, q: Any) -> Tensor:
    ratio = p.scale / q.scale
    distance = (p.loc - q.loc).abs()
    return -ratio.log() + distance / q.scale + ratio * aten.exp(-distance / p.scale) - 1


@register_kl(LowRankMultivariateNormal, LowRankMultivariateNormal)
def _kl_lowrankmultivariatenormal_lowrankmultivariatenormal(p: Any, q: Any) -> Tensor:
    _check_events("Low Rank Multivariate Normals", p, q)
    qw, qd, qc = q._unbroadcasted_cov_factor, q._unbroadcasted_cov_diag, q._capacitance_tril
    pw, pd = p._unbroadcasted_cov_factor, p._unbroadcasted_cov_diag
    log_dets = lowrank_logdet(qw, qd, qc) - lowrank_logdet(pw, pd, p._capacitance_tril)
    distance = lowrank_mahalanobis(qw, qd, q.loc - p.loc, qc)
    # trace((D⁻¹ - D⁻¹ W C⁻¹ Wᵀ D⁻¹) (P Pᵀ + E)), of the Woodbury identity
    a = solve_lower(qc, qw.mT / qd.unsqueeze(-2))
    traces = (
        (pd / qd).sum(-1)
        + trace_of_squares(pw * qd.rsqrt().unsqueeze(-1))
        - trace_of_squares(a * pd.sqrt().unsqueeze(-2))
        - trace_of_squares(a.matmul(pw))
    )
    return 0.5 * (log_dets + distance + traces - p.event_shape[0])


@register_kl(MultivariateNormal, LowRankMultivariateNormal)
def _kl_multivariatenormal_lowrankmultivariatenormal(p: Any, q: Any) -> Tensor:
    _check_events("(Low Rank) Multivariate Normals", p, q)
    qw, qd, qc = q._unbroadcasted_cov_factor, q._unbroadcasted_cov_diag, q._capacitance_tril
    lower = p._unbroadcasted_scale_tril
    log_dets = lowrank_logdet(qw, qd, qc) - 2 * half_log_det(lower)
    distance = lowrank_mahalanobis(qw, qd, q.loc - p.loc, qc)
    a = solve_lower(qc, qw.mT / qd.unsqueeze(-2))
    traces = trace_of_squares(lower * qd.rsqrt().unsqueeze(-1)) - trace_of_squares(a.matmul(lower))
    return 0.5 * (log_dets + distance + traces - p.event_shape[0])


@register_kl(LowRankMultivariateNormal, MultivariateNormal)
def _kl_lowrankmultivariatenormal_multivariatenormal(p: Any, q: Any) -> Tensor:
    _check_events("(Low Rank) Multivariate Normals", p, q)
    lower = q._unbroadcasted_scale_tril
    pw, pd = p._unbroadcasted_cov_factor, p._unbroadcasted_cov_diag
    log_dets = 2 * half_log_det(lower) - lowrank_logdet(pw, pd, p._capacitance_tril)
    distance = batch_mahalanobis(lower, q.loc - p.loc)
    batch = aten.broadcast_shapes(tuple(lower.shape)[:-2], tuple(pw.shape)[:-2])
    n = p.event_shape[0]
    matrices = lower.expand((*batch, n, n))
    a = solve_lower(matrices, pw.expand((*batch, n, pw.size(-1))))
    b = solve_lower(matrices, aten.diag_embed(pd.sqrt()).expand((*batch, n, n)))
    return 0.5 * (log_dets + distance + trace_of_squares(a) + trace_of_squares(b) - n)


@register_kl(MultivariateNormal, MultivariateNormal)
def _kl_multivariatenormal_multivariatenormal(p: Any, q: Any) -> Tensor:
    _check_events("Multivariate Normals", p, q)
    p_lower, q_lower = p._unbroadcasted_scale_tril, q._unbroadcasted_scale_tril
    log_dets = half_log_det(q_lower) - half_log_det(p_lower)
    batch = aten.broadcast_shapes(tuple(q_lower.shape)[:-2], tuple(p_lower.shape)[:-2])
    n = p.event_shape[0]
    a = solve_lower(q_lower.expand((*batch, n, n)), p_lower.expand((*batch, n, n)))
    distance = batch_mahalanobis(q_lower, q.loc - p.loc)
    return log_dets + 0.5 * (trace_of_squares(a) + distance - n)


def _check_events(kind: str, p: Any, q: Any) -> None:
    if p.event_shape != q.event_shape:
        raise ValueError(
            f"KL-divergence between two {kind} with different event shapes cannot be computed"
        )


@register_kl(Normal, Normal)
def _kl_normal_normal(p: Any, q: Any) -> Tensor:
    ratio = (p.scale / q.scale).pow(2)
    distance = ((p.loc - q.loc) / q.scale).pow(2)
    return 0.5 * (ratio + distance - 1 - ratio.log())


@register_kl(OneHotCategorical, OneHotCategorical)
def _kl_onehotcategorical_onehotcategorical(p: Any, q: Any) -> Tensor:
    return _kl_categorical_categorical(p._categorical, q._categorical)


@register_kl(Pareto, Pareto)
def _kl_pareto_pareto(p: Any, q: Any) -> Tensor:
    ratio = q.alpha / p.alpha
    result = q.alpha * (p.scale / q.scale).log() - ratio.log() + ratio - 1
    return result.masked_fill(p.support.lower_bound < q.support.lower_bound, math.inf)


@register_kl(Poisson, Poisson)
def _kl_poisson_poisson(p: Any, q: Any) -> Tensor:
    return p.rate * (p.rate.log() - q.rate.log()) - (p.rate - q.rate)


@register_kl(TransformedDistribution, TransformedDistribution)
def _kl_transformed_transformed(p: Any, q: Any) -> Tensor:
    if p.transforms != q.transforms:
        raise NotImplementedError
    if p.event_shape != q.event_shape:
        raise NotImplementedError
    return kl_divergence(p.base_dist, q.base_dist)


@register_kl(Uniform, Uniform)
def _kl_uniform_uniform(p: Any, q: Any) -> Tensor:
    result = ((q.high - q.low) / (p.high - p.low)).log()
    return result.masked_fill((q.low > p.low) | (q.high < p.high), math.inf)


@register_kl(Independent, Independent)
def _kl_independent_independent(p: Any, q: Any) -> Tensor:
    if p.reinterpreted_batch_ndims != q.reinterpreted_batch_ndims:
        raise NotImplementedError
    return _sum_rightmost(kl_divergence(p.base_dist, q.base_dist), p.reinterpreted_batch_ndims)


@register_kl(Cauchy, Cauchy)
def _kl_cauchy_cauchy(p: Any, q: Any) -> Tensor:
    # Source: F. Chyzak, F. Nielsen, arXiv:1905.10965
    t1 = ((p.scale + q.scale).pow(2) + (p.loc - q.loc).pow(2)).log()
    return t1 - (4 * p.scale * q.scale).log()

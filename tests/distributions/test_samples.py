"""Draws: they follow the distribution, and their gradients are those of the quantiles."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import stats

import torchlab
import torchlab.distributions as D
from torchlab.autograd import gradcheck


def T(x: Any, grad: bool = False) -> Any:
    return torchlab.tensor(x, dtype=torchlab.float64, requires_grad=grad)


CONTINUOUS = [
    (D.Beta(T(0.6), T(1.5)), stats.beta(0.6, 1.5)),
    (D.Cauchy(T(0.5), T(2.0)), stats.cauchy(0.5, 2)),
    (D.Chi2(T(3.0)), stats.chi2(3)),
    (D.Exponential(T(1.7)), stats.expon(scale=1 / 1.7)),
    (D.FisherSnedecor(T(4.0), T(7.0)), stats.f(4, 7)),
    (D.Gamma(T(0.3), T(0.7)), stats.gamma(0.3, scale=1 / 0.7)),
    (D.Gamma(T(2.3), T(0.7)), stats.gamma(2.3, scale=1 / 0.7)),
    (D.Gumbel(T(0.5), T(2.0)), stats.gumbel_r(0.5, 2)),
    (D.HalfCauchy(T(2.0)), stats.halfcauchy(scale=2)),
    (D.InverseGamma(T(2.3), T(0.7)), stats.invgamma(2.3, scale=0.7)),
    (D.Laplace(T(0.5), T(2.0)), stats.laplace(0.5, 2)),
    (D.LogNormal(T(0.5), T(0.8)), stats.lognorm(s=0.8, scale=np.exp(0.5))),
    (D.Normal(T(0.5), T(2.0)), stats.norm(0.5, 2)),
    (D.Pareto(T(1.5), T(3.0)), stats.pareto(3, scale=1.5)),
    (D.StudentT(T(5.0), T(0.5), T(2.0)), stats.t(5, 0.5, 2)),
    (D.Uniform(T(-1.0), T(2.0)), stats.uniform(-1, 3)),
    (D.VonMises(T(0.5), T(2.0)), stats.vonmises(2, 0.5)),
    (D.Weibull(T(2.0), T(1.5)), stats.weibull_min(1.5, scale=2)),
]


@pytest.mark.parametrize(("ours", "scipy"), CONTINUOUS)
def test_continuous(ours: Any, scipy: Any) -> None:
    torchlab.manual_seed(0)
    assert stats.kstest(ours.sample((4000,)).numpy(), scipy.cdf).pvalue > 1e-3


@pytest.mark.parametrize(
    ("ours", "scipy"),
    [
        (D.Binomial(9, T(0.3)), stats.binom(9, 0.3)),
        (D.Binomial(90, T(0.7)), stats.binom(90, 0.7)),
        (D.Geometric(T(0.3)), stats.geom(0.3, loc=-1)),
        (D.NegativeBinomial(4, T(0.3)), stats.nbinom(4, 0.7)),
        (D.Poisson(T(3.3)), stats.poisson(3.3)),
        (D.Poisson(T(33.0)), stats.poisson(33)),
    ],
)
def test_discrete(ours: Any, scipy: Any) -> None:
    torchlab.manual_seed(0)
    x = ours.sample((4000,)).numpy()
    edges = np.unique(scipy.ppf(np.linspace(0.05, 0.95, 8)))
    counts = np.histogram(x, [-np.inf, *(edges + 0.5), np.inf])[0]
    expected = np.diff([0, *scipy.cdf(edges), 1]) * 4000
    keep = expected > 1
    assert stats.chisquare(counts[keep], expected[keep] * counts[keep].sum()
                           / expected[keep].sum()).pvalue > 1e-3  # fmt: skip


@pytest.mark.parametrize(
    "d",
    [
        D.Dirichlet(T([0.5, 1.5, 3.0])),
        D.MultivariateNormal(T([1.0, -1.0]), T([[1.0, 0.4], [0.4, 2.0]])),
        D.LowRankMultivariateNormal(T([1.0, -1.0]), T([[1.0], [0.4]]), T([0.5, 0.7])),
        D.Multinomial(7, T([0.2, 0.5, 0.3])),
        D.OneHotCategorical(T([0.2, 0.5, 0.3])),
        D.Wishart(T(5.0), T([[1.0, 0.4], [0.4, 2.0]])),
        D.Kumaraswamy(T([2.0, 0.5]), T([1.5, 0.7])),
        D.ContinuousBernoulli(T([0.1, 0.5, 0.8])),
        D.MixtureSameFamily(D.Categorical(T([0.3, 0.7])), D.Normal(T([-2.0, 3.0]), T([1.0, 0.5]))),
    ],
    ids=lambda d: type(d).__name__,
)
def test_moments(d: Any) -> None:
    torchlab.manual_seed(0)
    n = 20000
    x = d.sample((n,)).numpy()
    sigma = d.variance.numpy() ** 0.5
    assert (abs(x.mean(0) - d.mean.numpy()) < 5 * sigma / n**0.5 + 1e-12).all()
    np.testing.assert_allclose(x.var(0), d.variance.numpy(), rtol=0.1)


def test_correlation_matrices() -> None:
    torchlab.manual_seed(0)
    factors = D.LKJCholesky(3, T(2.0)).sample((5000,))
    assert D.constraints.corr_cholesky.check(factors).all()
    r = (factors @ factors.mT)[:, 0, 1].numpy()
    # The marginal of a correlation is 2 Beta(η + (d - 2) / 2, same) - 1.
    assert stats.kstest((r + 1) / 2, stats.beta(2.5, 2.5).cdf).pvalue > 1e-3


@pytest.mark.parametrize("alpha", [0.05, 0.7, 1.0, 3.0, 50.0, 2000.0])
def test_the_gradient_of_a_gamma_draw_is_that_of_its_quantile(alpha: float) -> None:
    torchlab.manual_seed(1)
    a = T([alpha] * 40, grad=True)
    x = torchlab._standard_gamma(a)
    (found,) = torchlab.autograd.grad(x.sum(), a)
    u = stats.gamma(alpha).cdf(x.detach().numpy())
    inside = (u > 1e-3) & (u < 0.999)
    h = 1e-4 * alpha
    expected = (stats.gamma(alpha + h).ppf(u) - stats.gamma(alpha - h).ppf(u)) / (2 * h)
    np.testing.assert_allclose(found.numpy()[inside], expected[inside], rtol=1e-5, atol=1e-300)


def test_the_gradient_of_a_dirichlet_draw_moves_its_mean() -> None:
    """d E[x] / d concentration, by the average of the draws' gradients."""
    torchlab.manual_seed(1)
    c = T([0.8, 1.5, 2.5], grad=True)
    x = D.Dirichlet(c).rsample((4000,))
    weights = T([1.0, -2.0, 0.5])
    (found,) = torchlab.autograd.grad((x * weights).sum(-1).mean(), c)
    (expected,) = torchlab.autograd.grad((c / c.sum() * weights).sum(), c)
    np.testing.assert_allclose(found.numpy(), expected.numpy(), atol=0.02)


@pytest.mark.parametrize(
    "density",
    [
        lambda a, b, x: D.Normal(a, b).log_prob(x),
        lambda a, b, x: D.Gamma(a, b).log_prob(x),
        lambda a, b, x: D.Beta(a, b).log_prob(x / 5),
        lambda a, b, x: D.StudentT(a, b, b).log_prob(x),
        lambda a, b, x: D.Weibull(a, b).log_prob(x),
        lambda a, b, x: D.Kumaraswamy(a, b).log_prob(x / 5),
        lambda a, b, x: D.Gumbel(a, b).cdf(x),
        lambda a, b, x: D.VonMises(a, b).log_prob(x),
        lambda a, b, x: D.kl_divergence(D.Gamma(a, b), D.Gamma(b, x)),
        lambda a, b, x: D.kl_divergence(D.Normal(a, b), D.Laplace(x, a)),
    ],
)
def test_gradients_of_densities(density: Any) -> None:
    arguments = T([0.7, 1.4], True), T([1.3, 2.2], True), T([0.9, 1.7], True)
    assert gradcheck(density, arguments)

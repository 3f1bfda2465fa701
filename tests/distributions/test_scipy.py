"""Densities, entropies, moments and distribution functions against scipy.stats."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import stats

import torchlab
import torchlab.distributions as D


def T(x: Any) -> Any:
    return torchlab.tensor(x, dtype=torchlab.float64)


COVARIANCE = [[1.5, 0.3, 0.1], [0.3, 2.0, -0.2], [0.1, -0.2, 0.8]]
CONTINUOUS = [
    (D.Beta(T(2.0), T(3.5)), stats.beta(2, 3.5)),
    (D.Cauchy(T(0.5), T(2.0)), stats.cauchy(0.5, 2)),
    (D.Chi2(T(3.0)), stats.chi2(3)),
    (D.Exponential(T(1.7)), stats.expon(scale=1 / 1.7)),
    (D.FisherSnedecor(T(4.0), T(7.0)), stats.f(4, 7)),
    (D.Gamma(T(2.3), T(0.7)), stats.gamma(2.3, scale=1 / 0.7)),
    (D.GeneralizedPareto(T(1.0), T(2.0), T(0.2)), stats.genpareto(0.2, 1, 2)),
    (D.GeneralizedPareto(T(1.0), T(2.0), T(-0.3)), stats.genpareto(-0.3, 1, 2)),
    (D.GeneralizedPareto(T(1.0), T(2.0), T(0.0)), stats.expon(1, 2)),
    (D.Gumbel(T(0.5), T(2.0)), stats.gumbel_r(0.5, 2)),
    (D.HalfCauchy(T(2.0)), stats.halfcauchy(scale=2)),
    (D.HalfNormal(T(2.0)), stats.halfnorm(scale=2)),
    (D.InverseGamma(T(3.3), T(0.7)), stats.invgamma(3.3, scale=0.7)),
    (D.Laplace(T(0.5), T(2.0)), stats.laplace(0.5, 2)),
    (D.LogNormal(T(0.5), T(0.8)), stats.lognorm(s=0.8, scale=np.exp(0.5))),
    (D.Normal(T(0.5), T(2.0)), stats.norm(0.5, 2)),
    (D.Pareto(T(1.5), T(3.0)), stats.pareto(3, scale=1.5)),
    (D.StudentT(T(5.0), T(0.5), T(2.0)), stats.t(5, 0.5, 2)),
    (D.Uniform(T(-1.0), T(2.0)), stats.uniform(-1, 3)),
    (D.VonMises(T(0.5), T(2.0)), stats.vonmises(2, 0.5)),
    (D.Weibull(T(2.0), T(1.5)), stats.weibull_min(1.5, scale=2)),
]
DISCRETE = [
    (D.Bernoulli(T(0.3)), stats.bernoulli(0.3)),
    (D.Binomial(9, T(0.3)), stats.binom(9, 0.3)),
    (D.Geometric(T(0.3)), stats.geom(0.3, loc=-1)),
    (D.NegativeBinomial(4, T(0.3)), stats.nbinom(4, 0.7)),
    (D.Poisson(T(3.3)), stats.poisson(3.3)),
]
NO_CIRCLE = "VonMises"  # scipy gives its linear moments, we (as PyTorch) its circular ones


def name(pair: Any) -> str:
    return type(pair[0]).__name__ if isinstance(pair, tuple) else ""


@pytest.mark.parametrize(("ours", "scipy"), CONTINUOUS, ids=map(name, CONTINUOUS))
def test_continuous(ours: Any, scipy: Any) -> None:
    quantiles = np.linspace(0.02, 0.98, 13)
    x = scipy.ppf(quantiles)
    np.testing.assert_allclose(ours.log_prob(T(x)).numpy(), scipy.logpdf(x), rtol=1e-9, atol=1e-9)
    if type(ours).cdf is not D.Distribution.cdf:
        np.testing.assert_allclose(ours.cdf(T(x)).numpy(), quantiles, rtol=1e-7)
    if type(ours).icdf is not D.Distribution.icdf and type(ours).__name__ != "InverseGamma":
        np.testing.assert_allclose(ours.icdf(T(quantiles)).numpy(), x, rtol=1e-7, atol=1e-12)
    if type(ours).__name__ == NO_CIRCLE:
        return
    if type(ours).__name__ not in ("Cauchy", "HalfCauchy"):
        mean, variance = scipy.stats("mv")
        np.testing.assert_allclose(ours.mean.item(), mean, rtol=1e-8)
        np.testing.assert_allclose(ours.variance.item(), variance, rtol=1e-8)
        np.testing.assert_allclose(ours.stddev.item(), variance**0.5, rtol=1e-8)
    if type(ours).entropy is not D.Distribution.entropy:
        np.testing.assert_allclose(ours.entropy().item(), scipy.entropy(), rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize(("ours", "scipy"), DISCRETE, ids=map(name, DISCRETE))
def test_discrete(ours: Any, scipy: Any) -> None:
    x = np.arange(2.0 if type(ours).__name__ == "Bernoulli" else 9.0)
    np.testing.assert_allclose(ours.log_prob(T(x)).numpy(), scipy.logpmf(x), rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(ours.mean.item(), scipy.mean(), rtol=1e-9)
    np.testing.assert_allclose(ours.variance.item(), scipy.var(), rtol=1e-9)
    if type(ours).entropy is not D.Distribution.entropy and type(ours).__name__ != "Poisson":
        np.testing.assert_allclose(ours.entropy().item(), scipy.entropy(), rtol=1e-6)


def test_vectors_and_matrices() -> None:
    rng = np.random.default_rng(0)
    x = rng.standard_normal((4, 3))
    loc = [0.1, -0.2, 0.3]
    reference = stats.multivariate_normal(loc, COVARIANCE)
    precision = np.linalg.inv(COVARIANCE)
    for ours in (
        D.MultivariateNormal(T(loc), T(COVARIANCE)),
        D.MultivariateNormal(T(loc), precision_matrix=T(precision)),
        D.MultivariateNormal(T(loc), scale_tril=T(np.linalg.cholesky(COVARIANCE))),
    ):
        np.testing.assert_allclose(ours.log_prob(T(x)).numpy(), reference.logpdf(x), rtol=1e-10)
        np.testing.assert_allclose(ours.entropy().item(), reference.entropy(), rtol=1e-10)
        np.testing.assert_allclose(ours.covariance_matrix.numpy(), COVARIANCE, rtol=1e-10)
        np.testing.assert_allclose(ours.precision_matrix.numpy(), precision, rtol=1e-9)
    w, d = rng.standard_normal((3, 2)), np.array([0.5, 1.0, 2.0])
    ours = D.LowRankMultivariateNormal(T(loc), T(w), T(d))
    reference = stats.multivariate_normal(loc, w @ w.T + np.diag(d))
    np.testing.assert_allclose(ours.log_prob(T(x)).numpy(), reference.logpdf(x), rtol=1e-10)
    np.testing.assert_allclose(
        ours.precision_matrix.numpy(), np.linalg.inv(w @ w.T + np.diag(d)), rtol=1e-9
    )
    simplex = rng.dirichlet([1.0, 2.0, 3.0], 4)
    dirichlet = D.Dirichlet(T([1.5, 0.7, 2.0]))
    reference = stats.dirichlet([1.5, 0.7, 2.0])
    np.testing.assert_allclose(dirichlet.log_prob(T(simplex)).numpy(), reference.logpdf(simplex.T))
    np.testing.assert_allclose(dirichlet.entropy().item(), reference.entropy())
    np.testing.assert_allclose(dirichlet.variance.numpy(), reference.var())
    counts = np.array([[2.0, 3.0, 4.0], [9.0, 0.0, 0.0]])
    multinomial = D.Multinomial(9, T([0.2, 0.5, 0.3]))
    reference = stats.multinomial(9, [0.2, 0.5, 0.3])
    np.testing.assert_allclose(multinomial.log_prob(T(counts)).numpy(), reference.logpmf(counts))
    np.testing.assert_allclose(multinomial.entropy().item(), reference.entropy(), rtol=1e-6)
    wishart = D.Wishart(T(5.0), T(COVARIANCE))
    reference = stats.wishart(5, COVARIANCE)
    matrix = np.array(COVARIANCE) * 3 + np.eye(3)
    np.testing.assert_allclose(wishart.log_prob(T(matrix)).item(), reference.logpdf(matrix))
    np.testing.assert_allclose(wishart.entropy().item(), reference.entropy())
    np.testing.assert_allclose(wishart.mean.numpy(), reference.mean())
    np.testing.assert_allclose(wishart.variance.numpy(), reference.var())


@pytest.mark.parametrize("probs", [0.1, 0.4995, 0.5, 0.9])
def test_the_continuous_bernoulli_is_normalised(probs: float) -> None:
    d = D.ContinuousBernoulli(T(probs))
    x = np.linspace(0, 1, 20001)
    density = d.log_prob(T(x)).exp().numpy()
    np.testing.assert_allclose(np.trapezoid(density, x), 1, rtol=1e-6)
    np.testing.assert_allclose(np.trapezoid(density * x, x), d.mean.item(), rtol=1e-6)
    second = np.trapezoid(density * x * x, x)
    np.testing.assert_allclose(second - d.mean.item() ** 2, d.variance.item(), rtol=1e-5)
    np.testing.assert_allclose(-np.trapezoid(density * np.log(density), x), d.entropy().item(),
                               rtol=1e-5, atol=1e-6)  # fmt: skip
    u = T([0.1, 0.5, 0.8])
    np.testing.assert_allclose(d.cdf(d.icdf(u)).numpy(), u.numpy(), rtol=1e-9)


def test_lkj_is_uniform_over_correlations_at_one() -> None:
    """In two dimensions the correlation has the density of 2 Beta(η, η) - 1."""
    for eta in (0.5, 1.0, 2.5):
        r = np.linspace(-0.9, 0.9, 7)
        factors = np.zeros((7, 2, 2))
        factors[:, 0, 0], factors[:, 1, 0], factors[:, 1, 1] = 1, r, np.sqrt(1 - r**2)
        d = D.LKJCholesky(2, T(eta))
        # dr/dL is one here, the density of L is that of r
        expected = stats.beta(eta, eta).logpdf((r + 1) / 2) - np.log(2)
        found = d.log_prob(T(factors)).numpy()
        np.testing.assert_allclose(found, expected, rtol=1e-9)

"""KL divergences against numerical integration and sums; the rules of dispatch."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import torchlab
import torchlab.distributions as D
from torchlab.distributions.kl import _KL_REGISTRY


def T(x: Any) -> Any:
    return torchlab.tensor(x, dtype=torchlab.float64)


LINE = np.linspace(-60, 60, 600001)
HALF = np.geomspace(1e-12, 150, 1000001)
UNIT = np.linspace(1e-7, 1 - 1e-7, 1000001)
MEMBERS = [
    (D.Beta(T(2.0), T(3.0)), UNIT),
    (D.ContinuousBernoulli(T(0.3)), UNIT),
    (D.Exponential(T(0.7)), HALF),
    (D.Gamma(T(2.5), T(1.2)), HALF),
    (D.Gumbel(T(0.3), T(1.1)), LINE),
    (D.Laplace(T(0.3), T(0.8)), LINE),
    (D.Normal(T(0.4), T(0.9)), LINE),
    (D.Pareto(T(0.5), T(4.0)), np.linspace(0.5, 600, 3000001)),
    (D.Uniform(T(0.6), T(0.9)), np.linspace(0.6, 0.9 - 1e-9, 100001)),
    (D.HalfNormal(T(1.3)), HALF),
]
PAIRS = [
    (p, x, q)
    for (p, x), (q, _) in itertools.product(MEMBERS, MEMBERS)
    if (type(p), type(q)) in _KL_REGISTRY
]


@pytest.mark.parametrize(
    ("p", "x", "q"), PAIRS, ids=[f"{type(p).__name__}-{type(q).__name__}" for p, _, q in PAIRS]
)
def test_by_integration(p: Any, x: np.ndarray, q: Any) -> None:
    found = D.kl_divergence(p, q).item()
    if not np.isfinite(found):
        assert found == np.inf
        inside = q.support.check(p.sample((1000,)))
        assert not inside.all() or isinstance(p, D.Pareto)
        return
    with torchlab.no_grad():
        log_p = _unchecked(p).log_prob(T(x)).numpy()
        log_q = _unchecked(q).log_prob(T(x)).numpy()
    weight = np.exp(log_p)
    integrand = np.where(weight > 0, weight * (log_p - log_q), 0)
    np.testing.assert_allclose(found, np.trapezoid(integrand, x), rtol=2e-4, atol=1e-5)


def _unchecked(d: Any) -> Any:
    d = d.expand(d.batch_shape)
    d._validate_args = False
    if isinstance(d, D.TransformedDistribution):
        d.base_dist._validate_args = False
    return d


@pytest.mark.parametrize(
    ("p", "q"),
    [
        (D.Bernoulli(T(0.3)), D.Bernoulli(T(0.6))),
        (D.Binomial(7, T(0.3)), D.Binomial(7, T(0.6))),
        (D.Categorical(T([0.2, 0.5, 0.3])), D.Categorical(T([0.1, 0.1, 0.8]))),
        (D.Geometric(T(0.3)), D.Geometric(T(0.6))),
        (D.Poisson(T(3.0)), D.Poisson(T(5.0))),
        (D.Bernoulli(T(0.3)), D.Poisson(T(0.6))),
    ],
)
def test_by_summation(p: Any, q: Any) -> None:
    if p.has_enumerate_support:
        x = p.enumerate_support().to(torchlab.float64)
    else:
        x = torchlab.arange(150.0, dtype=torchlab.float64)
    log_p, log_q = p.log_prob(x), q.log_prob(x)
    expected = (log_p.exp() * (log_p - log_q)).sum(0)
    np.testing.assert_allclose(D.kl_divergence(p, q).numpy(), expected.numpy(), rtol=1e-7)


def test_gaussians_in_all_forms() -> None:
    rng = np.random.default_rng(0)
    w, d = rng.standard_normal((2, 3, 2)), rng.random((2, 3)) + 0.5
    loc = rng.standard_normal((2, 3))
    low = [D.LowRankMultivariateNormal(T(loc[i]), T(w[i]), T(d[i])) for i in range(2)]
    full = [D.MultivariateNormal(v.loc, v.covariance_matrix) for v in low]
    s = [v.covariance_matrix.numpy() for v in low]
    diff = loc[1] - loc[0]
    expected = 0.5 * (
        np.trace(np.linalg.solve(s[1], s[0]))
        + diff @ np.linalg.solve(s[1], diff)
        - 3
        + np.linalg.slogdet(s[1])[1]
        - np.linalg.slogdet(s[0])[1]
    )
    for p, q in itertools.product((low[0], full[0]), (low[1], full[1])):
        np.testing.assert_allclose(D.kl_divergence(p, q).item(), expected, rtol=1e-9)


def test_the_closest_pair_is_taken() -> None:
    class Mine(D.Normal):
        pass

    p, q = Mine(T(0.0), T(1.0)), D.Normal(T(1.0), T(1.0))
    assert D.kl_divergence(p, q).item() == pytest.approx(0.5)

    @D.register_kl(Mine, D.Normal)
    def special(p: Any, q: Any) -> Any:
        return T(7.0)

    try:
        assert D.kl_divergence(p, q).item() == 7
        assert D.kl_divergence(q, p).item() == pytest.approx(0.5)
    finally:
        del _KL_REGISTRY[Mine, D.Normal]
        D.kl._KL_MEMOIZE.clear()
    with pytest.raises(NotImplementedError, match="p type Normal and q type Categorical"):
        D.kl_divergence(q, D.Categorical(T([0.5, 0.5])))
    with pytest.raises(TypeError, match="type_p to be a Distribution subclass"):
        D.register_kl(3, D.Normal)  # type: ignore[arg-type]


def test_classes_that_are_no_distributions() -> None:
    class Base:
        pass

    class Mine(Base, D.Normal):
        pass

    @D.register_kl(Base, Base)
    def special(p: Any, q: Any) -> Any:
        return T(7.0)

    try:
        p = Mine(T(0.0), T(1.0))
        assert _KL_REGISTRY[Base, Base] is special and isinstance(p, Base)
        assert D.kl_divergence(D.Normal(T(1.0), T(1.0)), p).item() == pytest.approx(0.5)
    finally:
        del _KL_REGISTRY[Base, Base]
        D.kl._KL_MEMOIZE.clear()


def test_exponential_families_by_bregman() -> None:
    """The general rule agrees with the closed forms."""
    general = _KL_REGISTRY[D.ExponentialFamily, D.ExponentialFamily]
    for p, q in (
        (D.Gamma(T(2.0), T(3.0)), D.Gamma(T(1.0), T(0.5))),
        (D.Normal(T(2.0), T(3.0)), D.Normal(T(1.0), T(0.5))),
        (D.Dirichlet(T([1.0, 2.0])), D.Dirichlet(T([3.0, 0.5]))),
        (D.Bernoulli(T(0.2)), D.Bernoulli(T(0.7))),
    ):
        np.testing.assert_allclose(
            general(p, q).detach().numpy(), D.kl_divergence(p, q).numpy(), rtol=1e-9
        )
        if isinstance(p, (D.Normal, D.Bernoulli)):
            np.testing.assert_allclose(
                D.ExponentialFamily.entropy(p).detach().numpy(), p.entropy().numpy(), rtol=1e-9
            )

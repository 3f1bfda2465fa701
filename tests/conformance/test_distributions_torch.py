"""`torchlab.distributions` against PyTorch's: numbers, shapes, errors, draws, divergences."""

from __future__ import annotations

import functools
import itertools
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import torchlab
import torchlab.distributions as ours
import torchlab.distributions.kl

torch = pytest.importorskip("torch")
theirs = pytest.importorskip("torch.distributions")

COVARIANCE = [[1.5, 0.3, 0.1], [0.3, 2.0, -0.2], [0.1, -0.2, 0.8]]
A, B, P = [0.7, 2.5, 1.3], [1.2, 0.4, 3.0], [0.2, 0.5, 0.9]
ROWS = [[0.2, 0.5, 0.3], [0.7, 0.1, 0.2]]
LOGITS = [[0.3, -1.0, 0.2], [1.0, 0.0, 2.0]]


def family(t: Any, D: Any, dtype: str = "float64", grad: bool = False) -> dict[str, Any]:
    """Makers of distributions of either library; numbers become tensors, kept in `leaves`."""

    def T(x: Any) -> Any:
        value = t.tensor(x, dtype=getattr(t, dtype), requires_grad=grad)
        leaves.append(value)
        return value

    leaves: list[Any] = []
    makers: dict[str, Callable[[], Any]] = {
        "Bernoulli": lambda: D.Bernoulli(T(P)),
        "Bernoulli logits": lambda: D.Bernoulli(logits=T(A)),
        "Beta": lambda: D.Beta(T(A), T(B)),
        "Binomial": lambda: D.Binomial(10, T(P)),
        "Binomial logits": lambda: D.Binomial(t.tensor([3.0, 40.0, 7.0]), logits=T(A)),
        "Categorical": lambda: D.Categorical(T(ROWS)),
        "Categorical logits": lambda: D.Categorical(logits=T(LOGITS)),
        "Cauchy": lambda: D.Cauchy(T(A), T(B)),
        "Chi2": lambda: D.Chi2(T(A)),
        "ContinuousBernoulli": lambda: D.ContinuousBernoulli(T(P)),
        "Dirichlet": lambda: D.Dirichlet(T(ROWS) * 3),
        "Exponential": lambda: D.Exponential(T(A)),
        "FisherSnedecor": lambda: D.FisherSnedecor(T(A) * 4, T(B) * 5),
        "Gamma": lambda: D.Gamma(T(A), T(B)),
        "Geometric": lambda: D.Geometric(T(P)),
        "Gumbel": lambda: D.Gumbel(T(A), T(B)),
        "HalfCauchy": lambda: D.HalfCauchy(T(B)),
        "HalfNormal": lambda: D.HalfNormal(T(B)),
        "Independent": lambda: D.Independent(D.Normal(T(ROWS), 1.0), 1),
        "InverseGamma": lambda: D.InverseGamma(T(A) + 1, T(B)),
        "Kumaraswamy": lambda: D.Kumaraswamy(T(A), T(B)),
        "LKJCholesky": lambda: D.LKJCholesky(3, T([1.5, 0.5])),
        "Laplace": lambda: D.Laplace(T(A), T(B)),
        "LogNormal": lambda: D.LogNormal(T(A), T(B)),
        "LogisticNormal": lambda: D.LogisticNormal(T(A), T(B)),
        "LowRank": lambda: D.LowRankMultivariateNormal(T(A), T(ROWS).T, T(B)),
        "Multinomial": lambda: D.Multinomial(10, T(ROWS)),
        "MultivariateNormal": lambda: D.MultivariateNormal(T(A), T(COVARIANCE)),
        "precision": lambda: D.MultivariateNormal(T(A), precision_matrix=T(COVARIANCE)),
        "scale_tril": lambda: D.MultivariateNormal(
            t.stack([T(A), T(B)]), scale_tril=t.linalg.cholesky(T(COVARIANCE))
        ),
        "NegativeBinomial": lambda: D.NegativeBinomial(T([3.0, 2.0, 8.0]), T(P)),
        "Normal": lambda: D.Normal(T(A), T(B)),
        "OneHotCategorical": lambda: D.OneHotCategorical(T(ROWS)),
        "StraightThrough": lambda: D.OneHotCategoricalStraightThrough(logits=T(LOGITS)),
        "Pareto": lambda: D.Pareto(T(A), T(B)),
        "Poisson": lambda: D.Poisson(T(B) * 10),
        "RelaxedBernoulli": lambda: D.RelaxedBernoulli(T(0.7), T(P)),
        "RelaxedOneHotCategorical": lambda: D.RelaxedOneHotCategorical(T(0.7), T(ROWS)),
        "StudentT": lambda: D.StudentT(T(A) + 2, T(B), T(A)),
        "Uniform": lambda: D.Uniform(T(A), T(A) + 3.0),
        "VonMises": lambda: D.VonMises(T(A), T(B) * 3),
        "Weibull": lambda: D.Weibull(T(A), T(B)),
        "Wishart": lambda: D.Wishart(T([4.0, 6.0]), T(COVARIANCE)),
        "MixtureSameFamily": lambda: D.MixtureSameFamily(
            D.Categorical(T(ROWS)), D.Normal(T(LOGITS), 0.5)
        ),
        "Transformed": lambda: D.TransformedDistribution(
            D.Normal(T(A), T(B)), [D.AffineTransform(1.0, -2.0), D.SigmoidTransform()]
        ),
    }
    if dtype == "float32":  # PyTorch's own mixes types in float64
        makers["GeneralizedPareto"] = lambda: D.GeneralizedPareto(T(A), T(B), T([0.3, -0.2, 0.0]))
    makers["leaves"] = lambda: leaves
    return makers


NAMES = [*family(torchlab, ours, "float32")]
NAMES.remove("leaves")
# PyTorch approximates the Bessel functions of this one to about 1e-7.
LOOSE = {"VonMises": 1e-5}


def outcome(call: Callable[[], Any]) -> Any:
    """The value, or the class and the first words of the error."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return call()
        except (ValueError, NotImplementedError, RuntimeError, AttributeError) as error:
            return type(error).__name__, str(error).replace("torchlab.", "torch.")[:60]


def same(mine: Any, other: Any, rtol: float) -> None:
    if not isinstance(mine, torchlab.Tensor):
        assert str(mine).replace("torchlab.", "torch.") == str(other)
        return
    assert tuple(mine.shape) == tuple(other.shape)
    assert str(mine.dtype).split(".")[-1] == str(other.dtype).split(".")[-1]
    assert mine.requires_grad == other.requires_grad
    np.testing.assert_allclose(
        mine.detach().numpy(), other.detach().numpy(), rtol=rtol, atol=rtol / 10
    )


@functools.cache
def plain() -> dict[str, tuple[Any, Any]]:
    """All distributions in float32, made once: ours and PyTorch's."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return {name: pair(name, "float32")[:2] for name in NAMES}


def pair(name: str, dtype: str, grad: bool = False) -> tuple[Any, Any, Any, Any]:
    mine, other = family(torchlab, ours, dtype, grad), family(torch, theirs, dtype, grad)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return mine[name](), other[name](), mine["leaves"](), other["leaves"]()


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("name", NAMES)
def test_values(name: str, dtype: str) -> None:
    if name not in family(torch, theirs, dtype):
        dtype = "float32"
    rtol = max(1e-9 if dtype == "float64" else 3e-5, LOOSE.get(name, 0))
    mine, other, *_ = pair(name, dtype)
    assert repr(mine) == repr(other).replace("torch.Size", "torchlab.Size") or repr(mine) == repr(
        other
    )
    for what in ("mean", "mode", "variance", "stddev", "batch_shape", "event_shape"):
        same(
            outcome(lambda w=what: getattr(mine, w)),
            outcome(lambda w=what: getattr(other, w)),
            rtol,
        )
    for what in ("has_rsample", "has_enumerate_support"):
        assert getattr(mine, what) == getattr(other, what)
    for what in ("entropy", "perplexity", "enumerate_support"):
        same(
            outcome(lambda w=what: getattr(mine, w)()),
            outcome(lambda w=what: getattr(other, w)()),
            rtol,
        )
    torch.manual_seed(5)
    value = other.sample((6,))
    given = torchlab.tensor(value.numpy())
    same(mine.log_prob(given), other.log_prob(value), rtol)
    same(outcome(lambda: mine.cdf(given)), outcome(lambda: other.cdf(value)), rtol)
    u = torch.rand(value.shape).to(getattr(torch, dtype)) * 0.98 + 0.01
    same(
        outcome(lambda: mine.icdf(torchlab.tensor(u.numpy()))),
        outcome(lambda: other.icdf(u)),
        rtol * 10,
    )


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("name", NAMES)
def test_a_seed_gives_the_same_draws(name: str, dtype: str) -> None:
    if name not in family(torch, theirs, dtype):
        dtype = "float32"
    rtol = 1e-9 if dtype == "float64" else 1e-3  # float32: exponentials of last bits
    mine, other, *_ = pair(name, dtype)
    for how, shape in itertools.product(("sample", "rsample"), ((), (5,), (40, 2))):
        torch.manual_seed(3)
        torchlab.manual_seed(3)
        same(
            outcome(lambda h=how, s=shape: getattr(mine, h)(s)),
            outcome(lambda h=how, s=shape: getattr(other, h)(s)),
            rtol,
        )
        # and leaves the stream where PyTorch's is
        np.testing.assert_array_equal(torchlab.rand(2).numpy(), torch.rand(2).numpy())


@pytest.mark.parametrize("name", NAMES)
def test_expand(name: str) -> None:
    mine, other, *_ = pair(name, "float32")
    shape = (2, *other.batch_shape)
    wide_mine, wide_other = mine.expand(shape), other.expand(shape)
    assert wide_mine.batch_shape == tuple(wide_other.batch_shape)
    assert wide_mine.event_shape == tuple(wide_other.event_shape)
    torch.manual_seed(3)
    torchlab.manual_seed(3)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        value = wide_other.sample((3,))
        same(wide_mine.sample((3,)), value, 1e-3)
    given = torchlab.tensor(value.numpy())
    same(wide_mine.log_prob(given), wide_other.log_prob(value), 3e-5)


NO_GRADIENT = {"Wishart"}  # PyTorch's draw modifies in place what its gradient needs


@pytest.mark.parametrize("what", ["log_prob", "rsample", "entropy", "mean", "variance"])
@pytest.mark.parametrize("name", NAMES)
def test_gradients(name: str, what: str) -> None:
    if name == "GeneralizedPareto" or (name in NO_GRADIENT and what == "rsample"):
        return
    found = []
    torch.manual_seed(1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        value = pair(name, "float64")[1].sample((4,))
    for t, D in ((torchlab, ours), (torch, theirs)):
        makers = family(t, D, grad=True)
        d = makers[name]()
        t.manual_seed(4)
        if what == "log_prob":
            y = outcome(lambda d=d, t=t: d.log_prob(t.tensor(value.numpy())))
        elif what == "rsample":
            y = outcome(lambda d=d: d.rsample((4,)))
        elif what == "entropy":
            y = outcome(d.entropy)
        else:
            y = outcome(lambda d=d: getattr(d, what))
        if isinstance(y, tuple) or not y.requires_grad:
            found.append(None)
            continue
        weights = t.arange(1.0, y.numel() + 1, dtype=t.float64).reshape(y.shape)
        gradients = t.autograd.grad((y * weights).sum(), makers["leaves"](), allow_unused=True)
        found.append([None if g is None else g.detach().numpy() for g in gradients])
    mine, other = found
    assert (mine is None) == (other is None)
    # PyTorch approximates the derivative of a gamma quantile to about a thousandth.
    rtol = 5e-3 if what == "rsample" else max(1e-7, LOOSE.get(name, 0))
    for a, b in zip(mine or (), other or (), strict=True):
        assert (a is None) == (b is None)
        if a is not None:
            np.testing.assert_allclose(a, b, rtol=rtol, atol=1e-6)


def test_every_divergence_is_registered() -> None:
    def names(table: Any) -> set[tuple[str, str]]:
        return {(p.__name__, q.__name__) for p, q in table}

    assert names(torchlab.distributions.kl._KL_REGISTRY) == names(theirs.kl._KL_REGISTRY)


@pytest.mark.parametrize("name", NAMES)
def test_divergences(name: str) -> None:
    p, r = plain()[name]
    for q, s in plain().values():
        same(
            outcome(lambda q=q: ours.kl_divergence(p, q)),
            outcome(lambda s=s: theirs.kl_divergence(r, s)),
            3e-4,
        )


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_the_random_operators_draw_pytorchs_numbers(dtype: str) -> None:
    """Gamma, binomial and Poisson bit for bit, Dirichlet too up to seven categories."""
    rng = np.random.default_rng(0)
    alpha = (rng.random(3000) * 5).astype(dtype)
    alpha[:500] *= 0.01
    alpha[3] = 0
    rows = (rng.random((500, 4)) * 3).astype(dtype)
    count = np.floor(rng.random(3000) * 300).astype(dtype)
    prob = rng.random(3000).astype(dtype)
    calls = [
        (lambda t: t._standard_gamma(t.tensor(alpha))),
        (lambda t: t._standard_gamma(t.tensor(alpha[0]))),
        (lambda t: t._sample_dirichlet(t.tensor(rows))),
        (lambda t: t.binomial(t.tensor(count), t.tensor(prob))),
        (lambda t: t.poisson(t.tensor(count / 8))),
        (lambda t: t.tensor(prob).bernoulli()),
        (lambda t: t.zeros(50).geometric_(0.3)),
        (lambda t: t.zeros(50).uniform_(-2, 3)),
        (lambda t: t.zeros(50, dtype=t.complex64).uniform_(-2, 3)),
    ]
    for call in calls:
        torch.manual_seed(7)
        torchlab.manual_seed(7)
        np.testing.assert_array_equal(call(torchlab).numpy(), call(torch).numpy())
        np.testing.assert_array_equal(torchlab.rand(3).numpy(), torch.rand(3).numpy())
        np.testing.assert_allclose(torchlab.randn(3).numpy(), torch.randn(3).numpy(), rtol=1e-6)


@pytest.mark.parametrize(
    "call",
    [
        lambda t: t.poisson(t.tensor([-1.0])),
        lambda t: t.poisson(t.tensor([1])),
        lambda t: t.binomial(t.tensor([1]), t.tensor([0.5])),
        lambda t: t.binomial(t.tensor([1.0]), t.tensor([0.5]).double()),
        lambda t: t._standard_gamma(t.tensor([1])),
        lambda t: t._sample_dirichlet(t.tensor([1])),
        lambda t: t.zeros(3).cauchy_(0, -1),
        lambda t: t.zeros(3).log_normal_(0, 0),
        lambda t: t.zeros(3).exponential_(0),
        lambda t: t.zeros(3).geometric_(1.0),
        lambda t: t.zeros(3).uniform_(2, 1),
        lambda t: t.zeros(3).uniform_(-3e38, 3e38),
        lambda t: t.zeros(3, dtype=t.int64).normal_(),
        lambda t: t.zeros(3, dtype=t.int64).exponential_(),
        lambda t: t.zeros(3, dtype=t.int64).log_normal_(),
        lambda t: t.bernoulli(t.ones(3, dtype=t.int64)),
        lambda t: t.zeros(2).bernoulli_(t.tensor(2.0)),
        lambda t: t.normal(t.zeros(2), -1.0),
        lambda t: t.multinomial(t.rand(3), 2, out=t.empty(2)),
    ],
)
def test_bad_arguments(call: Callable[[Any], Any]) -> None:
    mine, other = outcome(lambda: call(torchlab)), outcome(lambda: call(torch))
    assert isinstance(mine, tuple)
    assert mine[0] == other[0]
    assert mine[1][:33] == other[1][:33]


@pytest.mark.parametrize(
    "call",
    [
        lambda t: t.zeros(3, 4).T.uniform_(),
        lambda t: t.zeros(6, 4).T.normal_(),
        lambda t: t.zeros(2, 3, 4).permute(2, 0, 1).exponential_(),
        lambda t: t.zeros(3, 8)[:, ::2].T.cauchy_(),
        lambda t: t.zeros(3, 4).T.bernoulli_(0.5),
        lambda t: t.zeros(3, 4).T.bernoulli_((t.arange(12.0).reshape(4, 3) + 1) / 13),
        lambda t: t.bernoulli((t.arange(12.0).reshape(3, 4).T + 1) / 13),
        lambda t: t.zeros(2, 3, 4, 4).to(memory_format=t.channels_last).normal_(),
        lambda t: t.nn.functional.dropout(t.ones(2, 3, 4, 4).to(memory_format=t.channels_last)),
        lambda t: t.randint_like(t.zeros(3, 4).T, 2, 9),
        lambda t: t._standard_gamma((t.arange(12.0).reshape(3, 4) + 1).T),
        lambda t: t.poisson((t.arange(12.0).reshape(3, 4) + 1).T),
        lambda t: t.zeros(30, dtype=t.complex64).normal_(2, 3),
        lambda t: t.zeros(3, 4, dtype=t.complex64).T.uniform_(),
    ],
)
def test_tensors_are_filled_in_the_order_of_their_memory(call: Callable[[Any], Any]) -> None:
    torch.manual_seed(1)
    torchlab.manual_seed(1)
    mine, other = call(torchlab), call(torch)
    assert tuple(mine.stride()) == tuple(other.stride())
    np.testing.assert_allclose(mine.numpy(), other.numpy(), rtol=1e-5, atol=1e-6)

"""The package: loaded when asked for, transforms and their caches, lazy parameters, checks."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import pytest

import torchlab
import torchlab.distributions as D
from torchlab.distributions import constraints, transforms
from torchlab.distributions.utils import lazy_property, tril_matrix_to_vec, vec_to_tril_matrix


def T(x: Any, grad: bool = False) -> Any:
    return torchlab.tensor(x, dtype=torchlab.float64, requires_grad=grad)


def test_importing_torchlab_does_not_load_the_package() -> None:
    code = "import sys, torchlab; print('torchlab.distributions' in sys.modules);"
    code += "torchlab.distributions.Normal(0., 1.); print('torchlab.distributions' in sys.modules)"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.split() == ["False", "True"]


BIJECTIONS = [
    (transforms.ExpTransform(), (4,)),
    (transforms.AffineTransform(T([1.0, 2.0]), T([-2.0, 0.5])), (3, 2)),
    (transforms.SigmoidTransform(), (4,)),
    (transforms.SoftplusTransform(), (4,)),
    (transforms.TanhTransform(), (4,)),
    (transforms.StickBreakingTransform(), (2, 3)),
    (transforms.CorrCholeskyTransform(), (2, 6)),
    (transforms.ReshapeTransform((2, 3), (6,)), (4, 2, 3)),
    (transforms.IndependentTransform(transforms.ExpTransform(), 1), (3, 2)),
    (transforms.CumulativeDistributionTransform(D.Normal(T(0.0), T(1.0))), (4,)),
    (
        transforms.ComposeTransform([transforms.ExpTransform(), transforms.PowerTransform(T(2.0))]),
        (4,),
    ),
    (
        transforms.StackTransform([transforms.ExpTransform(), transforms.TanhTransform()], -1),
        (3, 2),
    ),
    (
        transforms.CatTransform(
            [transforms.ExpTransform(), transforms.TanhTransform()], -1, [1, 2]
        ),
        (2, 3),
    ),
]


@pytest.mark.parametrize(("t", "shape"), BIJECTIONS, ids=[type(t).__name__ for t, _ in BIJECTIONS])
def test_bijections(t: Any, shape: tuple[int, ...]) -> None:
    """The inverse inverts, shapes are foretold, the Jacobian is that of autograd."""
    x = T(np.random.default_rng(0).standard_normal(shape), True)
    y = t(x)
    assert t.codomain.check(y.detach()).all()
    np.testing.assert_allclose(t.inv(y).detach().numpy(), x.detach().numpy(), atol=1e-9)
    assert tuple(t.forward_shape(x.shape)) == tuple(y.shape)
    assert tuple(t.inverse_shape(y.shape)) == tuple(x.shape)
    assert t.inv.inv is t
    ladj = t.log_abs_det_jacobian(x, y)
    if t.domain.event_dim and not isinstance(t, transforms.StackTransform):
        n = int(np.prod(shape[-t.domain.event_dim :]))
        x = x.detach().reshape(-1, n)[:1].reshape(shape[-t.domain.event_dim :]).requires_grad_()
        y = t(x).reshape(-1)
        rows = [torchlab.autograd.grad(v, x, retain_graph=True)[0].reshape(-1) for v in y]
        j = torchlab.stack(rows).numpy()
        if isinstance(t, transforms.StickBreakingTransform):
            j = j[:-1]  # the last coordinate follows from the others
        if isinstance(t, transforms.CorrCholeskyTransform):
            j = j[np.flatnonzero(np.tril(np.ones((4, 4)), -1))]
        expected = np.linalg.slogdet(j)[1]
        np.testing.assert_allclose(ladj.reshape(-1)[0].item(), expected, atol=1e-9)
    else:
        (slope,) = torchlab.autograd.grad(y.sum(), x)
        np.testing.assert_allclose(ladj.detach().numpy(), np.log(abs(slope.numpy())), atol=1e-9)


def test_the_cache_gives_back_the_very_tensor() -> None:
    t = transforms.TanhTransform(cache_size=1)
    x = T([50.0])  # tanh is one: the inverse alone would be infinite
    y = t(x)
    assert t.inv(y) is x
    assert t(x) is y
    assert torchlab.isinf(transforms.TanhTransform().inv(y)).all()
    with pytest.raises(ValueError, match="cache_size must be 0 or 1"):
        transforms.ExpTransform(cache_size=2)


@pytest.mark.parametrize(
    "constraint",
    [
        constraints.real,
        constraints.positive,
        constraints.greater_than(2.0),
        constraints.less_than(-1.0),
        constraints.interval(-3.0, 2.0),
        constraints.unit_interval,
        constraints.simplex,
        constraints.independent(constraints.positive, 1),
        constraints.lower_cholesky,
        constraints.positive_definite,
        constraints.corr_cholesky,
    ],
    ids=repr,
)
def test_registries_lead_into_the_constraint(constraint: Any) -> None:
    x = T(np.random.default_rng(0).standard_normal((3, 3)))
    t = D.transform_to(constraint)
    assert constraint.check(t(x)).all()
    if constraint in (constraints.lower_cholesky, constraints.positive_definite):
        with pytest.raises(NotImplementedError, match="Cannot transform"):
            D.biject_to(constraint)
        return
    t = D.biject_to(constraint)
    assert t.bijective and constraint.check(t(x)).all()


def test_lazy_properties_keep_their_value_and_gradient() -> None:
    p = T([0.2, 0.7], True)
    d = D.Bernoulli(p)
    assert "logits" not in d.__dict__
    with torchlab.no_grad():
        first = d.logits
    assert d.logits is first and first.requires_grad
    assert isinstance(D.Bernoulli.logits, (lazy_property, property))


def test_triangles_and_vectors() -> None:
    m = T(np.tril(np.arange(1.0, 17).reshape(4, 4)))
    for diag in (0, -1, -2):
        lower = m.tril(diag)
        vector = tril_matrix_to_vec(lower, diag)
        np.testing.assert_array_equal(vec_to_tril_matrix(vector, diag).numpy(), lower.numpy())
    with pytest.raises(ValueError, match="cannot be expressed"):
        vec_to_tril_matrix(T([1.0, 2.0]))


def test_checks_can_be_left_out() -> None:
    with pytest.raises(ValueError, match="to satisfy the constraint GreaterThan"):
        D.Normal(0.0, -1.0)
    D.Normal(0.0, -1.0, validate_args=False)
    with pytest.raises(ValueError, match="within the support"):
        D.Exponential(T(1.0)).log_prob(T(-1.0))
    D.Distribution.set_default_validate_args(False)
    try:
        D.Normal(0.0, -1.0)
    finally:
        D.Distribution.set_default_validate_args(True)
    with pytest.raises(ValueError, match="Value is not broadcastable"):
        D.Normal(T([0.0, 1.0]), 1.0).log_prob(T([0.0, 1.0, 2.0]))


def test_a_subclass_with_its_own_constructor_must_expand_itself() -> None:
    class Mine(D.Normal):
        def __init__(self) -> None:
            super().__init__(0.0, 1.0)

    with pytest.raises(NotImplementedError, match="must also define a custom .expand"):
        Mine().expand((2,))


def test_expand_sets_the_parts_before_what_subclasses_derive_from_them() -> None:
    """As PyTorch does, which subclasses with properties rely on."""

    def through(name: str) -> Any:
        def get(self: Any) -> Any:
            return getattr(self, name)._validate_args

        def put(self: Any, value: Any) -> None:
            getattr(self, name)._validate_args = value

        return property(get, put)

    class Independent(D.Independent):
        _validate_args = through("base_dist")

    class OneHot(D.OneHotCategorical):
        _validate_args = through("_categorical")

    class Mixture(D.MixtureSameFamily):
        _validate_args = through("_component_distribution")

    normal = D.Normal(torchlab.zeros(2), torchlab.ones(2))
    one = Independent(normal, 1, validate_args=False).expand((3,))
    assert type(one) is Independent and one.batch_shape == (3,)
    assert one.base_dist._validate_args is False and one.reinterpreted_batch_ndims == 1
    hot = OneHot(torchlab.ones(4)).expand((3,))
    assert hot._categorical.batch_shape == (3,)
    mixed = Mixture(D.Categorical(torchlab.ones(2)), normal, validate_args=False).expand((3,))
    assert mixed.component_distribution.batch_shape == (3, 2)
    assert mixed.sample().shape == (3,)

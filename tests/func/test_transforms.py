"""`torchlab.func` against closed forms: derivatives, their nesting, and what they leave behind."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import torchlab
from torchlab import func
from torchlab._core.dispatch import modes
from torchlab._core.dispatch.levels import LEVELS

X = torchlab.tensor([0.3, -0.7, 1.1, 2.0], dtype=torchlab.float64)
T = torchlab.tensor([1.0, 0.5, -2.0, 0.25], dtype=torchlab.float64)


def f(x: Any) -> Any:
    """Σ sin(xᵢ) xᵢ · Σ x."""
    return (x.sin() * x * x.sum()).sum()


def hessian_of_f(x: np.ndarray) -> np.ndarray:
    s, c, total, inner = np.sin(x), np.cos(x), x.sum(), (np.sin(x) * x).sum()
    first = c * x + s
    return np.diag((2 * c - s * x) * total) + first[:, None] + first[None, :] + 0 * inner


def close(a: Any, b: Any) -> None:
    b = b.numpy() if isinstance(b, torchlab.Tensor) else b
    np.testing.assert_allclose(a.detach().numpy(), b, rtol=1e-10, atol=1e-12)


def test_gradient_and_value() -> None:
    gradient, (value, aux) = func.grad_and_value(lambda x: (f(x), x * 2), has_aux=True)(X)
    x = X.numpy()
    close(gradient, (np.cos(x) * x + np.sin(x)) * x.sum() + (np.sin(x) * x).sum())
    close(value, (np.sin(x) * x).sum() * x.sum())
    close(aux, 2 * x)
    assert not (gradient.requires_grad or value.requires_grad or aux.requires_grad)


@pytest.mark.parametrize("outer", [func.jacfwd, func.jacrev])
@pytest.mark.parametrize("inner", [func.jacfwd, func.jacrev, func.grad])
def test_second_derivatives_in_every_order(outer: Any, inner: Any) -> None:
    close(outer(inner(f))(X), hessian_of_f(X.numpy()))


def test_hessian_of_each_element() -> None:
    batch = torchlab.stack([X, X * 0.5, -X])
    for made, x in zip(func.vmap(func.hessian(f))(batch), batch.numpy(), strict=True):
        close(made, hessian_of_f(x))


def test_products_with_the_hessian() -> None:
    wanted = hessian_of_f(X.numpy()) @ T.numpy()
    close(func.jvp(func.grad(f), (X,), (T,))[1], wanted)
    close(func.grad(lambda x: func.jvp(f, (x,), (T,))[1])(X), wanted)
    close(func.vjp(func.grad(f), X)[1](T)[0], wanted)
    close(func.linearize(func.grad(f), X)[1](T), wanted)
    close(func.jvp(lambda x: func.jvp(f, (x,), (T,))[1], (X,), (T,))[1], wanted @ T.numpy())


def test_derivatives_reach_what_is_outside() -> None:
    w = torchlab.ones(4, dtype=torchlab.float64, requires_grad=True)
    rows = torchlab.stack([X, T])
    made = func.vmap(func.grad(lambda x: (x**2 * w).sum()))(rows)
    assert made.requires_grad
    (g,) = torchlab.autograd.grad(made.sum(), w)
    close(g, 2 * (X + T).numpy())


def test_no_grad_outside_is_respected_and_inside_too() -> None:
    w = X.clone().requires_grad_()
    with torchlab.no_grad():
        g = func.grad(lambda x: (x**3).sum())(w)
    close(g, 3 * X.numpy() ** 2)
    assert not g.requires_grad

    def shifted(x: Any) -> Any:
        with torchlab.no_grad():
            c = x**2
        return (x**3 - c).sum()

    close(func.grad(shifted)(X), 3 * X.numpy() ** 2)


def test_a_saved_result_is_differentiated_through_vmap() -> None:
    rows = torchlab.stack([X, T])
    g = func.grad(lambda x: func.vmap(func.grad(lambda y: y.exp().sum()))(x).sum())(rows)
    close(g, np.exp(rows.numpy()))


def test_writes_in_place_are_differentiated_through_vmap() -> None:
    def program(x: Any) -> Any:
        y = x * 2
        y[1].mul_(x[0])
        y[2:].copy_(x[:2] ** 2)
        return (y**2).sum()

    rows = torchlab.stack([X, T])
    wanted = torchlab.stack([func.grad(program)(r) for r in rows])
    close(func.vmap(func.grad(program))(rows), wanted.numpy())
    close(func.vmap(func.grad(program), in_dims=1, out_dims=1)(rows.t().contiguous()),
          wanted.t().numpy())  # fmt: skip
    close(func.grad(lambda x: func.vmap(program)(x).sum())(rows), wanted.numpy())


def test_gradients_given_as_a_batch() -> None:
    x = X.clone().requires_grad_()
    y = x.sin() * x.sum()
    rows = torchlab.eye(4, dtype=torchlab.float64)
    (jacobian,) = torchlab.autograd.grad(y, x, rows, is_grads_batched=True)
    v = X.numpy()
    close(jacobian, np.diag(np.cos(v) * v.sum()) + np.sin(v)[:, None])


def test_writes_reach_views_and_the_callers_tensor() -> None:
    rows = torchlab.zeros(2, 3)

    def program(x: Any) -> Any:
        x[1] = 5
        return x.view(3)[1:] + 1

    assert func.vmap(program)(rows).tolist() == [[6, 1], [6, 1]]
    assert rows.tolist() == [[0, 5, 0], [0, 5, 0]]


def test_what_is_shared_cannot_take_in_what_is_not() -> None:
    shared = torchlab.zeros(3)
    with pytest.raises(RuntimeError, match="inplace|in-place|not possible"):
        func.vmap(lambda x: shared.add_(x))(torchlab.ones(2, 3))
    assert shared.tolist() == [0, 0, 0]
    assert not LEVELS.running
    assert not modes.SLOW


@pytest.mark.parametrize("read", [lambda x: x.sum().item(), lambda x: bool(x.sum()), float])
def test_numbers_cannot_be_read(read: Any) -> None:
    with pytest.raises(RuntimeError, match=r"\.item\(\)"):
        func.vmap(read)(torchlab.ones(2, 1))


def test_random_numbers_ask_for_a_mode() -> None:
    x = torchlab.zeros(3, 2)
    with pytest.raises(RuntimeError, match="randomness"):
        func.vmap(lambda x: x + torchlab.randn(2))(x)
    torchlab.manual_seed(0)
    whole = torchlab.randn(3, 2)
    torchlab.manual_seed(0)
    made = func.vmap(lambda x: x + torchlab.randn(2), randomness="different")(x)
    assert made.tolist() == whole.tolist()
    same = func.vmap(lambda x: x + torchlab.randn(2), randomness="same")(x)
    assert same[0].tolist() == same[1].tolist()


def test_types_meet_as_the_function_sees_them() -> None:
    scalars = torchlab.ones(3, dtype=torchlab.float64)
    made = func.vmap(lambda s: s * torchlab.ones(2))(scalars)  # a 0-d tensor has no say
    assert made.dtype is torchlab.float32


def test_wrappers_show_what_they_hold() -> None:
    seen: list[str] = []
    func.vmap(lambda x: (seen.append(repr(x)), x)[1])(torchlab.zeros(2, 1))
    assert seen[0].splitlines()[0] == "BatchedTensor(lvl=1, bdim=0, value="
    held = func.vmap(lambda x: func.debug_unwrap(x).sum() + x.sum())(torchlab.ones(2, 1))
    assert held.tolist() == [3, 3]


def test_chunks_give_the_same() -> None:
    x = torchlab.arange(10.0).view(5, 2)
    whole = func.vmap(lambda r: (r.sum(), r * 2), out_dims=(0, 1))(x)
    parts = func.vmap(lambda r: (r.sum(), r * 2), out_dims=(0, 1), chunk_size=2)(x)
    assert [p.tolist() for p in parts] == [w.tolist() for w in whole]


def test_tangents_that_do_not_fit_a_linear_map() -> None:
    _, jvp_fn = func.linearize(torchlab.sin, torchlab.ones(2))
    with pytest.raises(RuntimeError, match="tangent:0 with shape"):
        jvp_fn(torchlab.ones(3))
    with pytest.raises(RuntimeError, match="tangent:0 with dtype"):
        jvp_fn(torchlab.ones(2, dtype=torchlab.float64))

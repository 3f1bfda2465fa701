"""Functions that run once for each element of a vmap: derivatives within it and around it, and
tangents that once were none."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import torchlab
from torchlab.func import grad, jvp, vmap
from torchlab.nn import functional as F

D = torchlab.float64


def real(*shape: int, seed: int = 0) -> Any:
    values = np.random.default_rng(seed).random(shape) + 0.3
    return torchlab.tensor(values.tolist(), dtype=D)


def close(a: Any, b: Any) -> None:
    assert a.shape == b.shape and torchlab.allclose(a, b, rtol=1e-9, atol=1e-12)


def looped(fn: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *args: torchlab.stack([fn(*row) for row in zip(*args, strict=True)])


def along(fn: Callable[..., Any]) -> Callable[..., Any]:
    """The derivative of `fn` by its first argument along a direction that depends on it."""
    return lambda x, *rest: jvp(lambda y: fn(y, *rest), (x,), (x.cos(),))[1]


COUNTS = torchlab.tensor([[1, 2, 1, 0], [2, 1, 1, 0], [0, 0, 1, 3]])
STARTS = torchlab.tensor([[0, 2], [0, 3], [0, 1]])
ROWS = torchlab.tensor([[0, 1, 2, 4], [1, 1, 3, 0], [2, 2, 2, 2]])
PLACES = torchlab.tensor([[0, 2], [1, 1], [3, 0]])


def repeated(x: Any, n: Any) -> Any:
    weights = torchlab.arange(8.0, dtype=D).reshape(4, 2)
    return (torchlab.repeat_interleave(x, n, 0) * weights).sin().sum()


def segments(reduce: str) -> Callable[..., Any]:
    return lambda x, n: (
        torchlab.segment_reduce(x, reduce, lengths=n, unsafe=True, initial=1.0).sin().sum()
    )


def bags(mode: str) -> Callable[..., Any]:
    return lambda w, o, i: F.embedding_bag(i, w, o, mode=mode).sin().sum()


CASES: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "repeat_interleave": (repeated, (real(3, 4, 2), COUNTS)),
    **{f"segments {r}": (segments(r), (real(3, 4, 2), COUNTS)) for r in ("sum", "mean", "max")},
    **{f"bags {m}": (bags(m), (real(3, 5, 2), STARTS, ROWS)) for m in ("sum", "mean", "max")},
    "index_fill": (
        lambda x, i: torchlab.index_fill(x, 1, i, 2.0).sin().sum(),
        (real(3, 4, 4), PLACES),
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_derivatives_within_and_around(name: str) -> None:
    fn, args = CASES[name]
    close(vmap(fn)(*args), looped(fn)(*args))
    close(vmap(grad(fn))(*args), looped(grad(fn))(*args))
    close(vmap(along(fn))(*args), looped(along(fn))(*args))
    around = grad(lambda x, *rest: vmap(fn)(x, *rest).sum())
    close(around(*args), looped(grad(fn))(*args))


@pytest.mark.parametrize("name", ["repeat_interleave", "segments sum", "bags sum"])
def test_second_derivatives(name: str) -> None:
    fn, args = CASES[name]
    for twice in (
        along(grad(fn)),
        grad(along(fn)),
        grad(lambda *a: grad(fn)(*a).sin().sum()),
    ):
        close(vmap(twice)(*args), looped(twice)(*args))
    x, *rest = args
    nested = vmap(lambda *r: vmap(lambda y: grad(fn)(y, *r))(x))(*rest)
    close(nested[1], looped(lambda y: grad(fn)(y, *(r[1] for r in rest)))(x))


def test_ctc_loss() -> None:
    logs = real(3, 6, 2, 5).log_softmax(-1)
    labels = torchlab.tensor([[[1, 2, 1], [3, 4, 1]]] * 3)
    times, lengths = (
        torchlab.tensor([[6, 5], [4, 6], [5, 5]]),
        torchlab.tensor([[3, 2], [2, 2], [1, 3]]),
    )

    def fn(x: Any, n: Any, m: Any, t: Any) -> Any:
        return F.ctc_loss(x, t, n, m)

    args = (logs, times, lengths, labels)
    close(vmap(fn)(*args), looped(fn)(*args))
    close(vmap(grad(fn))(*args), looped(grad(fn))(*args))
    with pytest.raises(NotImplementedError, match="forward AD with _ctc_loss"):
        along(fn)(logs[0], times[0], lengths[0], labels[0])


def test_filled_with_a_value_for_each() -> None:
    x, v = real(3, 4, 4), real(3, seed=1)

    def fn(value: Any, x: Any, i: Any) -> Any:
        return torchlab.index_fill(x, 1, i, value).sin().sum()

    for derived in (grad(fn), along(fn)):
        close(vmap(derived)(v, x, PLACES), looped(derived)(v, x, PLACES))


def test_tangents_where_there_were_none() -> None:
    x = real(4)
    same = torchlab.ones(4, dtype=D)
    close(jvp(torchlab.std, (x,), (x.cos(),))[1], (grad(torchlab.std)(x) * x.cos()).sum())
    assert jvp(torchlab.std, (same,), (x,))[1].item() == 0  # as PyTorch's
    targets = torchlab.tensor([1, 0])

    def loss(z: Any) -> Any:
        return F.cross_entropy(z, targets)

    z, t = real(2, 3), real(2, 3, seed=1)
    hessian = jvp(grad(loss), (z,), (t,))[1]
    close(grad(lambda y: jvp(loss, (y,), (t,))[1])(z), hessian)


def test_logcumsumexp_twice_and_at_tangents_of_zero() -> None:
    x, t = real(5), torchlab.tensor([0.0, 1.0, 0.0, -2.0, 0.5], dtype=D)

    def fn(y: Any) -> Any:
        return torchlab.logcumsumexp(y, 0).sin().sum()

    rev_rev = grad(lambda y: (grad(fn)(y) * t).sum())(x)
    close(jvp(grad(fn), (x,), (t,))[1], rev_rev)
    close(grad(lambda y: jvp(fn, (y,), (t,))[1])(x), rev_rev)
    close(jvp(lambda y: jvp(fn, (y,), (t,))[1], (x,), (t,))[1], (rev_rev * t).sum())


def test_eigenvectors_in_forward_mode_and_again() -> None:
    a, t = real(4, 4), real(4, 4, seed=1)

    def fn(y: Any) -> Any:
        values, vectors = torchlab.linalg.eig(y)
        return values.abs().sin().sum() + vectors.abs().sin().sum()

    close(jvp(fn, (a,), (t,))[1], (grad(fn)(a) * t).sum())
    rev_rev = grad(lambda y: (grad(fn)(y) * t).sum())(a)
    close(grad(lambda y: jvp(fn, (y,), (t,))[1])(a), rev_rev)
    close(jvp(grad(fn), (a,), (t,))[1], rev_rev)


def test_weights_of_a_loss_of_logits() -> None:
    x, y, w = real(3), real(3, seed=1), real(3, seed=2)

    def fn(w: Any) -> Any:
        return F.binary_cross_entropy_with_logits(x, y, weight=w, pos_weight=w + 1)

    weights = -(y * (w + 1) * F.logsigmoid(x) + (1 - y) * F.logsigmoid(-x))
    expected = (weights - w * y * F.logsigmoid(x)) / 3
    close(grad(fn)(w), expected)
    close(jvp(fn, (w,), (y,))[1], (expected * y).sum())
    with pytest.raises(RuntimeError, match="not differentiable with respect to argument 'weight'"):
        fn(w.clone().requires_grad_())

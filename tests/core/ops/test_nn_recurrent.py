"""Recurrent networks against loops written out in NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import torchlab as torch

RNG = np.random.default_rng(5)
IN, HIDDEN = 3, 4


def sigmoid(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


def lstm_step(x: Any, state: Any, w: Any) -> Any:
    h, c = state
    gates = x @ w[0].T + h @ w[1].T + w[2] + w[3]
    i, f, g, o = np.split(gates, 4, -1)
    c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
    return sigmoid(o) * np.tanh(c), c


def gru_step(x: Any, state: Any, w: Any) -> Any:
    (h,) = state
    xr, xz, xn = np.split(x @ w[0].T + w[2], 3, -1)
    hr, hz, hn = np.split(h @ w[1].T + w[3], 3, -1)
    z = sigmoid(xz + hz)
    return ((1 - z) * np.tanh(xn + sigmoid(xr + hr) * hn) + z * h,)


def rnn_step(x: Any, state: Any, w: Any) -> Any:
    return (np.tanh(x @ w[0].T + state[0] @ w[1].T + w[2] + w[3]),)


KINDS = {"lstm": (lstm_step, 4, 2), "gru": (gru_step, 3, 1), "rnn_tanh": (rnn_step, 1, 1)}


def weights(gates: int, size: int = IN) -> list[np.ndarray]:
    shapes = ((gates * HIDDEN, size), (gates * HIDDEN, HIDDEN), gates * HIDDEN, gates * HIDDEN)
    return [RNG.standard_normal(s) * 0.5 for s in shapes]


def run(kind: str, x: Any, states: Any, params: Any, **options: Any) -> Any:
    """The network of torchlab on arrays."""
    packed = options.pop("batch_sizes", None)
    hx = [torch.tensor(s) for s in states]
    rest = [
        hx if kind == "lstm" else hx[0],
        [torch.tensor(p) for p in params],
        True,
        options.get("layers", 1),
        0.0,
        False,
        options.get("bidirectional", False),
    ]
    call = getattr(torch, kind)
    if packed is not None:
        return [r.numpy() for r in call(torch.tensor(x), torch.tensor(packed), *rest)]
    return [r.numpy() for r in call(torch.tensor(x), *rest, False)]


@pytest.mark.parametrize("kind", KINDS)
def test_one_layer_step_by_step(kind: str) -> None:
    step, gates, states = KINDS[kind]
    w = weights(gates)
    x = RNG.standard_normal((5, 2, IN))
    state = tuple(RNG.standard_normal((2, HIDDEN)) for _ in range(states))
    got = run(kind, x, [s[None] for s in state], w)
    for t in range(5):
        state = step(x[t], state, w)
        np.testing.assert_allclose(got[0][t], state[0])
    for a, b in zip(got[1:], state, strict=True):
        np.testing.assert_allclose(a[0], b)


@pytest.mark.parametrize("kind", KINDS)
def test_backwards_is_forwards_on_the_reversed_sequence(kind: str) -> None:
    _, gates, states = KINDS[kind]
    w, v = weights(gates), weights(gates)
    x = RNG.standard_normal((4, 2, IN))
    zeros = [np.zeros((2, 2, HIDDEN))] * states
    both = run(kind, x, zeros, w + v, bidirectional=True)
    forth = run(kind, x, [z[:1] for z in zeros], w)
    back = run(kind, x[::-1].copy(), [z[:1] for z in zeros], v)
    np.testing.assert_allclose(both[0][..., :HIDDEN], forth[0])
    np.testing.assert_allclose(both[0][..., HIDDEN:], back[0][::-1])
    np.testing.assert_allclose(both[1], np.concatenate([forth[1], back[1]]))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("bidirectional", [False, True])
def test_packed_sequences_are_the_sequences_one_by_one(kind: str, bidirectional: bool) -> None:
    _, gates, states = KINDS[kind]
    d = 2 if bidirectional else 1
    params = [w for _ in range(d) for w in weights(gates)]
    params += [w for _ in range(d) for w in weights(gates, HIDDEN * d)]
    lengths, sizes = [4, 2, 1], [3, 2, 1, 1]
    sequences = [RNG.standard_normal((n, 1, IN)) for n in lengths]
    state = [RNG.standard_normal((2 * d, 3, HIDDEN)) for _ in range(states)]
    packed = np.concatenate([s[t] for t in range(4) for s in sequences if t < len(s)])
    options = {"layers": 2, "bidirectional": bidirectional}
    got = run(kind, packed, state, params, batch_sizes=sizes, **options)
    starts = np.cumsum([0, *sizes])
    for k, s in enumerate(sequences):
        alone = run(kind, s, [h[:, k : k + 1] for h in state], params, **options)
        rows = [starts[t] + k for t in range(len(s))]
        np.testing.assert_allclose(got[0][rows], alone[0][:, 0])
        for a, b in zip(got[1:], alone[1:], strict=True):
            np.testing.assert_allclose(a[:, k], b[:, 0])


def test_a_cell_is_one_step() -> None:
    w = [torch.tensor(p) for p in weights(4)]
    x, h, c = (torch.tensor(RNG.standard_normal((2, n))) for n in (IN, HIDDEN, HIDDEN))
    y, h1, c1 = torch.lstm(x[None], [h[None], c[None]], w, True, 1, 0.0, False, False, False)
    h2, c2 = torch.lstm_cell(x, [h, c], *w)
    np.testing.assert_allclose(h1[0].numpy(), h2.numpy())
    np.testing.assert_allclose(c1[0].numpy(), c2.numpy())
    np.testing.assert_allclose(y[0].numpy(), h2.numpy())


def test_projections_shorten_the_state() -> None:
    w = [torch.tensor(p) for p in weights(4)]
    w[1] = torch.tensor(RNG.standard_normal((4 * HIDDEN, 2)))
    w.append(torch.tensor(RNG.standard_normal((2, HIDDEN))))
    x = torch.tensor(RNG.standard_normal((3, 2, IN)))
    h, c = torch.zeros(1, 2, 2).double(), torch.zeros(1, 2, HIDDEN).double()
    y, h, c = torch.lstm(x, [h, c], w, True, 1, 0.0, False, False, False)
    assert y.shape == (3, 2, 2) and h.shape == (1, 2, 2) and c.shape == (1, 2, HIDDEN)


def test_gradients_of_both_orders() -> None:
    w = [torch.tensor(p, requires_grad=True) for p in weights(3)]
    x = torch.tensor(RNG.standard_normal((2, 1, IN)), requires_grad=True)
    h = torch.zeros(1, 1, HIDDEN).double()

    def network(x: torch.Tensor, *w: torch.Tensor) -> torch.Tensor:
        return torch.gru(x, h, list(w), True, 1, 0.0, True, False, False)[0]

    assert torch.autograd.gradcheck(network, (x, *w))
    assert torch.autograd.gradgradcheck(network, (x, *w[:2], *(v.detach() for v in w[2:])))


def test_what_is_refused() -> None:
    w = [torch.tensor(p) for p in weights(1)]
    x, h = torch.zeros(2, 1, IN).double(), torch.zeros(1, 1, HIDDEN).double()
    with pytest.raises(RuntimeError, match="incorrect number of RNN parameters"):
        torch.rnn_tanh(x, h, w[:3], True, 1, 0.0, False, False, False)
    with pytest.raises(RuntimeError, match="larger than 0"):
        torch.rnn_tanh(x[:0], h, w, True, 1, 0.0, False, False, False)
    with pytest.raises(RuntimeError, match="Expected hidden state"):
        torch.rnn_tanh(x, h.repeat(2, 1, 1), w, True, 1, 0.0, False, False, False)
    with pytest.raises(TypeError, match="rnn_tanh"):
        torch.rnn_tanh(x, h, w, True, 1)
    with pytest.raises(RuntimeError, match="inconsistent input_size"):
        torch.rnn_tanh_cell(torch.zeros(1, 2).double(), h[0], *w)

"""torch.nn.utils against real PyTorch: parametrizations, norms, functional calls, fusion."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import torchlab

torch = pytest.importorskip("torch")
LIBS = (torch, torchlab)
LAYERS = {
    "linear": lambda nn: nn.Linear(3, 4),
    "square": lambda nn: nn.Linear(3, 3),
    "wide": lambda nn: nn.Linear(4, 3),
    "conv": lambda nn: nn.Conv2d(2, 3, 2),
}
INPUTS = {"linear": (5, 3), "square": (5, 3), "wide": (5, 4), "conv": (2, 2, 4, 4)}


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def run(lib: Any, layer: str, change: Any) -> dict[str, Any]:
    """Parameters at the start, results and gradients of two steps, and what removing leaves."""
    lib.manual_seed(1)
    module = LAYERS[layer](lib.nn).double()
    change(lib.nn.utils, module)
    found = {f"start {k}": v.numpy().copy() for k, v in module.state_dict().items()}
    found["repr"] = repr(module)
    rng = np.random.default_rng(0)
    for step in range(2):
        x = lib.tensor(rng.normal(size=INPUTS[layer]))
        y = module(x)
        (y * y).sum().backward()
        found[f"y{step}"] = y.detach().numpy()
        for name, p in module.named_parameters():
            found[f"grad{step} {name}"] = p.grad.numpy().copy()
    module.eval()
    found["weight"] = module.weight.detach().numpy()
    found |= {f"end {k}": v.numpy().copy() for k, v in module.state_dict().items()}
    return found


def same(change: Any, layer: str) -> None:
    theirs, ours = (run(lib, layer, change) for lib in LIBS)
    assert list(theirs) == list(ours)
    for k, v in theirs.items():
        if isinstance(v, str):
            assert ours[k] == v
        else:
            np.testing.assert_allclose(ours[k], v, rtol=1e-8, atol=1e-9, err_msg=k)


@pytest.mark.parametrize("layer", LAYERS)
@pytest.mark.parametrize("dim", [0, 1, None])
@pytest.mark.parametrize("old", [True, False])
def test_weight_norm(layer: str, dim: int | None, old: bool) -> None:
    same(lambda u, m: (u if old else u.parametrizations).weight_norm(m, dim=dim), layer)


@pytest.mark.parametrize("layer", LAYERS)
@pytest.mark.parametrize("dim", [0, 1, None])
@pytest.mark.parametrize("old", [True, False])
def test_spectral_norm(layer: str, dim: int | None, old: bool) -> None:
    same(lambda u, m: (u if old else u.parametrizations).spectral_norm(m, dim=dim), layer)


@pytest.mark.parametrize("layer", ["linear", "square", "wide"])
@pytest.mark.parametrize("orthogonal_map", [None, "matrix_exp", "cayley", "householder"])
@pytest.mark.parametrize("trivial", [True, False])
def test_orthogonal(layer: str, orthogonal_map: str | None, trivial: bool) -> None:
    same(
        lambda u, m: u.parametrizations.orthogonal(
            m, orthogonal_map=orthogonal_map, use_trivialization=trivial
        ),
        layer,
    )


@pytest.mark.parametrize("name", ["weight_norm", "spectral_norm"])
def test_removal(name: str) -> None:
    for old in (True, False):
        found = []
        for lib in LIBS:
            lib.manual_seed(2)
            m, u = lib.nn.Linear(3, 4), lib.nn.utils
            if old:
                getattr(u, f"remove_{name}")(getattr(u, name)(m))
            else:
                getattr(u.parametrizations, name)(m)
                u.parametrize.remove_parametrizations(m, "weight")
            assert type(m) is lib.nn.Linear
            found.append({k: v.numpy() for k, v in m.state_dict().items()})
        assert list(found[0]) == list(found[1])
        for k, v in found[0].items():
            np.testing.assert_allclose(found[1][k], v, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("transpose", [False, True])
@pytest.mark.parametrize("bias", [False, True])
def test_fusion(transpose: bool, bias: bool) -> None:
    found = []
    for lib in LIBS:
        lib.manual_seed(3)
        kind = lib.nn.ConvTranspose2d if transpose else lib.nn.Conv2d
        conv, bn = kind(2, 3, 2, bias=bias), lib.nn.BatchNorm2d(3)
        linear, bn1 = lib.nn.Linear(2, 3, bias=bias), lib.nn.BatchNorm1d(3)
        x = lib.tensor(np.random.default_rng(0).normal(size=(4, 2, 5, 5)).astype("float32"))
        bn(conv(x))
        bn1(linear(x[:, :, 0, 0]))
        for m in (conv, bn, linear, bn1):
            m.eval()
        u = lib.nn.utils
        fused = u.fuse_conv_bn_eval(conv, bn, transpose=transpose)
        np.testing.assert_allclose(
            fused(x).detach().numpy(), bn(conv(x)).detach().numpy(), rtol=1e-4, atol=1e-5
        )
        fused1 = u.fuse_linear_bn_eval(linear, bn1)
        found.append([*fused.parameters(), *fused1.parameters()])
    for a, b in zip(*found, strict=True):
        assert a.requires_grad == b.requires_grad
        np.testing.assert_allclose(b.detach().numpy(), a.detach().numpy(), rtol=1e-4, atol=1e-6)


class Refused:
    """What a call raises on either side."""

    def __init__(self, call: Any) -> None:
        self.theirs, self.ours = (self._of(call, lib) for lib in LIBS)

    @staticmethod
    def _of(call: Any, lib: Any) -> type | None:
        try:
            call(lib)
        except Exception as error:
            return type(error)
        return None


CALLS = {
    "no such tensor": lambda t: t.nn.utils.parametrizations.weight_norm(t.nn.Linear(2, 2), "a"),
    "spectral": lambda t: t.nn.utils.parametrizations.spectral_norm(t.nn.Linear(2, 2), "a"),
    "iterations": lambda t: t.nn.utils.spectral_norm(t.nn.Linear(2, 2), n_power_iterations=0),
    "vector": lambda t: t.nn.utils.parametrizations.orthogonal(t.nn.Linear(2, 2), "bias"),
    "map": lambda t: t.nn.utils.parametrizations.orthogonal(t.nn.Linear(2, 2), orthogonal_map="x"),
    "not there": lambda t: t.nn.utils.remove_weight_norm(t.nn.Linear(2, 2)),
    "not parametrized": lambda t: t.nn.utils.parametrize.remove_parametrizations(
        t.nn.Linear(2, 2), "weight"
    ),
    "training": lambda t: t.nn.utils.fuse_linear_bn_eval(t.nn.Linear(2, 2), t.nn.BatchNorm1d(2)),
    "no module": lambda t: t.nn.utils.skip_init(dict),
    "no device": lambda t: t.nn.utils.skip_init(t.nn.ReLU),
    "rank": lambda t: t.nn.LSTM(3, 4)(t.zeros(3)),
    "width": lambda t: t.nn.GRU(3, 4)(t.zeros(2, 2, 4)),
    "dtype": lambda t: t.nn.RNN(3, 4)(t.zeros(2, 2, 3, dtype=t.float64)),
    "state rank": lambda t: t.nn.RNN(3, 4)(t.zeros(2, 2, 3), t.zeros(2, 4)),
    "state": lambda t: t.nn.LSTM(3, 4)(t.zeros(2, 2, 3), (t.zeros(1, 3, 4), t.zeros(1, 3, 4))),
    "bias": lambda t: t.nn.LSTM(3, 4, bias=1),
    "projection": lambda t: t.nn.GRU(3, 4, proj_size=2),
    "wide projection": lambda t: t.nn.LSTM(3, 4, proj_size=4),
    "nonlinearity": lambda t: t.nn.RNN(3, 4, nonlinearity="x"),
    "dropout": lambda t: t.nn.RNN(3, 4, dropout=2.0),
    "cell rank": lambda t: t.nn.LSTMCell(3, 4)(t.zeros(1, 1, 3)),
    "cell state": lambda t: t.nn.GRUCell(3, 4)(t.zeros(2, 3), t.zeros(1, 1, 4)),
    "lengths": lambda t: t.nn.utils.rnn.pack_padded_sequence(t.zeros(3, 2, 1), [3]),
    "unsorted": lambda t: t.nn.utils.rnn.pack_padded_sequence(t.zeros(3, 2, 1), [2, 3]),
    "no length": lambda t: t.nn.utils.rnn.pack_padded_sequence(t.zeros(3, 2, 1), [3, 0]),
    "empty": lambda t: t.nn.utils.rnn.pad_sequence([]),
    "heads": lambda t: t.nn.MultiheadAttention(5, 2),
    "no width": lambda t: t.nn.MultiheadAttention(0, 2),
    "activation": lambda t: t.nn.TransformerEncoderLayer(4, 2, activation="x"),
    "batch": lambda t: t.nn.Transformer(4, 2, 1, 1, 8)(t.zeros(3, 2, 4), t.zeros(3, 1, 4)),
    "features": lambda t: t.nn.Transformer(4, 2, 1, 1, 8)(t.zeros(3, 2, 4), t.zeros(3, 2, 2)),
}


@pytest.mark.parametrize("name", CALLS)
def test_refused(name: str) -> None:
    r = Refused(CALLS[name])
    assert r.ours is r.theirs is not None

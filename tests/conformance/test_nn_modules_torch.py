"""Modules against PyTorch: initial weights, outputs, gradients, state, repr, for the same seed."""

from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch")
import torchlab  # noqa: E402

MODULES = {
    "Linear": (lambda T: T.nn.Linear(5, 3), (4, 5)),
    "Linear no bias": (lambda T: T.nn.Linear(5, 3, bias=False), (2, 4, 5)),
    "Conv1d": (lambda T: T.nn.Conv1d(2, 4, 3, padding="same", groups=2), (2, 2, 7)),
    "Conv2d": (lambda T: T.nn.Conv2d(2, 3, 3, stride=2, padding=1, dilation=2), (2, 2, 9, 8)),
    "Conv2d circular": (
        lambda T: T.nn.Conv2d(2, 3, (3, 2), padding=(1, 2), padding_mode="circular"),
        (2, 2, 5, 6),
    ),
    "Conv2d reflect": (
        lambda T: T.nn.Conv2d(1, 1, 3, padding=1, padding_mode="reflect"),
        (1, 1, 4, 4),
    ),
    "MaxPool1d": (lambda T: T.nn.MaxPool1d(3, 2, 1), (2, 2, 7)),
    "MaxPool2d": (lambda T: T.nn.MaxPool2d(2, ceil_mode=True), (2, 2, 5, 7)),
    "AvgPool2d": (lambda T: T.nn.AvgPool2d(2, 2, 1, count_include_pad=False), (2, 2, 5, 7)),
    "AdaptiveAvgPool2d": (lambda T: T.nn.AdaptiveAvgPool2d((3, None)), (2, 2, 5, 7)),
    "ReLU": (lambda T: T.nn.ReLU(), (3, 4)),
    "GELU": (lambda T: T.nn.GELU(), (3, 4)),
    "GELU tanh": (lambda T: T.nn.GELU("tanh"), (3, 4)),
    "SiLU": (lambda T: T.nn.SiLU(), (3, 4)),
    "Tanh": (lambda T: T.nn.Tanh(), (3, 4)),
    "Sigmoid": (lambda T: T.nn.Sigmoid(), (3, 4)),
    "Softmax": (lambda T: T.nn.Softmax(dim=-1), (3, 4)),
    "LogSoftmax": (lambda T: T.nn.LogSoftmax(dim=1), (3, 4)),
    "LeakyReLU": (lambda T: T.nn.LeakyReLU(0.2), (3, 4)),
    "ELU": (lambda T: T.nn.ELU(0.5), (3, 4)),
    "LayerNorm": (lambda T: T.nn.LayerNorm((3, 4)), (2, 3, 4)),
    "RMSNorm": (lambda T: T.nn.RMSNorm(4), (2, 3, 4)),
    "GroupNorm": (lambda T: T.nn.GroupNorm(2, 4), (2, 4, 3)),
    "BatchNorm1d": (lambda T: T.nn.BatchNorm1d(4), (5, 4)),
    "BatchNorm2d": (lambda T: T.nn.BatchNorm2d(3, momentum=None), (4, 3, 2, 2)),
    "Dropout": (lambda T: T.nn.Dropout(0.3), (7, 9)),
    "deep": (
        lambda T: T.nn.Sequential(
            T.nn.Conv2d(1, 4, 3),
            T.nn.BatchNorm2d(4),
            T.nn.ReLU(),
            T.nn.MaxPool2d(2),
            T.nn.Flatten(),
            T.nn.Linear(16, 8),
            T.nn.Dropout(0.5),
            T.nn.LayerNorm(8),
            T.nn.Linear(8, 2),
        ),
        (3, 1, 6, 6),
    ),
}


def built(T, make):
    T.manual_seed(7)
    return make(T)


def arrays(state):
    return {k: v.detach().numpy() for k, v in state.items()}


def check(ours, theirs, rtol=2e-5, atol=2e-6):
    np.testing.assert_allclose(ours.detach().numpy(), theirs.detach().numpy(), rtol, atol)


@pytest.mark.parametrize("name", MODULES)
def test_module(name):
    make, shape = MODULES[name]
    a, b = built(torchlab, make), built(torch, make)
    assert repr(a) == repr(b)
    mine, theirs = arrays(a.state_dict()), arrays(b.state_dict())
    assert list(mine) == list(theirs)
    for k in mine:  # the same seed gives the same bits
        np.testing.assert_array_equal(mine[k], theirs[k])
        assert mine[k].dtype == theirs[k].dtype
    x = np.random.RandomState(0).standard_normal(shape).astype(np.float32)
    torchlab.manual_seed(3), torch.manual_seed(3)
    for training in (True, False):
        a.train(training), b.train(training)
        xa, xb = torchlab.from_numpy(x.copy()), torch.from_numpy(x.copy())
        xa.requires_grad_(), xb.requires_grad_()
        ya, yb = a(xa), b(xb)
        check(ya, yb)
        assert type(ya.grad_fn).__name__[:-1] == type(yb.grad_fn).__name__[:-1]
        a.zero_grad(), b.zero_grad()
        (ya * ya.cos()).sum().backward(), (yb * yb.cos()).sum().backward()
        check(xa.grad, xb.grad, 1e-3, 1e-4)
        for (n, p), q in zip(a.named_parameters(), b.parameters(), strict=True):
            assert p.grad is not None, n
            check(p.grad, q.grad, 1e-3, 1e-4)
    mine, theirs = arrays(a.state_dict()), arrays(b.state_dict())
    for k in mine:
        np.testing.assert_allclose(mine[k], theirs[k], 1e-5, 1e-6)


@pytest.mark.parametrize(
    "fill",
    [
        lambda T, t: T.nn.init.uniform_(t, -2, 3),
        lambda T, t: T.nn.init.normal_(t, 1, 2),
        lambda T, t: T.nn.init.trunc_normal_(t, 0.1, 0.7, -1, 1),
        lambda T, t: T.nn.init.trunc_normal_(t, 0.0, 1.0, 1.5, 1.9),
        lambda T, t: T.nn.init.xavier_uniform_(t, 1.5),
        lambda T, t: T.nn.init.xavier_normal_(t),
        lambda T, t: T.nn.init.kaiming_uniform_(t, mode="fan_out", nonlinearity="relu"),
        lambda T, t: T.nn.init.kaiming_normal_(t, a=0.3),
        lambda T, t: T.nn.init.orthogonal_(t, 2.0),
        lambda T, t: T.nn.init.sparse_(t, 0.3),
        lambda T, t: T.nn.init.eye_(t),
        lambda T, t: T.nn.init.constant_(t, 0.3),
    ],
)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("shape", [(3, 4), (17, 9)])
def test_init(fill, dtype, shape):
    drawn = []
    for T in (torchlab, torch):
        T.manual_seed(5)
        t = T.empty(*shape, dtype=getattr(T, dtype))
        assert fill(T, t) is t
        drawn.append((t.numpy(), T.rand(3).numpy()))
    np.testing.assert_allclose(drawn[0][0], drawn[1][0], 2e-5, 1e-6)
    np.testing.assert_array_equal(drawn[0][1], drawn[1][1])  # as much of the stream was used


def test_a_state_dict_goes_from_one_to_the_other():
    make = MODULES["deep"][0]
    a, b = built(torchlab, make), make(torch)
    b.load_state_dict({k: torch.from_numpy(v.numpy()) for k, v in a.state_dict().items()})
    c = make(torchlab)
    c.load_state_dict({k: torchlab.from_numpy(v.numpy()) for k, v in b.state_dict().items()})
    for k, v in a.state_dict().items():
        assert c.state_dict()[k].tolist() == v.tolist()


def test_backward_hooks():
    seen = []
    for T in (torchlab, torch):
        T.manual_seed(0)
        m = T.nn.Sequential(T.nn.Linear(2, 3), T.nn.Tanh(), T.nn.Linear(3, 1))
        log = []
        m[1].register_full_backward_pre_hook(lambda mod, go: (go[0] * 2,))
        m[1].register_full_backward_hook(
            lambda mod, gi, go, log=log: log.append([g.tolist() for g in (*gi, *go)])
        )
        m[0].register_full_backward_hook(
            lambda mod, gi, go, log=log: log.append([gi, go[0].tolist()])
        )
        m(T.ones(1, 2)).sum().backward()
        log.append(m[0].weight.grad.tolist())
        seen.append(log)
    assert str(seen[0][1][0]) == str(seen[1][1][0])
    for a, b in zip(*seen, strict=True):
        np.testing.assert_allclose(_numbers(a), _numbers(b), 1e-5)


def _numbers(x):
    if isinstance(x, (list, tuple)):
        return [n for y in x for n in _numbers(y)]
    return [] if x is None else [float(x)]

"""Muon, LBFGS, sparse gradients, recorded steps, refusals and weight averaging against PyTorch."""

from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch")
import torchlab  # noqa: E402


@pytest.mark.parametrize("shape", [(6, 4), (3, 7), (5, 5)])
@pytest.mark.parametrize(
    "kw", [{}, {"nesterov": False}, {"adjust_lr_fn": "match_rms_adamw"}, {"ns_steps": 3}]
)
def test_muon(shape, kw):
    ends = []
    for T in (torchlab, torch):
        rng = np.random.RandomState(0)
        p = T.nn.Parameter(T.from_numpy(rng.standard_normal(shape).astype("float32")))
        o = T.optim.Muon([p], lr=0.05, **kw)
        for _ in range(5):
            p.grad = T.from_numpy(rng.standard_normal(shape).astype("float32"))
            o.step()
        ends.append(p.detach().numpy())
    # the iteration is in bfloat16, of 8 bits, and steps are of 0.05
    np.testing.assert_allclose(*ends, rtol=0, atol=5 * 0.05 * 2**-7)


WOLFE = {"line_search_fn": "strong_wolfe"}


@pytest.mark.parametrize(
    "kw",
    [
        {"lr": 1e-3},
        WOLFE,
        {**WOLFE, "history_size": 2, "max_iter": 4},
        {**WOLFE, "max_iter": 1},
        {"lr": 0.01, "max_iter": 3, "history_size": 3},
        {"lr": 0.05, "max_eval": 3},
    ],
)
def test_lbfgs(kw):
    found = []
    for T in (torchlab, torch):
        p = [
            T.nn.Parameter(T.tensor([-1.2, 1.0, 0.3], dtype=T.float64)),
            T.nn.Parameter(T.tensor([[0.5]], dtype=T.float64)),
        ]
        o = T.optim.LBFGS(p, **kw)
        calls = []

        def closure(T=T, p=p, o=o, calls=calls):
            calls.append(1)
            o.zero_grad()
            x, y = p
            loss = (100 * (x[1:] - x[:-1] ** 2) ** 2).sum() + ((1 - x) ** 2).sum()
            loss = loss + (y**4).sum() + 0.1 * (x[0] * y).sum()
            loss.backward()
            return loss

        path = []
        for _ in range(5):
            path += [o.step(closure).item(), len(calls)]
            path += p[0].tolist() + p[1].flatten().tolist()
        state = o.state_dict()["state"][0]
        found.append((path, [(k, type(v).__name__) for k, v in state.items()]))
    np.testing.assert_allclose(found[0][0], found[1][0], rtol=1e-9)
    assert found[0][1] == found[1][1]


SPARSE = [
    *(("SGD", kw) for kw in ({}, {"momentum": 0.9}, {"momentum": 0.9, "nesterov": True},
                             {"weight_decay": 0.1}, {"maximize": True}, {"fused": True})),
    *(("Adagrad", kw) for kw in ({}, {"lr_decay": 0.1}, {"maximize": True}, {"fused": True},
                                 {"weight_decay": 0.1}, {"initial_accumulator_value": 0.3})),
    *(("SparseAdam", kw) for kw in ({}, {"maximize": True}, {"betas": (0.5, 0.6), "eps": 0.1})),
    *((name, {}) for name in ("Adam", "AdamW", "ASGD", "Adadelta", "Adafactor", "Adamax", "Muon",
                              "NAdam", "RAdam", "RMSprop", "Rprop")),
]  # fmt: skip


@pytest.mark.parametrize(("name", "kw"), SPARSE)
def test_sparse_gradients(name, kw):
    found = []
    for T in (torchlab, torch):
        p = T.nn.Parameter(T.arange(12, dtype=T.float64).reshape(4, 3))
        o = getattr(T.optim, name)([p], lr=0.05, **kw)
        path = []
        try:
            for k in range(5):
                values = T.ones(4, 3, dtype=T.float64) * T.arange(4)[:, None] * (0.1 + k)
                p.grad = T.sparse_coo_tensor(T.tensor([[0, 2, 2, k % 4]]), values, (4, 3))
                o.step()
                path += p.flatten().tolist()
        except RuntimeError as e:
            path = str(e)
        found.append(path)
    if isinstance(found[1], str):
        assert found[0] == found[1]
    else:
        np.testing.assert_allclose(*found, rtol=1e-12, atol=1e-12)


RECORDED = [
    ("SGD", {}), ("SGD", {"momentum": 0.9}), ("Adam", {}), ("AdamW", {}), ("ASGD", {}),
    ("Adadelta", {}), ("Adagrad", {}), ("NAdam", {}), ("RAdam", {}),
    ("RAdam", {"betas": (0.5, 0.6)}), ("RMSprop", {}), ("RMSprop", {"momentum": 0.9}),
]  # fmt: skip


@pytest.mark.parametrize(("name", "kw"), RECORDED)
def test_differentiable(name, kw):
    found = []
    for T in (torchlab, torch):
        x = T.tensor([1.0, -2.0, 0.5], dtype=T.float64, requires_grad=True)
        g = T.tensor([0.3, -0.2, 0.7], dtype=T.float64, requires_grad=True)
        p = x.clone()
        o = getattr(T.optim, name)([p], lr=0.05, differentiable=True, **kw)
        for k in range(3):
            p.grad = g * (k + 1) + 0.01 * g * g
            o.step()
        found.append(sum([t.tolist() for t in (p, *T.autograd.grad((p * p).sum(), [x, g]))], []))
    np.testing.assert_allclose(*found, rtol=1e-9, atol=1e-12)


BETAS = ({"betas": (-1, 0.9)}, {"betas": (0.9, 1.0)})
REFUSED = [
    *((name, {"lr": -1}) for name in ("ASGD", "Adadelta", "Adafactor", "Adagrad", "Adamax", "LBFGS",
                                      "Muon", "NAdam", "RAdam", "RMSprop", "Rprop", "SparseAdam")),
    *((name, {"weight_decay": -1}) for name in ("ASGD", "Adadelta", "Adafactor", "Adagrad", "Muon",
                                                "Adamax", "NAdam", "RAdam", "RMSprop")),
    *((name, kw) for name in ("Adamax", "NAdam", "RAdam", "SparseAdam") for kw in BETAS),
    ("Adadelta", {"rho": 1.1}), ("Adafactor", {"beta2_decay": 0.1}),
    ("Adafactor", {"eps": (-1, 1)}), ("Adafactor", {"eps": (None, -1)}), ("Adafactor", {"d": 0.5}),
    ("Adagrad", {"lr_decay": -1}), ("Adagrad", {"initial_accumulator_value": -1}),
    ("Adagrad", {"fused": True, "foreach": True}),
    ("Adagrad", {"fused": True, "differentiable": True}), ("Muon", {"momentum": -1}),
    ("Muon", {"adjust_lr_fn": "x"}), ("Muon", {"ns_steps": 100}),
    ("Muon", {"ns_coefficients": (1, 2)}), ("NAdam", {"momentum_decay": -1}),
    ("RMSprop", {"momentum": -1}), ("RMSprop", {"alpha": -1}), ("Rprop", {"etas": (1, 0.5)}),
    ("SparseAdam", {}),
]  # fmt: skip


@pytest.mark.parametrize(("name", "kw"), REFUSED)
def test_refusals(name, kw):
    found = []
    for T in (torchlab, torch):
        p = T.nn.Parameter(T.ones(2, 2))
        p.grad = T.ones(2, 2)
        with pytest.raises((ValueError, RuntimeError)) as e:
            getattr(T.optim, name)([p], **kw).step()
        found.append((e.type, str(e.value)))
    assert found[0] == found[1]


def averagers(w):
    return {
        "default": {},
        "swa": {"avg_fn": w.get_swa_avg_fn()},
        "ema": {"avg_fn": w.get_ema_avg_fn(0.9)},
        "many": {"multi_avg_fn": w.get_ema_multi_avg_fn(0.9)},
    }


@pytest.mark.parametrize("name", averagers(torch.optim.swa_utils))
@pytest.mark.parametrize("use_buffers", [False, True])
def test_averaged_model(name, use_buffers):
    found = []
    for T in (torchlab, torch):
        w = T.optim.swa_utils
        T.manual_seed(0)
        m = T.nn.Sequential(T.nn.Linear(3, 4), T.nn.BatchNorm1d(4), T.nn.Linear(4, 2))
        a = w.AveragedModel(m, use_buffers=use_buffers, **averagers(w)[name])
        o = T.optim.SGD(m.parameters(), lr=0.1)
        data = [T.randn(8, 3) for _ in range(6)]
        for x in data:
            o.zero_grad()
            m(x).pow(2).sum().backward()
            o.step()
            a.update_parameters(m)
        before = {k: v.numpy().copy() for k, v in a.state_dict().items()}
        w.update_bn([(x, 0) for x in data], a)
        after = {k: v.numpy().copy() for k, v in a.state_dict().items()}
        found.append((before, after, repr(a)))
    for x, y in zip(found[0][:2], found[1][:2], strict=True):
        assert list(x) == list(y)
        for k in x:
            np.testing.assert_allclose(x[k], y[k], 1e-4, 1e-5)
    assert found[0][2] == found[1][2]


@pytest.mark.parametrize(
    "kw",
    [
        {"swa_lr": 0.05},
        {"swa_lr": [0.05, 0.02], "anneal_epochs": 3},
        {"swa_lr": 0.05, "anneal_epochs": 0},
        {"swa_lr": 0.5, "anneal_strategy": "linear", "anneal_epochs": 7},
    ],
)
def test_swalr(kw):
    found = []
    for T in (torchlab, torch):
        groups = [{"params": [T.nn.Parameter(T.ones(2))], "lr": 0.3},
                  {"params": [T.nn.Parameter(T.ones(3))]}]  # fmt: skip
        o = T.optim.SGD(groups, lr=0.1)
        s = T.optim.swa_utils.SWALR(o, **kw)
        path = []
        for _ in range(15):
            path += [g["lr"] for g in o.param_groups]
            o.step()
            s.step()
        found.append((path, list(s.state_dict()), repr(o)))
    np.testing.assert_allclose(found[0][0], found[1][0], rtol=1e-12)
    assert found[0][1:] == found[1][1:]

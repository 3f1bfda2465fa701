"""Optimizers and schedulers against PyTorch: 20 steps under every option."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

torch = pytest.importorskip("torch")
import torchlab  # noqa: E402

SHAPES = [(3, 4), (5,), (2, 3, 2), ()]
SGD = {
    "momentum": (0, 0.9),
    "dampening": (0, 0.3),
    "weight_decay": (0, 0.1),
    "nesterov": (False, True),
    "maximize": (False, True),
}
ADAM = {
    "amsgrad": (False, True),
    "weight_decay": (0, 0.1),
    "maximize": (False, True),
    "betas": ((0.9, 0.999), (0.5, 0.6)),
    "flag": (None, "foreach", "fused", "capturable"),
}

COMMON = {"maximize": (False, True), "foreach": (None, True)}
DECAY = {"weight_decay": (0, 0.1), **COMMON}
OTHERS = {
    "ASGD": {**DECAY, "lambd": (1e-4, 0.1), "alpha": (0.75, 0.3), "t0": (1e6, 4)},
    "Adadelta": {**DECAY, "rho": (0.9, 0.5), "eps": (1e-6, 1e-2)},
    "Adafactor": {
        **DECAY,
        "beta2_decay": (-0.8, -0.3),
        "d": (1.0, 1.5),
        "eps": ((None, 1e-3), (1e-4, 0.1)),
    },
    "Adagrad": {
        **DECAY,
        "lr_decay": (0, 0.1),
        "initial_accumulator_value": (0, 0.2),
        "flag": (None, "fused"),
    },
    "Adamax": {**DECAY, "betas": ((0.9, 0.999), (0.5, 0.6)), "eps": (1e-8, 1e-3)},
    "NAdam": {
        **DECAY,
        "betas": ((0.9, 0.999), (0.5, 0.6)),
        "momentum_decay": (4e-3, 0.1),
        "decoupled_weight_decay": (False, True),
    },
    "RAdam": {
        **DECAY,
        "betas": ((0.9, 0.999), (0.5, 0.6)),
        "eps": (1e-8, 1e-3),
        "decoupled_weight_decay": (False, True),
    },
    "RMSprop": {**DECAY, "alpha": (0.99, 0.5), "momentum": (0, 0.9), "centered": (False, True)},
    "Rprop": {**COMMON, "etas": ((0.5, 1.2), (0.3, 1.7)), "step_sizes": ((1e-6, 50), (0.01, 0.1))},
}


def options():
    for name, table in (("SGD", SGD), ("Adam", ADAM), ("AdamW", ADAM), *OTHERS.items()):
        for chosen in itertools.product(*table.values()):
            kw = dict(zip(table, chosen, strict=True))
            if kw.get("nesterov") and (kw["dampening"] or not kw["momentum"]):
                continue
            flag = kw.pop("flag", None)
            if flag == "capturable":  # PyTorch steps so on accelerators only
                continue
            if flag:
                kw[flag] = True
            if kw.get("foreach") and kw.get("fused"):
                continue
            yield name, kw


def run(T, name, kw, dtype, steps=20):
    rng = np.random.RandomState(0)
    params = [
        T.nn.Parameter(T.from_numpy(np.asarray(rng.standard_normal(s), dtype))) for s in SHAPES
    ]
    o = getattr(T.optim, name)(params, lr=0.05, **kw)
    path = []
    for step in range(steps):
        for i, p in enumerate(params):
            g = T.from_numpy(np.asarray(rng.standard_normal(SHAPES[i]), dtype))
            p.grad = None if (step + i) % 7 == 6 else g
        o.step()
        path.append([p.detach().numpy().copy() for p in params])
    return path, o.state_dict()


@pytest.mark.parametrize(("name", "kw"), list(options()))
def test_trajectory(name, kw):
    for dtype, rtol in ((np.float64, 1e-11), (np.float32, 1e-4)):
        a, sa = run(torchlab, name, kw, dtype)
        b, sb = run(torch, name, kw, dtype)
        for x, y in zip(a, b, strict=True):
            for u, v in zip(x, y, strict=True):
                np.testing.assert_allclose(u, v, rtol, rtol)
        assert sa["param_groups"] == sb["param_groups"]
        assert sa["state"].keys() == sb["state"].keys()
        for k in sa["state"]:
            assert list(sa["state"][k]) == list(sb["state"][k])
            for n, v in sa["state"][k].items():
                other = sb["state"][k][n]
                assert str(v.dtype).split(".")[-1] == str(other.dtype).split(".")[-1]
                np.testing.assert_allclose(v.numpy(), other.numpy(), rtol, rtol)


@pytest.mark.parametrize("name", ["SGD", "Adam", "AdamW", *OTHERS])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "complex64"])
def test_other_types(name, dtype):
    paths = []
    if name == "Adafactor" and dtype == "complex64":
        for T in (torchlab, torch):
            p = T.nn.Parameter(T.ones(2, dtype=T.complex64))
            p.grad = T.ones_like(p)
            with pytest.raises(RuntimeError, match="Adafactor does not support complex parameters"):
                T.optim.Adafactor([p]).step()
        return
    kw = {} if name == "Rprop" else {"weight_decay": 0.01}
    for T in (torchlab, torch):
        t = T.tensor([1.0, -2.0, 0.75]).to(getattr(T, dtype))
        p = T.nn.Parameter(t)
        o = getattr(T.optim, name)([p], lr=0.05, **kw)
        for k in range(5):
            g = T.tensor([0.5, 0.25 * k, -1.0]).to(getattr(T, dtype))
            p.grad = g * 1j if dtype == "complex64" else g
            o.step()
        d = p.detach()
        d = T.view_as_real(d) if dtype == "complex64" else d.to(T.float32)
        paths.append(d.numpy())
    np.testing.assert_allclose(paths[0], paths[1], 2e-2 if "16" in dtype else 1e-5)


def schedulers(L):
    return {
        "step": lambda o: L.StepLR(o, 3, 0.7),
        "multistep": lambda o: L.MultiStepLR(o, [2, 5, 5], 0.5),
        "exponential": lambda o: L.ExponentialLR(o, 0.9),
        "cosine": lambda o: L.CosineAnnealingLR(o, 7, 0.001),
        "lambda": lambda o: L.LambdaLR(o, lambda e: 1 / (1 + e)),
        "linear": lambda o: L.LinearLR(o, 0.2, 0.9, 6),
        "onecycle": lambda o: L.OneCycleLR(o, 0.3, total_steps=31),
        "onecycle 3": lambda o: L.OneCycleLR(
            o, 0.3, epochs=5, steps_per_epoch=7, three_phase=True, anneal_strategy="linear"
        ),
        "restarts": lambda o: L.CosineAnnealingWarmRestarts(o, 4, 2),
        "cyclic": lambda o: L.CyclicLR(o, 0.01, 0.1, 3, mode="exp_range", gamma=0.9),
        "polynomial": lambda o: L.PolynomialLR(o, 20, 2.0),
        "plateau": lambda o: L.ReduceLROnPlateau(o, patience=2, factor=0.5, cooldown=1),
    }


@pytest.mark.parametrize("name", schedulers(torch.optim.lr_scheduler))
def test_scheduler(name):
    found = []
    metrics = np.random.RandomState(1).uniform(size=30)
    for T in (torchlab, torch):
        o = T.optim.SGD([T.nn.Parameter(T.ones(1))], lr=0.1, momentum=0.9)
        s = schedulers(T.optim.lr_scheduler)[name](o)
        path = []
        for k in range(30):
            path.append((o.param_groups[0]["lr"], o.param_groups[0]["momentum"]))
            o.step()
            s.step(metrics[k]) if name == "plateau" else s.step()
        found.append((path, sorted(s.state_dict())))
    np.testing.assert_allclose(found[0][0], found[1][0], rtol=1e-12)
    assert found[0][1] == found[1][1]


def test_a_model_learns_the_same():
    losses = []
    for T in (torchlab, torch):
        T.manual_seed(0)
        m = T.nn.Sequential(T.nn.Linear(6, 8), T.nn.Tanh(), T.nn.Linear(8, 3))
        x, y = T.randn(32, 6), T.randint(0, 3, (32,))
        o = T.optim.AdamW(m.parameters(), lr=0.01)
        path = []
        for _ in range(20):
            o.zero_grad()
            loss = T.nn.functional.cross_entropy(m(x), y)
            loss.backward()
            norm = T.nn.utils.clip_grad_norm_(m.parameters(), 0.5)
            o.step()
            path += [loss.item(), norm.item()]
        losses.append(path)
    np.testing.assert_allclose(losses[0], losses[1], rtol=1e-4)

"""Programs with modules under function transforms, for PyTorch and torchlab alike: gradients of
each sample, ensembles, tangent kernels, learning to learn. See `vmap_programs`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

PROGRAMS: dict[str, Callable[..., Any]] = {}


def program(name: str) -> Callable[[Any], Any]:
    def declare(f: Any) -> Any:
        PROGRAMS[name] = f
        return f

    return declare


def nets(m: Any) -> Any:
    m.manual_seed(0)
    return m.nn.Sequential(
        m.nn.Conv2d(1, 4, 3, padding=1),
        m.nn.GroupNorm(2, 4),
        m.nn.ReLU(),
        m.nn.MaxPool2d(2),
        m.nn.Flatten(),
        m.nn.Linear(4 * 16, 10),
    )


@program("per sample grads net")
def _per_sample_grads_net(m: Any, F: Any, x: Any, v: Any) -> Any:
    net = nets(m)
    p = dict(net.named_parameters())
    p = {k: a.detach() for k, a in p.items()}
    X = m.randn(5, 1, 8, 8)
    y = m.tensor([1, 2, 3, 4, 0])

    def loss(p, x, y):
        return m.nn.functional.cross_entropy(F.functional_call(net, p, (x[None],)), y[None])

    return F.vmap(F.grad(loss), in_dims=(None, 0, 0))(p, X, y)


@program("ntk")
def _ntk(m: Any, F: Any, x: Any, v: Any) -> Any:
    net = nets(m)
    p = {k: a.detach() for k, a in net.named_parameters()}
    X = m.randn(3, 1, 8, 8)
    fn = lambda p, x: F.functional_call(net, p, (x[None],))[0]
    j1 = F.vmap(F.jacrev(fn), (None, 0))(p, X)
    j2 = F.vmap(F.jacfwd(fn), (None, 0))({"5.bias": p["5.bias"], **p}, X)["5.bias"]
    j = [a.flatten(2) for a in j1.values()]
    return sum(m.einsum("Naf,Mbf->NMab", a, a) for a in j), j2


@program("ntk vps")
def _ntk_vps(m: Any, F: Any, x: Any, v: Any) -> Any:
    net = nets(m)
    p = {k: a.detach() for k, a in net.named_parameters()}
    X = m.randn(3, 1, 8, 8)
    fn = lambda p, x: F.functional_call(net, p, (x[None],))[0]

    def one(x1, x2):
        def f1(p):
            return fn(p, x1)

        def f2(p):
            return fn(p, x2)

        out, vf = F.vjp(f1, p)

        def g(vec):
            return F.jvp(f2, (p,), vf(vec))[1]

        return F.vmap(g)(m.eye(10))

    return F.vmap(F.vmap(one, (None, 0)), (0, None))(X, X)


@program("ensemble dropout")
def _ensemble_dropout(m: Any, F: Any, x: Any, v: Any) -> Any:
    m.manual_seed(0)
    ms = [
        m.nn.Sequential(m.nn.Linear(4, 8), m.nn.Dropout(0.5), m.nn.Linear(8, 2)) for _ in range(3)
    ]
    P, B = F.stack_module_state(ms)
    X = m.randn(6, 4)
    return F.vmap(
        lambda p, x: F.functional_call(ms[0], p, (x,)), in_dims=(0, None), randomness="different"
    )(P, X)


@program("ensemble dropout same")
def _ensemble_dropout_same(m: Any, F: Any, x: Any, v: Any) -> Any:
    m.manual_seed(0)
    ms = [
        m.nn.Sequential(m.nn.Linear(4, 8), m.nn.Dropout(0.5), m.nn.Linear(8, 2)) for _ in range(3)
    ]
    P, B = F.stack_module_state(ms)
    X = m.randn(6, 4)
    return F.vmap(
        lambda p, x: F.functional_call(ms[0], p, (x,)), in_dims=(0, None), randomness="same"
    )(P, X)


@program("maml")
def _maml(m: Any, F: Any, x: Any, v: Any) -> Any:
    m.manual_seed(0)
    net = m.nn.Sequential(m.nn.Linear(1, 8), m.nn.Tanh(), m.nn.Linear(8, 1))
    p = {k: a.detach() for k, a in net.named_parameters()}
    X = m.randn(4, 5, 1)
    Y = m.sin(X)

    def task(p, x, y):
        def loss(p):
            return ((F.functional_call(net, p, (x,)) - y) ** 2).mean()

        g = F.grad(loss)(p)
        q = {k: p[k] - 0.1 * g[k] for k in p}
        return loss(q)

    return F.grad(lambda p: F.vmap(task, in_dims=(None, 0, 0))(p, X, Y).mean())(p)


@program("attention")
def _attention(m: Any, F: Any, x: Any, v: Any) -> Any:
    m.manual_seed(0)
    net = m.nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True)
    p = {k: a.detach() for k, a in net.named_parameters()}
    X = m.randn(3, 5, 8)
    net.eval()

    def loss(p, x):
        return F.functional_call(net, p, (x[None],)).sin().sum()

    return F.vmap(F.grad(loss), (None, 0))(p, X)


@program("lstm")
def _lstm(m: Any, F: Any, x: Any, v: Any) -> Any:
    m.manual_seed(0)
    net = m.nn.LSTM(3, 4, batch_first=True)
    p = {k: a.detach() for k, a in net.named_parameters()}
    X = m.randn(3, 5, 3)

    def loss(p, x):
        return F.functional_call(net, p, (x[None],))[0].sin().sum()

    return F.vmap(F.grad(loss), (None, 0))(p, X)


@program("hessian params")
def _hessian_params(m: Any, F: Any, x: Any, v: Any) -> Any:
    m.manual_seed(0)
    net = m.nn.Sequential(m.nn.Linear(2, 3), m.nn.Tanh(), m.nn.Linear(3, 1))
    p = {k: a.detach() for k, a in net.named_parameters()}
    X = m.randn(5, 2)
    return F.hessian(lambda p: F.functional_call(net, p, (X,)).pow(2).mean())(p)


@program("batchnorm ensemble")
def _batchnorm_ensemble(m: Any, F: Any, x: Any, v: Any) -> Any:
    m.manual_seed(0)
    ms = [
        m.nn.Sequential(m.nn.Linear(4, 8), m.nn.BatchNorm1d(8), m.nn.Linear(8, 2)) for _ in range(3)
    ]
    P, B = F.stack_module_state(ms)
    X = m.randn(6, 4)
    o = F.vmap(lambda p, b, x: F.functional_call(ms[0], (p, b), (x,)), in_dims=(0, 0, None))(
        P, B, X
    )
    return o, B


@program("embedding ensemble")
def _embedding_ensemble(m: Any, F: Any, x: Any, v: Any) -> Any:
    m.manual_seed(0)
    W = m.randn(3, 5, 2)
    i = m.tensor([[0, 1], [3, 4], [2, 2]])
    return F.vmap(F.grad(lambda w, i: m.nn.functional.embedding(i, w).sin().sum()))(W, i), F.vmap(
        F.grad(lambda w, i: m.nn.functional.embedding(i, w, padding_idx=2).sin().sum())
    )(W, i)


@program("autocast")
def _autocast(m: Any, F: Any, x: Any, v: Any) -> Any:
    X = x.float()
    with m.autocast("cpu"):
        return F.vmap(lambda a: a @ a)(X).float(), str(F.vmap(lambda a: a @ a)(X).dtype)


@program("inference")
def _inference(m: Any, F: Any, x: Any, v: Any) -> Any:
    with m.inference_mode():
        r = F.vmap(lambda a: (a @ a).sin())(x)
    return r

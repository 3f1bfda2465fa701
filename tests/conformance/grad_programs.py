"""Programs over function transforms, for PyTorch and torchlab alike: each gets the module, its
`func`, a matrix and a vector, and gives tensors, or raises."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

PROGRAMS: dict[str, Callable[..., Any]] = {}


def program(name: str) -> Callable[[Any], Any]:
    def declare(f: Any) -> Any:
        PROGRAMS[name] = f
        return f

    return declare


@program("grad vmap grad exp")
def _grad_vmap_grad_exp(m: Any, F: Any, x: Any, v: Any) -> Any:
    return F.grad(lambda x: F.vmap(F.grad(lambda y: y.exp().sum()))(x).sum())(x)


@program("grad vmap grad tanh softmax")
def _grad_vmap_grad_tanh_softmax(m: Any, F: Any, x: Any, v: Any) -> Any:
    return F.grad(
        lambda x: (
            F.vmap(F.grad(lambda y: (y.tanh().softmax(0) * y.sigmoid()).sum()))(x).pow(2).sum()
        )
    )(x)


@program("vmap hessian")
def _vmap_hessian(m: Any, F: Any, x: Any, v: Any) -> Any:
    return F.vmap(F.hessian(lambda y: (y.tanh().softmax(0) * y.exp()).sum()))(x)


@program("hessian")
def _hessian(m: Any, F: Any, x: Any, v: Any) -> Any:
    return F.hessian(lambda y: (y.tanh().softmax(0) * y.exp()).sum())(x)


@program("jacrev jacrev")
def _jacrev_jacrev(m: Any, F: Any, x: Any, v: Any) -> Any:
    return F.jacrev(F.jacrev(lambda y: (y.tanh().softmax(0) * y.exp()).sum(1)))(x)


@program("jacfwd jacfwd")
def _jacfwd_jacfwd(m: Any, F: Any, x: Any, v: Any) -> Any:
    return F.jacfwd(F.jacfwd(lambda y: (y.tanh().softmax(0) * y.exp()).sum(1)))(x)


@program("jacrev jacfwd")
def _jacrev_jacfwd(m: Any, F: Any, x: Any, v: Any) -> Any:
    return F.jacrev(F.jacfwd(lambda y: (y.tanh().softmax(0) * y.exp()).sum(1)))(x)


@program("jacfwd argnums aux")
def _jacfwd_argnums_aux(m: Any, F: Any, x: Any, v: Any) -> Any:
    return F.jacfwd(
        lambda a, b: ({"o": a @ b, "p": (a * b).sum()}, a.sum()), argnums=(0, 1), has_aux=True
    )(x, v)


@program("jacrev argnums aux chunk")
def _jacrev_argnums_aux_chunk(m: Any, F: Any, x: Any, v: Any) -> Any:
    return F.jacrev(
        lambda a, b: ({"o": a @ b, "p": (a * b).sum()}, a.sum()),
        argnums=(0, 1),
        has_aux=True,
        chunk_size=2,
    )(x, v)


@program("vjp")
def _vjp(m: Any, F: Any, x: Any, v: Any) -> Any:
    o, f, aux = F.vjp(lambda a, b: ({"q": a @ b}, a * 2), x, v, has_aux=True)
    return o, f({"q": m.ones(3, dtype=m.float64)}), aux


@program("vjp bad struct")
def _vjp_bad_struct(m: Any, F: Any, x: Any, v: Any) -> Any:
    o, f = F.vjp(lambda a, b: ({"q": a @ b}), x, v)
    return f(v)


@program("vjp bad shape")
def _vjp_bad_shape(m: Any, F: Any, x: Any, v: Any) -> Any:
    o, f = F.vjp(lambda a, b: a @ b, x, v)
    return f(v)


@program("vjp twice")
def _vjp_twice(m: Any, F: Any, x: Any, v: Any) -> Any:
    o, f = F.vjp(lambda a, b: (a @ b).sin(), x, v)
    w = m.ones(3, dtype=m.float64)
    return f(w), f(w)


@program("jvp")
def _jvp(m: Any, F: Any, x: Any, v: Any) -> Any:
    return F.jvp(lambda a, b: ({"q": (a @ b).sin()}, (a * 2)), (x, v), (x, v))


@program("jvp aux")
def _jvp_aux(m: Any, F: Any, x: Any, v: Any) -> Any:
    return F.jvp(lambda a, b: ({"q": (a @ b).sin()}, (a * 2)), (x, v), (x, v), has_aux=True)


@program("jvp const")
def _jvp_const(m: Any, F: Any, x: Any, v: Any) -> Any:
    return F.jvp(lambda a: v * 2, (x,), (x,))


@program("jvp strict")
def _jvp_strict(m: Any, F: Any, x: Any, v: Any) -> Any:
    return F.jvp(lambda a: v * 2, (x,), (x,), strict=True)


@program("jvp e1")
def _jvp_e1(m: Any, F: Any, x: Any, v: Any) -> Any:
    return F.jvp(lambda a: a, x, x)


@program("jvp e2")
def _jvp_e2(m: Any, F: Any, x: Any, v: Any) -> Any:
    return F.jvp(lambda a: a, (x,), (v,))


@program("jvp e3")
def _jvp_e3(m: Any, F: Any, x: Any, v: Any) -> Any:
    return F.jvp(lambda a: a, (x,), (x, x))


@program("jvp e4")
def _jvp_e4(m: Any, F: Any, x: Any, v: Any) -> Any:
    return F.jvp(lambda a: a, (3.0,), (3.0,))


@program("jvp e5")
def _jvp_e5(m: Any, F: Any, x: Any, v: Any) -> Any:
    return F.jvp(lambda a: 3.0, (x,), (x,))


@program("jvp e6")
def _jvp_e6(m: Any, F: Any, x: Any, v: Any) -> Any:
    return F.jvp(lambda a: a, (x.long(),), (x.long(),))


@program("jvp e7")
def _jvp_e7(m: Any, F: Any, x: Any, v: Any) -> Any:
    return F.jvp(lambda: x, (), ())


@program("grad nonscalar")
def _grad_nonscalar(m: Any, F: Any, x: Any, v: Any) -> Any:
    return F.grad(lambda a: a)(x)


@program("grad nontensor")
def _grad_nontensor(m: Any, F: Any, x: Any, v: Any) -> Any:
    return F.grad(lambda a: 3.0)(x)


@program("grad int")
def _grad_int(m: Any, F: Any, x: Any, v: Any) -> Any:
    return F.grad(lambda a: a.sum())(x.long())


@program("grad number")
def _grad_number(m: Any, F: Any, x: Any, v: Any) -> Any:
    return F.grad(lambda a: a)(3.0)


@program("grad argnums")
def _grad_argnums(m: Any, F: Any, x: Any, v: Any) -> Any:
    return F.grad(lambda a, b: (a @ b).sum(), argnums=(1, 0))(x, v), F.grad(
        lambda a, b: (a @ b).sum(), argnums=-1
    )(x, v)


@program("grad argnums e")
def _grad_argnums_e(m: Any, F: Any, x: Any, v: Any) -> Any:
    return F.grad(lambda a, b: (a @ b).sum(), argnums=(0, 0))(x, v)


@program("grad argnums e2")
def _grad_argnums_e2(m: Any, F: Any, x: Any, v: Any) -> Any:
    return F.grad(lambda a, b: (a @ b).sum(), argnums=2)(x, v)


@program("grad argnums e3")
def _grad_argnums_e3(m: Any, F: Any, x: Any, v: Any) -> Any:
    return F.grad(lambda a, b: (a @ b).sum(), argnums="a")(x, v)


@program("grad argnums e4")
def _grad_argnums_e4(m: Any, F: Any, x: Any, v: Any) -> Any:
    return F.grad(lambda a, b: (a @ b).sum(), argnums=())(x, v)


@program("grad aux")
def _grad_aux(m: Any, F: Any, x: Any, v: Any) -> Any:
    return F.grad(lambda a: (a.sum(), {"k": a * 2, "n": 3}), has_aux=True)(x), F.grad_and_value(
        lambda a: (a.sum(), a), has_aux=True
    )(x)


@program("grad aux e")
def _grad_aux_e(m: Any, F: Any, x: Any, v: Any) -> Any:
    return F.grad(lambda a: a.sum(), has_aux=True)(x)


@program("grad dict")
def _grad_dict(m: Any, F: Any, x: Any, v: Any) -> Any:
    return F.grad(lambda d: (d["a"] @ d["b"][0]).sum())({"a": x, "b": [v]})


@program("grad const")
def _grad_const(m: Any, F: Any, x: Any, v: Any) -> Any:
    return F.grad(lambda a: v.sum())(x)


@program("grad requires")
def _grad_requires(m: Any, F: Any, x: Any, v: Any) -> Any:
    w = v.clone().requires_grad_()
    r = F.grad(lambda a: (a * w * w).sum())(x)
    return r, m.autograd.grad(r.sum(), w)[0]


@program("grad input requires")
def _grad_input_requires(m: Any, F: Any, x: Any, v: Any) -> Any:
    w = v.clone().requires_grad_()
    r = F.grad(lambda a: (a**3).sum())(w)
    return r, m.autograd.grad(r.sum(), w)[0]


@program("grad nograd outside")
def _grad_nograd_outside(m: Any, F: Any, x: Any, v: Any) -> Any:
    w = v.clone().requires_grad_()
    with m.no_grad():
        r = F.grad(lambda a: (a**3).sum())(w)
    return r


@program("grad nograd inside")
def _grad_nograd_inside(m: Any, F: Any, x: Any, v: Any) -> Any:
    def f(x):
        with m.no_grad():
            c = x**2
        return (x**3 - c).sum()

    return F.grad(f)(x)


@program("grad nested nograd")
def _grad_nested_nograd(m: Any, F: Any, x: Any, v: Any) -> Any:
    def f(x):
        with m.no_grad():
            c = F.grad(lambda y: (y**3).sum())(x)
        return (x**3 - c * x).sum()

    return F.grad(f)(x)


@program("linearize")
def _linearize(m: Any, F: Any, x: Any, v: Any) -> Any:
    o, f = F.linearize(lambda a, b: {"y": (a @ b).sin()}, x, v)
    return o, f(x, v), f(x * 2, v)


@program("linearize e")
def _linearize_e(m: Any, F: Any, x: Any, v: Any) -> Any:
    o, f = F.linearize(lambda a, b: {"y": (a @ b).sin()}, x, v)
    return f(x)


@program("vmap vjp")
def _vmap_vjp(m: Any, F: Any, x: Any, v: Any) -> Any:
    o, f = F.vjp(lambda a: a.sin(), v)
    return F.vmap(f)(x)


@program("vmap jvp")
def _vmap_jvp(m: Any, F: Any, x: Any, v: Any) -> Any:
    return F.vmap(lambda t: F.jvp(lambda a: a.sin() * a.sum(), (v,), (t,))[1])(x)


@program("vmap over w requires grad outside")
def _vmap_over_w_requires_grad_outside(m: Any, F: Any, x: Any, v: Any) -> Any:
    w = v.clone().requires_grad_()
    r = F.vmap(lambda a: (a * w).sum())(x)
    return r, m.autograd.grad(r.sum(), w)[0]


@program("per sample grads conv")
def _per_sample_grads_conv(m: Any, F: Any, x: Any, v: Any) -> Any:
    m.manual_seed(0)
    X = m.randn(4, 2, 5, 5)
    w = m.randn(3, 2, 3, 3)
    return F.vmap(
        F.grad(lambda w, x: m.nn.functional.conv2d(x[None], w).sin().sum()), in_dims=(None, 0)
    )(w, X)


@program("per sample grads mlp")
def _per_sample_grads_mlp(m: Any, F: Any, x: Any, v: Any) -> Any:
    m.manual_seed(0)
    X = m.randn(4, 2)
    y = m.tensor([0, 1, 2, 0])
    W = {"w": m.randn(3, 2), "b": m.randn(3)}

    def loss(W, x, y):
        return m.nn.functional.cross_entropy((x @ W["w"].T + W["b"])[None], y[None])

    return F.vmap(F.grad(loss), in_dims=(None, 0, 0))(W, X, y)


@program("per sample linear layernorm")
def _per_sample_linear_layernorm(m: Any, F: Any, x: Any, v: Any) -> Any:
    m.manual_seed(0)
    X = m.randn(4, 3, 2)
    W = {"w": m.randn(5, 2), "b": m.randn(5), "g": m.randn(5), "h": m.randn(5)}

    def loss(W, x):
        return (
            m.nn.functional.layer_norm(
                m.nn.functional.linear(x, W["w"], W["b"]), (5,), W["g"], W["h"]
            )
            .sin()
            .sum()
        )

    return F.vmap(F.grad(loss), in_dims=(None, 0))(W, X)


@program("ensemble bn gn")
def _ensemble_bn_gn(m: Any, F: Any, x: Any, v: Any) -> Any:
    m.manual_seed(0)
    X = m.randn(4, 6, 4, 3)
    W = {"g": m.randn(5, 4), "h": m.randn(5, 4)}

    def loss(W, x):
        return (
            m.nn.functional.batch_norm(x, None, None, W["g"], W["h"], True).sin().sum()
            + m.nn.functional.group_norm(x, 2, W["g"], W["h"]).cos().sum()
        )

    return F.vmap(F.grad_and_value(loss, argnums=(0, 1)), in_dims=(0, None))(W, X)


@program("sdpa")
def _sdpa(m: Any, F: Any, x: Any, v: Any) -> Any:
    m.manual_seed(0)
    q = m.randn(3, 2, 4, 5)
    f = lambda q: m.nn.functional.scaled_dot_product_attention(q, q, q, is_causal=True).sin().sum()
    return F.vmap(F.grad(f))(q)


@program("dual in vmap const grad")
def _dual_in_vmap_const_grad(m: Any, F: Any, x: Any, v: Any) -> Any:
    return F.jvp(
        lambda a: F.vmap(lambda b: F.grad(lambda c: (c * a).sin().sum())(b))(x), (v,), (v,)
    )


@program("pool")
def _pool(m: Any, F: Any, x: Any, v: Any) -> Any:
    m.manual_seed(0)
    q = m.randn(3, 2, 6, 6)
    f = lambda q: (
        m.nn.functional.max_pool2d(q, 2).sin().sum()
        + m.nn.functional.avg_pool2d(q, 3).cos().sum()
        + m.nn.functional.adaptive_avg_pool2d(q, 2).cos().sum()
        + m.nn.functional.interpolate(q[None], scale_factor=2).sin().sum()
    )
    return F.vmap(F.grad(f))(q)


@program("embedding")
def _embedding(m: Any, F: Any, x: Any, v: Any) -> Any:
    w = m.arange(12.0).view(4, 3)
    f = lambda w, i: m.nn.functional.embedding(i, w).sin().sum()
    return F.vmap(F.grad(f), in_dims=(None, 0))(w, m.tensor([[0, 1], [2, 2]]))


@program("index grad")
def _index_grad(m: Any, F: Any, x: Any, v: Any) -> Any:
    i = m.tensor([[0, 1], [2, 2], [3, 3]])
    return F.vmap(F.grad(lambda x, i: (x[i] ** 2).sum()))(x, i), F.vmap(
        F.grad(lambda x: (x[m.tensor([1, 1, 2])] ** 2).sum())
    )(x)

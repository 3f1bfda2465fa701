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


@program("inplace mul")
def _inplace_mul(m: Any, F: Any, x: Any, v: Any) -> Any:
    def f(x):
        y = x.clone()
        y.mul_(2)
        y[1] = 0
        y[2:] += x[:2]
        y[0].add_(5)
        return y

    return F.vmap(f)(x)


@program("inplace mul dim1")
def _inplace_mul_dim1(m: Any, F: Any, x: Any, v: Any) -> Any:
    def f(x):
        y = x.clone()
        y.mul_(2)
        y[1] = 0
        y[2:] += x[:1]
        y[0].add_(5)
        return y

    return F.vmap(f, in_dims=1, out_dims=1)(x)


@program("inplace on input visible")
def _inplace_on_input_visible(m: Any, F: Any, x: Any, v: Any) -> Any:
    def f(x):
        x[1] = 7
        return x * 2

    return F.vmap(f)(x), x


@program("grad inplace view in vmap")
def _grad_inplace_view_in_vmap(m: Any, F: Any, x: Any, v: Any) -> Any:
    def f(x):
        y = x * 2
        y[1].mul_(x[0])
        y[2:].copy_(x[:2] ** 2)
        return (y**2).sum()

    return F.vmap(F.grad(f))(x)


@program("grad inplace view in vmap dim1")
def _grad_inplace_view_in_vmap_dim1(m: Any, F: Any, x: Any, v: Any) -> Any:
    def f(x):
        y = x * 2
        y[1].mul_(x[0])
        y[2:].copy_(x[:1] ** 2)
        return (y**2).sum()

    return F.vmap(F.grad(f), in_dims=1)(x)


@program("grad of vmap inplace view")
def _grad_of_vmap_inplace_view(m: Any, F: Any, x: Any, v: Any) -> Any:
    def f(x):
        def g(x):
            y = x * 2
            y[1].mul_(x[0])
            y[2:].copy_(x[:2] ** 2)
            return (y**2).sum()

        return F.vmap(g)(x).sum()

    return F.grad(f)(x)


@program("vmap where")
def _vmap_where(m: Any, F: Any, x: Any, v: Any) -> Any:
    return F.vmap(lambda x: m.where(x > 0, x, 0.5))(x)


@program("promote 0d")
def _promote_0d(m: Any, F: Any, x: Any, v: Any) -> Any:
    return F.vmap(lambda s, w: s * w, in_dims=(0, None))(x[:, 0], v.float())


@program("promote 0d int")
def _promote_0d_int(m: Any, F: Any, x: Any, v: Any) -> Any:
    return F.vmap(lambda s, w: s * w, in_dims=(0, None))(x[:, 0], m.arange(4))


@program("promote 0d 0d")
def _promote_0d_0d(m: Any, F: Any, x: Any, v: Any) -> Any:
    return F.vmap(lambda s, w: s.float() * w, in_dims=(0, None))(x[:, 0], v[0])


@program("zeros_like write")
def _zeros_like_write(m: Any, F: Any, x: Any, v: Any) -> Any:
    def f(x):
        y = m.zeros_like(x)
        y.copy_(x)
        y[0] = 1
        z = x.new_zeros(2, 3)
        z[0] = x[:3]
        return y, z

    return F.vmap(f)(x)


@program("unbatched write")
def _unbatched_write(m: Any, F: Any, x: Any, v: Any) -> Any:
    return F.vmap(lambda x: m.zeros(4).add_(x))(x)


@program("unbatched write dtype ok")
def _unbatched_write_dtype_ok(m: Any, F: Any, x: Any, v: Any) -> Any:
    return F.vmap(lambda x: m.zeros(4, dtype=m.float64).add_(x))(x)


@program("unbatched setitem")
def _unbatched_setitem(m: Any, F: Any, x: Any, v: Any) -> Any:
    def f(x):
        y = m.zeros(4, dtype=m.float64)
        y[0] = x[0]
        return y

    return F.vmap(f)(x)


@program("item")
def _item(m: Any, F: Any, x: Any, v: Any) -> Any:
    return F.vmap(lambda x: x.sum().item())(x)


@program("bool")
def _bool(m: Any, F: Any, x: Any, v: Any) -> Any:
    return F.vmap(lambda x: x if x.sum() > 0 else -x)(x)


@program("float")
def _float(m: Any, F: Any, x: Any, v: Any) -> Any:
    return F.vmap(lambda x: x * float(x.sum()))(x)


@program("tolist")
def _tolist(m: Any, F: Any, x: Any, v: Any) -> Any:
    return F.vmap(lambda x: x.tolist())(x)


@program("numpy")
def _numpy(m: Any, F: Any, x: Any, v: Any) -> Any:
    return F.vmap(lambda x: x.numpy())(x)


@program("nonzero")
def _nonzero(m: Any, F: Any, x: Any, v: Any) -> Any:
    return F.vmap(lambda x: x.nonzero())(x)


@program("bool index")
def _bool_index(m: Any, F: Any, x: Any, v: Any) -> Any:
    return F.vmap(lambda x: x[x > 0])(x)


@program("bool index unbatched")
def _bool_index_unbatched(m: Any, F: Any, x: Any, v: Any) -> Any:
    return F.vmap(lambda x: x[v > 0])(x)


@program("rand error")
def _rand_error(m: Any, F: Any, x: Any, v: Any) -> Any:
    return F.vmap(lambda x: m.rand(3))(x)


@program("dropout error")
def _dropout_error(m: Any, F: Any, x: Any, v: Any) -> Any:
    return F.vmap(lambda x: m.nn.functional.dropout(x))(x)


@program("out_dims")
def _out_dims(m: Any, F: Any, x: Any, v: Any) -> Any:
    return F.vmap(lambda x: (x, x.sum(), v), out_dims=(1, 0, None))(x)


@program("out none batched")
def _out_none_batched(m: Any, F: Any, x: Any, v: Any) -> Any:
    return F.vmap(lambda x: x, out_dims=None)(x)


@program("dict in")
def _dict_in(m: Any, F: Any, x: Any, v: Any) -> Any:
    return F.vmap(lambda d: d["a"] * d["b"], in_dims=({"a": 0, "b": None},))({"a": x, "b": v})


@program("bad in_dims")
def _bad_in_dims(m: Any, F: Any, x: Any, v: Any) -> Any:
    return F.vmap(lambda d: d, in_dims={"a": 0})(x)


@program("bad in_dims2")
def _bad_in_dims2(m: Any, F: Any, x: Any, v: Any) -> Any:
    return F.vmap(lambda d: d, in_dims=(0, 0))(x)


@program("bad in_dims3")
def _bad_in_dims3(m: Any, F: Any, x: Any, v: Any) -> Any:
    return F.vmap(lambda d: d, in_dims=5)(x)


@program("bad in_dims4")
def _bad_in_dims4(m: Any, F: Any, x: Any, v: Any) -> Any:
    return F.vmap(lambda d, e: d)(x, 3)


@program("bad in_dims5")
def _bad_in_dims5(m: Any, F: Any, x: Any, v: Any) -> Any:
    return F.vmap(lambda d: d, in_dims=None)(x)


@program("bad in_dims6")
def _bad_in_dims6(m: Any, F: Any, x: Any, v: Any) -> Any:
    return F.vmap(lambda d: d, in_dims=(0.5,))(x)


@program("sizes")
def _sizes(m: Any, F: Any, x: Any, v: Any) -> Any:
    return F.vmap(lambda a, b: a + b)(x, v)


@program("noargs")
def _noargs(m: Any, F: Any, x: Any, v: Any) -> Any:
    return F.vmap(lambda: x)()


@program("randomness word")
def _randomness_word(m: Any, F: Any, x: Any, v: Any) -> Any:
    return F.vmap(lambda x: x, randomness="x")(x)


@program("chunk0")
def _chunk0(m: Any, F: Any, x: Any, v: Any) -> Any:
    return F.vmap(lambda x: x, chunk_size=0)(x)


@program("chunk2")
def _chunk2(m: Any, F: Any, x: Any, v: Any) -> Any:
    return F.vmap(lambda x: (x, x.sum()), chunk_size=2, out_dims=(1, 0))(x)


@program("nontensor out")
def _nontensor_out(m: Any, F: Any, x: Any, v: Any) -> Any:
    return F.vmap(lambda x: 3)(x)


@program("outdims structure")
def _outdims_structure(m: Any, F: Any, x: Any, v: Any) -> Any:
    return F.vmap(lambda x: (x, x), out_dims=(0, 0, 0))(x)


@program("outdim range")
def _outdim_range(m: Any, F: Any, x: Any, v: Any) -> Any:
    return F.vmap(lambda x: x, out_dims=4)(x)


@program("kwargs")
def _kwargs(m: Any, F: Any, x: Any, v: Any) -> Any:
    return F.vmap(lambda x, y: x * y)(x, y=x)


@program("nested")
def _nested(m: Any, F: Any, x: Any, v: Any) -> Any:
    return F.vmap(F.vmap(lambda a, b: a * b, in_dims=(None, 0)), in_dims=(0, None))(v, v)


@program("in_dims neg")
def _in_dims_neg(m: Any, F: Any, x: Any, v: Any) -> Any:
    return F.vmap(lambda a: a.sum(), in_dims=-1)(x)


@program("out=")
def _out(m: Any, F: Any, x: Any, v: Any) -> Any:
    return F.vmap(lambda a: m.add(a, a, out=m.zeros(4, dtype=m.float64)))(x)


@program("allclose")
def _allclose(m: Any, F: Any, x: Any, v: Any) -> Any:
    return F.vmap(lambda a: m.allclose(a, a))(x)


@program("equal")
def _equal(m: Any, F: Any, x: Any, v: Any) -> Any:
    return F.vmap(lambda a: m.equal(a, a))(x)


@program("backward inside")
def _backward_inside(m: Any, F: Any, x: Any, v: Any) -> Any:
    return F.vmap(lambda a: a.sum().backward())(x)


@program("size0")
def _size0(m: Any, F: Any, x: Any, v: Any) -> Any:
    return F.vmap(lambda a: (a * 2).sum())(x[:0])


@program("contig")
def _contig(m: Any, F: Any, x: Any, v: Any) -> Any:
    return F.vmap(lambda a: a.view(2, 2).t().reshape(4).contiguous().view(4))(x)


@program("stack const")
def _stack_const(m: Any, F: Any, x: Any, v: Any) -> Any:
    return F.vmap(lambda a: m.stack([v, a]))(x)


@program("cat const")
def _cat_const(m: Any, F: Any, x: Any, v: Any) -> Any:
    return F.vmap(lambda a: m.cat([v, a]))(x)


@program("const result")
def _const_result(m: Any, F: Any, x: Any, v: Any) -> Any:
    return F.vmap(lambda a: v * 2)(x)


@program("tensor()")
def _tensor(m: Any, F: Any, x: Any, v: Any) -> Any:
    return F.vmap(lambda a: a * m.tensor(2.0))(x)


@program("for loop")
def _for_loop(m: Any, F: Any, x: Any, v: Any) -> Any:
    return F.vmap(lambda a: sum(y for y in a))(x)


@program("einsum")
def _einsum(m: Any, F: Any, x: Any, v: Any) -> Any:
    return F.vmap(lambda a: m.einsum("i,i->i", a, v))(x)


@program("matmul")
def _matmul(m: Any, F: Any, x: Any, v: Any) -> Any:
    return (
        F.vmap(lambda a: a @ v)(x),
        F.vmap(lambda a: v @ a)(x),
        F.vmap(lambda a: x @ a)(x),
        F.vmap(lambda a, b: a @ b)(x, x),
    )


DRAWS: dict[str, Callable[[Any, Any], Any]] = {
    "rand": lambda m, x: m.rand(3),
    "randn": lambda m, x: m.randn(2, 3),
    "randint": lambda m, x: m.randint(0, 10, (4,)),
    "randperm": lambda m, x: m.randperm(5),
    "like": lambda m, x: m.randn_like(x),
    "dropout": lambda m, x: m.nn.functional.dropout(x),
    "normal_": lambda m, x: m.zeros_like(x).normal_(),
    "uniform_": lambda m, x: m.empty_like(x).uniform_(1, 2),
    "bern": lambda m, x: m.bernoulli(m.sigmoid(x)),
    "bernp": lambda m, x: m.bernoulli(x, 0.3),
    "multi": lambda m, x: m.multinomial(x.abs(), 2),
    "normal": lambda m, x: m.normal(x, 1.0),
    "exp": lambda m, x: m.zeros_like(x).exponential_(),
    "unb": lambda m, x: x + m.zeros(4).normal_(),
    "rl": lambda m, x: m.rand_like(m.ones(2)),
    "fd": lambda m, x: m.nn.functional.dropout1d(x[None, :, None].expand(2, 4, 3)),
    "poisson": lambda m, x: m.poisson(x.abs()),
    "gum": lambda m, x: m.nn.functional.gumbel_softmax(x),
    "bunb": lambda m, x: m.bernoulli(m.full((3,), 0.5)),
    "munb": lambda m, x: m.multinomial(m.ones(4), 2),
    "rint": lambda m, x: m.randint_like(x, 0, 9),
    "rrelu": lambda m, x: m.nn.functional.rrelu(x, training=True),
}
"""Random numbers inside vmap."""

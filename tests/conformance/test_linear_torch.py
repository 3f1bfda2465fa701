"""Linear algebra without decompositions against PyTorch: values, strides, dtypes, gradients."""

from __future__ import annotations

import numpy as np
import pytest

import torchlab as tl

torch = pytest.importorskip("torch")

RNG = np.random.default_rng(11)


def _matrices(*shape, kind="float64"):
    a = RNG.standard_normal(shape)
    return (a + 1j * RNG.standard_normal(shape) if "complex" in kind else a).astype(kind)


def _cases():
    a, b, v = _matrices(2, 3, 3), _matrices(2, 3, 4), _matrices(3)
    z, tall = _matrices(3, 3, kind="complex128"), _matrices(2, 5, 3)
    la = "linalg."
    return [
        ("det", la + "det", (a,), {}),
        ("det-complex", la + "det", (z,), {}),
        ("slogdet", la + "slogdet", (a,), {}),
        ("slogdet-complex", la + "slogdet", (z,), {}),
        ("inv", la + "inv", (a,), {}),
        ("solve", la + "solve", (a, b), {}),
        ("solve-vector", la + "solve", (a, a[..., 0]), {}),
        ("solve-one-vector", la + "solve", (a, v), {}),
        ("solve-broadcast", la + "solve", (a[0], b), {}),
        ("solve-right", la + "solve", (a, b.swapaxes(-1, -2).copy()), {"left": False}),
        ("triangular", la + "solve_triangular", (a, b), {"upper": True}),
        ("triangular-unit", la + "solve_triangular", (a[0], b), {"upper": False,
                                                                 "unitriangular": True}),
        ("tensorinv", la + "tensorinv", (_matrices(2, 3, 6),), {"ind": 2}),
        ("tensorsolve", la + "tensorsolve", (_matrices(6, 2, 3), _matrices(6)), {}),
        ("pinv", la + "pinv", (tall,), {}),
        ("pinv-complex", la + "pinv", (z,), {}),
        ("cond", la + "cond", (a,), {}),
        ("cond-smallest", la + "cond", (a, -2), {}),
        ("power", la + "matrix_power", (a, -3), {}),
        ("exp", la + "matrix_exp", (a,), {}),
        ("exp-complex", la + "matrix_exp", (z,), {}),
        ("multi_dot", la + "multi_dot", ([v, a[0], b[0]],), {}),
        ("cross", la + "cross", (a, v[None, None]), {}),
        ("vander", la + "vander", (v,), {"N": 4}),
        ("vecdot", la + "vecdot", (z, z), {}),
        ("nuclear", la + "matrix_norm", (tall, "nuc"), {}),
        ("addmm", "addmm", (v, a[0], a[1]), {"beta": 2, "alpha": 3}),
        ("addmm-complex", "addmm", (z, z, z), {"beta": 2 - 1j, "alpha": 1 + 3j}),
        ("addmv", "addmv", (v, a[0], v), {"alpha": 3}),
        ("addr", "addr", (v, v, v), {"alpha": 3}),
        ("baddbmm", "baddbmm", (b[0], a, b), {"beta": 2}),
        ("addbmm", "addbmm", (b[0], a, b), {"beta": 2}),
        ("kron", "kron", (a, b[0]), {}),
        ("inner", "inner", (a, v), {}),
        ("vdot", "vdot", (z[0], z[1]), {}),
        ("tensordot", "tensordot", (a, b), {"dims": ([0, 2], [0, 1])}),
        ("cdist", "cdist", (a, b.swapaxes(-1, -2).copy()), {}),
        ("cdist-1", "cdist", (a, b.swapaxes(-1, -2).copy()), {"p": 1.0}),
        ("pdist", "pdist", (tall[0],), {}),
        ("renorm", "renorm", (a, 2, 0, 0.5), {}),
        ("cov", "cov", (a[0],), {}),
        ("corrcoef", "corrcoef", (a[0],), {}),
        ("trapezoid", "trapezoid", (a, np.sort(v)), {}),
        ("einsum", "einsum", ("bij,bjk,k->ib", a, a, v), {}),
    ]  # fmt: skip


CASES = _cases()


def _called(module, name, args, kwargs):
    """(results, gradients) of the sum of squares of all results."""
    from_numpy = module.from_numpy
    leaves = []

    def leaf(x):
        if isinstance(x, list):
            return [leaf(y) for y in x]
        if not isinstance(x, np.ndarray):
            return x
        leaves.append(from_numpy(x.copy()).requires_grad_())
        return leaves[-1]

    f = module
    for part in name.split("."):
        f = getattr(f, part)
    r = f(*[leaf(x) for x in args], **kwargs)
    results = list(r) if isinstance(r, tuple) else [r]
    total = sum((x * x.conj()).real.sum() for x in results if x.requires_grad)
    total.backward()
    return results, [x.grad.resolve_conj() for x in leaves]


@pytest.mark.parametrize(("name", "args", "kwargs"), [c[1:] for c in CASES],
                         ids=[c[0] for c in CASES])  # fmt: skip
def test_like_pytorch(name, args, kwargs):
    got, got_grads = _called(tl, name, args, kwargs)
    expected, expected_grads = _called(torch, name, args, kwargs)
    for g, e in zip(got, expected, strict=True):
        assert (tuple(g.shape), g.stride(), str(g.dtype)) == (
            tuple(e.shape), e.stride(), str(e.dtype)
        )  # fmt: skip
        np.testing.assert_allclose(g.detach().numpy(), e.detach().numpy(), rtol=1e-8, atol=1e-10)
    for g, e in zip(got_grads, expected_grads, strict=True):
        np.testing.assert_allclose(g.numpy(), e.numpy(), rtol=1e-7, atol=1e-8)


@pytest.mark.parametrize("dtype", ["bool", "uint8", "int32", "int64", "float16", "bfloat16"])
@pytest.mark.parametrize("call", [
    "a @ a", "a @ v", "v @ v", "t.addmm(a, a, a)", "t.addmv(v, a, v)", "t.addr(a, v, v)",
    "t.baddbmm(a, b, b)", "t.addbmm(a, b, b)", "t.outer(v, v)", "t.kron(a, a)", "t.inner(a, v)",
    "t.vdot(v, v)", "t.tensordot(a, a, 1)", "t.einsum('ij,jk', a, a)", "t.cov(a)",
    "t.linalg.matrix_power(a, 3)", "t.linalg.inv(a)", "t.linalg.solve(a, a)", "t.linalg.det(a)",
    "t.linalg.vander(v)", "t.linalg.cross(b[0, :1].expand(3, 2), b[0, 1:].expand(3, 2), dim=0)",
    "t.cdist(a, a)", "t.pdist(a)", "t.renorm(a, 2, 0, 1.0)", "t.trapezoid(a)", "t.gradient(a)[0]",
    "t.linalg.lstsq(a, a)", "t.linalg.matrix_rank(a)", "t.linalg.pinv(a)", "t.linalg.cond(a)",
    "t.linalg.vecdot(a, a)", "t.linalg.solve_triangular(a, a, upper=True)",
])  # fmt: skip
def test_types_that_are_taken_and_refused(dtype, call):
    outcomes = []
    for t in (tl, torch):
        a = t.tensor([[2, 1], [1, 1]]).to(getattr(t, dtype))
        names = {"t": t, "a": a, "v": a[0], "b": a.unsqueeze(0)}
        try:
            r = eval(call, names)
        except Exception as e:
            outcomes.append(next(c.__name__ for c in type(e).__mro__ if c.__module__ == "builtins"))
        else:
            outcomes.append((str(r.dtype), r.to(t.float64).tolist()))
    if isinstance(outcomes[1], tuple):
        assert outcomes[0][0] == outcomes[1][0]
        np.testing.assert_allclose(outcomes[0][1], outcomes[1][1], rtol=2e-2)
    else:
        assert outcomes[0] == outcomes[1]

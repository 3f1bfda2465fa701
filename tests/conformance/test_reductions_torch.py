"""Reductions, scans and sorts against PyTorch: random dtypes, sizes, strides, dims; gradients."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import torchlab as tl
from torchlab.testing import assert_close, make_tensor

torch = pytest.importorskip("torch")

DTYPES = "float32 float64 float16 bfloat16 complex64 int64 int32 uint8 bool".split()
FLOATS = {"float32", "float64", "float16", "bfloat16", "complex64"}
TOLERANCE = {
    "float16": 2e-2,
    "bfloat16": 8e-2,
    "float32": 2e-5,
    "complex64": 2e-5,
    "float64": 1e-10,
}


def to_torch(x):
    """PyTorch's tensor over the same numbers, with the same strides."""
    if x.dtype is tl.bfloat16:
        return to_torch(x.float()).to(torch.bfloat16)
    t = torch.from_numpy(np.ascontiguousarray(x.detach().numpy()).reshape(tuple(x.shape)))
    return torch.empty_strided(tuple(x.shape), x.stride(), dtype=t.dtype).copy_(t)


@st.composite
def operands(draw, dtypes=DTYPES, least=0, special=True):
    """A tensor of few elements: permuted, sliced, expanded, with ties, NaN and infinities."""
    dtype = draw(st.sampled_from(dtypes))
    shape = draw(st.lists(st.integers(least, 5), max_size=4))
    tl.manual_seed(draw(st.integers(0, 1000)))
    span = {"low": -2, "high": 3} if dtype not in ("bool", "uint8") else {}
    x = make_tensor(shape, dtype=getattr(tl, dtype), device="cpu", **span)
    if dtype in FLOATS and draw(st.booleans()):
        x = x.real.round().to(x.dtype)  # ties
    if special and dtype in FLOATS and x.numel() and draw(st.integers(0, 3)) == 0:
        for value in (float("nan"), float("inf"), -float("inf")):
            if draw(st.booleans()):
                x.view(-1)[draw(st.integers(0, x.numel() - 1))] = value
    x = x.permute(draw(st.permutations(range(x.ndim))))
    if x.ndim and draw(st.booleans()):
        x = x[:: draw(st.integers(1, 2))]
    return x


def check(got, expected, dtype, strides=True):
    """Values, dtype, shape and strides."""
    if isinstance(expected, (tuple, list)):
        assert len(got) == len(expected)
        for g, e in zip(got, expected):
            check(g, e, dtype)
        return
    assert str(got.dtype) == str(expected.dtype)
    assert tuple(got.shape) == tuple(expected.shape)
    if strides and expected.numel():  # a size of 1 makes a stride meaningless
        assert [s for s, n in zip(got.stride(), got.shape) if n > 1] == [
            s for s, n in zip(expected.stride(), expected.shape) if n > 1
        ]
    tolerance = TOLERANCE.get(dtype, 2e-6)
    wide = torch.complex128 if expected.is_complex() else torch.float64
    e = expected.detach().to(wide).numpy()
    g = got.detach().to(tl.complex128 if expected.is_complex() else tl.float64).numpy()
    for part in ("real", "imag"):  # apart: a complex infinity is not near itself
        actual, desired = getattr(g, part), getattr(e, part)
        largest = np.abs(desired, where=np.isfinite(desired), out=np.ones(desired.shape))
        atol = tolerance * largest.max(initial=1)
        np.testing.assert_allclose(actual, desired, rtol=tolerance, atol=atol)


def compare(x, f, differentiable=True):
    """f on both; where PyTorch refuses, torchlab refuses with the same class of error."""
    dtype = x.dtype.name
    t = to_torch(x)
    x = x.detach()
    grad = differentiable and dtype in ("float32", "float64", "complex64")
    if grad:
        x.requires_grad_()
        t.requires_grad_()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            expected = f(torch, t)
        except (RuntimeError, IndexError, TypeError, NotImplementedError) as refusal:
            with pytest.raises((type(refusal), RuntimeError)):
                f(tl, x)
            return
        got = f(tl, x)
        check(got, expected, dtype)
        first, other = (got, expected)
        if isinstance(expected, (tuple, list)):
            first, other = got[0], expected[0]
        if not grad or not other.requires_grad:
            return
        assert first.grad_fn.name() == other.grad_fn.name()
        weights = np.arange(1, other.numel() + 1).reshape(tuple(other.shape)) / 4
        w = torch.from_numpy(np.asarray(weights)).to(other.dtype)
        other.backward(w)
        first.backward(tl.from_numpy(np.asarray(weights)).to(first.dtype))
        check(x.grad, t.grad, dtype, strides=False)


def some_dim(data, x):
    return data.draw(st.integers(-max(x.ndim, 1), max(x.ndim, 1) - 1))


def some_dims(data, x):
    return tuple(data.draw(st.sets(st.integers(0, x.ndim - 1)))) if x.ndim else ()


few = settings(max_examples=60, suppress_health_check=[HealthCheck.too_slow])


@few
@pytest.mark.parametrize("name", ["sum", "mean", "nansum", "amax", "amin", "all", "any", "nanmean"])
@given(data=st.data())
def test_over_dims(name, data):
    x = data.draw(operands())
    dims, keepdim = some_dims(data, x), data.draw(st.booleans())
    compare(x, lambda m, t: getattr(m, name)(t, dims, keepdim))


@few
@pytest.mark.parametrize("name", ["var", "std", "var_mean", "std_mean"])
@given(data=st.data())
def test_moments(name, data):
    x = data.draw(operands(["float32", "float64", "complex64"], special=False))
    # dim=() reduces everything, but PyTorch's gradient then counts one element
    dims, keepdim = some_dims(data, x) or None, data.draw(st.booleans())
    correction = data.draw(st.sampled_from([0, 1, 2]))
    grad = x.numel() and name in ("var", "var_mean")  # the rest: rounding decides at a spread of 0
    compare(
        x,
        lambda m, t: getattr(m, name)(t, dims, correction=correction, keepdim=keepdim),
        bool(grad),
    )


@few
@pytest.mark.parametrize(
    "name", "max min argmax argmin prod cumsum cumprod cummax cummin median nanmedian mode".split()
)
@given(data=st.data())
def test_along_a_dim(name, data):
    ties = name in ("median", "nanmedian", "mode")  # which of equals is found is PyTorch's secret
    # Where there is nothing to compare, PyTorch takes these, too.
    dtypes = [d for d in DTYPES if not (ties and d in ("complex64", "bool"))]
    x = data.draw(operands(dtypes, special=name not in ("prod", "cumprod", "mode")))
    dim = some_dim(data, x)
    full = name not in ("cumsum", "cumprod", "cummax", "cummin", "mode") and data.draw(
        st.booleans()
    )

    def f(m, t):
        if full:
            return getattr(m, name)(t)
        r = getattr(m, name)(t, dim)
        return (r[0],) if ties else r

    compare(x, f, differentiable=not ties)


@few
@pytest.mark.parametrize(
    "name", ["sort", "argsort", "topk", "kthvalue", "logsumexp", "logcumsumexp"]
)
@given(data=st.data())
def test_sorting_and_logarithms(name, data):
    dtypes = [
        d for d in DTYPES if not (name in ("kthvalue", "topk") and d in ("complex64", "bool"))
    ]
    x = data.draw(operands(dtypes, special="log" not in name))
    dim, down = some_dim(data, x), data.draw(st.booleans())
    calls = {
        "sort": lambda m, t: m.sort(t, dim=dim, descending=down, stable=True),
        "argsort": lambda m, t: m.argsort(t, dim=dim, descending=down, stable=True),
        "topk": lambda m, t: (m.topk(t, 1, dim, down)[0],),
        "kthvalue": lambda m, t: (m.kthvalue(t, 1, dim)[0],),
        "logsumexp": lambda m, t: m.logsumexp(t, dim, down),
        "logcumsumexp": lambda m, t: m.logcumsumexp(t, dim),
    }
    compare(x, calls[name], differentiable=name not in ("topk", "kthvalue"))


@few
@given(data=st.data(), p=st.sampled_from([0, 0.5, 1, 1.5, 2, 3, float("inf"), -float("inf"), -1]))
def test_norms(data, p):
    x = data.draw(operands(["float32", "float64", "complex64"], least=1, special=False))
    dims = some_dims(data, x) or None
    # at 0, powers below 1 have infinite slopes, and PyTorch's NaN depends on its order of terms
    compare(x, lambda m, t: m.norm(t, p, dims), differentiable=p >= 1)


@few
@given(data=st.data())
def test_sets(data):
    x = data.draw(operands(["float32", "int64", "uint8", "bool"], special=False))
    flags = {"return_inverse": True, "return_counts": True}
    compare(x, lambda m, t: m.unique(t, **flags), False)
    compare(x, lambda m, t: m.unique_consecutive(t, **flags), False)
    if x.ndim:
        dim = some_dim(data, x)
        compare(x, lambda m, t: m.unique(t, dim=dim, **flags), False)
        compare(x, lambda m, t: m.count_nonzero(t, dim), False)
    if x.dtype is tl.float32:
        compare(x, lambda m, t: m.histc(t, 5, -1, 2), False)
        bounds = [-1.0, 0.0, 0.5, 2.0]
        for right in (False, True):
            compare(x, lambda m, t, r=right: m.bucketize(t, m.tensor(bounds), right=r), False)


@pytest.mark.parametrize(
    "dtype", "bool uint8 int8 int64 float16 bfloat16 float32 complex64".split()
)
@pytest.mark.parametrize("noncontiguous", [False, True])
def test_make_tensor_draws_the_same_numbers(dtype, noncontiguous):
    for shape in ((), (1,), (7,), (2, 3, 4), (0, 3)):
        torch.manual_seed(5)
        tl.manual_seed(5)
        how = {"device": "cpu", "noncontiguous": noncontiguous}
        expected = torch.testing.make_tensor(shape, dtype=getattr(torch, dtype), **how)
        got = make_tensor(shape, dtype=getattr(tl, dtype), **how)
        assert got.stride() == expected.stride()
        assert_close(to_torch(got).tolist(), expected.tolist(), rtol=0, atol=0)


PAIRS = [
    ([1.0, 2.0, 3.0], [1.0, 2.0, 4.0], {}),
    ([1, 2], [1, 4], {}),
    ([float("nan")], [float("nan")], {}),
    ([0.0, 1.0], [float("inf"), 1.0], {}),
    ([5.0, 1.0], [0.0, 1.0], {}),
    ([1 + 1j], [1 + 2j], {}),
    ([True, False], [True, True], {}),
    ([1.0], [2.0], {"rtol": 0, "atol": 0}),
    ([1.0], [1], {}),
    ([1.0, 2.0], [1.0], {}),
    (1.0, 2.0, {}),
    (3, 2, {}),
]


@pytest.mark.parametrize(("actual", "expected", "how"), PAIRS)
def test_assert_close_says_the_same(actual, expected, how):
    texts = []
    for m in (torch, tl):
        with pytest.raises(AssertionError) as caught:
            m.testing.assert_close([m.tensor(actual)], [m.tensor(expected)], **how)
        texts.append(str(caught.value))
    assert texts[0] == texts[1]

"""Tests that the declarations generate: what an operator says about itself is held against what it
does, for every operator in the registry. The example arguments come from `samples.py`."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import torchlab
from tests.core.ops.samples import (
    ARGUMENTS,
    FLAT,
    PREPARED,
    SHAPE_FROM_DATA,
    SYMMETRIC,
    WELL_DEFINED,
    declared,
    samples,
)
from torchlab import Tensor
from torchlab._core.backends.meta import MetaArray
from torchlab._core.dispatch.compute import meta_tensor
from torchlab._core.dispatch.generate.nodes import node_name, plan
from torchlab._core.dispatch.modes import tensors_in
from torchlab._core.dispatch.op import Op
from torchlab._core.tape import AccumulateGrad, Out, geometry
from torchlab._core.tensor import strides_of
from torchlab.autograd import gradcheck, gradgradcheck

OPS = declared()
POINTWISE = ("unary", "binary", "pointwise")


def _ids(ops: list[Op]) -> Any:
    return pytest.mark.parametrize("op", ops, ids=[f"{op.name}.{op.overload}" for op in ops])


def _each(x: Any, change: Any) -> Any:
    if isinstance(x, Tensor):
        return change(x)
    return type(x)(_each(y, change) for y in x) if type(x) in (list, tuple) else x


def _outputs(result: Any) -> list[Tensor]:
    return tensors_in(result if isinstance(result, (list, tuple)) else (result,))


def _facts(t: Tensor) -> tuple[Any, ...]:
    return tuple(t.shape), strides_of(t), t.dtype


def _no_data(t: Tensor) -> Tensor:
    return meta_tensor(MetaArray(t._a.shape, t._a.dtype, strides_of(t)), t._k.dtype)


def _apart(t: Tensor) -> Tensor:
    """The same values with gaps and dimensions reversed in memory."""
    a = np.empty([2 * n for n in reversed(t._a.shape)], t._a.dtype).T[
        (slice(None, None, 2),) * t._a.ndim
    ]
    a = a if isinstance(a, np.ndarray) else np.empty((), t._a.dtype)
    a[...] = t._a
    return torchlab.from_numpy(a)


def test_there_are_no_samples_for_nothing() -> None:
    known = {f"{op.name}.{op.overload}" for op in OPS} | {
        op.name for op in OPS if op.overload == "default"
    }
    assert set(ARGUMENTS) <= known


# They refuse gaps, or give a geometry in the storage of their own.
WANT_CONTIGUOUS = frozenset({"view", "_unsafe_view", "_reshape_alias", "view_as", "as_strided"})


def _layouts(ops: list[Op]) -> Any:
    cases = [(op, layout) for op in ops for layout in ("contiguous", "strided")]
    cases = [(op, x) for op, x in cases if x == "contiguous" or op.name not in WANT_CONTIGUOUS]
    ids = [f"{op.name}.{op.overload}-{x}" for op, x in cases]
    return pytest.mark.parametrize(("op", "layout"), cases, ids=ids)


@_layouts([op for op in OPS if op.name not in SHAPE_FROM_DATA])
def test_meta_rule_foretells_shape_strides_and_dtype(op: Op, layout: str) -> None:
    for args in samples(op):
        if layout == "strided":
            args = _each(args, _apart)
        real = [_facts(t) for t in _outputs(op.core(*args))]
        fake = [_facts(t) for t in _outputs(op.core(*_each(args, _no_data)))]
        assert fake == real


@_ids(OPS)
def test_views_share_memory_and_nothing_else_does(op: Op) -> None:
    for args in samples(op):
        inputs = [t for t in tensors_in(args) if t._a.size]
        marked = op.schema.returns[0].alias is not None
        for o in _outputs(op.core(*args)):
            shared = any(np.shares_memory(o._a, t._a) for t in inputs)
            if op.family == "view":
                assert o._s is args[0]._s
                assert shared or not o._a.size or not inputs
            elif not marked:
                assert not shared


@_layouts([op for op in OPS if op.family == "view" and op.meta is not None])
def test_layout_rule_of_a_view(op: Op, layout: str) -> None:
    for args in samples(op):
        if layout == "strided":
            args = _each(args, _apart)
        told = op.meta(*geometry(args[0]), *args[1:])
        told = told if isinstance(told, list) else [told]
        real = [geometry(o) for o in _outputs(op.core(*args))]
        for (shape, strides, offset), (real_shape, real_strides, real_offset) in zip(
            told, real, strict=True
        ):
            assert tuple(shape) == real_shape
            assert tuple(strides) == real_strides
            assert offset == real_offset or 0 in real_shape


def _differentiable(op: Op) -> bool:
    if op.name in SHAPE_FROM_DATA and op.name != "masked_select":
        return False
    if op.vjp:
        return not any(f.startswith("no_derivative") for f in op.vjp.values())
    return op.family == "composite" and op.name not in FLAT


NOT_TO = {"cross_entropy_loss": {"weight"}, "nll_loss_nd": {"weight"}}  # PyTorch refuses these, too


def _wanting(op: Op, args: tuple[Any, ...]) -> tuple[Any, ...]:
    """The arguments, with gradients asked for where the operator has them."""
    targets = set(plan(op).targets) if op.vjp else {a.name for a in op.schema.arguments}
    targets -= NOT_TO.get(op.name, set())
    return tuple(
        _each(x, lambda t: t.detach().requires_grad_() if t._k.differentiable else t)
        if a.name in targets else x
        for a, x in zip(op.schema.arguments, args, strict=True)
    )  # fmt: skip


def _function(op: Op, args: tuple[Any, ...]) -> tuple[Any, list[Tensor]]:
    """`op` as a function of the tensors that want a gradient, and those tensors."""
    inputs = [t for t in tensors_in(args) if t.requires_grad]

    def call(*values: Tensor) -> Any:
        if op.name in SYMMETRIC:
            values = tuple((x + x.mT) / 2 for x in values)
        if op.name in PREPARED:
            values = PREPARED[op.name](values, args)
        rest = iter(values)
        result = op.core(*_each(args, lambda t: next(rest) if t.requires_grad else t))
        found = _outputs(result)
        if op.name in WELL_DEFINED:
            found = WELL_DEFINED[op.name](found)
        return tuple(o for o in found if o.requires_grad)

    return call, inputs


@_ids([op for op in OPS if _differentiable(op)])
def test_gradients(op: Op) -> None:
    for args in samples(op):
        call, inputs = _function(op, _wanting(op, args))
        if not all(t._a.size for t in inputs):
            continue
        assert call(*inputs), "no output requires grad"
        assert gradcheck(call, inputs)


@_ids([op for op in OPS if _differentiable(op)])
def test_second_gradients(op: Op) -> None:
    for args in list(samples(op))[:1]:
        call, inputs = _function(op, _wanting(op, args))
        assert gradgradcheck(call, inputs)


@_ids([op for op in OPS if op.vjp])
def test_node_has_the_declared_name(op: Op) -> None:
    args = _wanting(op, next(samples(op)))
    named = []
    for o in _outputs(op.core(*args)):
        e = o._e
        if e is not None and type(e) is not AccumulateGrad:
            named.append(e.node if type(e) is Out else e)
    assert named
    for node in named:
        assert type(node).__name__ == node.name().rpartition("::")[2]
        # "A:0|B": B is the node's name where the last operand is a tensor; ":" tells of edges.
        name = node.name().removeprefix("torch::autograd::")
        declared = [n.partition(":")[0] for n in (op.grad_name or "").split("|")]
        assert name in declared or name == node_name(op)
        assert "Backward" in name or name == "NotImplemented"


def _out_of_place(op: Op, args: tuple[Any, ...]) -> list[np.ndarray]:
    return [o._a.copy() for o in _outputs(op.core(*args))]


INPLACE = [op for op in OPS if op.inplace_form]


def _inplace(op: Op, target: Tensor, *rest: Any) -> Tensor:
    """The in-place form with `rest` by position where the schema has keyword-only arguments."""
    named = zip(op.schema.arguments[1:], rest, strict=True)
    keyword = {a.name: x for a, x in named if a.kwarg_only}
    return op.inplace(target, *rest[: len(rest) - len(keyword)], **keyword)


def _writable(op: Op) -> Iterator[tuple[Any, ...]]:
    """Samples whose result fits into the first argument."""
    for args in samples(op):
        result = op.core(*args)
        if tuple(result.shape) == tuple(args[0].shape) and torchlab.can_cast(
            result.dtype, args[0].dtype
        ):
            yield args


@_ids(INPLACE)
def test_in_place_equals_out_of_place(op: Op) -> None:
    for args in _writable(op):
        (expected,) = _out_of_place(op, args)
        for target in (args[0], _apart(args[0])):
            version = target._version
            assert _inplace(op, target, *args[1:]) is target
            np.testing.assert_array_equal(target._a, expected)
            assert target._version == version + 1


@_ids([op for op in INPLACE if op.vjp and _differentiable(op)])
def test_in_place_records_the_same_gradient(op: Op) -> None:
    for args in _writable(op):
        args = _wanting(op, args)
        call, inputs = _function(op, args)
        if not all(t._a.size for t in inputs):
            continue
        expected = torchlab.autograd.grad(call(*inputs)[0].sum(), inputs, allow_unused=True)
        rest = args[1:]
        written = _inplace(op, args[0].clone(), *rest)
        found = torchlab.autograd.grad(written.sum(), inputs, allow_unused=True)
        for e, f in zip(expected, found, strict=True):
            assert (e is None) == (f is None)
            if e is not None:
                np.testing.assert_allclose(f._a, e._a, rtol=1e-12)


OUT = [op for op in OPS if op.out_form]


def _like(t: Tensor) -> Tensor:
    return torchlab.from_numpy(np.zeros(t._a.shape, t._a.dtype))


@_ids(OUT)
def test_out_form_equals_the_function(op: Op) -> None:
    for args in samples(op):
        results = _outputs(op.core(*args))
        for make in (_like, lambda t: _apart(_like(t))):
            outs = tuple(make(r) for r in results)
            given = outs if len(outs) > 1 else outs[0]
            op.out(*args, out=given)
            for o, r in zip(outs, results, strict=True):
                np.testing.assert_array_equal(o._a, r._a)


@contextlib.contextmanager
def _nothing_changes(*tensors: Tensor) -> Iterator[None]:
    """The call inside is refused with RuntimeError, and no tensor is any different for it."""
    before = [(t._a.copy(), t._version, _facts(t), t._e) for t in tensors]
    with pytest.raises(RuntimeError):
        yield
    for t, (values, version, facts, edge) in zip(tensors, before, strict=True):
        np.testing.assert_array_equal(t._a, values)
        assert (t._version, _facts(t)) == (version, facts) and t._e is edge


# Without any derivative: PyTorch's tape has nothing against them.
WRITES_ANYWHERE = frozenset({"logical_and", "logical_or", "logical_xor", "logical_not"})
# PyTorch does not mind if elements of what they write share memory.
WRITES_REPEATED = frozenset({"masked_fill", "index_put", "index_fill", "threshold"})
# `out` says the dtype to compute in.
TYPED_BY_OUT = frozenset({"sum", "nansum", "prod", "cumsum", "cumprod"})


@_ids(INPLACE)
def test_a_refused_write_changes_nothing(op: Op) -> None:
    args = next(samples(op))
    leaf = args[0].detach().clone()
    if leaf.dtype.is_floating_point and op.name not in WRITES_ANYWHERE:
        leaf.requires_grad_()
        with _nothing_changes(leaf):
            _inplace(op, leaf, *args[1:])
        repeated = torchlab.from_numpy(args[0]._a[:1].copy()).expand(2, *args[0].shape[1:])
        if repeated.ndim > 1 and op.name not in WRITES_REPEATED:
            with _nothing_changes(repeated):
                _inplace(op, repeated, *args[1:])


@_ids([op for op in INPLACE if op.family in POINTWISE and len(tensors_in(next(samples(op)))) > 1])
def test_a_write_that_does_not_fit_changes_nothing(op: Op) -> None:
    args = next(samples(op))
    small = torchlab.ones(1, dtype=args[0].dtype)
    with _nothing_changes(small):
        _inplace(op, small, *args[1:])


@_ids(OUT)
def test_a_refused_out_changes_nothing(op: Op) -> None:
    args = next(samples(op))
    results = _outputs(op.core(*args))
    other = {True: torchlab.bool, False: torchlab.int8}
    outs = tuple(
        _like(r).to(other[r.dtype is torchlab.int64 or not r.dtype.is_floating_point])
        for r in results
    )
    if all(r.dtype is torchlab.bool for r in results) or op.name in TYPED_BY_OUT:
        return  # PyTorch writes truth values into any type
    with _nothing_changes(*outs):
        op.out(*args, out=outs if len(outs) > 1 else outs[0])
    if op.vjp and all("no_derivative_of" in str(f) for f in op.vjp.values()):
        return  # PyTorch writes, and `out` gets a node that refuses
    if {"out_unrecorded", "out_copied", "constant"} & set(op.tags):
        return  # so here, or it gets the history of a copy, or none
    wants = _wanting(op, args) if op.vjp else args
    if any(t.requires_grad for t in tensors_in(wants)):
        outs = tuple(_like(r) for r in results)
        with _nothing_changes(*outs):
            op.out(*wants, out=outs if len(outs) > 1 else outs[0])


@_ids([op for op in OPS if op.decompose is not None and op.family != "composite"])
def test_decomposition_equals_the_kernel(op: Op) -> None:
    for args in samples(op):
        expected = _outputs(op.core(*args))
        found = _outputs(op.decompose(*args))
        for e, f in zip(expected, found, strict=True):
            assert (tuple(f.shape), f.dtype) == (tuple(e.shape), e.dtype)
            np.testing.assert_allclose(f._a, e._a, rtol=1e-12, atol=1e-14)


EXPRESSIONS: dict[str, Any] = {
    name: getattr(np, name)
    for name in (
        "where minimum maximum exp expm1 log log1p log2 log10 exp2 sin cos tan sinh cosh tanh "
        "trunc floor ceil abs sign sqrt isinf isfinite signbit"
    ).split()
}
EXPRESSIONS |= {
    "asin": np.arcsin, "acos": np.arccos, "atan": np.arctan, "asinh": np.arcsinh,
    "acosh": np.arccosh,
    "atanh": np.arctanh, "atan2": np.arctan2, "pow": np.power,
}  # fmt: skip


def _by_element(name: str) -> Any:
    return np.vectorize(getattr(math, name), otypes=[float])


EXPRESSIONS |= {name: _by_element(name) for name in ("erf", "erfc", "lgamma")}


@_ids([op for op in OPS if op.expr])
def test_scalar_expression_equals_the_kernel(op: Op) -> None:
    for args in samples(op):
        values = {
            a.name: x._a if isinstance(x, Tensor) else x
            for a, x in zip(op.schema.arguments, args, strict=True)
        }
        found = eval(op.expr, EXPRESSIONS, values)
        expected = op.core(*args)._a
        np.testing.assert_allclose(
            np.broadcast_to(found, expected.shape), expected, rtol=1e-9, atol=1e-12
        )

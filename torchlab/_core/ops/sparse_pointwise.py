"""Element by element: functions that keep zero, sums, products and quotients of sparse tensors.

An uncoalesced tensor is coalesced first where f(a) + f(b) is not f(a + b).

Source: https://docs.pytorch.org/docs/2.13/sparse.html#supported-operations
"""

from __future__ import annotations

from typing import Any

import numpy as np

from torchlab._core.dispatch import compute
from torchlab._core.dispatch.compute import wrap
from torchlab._core.dispatch.exotic import exotic, exotic_method, find, record
from torchlab._core.dispatch.registry import METHODS, OPS, aten
from torchlab._core.ops._sparse import (
    COO,
    CSC,
    CSR,
    NAMES,
    Coo,
    Sparse,
    SparseCompressed,
    SparseCoo,
    around,
    check_writable,
    coalesced,
    dense,
    flat,
    like,
    looked_up,
    new_coo,
    project,
    replace,
    values_of,
)
from torchlab._core.ops._sparse_layouts import as_coo, convert, merge
from torchlab._core.tensor import Tensor

COO_KEY, CSR_KEY = "SparseCPU", "SparseCsrCPU"

ZERO_KEEPING = (
    "abs sqrt sin tan asin atan sinh tanh asinh atanh deg2rad rad2deg expm1 log1p erf erfinv frac"
    " isposinf isneginf floor ceil trunc round relu sign sgn signbit isnan isinf"
).split()
LINEAR = "neg conj_physical _conj_physical _conj conj".split()  # uncoalesced tensors may stay so
ALSO_COO = "square nan_to_num".split()
ALSO_COMPRESSED = ("angle",)


_TITLES = {"log1p": "Log1PBackward0", "square": "PowBackward0"}


def _title(name: str) -> str:
    words = "".join(p[:1].upper() + p[1:] for p in name.split("_"))
    return _TITLES.get(name) or words + "Backward0"


def _applied(name: str, v: Tensor, rest: Any, named: Any) -> Tensor:
    """The operator on the values; an operator hands on all its arguments by position."""
    if rest and not named and name in OPS:
        return next(iter(OPS[name].values())).core(v, *rest)
    return getattr(aten, name)(v, *rest, **named)


def _unary(name: str, merge_first: bool) -> Any:
    def call(self: Any, *rest: Any, **named: Any) -> Any:
        x = coalesced(self) if merge_first and type(self._a) is Coo else self
        return like(x, _applied(name, values_of(x), rest, named), _title(name))

    return call


def _unary_inplace(name: str, needs_coalesced: bool) -> Any:
    def method(self: Any, *rest: Any, **named: Any) -> Any:
        check_writable(self)
        if needs_coalesced and type(self._a) is Coo and not self._a.coalesced:
            raise RuntimeError(f"{name}_ requires coalesced input")
        r = (
            _applied(name, values_of(self), (), named)
            if not rest
            else _applied(name, values_of(self), rest, named)
        )
        return replace(self, like(self, r, _title(name)), f"{name}_")

    return method


def _declare() -> None:
    for name in (*ZERO_KEEPING, *LINEAR, *ALSO_COO, *ALSO_COMPRESSED):
        call = _unary(name, name not in LINEAR)
        face = name not in OPS
        for key in (COO_KEY, CSR_KEY):
            if name in ALSO_COO and key == CSR_KEY or name in ALSO_COMPRESSED and key == COO_KEY:
                continue
            exotic(key, name, face=face)(call)
            if face and name in METHODS:
                exotic_method(key, name)(call)
            if name + "_" in METHODS and name not in ALSO_COO:
                exotic_method(key, name + "_")(_unary_inplace(name, name not in LINEAR))


_declare()


@exotic(COO_KEY, "positive")
@exotic(CSR_KEY, "positive")
def positive(self: Any) -> Any:
    return self


def _real(name: str) -> Any:
    def call(self: Any) -> Any:
        if not self._k.dtype.is_complex:
            if name == "imag":
                raise RuntimeError("imag is not implemented for tensors with non-complex dtypes.")
            return self
        if isinstance(self, SparseCompressed):
            return self.refuse("view_as_real", False, [self])
        r = like(self, getattr(aten, name)(values_of(self)), _title(name))
        return r._coalesced_(r._a.nnz < 2)

    return call


for _name in ("real", "imag"):
    for _key in (COO_KEY, CSR_KEY):
        exotic(_key, _name, face=True)(_real(_name))
        exotic_method(_key, _name)(property(_real(_name)))


# ---- sums ---------------------------------------------------------------------------------------


def _dtype(op: str, a: Any, b: Any) -> Any:
    return compute.result_dtypes(OPS[op]["Tensor"], (a, b))[1]


def _add_coo(a: Any, b: Any, alpha: Any) -> Any:
    p, q = a._a, b._a
    if p.shape != q.shape:
        raise RuntimeError(
            "add: expected sizes of 'self' and 'other' to match, but"
            f" {list(p.shape)} != {list(q.shape)}"
        )
    if p.sparse_dim != q.sparse_dim:
        raise RuntimeError(
            "add: expected 'self' and 'other' to have same number of sparse dimensions, but"
            f" {p.sparse_dim} != {q.sparse_dim}"
        )
    d = _dtype("add", a, b)
    v, w = aten.to(p.values, d), aten.to(q.values, d)
    if p.same(q):
        r = Coo(p.shape, p.indices, aten.add(v, w, alpha=alpha), p.coalesced and q.coalesced)
    elif p.coalesced and q.coalesced:
        index, at, bt = merge(p, q)
        values = np.zeros((index.shape[1], *v._a.shape[1:]), v._a.dtype)
        values[at] = v._a
        scaled = w._a if alpha == 1 else aten.mul(w, alpha)._a
        values[bt] += scaled
        r = Coo(p.shape, wrap(index), wrap(values), True)
    else:
        index = np.concatenate([p.indices._a, q.indices._a], axis=1)
        scaled_w = w if alpha == 1 else aten.mul(w, alpha)
        r = Coo(p.shape, wrap(index), aten.cat([v, scaled_w]), False)
    return around(r)


def _add_compressed(a: Any, b: Any, alpha: Any) -> Any:
    p, q = a._a, b._a
    if p.layout is not q.layout or p.shape != q.shape or p.blocksize != q.blocksize:
        raise RuntimeError(
            "add: expected 'self' and 'other' to have same size and layout, but got"
            f" {list(p.shape)} of {NAMES[p.layout]} and {list(q.shape)} of {NAMES[q.layout]}"
        )
    if p.same(q):
        return around(p.with_values(aten.add(p.values, q.values, alpha=alpha)))
    x, y = (coalesced(as_coo(around(z))) for z in (p, q))
    return aten.detach(convert(_add_coo(x, y, alpha), p.layout, p.blocksize if p.blocks else None))


def _shape_of(x: Any) -> Any:
    return x._a.shape if isinstance(x, Tensor) else ()


def _scaled(g: Any, alpha: Any) -> Any:
    return g if alpha == 1 else aten.mul(g, alpha)


def _add(name: str, self: Any, other: Any, alpha: Any) -> Any:
    """self + alpha · other; `name` is what the node says."""
    a, b = isinstance(self, Sparse), isinstance(other, Sparse)
    if a and b and type(self) is type(other):
        add = _add_coo if isinstance(self, SparseCoo) else _add_compressed
        made = add(self, other, alpha)
    elif a and b:
        raise RuntimeError(
            f"add: sparse operands of different layouts, {self.layout} and {other.layout}: convert"
            " one of them"
        )
    else:
        x = self if a else other
        if isinstance(x, SparseCoo) and a:
            raise RuntimeError(
                "add(sparse, dense) is not supported. Use add(dense, sparse) instead."
            )
        if _shape_of(self) != _shape_of(other):
            raise RuntimeError(
                "add: expected 'self' and 'other' to have same size, but self has size"
                f" {list(_shape_of(self))} while other has size {list(_shape_of(other))}"
            )
        if x._a.layout not in (COO, CSR, CSC):
            raise RuntimeError(f"add(dense, sparse) has no form for layout {x.layout}")
        parts = [
            dense(around(y._a)) if isinstance(y, Sparse) else aten.detach(y) for y in (self, other)
        ]
        made = aten.add(*parts, alpha=alpha)
    return record(name, made, (self, other), lambda g: (g, _scaled(g, alpha.conjugate())))


@exotic(COO_KEY, "add")
@exotic(CSR_KEY, "add")
def add(self: Any, other: Any, alpha: Any) -> Any:
    return _add("AddBackward0", self, other, alpha)


@exotic(COO_KEY, "sub")
def sub(self: Any, other: Any, alpha: Any) -> Any:
    if isinstance(other, SparseCompressed):
        return SparseCompressed.refuse("sub", True, [other])
    return _add("SubBackward0", self, other, -alpha)


# ---- products -----------------------------------------------------------------------------------


def _is_number(x: Any) -> bool:
    return not isinstance(x, Tensor) or (not isinstance(x, Sparse) and x._a.ndim == 0)


def _mul_coo(a: Any, b: Any) -> Any:
    p, q = a._a, b._a
    if p.shape != q.shape or p.sparse_dim != q.sparse_dim:
        raise RuntimeError(
            "sparse_binary_op_intersection_cpu(): expects sparse inputs with equal dimensionality,"
            " number of sparse dimensions, and shape of sparse dimensions"
        )
    if not p.coalesced and not q.coalesced:
        b = coalesced(b)
        q = b._a
    if not p.coalesced or not q.coalesced:
        if p.coalesced:
            a, b, p, q = b, a, q, p
        return like(a, aten.mul(values_of(a), looked_up(b, p)), "MulBackward0")
    if p.same(q):
        return like(a, aten.mul(values_of(a), values_of(b)), "MulBackward0")
    both, at, bt = np.intersect1d(flat(p), flat(q), assume_unique=True, return_indices=True)
    v = aten.index_select(values_of(a), 0, wrap(at))
    w = aten.index_select(values_of(b), 0, wrap(bt))
    del both
    return new_coo(p.indices._a[:, at], aten.mul(v, w), p.shape, True, "MulBackward0")


def _mul_compressed(self: Any, other: Any) -> Any:
    for x in (self, other):
        if isinstance(x, Sparse) and x._a.layout is not CSR:
            raise RuntimeError("Expected result Tensor to be of format CSR")
    if isinstance(self, Sparse) and isinstance(other, Sparse):
        if self._a.same(other._a):
            return like(self, aten.mul(values_of(self), values_of(other)), "MulBackward0")
        return convert(_mul_coo(coalesced(as_coo(self)), coalesced(as_coo(other))), CSR)
    x, d = (self, other) if isinstance(self, Sparse) else (other, self)
    if d._a.shape != x._a.shape:
        raise RuntimeError(
            "mul: operands have incompatible sizes: the strided operand has size"
            f" {list(d.shape)}, the sparse one {list(x.shape)}"
        )
    return like(x, aten.mul(values_of(x), project(d, x._a)), "MulBackward0")


def _spread(d: Any, x: Any) -> Any:
    """What the dense operand has at x's places, broadcast to x's shape."""
    if d._a.shape != x._a.shape:
        d = aten.expand(d, x._a.shape)
    return project(d, x._a)


@exotic(COO_KEY, "mul")
@exotic(CSR_KEY, "mul")
def mul(self: Any, other: Any) -> Any:
    a, b = isinstance(self, Sparse), isinstance(other, Sparse)
    if a and _is_number(other) or b and _is_number(self):
        x, y = (self, other) if a else (other, self)
        return like(x, aten.mul(values_of(x), y), "MulBackward0")
    if isinstance(self, SparseCompressed) or isinstance(other, SparseCompressed):
        return _mul_compressed(self, other)
    if a and b:
        return _mul_coo(self, other)
    x, d = (self, other) if a else (other, self)
    if d._a.shape != x._a.shape:
        return like(x, aten.mul(values_of(x), _spread(d, x)), "MulBackward0")
    bare_x, bare_d = around(x._a), aten.detach(d)
    made = like(bare_x, aten.mul(bare_x._a.values, project(bare_d, x._a)))

    def back(g: Any, x: Any, d: Any) -> Any:
        return aten.mul(g, _conjugate(d)), aten.mul(g, _conjugate(x))

    return record("MulBackward0", made, (x, d), back, x, d)


def _conjugate(x: Any) -> Any:
    return aten.conj_physical(x) if x._k.dtype.is_complex else x


def _quotient(name: str) -> Any:
    def call(self: Any, other: Any, *rest: Any) -> Any:
        if not isinstance(self, Sparse) or not _is_number(other):
            raise RuntimeError(
                "Sparse division requires a scalar or zero-dim dense tensor divisor (got shape"
                f" {list(_shape_of(other))} for divisor)"
            )
        x = self if name == "div" else coalesced(self)
        r = next(iter(OPS[name].values())).core(values_of(x), other, *rest)
        return like(x, r, "DivBackward0")

    return call


for _name in ("div", "floor_divide"):
    exotic(COO_KEY, _name)(_quotient(_name))
exotic(COO_KEY, "trunc_divide")(_quotient("trunc_divide"))


def _not_there(key: str, name: str) -> None:
    def refuse(*args: Any) -> Any:
        t = find(args)[0]
        return type(t).refuse(name, False, [t])

    exotic(key, name)(refuse)


for _name in ("floor_divide", "nan_to_num", "where"):
    _not_there(CSR_KEY, _name)


@exotic(COO_KEY, "masked_fill")
def masked_fill(self: Any, mask: Any, value: Any) -> Any:
    raise RuntimeError("masked_fill: unsupported memory format option Contiguous")


@exotic(COO_KEY, "dist")
def dist(self: Any, other: Any, p: Any = 2) -> Any:
    return aten.norm(aten.sub(self, other), p)


@exotic(CSR_KEY, "dist")
def no_dist(self: Any, other: Any, p: Any = 2) -> Any:
    return SparseCompressed.refuse("dist", True, find((self, other)))


@exotic(COO_KEY, "pow.Tensor_Scalar", "pow")
def pow(self: Any, exponent: Any) -> Any:
    if not isinstance(self, Sparse) or isinstance(exponent, Tensor):
        return SparseCoo.refuse("pow.Tensor_Tensor", True, [self])
    if exponent == 0:
        raise RuntimeError(
            "pow: cannot raise to zeroth power on sparse tensor; it would make the result tensor"
            " dense"
        )
    x = coalesced(self)
    return like(x, aten.pow(values_of(x), exponent), "PowBackward0")


# ---- in place -----------------------------------------------------------------------------------


def _inplace(name: str, call: Any) -> None:
    def method(self: Any, other: Any, *, alpha: Any = 1, rounding_mode: Any = None) -> Any:
        check_writable(self)
        if alpha != 1:
            r = call(self, other, alpha)
        elif rounding_mode is not None:
            r = aten.div(self, other, rounding_mode=rounding_mode)
        else:
            r = getattr(aten, name)(self, other)
        if not isinstance(r, Sparse):
            raise RuntimeError(
                f"{name}_: the result is dense and cannot be written into a tensor of layout"
                f" {self.layout}"
            )
        replace(self, r, f"{name}_")
        if name == "mul" and type(self._a) is Coo and not isinstance(other, Sparse):
            p = self._a  # PyTorch forgets here that the indices are sorted
            self._a = Coo(p.shape, p.indices, p.values, p.nnz < 2)
        return self

    for key in (COO_KEY, CSR_KEY):
        exotic_method(key, f"{name}_", f"__i{name}__")(method)


_inplace("add", add)
_inplace("sub", sub)
_inplace("mul", mul)
_inplace("div", None)
_inplace("floor_divide", None)
for _key in (COO_KEY, CSR_KEY):
    exotic_method(_key, "__itruediv__")(lambda self, other: self.div_(other))
    exotic_method(_key, "__ifloordiv__")(lambda self, other: self.floor_divide_(other))


def _into_dense(op: Any, operands: Any, values: Any, out: Any) -> Any:
    """dense.add_(sparse): the sparse operand adds its elements."""
    full = [dense(around(x._a)) if isinstance(x, Sparse) else x for x in operands]
    return compute.elementwise(op, full, values, out)


exotic(COO_KEY, "add_into", "sub_into", "mul_into")(_into_dense)


@exotic(CSR_KEY, "add_into")
def _compressed_into_dense(op: Any, operands: Any, values: Any, out: Any) -> Any:
    for x in operands:
        if isinstance(x, Sparse) and x._a.layout not in (CSR, CSC):
            raise RuntimeError(f"add_(dense, sparse) has no form for layout {x.layout}")
    return _into_dense(op, operands, values, out)


@exotic_method(COO_KEY, "zero_")
def zero_coo(self: Any) -> Any:
    check_writable(self)
    p = self._a
    rest = p.shape[p.sparse_dim :]
    index = np.empty((p.sparse_dim, 0), np.int64)
    return replace(
        self,
        around(Coo(p.shape, wrap(index), aten.empty((0, *rest), dtype=self.dtype), True)),
        "zero_",
    )


@exotic_method(CSR_KEY, "zero_")
def zero_compressed(self: Any) -> Any:
    return replace(self, aten.zeros_like(self), "zero_")


@exotic_method(CSR_KEY, "fill_")
def fill_(self: Any, value: Any) -> Any:
    check_writable(self)
    v = aten.full_like(self._a.values, value)
    return replace(self, around(self._a.with_values(v)), "fill_")


@exotic_method(COO_KEY, "fill_")
def fill_coo(self: Any, value: Any) -> Any:
    return type(self).refuse("fill_.Scalar", False, [self])


@exotic_method(COO_KEY, "copy_")
def copy_coo(self: Any, src: Any, non_blocking: bool = False) -> Any:
    if not isinstance(src, SparseCoo):
        raise RuntimeError("copy_() between dense and sparse Tensors is not implemented!")
    return _copy(self, src)


@exotic_method(CSR_KEY, "copy_")
def copy_compressed(self: Any, src: Any, non_blocking: bool = False) -> Any:
    if not isinstance(src, SparseCompressed) or src._a.layout is not self._a.layout:
        raise RuntimeError(
            "torch.copy_: copy of sparse compressed tensors having different layouts is not"
            " supported."
        )
    p, q = self._a, src._a
    if p.nnz != q.nnz or p.shape != q.shape:
        raise RuntimeError(
            "copy_: only sparse compressed tensors with the same size and number of specified"
            f" elements are supported, got {list(p.shape)} with {p.nnz} and {list(q.shape)} with"
            f" {q.nnz}"
        )
    return _copy(self, src)


def _copy(self: Any, src: Any) -> Any:
    check_writable(self)
    if self is src:
        return self
    d = self._k.dtype
    made = aten.clone(around(src._a))
    made = made if made._k.dtype is d else aten.to(made, d)
    record("CopyBackwards", made, (src,), lambda g: (aten.to(g, src.dtype),))
    return replace(self, made, "copy_")

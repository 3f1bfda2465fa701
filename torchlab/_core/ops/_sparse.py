"""Sparse tensors: what they are made of, and the few functions from which all operators are built.

COO:  indices (sparse dims, nnz), values (nnz, *dense dims); the same index may come several times
      (then their values add up) unless the tensor is coalesced: sorted, each index once.
CSR:  for each row the range of its elements (crow_indices: rows + 1), their columns (col_indices:
      nnz), values (nnz, *dense dims). CSC: the same by columns. BSR, BSC: blocks for elements.
      Batch dims come first in all three.

`values_of` and `like` are the two ends of the tape's way through a sparse tensor: an operator takes
the values, computes with dense operators and puts the result back on the same pattern. `project`
is the gradient of that: what a gradient (sparse or dense) has at the places of the pattern.

Source: https://docs.pytorch.org/docs/2.13/sparse.html
"""

from __future__ import annotations

from typing import Any, NoReturn

import numpy as np

from torchlab._core import dtype as dt
from torchlab._core import formats
from torchlab._core import layout as shapes
from torchlab._core.device import cpu
from torchlab._core.dispatch import exotic, writes
from torchlab._core.dispatch.compute import wrap
from torchlab._core.dispatch.exotic import record
from torchlab._core.dispatch.op import face
from torchlab._core.dispatch.registry import FUNCTIONS, aten
from torchlab._core.kind import exotic_kind
from torchlab._core.tape import NOGRAD, TLS, AccumulateGrad, edge_of, storage_of
from torchlab._core.tensor import Tensor

COO, CSR, CSC, BSR, BSC = (
    formats.define(formats.layout, f"sparse_{x}") for x in ("coo", "csr", "csc", "bsr", "bsc")
)
COMPRESSED = (CSR, CSC, BSR, BSC)
NAMES = {COO: "Sparse", CSR: "SparseCsr", CSC: "SparseCsc", BSR: "SparseBsr", BSC: "SparseBsc"}
OPPOSITE = {CSR: CSC, CSC: CSR, BSR: BSC, BSC: BSR}
_new = object.__new__


class Pattern:
    """Stands where other tensors have their array: shape and dtype, but nothing strided."""

    __slots__ = ("shape", "values")
    layout: Any
    shape: tuple[int, ...]
    values: Tensor

    @property
    def dtype(self) -> np.dtype:
        return self.values._k.np

    @property
    def itemsize(self) -> int:
        return self.values._k.itemsize

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        return shapes.numel(self.shape)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") and name.endswith("__"):
            raise AttributeError(name)
        raise NotImplementedError(
            f"a tensor of layout {self.layout} has no strided array ('{name}' was asked for): there"
            " is no such operator for sparse tensors; convert it with to_dense() if memory allows"
        )

    def _refuse(self, *args: Any, **kwargs: Any) -> NoReturn:
        raise NotImplementedError(
            f"there is no such operator for tensors of layout {self.layout}; convert with"
            " to_dense() if memory allows"
        )

    __array__ = __array_ufunc__ = _refuse

    def __array_function__(self, func: Any, types: Any, args: Any, kwargs: Any) -> NoReturn:
        if func is np.copyto:
            raise RuntimeError("copy_() between dense and sparse Tensors is not implemented!")
        return self._refuse()


class Coo(Pattern):
    """indices: an int64 tensor without history; values: a tensor without history."""

    __slots__ = ("indices", "coalesced", "_places")
    layout = COO

    def __init__(self, shape: Any, indices: Tensor, values: Tensor, coalesced: bool) -> None:
        self.shape, self.indices, self.values = tuple(shape), indices, values
        self.coalesced = coalesced

    @property
    def sparse_dim(self) -> int:
        return self.indices._a.shape[0]

    @property
    def nnz(self) -> int:
        return self.indices._a.shape[1]

    def places(self) -> tuple[Any, ...]:
        """Index arrays, one for each sparse dim, that pick `values` from a dense array."""
        return tuple(self.indices._a)

    def same(self, other: Any) -> bool:
        """Whether `other` has the same indices in the same order."""
        if type(other) is not Coo or other.shape != self.shape:
            return False
        a, b = self.indices._a, other.indices._a
        return a is b or (a.shape == b.shape and bool((a == b).all()))

    def with_values(self, values: Tensor) -> Coo:
        shape = self.shape[: self.sparse_dim] + values._a.shape[1:]
        return Coo(shape, self.indices, values, self.coalesced)


class Compressed(Pattern):
    """compressed, plain: index tensors (int32 or int64) without history; `batch` leading dims."""

    __slots__ = ("layout", "compressed", "plain")

    def __init__(
        self, layout: Any, shape: Any, compressed: Tensor, plain: Tensor, values: Tensor
    ) -> None:
        self.layout, self.shape = layout, tuple(shape)
        self.compressed, self.plain, self.values = compressed, plain, values

    @property
    def batch(self) -> int:
        return self.compressed._a.ndim - 1

    @property
    def blocks(self) -> bool:
        return self.layout in (BSR, BSC)

    @property
    def by_rows(self) -> bool:
        return self.layout in (CSR, BSR)

    @property
    def blocksize(self) -> tuple[int, int]:
        b = self.batch
        return tuple(self.values._a.shape[b + 1 : b + 3]) if self.blocks else (1, 1)

    @property
    def nnz(self) -> int:
        return self.plain._a.shape[-1]

    @property
    def dense_dim(self) -> int:
        return len(self.shape) - self.batch - 2

    def majors(self) -> Any:
        """The row (column) of each element or block: as `plain`."""
        c = self.compressed._a
        counts = np.diff(c, axis=-1).reshape(-1)
        n = c.shape[-1] - 1
        lanes = np.tile(np.arange(n), counts.size // n if n else 0)
        return np.repeat(lanes, counts).reshape(self.plain._a.shape)

    def places(self) -> tuple[Any, ...]:
        """Index arrays for batch dims, row and column, that pick `values` from a dense array."""
        major, minor = self.majors(), self.plain._a.astype(np.int64)
        rows, cols = (major, minor) if self.by_rows else (minor, major)
        lead = list(np.indices(major.shape, sparse=True)[: self.batch])
        if self.blocks:
            h, w = self.blocksize
            rows = rows[..., None, None] * h + np.arange(h)[:, None]
            cols = cols[..., None, None] * w + np.arange(w)
            lead = [x[..., None, None] for x in lead]
        return (*lead, rows, cols)

    def same(self, other: Any) -> bool:
        if (
            type(other) is not Compressed
            or other.layout is not self.layout
            or other.shape != self.shape
        ):
            return False
        pairs = ((self.compressed, other.compressed), (self.plain, other.plain))
        return all(
            a._a is b._a or (a._a.shape == b._a.shape and bool((a._a == b._a).all()))
            for a, b in pairs
        )

    def with_values(self, values: Tensor) -> Compressed:
        b = self.batch
        shape = self.shape[: b + 2] + values._a.shape[b + (3 if self.blocks else 1) :]
        return Compressed(self.layout, shape, self.compressed, self.plain, values)


# ---- the classes --------------------------------------------------------------------------------


class Sparse(exotic.Exotic):
    """What both classes share; methods come from the files `sparse_*`."""

    __slots__ = ()

    @property
    def layout(self) -> Any:
        return self._a.layout

    @property
    def is_sparse(self) -> bool:  # type: ignore[override]
        return self._a.layout is COO

    @property
    def is_sparse_csr(self) -> bool:  # type: ignore[override]
        return self._a.layout is CSR

    def write_out(self, out: Any, name: str) -> Any:
        return replace(out, self, name)


class SparseCoo(Sparse):
    __slots__ = ()
    backend = "SparseCPU"


class SparseCompressed(Sparse):
    __slots__ = ()
    backend = "SparseCsrCPU"

    @classmethod
    def refuse(cls, name: str, pointwise: bool, tensors: Any) -> NoReturn:
        if pointwise:
            layout = next(NAMES[t._a.layout] for t in tensors if isinstance(t, SparseCompressed))
            raise RuntimeError(f"{name}: unsupported tensor layout: {layout}")
        return super().refuse(name, pointwise, tensors)


def bare(t: Tensor) -> Tensor:
    """The same memory and version counter without history."""
    r = _new(Tensor)
    r._a, r._k, r._s = t._a, t._k, storage_of(t)
    r._e = r._v = r._g = None
    return r


def around(pattern: Any) -> Any:
    """A sparse tensor without history."""
    r = _new(SparseCoo if type(pattern) is Coo else SparseCompressed)
    r._a = pattern
    r._k = exotic_kind(pattern.values._k.dtype, pattern.values._k.device)
    r._e = r._s = r._v = r._g = None
    return r


_MADE = {
    True: "SparseCooTensorWithDimsAndTensorsBackward0",
    False: "SparseCompressedTensorBackward0",
}


def put(pattern: Any, values: Tensor, name: str | None = None) -> Any:
    """The pattern with other values, recorded: gradients go to the values."""
    p = pattern.with_values(bare(values))
    return record(name or _MADE[type(p) is Coo], around(p), (values,), lambda g: (project(g, p),))


def like(x: Any, values: Tensor, name: str | None = None) -> Any:
    """x's pattern with other values."""
    return put(x._a, values, name)


def values_of(x: Any) -> Tensor:
    """The values, recorded: their gradient becomes a sparse tensor of x's pattern."""
    p = x._a
    return record("ValuesBackward0", bare(p.values), (x,), lambda g: (put(p, g),))


def project(g: Any, pattern: Any) -> Tensor:
    """What g has at the pattern's places, as values of the pattern."""
    if isinstance(g, Sparse):
        if pattern.same(g._a):
            return values_of(g)
        if type(g._a) is Coo and type(pattern) is Coo and g._a.sparse_dim == pattern.sparse_dim:
            return looked_up(coalesced(g), pattern)
        g = dense(g)
    if type(pattern) is Coo and not pattern.sparse_dim:
        return aten.expand(aten.unsqueeze(g, 0), (pattern.nnz, *g._a.shape))
    return g[tuple(wrap(np.ascontiguousarray(i)) for i in pattern.places())]


def looked_up(x: Any, pattern: Coo) -> Tensor:
    """The values of a coalesced tensor at the pattern's places, zero where it has none."""
    have, want = flat(x._a), flat(pattern)
    v = values_of(x)
    if not have.size:
        return aten.zeros((want.size, *v._a.shape[1:]), dtype=v.dtype)
    at = np.minimum(np.searchsorted(have, want), have.size - 1)
    found = have[at] == want
    r = aten.index_select(v, 0, wrap(at))
    if found.all():
        return r
    mask = wrap(~found.reshape((-1,) + (1,) * (v._a.ndim - 1)))
    return aten.masked_fill(r, mask, 0)


def flat(pattern: Coo) -> Any:
    """One number for each index, in row-major order of the sparse dims."""
    index = pattern.indices._a
    r = np.zeros(index.shape[1], np.int64)
    for i, n in enumerate(pattern.shape[: index.shape[0]]):
        r = r * n + index[i]
    return r


def unflat(numbers: Any, shape: Any) -> Any:
    """The inverse of `flat`: (sparse dims, nnz)."""
    rows = []
    for n in reversed(tuple(shape)):
        rows.append(numbers % n if n else numbers)
        numbers = numbers // n if n else numbers
    r = np.empty((len(rows), len(numbers)), np.int64)
    for i, row in enumerate(reversed(rows)):
        r[i] = row
    return r


def summed(numbers: Any, values: Any) -> tuple[Any, Any]:
    """(numbers sorted and once each, the sums of their values)."""
    order = np.argsort(numbers, kind="stable")
    ordered = numbers[order]
    first = np.ones(len(ordered), bool)
    first[1:] = ordered[1:] != ordered[:-1]
    taken = values[order]
    if first.all():
        return ordered, taken
    starts = np.flatnonzero(first)
    if values.dtype == bool:
        return ordered[starts], np.logical_or.reduceat(taken, starts, axis=0)
    wide = (
        taken.astype(np.float32)
        if values.dtype.itemsize < 4 and values.dtype.kind in "fV"
        else taken
    )
    return ordered[starts], np.add.reduceat(wide, starts, axis=0).astype(values.dtype)


def coalesced(x: Any) -> Any:
    """Each index once, sorted; x itself if it is so."""
    p = x._a
    if p.coalesced:
        return x
    numbers, values = summed(flat(p), p.values._a)
    index = unflat(numbers, p.shape[: p.sparse_dim])
    made = around(Coo(p.shape, wrap(index), wrap(values), True))
    return record("CoalesceBackward0", made, (x,), lambda g: (g,))


def dense(x: Any) -> Tensor:
    """The strided tensor; its gradient is taken at x's places."""
    p = x._a
    if type(p) is Coo and not p.coalesced:
        x = coalesced(x)
        p = x._a
    a = np.zeros(p.shape, p.dtype)
    if type(p) is Coo and not p.sparse_dim:
        a += p.values._a.sum(0, dtype=p.dtype)
    else:
        a[p.places()] = p.values._a
    return record("ToDenseBackward0", wrap(a), (x,), lambda g: (put(p, project(g, p)),))


def new_coo(index: Any, values: Tensor, shape: Any, is_coalesced: bool, name: Any = None) -> Any:
    """A COO tensor of an index array and a tensor of values, recorded."""
    index = wrap(np.ascontiguousarray(index, np.int64))
    return put(Coo(shape, index, values, is_coalesced), values, name)


def check_place(values: Tensor, what: str) -> None:
    """Sparse tensors live in host memory."""
    if values._k.device is not cpu:
        raise NotImplementedError(
            f"{what}: sparse tensors are there for the CPU only, not for {values._k.device}"
        )


# ---- writes in place ----------------------------------------------------------------------------


def check_writable(x: Any) -> None:
    if type(edge_of(x)) is AccumulateGrad and (not NOGRAD or TLS.grad):
        raise RuntimeError(
            "a leaf Variable that requires grad is being used in an in-place operation. Write under"
            " torch.no_grad(), or to a clone."
        )


def replace(x: Any, y: Any, name: str) -> Any:
    """Let x hold what y holds, history included; its values stay in their memory if they fit."""
    check_writable(x)
    if not dt.can_cast(y._k.dtype, x._k.dtype):
        raise RuntimeError(
            f"{name}: result type {y._k.dtype.scalar_name} can't be cast to the desired output type"
            f" {x._k.dtype.scalar_name}"
        )
    old, p = x._a.values, y._a
    if old._a.shape == p.values._a.shape and type(p) is type(x._a):
        old._a[...] = p.values._a
        writes.wrote(old)
        x._a = p.with_values(old)
    else:
        x._a = p.with_values(wrap(p.values._a.astype(old._a.dtype)))
    x._a.shape = p.shape
    x._e = y._e
    return x


def public(name: str, *, out: bool = False) -> Any:
    """Declare `torch.sparse.<name>`."""
    FUNCTIONS.setdefault("sparse", set()).add(name)
    return face(f"sparse_{name}", method=False, spaces=(), out=out)

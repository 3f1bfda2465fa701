"""Between layouts: to_dense, to_sparse and its kin, sparse_mask; copies and other types.

Source: https://docs.pytorch.org/docs/2.13/sparse.html
"""

from __future__ import annotations

from typing import Any

from torchlab._core import device as devices
from torchlab._core.dispatch.compute import wrap
from torchlab._core.dispatch.exotic import exotic, record
from torchlab._core.dispatch.op import face
from torchlab._core.dispatch.registry import aten
from torchlab._core.formats import strided
from torchlab._core.ops._sparse import (
    COMPRESSED,
    COO,
    CSC,
    CSR,
    Compressed,
    Coo,
    Sparse,
    around,
    bare,
    dense,
    project,
    put,
)
from torchlab._core.ops._sparse_layouts import convert, in_layout, name_of, to_coo

# ---- the methods --------------------------------------------------------------------------------


@face("to_dense", spaces=())
def to_dense(self: Any, dtype: Any = None, *, masked_grad: bool | None = None) -> Any:
    """The strided tensor with the same elements; itself if it is strided. Gradients of sparse
    tensors are taken at their places only, or with masked_grad=False everywhere."""
    if masked_grad is False and isinstance(self, Sparse):
        r = record("ToDenseBackward0", dense(around(self._a)), (self,), _everywhere(self._a))
    else:
        r = dense(self) if isinstance(self, Sparse) else self
    return r if dtype is None else aten.to(r, dtype)


def _everywhere(pattern: Any) -> Any:
    """The gradient of `to_dense` where all elements count, in the layout of what was converted."""

    def back(g: Any) -> tuple[Any]:
        g = dense(g) if isinstance(g, Sparse) else g
        if type(pattern) is Coo:
            return (to_coo(g, pattern.sparse_dim),)
        dense_dims = len(pattern.shape) - pattern.batch - 2
        blocks = pattern.blocksize if pattern.blocks else None
        return (convert(g, pattern.layout, blocks, dense_dims or None),)

    return back


@face("to_sparse", spaces=())
def to_sparse(
    self: Any,
    sparse_dim: Any = None,
    *,
    layout: Any = None,
    blocksize: Any = None,
    dense_dim: int | None = None,
) -> Any:
    """In a sparse layout, COO if not said; `sparse_dim` or `dense_dim` leaves the last dims
    dense."""
    if sparse_dim is not None and not isinstance(sparse_dim, int):
        layout, sparse_dim = sparse_dim, None
    if sparse_dim is not None:
        if layout is not None or blocksize is not None or dense_dim is not None:
            raise TypeError("to_sparse() takes 0 positional arguments but 1 was given")
        if not isinstance(self, Sparse):
            return to_coo(self, sparse_dim)
        p = self._a
        if type(p) is not Coo or p.sparse_dim != sparse_dim:
            kind = "to_sparse" if type(p) is Coo else "sparse_compressed_to_sparse"
            raise RuntimeError(
                f"{kind}: conversion from {name_of(self)} to Sparse with sparse_dim argument"
                f" {sparse_dim} is not supported"
            )
        return self
    layout = COO if layout is None else layout
    if layout is strided:
        return to_dense.body(self)
    return convert(self, layout, blocksize, dense_dim)


@face("to_sparse_coo", spaces=())
def to_sparse_coo(self: Any) -> Any:
    """In COO layout."""
    return convert(self, COO)


def _methods() -> None:
    def plain(layout: Any) -> Any:
        def method(self: Any, dense_dim: int | None = None) -> Any:
            return convert(self, layout, None, dense_dim)

        return method

    def blocked(layout: Any) -> Any:
        def method(self: Any, blocksize: Any, dense_dim: int | None = None) -> Any:
            return convert(self, layout, blocksize, dense_dim)

        return method

    for layout in COMPRESSED:
        method = (plain if layout in (CSR, CSC) else blocked)(layout)
        method.__doc__ = f"In layout {layout}."
        face(f"to_{layout!r}".replace("torch.", ""), spaces=())(method)


_methods()


@face("sparse_mask", spaces=())
def sparse_mask(self: Any, mask: Any) -> Any:
    """What `self` has at the places of the sparse tensor `mask`, in mask's layout."""
    if not isinstance(mask, Sparse):
        raise NotImplementedError(
            "Could not run 'aten::sparse_mask' with arguments from the 'CPU' backend: the mask must"
            " be a sparse tensor"
        )
    p = mask._a
    if self._a.shape != p.shape:
        raise RuntimeError(
            "sparse_mask(): operands have incompatible sizes; self has size"
            f" {list(self._a.shape)} but mask has size {list(p.shape)}"
        )
    q = self._a if isinstance(self, Sparse) else None
    if type(q) is Compressed:
        return aten.mul(self, around(p.with_values(aten.ones_like(p.values))))
    made = put(p, project(aten.detach(self), p))

    def back(g: Any) -> Any:
        g = aten.to_dense(in_layout(g, p))
        return (g if q is None else in_layout(g, q),)

    return record("SparseMaskBackward0", made, (self,), back)


# ---- copies, other types ------------------------------------------------------------------------


@exotic("SparseCPU", "clone")
@exotic("SparseCsrCPU", "clone")
def clone(self: Any, memory_format: Any = None) -> Any:
    p = self._a
    if type(p) is Coo:
        q: Any = Coo(p.shape, wrap(p.indices._a.copy()), bare(p.values), p.coalesced)
    else:
        q = Compressed(
            p.layout, p.shape, wrap(p.compressed._a.copy()), wrap(p.plain._a.copy()), bare(p.values)
        )
    made = around(q.with_values(aten.clone(q.values)))
    return record("CloneBackward0", made, (self,), lambda g: (g,))


@exotic("SparseCPU", "detach")
@exotic("SparseCsrCPU", "detach")
def detach(self: Any) -> Any:
    return around(self._a)


@exotic("SparseCPU", "_pin_memory")
@exotic("SparseCsrCPU", "_pin_memory")
def _pin_memory(self: Any, device: Any) -> Any:
    p = self._a
    names = ("indices",) if type(p) is Coo else ("compressed", "plain")
    places = (aten.pin_memory(getattr(p, name), device) for name in names)
    values = aten.pin_memory(bare(p.values), device)
    if type(p) is Coo:
        made: Any = Coo(p.shape, *places, values, p.coalesced)
    else:
        made = Compressed(p.layout, p.shape, *places, values)
    return record("PinMemoryBackward0", around(made), (self,), lambda g: (g,))


@exotic("SparseCPU", "_to_copy")
@exotic("SparseCsrCPU", "_to_copy")
def _to_copy(self: Any, dtype: Any, device: Any, memory_format: Any) -> Any:
    if device is not None and device is not devices.cpu:
        raise NotImplementedError(
            f"to({device}): sparse tensors are there for the CPU only; move the dense tensor"
        )
    origin = self._k.dtype
    made = around(self._a.with_values(aten.to(self._a.values, dtype or origin)))
    return record("ToCopyBackward0", made, (self,), lambda g: (aten.to(g, origin),))

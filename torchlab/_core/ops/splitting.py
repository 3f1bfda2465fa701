"""Tensors cut along a dimension: split, chunk, unbind, and the unsafe forms whose results may be
written to although they come from one call.

Source of the semantics:
https://docs.pytorch.org/docs/2.13/torch.html#indexing-slicing-joining-mutating-ops
"""

from __future__ import annotations

from typing import Any

from torchlab._core import layout
from torchlab._core.dispatch.op import Op, face


def _split_points(size: int, step: Any, dim: int, what: str) -> list[tuple[int, int]]:
    if isinstance(step, int):
        if step < 0 or (step == 0 and size):
            raise RuntimeError(
                f"split expects split_size be non-negative, but got split_size={step}"
            )
        if step == 0:
            return [(0, 0)]
        return [(i, min(i + step, size)) for i in range(0, max(size, 1), step)]
    if any(n < 0 for n in step):
        raise RuntimeError(
            "split_with_sizes expects split_sizes have only non-negative entries, but got"
            f" split_sizes={list(step)}"
        )
    if sum(step) != size:
        raise RuntimeError(
            f"split_with_sizes expects split_sizes to sum exactly to {size} (input tensor's size at"
            f" dimension {dim}), but got split_sizes={list(step)}"
        )
    points, at = [], 0
    for n in step:
        points.append((at, at + n))
        at += n
    return points


def _split_kernel(xp: Any, a: Any, split_size: Any, dim: int) -> Any:
    if a.ndim == 0:
        raise RuntimeError("split expects at least a 1-dimensional tensor")
    dim = layout.wrap_dim(dim, a.ndim)
    lead = (slice(None),) * dim
    return [
        a[(*lead, slice(i, j))] for i, j in _split_points(a.shape[dim], split_size, dim, "split")
    ]


def _split_meta(shape: Any, strides: Any, off: int, split_size: Any, dim: int) -> Any:
    dim = layout.wrap_dim(dim, len(shape))
    return [
        layout.slice_(shape, strides, off, dim, i, j, 1)
        for i, j in _split_points(shape[dim], split_size, dim, "split")
    ]


split_op = Op(
    "split.Tensor(Tensor(a -> *) self, SymInt split_size, int dim=0) -> Tensor(a)[]",
    family="view",
    kernel=_split_kernel,
    meta=_split_meta,
    public=False,
    vjp={"self": "split_backward(grads, self.shape, split_size, dim, node)"},
)
split_sizes_op = Op(
    "split_with_sizes(Tensor(a -> *) self, SymInt[] split_sizes, int dim=0) -> Tensor(a)[]",
    family="view",
    kernel=_split_kernel,
    meta=_split_meta,
    public=False,
    vjp={"self": "split_backward(grads, self.shape, split_sizes, dim, node)"},
)


@face("split_with_sizes")
def split_with_sizes(self: Any, split_sizes: Any, dim: int = 0) -> Any:
    """Views of chunks of the given sizes along a dimension."""
    return tuple(split_sizes_op.call(self, tuple(split_sizes), dim))


@face("split", method=lambda self, split_size, dim=0: split.body(self, split_size, dim))
def split(tensor: Any, split_size_or_sections: Any, dim: int = 0) -> Any:
    """Views of chunks along a dimension: of one size, or of the sizes in a list."""
    self, split_size = tensor, split_size_or_sections
    if isinstance(split_size, int):
        return tuple(split_op.call(self, split_size, dim))
    return tuple(split_sizes_op.call(self, tuple(split_size), dim))


@face("chunk")
def chunk(self: Any, chunks: int, dim: int = 0) -> Any:
    """At most `chunks` views of equal size (the last may be smaller)."""
    return _chunked(self, chunks, dim, split_op, split_sizes_op)


def _chunked(self: Any, chunks: int, dim: int, of_size: Op, of_sizes: Op) -> Any:
    if chunks <= 0:
        raise RuntimeError(f"chunk expects `chunks` to be greater than 0, got: {chunks}")
    if self._a.ndim == 0:
        raise RuntimeError("chunk expects at least a 1-dimensional tensor")
    size = self._a.shape[layout.wrap_dim(dim, self._a.ndim)]
    step = max(-(-size // chunks), 0)
    if size == 0:
        return tuple(of_sizes.call(self, (0,) * chunks, dim))
    return tuple(of_size.call(self, step, dim))


def _unbind_kernel(xp: Any, a: Any, dim: int) -> Any:
    if a.ndim == 0:
        raise IndexError(f"Dimension specified as {dim} but tensor has no dimensions")
    dim = layout.wrap_dim(dim, a.ndim)
    lead = (slice(None),) * dim
    return [a[(*lead, i, ...)] for i in range(a.shape[dim])]


unbind_op = Op(
    "unbind.int(Tensor(a -> *) self, int dim=0) -> Tensor(a)[]",
    family="view",
    kernel=_unbind_kernel,
    public=False,
    meta=lambda shape, strides, off, dim: [
        layout.select(shape, strides, off, dim, i)
        for i in range(shape[layout.wrap_dim(dim, len(shape))])
    ],
    vjp={"self": "unbind_backward(grads, self.shape, dim, node)"},
)


@face("unbind")
def unbind(self: Any, dim: int = 0) -> Any:
    """All slices along a dimension, as views."""
    return tuple(unbind_op.call(self, dim))


# ---- parts that may be written to ---------------------------------------------------------------

unsafe_split_op = Op(
    "unsafe_split.Tensor(Tensor self, SymInt split_size, int dim=0) -> Tensor[]",
    family="view",
    kernel=_split_kernel,
    meta=_split_meta,
    public=False,
    vjp={"self": "split_backward(grads, self.shape, split_size, dim, node)"},
)
unsafe_split_sizes_op = Op(
    "unsafe_split_with_sizes(Tensor self, SymInt[] split_sizes, int dim=0) -> Tensor[]",
    family="view",
    kernel=_split_kernel,
    meta=_split_meta,
    public=False,
    vjp={"self": "split_backward(grads, self.shape, split_sizes, dim, node)"},
)


def _freed(parts: Any) -> tuple[Any, ...]:
    """The parts as tensors of their own over the same memory: the tape does not know them as views,
    so a write to one is in the history of that one only."""
    for t in parts:
        t._v = None
    return tuple(parts)


@face("unsafe_split")
def unsafe_split(self: Any, split_size: int, dim: int = 0) -> Any:
    """As `split` with one size."""
    if not isinstance(split_size, int):
        raise TypeError(
            "unsafe_split(): argument 'split_size' must be int, not"
            f" {type(split_size).__name__} (see unsafe_split_with_sizes)"
        )
    return _freed(unsafe_split_op.call(self, split_size, dim))


@face("unsafe_split_with_sizes")
def unsafe_split_with_sizes(self: Any, split_sizes: Any, dim: int = 0) -> Any:
    """As `split_with_sizes`."""
    return _freed(unsafe_split_sizes_op.call(self, tuple(split_sizes), dim))


@face("unsafe_chunk")
def unsafe_chunk(self: Any, chunks: int, dim: int = 0) -> Any:
    """As `chunk`."""
    return _freed(_chunked(self, chunks, dim, unsafe_split_op, unsafe_split_sizes_op))

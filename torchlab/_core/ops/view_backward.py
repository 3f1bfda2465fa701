"""The gradients of views: operators of their own where memory is written."""

from __future__ import annotations

from typing import Any

import numpy as np

from torchlab._core import layout
from torchlab._core.backends.meta import MetaArray
from torchlab._core.dispatch.op import op
from torchlab._core.dispatch.registry import aten, vjp_helper
from torchlab._core.tape import Node


def _fresh(shape: Any, like: Any, xp: Any) -> Any:
    return xp.zeros(tuple(shape), like.dtype)


def _meta(shape_at: int) -> Any:
    return lambda *args: MetaArray(args[shape_at], args[0].dtype)


@op(
    "select_backward(Tensor grad_output, SymInt[] input_sizes, int dim, SymInt index) -> Tensor",
    public=False,
    vjp={"grad_output": "select(g, dim, index)"},
    meta=_meta(1),
)
def select_backward(xp: Any, g: Any, shape: Any, dim: int, index: int) -> Any:
    """Zeros with g at one index."""
    r = _fresh(shape, g, xp)
    r[(*(slice(None),) * (dim % len(shape)), index)] = g
    return r


@op(
    "slice_backward(Tensor grad_output, SymInt[] input_sizes, int dim, SymInt? start, SymInt? end,"
    " SymInt step) -> Tensor",
    public=False,
    vjp={"grad_output": "slice(g, dim, start, end, step)"},
    meta=_meta(1),
)
def slice_backward(xp: Any, g: Any, shape: Any, dim: int, start: Any, end: Any, step: int) -> Any:
    """Zeros with g in one slice."""
    r = _fresh(shape, g, xp)
    r[(*(slice(None),) * (dim % len(shape)), slice(start, end, step))] = g
    return r


@op(
    "diagonal_backward(Tensor grad_output, SymInt[] input_sizes, int offset, int dim1, int dim2) ->"
    " Tensor",
    public=False,
    vjp={"grad_output": "diagonal(g, offset, dim1, dim2)"},
    meta=_meta(1),
)
def diagonal_backward(xp: Any, g: Any, shape: Any, offset: int, dim1: int, dim2: int) -> Any:
    """Zeros with g on a diagonal."""
    r = _fresh(shape, g, xp)
    n = r.ndim
    moved = xp.moveaxis(r, (dim1 % n, dim2 % n), (-2, -1))
    rows, columns = moved.shape[-2:]
    i = np.arange(max(0, min(rows + min(offset, 0), columns - max(offset, 0))))
    moved[..., i + max(-offset, 0), i + max(offset, 0)] = g
    return r


@op(
    "unfold_backward(Tensor grad_in, SymInt[] input_sizes, int dim, int size, int step) -> Tensor",
    public=False,
    vjp={"grad_in": "unfold(g, dim, size, step)"},
    meta=_meta(1),
)
def unfold_backward(xp: Any, g: Any, shape: Any, dim: int, size: int, step: int) -> Any:
    """Every window's gradient added to the place it came from."""
    r = _fresh(shape, g, xp)
    if r.ndim == 0:
        return g.reshape(()) if g.size else r
    dim %= r.ndim
    windows = g.shape[dim]
    lead = (slice(None),) * dim
    for i in range(size):
        r[(*lead, slice(i, i + (windows - 1) * step + 1, step))] += g[..., i]
    return r


def _positions(size: Any, strides: Any, offset: int) -> Any:
    at = np.asarray(offset, np.int64)
    for i, (n, s) in enumerate(zip(size, strides, strict=True)):
        at = at + (np.arange(n, dtype=np.int64) * s).reshape((n,) + (1,) * (len(size) - i - 1))
    return np.broadcast_to(at, tuple(size))


@op(
    "as_strided_backward(Tensor grad, SymInt[] base_size, SymInt[] base_stride, SymInt base_offset,"
    " SymInt[] size, SymInt[] stride, SymInt offset) -> Tensor",
    public=False,
    meta=_meta(1),
    vjp={
        "grad": "as_strided_forward(g, base_size, base_stride, base_offset, size, stride, offset)"
    },
)
def as_strided_backward(
    xp: Any,
    g: Any,
    base_size: Any,
    base_stride: Any,
    base_offset: int,
    size: Any,
    stride: Any,
    offset: int,
) -> Any:
    """The gradient of a base from that of a strided view: cells seen several times add up, and
    where the base itself repeats cells each of them gets its share."""
    if 0 in base_size or 0 in size:
        return xp.zeros(tuple(base_size), g.dtype)
    base_at = _positions(base_size, base_stride, base_offset)
    view_at = _positions(size, stride, offset)
    low = min(base_at.min(), view_at.min())
    cells = np.zeros(int(max(base_at.max(), view_at.max()) - low) + 1, g.dtype)
    if layout.has_internal_overlap(tuple(size), tuple(stride)) == "no":
        cells[view_at - low] = g  # (a sum would lose the sign of zeros)
    else:
        np.add.at(cells, (view_at - low).ravel(), np.asarray(g).ravel())
    if layout.has_internal_overlap(tuple(base_size), tuple(base_stride)) != "no":
        counts = np.zeros(cells.shape, np.int64)
        np.add.at(counts, (base_at - low).ravel(), 1)
        cells = cells / np.maximum(counts, 1).astype(cells.real.dtype)
    return xp.asarray(cells[base_at - low].astype(g.dtype, copy=False))


@op(
    "as_strided_forward(Tensor grad, SymInt[] base_size, SymInt[] base_stride, SymInt base_offset,"
    " SymInt[] size, SymInt[] stride, SymInt offset) -> Tensor",
    public=False,
    meta=_meta(4),
    vjp={
        "grad": "as_strided_backward(g, base_size, base_stride, base_offset, size, stride, offset)"
    },
)
def as_strided_forward(
    xp: Any,
    x: Any,
    base_size: Any,
    base_stride: Any,
    base_offset: int,
    size: Any,
    stride: Any,
    offset: int,
) -> Any:
    """What the strided view shows of a base with these values (a copy)."""
    base_at = _positions(base_size, base_stride, base_offset)
    view_at = _positions(size, stride, offset)
    if view_at.size == 0:
        return xp.zeros(tuple(size), x.dtype)
    low = min(int(base_at.min()) if base_at.size else 0, int(view_at.min()))
    cells = np.zeros(int(max(base_at.max(initial=0), view_at.max())) - low + 1, x.dtype)
    cells[(base_at - low).ravel()] = np.asarray(x).ravel()
    return xp.asarray(cells[view_at - low])


@vjp_helper
def as_strided_relative_backward(
    g: Any, shape: Any, strides: Any, size: Any, stride: Any, relative: int
) -> Any:
    r = aten.as_strided_backward(g, shape, strides, 0, tuple(size), tuple(stride), relative)
    return aten.view(r, r._a.shape)  # PyTorch's is a view of cells


@vjp_helper
def inverse_permutation(dims: Any) -> Any:
    n = len(dims)
    inverse = [0] * n
    for i, d in enumerate(dims):
        inverse[d % n] = i
    return tuple(inverse)


@vjp_helper
def unsqueeze_as(g: Any, shape: Any, dim: Any) -> Any:
    if g._a.shape == tuple(shape):  # nothing was squeezed: the gradient itself, as in PyTorch
        return g
    return aten.reshape(g, tuple(shape))


def _parts(grads: Any, shapes: Any, dim: int, node: Node) -> Any:
    kinds = [k for _, k in node._outs]
    like = next(g for g in grads if g is not None)
    return [
        g if g is not None else aten.zeros(s, dtype=kinds[i].dtype, device=like.device)
        for i, (g, s) in enumerate(zip(grads, shapes, strict=True))
    ]


@vjp_helper
def split_backward(grads: Any, shape: Any, sizes: Any, dim: int, node: Node) -> Any:
    """All parts together again; parts without a gradient are zeros."""
    return aten.cat(_parts(grads, [s for s, _ in node._outs], dim, node), dim)


@vjp_helper
def unbind_backward(grads: Any, shape: Any, dim: int, node: Node) -> Any:
    return aten.stack(_parts(grads, [s for s, _ in node._outs], dim, node), dim)

"""Triangles and diagonals of matrices.

Source of the semantics: https://docs.pytorch.org/docs/2.13/generated/torch.tril.html and its
neighbours
"""

from __future__ import annotations

from typing import Any

import numpy as np

from torchlab._core import dtype as dt
from torchlab._core import layout
from torchlab._core.backends.meta import MetaArray
from torchlab._core.dispatch.op import composite, face, op
from torchlab._core.dispatch.registry import aten
from torchlab._core.ops._makers import maker
from torchlab._core.ops._making import How


def _like(a: Any, *rest: Any) -> Any:
    return MetaArray(a.shape, a.dtype)


def _matrix(a: Any, name: str) -> None:
    if a.ndim < 2:
        raise RuntimeError(
            f"{name}: input tensor must have at least 2 dimensions, but got shape {list(a.shape)}"
        )


@op(
    "tril(Tensor self, SymInt diagonal=0) -> Tensor",
    inplace=True,
    out=True,
    half=False,
    tags=("out_same_dtype",),
    meta=_like,
    vjp={"self": "tril(g, diagonal)"},
)
def tril(xp: Any, a: Any, diagonal: int) -> Any:
    """The lower triangle of matrices up to a diagonal (> 0 lies above the main one), zeros
    elsewhere.
    """
    _matrix(a, "tril")
    r = xp.tril(a, diagonal)
    return r if r.flags.c_contiguous else r.copy(order="C")


@op(
    "triu(Tensor self, SymInt diagonal=0) -> Tensor",
    inplace=True,
    out=True,
    half=False,
    tags=("out_same_dtype",),
    meta=_like,
    vjp={"self": "triu(g, diagonal)"},
)
def triu(xp: Any, a: Any, diagonal: int) -> Any:
    """The upper triangle of matrices from a diagonal on, zeros elsewhere."""
    _matrix(a, "triu")
    r = xp.triu(a, diagonal)
    return r if r.flags.c_contiguous else r.copy(order="C")


def _indices(name: str, find: Any) -> None:
    @maker(name)
    def indices(how: How, row: int, col: int, offset: int = 0) -> Any:
        if row < 0 or col < 0:
            raise RuntimeError(f"{name}: row and col must be non-negative, got {row} and {col}")
        if how.layout is not None:
            how.refuse(name)
        d = how.dtype or dt.int64
        if d not in (dt.int32, dt.int64) and how.place.type != "meta":
            raise NotImplementedError(f"\"{name}\" not implemented for '{d.scalar_name}'")
        return how.around(np.stack(find(row, offset, col)).astype(d.np), d)

    indices.doc = (
        f"The row and column numbers ({name[:4]}) of a triangle of a matrix, in "
        "row-major order, shape (2, n)."
    )


_indices("tril_indices", np.tril_indices)
_indices("triu_indices", np.triu_indices)


def _embedded(
    a: Any, offset: int = 0, dim1: int = -2, dim2: int = -1
) -> tuple[tuple[int, ...], int, int]:
    n = a.ndim + 1
    i, j = layout.wrap_dim(dim1, n), layout.wrap_dim(dim2, n)
    if i == j:
        raise RuntimeError(f"diagonal dimensions cannot be identical {dim1}, {dim2}")
    size = a.shape[-1] + abs(offset)
    rest = list(a.shape[:-1])
    for d in sorted((i, j)):
        rest.insert(d, size)
    return tuple(rest), i, j


@op(
    "diag_embed(Tensor self, int offset=0, int dim1=-2, int dim2=-1) -> Tensor",
    half=False,
    vjp={"self": "diagonal(g, offset, dim1, dim2)"},
    meta=lambda a, *rest: MetaArray(_embedded(a, *rest)[0], a.dtype),
)
def diag_embed(xp: Any, a: Any, offset: int, dim1: int, dim2: int) -> Any:
    """The last dimension on a diagonal of two new ones, zeros elsewhere."""
    if a.ndim == 0:
        dim = next((d for d in (dim1, dim2) if d not in (0, -1)), -1)
        raise IndexError(
            "diag_embed: Dimension out of range (expected to be in range of [-1, 0], but got"
            f" {dim}): input has no dimension to put on a diagonal"
        )
    shape, i, j = _embedded(a, offset, dim1, dim2)
    r = xp.zeros(shape, a.dtype)
    k = xp.arange(a.shape[-1])
    xp.moveaxis(r, (i, j), (-2, -1))[..., k + max(-offset, 0), k + max(offset, 0)] = a
    return r


@face("diag", out=True, tags=("out_unrecorded", "out_same_dtype"))
def diag(self: Any, diagonal: int = 0) -> Any:
    """A vector as a diagonal matrix, or a matrix's diagonal, copied."""
    n = self._a.ndim
    if n not in (1, 2):
        raise RuntimeError(f"diag(): Supports 1D or 2D tensors. Got {n}D")
    if n == 1:
        return diag_embed.call(self, diagonal)
    return aten.diagonal_copy(self, diagonal, 0, 1)


@composite("diagflat(Tensor self, int offset=0) -> Tensor")
def diagflat(self: Any, offset: int) -> Any:
    """All elements on the diagonal of a matrix."""
    return diag_embed.call(aten.reshape(self, (-1,)), offset)


@face("fill_diagonal_", spaces=())
def fill_diagonal_(self: Any, fill_value: Any, wrap: bool = False) -> Any:
    """Set the main diagonal (all indices equal) of a tensor in place; `wrap` begins again below the
    bottom of a tall matrix."""
    shape = self._a.shape
    n = len(shape)
    if n < 2:
        raise RuntimeError(
            f"fill_diagonal_: dimensions must larger than 1, but got shape {list(shape)}"
        )
    if n > 2 and len(set(shape)) > 1:
        raise RuntimeError(
            "fill_diagonal_: all dimensions of input must be of equal length, but got "
            f"{list(shape)}"
        )
    strides = self.stride()
    step = sum(strides)
    main = self.as_strided((min(shape),), (step,)) if n > 2 else aten.diagonal(self)
    main.fill_(fill_value)
    if wrap and n == 2 and shape[0] > shape[1] + 1:
        for top in range(shape[1] + 1, shape[0], shape[1] + 1):
            aten.diagonal(aten.narrow(self, 0, top, shape[0] - top)).fill_(fill_value)
    return self

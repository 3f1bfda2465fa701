"""Row numbers from row pointers, and back: what COO and CSR differ in.

Source: https://docs.pytorch.org/docs/2.13/sparse.html#sparse-csr-tensor
"""

from __future__ import annotations

from typing import Any

import numpy as np

from torchlab._core import dtype as dt
from torchlab._core.backends.meta import MetaArray
from torchlab._core.dispatch.op import op


def _int(out_int32: bool) -> Any:
    return np.dtype(np.int32 if out_int32 else np.int64)


def _integers(index: Any, way: str) -> None:
    if index.dtype.kind not in "iu":
        raise NotImplementedError(
            f'"convert_indices_from_{way}_cpu" not implemented for'
            f" '{dt.from_numpy(index.dtype).scalar_name}'"
        )


def _to_pointers_meta(rows: Any, size: int, out_int32: bool = False) -> Any:
    return MetaArray((size + 1,), _int(out_int32))


@op(
    "_convert_indices_from_coo_to_csr(Tensor self, int size, *, bool out_int32=False) -> Tensor",
    method=False,
    out=True,
    meta=_to_pointers_meta,
    differentiable=False,
)
def _convert_indices_from_coo_to_csr(xp: Any, rows: Any, size: int, out_int32: bool) -> Any:
    """Where each of `size` rows begins among sorted row numbers; at the end, their number."""
    if rows.ndim > 1:
        raise RuntimeError(
            f"Input is supposed to be a vector, but got {rows.ndim} dimensional tensor."
        )
    _integers(rows, "coo_to_csr")
    return xp.searchsorted(rows, xp.arange(size + 1)).astype(_int(out_int32))


def _to_rows_meta(crow: Any, col: Any, out_int32: bool = False, transpose: bool = False) -> Any:
    return MetaArray((crow.ndim + 1, _count(col)), _int(out_int32))


def _count(col: Any) -> Any:
    n = 1
    for extent in col.shape:
        n = n * extent
    return n


@op(
    "_convert_indices_from_csr_to_coo(Tensor crow_indices, Tensor col_indices, *,"
    " bool out_int32=False, bool transpose=False) -> Tensor",
    method=False,
    out=True,
    meta=_to_rows_meta,
    differentiable=False,
)
def _convert_indices_from_csr_to_coo(
    xp: Any, crow: Any, col: Any, out_int32: bool, transpose: bool
) -> Any:
    """The indices of a COO tensor from row pointers and column numbers, batches in front;
    `transpose` swaps rows and columns."""
    _integers(crow, "csr_to_coo")
    lead, rows = crow.shape[:-1], crow.shape[-1] - 1
    counts = xp.diff(crow, axis=-1)
    numbers = xp.broadcast_to(xp.arange(rows), counts.shape)
    pair = [xp.repeat(numbers.reshape(-1), counts.reshape(-1)), col.reshape(-1)]
    batch = xp.indices(lead).reshape(len(lead), counts.size // rows if rows else 0)
    every = xp.repeat(batch, col.shape[-1], axis=1)
    parts = [*every, *(reversed(pair) if transpose else pair)]
    return xp.stack(parts).astype(_int(out_int32))

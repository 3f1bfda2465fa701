"""Tensors cut into chunks and joined chunk by chunk, as sharded training lays out its parameters.

Source of the semantics: `torch._chunk_cat` of PyTorch 2.13 (it has no page of its own)
"""

from __future__ import annotations

from typing import Any

from torchlab._core import layout
from torchlab._core.dispatch.op import face
from torchlab._core.dispatch.registry import aten


@face("_chunk_cat", method=False, out=True, tags=("out_unrecorded",))
def chunk_cat(tensors: Any, dim: int, num_chunks: int) -> Any:
    """Every tensor padded with zeros and cut into `num_chunks` along `dim`; the chunks of the same
    number, flattened, one after the other: shape (sizes before dim, num_chunks, rest)."""
    if num_chunks < 1:
        raise RuntimeError(f"_chunk_cat expects positive num_chunks, got {num_chunks}")
    if not tensors:
        raise RuntimeError("_chunk_cat expects a non-empty input tensor list")
    first = tensors[0]
    dim = layout.wrap_dim(dim, first._a.ndim)
    lead = first._a.shape[:dim]
    parts = []
    for i, t in enumerate(tensors):
        if t._a.size == 0:
            raise RuntimeError(f"_chunk_cat expects non-empty tensor, but number {i} is empty")
        if t._k.dtype is not first._k.dtype:
            raise RuntimeError(
                "_chunk_cat expects all input tensors with the same dtype, got"
                f" {first.dtype} and {t.dtype}"
            )
        if dim >= t._a.ndim:
            raise RuntimeError(
                f"_chunk_cat expects dim < ndim for all input tensors, got dim={dim} for shape"
                f" {list(t._a.shape)}"
            )
        if t._a.shape[:dim] != lead:
            raise RuntimeError(
                "_chunk_cat expects same sizes of 0,...,dim-1 dimensions for all tensors, got"
                f" {list(lead)} and {list(t._a.shape[:dim])}"
            )
        missing = -t._a.shape[dim] % num_chunks
        if missing:
            t = aten.constant_pad_nd(t, (0, 0) * (t._a.ndim - dim - 1) + (0, missing), 0)
        parts.append(aten.reshape(t, (*lead, num_chunks, -1)))
    return aten.cat(parts, dim + 1)

"""A number that tells tensors apart: `hash_tensor`.

Source of the semantics: https://docs.pytorch.org/docs/2.13/generated/torch.hash_tensor.html
"""

from __future__ import annotations

from typing import Any

import numpy as np

from torchlab._core import dtype as dt
from torchlab._core.backends.meta import MetaArray
from torchlab._core.dispatch.op import op
from torchlab._core.ops._reduce import reduced_dims, reduced_shape, scalar_name

_UINT64 = np.dtype(np.uint64)


def _meta(a: Any, dim: Any = (), keepdim: bool = False, mode: int = 0) -> Any:
    return MetaArray(reduced_shape(a, dim or None, keepdim), _UINT64)


@op(
    "hash_tensor(Tensor self, int[1] dim=[], *, bool keepdim=False, int mode=0) -> Tensor",
    half=False,
    out=True,
    tags=("out_same_dtype",),
    meta=_meta,
)
def hash_tensor(xp: Any, a: Any, dim: Any, keepdim: bool, mode: int) -> Any:
    """The exclusive or of all elements' bits (or over `dim`), as uint64: floats as float64,
    integers as int64. Mode 0 is the only one."""
    if mode != 0:
        raise RuntimeError(f"Unknown hash_tensor mode: {mode}")
    d = dt.from_numpy(a.dtype)
    if d.is_complex:
        raise NotImplementedError(f"\"xor_sum_cpu\" not implemented for '{scalar_name(a)}'")
    dims = reduced_dims(dim or None, a.ndim) if a.ndim else ()
    if a.size == 0:
        if not dim:
            raise RuntimeError(
                "hash_tensor: Expected reduction dim to be specified for input.numel() == 0."
                " Specify the reduction dim with the 'dim' argument."
            )
        for i in dims:
            if a.shape[i] == 0:
                raise IndexError(f"hash_tensor: Expected reduction dim {i} to have non-zero size.")
    wide = a.astype(np.float64 if d.category == dt.FLOAT else np.int64, order="C")
    return xp.asarray(xp.bitwise_xor.reduce(wide.view(_UINT64), axis=dims, keepdims=keepdim))

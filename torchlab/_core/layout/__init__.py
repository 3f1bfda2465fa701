"""Pure maths of shape, stride, broadcasting and views, on tuples of ints.

Nothing here knows a tensor, a dtype or NumPy. Shapes and strides are tuples; strides and storage
offsets count *elements*, never bytes. Every function returns new tuples and changes nothing.
Errors carry PyTorch's exception class and phrase; `op` puts the operator's name before it.

    shape     sizes alone: broadcasting, inferred sizes, reductions, matmul, cat
    windows   sizes under a sliding window: convolution and pooling
    strides   sizes to strides: memory formats, contiguity, what a new result looks like in memory
    views     layouts that share memory: expand, view, permute, select, slice, unfold, diagonal
    overlap   which bytes a layout touches, and whether two layouts touch the same ones

Sizes are only compared, added and multiplied (never hashed or passed to `int`), so that symbolic
integers can stand in for them.
"""

from __future__ import annotations

from torchlab._core.layout.overlap import (
    Extent,
    as_strided_check,
    has_internal_overlap,
    memory_range,
    overlap,
    storage_nbytes,
)
from torchlab._core.layout.shape import (
    Shape,
    as_size,
    broadcast_shapes,
    cat_shape,
    flatten_shape,
    infer_size,
    matmul_shape,
    numel,
    reduction_shape,
    unflatten_shape,
    wrap_dim,
    wrap_dims,
)
from torchlab._core.layout.strides import (
    channels_last_strides,
    contiguous_strides,
    dim_order,
    empty_like_strides,
    is_channels_last,
    is_contiguous,
    is_non_overlapping_and_dense,
    reduction_strides,
    suggest_memory_format,
    ti_output_strides,
    why_not_contiguous,
)
from torchlab._core.layout.views import (
    diagonal,
    expand,
    movedim,
    permute,
    select,
    slice_,
    squeeze,
    transpose,
    unfold,
    unsqueeze,
    view,
    view_strides,
    why_view_fails,
)
from torchlab._core.layout.windows import (
    conv_output_shape,
    conv_transpose_output_shape,
    pool_output_shape,
)

__all__ = [
    "Extent",
    "Shape",
    "as_size",
    "as_strided_check",
    "broadcast_shapes",
    "cat_shape",
    "channels_last_strides",
    "contiguous_strides",
    "conv_output_shape",
    "conv_transpose_output_shape",
    "diagonal",
    "dim_order",
    "empty_like_strides",
    "expand",
    "flatten_shape",
    "has_internal_overlap",
    "infer_size",
    "is_channels_last",
    "is_contiguous",
    "is_non_overlapping_and_dense",
    "matmul_shape",
    "memory_range",
    "movedim",
    "numel",
    "overlap",
    "permute",
    "pool_output_shape",
    "reduction_shape",
    "reduction_strides",
    "select",
    "slice_",
    "squeeze",
    "storage_nbytes",
    "suggest_memory_format",
    "ti_output_strides",
    "transpose",
    "unflatten_shape",
    "unfold",
    "unsqueeze",
    "view",
    "view_strides",
    "why_not_contiguous",
    "why_view_fails",
    "wrap_dim",
    "wrap_dims",
]

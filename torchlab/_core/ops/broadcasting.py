"""Shapes made to fit each other, and flat positions as coordinates.

Source of the semantics: https://docs.pytorch.org/docs/2.13/generated/torch.broadcast_shapes.html
and https://docs.pytorch.org/docs/2.13/generated/torch.unravel_index.html
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

from torchlab._core import dtype as dt
from torchlab._core import layout
from torchlab._core.dispatch.op import face
from torchlab._core.dispatch.registry import aten
from torchlab._core.tensor import Size, Tensor


@face("broadcast_shapes", method=False)
def broadcast_shapes(*shapes: Any) -> Size:
    """The shape to which tensors of these shapes broadcast; an int stands for a vector."""
    result: list[int] = []
    for i, given in enumerate(shapes):
        shape = (given,) if isinstance(given, int) else tuple(given)
        for n in shape:
            if not hasattr(n, "__index__"):
                raise TypeError(
                    f"broadcast_shapes(): shapes must consist of ints, but shape {i} has {n!r}"
                )
            if n < 0:
                raise ValueError(
                    f"Attempting to broadcast a dimension with negative length! ({n} in {shape})"
                )
        result = [1] * (len(shape) - len(result)) + result
        for d in range(-len(shape), 0):
            if shape[d] != 1:
                if result[d] not in (1, shape[d]):
                    raise RuntimeError(
                        f"Attempting to broadcast a dimension of length {shape[d]} at {d}!"
                        f" Mismatching argument at index {i} had {shape}; but expected shape"
                        f" should be broadcastable to {result}"
                    )
                result[d] = int(shape[d])
    return Size(result)


@face("broadcast_tensors", method=False)
def broadcast_tensors(*tensors: Any) -> Any:
    """All tensors expanded to their common shape, as views."""
    for i, t in enumerate(tensors):
        if not isinstance(t, Tensor):
            raise TypeError(
                f"broadcast_tensors(): expected Tensor as argument {i}, but got {type(t).__name__}"
            )
    shape = layout.broadcast_shapes(*[t._a.shape for t in tensors], op="broadcast_tensors")
    return tuple(t if t._a.shape == shape else aten.expand(t, shape) for t in tensors)


@face("unravel_index", method=False)
def unravel_index(indices: Any, shape: Any) -> Any:
    """The coordinates of row-major positions in an array of `shape`: a tensor for each dim."""
    if not isinstance(indices, Tensor):
        raise TypeError(
            f"unravel_index(): 'indices' must be a Tensor of integers, not {type(indices).__name__}"
        )
    if indices._k.dtype.category != dt.INT:
        raise TypeError(f"expected 'indices' to be integer dtype, but got {indices.dtype}")
    if isinstance(shape, int):
        shape = (shape,)
    elif not isinstance(shape, Sequence):
        raise TypeError(f"expected 'shape' to be int or sequence of ints, but got {type(shape)}")
    for n in shape:
        if not isinstance(n, int):
            raise TypeError(f"expected 'shape' sequence to only contain ints, but got {type(n)}")
        if n < 0:
            raise ValueError(f"'shape' cannot have negative values, but got {tuple(shape)}")
    if not shape:
        return ()
    steps = [*itertools.accumulate(shape[:0:-1], lambda a, b: a * b, initial=1)][::-1]
    like = {"dtype": dt.int64, "device": indices._k.device}
    whole = aten.floor_divide(aten.unsqueeze(indices, -1), aten.tensor(steps, **like))
    return aten.unbind(aten.remainder(whole, aten.tensor(list(shape), **like)), -1)

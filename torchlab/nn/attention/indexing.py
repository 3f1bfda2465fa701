"""The mode under which the masks and scores of `flex_attention` index tensors by tensors.

Source: https://docs.pytorch.org/docs/2.13/nn.attention.flex_attention.html
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torchlab._core.dispatch.registry import aten
from torchlab._core.dtype import int64
from torchlab._core.pytree import tree_leaves
from torchlab._core.tensor import Tensor
from torchlab.overrides import TorchFunctionMode


class TransformGetItemToIndex(TorchFunctionMode):
    """Under it `x[i, j]` with tensors (and numbers) indexes by their elements. Otherwise tensors
    without dims are read as numbers, which `vmap` cannot do."""

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        if func is Tensor.__getitem__ and isinstance(args[0], Tensor):
            of = args[0]
            places = tree_leaves(args[1])
            if all(isinstance(p, (Tensor, int)) for p in places):
                places = [
                    p
                    if isinstance(p, Tensor)
                    else aten.scalar_tensor(p, dtype=int64, device=of.device)
                    for p in places
                ]
                return aten.index(of, places)
        return func(*args, **(kwargs or {}))

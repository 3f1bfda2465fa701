"""Points of an image.

Source: https://docs.pytorch.org/vision/0.28/generated/torchvision.tv_tensors.KeyPoints.html
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Self

from torchlab._core.dispatch.registry import aten
from torchlab._core.pytree import tree_leaves
from torchlab._core.tensor import Tensor
from torchlab.vision.tv_tensors._tv_tensor import TVTensor


class KeyPoints(TVTensor):
    """Points (…, 2), each (x, y) in pixels, of what `as_tensor` takes: single ones, polygons,
    skeletons.

    canvas_size: (height, width) of the image. ValueError for another last dimension.
    """

    canvas_size: tuple[int, int]

    @classmethod
    def _wrap(
        cls, tensor: Tensor, *, canvas_size: tuple[int, int], check_dims: bool = True
    ) -> Self:
        if check_dims:
            if tensor.ndim == 1:
                tensor = aten.unsqueeze(tensor, 0)
            elif tensor.shape[-1] != 2:
                raise ValueError(f"Expected a tensor of shape (..., 2), not {tensor.shape}")
        points = tensor.as_subclass(cls)
        points.canvas_size = canvas_size
        return points

    def __new__(
        cls,
        data: Any,
        *,
        canvas_size: tuple[int, int],
        dtype: Any = None,
        device: Any = None,
        requires_grad: bool | None = None,
    ) -> Self:
        tensor = cls._to_tensor(data, dtype=dtype, device=device, requires_grad=requires_grad)
        return cls._wrap(tensor, canvas_size=canvas_size)

    @classmethod
    def wrap(cls, tensor: Tensor, like: Any, **kwargs: Any) -> Self:
        """`tensor` as points with the metadata of `like`; `kwargs` replace parts of it."""
        return cls._wrap(tensor, canvas_size=kwargs.get("canvas_size", like.canvas_size))

    @classmethod
    def _wrap_output(
        cls, output: Any, args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        # The first points among the arguments say which image the result's belong to.
        given = tree_leaves((args, kwargs or {}))
        like = next((leaf for leaf in given if isinstance(leaf, KeyPoints)), None)
        return cls._with_metadata(output, like)

    @classmethod
    def _with_metadata(cls, output: Any, like: Any) -> Any:
        if isinstance(output, (tuple, list)):
            return type(output)([cls._with_metadata(part, like) for part in output])
        # `.data` comes in the type already, but without its metadata.
        if like is None or not isinstance(output, Tensor) or hasattr(output, "canvas_size"):
            return output
        return cls._wrap(output, canvas_size=like.canvas_size, check_dims=False)

    def __repr__(self, *, tensor_contents: Any = None) -> str:
        return self._make_repr(canvas_size=self.canvas_size)

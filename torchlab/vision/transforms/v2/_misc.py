"""Transforms of values, of types of values and of time.

Source: https://docs.pytorch.org/vision/0.28/transforms.html#miscellaneous
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

from torchlab._core.dtype import dtype as Dtype
from torchlab._core.dtype import float32
from torchlab._core.tensor import Tensor
from torchlab.vision.transforms import _values as v1
from torchlab.vision.transforms import _warps as v1_warps
from torchlab.vision.transforms._image import is_picture
from torchlab.vision.transforms.v2 import functional as F
from torchlab.vision.transforms.v2._arguments import pair_of_numbers
from torchlab.vision.transforms.v2._samples import has_any
from torchlab.vision.transforms.v2._transform import Transform
from torchlab.vision.transforms.v2.functional import is_pure_tensor
from torchlab.vision.tv_tensors import Image, Video, wrap


class Identity(Transform):
    """The sample as it is."""

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        return inpt


class Lambda(Transform):
    """The user's function, for the parts of the sample that are of one of the types (any if none
    is given)."""

    _transformed_types = (object,)

    def __init__(self, lambd: Callable[[Any], Any], *types: type) -> None:
        super().__init__()
        self.lambd = lambd
        self.types = types or self._transformed_types

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        return self.lambd(inpt) if isinstance(inpt, self.types) else inpt  # type: ignore[arg-type]

    def extra_repr(self) -> str:
        shown = [] if not hasattr(self.lambd, "__name__") else [self.lambd.__name__]
        shown.append(f"types={[kind.__name__ for kind in self.types]}")
        return ", ".join(shown)


class LinearTransformation(Transform):
    """(x - mean_vector) times a (D, D) matrix, for images of D values: whitening."""

    _transformed_types = (is_pure_tensor, Image, Video)

    def __init__(self, transformation_matrix: Tensor, mean_vector: Tensor) -> None:
        super().__init__()
        v1.check_whitening(transformation_matrix, mean_vector)
        self.transformation_matrix = transformation_matrix
        self.mean_vector = mean_vector

    def check_inputs(self, flat_inputs: list[Any]) -> None:
        if has_any(flat_inputs, is_picture):
            raise TypeError(f"{type(self).__name__}() does not support PIL images.")

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        plain = inpt.as_subclass(Tensor)
        output = v1.whitened(plain, self.transformation_matrix, self.mean_vector)
        return wrap(output, like=inpt)


class Normalize(Transform):
    """`functional.normalize`: (x - mean) / std for each channel."""

    def __init__(self, mean: Sequence[float], std: Sequence[float], inplace: bool = False) -> None:
        super().__init__()
        self.mean = list(mean)
        self.std = list(std)
        self.inplace = inplace

    def check_inputs(self, flat_inputs: list[Any]) -> None:
        if has_any(flat_inputs, is_picture):
            raise TypeError(f"{type(self).__name__}() does not support PIL images.")

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        return self._call_kernel(
            F.normalize, inpt, mean=self.mean, std=self.std, inplace=self.inplace
        )


class GaussianBlur(Transform):
    """`functional.gaussian_blur` with sigma drawn from (from, to)."""

    get_params = staticmethod(v1_warps.GaussianBlur.get_params)

    def __init__(
        self,
        kernel_size: int | Sequence[int],
        sigma: float | Sequence[float] = (0.1, 2.0),
    ) -> None:
        super().__init__()
        self.kernel_size = v1_warps.kernel_sides(kernel_size)
        self.sigma = pair_of_numbers(sigma, "sigma")
        if not 0.0 < self.sigma[0] <= self.sigma[1]:
            raise ValueError(
                f"sigma values should be positive and of the form (min, max). Got {self.sigma}"
            )

    def make_params(self, flat_inputs: list[Any]) -> dict[str, Any]:
        sigma = self.get_params(*self.sigma)
        return {"sigma": [sigma, sigma]}

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        return self._call_kernel(F.gaussian_blur, inpt, self.kernel_size, **params)


class GaussianNoise(Transform):
    """`functional.gaussian_noise`."""

    def __init__(self, mean: float = 0.0, sigma: float = 0.1, clip: bool = True) -> None:
        super().__init__()
        self.mean = mean
        self.sigma = sigma
        self.clip = clip

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        return self._call_kernel(
            F.gaussian_noise, inpt, mean=self.mean, sigma=self.sigma, clip=self.clip
        )


class ToDtype(Transform):
    """Another dtype.

    dtype: for images and videos; or a dictionary of dtypes (None: as it is) by type, under "others"
    for the rest. scale: images' and videos' values are scaled to the dtype's range.
    """

    _transformed_types = (Tensor,)

    def __init__(self, dtype: Dtype | dict[Any, Dtype | None], scale: bool = False) -> None:
        super().__init__()
        if not isinstance(dtype, (dict, Dtype)):
            raise ValueError(f"dtype must be a dict or a torch.dtype, got {type(dtype)} instead")
        if isinstance(dtype, dict) and Tensor in dtype and (Image in dtype or Video in dtype):
            warnings.warn(
                "Got `dtype` values for `torch.Tensor` and either `tv_tensors.Image` or"
                " `tv_tensors.Video`. Note that a plain `torch.Tensor` will *not* be transformed by"
                " this (or any other transformation) in case a `tv_tensors.Image` or"
                " `tv_tensors.Video` is present in the input.",
                stacklevel=2,
            )
        self.dtype = dtype
        self.scale = scale

    def _dtype_for(self, inpt: Any, is_image: bool) -> Dtype | None:
        if not isinstance(self.dtype, dict):
            return self.dtype if is_image else None
        for kind in (type(inpt), "others"):
            if kind in self.dtype:
                return self.dtype[kind]
        raise ValueError(
            f"No dtype was specified for type {type(inpt)}. If you only need to convert the dtype"
            " of images or videos, you can just pass e.g. dtype=torch.float32. If you're passing a"
            ' dict as dtype, you can use "others" as a catch-all key, e.g.'
            ' dtype={tv_tensors.Mask: torch.int64, "others": None} to pass-through the rest of the'
            " inputs."
        )

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        is_image = is_pure_tensor(inpt) or isinstance(inpt, (Image, Video))
        dtype = self._dtype_for(inpt, is_image)
        if dtype is not None:
            return self._call_kernel(F.to_dtype, inpt, dtype=dtype, scale=self.scale)
        if self.scale and is_image:
            warnings.warn(
                "scale was set to True but no dtype was specified for images or videos: no scaling"
                " will be done.",
                stacklevel=2,
            )
        return inpt


class ConvertImageDtype(Transform):
    """`ToDtype(dtype, scale=True)` replaces this."""

    def __init__(self, dtype: Dtype = float32) -> None:
        super().__init__()
        self.dtype = dtype

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        return self._call_kernel(F.to_dtype, inpt, dtype=self.dtype, scale=True)


class UniformTemporalSubsample(Transform):
    """`functional.uniform_temporal_subsample`: `num_samples` frames at equal distances."""

    _transformed_types = (is_pure_tensor, Video)

    def __init__(self, num_samples: int) -> None:
        super().__init__()
        self.num_samples = num_samples

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        return self._call_kernel(F.uniform_temporal_subsample, inpt, self.num_samples)

"""Between Pillow images, arrays and tensors; and the values of tensors.

Source: https://docs.pytorch.org/vision/0.28/transforms.html#conversion
"""

from __future__ import annotations

from typing import Any

import numpy as np

from torchlab._core import dtype as dt
from torchlab._core.dispatch.registry import aten
from torchlab._core.tensor import Tensor
from torchlab.vision.transforms._image import PIL, is_tensor, max_value

_NUMPY_OF_MODE = {"I": np.int32, "I;16": np.uint16, "I;16B": np.uint16, "F": np.float32}
_ONE_CHANNEL = {"uint8": "L", "int16": "I;16", "uint16": "I;16", "int32": "I", "float32": "F"}
_PERMITTED = {2: ("LA",), 3: ("RGB", "YCbCr", "HSV"), 4: ("RGBA", "CMYK", "RGBX")}


def _pixels(pic: Any) -> np.ndarray[Any, Any]:
    """(C, H, W), a copy."""
    array = np.array(pic, dtype=_NUMPY_OF_MODE.get(pic.mode))
    return array.reshape(pic.height, pic.width, len(pic.getbands())).transpose(2, 0, 1)


def pil_to_tensor(pic: Any) -> Tensor:
    """A Pillow image as a tensor (C, H, W) of the image's own type, unscaled."""
    if not isinstance(pic, PIL.Image):
        raise TypeError(f"pic should be PIL Image. Got {type(pic)}")
    return aten.from_numpy(_pixels(pic))


def to_tensor(pic: Any) -> Tensor:
    """A Pillow image or an array (H, W[, C]) as a tensor (C, H, W).

    Bytes become the default floating-point type, from 0 to 1; other types stay as they are.
    """
    if isinstance(pic, np.ndarray):
        if pic.ndim not in (2, 3):
            raise ValueError(f"pic should be 2/3 dimensional. Got {pic.ndim} dimensions.")
        array = pic.transpose(2, 0, 1) if pic.ndim == 3 else pic[None]
    elif isinstance(pic, Tensor) or not isinstance(pic, PIL.Image):
        raise TypeError(f"pic should be PIL Image or ndarray. Got {type(pic)}")
    else:
        array = _pixels(pic)
        if pic.mode == "1":
            array = array.astype(np.uint8) * np.uint8(255)
        elif pic.mode == "I;16":
            array = array.astype(np.int16)  # as torchvision reads them; `pil_to_tensor` does not
    image = aten.from_numpy(np.ascontiguousarray(array))
    if image.dtype == dt.uint8:
        return image.to(dt.get_default_dtype()) / 255
    return image


def to_pil_image(pic: Any, mode: str | None = None) -> Any:
    """A tensor ([C,] H, W) or an array (H, W[, C]) as a Pillow image.

    Floating-point values are taken as 0 to 1, unless `mode` is "F". Without `mode` the number of
    channels says it: 1 by the type, 2 "LA", 3 "RGB", 4 "RGBA".
    """
    if isinstance(pic, Tensor):
        array = pic.detach().cpu().numpy()
        array = array.transpose(1, 2, 0) if array.ndim == 3 else array
    elif isinstance(pic, np.ndarray):
        array = pic
    else:
        raise TypeError(f"pic should be Tensor or ndarray. Got {type(pic)}.")
    if array.ndim == 2:
        array = array[:, :, None]
    if array.ndim != 3:
        raise ValueError(f"pic should be 2/3 dimensional. Got {array.ndim} dimensions.")
    channels = array.shape[2]
    if channels > 4:
        raise ValueError(f"pic should not have > 4 channels. Got {channels} channels.")
    if np.issubdtype(array.dtype, np.floating) and mode != "F":
        array = (array * 255).astype(np.uint8)
    mode = _mode(array, mode, channels)
    height, width = array.shape[:2]
    if not array.flags.c_contiguous:
        planes, array = array, np.empty(array.shape, array.dtype)
        for c in range(channels):  # a quarter of the time that NumPy takes for all at once
            array[..., c] = planes[..., c]
    return PIL.frombytes(mode, (width, height), array.tobytes())


def _mode(array: np.ndarray[Any, Any], mode: str | None, channels: int) -> str:
    kind = str(array.dtype)
    if channels == 1:
        expected = _ONE_CHANNEL.get(kind)
        if mode is not None and mode != expected:
            raise ValueError(
                f"Incorrect mode ({mode}) supplied for input type {kind}. Should be {expected}"
            )
        if expected is None:
            raise TypeError(f"Input type {kind} is not supported")
        return expected
    permitted = _PERMITTED[channels]
    if mode is not None and mode not in permitted:
        raise ValueError(f"Only modes {permitted} are supported for {channels}D inputs, got {mode}")
    if kind != "uint8":
        raise TypeError(f"Input type {kind} is not supported with {channels} channels; use uint8")
    return mode or ("RGBA" if channels == 4 else permitted[0])


def convert_image_dtype(image: Tensor, dtype: Any = dt.float32) -> Tensor:
    """The image in another type, its values scaled from one type's range to the other's.

    RuntimeError where the floating-point type cannot hold the integer type's largest value.
    """
    if not isinstance(image, Tensor):
        raise TypeError(f"Input img should be Tensor Image, got {type(image)}")
    return rescaled(image, dtype)


def rescaled(image: Tensor, dtype: Any, fused: bool = False) -> Tensor:
    """`convert_image_dtype`; `fused`: see Note [Two roundings] in `_tensor_colour`."""
    if image.dtype == dtype:
        return image
    high_in, high_out = max_value(image.dtype), max_value(dtype)
    if image.is_floating_point():
        if dtype.is_floating_point:
            return image.to(dtype)
        if (image.dtype == dt.float32 and dtype in (dt.int32, dt.int64)) or (
            image.dtype == dt.float64 and dtype == dt.int64
        ):
            raise RuntimeError(
                f"The cast from {image.dtype} to {dtype} cannot be performed safely."
            )
        # The small number keeps 1.0 below the next value, so that all bins are equally wide.
        return (image * (high_out + 1.0 - 1e-3)).to(dtype)
    if dtype.is_floating_point:
        return image.to(dtype) * (1.0 / high_in) if fused else image.to(dtype) / high_in
    if high_in > high_out:
        factor = (high_in + 1) // (high_out + 1)
        return aten.div(image, factor, rounding_mode="floor").to(dtype)
    return image.to(dtype) * ((high_out + 1) // (high_in + 1))


def normalize(tensor: Tensor, mean: Any, std: Any, inplace: bool = False) -> Tensor:
    """(tensor - mean) / std for each channel of a floating-point tensor (…, C, H, W)."""
    mean, std = normalizers(tensor, mean, std)
    out = tensor if inplace else aten.clone(tensor)
    return out.sub_(mean).div_(std)


def normalizers(tensor: Tensor, mean: Any, std: Any) -> tuple[Tensor, Tensor]:
    """Both as tensors (C, 1, 1); TypeError and ValueError for a tensor that is no image of
    floating-point values, and where `std` is 0."""
    if not isinstance(tensor, Tensor):
        raise TypeError(f"img should be Tensor Image. Got {type(tensor)}")
    if not tensor.is_floating_point():
        raise TypeError(f"Input tensor should be a float tensor. Got {tensor.dtype}.")
    if tensor.ndim < 3:
        raise ValueError(
            "Expected tensor to be a tensor image of size (..., C, H, W). Got"
            f" {tuple(tensor.shape)}"
        )
    mean, std = (
        aten.reshape(t, (-1, 1, 1)) if t.ndim == 1 else t
        for t in (aten.as_tensor(v, dtype=tensor.dtype, device=tensor.device) for v in (mean, std))
    )
    if (std == 0).any():
        raise ValueError(
            f"std evaluated to zero after conversion to {tensor.dtype}: division by zero"
        )
    return mean, std


def erase(img: Tensor, i: int, j: int, h: int, w: int, v: Tensor, inplace: bool = False) -> Tensor:
    """The image with `v` in the h x w rectangle whose upper left corner is (i, j)."""
    if not isinstance(img, Tensor) or not is_tensor(img):
        raise TypeError(f"img should be Tensor Image. Got {type(img)}")
    out = img if inplace else img.clone()  # the method keeps the class of a tv_tensor
    out[..., i : i + h, j : j + w] = v
    return out

"""The colours of tensor images (…, C, H, W).

Source: https://docs.pytorch.org/vision/0.28/transforms.html#color
"""

from __future__ import annotations

from torchlab._core import dtype as dt
from torchlab._core.dispatch.registry import aten
from torchlab._core.tensor import Tensor
from torchlab.nn import functional as F
from torchlab.vision.transforms._convert import convert_image_dtype
from torchlab.vision.transforms._image import assert_channels, get_dimensions, max_value
from torchlab.vision.transforms._tensor_grid import from_batch, to_batch


def _wide(img: Tensor) -> Tensor:
    return img if img.is_floating_point() else img.float()


def blend(a: Tensor, b: Tensor, ratio: float) -> Tensor:
    """ratio * a + (1 - ratio) * b within the range of a's type."""
    ratio = float(ratio)  # an int would keep bytes, and overflow
    return aten.clamp(ratio * a + (1.0 - ratio) * b, 0, max_value(a.dtype)).to(a.dtype)


def gray(img: Tensor, num_output_channels: int = 1) -> Tensor:
    if img.ndim < 3:
        raise TypeError(
            f"Input image tensor should have at least 3 dimensions, but found {img.ndim}"
        )
    assert_channels(img, (1, 3))
    if num_output_channels not in (1, 3):
        raise ValueError(f"num_output_channels should be either 1 or 3, got {num_output_channels}")
    if img.shape[-3] == 1:
        return aten.clone(img)
    r, g, b = aten.unbind(img, -3)
    # The weights of ITU-R BT.601.
    img = aten.unsqueeze((0.2989 * r + 0.587 * g + 0.114 * b).to(img.dtype), -3)
    return img.expand(*img.shape[:-3], 3, *img.shape[-2:]) if num_output_channels == 3 else img


def brightness(img: Tensor, factor: float) -> Tensor:
    assert_channels(img, (1, 3))
    return blend(img, aten.zeros_like(img), factor)


def contrast(img: Tensor, factor: float) -> Tensor:
    assert_channels(img, (1, 3))
    luma = gray(img) if get_dimensions(img)[0] == 3 else img
    return blend(img, _wide(luma).mean(dim=(-3, -2, -1), keepdim=True), factor)


def saturation(img: Tensor, factor: float) -> Tensor:
    assert_channels(img, (1, 3))
    return img if get_dimensions(img)[0] == 1 else blend(img, gray(img), factor)


def hue(img: Tensor, factor: float) -> Tensor:
    assert_channels(img, (1, 3))
    if get_dimensions(img)[0] == 1:
        return img
    h, s, v = _to_hsv(convert_image_dtype(img, dt.float32))
    return convert_image_dtype(_to_rgb(aten.remainder(h + factor, 1.0), s, v), img.dtype)


def _to_hsv(img: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Hue (in turns), saturation and value of RGB from 0 to 1."""
    r, g, b = aten.unbind(img, -3)
    high, low = img.amax(-3), img.amin(-3)
    flat = high == low
    span = high - low
    saturation = span / aten.where(flat, aten.ones_like(high), high)
    span = aten.where(flat, aten.ones_like(high), span)
    rc, gc, bc = (high - r) / span, (high - g) / span, (high - b) / span
    red = high == r
    green = (high == g) & ~red
    blue = ~red & ~green
    h = red * (bc - gc) + green * (2.0 + rc - bc) + blue * (4.0 + gc - rc)
    return aten.fmod(h / 6.0 + 1.0, 1.0), saturation, high


def _to_rgb(h: Tensor, s: Tensor, v: Tensor) -> Tensor:
    sector = aten.floor(h * 6.0)
    f = h * 6.0 - sector
    sector = sector.int() % 6
    p = aten.clamp(v * (1.0 - s), 0.0, 1.0)
    q = aten.clamp(v * (1.0 - s * f), 0.0, 1.0)
    t = aten.clamp(v * (1.0 - s * (1.0 - f)), 0.0, 1.0)
    # For each channel, which of the four it is in the six sectors of the circle.
    choice = aten.stack((v, q, p, t), -1)
    table = aten.tensor([[0, 1, 2, 2, 3, 0], [3, 0, 0, 1, 2, 2], [2, 2, 3, 0, 0, 1]])
    at = aten.unsqueeze(table.to(h.device)[:, sector.long()], -1)
    return aten.stack([aten.gather(choice, -1, at[c])[..., 0] for c in range(3)], -3)


def gamma(img: Tensor, power: float, gain: float) -> Tensor:
    wide = img if img.is_floating_point() else convert_image_dtype(img, dt.float32)
    return convert_image_dtype(aten.clamp(gain * wide**power, 0, 1), img.dtype)


def sharpness(img: Tensor, factor: float) -> Tensor:
    assert_channels(img, (1, 3))
    if img.shape[-1] <= 2 or img.shape[-2] <= 2:
        return img
    return blend(img, _smooth(img), factor)


def _smooth(img: Tensor) -> Tensor:
    """Each inner pixel with its neighbours: weight 5 to 1 each."""
    kind = img.dtype if img.is_floating_point() else dt.float32
    kernel = aten.ones((3, 3), dtype=kind, device=img.device)
    kernel[1, 1] = 5.0
    kernel = (kernel / kernel.sum()).expand(img.shape[-3], 1, 3, 3)
    smooth = F.conv2d(to_batch(img, kind), kernel, groups=img.shape[-3])
    out = aten.clone(img)
    out[..., 1:-1, 1:-1] = from_batch(smooth, img)
    return out


def invert(img: Tensor) -> Tensor:
    assert_channels(img, (1, 3))
    return max_value(img.dtype) - img


def posterize(img: Tensor, bits: int) -> Tensor:
    assert_channels(img, (1, 3))
    if img.dtype != dt.uint8:
        raise TypeError(f"Only torch.uint8 image tensors are supported, but found {img.dtype}")
    return img & (256 - 2 ** (8 - bits))


def solarize(img: Tensor, threshold: float) -> Tensor:
    assert_channels(img, (1, 3))
    if threshold > max_value(img.dtype):
        raise TypeError(
            f"Threshold should be less than bound of img, got {threshold} for {img.dtype}"
        )
    return aten.where(img >= threshold, invert(img), img)


def autocontrast(img: Tensor) -> Tensor:
    assert_channels(img, (1, 3))
    bound = max_value(img.dtype)
    wide = _wide(img)
    low, high = wide.amin((-2, -1), keepdim=True), wide.amax((-2, -1), keepdim=True)
    scale = bound / (high - low)
    flat = ~aten.isfinite(scale)
    low = aten.where(flat, aten.zeros_like(low), low)
    scale = aten.where(flat, aten.ones_like(scale), scale)
    return aten.clamp((wide - low) * scale, 0, bound).to(img.dtype)


def equalize(img: Tensor) -> Tensor:
    assert_channels(img, (1, 3))
    if img.dtype != dt.uint8:
        raise TypeError(f"Only torch.uint8 image tensors are supported, but found {img.dtype}")
    planes = aten.reshape(img, (-1, img.shape[-2] * img.shape[-1]))
    return aten.reshape(aten.stack([_equal(plane) for plane in planes]), img.shape)


def _equal(plane: Tensor) -> Tensor:
    counts = aten.bincount(plane.long(), minlength=256)
    used = counts[counts != 0]
    step = int(used[:-1].sum()) // 255
    if step == 0:
        return plane
    table = (aten.cumsum(counts, 0) - counts + step // 2) // step
    return aten.clamp(table, 0, 255).to(dt.uint8)[plane.long()]

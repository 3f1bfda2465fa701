"""The colours of tensor images (…, C, H, W).

Note [Two roundings]
torchvision's v2 computes the formulas of v1 with fewer roundings: a product is added in one step,
and what v1 divides by 255 is multiplied by 1 / 255. Bytes can come out one apart. So that both
agree with torchvision to the last bit, the functions have both ways: `fused` is v2's.

Source: https://docs.pytorch.org/vision/0.28/transforms.html#color
"""

from __future__ import annotations

from torchlab._core import dtype as dt
from torchlab._core.dispatch.registry import aten
from torchlab._core.tensor import Tensor
from torchlab.nn import functional as F
from torchlab.vision.transforms._convert import rescaled
from torchlab.vision.transforms._image import assert_channels, get_dimensions, max_value
from torchlab.vision.transforms._tensor_grid import to_batch


def _wide(img: Tensor) -> Tensor:
    return img if img.is_floating_point() else img.float()


def blend(a: Tensor, b: Tensor, ratio: float, fused: bool = False) -> Tensor:
    """ratio * a + (1 - ratio) * b within the range of a's type."""
    ratio = float(ratio)  # an int would keep bytes, and overflow
    rest = 1.0 - ratio
    total = aten.add(ratio * a, b, alpha=rest) if fused else ratio * a + rest * b
    return aten.clamp(total, 0, max_value(a.dtype)).to(a.dtype)


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
    img = luma(img).to(img.dtype)
    return img.expand(*img.shape[:-3], 3, *img.shape[-2:]) if num_output_channels == 3 else img


def luma(img: Tensor, fused: bool = False) -> Tensor:
    """The brightness (…, 1, H, W) of three channels by ITU-R BT.601, unrounded."""
    r, g, b = aten.unbind(img, -3)
    if fused:
        total = aten.add(aten.add(0.2989 * r, g, alpha=0.587), b, alpha=0.114)
    else:
        total = 0.2989 * r + 0.587 * g + 0.114 * b
    return aten.unsqueeze(total, -3)


def _whole_luma(img: Tensor, fused: bool) -> Tensor:
    """The brightness in the steps of img's type."""
    if not fused:
        return gray(img)
    bright = luma(img, fused)
    return bright if img.is_floating_point() else aten.floor(bright)


def brightness(img: Tensor, factor: float) -> Tensor:
    assert_channels(img, (1, 3))
    return blend(img, aten.zeros_like(img), factor)


def contrast(img: Tensor, factor: float, fused: bool = False) -> Tensor:
    assert_channels(img, (1, 3))
    bright = _whole_luma(img, fused) if get_dimensions(img)[0] == 3 else img
    return blend(img, _wide(bright).mean(dim=(-3, -2, -1), keepdim=True), factor, fused)


def saturation(img: Tensor, factor: float, fused: bool = False) -> Tensor:
    assert_channels(img, (1, 3))
    if get_dimensions(img)[0] == 1:
        return img
    return blend(img, _whole_luma(img, fused), factor, fused)


def hue(img: Tensor, factor: float, fused: bool = False) -> Tensor:
    assert_channels(img, (1, 3))
    if get_dimensions(img)[0] == 1 or img.numel() == 0:
        return img
    h, s, v = _to_hsv(rescaled(img, dt.float32, fused), fused)
    out = _to_rgb(aten.remainder(h + factor, 1.0), s, v, fused)
    return rescaled(out, img.dtype, fused)


def _to_hsv(img: Tensor, fused: bool) -> tuple[Tensor, Tensor, Tensor]:
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
    turns = h * (1.0 / 6.0) if fused else h / 6.0
    return aten.fmod(turns + 1.0, 1.0), saturation, high


def _to_rgb(h: Tensor, s: Tensor, v: Tensor, fused: bool) -> Tensor:
    sector = aten.floor(h * 6.0)
    f = h * 6.0 - sector
    sector = sector.int() % 6
    p = aten.clamp(v * (1.0 - s), 0.0, 1.0)
    q = aten.clamp(v * (1.0 - s * f), 0.0, 1.0)
    rising = (1.0 - s) + s * f if fused else 1.0 - s * (1.0 - f)
    t = aten.clamp(v * rising, 0.0, 1.0)
    # For each channel, which of the four it is in the six sectors of the circle.
    choice = aten.stack((v, q, p, t), -1)
    table = aten.tensor([[0, 1, 2, 2, 3, 0], [3, 0, 0, 1, 2, 2], [2, 2, 3, 0, 0, 1]])
    at = aten.unsqueeze(table.to(h.device)[:, sector.long()], -1)
    return aten.stack([aten.gather(choice, -1, at[c])[..., 0] for c in range(3)], -3)


def gamma(img: Tensor, power: float, gain: float, fused: bool = False) -> Tensor:
    wide = img if img.is_floating_point() else rescaled(img, dt.float32, fused)
    return rescaled(aten.clamp(gain * wide**power, 0, 1), img.dtype, fused)


def sharpness(img: Tensor, factor: float, fused: bool = False) -> Tensor:
    assert_channels(img, (1, 3))
    if img.shape[-1] <= 2 or img.shape[-2] <= 2:
        return img
    smooth = _smooth(img)
    out = aten.clone(img)
    if not fused:
        out[..., 1:-1, 1:-1] = smooth.to(img.dtype)
        return blend(img, out, factor)
    # v2 adds a part of the difference, and leaves the border as it is.
    inner = img[..., 1:-1, 1:-1].to(smooth.dtype)
    out[..., 1:-1, 1:-1] = aten.clamp(
        aten.add(inner, smooth - inner, alpha=1.0 - factor), 0, max_value(img.dtype)
    ).to(img.dtype)
    return aten.clamp(out, 0, max_value(img.dtype)).to(img.dtype)  # a clamped bool is int64


def _smooth(img: Tensor) -> Tensor:
    """Each inner pixel with its neighbours: weight 5 to 1 each. Rounded if the image is whole."""
    kind = img.dtype if img.is_floating_point() else dt.float32
    kernel = aten.ones((3, 3), dtype=kind, device=img.device)
    kernel[1, 1] = 5.0
    kernel = (kernel / kernel.sum()).expand(img.shape[-3], 1, 3, 3)
    smooth = F.conv2d(to_batch(img, kind), kernel, groups=img.shape[-3])
    smooth = smooth if img.is_floating_point() else aten.round(smooth)
    return smooth.reshape((*img.shape[:-2], *smooth.shape[-2:]))


def invert(img: Tensor) -> Tensor:
    return max_value(img.dtype) - img


def posterize(img: Tensor, bits: int) -> Tensor:
    if img.is_floating_point():
        levels = 1 << bits
        return aten.clamp(aten.floor(img * levels), 0, levels - 1) * (1.0 / levels)
    all_bits = max_value(img.dtype).bit_length()
    return aten.bitwise_and(img, (1 << all_bits) - (1 << (all_bits - bits)))


def solarize(img: Tensor, threshold: float) -> Tensor:
    if threshold > max_value(img.dtype):
        raise TypeError(
            f"Threshold should be less than bound of img, got {threshold} for {img.dtype}"
        )
    return aten.where(img >= threshold, invert(img), img)


def autocontrast(img: Tensor, fused: bool = False) -> Tensor:
    assert_channels(img, (1, 3))
    if img.numel() == 0:
        return img
    bound = max_value(img.dtype)
    wide = _wide(img)
    low, high = wide.amin((-2, -1), keepdim=True), wide.amax((-2, -1), keepdim=True)
    flat = low == high
    low = aten.where(flat, aten.zeros_like(low), low)
    if fused:
        span = (high - low) * (1.0 / bound)
        spread = (wide - low) / aten.where(flat, aten.ones_like(span), span)
    else:
        scale = bound / (high - low)
        spread = (wide - low) * aten.where(flat, aten.ones_like(scale), scale)
    return aten.clamp(spread, 0, bound).to(img.dtype)


def equalize(img: Tensor) -> Tensor:
    """For bytes."""
    if img.numel() == 0:
        return img
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

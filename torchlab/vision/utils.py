"""Pictures of tensors: grids, and what is drawn into images.

Source: https://docs.pytorch.org/vision/0.28/utils.html
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from torchlab._core import dtype as dt
from torchlab._core.dispatch.registry import aten
from torchlab._core.lazy import lazy
from torchlab._core.tensor import Tensor
from torchlab.vision.transforms.functional import convert_image_dtype, to_pil_image

__all__ = [
    "draw_bounding_boxes",
    "draw_keypoints",
    "draw_segmentation_masks",
    "make_grid",
    "save_image",
]

PIL = lazy("PIL.Image", "pip install pillow")
ImageColor = lazy("PIL.ImageColor", "pip install pillow")
ImageDraw = lazy("PIL.ImageDraw", "pip install pillow")
ImageFont = lazy("PIL.ImageFont", "pip install pillow")


def _unit(t: Tensor, bounds: tuple[float, float] | None) -> None:
    """`t` moved and scaled in place, so that `bounds` become 0 and 1."""
    low, high = (float(t.min()), float(t.max())) if bounds is None else bounds
    t.clamp_(min=low, max=high)
    t.sub_(low).div_(max(high - low, 1e-5))


def make_grid(
    tensor: Any,
    nrow: int = 8,
    padding: int = 2,
    normalize: bool = False,
    value_range: tuple[int, int] | None = None,
    scale_each: bool = False,
    pad_value: float = 0.0,
) -> Tensor:
    """Images (N, C, H, W), or a list of images, side by side in one image (3, H', W').

    nrow: images in one row. padding: pixels between them, of `pad_value`.
    normalize: scaled from `value_range` (by default the smallest and largest value, with
        `scale_each` of each image) to 0 to 1.
    """
    if not isinstance(tensor, Tensor) and not (
        isinstance(tensor, list) and all(isinstance(t, Tensor) for t in tensor)
    ):
        raise TypeError(f"tensor or list of tensors expected, got {type(tensor)}")
    images = aten.stack(tensor, 0) if isinstance(tensor, list) else tensor
    if images.ndim == 2:
        images = images[None]
    if images.ndim == 3:
        images = images[None]
    if images.shape[1] == 1:
        images = aten.cat((images, images, images), 1)
    if normalize:
        if value_range is not None and not isinstance(value_range, tuple):
            raise TypeError("value_range has to be a tuple (min, max) if specified.")
        images = aten.clone(images)
        for part in images if scale_each else (images,):
            _unit(part, value_range)
    count, channels, height, width = images.shape
    if count == 1:
        return images[0]
    columns = min(nrow, count)
    rows = math.ceil(count / columns)
    h, w = height + padding, width + padding
    grid = aten.full(
        (channels, h * rows + padding, w * columns + padding),
        pad_value,
        dtype=images.dtype,
        device=images.device,
    )
    for k in range(count):
        y, x = k // columns * h + padding, k % columns * w + padding
        grid[:, y : y + height, x : x + width] = images[k]
    return grid


def save_image(tensor: Any, fp: Any, format: str | None = None, **kwargs: Any) -> None:
    """An image, or `make_grid(tensor, **kwargs)`, with values from 0 to 1, as a file.

    fp: a name or an open file; then `format` says the kind of file.
    """
    grid = make_grid(tensor, **kwargs)
    # Half a step more, so that cutting rounds.
    values = aten.clamp(aten.add(aten.mul(grid, 255), 0.5), 0, 255)
    array = aten.permute(values, (1, 2, 0)).cpu().to(dt.uint8).numpy()
    PIL.fromarray(np.ascontiguousarray(array)).save(fp, format=format)


def _palette(count: int) -> list[tuple[int, int, int]]:
    """Colours that differ: multiples of three large steps, modulo 255."""
    steps = (2**25 - 1, 2**15 - 1, 2**21 - 1)
    return [(i * steps[0] % 255, i * steps[1] % 255, i * steps[2] % 255) for i in range(count)]


def _colours(colors: Any, count: int) -> list[Any]:
    """One (r, g, b[, a]) for each of `count` objects."""
    if count <= 0:
        raise ValueError(f"num_objects should be greater than 0, got {count}")
    if colors is None:
        found: list[Any] = list(_palette(count))
    elif isinstance(colors, list):
        if len(colors) < count:
            raise ValueError(
                f"Number of colors must be equal or larger than the number of objects, but got"
                f" {len(colors)} < {count}."
            )
        found = colors[:count]
    elif not isinstance(colors, (str, tuple)):
        raise ValueError(f"colors must be a tuple or a string, or a list thereof, got {colors}.")
    else:
        if isinstance(colors, tuple) and len(colors) != 3:
            raise ValueError(f"If passed as tuple, colors should be an RGB triplet, got {colors}.")
        found = [colors] * count
    return [ImageColor.getrgb(c) if isinstance(c, str) else c for c in found]


def _checked(op: str, image: Any) -> bool:
    """Whether the values are floating-point. TypeError and ValueError for no (C, H, W) image."""
    if not isinstance(image, Tensor):
        raise TypeError(f"{op}: the image must be a Tensor, got {type(image)}")
    if not (image.dtype == dt.uint8 or image.is_floating_point()):
        raise ValueError(f"{op}: the image dtype must be uint8 or float, got {image.dtype}")
    if image.ndim != 3:
        raise ValueError(f"{op}: pass individual images (C, H, W), not {tuple(image.shape)}")
    return image.is_floating_point()


def _back(array: Any, image: Tensor) -> Tensor:
    out = aten.from_numpy(np.array(array)).permute(2, 0, 1)
    if image.is_floating_point():
        return (out.to(dt.float32) / 255).to(image.dtype)
    return out.to(image.dtype)


def draw_bounding_boxes(
    image: Tensor,
    boxes: Tensor,
    labels: list[str | None] | None = None,
    colors: Any = None,
    fill: bool | None = False,
    width: int = 1,
    font: str | None = None,
    font_size: int | None = None,
    label_colors: Any = None,
    label_background_colors: Any = None,
    fill_labels: bool = False,
) -> Tensor:
    """The image (C, H, W), of uint8 or of floats from 0 to 1, with the frames of `boxes` (N, 4:
    x1, y1, x2, y2), each with its label.

    colors: one, or a list with one for each box; names, "#rrggbb" or (r, g, b).
    fill: a see-through colour inside too. width: of the lines, in pixels.
    label_colors: of the letters, by default those of the frames, or black on a background.
    fill_labels: a background for the labels, in `label_background_colors` or the frames' colours.
    font: the name of a TrueType file, for letters of `font_size`; without it Pillow's own font.
    """
    _checked("draw_bounding_boxes", image)
    if image.shape[0] not in (1, 3):
        raise ValueError("Only grayscale and RGB images are supported")
    if boxes.numel() and bool((boxes[:, :2] > boxes[:, 2:]).any()):
        raise ValueError("Boxes need to be in (xmin, ymin, xmax, ymax) format, with xmin <= xmax")
    count = boxes.shape[0]
    if count == 0:
        return image
    if labels is None:
        labels = [None] * count
    elif len(labels) != count:
        raise ValueError(
            f"Number of boxes ({count}) and labels ({len(labels)}) mismatch. Please specify labels"
            " for each box."
        )
    shades = _colours(colors, count)
    ink: list[Any] = shades
    paper: list[Any] = [None] * count
    if fill_labels:
        ink = [(0, 0, 0)] * count
        paper = _colours(label_background_colors, count) if label_background_colors else shades
    if label_colors:
        ink = _colours(label_colors, count)
    letters: Any = ImageFont.load_default()
    if font is not None:
        letters = ImageFont.truetype(font, font_size or 10)
    rgb = convert_image_dtype(image, dt.uint8)
    rgb = aten.tile(rgb, (3, 1, 1)) if image.shape[0] == 1 else rgb
    picture = to_pil_image(rgb)
    pen = ImageDraw.Draw(picture, "RGBA" if fill else None)
    for i, (box, label) in enumerate(zip(boxes.long().tolist(), labels, strict=True)):
        shade = shades[i]
        pen.rectangle(box, width=width, outline=shade, fill=(*shade[:3], 100) if fill else None)
        if label is not None:
            at = (box[0] + width + 1, box[1] + width + 1)
            if paper[i] is not None:
                left, top, right, bottom = pen.textbbox(at, label, font=letters)
                pen.rectangle((left - 1, top - 1, right + 1, bottom + 1), fill=paper[i])
            pen.text(at, label, fill=ink[i], font=letters)
    return _back(picture, image)


def draw_segmentation_masks(
    image: Tensor, masks: Tensor, alpha: float = 0.8, colors: Any = None
) -> Tensor:
    """The image (3, H, W), of uint8 or of floats from 0 to 1, with boolean `masks` ([N,] H, W) in
    colours over it: alpha 0 shows only the image, 1 only the colours. Black where masks overlap."""
    _checked("draw_segmentation_masks", image)
    if image.shape[0] != 3:
        raise ValueError("Pass an RGB image. Other Image formats are not supported")
    if masks.ndim == 2:
        masks = masks[None]
    if masks.ndim != 3:
        raise ValueError("masks must be of shape (H, W) or (batch_size, H, W)")
    if masks.dtype != dt.bool_:
        raise ValueError(f"The masks must be of dtype bool. Got {masks.dtype}")
    if masks.shape[-2:] != image.shape[-2:]:
        raise ValueError(
            f"The image and the masks must have the same height and width, got"
            f" {tuple(image.shape)} and {tuple(masks.shape)}"
        )
    if masks.shape[0] == 0:
        return image
    scale = 255.0 if image.is_floating_point() else 1.0
    painted = aten.clone(image)
    for mask, shade in zip(masks, _colours(colors, masks.shape[0]), strict=True):
        colour = aten.tensor(list(shade), device=image.device) / scale
        painted[:, mask] = colour.to(image.dtype)[:, None]
    painted[:, masks.sum(0) > 1] = 0
    # Where no mask is, painted is the image, and the sum is again the image.
    return (image * (1 - alpha) + painted * alpha).to(image.dtype)


def draw_keypoints(
    image: Tensor,
    keypoints: Tensor,
    connectivity: Sequence[tuple[int, int]] | None = None,
    colors: Any = None,
    radius: int = 2,
    width: int = 3,
    visibility: Tensor | None = None,
) -> Tensor:
    """The image (3, H, W), of uint8 or of floats from 0 to 1, with a dot at each of the
    `keypoints` (N, K, 2: x, y) of N objects, and lines between the pairs in `connectivity`.

    visibility: (N, K[, 1]) bool; hidden points and their lines are not drawn.
    """
    _checked("draw_keypoints", image)
    if image.shape[0] != 3:
        raise ValueError("Pass an RGB image. Other Image formats are not supported")
    if keypoints.ndim != 3:
        raise ValueError("keypoints must be of shape (num_instances, K, 2)")
    if visibility is None:
        visibility = aten.ones(keypoints.shape[:-1], dtype=dt.bool_)
    if visibility.ndim == 3:
        if visibility.shape[-1] != 1:
            raise ValueError(
                f"visibility must be (N, K) or (N, K, 1), got {tuple(visibility.shape)}"
            )
        visibility = visibility[..., 0]
    if visibility.shape != keypoints.shape[:-1]:
        raise ValueError(
            "keypoints and visibility must have the same dimensionality for num_instances and K."
            f" Got {tuple(visibility.shape)} and {tuple(keypoints.shape)}"
        )
    picture = to_pil_image(convert_image_dtype(image, dt.uint8))
    pen = ImageDraw.Draw(picture)
    seen = visibility.to(dt.bool_).tolist()
    for points, shown in zip(keypoints.long().tolist(), seen, strict=True):
        for (x, y), visible in zip(points, shown, strict=True):
            if visible:
                pen.ellipse(
                    (x - radius, y - radius, x + radius, y + radius),
                    fill=colors,
                    width=0,
                )
        for a, b in connectivity or ():
            if shown[a] and shown[b]:
                pen.line((*points[a], *points[b]), width=width)
    return _back(picture, image)

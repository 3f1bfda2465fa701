"""Pictures of tensors: grids, and what is drawn into images.

Source: https://docs.pytorch.org/vision/0.28/utils.html
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from torchlab._core import dtype as dt
from torchlab._core.dispatch.registry import aten
from torchlab._core.info import finfo
from torchlab._core.lazy import lazy
from torchlab._core.tensor import Tensor
from torchlab.vision.transforms.functional import convert_image_dtype, to_pil_image

__all__ = [
    "draw_bounding_boxes",
    "draw_keypoints",
    "draw_segmentation_masks",
    "flow_to_image",
    "make_grid",
    "save_image",
]

PIL = lazy("PIL.Image", "pip install pillow")
ImageColor = lazy("PIL.ImageColor", "pip install pillow")
ImageDraw = lazy("PIL.ImageDraw", "pip install pillow")
ImageFont = lazy("PIL.ImageFont", "pip install pillow")


def _log_api_usage_once(obj: Any) -> None:
    """Models that were copied out of torchvision call it. It counts uses; none is told here."""


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
    return out.to(image.dtype) * (1 / 255) if image.is_floating_point() else out


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
    """The image (1 or 3, H, W), of uint8 or of floats from 0 to 1, as (3, H, W) with `boxes` drawn.

    boxes: (N, 4: xmin, ymin, xmax, ymax) or (N, 8: the x and y of the four corners), in pixels.
    labels: a text for each box, inside its first corner; None draws none.
    colors: of the boxes: a name or (r, g, b) for all or a list; by default all differ.
    fill: colour, partly transparent, inside the boxes. width: of the lines, in pixels.
    font, font_size: a TrueType file and its size in points; by default Pillow's own font.
    label_colors: of the texts; by default the boxes' colours, or black with `fill_labels`.
    fill_labels: `label_background_colors` (by default the boxes' colours) behind the texts.
    """
    _checked("draw_bounding_boxes", image)
    if image.shape[0] not in (1, 3):
        raise ValueError("Only grayscale and RGB images are supported")
    if boxes.shape[-1] not in (4, 8):
        raise ValueError(f"boxes must be (N, 4) or (N, 8), got {tuple(boxes.shape)}")
    if boxes.shape[-1] == 4 and bool(
        aten.any(boxes[:, 0] > boxes[:, 2]) or aten.any(boxes[:, 1] > boxes[:, 3])
    ):
        raise ValueError(
            "Boxes need to be in (xmin, ymin, xmax, ymax) format, with xmin <= xmax and ymin <="
            " ymax. Use torchvision.ops.box_convert to convert them"
        )
    count = boxes.shape[0]
    if count == 0:
        warnings.warn("boxes doesn't contain any box. No box was drawn", stacklevel=2)
        return image
    texts: Sequence[str | None] = [None] * count if labels is None else labels
    if len(texts) != count:
        raise ValueError(
            f"Number of boxes ({count}) and labels ({len(texts)}) mismatch. Please specify labels"
            " for each box."
        )
    lines = _colours(colors, count)
    inks = [(0, 0, 0)] * count if fill_labels else lines
    inks = inks if label_colors is None else _colours(label_colors, count)
    papers: Sequence[Any] = [None] * count
    if fill_labels:
        has_own = label_background_colors is not None
        papers = _colours(label_background_colors, count) if has_own else lines
    letters = _font(font, font_size)

    picture = to_pil_image(convert_image_dtype(image, dt.uint8)).convert("RGB")
    pen = ImageDraw.Draw(picture, "RGBA" if fill else None)
    for box, text, line, ink, paper in zip(
        boxes.to(dt.int64).tolist(), texts, lines, inks, papers, strict=True
    ):
        inside = (*line[:3], 100) if fill else None
        if len(box) == 4:
            pen.rectangle(box, width=width, outline=line, fill=inside)
        else:
            _turned_box(pen, list(zip(box[::2], box[1::2], strict=True)), line, inside, width)
        if text is not None:
            _write(pen, text, (box[0] + width + 1, box[1] + width + 1), letters, ink, paper)
    return _back(picture, image)


def _turned_box(
    pen: Any, corners: list[tuple[int, int]], line: Any, inside: Any, width: int
) -> None:
    """A box of any direction; its first side, the top of what is in it, is dashed."""
    x, y = map(float, corners[0])
    end_x, end_y = corners[1]
    length, done = math.hypot(end_x - x, end_y - y), 0.0
    drawn = True
    while done < length:
        # Every step aims at the end anew, so that rounding does not lead past it.
        step = min(5, length - done)
        left = math.hypot(end_x - x, end_y - y)
        at = (x + (end_x - x) / left * step, y + (end_y - y) / left * step)
        if drawn:
            pen.line([(x, y), at], width=width, fill=line)
        (x, y), done, drawn = at, done + step, not drawn
    for first, second in zip(corners[1:], corners[2:] + corners[:1], strict=True):
        pen.line((first, second), width=width, fill=line)
    if inside is not None:
        pen.polygon(corners, fill=inside)


def _font(name: str | None, size: int | None) -> Any:
    """A TrueType font of 10 points unless said otherwise; None is Pillow's own font."""
    if name is None:
        if size is not None:
            message = "Argument 'font_size' will be ignored since 'font' is not set."
            warnings.warn(message, stacklevel=3)
        return ImageFont.load_default()
    return ImageFont.truetype(name, 10 if size is None else size)


def _write(pen: Any, text: str, at: tuple[int, int], font: Any, ink: Any, paper: Any) -> None:
    """`text` with its upper left corner `at`, on a rectangle of colour `paper` unless it is None,
    one pixel larger than the text on every side."""
    if paper is not None:
        left, top, right, bottom = pen.textbbox(at, text, font=font)
        pen.rectangle((left - 1, top - 1, right + 1, bottom + 1), fill=paper)
    pen.text(at, text, fill=ink, font=font)


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


# The wheel of colours of "A Database and Evaluation Methodology for Optical Flow" (Baker et al.,
# 2007): arcs of so many colours, the channel that is full, the one that moves, whether it rises.
_ARCS = (
    (15, 0, 1, True),
    (6, 1, 0, False),
    (4, 1, 2, True),
    (11, 2, 1, False),
    (13, 2, 0, True),
    (6, 0, 2, False),
)


def _wheel() -> Tensor:
    """(55, 3): the colours of the directions, 0 to 255."""
    arcs = []
    for count, full, moving, rising in _ARCS:
        arc = aten.zeros((count, 3))
        steps = aten.floor(255 * aten.arange(count) / count)
        arc[:, full] = 255
        arc[:, moving] = steps if rising else 255 - steps
        arcs.append(arc)
    return aten.cat(arcs)


def flow_to_image(flow: Tensor) -> Tensor:
    """Optical flow (2, H, W) or (N, 2, H, W), float32, as bytes (3, H, W) or (N, 3, H, W).

    The colour is the direction, its strength the length: the longest vector of all images has the
    full colour, no movement is white. ValueError for another type or shape.
    """
    if flow.dtype != dt.float32:
        raise ValueError(f"Flow should be of dtype torch.float, got {flow.dtype}.")
    batch = flow[None] if flow.ndim == 3 else flow
    if batch.ndim != 4 or batch.shape[1] != 2:
        raise ValueError(
            f"Input flow should have shape (2, H, W) or (N, 2, H, W), got {flow.shape}."
        )
    batch = batch.detach()
    longest = aten.sum(batch**2, dim=1).sqrt().max()
    batch = batch / (longest + finfo(batch.dtype).eps)
    length = aten.sum(batch**2, dim=1).sqrt()
    wheel = _wheel().to(batch.device)
    count = wheel.shape[0]
    place = (aten.atan2(-batch[:, 1], -batch[:, 0]) / math.pi + 1) / 2 * (count - 1)
    before = aten.floor(place).long()
    share = place - before
    image = aten.zeros((batch.shape[0], 3, *batch.shape[2:]), dtype=dt.uint8, device=batch.device)
    for channel in range(3):
        colours = wheel[:, channel] / 255.0
        mixed = (1 - share) * colours[before] + share * colours[(before + 1) % count]
        image[:, channel] = aten.floor(255 * (1 - length * (1 - mixed)))
    return image[0] if flow.ndim == 3 else image

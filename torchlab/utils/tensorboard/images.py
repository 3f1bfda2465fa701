"""Pictures for TensorBoard: layouts of dims, grids, boxes, figures; coded as PNG and GIF."""

from __future__ import annotations

import io
import math
from typing import Any

import numpy as np
from tensorboard.compat.proto.summary_pb2 import Summary

from torchlab._core.lazy import lazy

_LANCZOS = 1  # Pillow's number of the filter


def channels_last(a: np.ndarray, dataformats: str) -> np.ndarray:
    """(H, W, 3) of a picture, or of several in a grid (with N): `dataformats` names the dims of `a`
    by the letters N, C, H, W. A single channel becomes three equal ones."""
    letters = dataformats.upper()
    if len(set(letters)) != len(letters):
        raise AssertionError(
            "You can not use the same dimension shordhand twice."
            f"                     input_format: {dataformats}"
        )
    if a.ndim != len(letters):
        raise AssertionError(
            "size of input tensor and input format are different."
            f"         tensor shape: {a.shape}, input_format: {dataformats}"
        )
    if len(letters) == 4:
        batch = a.transpose([letters.find(c) for c in "NCHW"])
        return in_grid(batch).transpose(1, 2, 0)
    if len(letters) == 3:
        picture = a.transpose([letters.find(c) for c in "HWC"])
        return np.concatenate([picture] * 3, 2) if picture.shape[2] == 1 else picture
    if len(letters) == 2:
        return np.stack([a.transpose([letters.find(c) for c in "HW"])] * 3, 2)
    raise ValueError(f"{dataformats}: a picture has 2, 3 or 4 dims")


def in_grid(batch: np.ndarray, columns: int = 8) -> np.ndarray:
    """The pictures (N, 1 or 3, H, W) side by side, `columns` in a row: (3, rows·H, columns·W)."""
    if batch.ndim != 4 or batch.shape[1] not in (1, 3):
        raise AssertionError(f"pictures are (N, 1 or 3, H, W), not {batch.shape}")
    if batch.shape[1] == 1:
        batch = np.concatenate([batch] * 3, 1)
    n, c, h, w = batch.shape
    columns = min(n, columns)
    rows = math.ceil(n / columns)
    grid = np.zeros((rows * columns, c, h, w), batch.dtype)
    grid[:n] = batch
    grid = grid.reshape(rows, columns, c, h, w).transpose(2, 0, 3, 1, 4)
    return grid.reshape(c, rows * h, columns * w)


def bytes_of(a: np.ndarray) -> np.ndarray:
    """Intensities as bytes: floats of 0 to 1 are scaled, bytes stay."""
    scale = 1 if a.dtype == np.uint8 else 255
    return (a.astype(np.float32) * scale).clip(0, 255).astype(np.uint8)


def png(a: np.ndarray, rescale: float = 1, boxes: Any = None, labels: Any = None) -> Any:
    """The message of the picture `a`, (H, W, C) bytes, with red `boxes` (N, 4: left, top, right,
    bottom) and their `labels` drawn in; `rescale` changes the size of what is coded."""
    pillow = lazy("PIL.Image")
    height, width, channels = a.shape
    image = pillow.fromarray(a)
    if boxes is not None:
        image = _with_boxes(image, boxes, labels)
    image = image.resize((int(width * rescale), int(height * rescale)), _LANCZOS)
    coded = io.BytesIO()
    image.save(coded, format="PNG")
    return Summary.Image(
        height=height, width=width, colorspace=channels, encoded_image_string=coded.getvalue()
    )


def _with_boxes(image: Any, boxes: np.ndarray, labels: Any) -> Any:
    draw = lazy("PIL.ImageDraw").Draw(image)
    font = lazy("PIL.ImageFont").load_default()
    for i, (left, top, right, bottom) in enumerate(boxes):
        edge = [(left, top), (left, bottom), (right, bottom), (right, top), (left, top)]
        draw.line(edge, width=2, fill="Red")
        if labels is not None and labels[i]:
            x0, y0, x1, y1 = font.getbbox(labels[i])
            w, h = x1 - x0, y1 - y0
            margin = math.ceil(0.05 * h)
            corner = [(left, bottom - h - 2 * margin), (left + w, bottom)]
            draw.rectangle(corner, fill="Red")
            place = (left + margin, bottom - h - margin)
            draw.text(place, labels[i], fill="black", font=font)
    return image


def gif(a: np.ndarray, fps: float) -> Any:
    """The message of a film (T, H, W, C) of bytes, `fps` pictures a second."""
    first, *rest = map(lazy("PIL.Image").fromarray, a)
    coded = io.BytesIO()
    first.save(coded, format="GIF", save_all=True, append_images=rest, duration=1000 / fps, loop=0)
    _, height, width, channels = a.shape
    return Summary.Image(
        height=height, width=width, colorspace=channels, encoded_image_string=coded.getvalue()
    )


def film(a: np.ndarray) -> np.ndarray:
    """(T, H, W, C) of films (N, T, C, H, W), which lie in a grid that is a power of two."""
    n, t, c, h, w = a.shape
    full = 1 << (n - 1).bit_length()
    a = np.concatenate([a, np.zeros((full - n, t, c, h, w), a.dtype)])
    rows = 2 ** ((full.bit_length() - 1) // 2)
    columns = full // rows
    a = a.reshape(rows, columns, t, c, h, w).transpose(2, 0, 4, 1, 5, 3)
    return a.reshape(t, rows * h, columns * w, c)


def of_figures(figures: Any, close: bool = True) -> np.ndarray:
    """(3, H, W) of one matplotlib figure, (N, 3, H, W) of a list; they are closed then."""
    agg, pyplot = lazy("matplotlib.backends.backend_agg"), lazy("matplotlib.pyplot")

    def drawn(figure: Any) -> np.ndarray:
        canvas = agg.FigureCanvasAgg(figure)
        canvas.draw()
        rgb = np.asarray(canvas.buffer_rgba())[:, :, :3].transpose(2, 0, 1)
        if close:
            pyplot.close(figure)
        return rgb

    return np.stack([drawn(f) for f in figures]) if isinstance(figures, list) else drawn(figures)


__all__ = ["bytes_of", "channels_last", "film", "gif", "in_grid", "of_figures", "png"]

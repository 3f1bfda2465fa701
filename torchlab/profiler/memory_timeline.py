"""How much memory tensors took when: `profile.export_memory_timeline`.

The numbers have a column for each of PyTorch's categories (parameters, gradients, activations …).
What a tensor was for is not told apart here: all bytes stand in the last, "unknown".
"""

from __future__ import annotations

import base64
import gzip
import io
import json
from typing import Any

from torchlab._core.lazy import lazy

_agg = lazy("matplotlib.backends.backend_agg")
_figures = lazy("matplotlib.figure")

_CATEGORIES = 8  # the columns after the first, which is always 0; the last is "unknown"
_CREATE, _DESTROY = 2, 4


def _records(prof: Any, device: str) -> list[Any]:
    collector = prof._collector
    found = [m for m in collector.memories if m.device == device]
    return sorted(found, key=lambda m: m.time)


def export_memory_timeline(prof: Any, path: str, device: str | None) -> None:
    """Write the timeline of a finished profiler; the kind of file follows from its name."""
    prof._ensure_function_events()
    device = device or ("cpu" if prof.use_device is None else f"{prof.use_device}:0")
    collector = prof._collector
    wall = collector.wall - collector.began
    records = _records(prof, device)
    if path.endswith("raw.json.gz"):
        rows = [
            [m.time + wall, _CREATE if m.bytes > 0 else _DESTROY, m.bytes, _CATEGORIES - 1]
            for m in records
        ]
        with gzip.open(path, "wt", encoding="utf-8") as z:
            json.dump(rows, z)
        return
    times, sizes, now = [], [], 0
    for m in records:
        now += m.bytes
        times.append((m.time + wall) // 1000)
        sizes.append([0] * _CATEGORIES + [now])
    if path.endswith(".html"):
        _write_picture(path, times, [s[-1] for s in sizes], device)
        return
    opened = gzip.open if path.endswith(".gz") else open
    with opened(path, "wt", encoding="utf-8") as f:
        json.dump([times, sizes], f)


def _write_picture(path: str, times: list[int], sizes: list[int], device: str) -> None:
    figure = _figures.Figure(figsize=(20, 12))
    _agg.FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    first = times[0] if times else 0
    axes.fill_between([(t - first) / 1e3 for t in times], [s / 2**30 for s in sizes], step="post")
    axes.set_xlabel("Time (ms)")
    axes.set_ylabel("Memory (GB)")
    axes.set_title(f"Max memory of tensors on {device}: {max(sizes, default=0) / 2**30:.3g} GiB")
    picture = io.BytesIO()
    figure.savefig(picture, format="png")
    text = base64.b64encode(picture.getvalue()).decode()
    with open(path, "w", encoding="utf-8") as f:
        f.write(
            "<html><head><meta charset='utf-8'><title>GPU Memory Timeline HTML</title></head>"
            f"<body><img src='data:image/png;base64,{text}'></body></html>"
        )


__all__ = ["export_memory_timeline"]

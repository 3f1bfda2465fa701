"""How a tensor shows itself in a notebook: its text, its facts, its statistics, a small heat map.

Time and size are bounded for any tensor: the text shows the edges only, statistics read at most a
million elements, evenly spread, and say so; the map has at most 24 by 48 cells. Its colours work
on light and dark pages; infinities are filled in the page's own text colour, NaN outlined in it.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from torchlab.viz.palette import SIGNED, VALUES, mix
from torchlab.viz.svg import MONO, SANS, escape

ROWS, COLUMNS = 24, 48
MOST = 1_000_000
_LEVELS = 13  # odd: zero has a colour of its own
_CELL = 7


def tensor_html(t: Any) -> str:
    """The HTML that stands for the tensor `t`; for any shape, type and device."""
    body = [
        '<div class="torchlab-tensor" style="max-width:100%">',
        f'<pre style="margin:0 0 .4em;font:12px/1.35 {_attribute(MONO)};overflow-x:auto">'
        f"{escape(repr(t))}</pre>",
        _table(_facts(t)),
    ]
    sample = _sample(t)
    if sample is not None:
        values, note = sample
        body.append(_table(_statistics(values, t.dtype.is_complex, note)))
        body.append(_heat_map(t))
    return "".join([*body, "</div>"])


def _attribute(text: str) -> str:
    return text.replace('"', "'")


def _table(pairs: list[tuple[str, str]]) -> str:
    cells = "".join(
        f'<span style="white-space:nowrap;margin-right:1.2em"><span style="opacity:.65">'
        f'{escape(name)}</span> <b style="font-weight:600">{escape(value)}</b></span>'
        for name, value in pairs
    )
    return f'<div style="font:12px/1.6 {_attribute(SANS)}">{cells}</div>'


def _facts(t: Any) -> list[tuple[str, str]]:
    facts = [
        ("shape", str(tuple(t.shape))),
        ("stride", str(tuple(t.stride()))),
        ("dtype", str(t.dtype)),
        ("device", str(t.device)),
        ("size", _bytes(t.nbytes)),
    ]
    if t.requires_grad:
        facts.append(("requires_grad", "True"))
    return facts


def _bytes(n: int) -> str:
    for unit in ("B", "KiB", "MiB", "GiB", "TiB"):
        if n < 1024 or unit == "TiB":
            return f"{n:.4g} {unit}"
        n /= 1024  # type: ignore[assignment]
    return ""


# ---- reading ------------------------------------------------------------------------------------


def _steps(shape: tuple[int, ...], most: int) -> tuple[int, ...]:
    """A step for each dim, so that at most `most` elements are read; the longest dims give most."""
    steps = [1] * len(shape)
    left = list(shape)
    while math.prod(left) > most:
        i = max(range(len(left)), key=left.__getitem__)
        excess = math.ceil(math.prod(left) / most)
        steps[i] *= min(excess, max(2, left[i] // 32))
        left[i] = -(-shape[i] // steps[i])
    return tuple(steps)


def _host(t: Any, index: tuple[Any, ...]) -> np.ndarray:
    array = t._a[index]
    array = array.get() if hasattr(array, "get") else np.asarray(array)
    if array.dtype.kind == "c":
        return np.abs(array).astype(np.float64)
    return array if array.dtype.kind in "biuf" else array.astype(np.float32)


def _sample(t: Any) -> tuple[np.ndarray, str] | None:
    """Up to a million elements, and what to say about their choice; None without data."""
    if t.device.type == "meta" or not t.numel():
        return None
    shape = tuple(t.shape)
    steps = _steps(shape, MOST)
    values = _host(t, tuple(slice(None, None, s) for s in steps) or (...,))
    note = "" if values.size == t.numel() else f"from {values.size:,} of {t.numel():,} elements"
    return values, note


def _number(x: float) -> str:
    return f"{x:.5g}"


def _statistics(values: np.ndarray, is_complex: bool, note: str) -> list[tuple[str, str]]:
    if values.dtype == bool:
        true = int(values.sum())
        shown = [("True", f"{true:,} ({100 * true / values.size:.3g}%)")]
        return [*shown, *([("", note)] if note else [])]
    bars = ("|min|", "|mean|", "|max|") if is_complex else ("min", "mean", "max")
    floating = values.dtype.kind == "f"
    finite = values[np.isfinite(values)] if floating else values.ravel()
    shown = []
    if finite.size:
        numbers = (finite.min(), finite.mean(dtype=np.float64), finite.max())
        texts = [_number(float(x)) if floating else str(x) for x in numbers]
        texts[1] = _number(float(numbers[1]))
        shown = list(zip(bars, texts, strict=True))
    if floating:
        shown.append(("NaN", f"{int(np.isnan(values).sum()):,}"))
        shown.append(("Inf", f"{int(np.isinf(values).sum()):,}"))
    return [*shown, *([("", note)] if note else [])]


# ---- the map ------------------------------------------------------------------------------------


def _picked(n: int, most: int) -> np.ndarray:
    return np.unique(np.linspace(0, n - 1, min(n, most)).astype(np.int64))


def _heat_map(t: Any) -> str:
    shape = tuple(t.shape)
    if not shape:
        return ""
    height, width = (1, shape[0]) if len(shape) == 1 else shape[-2:]
    rows, columns = _picked(height, ROWS), _picked(width, COLUMNS)
    lead = (0,) * (len(shape) - 2)
    index = (columns,) if len(shape) == 1 else (*lead, *np.ix_(rows, columns))
    values = _host(t, index).reshape(len(rows), len(columns)).astype(np.float64)
    finite = values[np.isfinite(values)]
    low, high = (finite.min(), finite.max()) if finite.size else (0.0, 0.0)
    ramp: tuple[str, ...] = VALUES
    first, last = low, high
    if low < 0 < high:  # zero in the middle
        last = max(-low, high)
        ramp, first = SIGNED, -last
    with np.errstate(all="ignore"):
        scaled = values * 0 + 0.5
        if last > first:
            scaled = (values / 2 - first / 2) / (last / 2 - first / 2)
    levels = np.where(np.isfinite(values), np.nan_to_num(scaled) * (_LEVELS - 1) + 0.5, 0)
    levels = np.clip(levels.astype(np.int64), 0, _LEVELS - 1)
    levels[np.isinf(values)], levels[np.isnan(values)] = _LEVELS, _LEVELS + 1
    paths = [
        _path(levels == level, style)
        for level, style in enumerate(
            [f'fill="{mix(ramp, level / (_LEVELS - 1))}"' for level in range(_LEVELS)]
            + ['fill="currentColor"', 'fill="none" stroke="currentColor" stroke-width=".12"']
        )
        if (levels == level).any()
    ]
    shown = "".join(f"{i}, " for i in lead) + (":" if len(shape) == 1 else ":, :")
    part = "" if (len(rows), len(columns)) == (height, width) else ", every few elements"
    label = f"[{shown}]{part}: {_number(float(low))} to {_number(float(high))}"
    return (
        f'<svg role="img" aria-label="{escape("heat map of " + label)}"'
        f' width="{len(columns) * _CELL}" height="{len(rows) * _CELL}"'
        f' viewBox="0 0 {len(columns)} {len(rows)}" preserveAspectRatio="none"'
        ' shape-rendering="crispEdges" style="display:block;margin:.3em 0 0;max-width:100%">'
        f"<title>{escape(label)}</title>{''.join(paths)}</svg>"
        f'<div style="font:11px/1.4 {_attribute(SANS)};opacity:.65">{escape(label)}</div>'
    )


def _path(cells: np.ndarray, style: str) -> str:
    """One path for all cells of a colour; neighbours in a row are one rectangle."""
    parts = []
    for y, row in enumerate(cells):
        edges = np.flatnonzero(np.diff(np.concatenate(([0], row.astype(np.int8), [0]))))
        for start, end in edges.reshape(-1, 2).tolist():
            parts.append(f"M{start} {y}h{end - start}v1h{start - end}z")
    return f'<path {style} d="{"".join(parts)}"/>'

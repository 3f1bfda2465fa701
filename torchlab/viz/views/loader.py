"""Data loading as a static picture: the verdict, a lane for the loop and one for each worker, the
queue below, all on one axis of time. The page draws the same from data (`lanes`).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

from torchlab.viz import palette, svg
from torchlab.viz.loading import Loading, Span
from torchlab.viz.palette import Ink
from torchlab.viz.snapshots.loader import LoaderSnapshot
from torchlab.viz.verdicts import CAUSES
from torchlab.viz.views import lanes
from torchlab.viz.views.common import Drawing, part, static_svg

WIDTH = 900.0
LABEL = 118.0
ROW = 30.0
BAR = 18.0
STRIP = 4.0
QUEUE = 46.0
BIN = 2.0
"""Pixels; what is narrower is drawn together, each phase by its share of the time."""
MOST_ROWS = 40


class Axis:
    """Time in seconds to pixels."""

    def __init__(self, began: float, ended: float) -> None:
        self.began = began
        self.scale = (WIDTH - LABEL) / max(ended - began, 1e-9)
        self.ended = ended

    def x(self, time: float) -> float:
        return LABEL + (min(max(time, self.began), self.ended) - self.began) * self.scale

    def ticks(self) -> list[float]:
        """Round times, five to ten of them, from the beginning on."""
        step = nice(max(self.ended - self.began, 1e-9) / 7)
        count = int((self.ended - self.began) / step) + 1
        return [k * step for k in range(count)]


def nice(step: float) -> float:
    """The next of 1, 2, 5, 10 … times a power of ten."""
    power = 10.0 ** math.floor(math.log10(step))
    return next(f * power for f in (1.0, 2.0, 5.0, 10.0) if step <= f * power * (1 + 1e-9))


def bars(spans: Sequence[Span], axis: Axis, y: float, c: Ink) -> str:
    """A lane: a rectangle for every stretch. Where several lie in two pixels, narrower than one, a
    column instead: in it every phase is as high as its share of the time."""
    places = [(axis.x(b), axis.x(e), phase) for b, e, phase, _ in spans if e > b]
    narrow = Counter(int((x0 + x1) / 2 / BIN) for x0, x1, _ in places if x1 - x0 < 1.0)
    bins: dict[int, dict[str, float]] = {k: {} for k, n in narrow.items() if n > 1}
    wide: dict[str, list[str]] = {"step": []}  # the loop's steps lie below what interrupts them
    for x0, x1, phase in places:
        middle = int((x0 + x1) / 2 / BIN)
        if x1 - x0 < 1.0 and middle in bins:
            parts = [(middle, x1 - x0)]
        else:
            first, last = int(x0 / BIN), int(x1 / BIN)
            inside = [k for k in range(first, last + 1) if k in bins] if bins else []
            parts = [(k, min(x1, (k + 1) * BIN) - max(x0, k * BIN)) for k in inside]
            wide.setdefault(phase, []).extend(
                f"M{a:.1f} {y:.1f}h{b - a:.1f}v{BAR:g}h-{b - a:.1f}z"
                for a, b in _without(x0, x1, inside)
            )
        for k, pixels in parts:
            bins[k][phase] = bins[k].get(phase, 0.0) + pixels
    paths: dict[str, list[str]] = {}
    for at, place in bins.items():
        whole = max(BIN, sum(place.values()))
        foot = y + BAR
        for phase in lanes.PHASES:
            height = BAR * place.get(phase, 0.0) / whole
            if height >= 0.2:
                foot -= height
                paths.setdefault(phase, []).append(
                    f"M{at * BIN:g} {foot:.1f}h{BIN:g}v{height:.1f}h-{BIN:g}z"
                )
    return "".join(
        f'<path d="{"".join(d)}" fill="{c[lanes.COLOURS[phase]]}"/>'
        for layer in (wide, paths)
        for phase, d in layer.items()
        if d
    )


def _without(x0: float, x1: float, bins: Sequence[int]) -> list[tuple[float, float]]:
    """What is left of a stretch of pixels without some columns (in order)."""
    found = []
    for k in bins:
        if k * BIN > x0:
            found.append((x0, k * BIN))
        x0 = (k + 1) * BIN
    if x1 > x0:
        found.append((x0, x1))
    return found


def strips(spans: Sequence[Span], axis: Axis, y: float, c: Ink) -> str:
    """When finished batches lay ready, and when they were held back by a slower one."""
    out = []
    for kind, colour in (("ready", "reserved"), ("held", "warn")):
        d = [
            f"M{axis.x(b):.1f} {y:.1f}h{max(0.5, axis.x(e) - axis.x(b)):.1f}v{STRIP:g}"
            f"H{axis.x(b):.1f}z"
            for b, e, k, _ in spans
            if k == kind
        ]
        if d:
            out.append(f'<path d="{"".join(d)}" fill="{c[colour]}"/>')
    return "".join(out)


def _verdict(loading: Loading, c: Ink) -> svg.Panel:
    out: list[str] = []
    y = 0.0
    many = len(loading.loaders) > 1
    for k, verdict in enumerate(loading.verdicts):
        good = verdict.cause == "loop"
        head = f"{loading.loaders[k]['label']}: " if many else ""
        lines = svg.wrap(f"{verdict.sentence} {verdict.remedy}", WIDTH - 40, 12)
        height = 30 + 17 * len(lines)
        bar = c["good" if good else "warn"]
        out.append(svg.rect(0, y, WIDTH, height, c["panel"], radius=4))
        out.append(svg.rect(0, y, 4, height, bar))
        cause = head + CAUSES[verdict.cause].capitalize()
        out.append(svg.text(14, y + 20, cause, c["ink"], size=13, weight="600", width=WIDTH - 30))
        for i, line in enumerate(lines):
            out.append(svg.text(14, y + 38 + 17 * i, line, c["ink"], size=12))
        y += height + 8
    for text in lanes.failures(loading)[:4]:
        out.append(svg.text(14, y + 14, text, c["error"], size=12, width=WIDTH - 20))
        y += 20
    if not loading.verdicts:
        out.append(svg.text(0, 14, "No batch was loaded yet.", c["muted"]))
        y = 22
    return svg.Panel("verdict", "What costs the time", WIDTH, y, "".join(out))


def _timeline(loading: Loading, c: Ink) -> svg.Panel:
    zero, end = lanes.begin_of(loading), lanes.end_of(loading)
    axis = Axis(zero, max(end, zero + 1e-6))
    rows = lanes.lanes_of(loading)
    stalls = lanes.all_stalls(loading)
    shown = rows[:MOST_ROWS]
    out = [_legend(loading, c)]
    top = 44.0
    y = top
    for row in shown:
        label = svg.text(0, y + 13, row.label, c["ink"], size=11, width=LABEL - 10)
        frame = svg.rect(
            0, y - 3, LABEL - 6, BAR + 6, c["bg"], c["bg"], radius=3, extra=' class="shape"'
        )
        out.append(part(row.id, row.label, frame + label))
        out.append(svg.rect(LABEL, y, WIDTH - LABEL, BAR, c["panel"]))
        out.append(bars(row.spans, axis, y, c))
        if row.worker >= 0:
            out.append(strips(lanes.ready_strips(loading, row, stalls), axis, y + BAR + 2, c))
        y += ROW
    if len(rows) > MOST_ROWS:
        out.append(svg.text(0, y + 10, f"{len(rows) - MOST_ROWS} more workers", c["muted"]))
        y += 18
    foot = y
    if any(f["num_workers"] for f in loading.loaders):
        out.append(_queue(loading, axis, y + 8, c))
        foot = y + 12 + QUEUE
    out.append(_marks(loading, axis, top, foot, c))
    step = nice((axis.ended - axis.began) / 7)
    for time in axis.ticks():
        x = axis.x(zero + time)
        out.append(svg.line(x, foot, x, foot + 4, c["edge"]))
        anchor = "end" if x > WIDTH - 24 else "middle" if time else "start"
        out.append(
            svg.text(x, foot + 16, tick_text(time, step), c["muted"], size=10, anchor=anchor)
        )
    return svg.Panel("lanes", "Who did what when", WIDTH, foot + 20, "".join(out))


def tick_text(time: float, step: float) -> str:
    """A round time; all ticks of an axis in one unit."""
    for unit, scale in (("s", 1.0), ("ms", 1e3), ("µs", 1e6)):
        if step * scale >= 0.99 or (unit == "s" and step >= 0.1) or unit == "µs":
            digits = 1 if unit == "s" and step < 0.99 else 0
            return f"{time * scale:.{digits}f} {unit}" if time else "0"
    raise AssertionError


def _legend(loading: Loading, c: Ink) -> str:
    entries = [
        (c[colour], c["free-line"] if colour == "free" else "none", label)
        for colour, label in (*lanes.legend(loading), *lanes.strips_legend(loading))
    ]
    return svg.legend(0, 10, entries[:5], c) + svg.legend(0, 28, entries[5:], c)


def _marks(loading: Loading, axis: Axis, top: float, foot: float, c: Ink) -> str:
    """Where passes begin."""
    out = []
    free = -1.0
    for run in range(len(loading.passes)):
        x = axis.x(loading.ends(run)[0])
        if run:
            out.append(svg.line(x, top - 8, x, foot, c["edge"], 1, ' stroke-dasharray="3 3"'))
        label = lanes.pass_label(loading, run)
        wide = svg.text_width(label, 10)
        if x >= free and x + 3 + wide <= WIDTH:
            out.append(svg.text(x + 3, top - 3, label, c["muted"], size=10))
            free = x + wide + 12
    return "".join(out)


def _queue(loading: Loading, axis: Axis, y: float, c: Ink) -> str:
    steps = loading.depth()
    capacity = sum((f["prefetch_factor"] or 0) * f["num_workers"] for f in loading.loaders)
    top = max([capacity, *(n for _, n in steps), 1])
    base = y + QUEUE

    def at(n: float) -> float:
        return base - (QUEUE - 6) * n / top

    out = [
        svg.text(0, y + 14, "batches ready", c["ink"], size=11),
        svg.text(0, y + 28, f"{capacity} at most", c["muted"], size=10),
        svg.line(LABEL, base, WIDTH, base, c["line"]),
    ]
    if capacity:
        out.append(
            svg.line(
                LABEL, at(capacity), WIDTH, at(capacity), c["line"], 1, ' stroke-dasharray="4 3"'
            )
        )
    # of many changes within a pixel the extremes
    columns: dict[int, list[int]] = {}
    level = 0
    for time, n in steps:
        columns.setdefault(int(axis.x(time)), [level]).append(n)
        level = n
    path = [f"M{LABEL:g} {base:.1f}"]
    for x, levels in columns.items():
        path.append(f"H{x}V{at(max(levels)):.1f}V{at(min(levels)):.1f}V{at(levels[-1]):.1f}")
    path.append(f"H{WIDTH:g}")
    d = "".join(path)
    out.append(f'<path d="{d}V{base:.1f}Z" fill="{c["reserved"]}" fill-opacity="0.25"/>')
    out.append(f'<path d="{d}" fill="none" stroke="{c["reserved"]}" stroke-width="1.4"/>')
    return "".join(out)


def draw(snapshot: LoaderSnapshot, theme: str = "light") -> Drawing:
    """The drawing of a recording of data loading.

    Raises:
        ValueError: another kind or version of snapshot.
    """
    loading = Loading(snapshot)
    drawing = lanes.LanesDrawing(
        "Data loading",
        lanes.subtitle(loading),
        [],
        lanes.lane_details(loading),
        "loop",
    )
    if theme == "css":
        drawing.lanes = lanes.page_data(loading)
    else:
        c = palette.ink(theme)
        drawing.rows = [[_verdict(loading, c)], [_timeline(loading, c)]]
    return drawing


def loader_svg(snapshot: LoaderSnapshot, theme: str = "light") -> str:
    """A recording of data loading as one SVG document."""
    return static_svg(draw(snapshot, theme), theme)


__all__ = ["bars", "draw", "loader_svg", "nice", "tick_text"]

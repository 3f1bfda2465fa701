"""`Compare`: measurements side by side, as text.

    [---- label ----]
               |  description  |  another description
    1 threads: ----------------------------------------
      (env)  a |      1.0      |         2.0

A table is made column by column, all lines of one equally wide; `_table` lays the columns side by
side and puts the title and the lines with the threads between them.

Source: https://docs.pytorch.org/docs/2.13/benchmark_utils.html#torch.utils.benchmark.Compare
"""

from __future__ import annotations

import dataclasses
import enum
import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from torchlab.utils.benchmark.utils.common import (
    Measurement,
    ordered_unique,
    select_unit,
    trim_sigfig,
    unit_to_english,
)

__all__ = ["Colorize", "Compare"]

_BETWEEN = "  |  "
_NOTE = "(! XX%) Measurement has high variance, where XX is the IQR / median * 100."
_UNMARKED = " " * len(" (! XX%)")

_BRIGHT_GREEN, _BLUE = "\033[92m\033[1m", "\033[34m\033[1m"
_FAINT_RED, _RED = "\033[2m\033[91m", "\033[31m\033[1m"
_PLAIN = "\033[0m\033[0m"
_AS_FAST = 100e-9  # seconds more than the fastest: no difference to speak of


class Colorize(enum.Enum):
    """What the colors of a table compare."""

    NONE = "none"
    COLUMNWISE = "columnwise"
    ROWWISE = "rowwise"


@dataclasses.dataclass
class _Style:
    """What the user wants of the tables."""

    colors: Colorize = Colorize.NONE
    trims: bool = False
    warns: bool = False


class _Row(NamedTuple):
    """What has a line of its own."""

    threads: int
    env: str
    name: str


class Compare:
    """Measurements as tables: one for each label, a row for each sub-label (or statement), by
    threads and environment, a column for each description. ValueError for other results."""

    def __init__(self, results: list[Measurement]) -> None:
        self._measured: list[Measurement] = []
        self._style = _Style()
        self.extend_results(results)

    def extend_results(self, results: Iterable[Measurement]) -> None:
        """Add measurements. ValueError if something is none; then nothing was added."""
        new = list(results)
        for m in new:
            if not isinstance(m, Measurement):
                raise ValueError(f"Expected an instance of `Measurement`, got {type(m)} instead.")
        self._measured += new

    def trim_significant_figures(self) -> None:
        """Show no more digits than are significant."""
        self._style.trims = True

    def colorize(self, rowwise: bool = False) -> None:
        """Color the times by how they compare to the best of their column, or row."""
        self._style.colors = Colorize.ROWWISE if rowwise else Colorize.COLUMNWISE

    def highlight_warnings(self) -> None:
        """Mark the times that vary much."""
        self._style.warns = True

    def print(self) -> None:
        """Print the tables."""
        print(self)

    def __str__(self) -> str:
        tables: dict[str | None, list[Measurement]] = {}
        for m in Measurement.merge(self._measured):
            tables.setdefault(m.task_spec.label, []).append(m)
        return "\n".join(_table(label or "", of, self._style) for label, of in tables.items())


def _table(label: str, measured: list[Measurement], style: _Style) -> str:
    """The text of one table."""
    places = {(_row(m), m.task_spec.description or ""): m for m in measured}
    rows = sorted(ordered_unique(row for row, _ in places), key=lambda row: (row.threads, row.env))
    heads = ordered_unique(head for _, head in places)
    grid = [[places.get((row, head)) for row in rows] for head in heads]  # by columns
    unit, scale = select_unit(min(m.median for m in measured))
    columns, marked = [_row_names(rows)], False
    for head, cells in zip(heads, grid, strict=True):
        marks = style.warns and any(m.has_warnings for m in cells if m)
        marked = marked or marks
        columns.append(_centered([head, *_numbers(cells, scale, style.trims, marks)]))
    width = len(_BETWEEN.join(column[0] for column in columns))
    _paint(columns[1:], grid, rows, style.colors)
    header, *lines = (_BETWEEN.join(line) for line in zip(*columns, strict=True))
    text = ["[" + f" {label} ".center(width - 2, "-") + "]", header]
    for i, line in enumerate(lines):
        if i == 0 or rows[i].threads != rows[i - 1].threads:
            text.append(f"{rows[i].threads} threads: ".ljust(width, "-"))
        text.append(line)
    text += ["", f"Times are in {unit_to_english(unit)}s ({unit}).", *([_NOTE] * marked), ""]
    return "\n".join(text)


def _row(m: Measurement) -> _Row:
    return _Row(m.task_spec.num_threads, m.task_spec.env or "", m.as_row_name)


def _centered(lines: Sequence[str]) -> list[str]:
    width = max(len(line) for line in lines)
    return [line.center(width) for line in lines]


def _row_names(rows: Sequence[_Row]) -> list[str]:
    """The first column. An environment stands where it begins, and only if there are several."""
    tell = len({row.env for row in rows}) > 1
    envs = [f"({row.env})" if tell and row.env else "" for row in rows]
    width = max(2, *map(len, envs))
    lines = [""]
    for i, row in enumerate(rows):
        goes_on = i > 0 and rows[i - 1][:2] == row[:2]
        lines.append(f"  {'' if goes_on else envs[i]:<{width}}  {row.name}")
    longest = max(map(len, lines))
    return [line.ljust(longest) for line in lines]


def _numbers(
    cells: Sequence[Measurement | None], scale: float, trims: bool, marks: bool
) -> list[str]:
    """A column's medians with the same number of decimals, "" where nothing was measured."""
    known = [m for m in cells if m]
    powers = [math.ceil(math.log10(m.median / scale)) for m in known]
    decimals = 1
    if trims:  # as many as the least exact one has
        pairs = zip(known, powers, strict=True)
        decimals = max(0, min(m.significant_figures - power for m, power in pairs))
    width = max(powers) + (decimals + 1 if decimals else 0)
    texts = []
    for m in cells:
        if m is None:
            texts.append("")
            continue
        median = m.median / scale
        if trims:
            median = trim_sigfig(median, m.significant_figures)
        mark = f" (! {m.iqr / m.median:.0%})" if m.has_warnings else _UNMARKED
        texts.append(f"{median:{width}.{decimals}f}" + (mark if marks else ""))
    widest = max(map(len, texts)) if marks else 0  # marks end in one line
    return [text.rjust(widest) for text in texts]


def _paint(
    columns: list[list[str]],
    grid: list[list[Measurement | None]],
    rows: Sequence[_Row],
    colors: Colorize,
) -> None:
    """Color the cells, in place, by the fastest of their row, or of their column and threads."""
    if colors is Colorize.NONE:
        return
    for column, cells in zip(columns, grid, strict=True):
        for i, m in enumerate(cells):
            if m is None:
                continue
            if colors is Colorize.ROWWISE:
                rivals = [other[i] for other in grid]
            else:
                pairs = zip(rows, cells, strict=True)
                rivals = [other for row, other in pairs if row.threads == rows[i].threads]
            color = _color(m.median, min(r.median for r in rivals if r))
            if color:
                column[i + 1] = f"{color}{column[i + 1]}{_PLAIN}"


def _color(time: float, fastest: float) -> str:
    if time <= max(fastest * 1.01, fastest + _AS_FAST):
        return _BRIGHT_GREEN
    if time <= fastest * 1.1:
        return _BLUE
    if time >= fastest * 5:
        return _RED
    return _FAINT_RED if time >= fastest * 2 else ""

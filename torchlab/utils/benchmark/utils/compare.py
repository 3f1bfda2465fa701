"""`Compare`: measurements as tables.

Source: https://docs.pytorch.org/docs/2.13/benchmark_utils.html#torch.utils.benchmark.Compare
"""

from __future__ import annotations

import enum
import math
from typing import Any

from torchlab.utils.benchmark.utils import common

__all__ = ["Colorize", "Compare"]

_BEST, _GOOD = "\033[92m\033[1m", "\033[34m\033[1m"
_BAD, _VERY_BAD = "\033[2m\033[91m", "\033[31m\033[1m"
_END = "\033[0m\033[0m"
_SAME = 100e-9  # seconds: times that close are taken for the same
_SEPARATOR = "  |  "
_NOTE = "(! XX%) Measurement has high variance, where XX is the IQR / median * 100."


class Colorize(enum.Enum):
    """What the colors of a table compare."""

    NONE = "none"
    COLUMNWISE = "columnwise"
    ROWWISE = "rowwise"


class _Column:
    """The texts of a column's cells."""

    def __init__(self, results: list[Any], scale: float, trim: bool, warn: bool) -> None:
        known = [m for m in results if m is not None]
        digits = [math.ceil(math.log10(m.median / scale)) for m in known]
        decimals = 1
        if trim:
            decimals = min(
                max(m.significant_figures - d, 0) for m, d in zip(known, digits, strict=True)
            )
        width = max(digits) + decimals + (1 if decimals else 0)
        self.warned = warn and any(m.has_warnings for m in known)
        self.cells: list[str] = []
        for m in results:
            if m is None:
                self.cells.append("")
                continue
            value = m.median / scale
            value = common.trim_sigfig(value, m.significant_figures) if trim else value
            told = f"{value:>{width}.{decimals}f}"
            if self.warned:
                varied = f" (! {m.iqr / m.median * 100:.0f}%)"
                told += varied if m.has_warnings else " " * len(" (! XX%)")
            self.cells.append(told)
        inner = max(len(c) for c in self.cells)
        self.cells = [c.rjust(inner) for c in self.cells]


def _color(value: float, best: float) -> str:
    if value <= best * 1.01 or value <= best + _SAME:
        return _BEST
    if value <= best * 1.1:
        return _GOOD
    if value >= best * 5:
        return _VERY_BAD
    return _BAD if value >= best * 2 else ""


class _Table:
    """The measurements of one label."""

    def __init__(self, results: list[common.Measurement], c: Compare) -> None:
        self.label = results[0].task_spec.label or ""
        self.unit, self.scale = common.select_unit(min(m.median for m in results))
        by_key = {(self._row(m), m.task_spec.description or ""): m for m in results}
        rows = common.ordered_unique(row for row, _ in by_key)
        self.rows = sorted(rows, key=lambda row: row[:2])  # stable: statements keep their order
        self.columns = common.ordered_unique(column for _, column in by_key)
        self.cells = [[by_key.get((r, d)) for d in self.columns] for r in self.rows]
        self.options = c

    @staticmethod
    def _row(m: common.Measurement) -> tuple[int, str, str]:
        return (m.task_spec.num_threads, m.task_spec.env or "", m.as_row_name)

    def _names(self) -> list[str]:
        several = len({env for _, env, _ in self.rows}) > 1  # one and the same is not told
        envs = [f"({env})" if env and several else "" for _, env, _ in self.rows]
        width = max(2, *(len(e) for e in envs))
        names, before = [], None
        for (threads, env, name), shown in zip(self.rows, envs, strict=True):
            told = shown if (threads, env) != before else ""
            before = (threads, env)
            names.append(f"  {told:<{width}}  {name}")
        longest = max(len(n) for n in names)
        return [n.ljust(longest) for n in names]

    def _best(self, i: int, j: int) -> float:
        rowwise = self.options._colorize is Colorize.ROWWISE
        compared = self.cells[i] if rowwise else [
            row[j] for key, row in zip(self.rows, self.cells, strict=True)
            if key[0] == self.rows[i][0]
        ]  # fmt: skip
        return min(m.median for m in compared if m is not None)

    def render(self) -> str:
        """The table as text."""
        c = self.options
        columns = [
            _Column(
                [row[j] for row in self.cells], self.scale, c._trim_significant_figures,
                c._highlight_warnings,
            )
            for j in range(len(self.columns))
        ]  # fmt: skip
        widths = [
            max(len(head), len(column.cells[0]))
            for head, column in zip(self.columns, columns, strict=True)
        ]
        names = self._names()
        heads = [h.center(w) for h, w in zip(self.columns, widths, strict=True)]
        header = _SEPARATOR.join([" " * len(names[0]), *heads])
        lines = ["[" + f" {self.label} ".center(len(header) - 2, "-") + "]", header]
        threads = None
        for i, (key, name) in enumerate(zip(self.rows, names, strict=True)):
            if key[0] != threads:
                threads = key[0]
                start = f"{threads} threads: "
                lines.append(start + "-" * (len(header) - len(start)))
            cells = [self._cell(i, j, columns[j].cells[i], w) for j, w in enumerate(widths)]
            lines.append(_SEPARATOR.join([name, *cells]))
        text = "\n".join(lines) + "\n\n"
        text += f"Times are in {common.unit_to_english(self.unit)}s ({self.unit}).\n"
        return text + (_NOTE + "\n" if any(x.warned for x in columns) else "")

    def _cell(self, i: int, j: int, told: str, width: int) -> str:
        m = self.cells[i][j]
        told = told.center(width)
        if m is None or self.options._colorize is Colorize.NONE:
            return told
        color = _color(m.median, self._best(i, j))
        return f"{color}{told}{_END}" if color else told


class Compare:
    """Measurements as tables: one for each label, a row for each sub-label (or statement), by
    threads and environment, a column for each description. ValueError for other results."""

    def __init__(self, results: list[common.Measurement]) -> None:
        self._results: list[common.Measurement] = []
        self.extend_results(results)
        self._trim_significant_figures = False
        self._colorize = Colorize.NONE
        self._highlight_warnings = False

    def __str__(self) -> str:
        return "\n".join(self._render())

    def extend_results(self, results: Any) -> None:
        """Add measurements."""
        for m in results:
            if not isinstance(m, common.Measurement):
                raise ValueError(f"Expected an instance of `Measurement`, got {type(m)} instead.")
        self._results.extend(results)

    def trim_significant_figures(self) -> None:
        """Show no more digits than are significant."""
        self._trim_significant_figures = True

    def colorize(self, rowwise: bool = False) -> None:
        """Color the times by how they compare to the best of their column, or row."""
        self._colorize = Colorize.ROWWISE if rowwise else Colorize.COLUMNWISE

    def highlight_warnings(self) -> None:
        """Mark the times that vary much."""
        self._highlight_warnings = True

    def print(self) -> None:
        """Print the tables."""
        print(str(self))

    def _render(self) -> list[str]:
        groups: dict[str | None, list[common.Measurement]] = {}
        for m in common.Measurement.merge(self._results):
            groups.setdefault(m.task_spec.label, []).append(m)
        return [_Table(group, self).render() for group in groups.values()]

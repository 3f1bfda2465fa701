"""`Compare`: measurements side by side in tables.

Source: https://docs.pytorch.org/docs/2.13/benchmark_utils.html#torch.utils.benchmark.Compare
"""

from __future__ import annotations

import enum
import itertools
import math
from typing import Any

from torchlab.utils.benchmark.common import (
    Measurement,
    ordered_unique,
    select_unit,
    trim_sigfig,
)

_BEST, _GOOD = "\033[92m\033[1m", "\033[34m\033[1m"
_BAD, _WORST = "\033[2m\033[91m", "\033[31m\033[1m"
_END = "\033[0m\033[0m"


class Colorize(enum.Enum):
    """Among which measurements colours compare: nowhere, in a column, in a row."""

    NONE = "none"
    COLUMNWISE = "columnwise"
    ROWWISE = "rowwise"


def _colored(text: str, value: float, best: float) -> str:
    ratio = value / best
    if ratio <= 1.01:
        color = _BEST
    elif ratio <= 1.1:
        color = _GOOD
    elif ratio >= 5:
        color = _WORST
    elif ratio >= 2:
        color = _BAD
    else:
        return text
    return f"{color}{text}{_END}"


class _Table:
    """The measurements of one label: rows by threads, environment and sub label, columns by
    description."""

    def __init__(
        self, results: list[Measurement], colorize: Colorize, trim: bool, warnings: bool
    ) -> None:
        self.results, self.colorize, self.trim, self.warnings = results, colorize, trim, warnings
        self.label = results[0].label or results[0].stmt
        self.unit, self.scale = select_unit(min(r.median for r in results))
        rows = ordered_unique(self._row(r) for r in results)
        self.rows = sorted(rows, key=lambda row: (row[0], row[1] or ""))
        self.columns = ordered_unique(r.description for r in results)
        self.cells = {(self._row(r), r.description): r for r in results}
        self.noted = warnings and any(r.has_warnings for r in results)

    @staticmethod
    def _row(r: Measurement) -> tuple[int, str | None, str]:
        return (r.num_threads, r.task_spec.env, r.as_row_name)

    def _decimals(self, column: list[Measurement]) -> int:
        if not self.trim:
            return 1
        leading = max(math.ceil(math.log10(r.median / self.scale)) for r in column)
        return max(max(r.significant_figures for r in column) - leading, 0)

    def _column(self, description: str | None) -> list[str]:
        """Header and cells, all as wide as the widest."""
        found = [self.cells.get((row, description)) for row in self.rows]
        present = [r for r in found if r is not None]
        decimals = self._decimals(present)
        texts: list[str] = []
        for r in found:
            if r is None:
                texts.append("")
                continue
            value = r.median / self.scale
            if self.trim:
                value = trim_sigfig(value, r.significant_figures)
            text = f"{value:.{decimals}f}"
            if self.warnings and r.has_warnings:
                text += f" (! {r.iqr / r.median * 100:.0f}%)"
            texts.append(text)
        inner = max(len(t) for t in texts)
        header = description or ""
        width = max(inner, len(header))
        cells = [header.center(width)]
        for r, text in zip(found, texts, strict=True):
            if r is None:
                cells.append(" " * width)
                continue
            padded = text.rjust(inner)
            shown = padded
            if self.colorize is not Colorize.NONE:
                if self.colorize is Colorize.ROWWISE:
                    others = [q for q in self.results if self._row(q) == self._row(r)]
                else:
                    others = [q for q in present if q.num_threads == r.num_threads]
                shown = _colored(padded, r.median, min(q.median for q in others))
            cells.append(padded.center(width).replace(padded, shown, 1))
        return cells

    def _names(self) -> list[str]:
        envs = {
            row: f"({row[1] or 'Unspecified env'})" if len({r[1] for r in self.rows}) > 1 else ""
            for row in self.rows
        }
        wide = max(2, *(len(e) for e in envs.values()))
        names, before = [], None
        for row in self.rows:
            shown = "" if (row[0], row[1]) == before else envs[row]
            before = (row[0], row[1])
            names.append(f"  {shown:<{wide}}  {row[2]}")
        return names

    def render(self) -> str:
        names = self._names()
        width = max(len(n) for n in names)
        plain: list[str] = []
        colored: list[str] = []
        keep = self.colorize
        for store, mode in ((plain, Colorize.NONE), (colored, keep)):
            self.colorize = mode
            columns = [self._column(c) for c in self.columns]
            for name, *cells in zip([""] + names, *columns, strict=True):
                store.append("  |  ".join([name.ljust(width), *cells]))
        self.colorize = keep
        total = max(len(x) for x in plain)
        head = f" {self.label} ".center(total - 2, "-")
        lines = [f"[{head}]", plain[0]]
        body = zip(self.rows, colored[1:], strict=True)
        for threads, group in itertools.groupby(body, key=lambda pair: pair[0][0]):
            lines.append(f"{threads} threads: ".ljust(total, "-"))
            lines += [line for _, line in group]
        names_of_units = {"s": "seconds (s)", "ms": "milliseconds (ms)"}
        names_of_units |= {"us": "microseconds (us)", "ns": "nanoseconds (ns)"}
        lines += ["", f"Times are in {names_of_units[self.unit]}."]
        if self.noted:
            lines.append(
                "(! XX%) Measurement has high variance, where XX is the IQR / median * 100."
            )
        return "\n".join(lines) + "\n"


class Compare:
    """Tables of measurements, one for each label."""

    def __init__(self, results: list[Measurement]) -> None:
        self._results: list[Measurement] = []
        self.extend_results(results)
        self._trim = False
        self._colorize = Colorize.NONE
        self._warnings = False

    def extend_results(self, results: Any) -> None:
        """Add measurements."""
        for r in results:
            if not isinstance(r, Measurement):
                raise ValueError(f"Expected an instance of `Measurement`, got {type(r)} instead.")
        self._results.extend(results)

    def trim_significant_figures(self) -> None:
        """Tell no more digits than the measurements bear."""
        self._trim = True

    def colorize(self, rowwise: bool = False) -> None:
        """Colour the times by how they compare to the best in their column (row)."""
        self._colorize = Colorize.ROWWISE if rowwise else Colorize.COLUMNWISE

    def highlight_warnings(self) -> None:
        """Mark measurements whose times vary much."""
        self._warnings = True

    def print(self) -> None:
        """Print the tables."""
        print(str(self))

    def __str__(self) -> str:
        groups: dict[str, list[Measurement]] = {}
        for r in Measurement.merge(self._results):
            groups.setdefault(r.label or r.stmt, []).append(r)
        tables = [
            _Table(g, self._colorize, self._trim, self._warnings).render() for g in groups.values()
        ]
        return "\n".join(tables)


__all__ = ["Colorize", "Compare"]

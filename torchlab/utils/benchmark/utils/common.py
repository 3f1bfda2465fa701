"""What was measured, and how it is told.

Source: https://docs.pytorch.org/docs/2.13/benchmark_utils.html#torch.utils.benchmark.Measurement
"""

from __future__ import annotations

import contextlib
import dataclasses
import math
import textwrap
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from torchlab._core.threads import get_num_threads, set_num_threads

__all__ = [
    "TaskSpec", "Measurement", "select_unit", "unit_to_english", "trim_sigfig", "ordered_unique",
    "set_torch_threads",
]  # fmt: skip

_MOST_DIGITS = 4
_CLOCK_ERROR = 25e-9  # seconds: what a timer can tell apart
_WIDE_SPREAD = 0.1
_WILD_SPREAD = 0.25
_UNITS = {-3: ("ns", 1e-9), -2: ("us", 1e-6), -1: ("ms", 1e-3)}
_ENGLISH = {"ns": "nanosecond", "us": "microsecond", "ms": "millisecond", "s": "second"}


@dataclasses.dataclass(init=True, repr=False, eq=True, frozen=True)
class TaskSpec:
    """What a Timer measures."""

    stmt: str
    setup: str
    global_setup: str = ""
    label: str | None = None
    sub_label: str | None = None
    description: str | None = None
    env: str | None = None
    num_threads: int = 1

    @property
    def title(self) -> str:
        """The label and the sub-label, or the statement."""
        if self.label is not None:
            return self.label + (f": {self.sub_label}" if self.sub_label else "")
        if "\n" not in self.stmt:
            return self.stmt + (f": {self.sub_label}" if self.sub_label else "")
        told = f" ({self.sub_label})" if self.sub_label else ""
        return f"stmt:{told}\n{textwrap.indent(self.stmt, '  ')}"

    def setup_str(self) -> str:
        """The setup, unless there is none."""
        if self.setup == "pass" or not self.setup:
            return ""
        if "\n" in self.setup:
            return f"setup:\n{textwrap.indent(self.setup, '  ')}"
        return f"setup: {self.setup}"

    def summarize(self) -> str:
        """Title, description and setup."""
        sections = [self.title, self.description or "", self.setup_str()]
        return "\n".join(f"{s}\n" if "\n" in s else s for s in sections if s)


@dataclasses.dataclass(init=True, repr=False)
class Measurement:
    """The result of a Timer: the seconds of every block of `number_per_run` runs, and statistics of
    the seconds of one run."""

    number_per_run: int
    raw_times: list[float]
    task_spec: TaskSpec
    metadata: dict[Any, Any] | None = None

    def __post_init__(self) -> None:
        self._sorted: np.ndarray | None = None

    def __getattr__(self, name: str) -> Any:
        """What the task says of itself: `num_threads`, `label`, `stmt` …"""
        if name == "task_spec" or name.startswith("__"):
            raise AttributeError(name)
        return getattr(self.task_spec, name)

    @property
    def times(self) -> list[float]:
        """Seconds of one run, for every block."""
        return [t / self.number_per_run for t in self.raw_times]

    def _ordered(self) -> np.ndarray:
        if self._sorted is None or len(self._sorted) != len(self.raw_times):
            self._sorted = np.sort(np.asarray(self.times, dtype=np.float64))
        return self._sorted

    def _quantile(self, q: float) -> float:
        found = self._ordered()
        return float(np.quantile(found, q)) if len(found) else -1.0

    @property
    def median(self) -> float:
        """The median of the times, in seconds."""
        found = self._ordered()
        return float(np.median(found)) if len(found) else -1.0

    @property
    def mean(self) -> float:
        """The mean of the times, in seconds."""
        return float(np.mean(self.times)) if self.raw_times else -1.0

    @property
    def iqr(self) -> float:
        """The interquartile range of the times, in seconds."""
        return self._quantile(0.75) - self._quantile(0.25)

    @property
    def significant_figures(self) -> int:
        """How many digits of the median to believe, from 1 to 4: by the standard error of the times
        between the quartiles, at 90 % confidence."""
        found = self._ordered()
        n = len(found)
        inner = found[n // 4 : math.ceil(3 * n / 4)]
        error = 1.645 * float(np.std(inner)) / math.sqrt(len(inner))
        error = max(error, _CLOCK_ERROR)
        digits = math.floor(math.log10(self.median / error)) if self.median > 0 else 1
        return min(max(digits, 1), _MOST_DIGITS)

    @property
    def has_warnings(self) -> bool:
        """Whether the times vary more than a good measurement's."""
        return not self.meets_confidence()

    def meets_confidence(self, threshold: float = _WIDE_SPREAD) -> bool:
        """Whether the interquartile range is less than `threshold` of the median."""
        return self.iqr / self.median < threshold

    @property
    def title(self) -> str:
        """The task's title."""
        return self.task_spec.title

    @property
    def env(self) -> str | None:
        """The task's environment."""
        return self.task_spec.env

    @property
    def as_row_name(self) -> str:
        """What a row of `Compare` is called."""
        return self.task_spec.sub_label or self.task_spec.stmt or "[Unknown]"

    def __repr__(self) -> str:
        n = len(self.raw_times)
        unit, scale = select_unit(self.median)
        lines = [
            super().__repr__(),
            self.task_spec.summarize(),
            f"  {'Median: ' if n > 1 else ''}{self.median / scale:.2f} {unit}",
        ]
        if n >= 4:
            low, high = (self._quantile(q) / scale for q in (0.25, 0.75))
            lines.append(f"  IQR:    {self.iqr / scale:.2f} {unit} ({low:.2f} to {high:.2f})")
        threads = self.task_spec.num_threads
        lines.append(
            f"  {n} measurement{'s' if n > 1 else ''}, {self.number_per_run} runs"
            f" {'per measurement,' if n > 1 else ','} {threads} thread{'s' if threads > 1 else ''}"
        )
        if self.has_warnings:
            part = self.iqr / self.median
            gross = part >= _WILD_SPREAD
            lines.append(
                f"  WARNING: Interquartile range is {part * 100:.1f}% of the median measurement.\n"
                + " " * 11
                + (
                    "This suggests significant environmental influence."
                    if gross
                    else "This could indicate system fluctuation."
                )
            )
        return "\n".join(lines)

    @staticmethod
    def merge(measurements: Iterable[Measurement]) -> list[Measurement]:
        """One measurement for each task, of all the times."""
        times: dict[TaskSpec, list[float]] = {}
        for m in measurements:
            times.setdefault(m.task_spec, []).extend(m.times)
        return [Measurement(1, t, task, None) for task, t in times.items()]


def select_unit(t: float) -> tuple[str, float]:
    """(unit, seconds in it) in which a time is told."""
    return _UNITS.get(int(np.log10(t) // 3), ("s", 1)) if t > 0 else ("s", 1)


def unit_to_english(u: str) -> str:
    """The name of a unit."""
    return _ENGLISH[u]


def trim_sigfig(x: float, n: int) -> float:
    """`x` with `n` significant figures, in single precision."""
    if n != int(n):
        raise ValueError("Number of significant figures must be an integer")
    if not x:
        return 0.0
    scale = np.float32(10.0 ** (math.ceil(math.log10(abs(x))) - n))
    return float(np.round(np.float32(x) / scale) * scale)


def ordered_unique(elements: Iterable[Any]) -> list[Any]:
    """The different ones, in the order in which they come."""
    return list(dict.fromkeys(elements))


@contextlib.contextmanager
def set_torch_threads(n: int) -> Iterator[None]:
    """`torch.set_num_threads(n)` until the end of `with`."""
    before = get_num_threads()
    try:
        set_num_threads(n)
        yield
    finally:
        set_num_threads(before)

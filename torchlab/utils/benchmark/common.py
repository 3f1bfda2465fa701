"""What a measurement is: the times of one statement, and how they are told.

Source: https://docs.pytorch.org/docs/2.13/benchmark_utils.html
"""

from __future__ import annotations

import contextlib
import dataclasses
import textwrap
from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from torchlab._core.threads import get_num_threads, set_num_threads

_UNITS: dict[str, float] = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1}
_ENGLISH = {"ns": "nanosecond", "us": "microsecond", "ms": "millisecond", "s": "second"}

# Where the middle half of the times is wider than this share of the median, they are not told to
# more than few digits, and not without a warning.
_IQR_WARN_THRESHOLD = 0.1
_IQR_GROSS_WARN_THRESHOLD = 0.25
_MAX_SIGNIFICANT_FIGURES = 4
_CLOCK = 25e-9  # seconds, of perf_counter


@dataclasses.dataclass(init=True, repr=False, eq=True, frozen=True)
class TaskSpec:
    """What was measured: everything but the times and the variables."""

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
        """The label, or the statement where there is none, and the sub label."""
        if self.label is not None:
            return self.label + (f": {self.sub_label}" if self.sub_label else "")
        if "\n" not in self.stmt:
            return self.stmt + (f": {self.sub_label}" if self.sub_label else "")
        return f"stmt:{f' ({self.sub_label})' if self.sub_label else ''}\n" + textwrap.indent(
            self.stmt, "  "
        )

    def setup_str(self) -> str:
        """The setup as it is told."""
        if self.setup == "pass" or not self.setup:
            return ""
        if "\n" in self.setup:
            return "setup:\n" + textwrap.indent(self.setup, "  ")
        return f"setup: {self.setup}"

    def summarize(self) -> str:
        """Title, description and setup."""
        parts = [self.title, self.description or "", self.setup_str()]
        return "\n".join(f"{i}\n" if "\n" in i else i for i in parts if i)


@dataclasses.dataclass(init=True, repr=False)
class Measurement:
    """The times that a `Timer` took: `raw_times` in seconds, each of `number_per_run` runs."""

    number_per_run: int
    raw_times: list[float]
    task_spec: TaskSpec
    metadata: dict[Any, Any] | None = None

    def __post_init__(self) -> None:
        self._sorted_times: tuple[float, ...] = ()
        self._warnings: tuple[str, ...] = ()
        self._median = self._mean = self._p25 = self._p75 = -1.0

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name == "task_spec":
            raise AttributeError(name)
        return getattr(self.task_spec, name)  # its label, its description …

    @property
    def times(self) -> list[float]:
        """Seconds for one execution."""
        return [t / self.number_per_run for t in self.raw_times]

    @property
    def median(self) -> float:
        """The median time."""
        self._compute()
        return self._median

    @property
    def mean(self) -> float:
        """The mean time."""
        self._compute()
        return self._mean

    @property
    def iqr(self) -> float:
        """The width of the middle half of the times."""
        self._compute()
        return self._p75 - self._p25

    @property
    def significant_figures(self) -> int:
        """How many digits the times bear: their median against the standard error of the middle
        half of them, with 90 % confidence and the clock's own resolution as the least."""
        self._compute()
        n = len(self._sorted_times)
        middle = self._sorted_times[n // 4 : -(-3 * n // 4)]
        error = max(1.645 * float(np.std(middle)) / len(middle) ** 0.5, _CLOCK)
        digits = int(np.floor(np.log10(self._median / error)))
        return min(max(digits, 1), _MAX_SIGNIFICANT_FIGURES)

    @property
    def has_warnings(self) -> bool:
        """Whether there is reason to doubt the times."""
        self._compute()
        return bool(self._warnings)

    def _compute(self) -> None:
        if self._sorted_times and len(self._sorted_times) == len(self.raw_times):
            return
        self._sorted_times = tuple(sorted(self.times))
        times = np.array(self._sorted_times, dtype=np.float64)
        self._median, self._mean = float(np.quantile(times, 0.5)), float(times.mean())
        self._p25, self._p75 = float(np.quantile(times, 0.25)), float(np.quantile(times, 0.75))
        found = []
        if not self.meets_confidence(_IQR_GROSS_WARN_THRESHOLD):
            found.append("This suggests significant environmental influence.")
        elif not self.meets_confidence(_IQR_WARN_THRESHOLD):
            found.append("This could indicate system fluctuation.")
        self._warnings = tuple(found)

    def meets_confidence(self, threshold: float = _IQR_WARN_THRESHOLD) -> bool:
        """Whether the middle half of the times is narrower than this share of their median."""
        return self.iqr / self.median < threshold

    @property
    def title(self) -> str:
        """What was measured."""
        return self.task_spec.title

    @property
    def env(self) -> str:
        """Where it was measured."""
        return "Unspecified env" if self.task_spec.env is None else self.task_spec.env

    @property
    def as_row_name(self) -> str:
        """How a table calls it."""
        return self.sub_label or self.stmt or "[Unknown]"

    def __repr__(self) -> str:
        self._compute()
        unit, scale = select_unit(self._median)

        def told(x: float) -> str:
            return f"{x / scale:.2f}"

        lines = [super().__repr__(), self.task_spec.summarize()]
        n = len(self._sorted_times)
        lines.append(f"  {'Median: ' if n > 1 else ''}{told(self._median)} {unit}")
        if n >= 4:
            lines.append(
                f"  IQR:    {told(self.iqr)} {unit} ({told(self._p25)} to {told(self._p75)})"
            )
        runs = f"{self.number_per_run} runs {'per measurement, ' if n > 1 else ', '}"
        threads = f"{self.num_threads} thread{'s' if self.num_threads > 1 else ''}"
        lines.append(f"  {n} measurement{'s' if n > 1 else ''}, {runs}{threads}")
        for warning in self._warnings:
            share = self.iqr / self.median * 100
            lines.append(
                f"  WARNING: Interquartile range is {share:.1f}% of the median measurement.\n"
                f"           {warning}"
            )
        return "\n".join(x for x in lines if x)

    @staticmethod
    def merge(measurements: Iterable[Measurement]) -> list[Measurement]:
        """The measurements of one task as one; those that differ in it stay apart."""
        groups: dict[TaskSpec, list[Measurement]] = defaultdict(list)
        for m in measurements:
            groups[m.task_spec].append(m)
        merged = []
        for spec, group in groups.items():
            number = group[0].number_per_run
            times: list[float] = []
            for m in group:
                times += [t * number / m.number_per_run for t in m.raw_times]
            merged.append(Measurement(number, times, spec, None))
        return merged


def select_unit(t: float) -> tuple[str, float]:
    """The unit in which t seconds are best told, and its length in seconds."""
    unit = {-3: "ns", -2: "us", -1: "ms"}.get(int(np.log10(t) // 3), "s")
    return unit, _UNITS[unit]


def unit_to_english(u: str) -> str:
    """The unit's name."""
    return _ENGLISH[u]


def trim_sigfig(x: float, n: int) -> float:
    """x to n significant digits."""
    if n != int(n):
        raise AssertionError("n must be an integer")
    magnitude = int(np.ceil(np.log10(np.abs(x))))
    scale = 10 ** (magnitude - n)
    return float(np.round(np.float32(x / scale)) * np.float32(scale))  # in float32, as PyTorch


def ordered_unique(elements: Iterable[Any]) -> list[Any]:
    """Each element once, where it is first."""
    return list(dict.fromkeys(elements))


@contextlib.contextmanager
def set_torch_threads(n: int) -> Iterator[None]:
    """n threads inside."""
    before = get_num_threads()
    try:
        set_num_threads(n)
        yield
    finally:
        set_num_threads(before)


__all__ = [
    "Measurement",
    "TaskSpec",
    "ordered_unique",
    "select_unit",
    "set_torch_threads",
    "trim_sigfig",
    "unit_to_english",
]

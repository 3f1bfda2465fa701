"""`Timer`: how long a statement takes.

Note: runs, blocks, the clock
    A block is a number of runs between two readings of the clock, and gives one time. Reading the
    clock takes time of its own (waiting for an accelerator: microseconds), which counts the less
    the longer a block is; the more blocks there are, the better statistics they give. So blocks
    are as short as they may be: reading the clock is 1/10,000 of one, and there are about 1,000 in
    the time that is asked for; but no longer than that time.

Source: https://docs.pytorch.org/docs/2.13/benchmark_utils.html#torch.utils.benchmark.Timer
"""

from __future__ import annotations

import enum
import statistics
import sys
import textwrap
import timeit
from collections.abc import Callable
from typing import Any

from torchlab import cuda
from torchlab.utils.benchmark.utils.common import Measurement, TaskSpec, set_torch_threads

__all__ = ["Timer", "timer", "Language"]

_PACKAGE = __name__.partition(".")[0]
_CLOCK_PART = 1e-4  # of a block, at most: reading the clock
_MOST_BLOCKS = 1000
_ADAPTIVE_TIME = 0.05  # seconds for which blocks are chosen where nobody knows how many it takes
_SHORTEST = 1e-9  # seconds: some clocks see no time pass, and statistics divide by it


class Language(enum.Enum):
    """What a statement is written in."""

    PYTHON = 0
    CPP = 1


def timer() -> float:
    """Seconds, after all that was started on an accelerator is done."""
    if cuda.is_available():
        cuda.synchronize()
    return timeit.default_timer()


def _language(given: Language | str) -> Language:
    names = {"python": Language.PYTHON, "py": Language.PYTHON}
    names |= {"c++": Language.CPP, "cpp": Language.CPP}
    found = names.get(given) if isinstance(given, str) else given
    if not isinstance(found, Language):
        raise ValueError(f"Invalid language `{given}`.")
    return found


class Timer:
    """Measures a statement.

    stmt, setup: Python; `torch` is known in them, and what `globals` gives. num_threads: how many
    threads operators may use meanwhile. label, sub_label, description, env: how results are told
    and put into the tables of `Compare`. ValueError for a statement that is no text, and for
    `global_setup`, which belongs to C++; RuntimeError for C++, which needs PyTorch's library.
    """

    def __init__(
        self,
        stmt: str = "pass",
        setup: str = "pass",
        global_setup: str = "",
        timer: Callable[[], float] = timer,
        globals: dict[str, Any] | None = None,
        label: str | None = None,
        sub_label: str | None = None,
        description: str | None = None,
        env: str | None = None,
        num_threads: int = 1,
        language: Language | str = Language.PYTHON,
    ) -> None:
        if not isinstance(stmt, str):
            raise ValueError("Currently only a `str` stmt is supported.")
        names = dict(globals or {})
        if _language(language) is Language.CPP:
            if names:
                raise ValueError("C++ timing does not support globals.")
            raise RuntimeError("Timer: C++ statements need PyTorch's C++ library; write Python")
        if global_setup:
            raise ValueError(
                f"global_setup is C++ only, got `{global_setup}`. Most likely this code can simply"
                " be moved to `setup`."
            )
        names.setdefault("torch", sys.modules[_PACKAGE])
        stmt, setup = (textwrap.dedent(code).strip() for code in (stmt, setup))
        self._runner = timeit.Timer(stmt, setup, timer, names)
        self._task = TaskSpec(
            stmt, setup, global_setup, label, sub_label, description, env, num_threads
        )

    def _block(self, runs: int) -> float:
        """The seconds of so many runs."""
        return max(self._runner.timeit(runs), _SHORTEST)

    def timeit(self, number: int = 1000000) -> Measurement:
        """One block of `number` runs, after a hundredth of them (at least two) to warm up."""
        with set_torch_threads(self._task.num_threads):
            self._block(max(number // 100, 2))
            return Measurement(number, [self._block(number)], self._task)

    def repeat(self, repeat: int = -1, number: int = -1) -> None:
        """Not for this Timer: use `blocked_autorange`."""
        raise NotImplementedError("See `Timer.blocked_autorange.`")

    def autorange(self, callback: Callable[[int, float], Any] | None = None) -> None:
        """Not for this Timer: use `blocked_autorange`."""
        raise NotImplementedError("See `Timer.blocked_autorange.`")

    def blocked_autorange(
        self, callback: Callable[[int, float], Any] | None = None, min_run_time: float = 0.2
    ) -> Measurement:
        """Blocks of as many runs as make the clock's part negligible, for at least `min_run_time`
        seconds. `callback(number of runs, seconds)` is called after each."""

        def done(spent: float, so_far: Measurement) -> bool:
            return spent >= min_run_time

        return self._sampled(min_run_time, done, callback)

    def adaptive_autorange(
        self,
        threshold: float = 0.1,
        *,
        min_run_time: float = 0.01,
        max_run_time: float = 10.0,
        callback: Callable[[int, float], Any] | None = None,
    ) -> Measurement:
        """As `blocked_autorange`, until there are four blocks or more and the interquartile range
        is less than `threshold` of the median: `min_run_time` seconds at least, and no longer than
        `max_run_time`."""

        def done(spent: float, so_far: Measurement) -> bool:
            if spent >= max_run_time:
                return True
            enough = spent > min_run_time and len(so_far.raw_times) >= 4
            return enough and so_far.meets_confidence(threshold)

        return self._sampled(_ADAPTIVE_TIME, done, callback)

    def _sampled(
        self,
        time: float,
        done: Callable[[float, Measurement], bool],
        callback: Callable[[int, float], Any] | None,
    ) -> Measurement:
        """Block after block, as long as is right for `time` seconds in all, until `done(seconds
        spent, what was measured)`."""
        with set_torch_threads(self._task.num_threads):
            runs = self._runs_of_a_block(time)
            found, spent = Measurement(runs, [], self._task), 0.0
            while not done(spent, found):
                seconds = self._block(runs)
                if callback is not None:
                    callback(runs, seconds)
                found.raw_times.append(seconds)
                spent += seconds
        return found

    def _runs_of_a_block(self, time: float) -> int:
        """A power of ten; trying it out warms up, too."""
        clock = statistics.median(self._block(0) for _ in range(5))
        enough = max(clock / _CLOCK_PART, time / _MOST_BLOCKS)
        runs = 1
        while self._block(runs) < min(enough, time):
            runs *= 10
        return runs

"""`Timer`: how long a statement takes.

Source: https://docs.pytorch.org/docs/2.13/benchmark_utils.html#torch.utils.benchmark.Timer
"""

from __future__ import annotations

import enum
import sys
import textwrap
import timeit
from collections.abc import Callable
from typing import Any

from torchlab import cuda
from torchlab.utils.benchmark.utils import common

__all__ = ["Timer", "timer", "Language"]

_PACKAGE = __name__.partition(".")[0]


class Language(enum.Enum):
    """What a statement is written in."""

    PYTHON = 0
    CPP = 1


def timer() -> float:
    """Seconds, after all that was started on an accelerator is done."""
    if cuda.is_available():
        cuda.synchronize()
    return timeit.default_timer()


class Timer:
    """Measures a statement.

    stmt, setup: Python; `torch` is known in them, and what `globals` gives. num_threads: how many
    threads operators may use meanwhile. label, sub_label, description, env: how results are told
    and put into the tables of `Compare`. ValueError for a statement that is no text, and for
    `global_setup`, which belongs to C++; RuntimeError for C++, which needs PyTorch's library.
    """

    _timer_cls: type[Any] = timeit.Timer

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
        known = dict(globals or {})
        if language in (Language.CPP, "cpp", "c++"):
            if known:
                raise ValueError("C++ timing does not support globals.")
            raise RuntimeError("Timer: C++ statements need PyTorch's C++ library; write Python")
        if language not in (Language.PYTHON, "py", "python"):
            raise ValueError(f"Invalid language `{language}`.")
        if global_setup:
            raise ValueError(
                f"global_setup is C++ only, got `{global_setup}`. Most likely, this is because the"
                " code of `setup` was given there"
            )
        known.setdefault("torch", sys.modules[_PACKAGE])
        stmt = textwrap.dedent(stmt).strip()
        setup = textwrap.dedent(setup).strip()
        self._globals = known
        self._timer = self._timer_cls(stmt=stmt, setup=setup, timer=timer, globals=known)
        self._task_spec = common.TaskSpec(
            stmt=stmt, setup=setup, global_setup=global_setup, label=label, sub_label=sub_label,
            description=description, env=env, num_threads=num_threads,
        )  # fmt: skip

    def _timeit(self, number: int) -> float:
        # A timer may say that no time has passed; statistics divide by it.
        return max(self._timer.timeit(number), 1e-9)

    def timeit(self, number: int = 1000000) -> common.Measurement:
        """One block of `number` runs, after a short one to warm up."""
        with common.set_torch_threads(self._task_spec.num_threads):
            self._timeit(number=max(number // 100, 2))
            return common.Measurement(number, [self._timeit(number)], self._task_spec)

    def repeat(self, repeat: int = -1, number: int = -1) -> None:
        """Not for this Timer: use `blocked_autorange`."""
        raise NotImplementedError("See `Timer.blocked_autorange.`")

    def autorange(self, callback: Callable[[int, float], Any] | None = None) -> None:
        """Not for this Timer: use `blocked_autorange`."""
        raise NotImplementedError("See `Timer.blocked_autorange.`")

    def _estimate_block_size(self, min_run_time: float) -> int:
        """So many runs that reading the clock does not count, yet there are many blocks."""
        with common.set_torch_threads(self._task_spec.num_threads):
            overhead = sorted(self._timeit(0) for _ in range(5))[2]
            number = 1
            while True:
                taken = self._timeit(number)
                if overhead / taken <= 1e-4 and taken >= min_run_time / 1000:
                    return number
                if taken > min_run_time or number >= 10**9:
                    return number
                number *= 10

    def _blocks(
        self,
        min_run_time: float,
        max_run_time: float | None,
        enough: Callable[[list[float], int], bool],
        callback: Callable[[int, float], Any] | None,
    ) -> common.Measurement:
        number = self._estimate_block_size(min_run_time)
        times: list[float] = []
        total = 0.0
        most = max_run_time or sys.float_info.max
        with common.set_torch_threads(self._task_spec.num_threads):
            while total < min_run_time or (total < most and not enough(times, number)):
                taken = self._timeit(number)
                if callback is not None:
                    callback(number, taken)
                times.append(taken)
                total += taken
        return common.Measurement(number, times, self._task_spec)

    def blocked_autorange(
        self, callback: Callable[[int, float], Any] | None = None, min_run_time: float = 0.2
    ) -> common.Measurement:
        """Blocks of as many runs as make the clock's overhead negligible, for at least
        `min_run_time` seconds. `callback(number of runs, seconds)` is called for each."""
        return self._blocks(min_run_time, None, lambda times, n: True, callback)

    def adaptive_autorange(
        self,
        threshold: float = 0.1,
        *,
        min_run_time: float = 0.01,
        max_run_time: float = 10.0,
        callback: Callable[[int, float], Any] | None = None,
    ) -> common.Measurement:
        """As `blocked_autorange`, until the interquartile range is less than `threshold` of the
        median, or `max_run_time` seconds are over."""

        def enough(times: list[float], number: int) -> bool:
            made = common.Measurement(number, times, self._task_spec)
            return len(times) > 3 and made.meets_confidence(threshold)

        return self._blocks(min_run_time, max_run_time, enough, callback)

"""`Timer`: how long a statement takes, as `timeit`, with threads and warm-up seen to.

Source: https://docs.pytorch.org/docs/2.13/benchmark_utils.html#torch.utils.benchmark.Timer
"""

from __future__ import annotations

import enum
import textwrap
import time
import timeit
from collections.abc import Callable
from typing import Any, NoReturn

import numpy as np

from torchlab.utils.benchmark.common import Measurement, TaskSpec, set_torch_threads


def timer() -> float:
    """Seconds of the clock that measures."""
    return time.perf_counter()


class Language(enum.Enum):
    """What a statement is written in. torchlab times Python."""

    PYTHON = 0
    CPP = 1


class Timer:
    """Times `stmt` after `setup`, with the variables `globals` and `num_threads` threads. `label`,
    `sub_label`, `description` and `env` name it in tables."""

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
        if language in (Language.CPP, "cpp", "c++"):
            raise NotImplementedError("torchlab.utils.benchmark.Timer: only Python can be timed")
        if language not in (Language.PYTHON, "py", "python"):
            raise ValueError(f"Invalid language `{language}`.")
        if global_setup:
            raise ValueError(
                f"global_setup is C++ only, got `{global_setup}`. Most likely this code can simply"
                " be moved to `setup`."
            )
        stmt, setup = (textwrap.dedent(x).strip("\n").rstrip() for x in (stmt, setup))
        self._globals = dict(globals or {})
        self._timer = timeit.Timer(stmt=stmt, setup=setup, timer=timer, globals=self._globals)
        self._task_spec = TaskSpec(
            stmt=stmt,
            setup=setup,
            global_setup=global_setup,
            label=label,
            sub_label=sub_label,
            description=description,
            env=env,
            num_threads=num_threads,
        )

    def _timeit(self, number: int) -> float:
        return max(self._timer.timeit(number), 1e-9)

    def _measurement(self, number: int, times: list[float]) -> Measurement:
        return Measurement(number_per_run=number, raw_times=times, task_spec=self._task_spec)

    def timeit(self, number: int = 1000000) -> Measurement:
        """One measurement of `number` executions, after a warm-up of at most a hundredth."""
        with set_torch_threads(self._task_spec.num_threads):
            self._timeit(number=max(int(number // 100), 2))
            return self._measurement(number, [self._timeit(number=number)])

    def repeat(self, repeat: int = -1, number: int = -1) -> NoReturn:
        """Not there, as in PyTorch."""
        raise NotImplementedError("See `Timer.blocked_autorange.`")

    def autorange(self, callback: Any = None) -> NoReturn:
        """Not there, as in PyTorch."""
        raise NotImplementedError("See `Timer.blocked_autorange.`")

    def _block_size(self, min_run_time: float) -> int:
        """So many executions that reading the clock is no part of the time to speak of."""
        with set_torch_threads(self._task_spec.num_threads):
            overhead = float(np.median([self._timeit(0) for _ in range(5)]))
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
        number: int,
        stop: Callable[[list[float]], bool],
        min_run_time: float,
        max_run_time: float | None,
        callback: Callable[[int, float], Any] | None,
    ) -> list[float]:
        total = 0.0
        times: list[float] = []
        with set_torch_threads(self._task_spec.num_threads):
            while total < min_run_time or not stop(times):
                taken = self._timeit(number)
                if callback is not None:
                    callback(number, taken)
                times.append(taken)
                total += taken
                if max_run_time and total > max_run_time:
                    break
        return times

    def blocked_autorange(
        self, callback: Callable[[int, float], Any] | None = None, min_run_time: float = 0.2
    ) -> Measurement:
        """Blocks of executions until `min_run_time` seconds are full."""
        number = self._block_size(min_run_time)
        times = self._blocks(number, lambda times: True, min_run_time, None, callback)
        return self._measurement(number, times)

    def adaptive_autorange(
        self,
        threshold: float = 0.1,
        *,
        min_run_time: float = 0.01,
        max_run_time: float = 10.0,
        callback: Callable[[int, float], Any] | None = None,
    ) -> Measurement:
        """Blocks of executions until the middle half of their times is narrower than `threshold`
        times the median, or `max_run_time` seconds are over."""
        number = self._block_size(min_run_time=0.05)

        def steady(times: list[float]) -> bool:
            return len(times) > 3 and self._measurement(number, times).meets_confidence(threshold)

        times = self._blocks(number, steady, min_run_time, max_run_time, callback)
        return self._measurement(number, times)


__all__ = ["Language", "Timer", "timer"]

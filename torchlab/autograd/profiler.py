"""`autograd.profiler`: which operators ran, how often, how long, on what.

    with profiler.profile(record_shapes=True) as prof:
        loss.backward()
    print(prof.key_averages().table(sort_by="self_cpu_time_total"))

The operators are those that reach a kernel, and composites around them, of the thread that entered
the profiler. `torchlab.profiler.profile` adds schedules.

Source: https://docs.pytorch.org/docs/2.13/autograd.html#profiler
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable
from contextlib import ContextDecorator
from typing import Any

from torchlab._core import blocks
from torchlab._core.backends import cuda as _gpus
from torchlab.autograd.profiler_events import (
    EnforceUnique,
    FunctionEvent,
    FunctionEventAvg,
    MemRecordsAcc,
)
from torchlab.autograd.profiler_nvprof import load_nvprof, parse_nvprof_trace
from torchlab.autograd.profiler_ranges import emit_itt, emit_nvtx
from torchlab.autograd.profiler_tables import EventList
from torchlab.autograd.profiler_trace import events_of, trace_of, write_trace
from torchlab.autograd.profiler_watch import Collector


def _device_named(use_cuda: bool, use_device: str | None) -> str | None:
    """The device besides the CPU that is looked at; a warning where there is none."""
    if use_cuda:
        warnings.warn(
            "The attribute `use_cuda` will be deprecated soon, please use ``use_device = 'cuda'``"
            " instead.",
            FutureWarning,
            stacklevel=3,
        )
        use_device = "cuda"
    if use_device is None or use_device == "cpu":
        return None
    if use_device not in ("cuda", "sim"):
        warnings.warn(f"{use_device} is not a valid device option.", stacklevel=3)
        return None
    if use_device == "cuda" and not _gpus.device_count():
        warnings.warn("CUDA is not available, disabling CUDA profiling", stacklevel=3)
        return None
    return use_device


class profile:
    """Looks at the operators that run inside; results are in `function_events`, `key_averages()`
    and `table()`.

    use_device: "cuda" also measures how long kernels run on the GPU, "sim" the memory of the
    simulated accelerator. record_shapes: keep the shapes of the inputs. with_flops: count the
    operations of matrix products and 2-d convolutions. profile_memory: what tensors take and give
    back. with_stack: where in Python a call came from. with_modules: calls of nn.Modules, too (once
    torchlab.profiler is imported). acc_events: keep what earlier entries have found.
    """

    def __init__(
        self,
        enabled: bool = True,
        *,
        use_cuda: bool = False,
        use_device: str | None = None,
        record_shapes: bool = False,
        with_flops: bool = False,
        profile_memory: bool = False,
        with_stack: bool = False,
        with_modules: bool = False,
        use_kineto: bool = False,
        use_cpu: bool = True,
        experimental_config: Any = None,
        acc_events: bool = False,
        custom_trace_id_callback: Callable[[], str] | None = None,
        post_processing_timeout_s: float | None = None,
        activity_filters: Any = None,
    ) -> None:
        if experimental_config is not None or activity_filters:
            raise NotImplementedError(
                "profile: experimental_config and activity_filters are settings of Kineto, which"
                " torchlab does not use; leave them out"
            )
        self.enabled = enabled
        if not enabled:
            return
        self.use_cuda = use_cuda
        self.use_device = _device_named(use_cuda, use_device)
        if not use_cpu and self.use_device is None:
            raise AssertionError(
                "No activities to profile: use_cpu is False and there is no device"
            )
        self.record_shapes = record_shapes or with_flops
        self.with_flops, self.profile_memory = with_flops, profile_memory
        self.with_stack, self.with_modules = with_stack, with_modules
        self.use_cpu, self.acc_events = use_cpu, acc_events
        self.custom_trace_id_callback = custom_trace_id_callback
        self.post_processing_timeout_s = post_processing_timeout_s
        self.trace_id = ""
        self.entered = False
        self._earlier: list[FunctionEvent] = []
        self._events: EventList | None = None
        self._collector: Collector | None = None
        self._finished = False
        self._facts: dict[str, Any] = {}

    # ---- on and off -----------------------------------------------------------------------------

    def default_trace_id(self) -> str:
        """A new number for a trace, 32 hexadecimal digits."""
        return os.urandom(16).hex().upper()

    def create_trace_id(self) -> str:
        """The number that the user's callback gives, or a new one."""
        callback = self.custom_trace_id_callback
        return callback() if callback else self.default_trace_id()

    def _prepare_trace(self) -> None:
        self.entered = True
        self.trace_id = self.create_trace_id()
        self._collector = Collector(
            shapes=self.record_shapes, memory=self.profile_memory, stack=self.with_stack,
            flops=self.with_flops, modules=self.with_modules or self.with_stack,
            device=self.use_device if self.use_device == "cuda" else None,
        )  # fmt: skip

    def _start_trace(self) -> None:
        assert self._collector is not None
        if self.acc_events and self._finished:
            self._earlier = list(self._made_events())
        self._finished, self._events = False, None
        self._collector.start()

    def __enter__(self) -> profile | None:
        if not self.enabled:
            return None
        if self.entered:
            raise RuntimeError("Profiler context manager is not reentrant")
        self._prepare_trace()
        self._start_trace()
        return self

    def __exit__(self, exc_type: Any, exc_val: Any, exc_tb: Any) -> bool | None:
        if not self.enabled:
            return None
        assert self._collector is not None
        self._collector.stop()
        self.entered, self._finished = False, True
        return False

    def toggle_collection_dynamic(self, enabled: bool, activities: Any) -> None:
        """Look at nothing (False) or look again (True) in the middle of a run. `activities` must
        name the CPU: it is all that can be switched."""
        collector = self._collector
        if collector is None or not self.entered:
            raise RuntimeError("toggle_collection_dynamic: the profiler is not running")
        names = {getattr(a, "name", str(a)) for a in activities}
        if "CPU" not in names:
            return
        if enabled and collector.paused:
            collector.resume()
        elif not enabled and not collector.paused:
            collector.pause()

    # ---- results --------------------------------------------------------------------------------

    def _made_events(self) -> EventList:
        if self._events is None:
            if not self._finished or self._collector is None:
                raise RuntimeError("Profiler didn't finish running")
            found = events_of(
                self._collector, self.use_device, self.profile_memory, self.with_flops
            )
            self._events = EventList(
                [*self._earlier, *found],
                use_device=self.use_device,
                profile_memory=self.profile_memory,
                with_flops=self.with_flops,
            )
        return self._events

    @property
    def function_events(self) -> EventList | None:
        """All calls, in the order of their beginning; None while they are being collected."""
        if not self.enabled or not self._finished:
            return None
        return self._made_events()

    def _ensure_function_events(self) -> EventList:
        if not self.enabled:
            raise RuntimeError("Profiler didn't finish running: it was not enabled")
        return self._made_events()

    def table(
        self,
        sort_by: str | None = None,
        row_limit: int = 100,
        max_src_column_width: int = 75,
        max_name_column_width: int = 55,
        max_shapes_column_width: int = 80,
        header: str | None = None,
        top_level_events_only: bool = False,
    ) -> str:
        """Every call as a line of text: `EventList.table`."""
        return self._ensure_function_events().table(
            sort_by, row_limit, max_src_column_width, max_name_column_width,
            max_shapes_column_width, header, top_level_events_only,
        )  # fmt: skip

    def key_averages(
        self,
        group_by_input_shape: bool = False,
        group_by_stack_n: int = 0,
        group_by_overload_name: bool = False,
    ) -> EventList:
        """The calls of each name together: `EventList.key_averages`."""
        return self._ensure_function_events().key_averages(
            group_by_input_shape, group_by_stack_n, group_by_overload_name
        )

    def total_average(self) -> FunctionEventAvg:
        """All calls together."""
        return self._ensure_function_events().total_average()

    @property
    def self_cpu_time_total(self) -> float:
        """Microseconds in all calls."""
        return self._ensure_function_events().self_cpu_time_total

    def add_trace_fact(self, key: str, value: Any) -> None:
        """Something that stands at the top of the trace."""
        self._facts[key] = value

    def export_chrome_trace(
        self, path: str, metadata: Any = None, use_python_export: bool = False
    ) -> None:
        """Write the trace for chrome://tracing or Perfetto; compressed if the path ends in .gz.
        metadata: more facts for its top. (All traces are written by Python here.)"""
        self._ensure_function_events()
        assert self._collector is not None
        asked = ("with_stack", "profile_memory", "record_shapes", "with_modules", "with_flops")
        facts = {
            "trace_id": self.trace_id, **{name: 1 for name in asked if getattr(self, name)},
            **self._facts, **(metadata or {}),
        }  # fmt: skip
        write_trace(trace_of(self._collector, facts, path), path)

    def export_stacks(self, path: str, metric: str = "self_cpu_time_total") -> None:
        """Write stacks for a flame graph: `EventList.export_stacks`. Needs with_stack=True."""
        events = self._ensure_function_events()
        if not self.with_stack:
            raise AssertionError("export_stacks() requires with_stack=True")
        events.export_stacks(path, metric)

    def __repr__(self) -> str:
        if not self.enabled or not self._finished:
            return "<unfinished torch.autograd.profile>"
        return repr(self._made_events())

    def __str__(self) -> str:
        if not self.enabled or not self._finished:
            return "<unfinished torch.autograd.profile>"
        return str(self._made_events())


class record_function(ContextDecorator):
    """Names what runs inside, as a context or a decorator, for profilers that are on."""

    def __init__(self, name: str, args: str | None = None) -> None:
        self.name = name
        self.args = args
        self._open: blocks.Opened = []

    def __enter__(self) -> record_function:
        name = self.name if self.args is None else f"{self.name}({self.args})"
        self._open = blocks.begin(name)
        return self

    def __exit__(self, exc_type: Any, exc_value: Any, traceback: Any) -> None:
        blocks.end(self._open)
        self._open = []

    def _recreate_cm(self) -> record_function:
        return type(self)(self.name, self.args)

    def _call_end_callbacks_on_future(self, fut: Any) -> Any:
        """Let the block end when the future is done; a future of what it gives."""
        opened, self._open = self._open, []

        def end(done: Any) -> Any:
            blocks.end(opened)
            return done.value()

        return fut.then(end)


class KinetoStepTracker:
    """One count of steps for all who count them: each has a count of its own, and the greatest is
    the current step. Optimizers and profilers so agree on it."""

    _current_step = 0
    _steps: dict[str, int] = {}

    @classmethod
    def init_step_count(cls, requester: str) -> None:
        """Begin to count for somebody, at the current step."""
        cls._steps[requester] = cls._current_step

    @classmethod
    def erase_step_count(cls, requester: str) -> bool:
        """Count no longer. Whether there was a count."""
        return cls._steps.pop(requester, None) is not None

    @classmethod
    def increment_step(cls, requester: str) -> int:
        """One step of somebody's. The current step."""
        if requester not in cls._steps:
            cls.init_step_count(requester)
        cls._steps[requester] += 1
        newest = max(cls._steps.values())
        if newest > cls._current_step:
            ahead = newest - cls._current_step
            if ahead > 1:
                warnings.warn(
                    f"Profiler step count has increased more than 1 - current_step ="
                    f" {cls._current_step} step dict = {cls._steps}",
                    stacklevel=2,
                )
            cls._current_step = newest
        return cls._current_step

    @classmethod
    def current_step(cls) -> int:
        """The greatest of all counts so far."""
        return cls._current_step


__all__ = [
    "EnforceUnique", "EventList", "FunctionEvent", "KinetoStepTracker", "MemRecordsAcc",
    "emit_itt", "emit_nvtx", "load_nvprof", "parse_nvprof_trace", "profile", "record_function",
]  # fmt: skip

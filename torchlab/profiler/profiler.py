"""`torch.profiler.profile`: a profiler with a schedule of steps.

    with profile(schedule=schedule(wait=1, warmup=1, active=2), on_trace_ready=show) as prof:
        for batch in loader:
            step(batch)
            prof.step()

Source: https://docs.pytorch.org/docs/2.13/profiler.html
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Iterable
from typing import Any

from torchlab.autograd import profiler as _profiler
from torchlab.autograd.profiler import KinetoStepTracker, record_function
from torchlab.autograd.profiler_tables import EventList
from torchlab.profiler.execution_trace import ExecutionTraceObserver
from torchlab.profiler.memory_timeline import export_memory_timeline
from torchlab.profiler.schedules import ProfilerAction, ProfilerActivity, supported_activities

_STEP = "ProfilerStep"
_warned: list[bool] = []  # of events that are dropped at the end of a cycle: once


def _always(step: int) -> ProfilerAction:
    return ProfilerAction.RECORD


# What a change of the action means: (before, after) → names of methods. `None` is the end.
_RESTART = ("_save", "prepare_trace")
_A = ProfilerAction
_CHANGES: dict[tuple[ProfilerAction, ProfilerAction | None], tuple[str, ...]] = {
    (_A.NONE, _A.NONE): (),
    (_A.NONE, _A.WARMUP): ("prepare_trace",),
    (_A.NONE, _A.RECORD): ("prepare_trace", "start_trace"),
    (_A.NONE, _A.RECORD_AND_SAVE): ("prepare_trace", "start_trace"),
    (_A.WARMUP, _A.NONE): ("_warn_incorrect", "start_trace", "stop_trace"),
    (_A.WARMUP, _A.WARMUP): (),
    (_A.WARMUP, _A.RECORD): ("start_trace",),
    (_A.WARMUP, _A.RECORD_AND_SAVE): ("start_trace",),
    (_A.RECORD, _A.NONE): ("_warn_incorrect", "stop_trace"),
    (_A.RECORD, _A.WARMUP): ("_warn_incorrect", "stop_trace", "prepare_trace"),
    (_A.RECORD, _A.RECORD): (),
    (_A.RECORD, _A.RECORD_AND_SAVE): (),
    (_A.RECORD_AND_SAVE, _A.NONE): ("_save",),
    (_A.RECORD_AND_SAVE, _A.WARMUP): _RESTART,
    (_A.RECORD_AND_SAVE, _A.RECORD): (*_RESTART, "start_trace"),
    (_A.RECORD_AND_SAVE, _A.RECORD_AND_SAVE): (*_RESTART, "start_trace"),
    (_A.NONE, None): (),
    (_A.WARMUP, None): ("start_trace", "stop_trace"),
    (_A.RECORD, None): ("_save",),
    (_A.RECORD_AND_SAVE, None): ("_save",),
}


class _KinetoProfile:
    """A profiler that its owner switches on and off: `start`, `stop`, and results in between."""

    def __init__(
        self,
        *,
        activities: Iterable[Any] | None = None,
        record_shapes: bool = False,
        profile_memory: bool = False,
        with_stack: bool = False,
        with_flops: bool = False,
        with_modules: bool = False,
        experimental_config: Any = None,
        execution_trace_observer: Any = None,
        acc_events: bool = False,
        custom_trace_id_callback: Callable[[], str] | None = None,
        post_processing_timeout_s: float | None = None,
    ) -> None:
        found: set[ProfilerActivity] = set()
        for a in supported_activities() if activities is None else activities:
            found |= set(a) if isinstance(a, dict) else {a}
        self.activities = found
        self.record_shapes, self.profile_memory = record_shapes, profile_memory
        self.with_stack, self.with_flops, self.with_modules = with_stack, with_flops, with_modules
        self.experimental_config = experimental_config
        self.execution_trace_observer = (
            execution_trace_observer or ExecutionTraceObserver.build_execution_trace_obs_from_env()
        )
        self.acc_events = acc_events
        self.custom_trace_id_callback = custom_trace_id_callback
        self.post_processing_timeout_s = post_processing_timeout_s
        self.profiler: _profiler.profile | None = None
        self.use_device: str | None = None
        if ProfilerActivity.CUDA in found:
            self.use_device = "cuda"
        elif ProfilerActivity.PrivateUse1 in found:
            self.use_device = "sim"
        self.preset_metadata: dict[str, str] = {}

    # ---- on and off -----------------------------------------------------------------------------

    def start(self) -> None:
        """Begin to record."""
        self.prepare_trace()
        self.start_trace()

    def stop(self) -> None:
        """Stop recording; results are there now."""
        self.stop_trace()

    def prepare_trace(self) -> None:
        """Make ready for `start_trace`."""
        if self.profiler is None or not self.acc_events:
            if not self.activities:
                raise AssertionError("No valid profiler activities found")
            self.profiler = _profiler.profile(
                use_cpu=ProfilerActivity.CPU in self.activities,
                use_device=self.use_device,
                record_shapes=self.record_shapes,
                with_flops=self.with_flops,
                profile_memory=self.profile_memory,
                with_stack=self.with_stack,
                with_modules=self.with_modules,
                use_kineto=True,
                experimental_config=self.experimental_config,
                acc_events=self.acc_events,
                custom_trace_id_callback=self.custom_trace_id_callback,
                post_processing_timeout_s=self.post_processing_timeout_s,
            )
        if not self.acc_events and not _warned and self._several():
            _warned.append(True)
            warnings.warn(
                "Warning: Profiler clears events at the end of each cycle. Only events from the"
                " current cycle will be reported. To keep events across cycles, set"
                " acc_events=True.",
                stacklevel=2,
            )
        self.profiler._prepare_trace()

    def _several(self) -> bool:
        return False

    def start_trace(self) -> None:
        """Begin to record what `prepare_trace` has made ready."""
        prof = self._made("starting trace")
        if self.execution_trace_observer:
            self.execution_trace_observer.start()
        prof._facts = {}
        prof._start_trace()
        for key, value in self.preset_metadata.items():
            prof.add_trace_fact(key, json.loads(value))

    def stop_trace(self) -> None:
        """Stop recording."""
        if self.execution_trace_observer:
            self.execution_trace_observer.stop()
        self._made("stopping trace").__exit__(None, None, None)

    def toggle_collection_dynamic(
        self, enable: bool, activities: Iterable[ProfilerActivity]
    ) -> None:
        """Look at nothing (False) or look again (True) while recording."""
        if self.profiler is not None:
            self.profiler.toggle_collection_dynamic(enable, activities)

    # ---- results --------------------------------------------------------------------------------

    def _made(self, doing: str) -> _profiler.profile:
        if self.profiler is None:
            raise AssertionError(f"Profiler must be initialized before {doing}")
        return self.profiler

    def events(self) -> EventList:
        """All calls, in the order of their beginning."""
        return self._made("accessing events")._ensure_function_events()

    def key_averages(
        self,
        group_by_input_shape: bool = False,
        group_by_stack_n: int = 0,
        group_by_overload_name: bool = False,
    ) -> EventList:
        """The calls of each name together (also by input shapes, the top of the stack, the
        overload). Print its `table()`. Empty while the profiler is recording."""
        prof = self._made("getting key averages")
        if not prof._finished:
            return EventList()
        return prof.key_averages(group_by_input_shape, group_by_stack_n, group_by_overload_name)

    def export_chrome_trace(self, path: str, use_python_export: bool = False) -> None:
        """Write the trace for chrome://tracing or Perfetto; compressed if the path ends in .gz."""
        self._made("exporting chrome trace").export_chrome_trace(path)

    def export_stacks(self, path: str, metric: str = "self_cpu_time_total") -> None:
        """Write stacks for a flame graph. Needs with_stack=True. metric: "self_cpu_time_total" or
        "self_cuda_time_total"."""
        self._made("exporting stacks").export_stacks(path, metric)

    def export_memory_timeline(self, path: str, device: str | None = None) -> None:
        """Deprecated. Write how much memory was taken when: numbers (.json), single records
        (.raw.json.gz) or a picture (.html). Needs record_shapes, profile_memory, with_stack."""
        warnings.warn(
            "`export_memory_timeline` is deprecated and will be removed in a future version. Please"
            " use `torch.cuda.memory._record_memory_history` and"
            " `torch.cuda.memory._export_memory_snapshot` instead.",
            FutureWarning,
            stacklevel=2,
        )
        if not (self.record_shapes and self.profile_memory and self.with_stack):
            raise ValueError(
                "record_shapes=True, profile_memory=True, with_stack=True required for memory"
                " profiling."
            )
        export_memory_timeline(self._made("exporting memory timeline"), path, device)

    def add_metadata(self, key: str, value: str) -> None:
        """Put a text at the top of the trace."""
        if self.profiler is not None:
            self.profiler.add_trace_fact(key, value)

    def add_metadata_json(self, key: str, value: str) -> None:
        """Put a value, written as JSON, at the top of the trace."""
        if self.profiler is not None:
            self.profiler.add_trace_fact(key, json.loads(value))

    def preset_metadata_json(self, key: str, value: str) -> None:
        """As `add_metadata_json`, for all traces that begin from now on."""
        self.preset_metadata[key] = value

    def set_custom_trace_id_callback(self, callback: Callable[[], str]) -> None:
        """Let `callback()` number the traces."""
        self.custom_trace_id_callback = callback
        if self.profiler is not None:
            self.profiler.custom_trace_id_callback = callback

    def get_trace_id(self) -> str | None:
        """The number of the trace; None before there is one."""
        return None if self.profiler is None else self.profiler.trace_id


class profile(_KinetoProfile):
    """A profiler of operators, for a block of code or a loop of steps.

    activities: of `ProfilerActivity`, what to look at; `supported_activities()` if None.
    schedule: step number → ProfilerAction, as `schedule(…)` makes it; everything if None.
    on_trace_ready: called with the profiler when a cycle is done.
    The rest as for `torchlab.autograd.profiler.profile`. use_cuda is deprecated.
    """

    def __init__(
        self,
        *,
        activities: Iterable[Any] | None = None,
        schedule: Callable[[int], ProfilerAction] | None = None,
        on_trace_ready: Callable[..., Any] | None = None,
        record_shapes: bool = False,
        profile_memory: bool = False,
        with_stack: bool = False,
        with_flops: bool = False,
        with_modules: bool = False,
        experimental_config: Any = None,
        execution_trace_observer: Any = None,
        acc_events: bool = False,
        use_cuda: bool | None = None,
        custom_trace_id_callback: Callable[[], str] | None = None,
        post_processing_timeout_s: float | None = None,
    ) -> None:
        if use_cuda is not None:
            warnings.warn(
                "`use_cuda` is deprecated, use `activities` argument instead",
                FutureWarning,
                stacklevel=2,
            )
            chosen = set(supported_activities() if activities is None else activities)
            change = chosen.add if use_cuda else chosen.discard
            change(ProfilerActivity.CUDA)
            activities = chosen
        super().__init__(
            activities=activities,
            record_shapes=record_shapes,
            profile_memory=profile_memory,
            with_stack=with_stack,
            with_flops=with_flops,
            with_modules=with_modules,
            experimental_config=experimental_config,
            execution_trace_observer=execution_trace_observer,
            acc_events=acc_events,
            custom_trace_id_callback=custom_trace_id_callback,
            post_processing_timeout_s=post_processing_timeout_s,
        )
        self.record_steps = schedule is not None
        self.schedule = schedule or _always
        self.on_trace_ready = on_trace_ready
        self.step_num = 0
        self.current_action = self.schedule(0)
        self.step_rec_fn: record_function | None = None
        self._cycles = 0
        KinetoStepTracker.init_step_count(_STEP)

    def __enter__(self) -> profile:
        self.start()
        return self

    def __exit__(self, exc_type: Any, exc_val: Any, exc_tb: Any) -> None:
        self.stop()
        KinetoStepTracker.erase_step_count(_STEP)
        if self.execution_trace_observer:
            self.execution_trace_observer.cleanup()

    def start(self) -> None:
        """Begin with step 0."""
        self._change(ProfilerAction.NONE, self.current_action)
        self._begin_step()

    def stop(self) -> None:
        """End the step and the cycle."""
        self._end_step()
        if self.profiler is None and self.current_action is not ProfilerAction.NONE:
            raise AssertionError("Profiler must be initialized before stopping trace")
        self._change(self.current_action, None)

    def step(self) -> None:
        """A step is done: go on to the next of the schedule."""
        self._end_step()
        before = self.current_action
        self.step_num += 1
        self.current_action = self.schedule(self.step_num)
        self._change(before, self.current_action)
        KinetoStepTracker.increment_step(_STEP)
        self._begin_step()

    def _begin_step(self) -> None:
        if self.record_steps:
            self.step_rec_fn = record_function(f"{_STEP}#{self.step_num}")
            self.step_rec_fn.__enter__()

    def _end_step(self) -> None:
        if self.step_rec_fn is not None:
            self.step_rec_fn.__exit__(None, None, None)
            self.step_rec_fn = None

    def _several(self) -> bool:
        self._cycles += 1
        return self._cycles > 1

    def _change(self, before: ProfilerAction, after: ProfilerAction | None) -> None:
        for name in _CHANGES[before, after]:
            getattr(self, name)()

    def _save(self) -> None:
        self.stop_trace()
        if self.on_trace_ready is not None:
            self.on_trace_ready(self)

    def _warn_incorrect(self) -> None:
        warnings.warn(
            f"Incorrect schedule: {self.current_action.name} may not follow what was before it: a"
            " cycle ends with RECORD_AND_SAVE",
            stacklevel=4,
        )


__all__ = ["profile"]

"""`autograd.profiler`: which operators ran, how often, and how long.

    with profiler.profile() as prof:
        loss.backward()
    print(prof.key_averages().table(sort_by="self_cpu_time_total"))

The operators are those that reach a kernel, of the thread that entered the profiler; the time is
the wall clock's. What the profiler cannot measure it refuses to be asked for.

Source: https://docs.pytorch.org/docs/2.13/autograd.html#profiler
"""

from __future__ import annotations

import functools
import json
import threading
import time
from collections.abc import Callable
from typing import Any

from torchlab._core.dispatch import python_key
from torchlab._core.tensor import Tensor

_collecting: list[profile] = []  # the profilers that are on


class Interval:
    """From when to when, in microseconds since the profiler was entered."""

    def __init__(self, start: float, end: float) -> None:
        self.start = start
        self.end = end

    def elapsed_us(self) -> float:
        """How long that is."""
        return self.end - self.start


class FunctionEvent:
    """One call of an operator, or one `record_function` block."""

    def __init__(
        self, id: int, name: str, thread: int, start_us: float, end_us: float,
        input_shapes: Any = None, is_user_annotation: bool = False,
    ) -> None:  # fmt: skip
        self.id, self.name, self.thread = id, name, thread
        self.time_range = Interval(start_us, end_us)
        self.input_shapes = input_shapes or []
        self.is_user_annotation = is_user_annotation
        self.count = 1
        self.cpu_children: list[FunctionEvent] = []
        self.cpu_parent: FunctionEvent | None = None

    @property
    def key(self) -> str:
        return self.name

    @property
    def cpu_time_total(self) -> float:
        return self.time_range.elapsed_us()

    @property
    def cpu_time(self) -> float:
        return self.cpu_time_total / self.count

    @property
    def self_cpu_time_total(self) -> float:
        return self.cpu_time_total - sum(c.cpu_time_total for c in self.cpu_children)

    def __repr__(self) -> str:
        return (
            f"<FunctionEvent id={self.id} name={self.name} cpu_time={_time(self.cpu_time)}"
            f" start_us={self.time_range.start:.3f} end_us={self.time_range.end:.3f}"
            f" cpu_children={[c.id for c in self.cpu_children]} input_shapes={self.input_shapes}>"
        )


class FunctionEventAvg:
    """The calls of one name together."""

    def __init__(self) -> None:
        self.key: str | None = None
        self.count = 0
        self.cpu_time_total = 0.0
        self.self_cpu_time_total = 0.0
        self.input_shapes: Any = []
        self.cpu_parent = None

    @property
    def cpu_time(self) -> float:
        return self.cpu_time_total / self.count if self.count else 0.0

    def add(self, other: Any) -> FunctionEventAvg:
        """Count a call, or several."""
        if self.key is None:
            self.key, self.input_shapes = other.key, other.input_shapes
        self.count += other.count
        self.cpu_time_total += other.cpu_time_total
        self.self_cpu_time_total += other.self_cpu_time_total
        return self

    def __repr__(self) -> str:
        return (
            f"<FunctionEventAvg key={self.key} self_cpu_time={_time(self.self_cpu_time_total)}"
            f" cpu_time={_time(self.cpu_time)} count={self.count}"
            f" input_shapes={self.input_shapes}>"
        )


class EventList(list):
    """Events, or their averages, as a table, a trace, or together by name."""

    @property
    def self_cpu_time_total(self) -> float:
        return sum(e.self_cpu_time_total for e in self)

    def key_averages(
        self,
        group_by_input_shapes: bool = False,
        group_by_stack_n: int = 0,
        group_by_overload_name: bool = False,
    ) -> EventList:
        """One entry for each name (and for each kind of input shapes)."""
        if group_by_stack_n or group_by_overload_name:
            raise NotImplementedError("events have neither stacks nor overload names")
        found: dict[Any, FunctionEventAvg] = {}
        for e in self:
            key = (e.key, str(e.input_shapes) if group_by_input_shapes else "")
            found.setdefault(key, FunctionEventAvg()).add(e)
        if not group_by_input_shapes:
            for average in found.values():
                average.input_shapes = []
        return EventList(found.values())

    def total_average(self) -> FunctionEventAvg:
        """All calls together."""
        total = FunctionEventAvg()
        for e in self:
            total.add(e)
        total.key = None
        return total

    def table(
        self,
        sort_by: str | None = None,
        row_limit: int = 100,
        max_src_column_width: int = 75,
        max_name_column_width: int = 55,
        max_shapes_column_width: int = 80,
        header: str | None = None,
        top_level_events_only: bool = False,
        time_unit: str | None = None,
    ) -> str:
        """The events as lines of text, sorted by an attribute such as "self_cpu_time_total"."""
        rows = [e for e in self if not (top_level_events_only and e.cpu_parent is not None)]
        if sort_by is not None:
            rows.sort(key=lambda e: getattr(e, sort_by), reverse=True)
        rows = rows[: row_limit if row_limit >= 0 else None]
        total = self.self_cpu_time_total or 1.0
        shapes = any(e.input_shapes for e in rows)
        heads = ["Name", "Self CPU %", "Self CPU", "CPU total %", "CPU total", "CPU time avg",
                 "# of Calls"] + ["Input Shapes"] * shapes  # fmt: skip
        lines = [heads]
        for e in rows:
            lines.append([
                _short(e.key, max_name_column_width),
                f"{100 * e.self_cpu_time_total / total:.2f}%",
                _time(e.self_cpu_time_total, time_unit),
                f"{100 * e.cpu_time_total / total:.2f}%",
                _time(e.cpu_time_total, time_unit),
                _time(e.cpu_time, time_unit),
                str(e.count),
                *([_short(str(e.input_shapes), max_shapes_column_width)] if shapes else []),
            ])  # fmt: skip
        widths = [max(12, *(len(line[i]) for line in lines)) for i in range(len(heads))]
        bar = "  ".join("-" * w for w in widths)
        text = ["  ".join(c.rjust(w) for c, w in zip(x, widths, strict=True)) for x in lines]
        parts = [*([header] if header else []), bar, text[0], bar, *text[1:], bar]
        return "\n".join(parts) + f"\nSelf CPU time total: {_time(self.self_cpu_time_total)}\n"

    def __str__(self) -> str:
        return self.table()

    def export_chrome_trace(self, path: str) -> None:
        """Write the events as a trace for chrome://tracing."""
        events = [
            {"name": e.name, "ph": "X", "ts": e.time_range.start, "dur": e.cpu_time_total,
             "tid": e.thread, "pid": "CPU functions", "args": {}}
            for e in self
        ]  # fmt: skip
        with open(path, "w", encoding="utf-8") as f:
            json.dump(events, f)


def _short(text: Any, width: int) -> str:
    text = str(text)
    return text if width is None or len(text) <= width else text[: width - 3] + "..."


def _time(us: float, unit: str | None = None) -> str:
    if unit == "s" or unit is None and us >= 1e6:
        return f"{us / 1e6:.3f}s"
    if unit == "ms" or unit is None and us >= 1e3:
        return f"{us / 1e3:.3f}ms"
    return f"{us:.3f}us"


class _Watch:
    """The mode that sees the operators of a thread."""

    below_autograd = True

    def __init__(self, owner: profile) -> None:
        self.owner = owner

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        shapes = None
        if self.owner.record_shapes:
            shapes = [list(a.shape) if isinstance(a, Tensor) else [] for a in args]
        name = func._schema.name
        with self.owner._span(name, shapes):
            return func(*args, **(kwargs or {}))


class _Span:
    """A call that is being timed."""

    __slots__ = ("owner", "name", "shapes", "user", "start", "children", "above")

    def __init__(self, owner: profile, name: str, shapes: Any, user: bool) -> None:
        self.owner, self.name, self.shapes, self.user = owner, name, shapes, user

    def __enter__(self) -> None:
        open_spans = self.owner._open
        self.above: _Span | None = getattr(open_spans, "last", None)
        self.children: list[FunctionEvent] = []
        open_spans.last = self
        self.start = time.perf_counter_ns()

    def __exit__(self, *exc: object) -> None:
        end = time.perf_counter_ns()
        self.owner._open.last = self.above
        self.owner._ended(self, end)


class profile:
    """Times the operators that run inside; results are in `function_events`, `key_averages()` and
    `table()`. record_shapes: keep the shapes of the operators' inputs, too."""

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
        asked = {
            "use_cuda": use_cuda, "use_device": use_device, "with_flops": with_flops,
            "profile_memory": profile_memory, "with_stack": with_stack,
            "with_modules": with_modules, "experimental_config": experimental_config,
            "activity_filters": activity_filters,
        }  # fmt: skip
        for name, value in asked.items():
            if value:
                raise NotImplementedError(f"profile: {name} is not measured, leave it out")
        self.enabled, self.record_shapes, self.use_cpu = enabled, record_shapes, use_cpu
        self.acc_events = acc_events
        self.function_events: EventList | None = None
        self._found: list[FunctionEvent] = []
        self._open = threading.local()
        self._lock = threading.Lock()
        self._entered = False

    def __enter__(self) -> profile:
        if not self.enabled:
            return self
        if self._entered:
            raise RuntimeError("Profiler context manager is not reentrant")
        self._entered = True
        if not self.acc_events:
            self._found = []
        self._start = time.perf_counter_ns()
        self._mode = _Watch(self)
        _collecting.append(self)
        python_key.on(self._mode)
        return self

    def __exit__(self, *exc: object) -> None:
        if not self.enabled:
            return
        python_key.off(self._mode)
        _collecting.remove(self)
        self._entered = False
        self.function_events = EventList(sorted(self._found, key=lambda e: e.time_range.start))

    def _span(self, name: str, shapes: Any = None, user: bool = False) -> _Span:
        return _Span(self, name, shapes, user)

    def _ended(self, span: _Span, end: int) -> None:
        times = (span.start - self._start) / 1e3, (end - self._start) / 1e3
        with self._lock:
            number = len(self._found) + 1
            e = FunctionEvent(
                number, span.name, threading.get_ident(), *times, span.shapes, span.user
            )
            self._found.append(e)
        e.cpu_children = span.children
        for child in span.children:
            child.cpu_parent = e
        if span.above is not None:
            span.above.children.append(e)

    def _events(self) -> EventList:
        if self.function_events is None:
            raise RuntimeError("Profiler didn't finish running")
        return self.function_events

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
        """Every call as a line of text."""
        return self._events().table(
            sort_by, row_limit, max_src_column_width, max_name_column_width,
            max_shapes_column_width, header, top_level_events_only,
        )  # fmt: skip

    def key_averages(
        self,
        group_by_input_shape: bool = False,
        group_by_stack_n: int = 0,
        group_by_overload_name: bool = False,
    ) -> EventList:
        """The calls of each name together."""
        return self._events().key_averages(
            group_by_input_shape, group_by_stack_n, group_by_overload_name
        )

    def total_average(self) -> FunctionEventAvg:
        """All calls together."""
        return self._events().total_average()

    @property
    def self_cpu_time_total(self) -> float:
        """Microseconds in all calls."""
        return self._events().self_cpu_time_total

    def export_chrome_trace(
        self, path: str, metadata: Any = None, use_python_export: bool = False
    ) -> None:
        """Write the events as a trace for chrome://tracing."""
        self._events().export_chrome_trace(path)

    def __str__(self) -> str:
        return "<unfinished profile>" if self.function_events is None else str(self._events())


class record_function:
    """Names what runs inside, as a context or a decorator, for profilers that are on."""

    def __init__(self, name: str, args: str | None = None) -> None:
        self.name = name
        self.args = args
        self._spans: list[_Span] = []

    def __enter__(self) -> record_function:
        self._spans = [p._span(self.name, user=True) for p in _collecting]
        for span in self._spans:
            span.__enter__()
        return self

    def __exit__(self, *exc: object) -> None:
        for span in reversed(self._spans):
            span.__exit__()
        self._spans = []

    def __call__(self, fn: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(fn)
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            with record_function(self.name, self.args):
                return fn(*args, **kwargs)

        return wrapped


__all__ = ["EventList", "FunctionEvent", "profile", "record_function"]

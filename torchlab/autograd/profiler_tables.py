"""Lists of a profiler's events: together by name, as a table, as a trace, as stacks.

Source: https://docs.pytorch.org/docs/2.13/autograd.html#profiler
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from typing import Any

from torchlab.autograd.profiler_events import (
    DeviceType,
    FunctionEvent,
    FunctionEventAvg,
    format_time,
)

_METRICS = [
    "self_cpu_time_total", "self_cuda_time_total", "self_xpu_time_total",
    "self_privateuse1_time_total",
]  # fmt: skip
_COLUMN = 12  # the width of all columns but those of text; longer heads stick out


class EventList(list):
    """Events, or their averages, as a table, a trace, or together by name."""

    def __init__(
        self,
        *args: Any,
        use_device: str | None = None,
        profile_memory: bool = False,
        with_flops: bool = False,
    ) -> None:
        super().__init__(*args)
        self._use_device = use_device
        self._profile_memory = profile_memory
        self._with_flops = with_flops
        self._tree_built = False

    def _build_tree(self) -> None:
        """Find out which call ran within which, from their times."""
        self._populate_cpu_children()
        self._remove_dup_nodes()
        self._set_backward_stacktraces()
        self._tree_built = True

    def _populate_cpu_children(self) -> None:
        threads: dict[Any, list[FunctionEvent]] = {}
        for e in self:
            if e.device_type == DeviceType.CPU and not e.is_async:
                threads.setdefault((e.thread, e.node_id), []).append(e)
        for events in threads.values():
            events.sort(key=lambda e: (e.time_range.start, -e.time_range.end))
            around: list[FunctionEvent] = []  # the calls that are running, the outermost first
            for e in events:
                while around and (
                    e.time_range.start >= around[-1].time_range.end
                    or e.time_range.end > around[-1].time_range.end
                ):
                    around.pop()
                if around:
                    around[-1].append_cpu_child(e)
                    e.set_cpu_parent(around[-1])
                around.append(e)

    def _remove_dup_nodes(self) -> None:
        """A call that does nothing but call one of the same name is left out."""
        while True:
            doubled: set[int] = set()
            for i, e in enumerate(self):
                above = e.cpu_parent
                if above is not None and above.name == e.name and len(above.cpu_children) == 1:
                    above.cpu_children = e.cpu_children
                    above.kernels = e.kernels
                    for child in e.cpu_children:
                        child.cpu_parent = above
                    doubled.add(i)
            if not doubled:
                return
            self[:] = [e for i, e in enumerate(self) if i not in doubled]

    def _set_backward_stacktraces(self) -> None:
        """A node of backward has the stack of the call that it belongs to."""
        forward: dict[Any, Any] = {}
        for e in self:
            if e.scope != 1 and e.stack and e.sequence_nr >= 0:
                forward.setdefault((e.sequence_nr, e.thread), e.stack)
        for e in self:
            top: FunctionEvent | None = e
            while top is not None and top.scope != 1:
                top = top.cpu_parent
            if top is not None:
                if top.fwd_thread is None:
                    raise AssertionError("Expected fwd_thread to be set for a node of backward")
                e.stack = forward.get((top.sequence_nr, top.fwd_thread), [])

    @property
    def self_cpu_time_total(self) -> float:
        """Microseconds in all calls."""
        return sum(e.self_cpu_time_total for e in self)

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
        """The events as lines of text.

        sort_by: the attribute by which they are sorted, the greatest first: `count`,
        `cpu_time_total`, `self_cpu_time_total`, `self_cpu_memory_usage`, `device_time_total` …;
        None keeps them as they are. row_limit: no more lines than that, -1 for all. The widths may
        be None: no limit. time_unit: "us", "ms", "s" or None, whatever suits.
        """
        return _Table(
            self, sort_by, row_limit,
            (max_name_column_width, max_shapes_column_width, max_src_column_width), header,
            top_level_events_only, time_unit,
        ).text()  # fmt: skip

    def __str__(self) -> str:
        return self.table()

    def export_chrome_trace(self, path: str) -> None:
        """Write the events as a trace for chrome://tracing, a list of its records."""
        records: list[dict[str, Any]] = []
        flows = 0
        device = self._use_device or "cuda"
        for e in self:
            if e.trace_name is None:
                continue
            place = {"tid": e.thread, "pid": "CPU functions"}
            start = e.time_range.start
            remote = (
                {"tid": f'" node_id:{e.node_id}, thread_id:{e.thread} "'} if e.is_remote else {}
            )
            records.append(
                {"name": e.trace_name, "ph": "X", "ts": start, "dur": e.time_range.elapsed_us(),
                 **place, **remote, "args": {}}
            )  # fmt: skip
            for _ in e.kernels:
                records.append(
                    {"name": e.trace_name, "ph": "s", "ts": start, **place, "id": flows,
                     "cat": f"cpu_to_{device}", "args": {}}
                )  # fmt: skip
                flows += 1
        with open(path, "w", encoding="utf-8") as f:
            json.dump(records, f)

    def supported_export_stacks_metrics(self) -> list[str]:
        """What `export_stacks` can weigh stacks by."""
        return list(_METRICS)

    def export_stacks(self, path: str, metric: str) -> None:
        """Write a line for each call with a stack, `outermost;…;innermost count`: what flame graphs
        are drawn from. Needs events that were recorded with stacks."""
        if metric not in _METRICS:
            raise ValueError(f"metric should be one of: {_METRICS}")
        name = metric.replace("cuda", "device").replace("xpu", "device").replace(
            "privateuse1", "device"
        )  # fmt: skip
        blanks = str.maketrans(" ;\t\n", "____")
        with open(path, "w", encoding="utf-8") as f:
            for e in self:
                if e.stack:
                    n = int(getattr(e, name))
                    if n > 0:
                        f.write(";".join(s.translate(blanks) for s in reversed(e.stack)))
                        f.write(f" {n}\n")

    def key_averages(
        self,
        group_by_input_shapes: bool = False,
        group_by_stack_n: int = 0,
        group_by_overload_name: bool = False,
    ) -> EventList:
        """One entry for each name (also: for each kind of input shapes, for each top of the stack,
        for each overload)."""
        found: dict[Any, FunctionEventAvg] = {}
        for e in self:
            key = (
                str(e.key), str(e.node_id), str(e.device_type), str(e.is_legacy),
                str(e.is_user_annotation),
                str(e.overload_name) if group_by_overload_name else "",
                str(e.input_shapes) if group_by_input_shapes else "",
                *(e.stack[:group_by_stack_n] if group_by_stack_n > 0 else ()),
            )  # fmt: skip
            found.setdefault(key, FunctionEventAvg()).add(e)
        averages = EventList(
            found.values(),
            use_device=self._use_device,
            profile_memory=self._profile_memory,
            with_flops=self._with_flops,
        )
        for a in averages:
            a.stack = a.stack[:group_by_stack_n] if a.stack else a.stack
            if not group_by_input_shapes:
                a.input_shapes = ""
            if not group_by_overload_name:
                a.overload_name = ""
        return averages

    def total_average(self) -> FunctionEventAvg:
        """All calls together."""
        total = FunctionEventAvg()
        for e in self:
            total += e
            total.key = None
        total.key = "Total"
        return total


# ---- the table ----------------------------------------------------------------------------------


def _memory(nbytes: int) -> str:
    for power, unit in ((3, "GB"), (2, "MB"), (1, "KB")):
        if abs(nbytes) >= 1024**power:
            return f"{nbytes / 1024**power:.2f} {unit}"
    return f"{nbytes} B"


def _share(part: float, whole: float) -> str:
    if whole == 0:
        if part != 0:
            raise AssertionError(f"Expected time_us == 0 but got {part}")
        return "NaN"
    return f"{part * 100.0 / whole:.2f}%"


class _Table:
    """Columns are pairs of a head and a function of the event; they differ in width and side."""

    def __init__(
        self, events: EventList, sort_by: str | None, row_limit: int, widths: Sequence[Any],
        header: str | None, top_only: bool, unit: str | None,
    ) -> None:  # fmt: skip
        self.events, self.header, self.unit = events, header, unit
        rows = list(events)
        if sort_by is not None:
            name = sort_by.replace("cuda", "device").replace("xpu", "device").replace(
                "privateuse1", "device"
            )  # fmt: skip
            rows = sorted(events, key=lambda e: getattr(e, name), reverse=True)
        self.has_shapes = any(e.input_shapes for e in rows)
        self.has_overloads = any(e.overload_name for e in rows)
        self.has_stacks = any(e.stack for e in rows)
        self.has_nodes = any(e.node_id != -1 for e in rows)
        self.name_width, self.shapes_width, self.src_width = widths
        self.top_only = top_only
        if top_only:
            rows = [e for e in rows if e.cpu_parent is None]
        self.rows = rows if row_limit < 0 else rows[:row_limit]
        self.all_rows = list(events)
        self.device = events._use_device
        self.memory = events._profile_memory

    def _totals(self) -> tuple[float, float]:
        cpu = device = 0.0
        for e in self.events:
            cpu += e.self_cpu_time_total
            if e.device_type == DeviceType.CPU:
                if e.is_legacy:
                    device += e.self_device_time_total
            elif not e.is_user_annotation:
                device += e.self_device_time_total
        return cpu, device

    def _time(self, us: float) -> str:
        return format_time(us, self.unit)

    def _columns(self) -> list[tuple[str, int, Callable[[Any], str]]]:
        cpu, device_total = self._totals()
        columns: list[tuple[str, int, Callable[[Any], str]]] = []

        def column(head: str, cell: Callable[[Any], str]) -> None:
            columns.append((head, _COLUMN, cell))

        def timed(name: str) -> Callable[[Any], str]:
            return lambda e: self._time(getattr(e, name))

        column("Self CPU %", lambda e: _share(e.self_cpu_time_total, cpu))
        column("Self CPU", timed("self_cpu_time_total"))
        column(
            "CPU total %", lambda e: _share(e.cpu_time_total, cpu) if not e.is_async else "0.00%"
        )
        column("CPU total", timed("cpu_time_total"))
        column("CPU time avg", timed("cpu_time"))
        device = self.device.upper() if self.device else ""
        if device:
            column(f"Self {device}", timed("self_device_time_total"))
            column(f"Self {device} %", lambda e: _share(e.self_device_time_total, device_total))
            column(f"{device} total", timed("device_time_total"))
            column(f"{device} time avg", timed("device_time"))
        if self.memory:
            column("CPU Mem", lambda e: _memory(e.cpu_memory_usage))
            column("Self CPU Mem", lambda e: _memory(e.self_cpu_memory_usage))
            if device:
                column(f"{device} Mem", lambda e: _memory(e.device_memory_usage))
                column(f"Self {device} Mem", lambda e: _memory(e.self_device_memory_usage))
        column("# of Calls", lambda e: str(e.count))
        if self.has_nodes:
            column("Node ID", lambda e: str(e.node_id))
        return columns

    def _flops(self) -> tuple[str, Callable[[Any], str]] | None:
        raw = [e.flops for e in self.all_rows if e.flops is not None and e.flops > 0]
        if not self.events._with_flops:
            return None
        power = 0
        if raw:
            power = int(max(0, min(math.log10(min(raw)) // 3, 7)))
        unit = ("", "K", "M", "G", "T", "P", "E", "Z")[power]
        scale = 1000.0**power
        return (
            f"Total {unit}FLOPs",
            lambda e: "--" if e.flops is None or e.flops <= 0 else f"{e.flops / scale:8.3f}",
        )

    def _short(self, name: str) -> str:
        width = self.name_width
        if width is not None and len(name) >= width - 3:
            return name[: width - 3] + "..."
        return name

    def text(self) -> str:
        if not self.events:
            return ""
        longest = max((len(e.key) for e in self.all_rows), default=0) + 4
        name_width = longest if self.name_width is None else min(longest, self.name_width)
        # (head, width, cell, from the left)
        heads: list[tuple[str, int, Callable[[Any], str], bool]] = [
            ("Name", name_width, lambda e: self._short(e.key), False)
        ]
        heads += [(*c, False) for c in self._columns()]
        if self.has_overloads:
            heads.insert(1, ("Overload Name", name_width, lambda e: e.overload_name or "", False))
        if self.has_shapes:
            longest = max(len(str(e.input_shapes)) for e in self.all_rows) + 4
            limit = self.shapes_width
            width = longest if limit is None else min(longest, limit)
            heads.append(("Input Shapes", width, lambda e: str(e.input_shapes)[:width], False))
        src_width = 0
        if self.has_stacks:
            longest = max(max(len(s) for s in e.stack) for e in self.all_rows if e.stack) + 4
            src_width = longest if self.src_width is None else min(longest, self.src_width)
            heads.append(
                ("Source Location", src_width, lambda e: self._place(e, 0, src_width), True)
            )
        flops = self._flops()
        if flops is not None:
            heads.append((flops[0], _COLUMN, flops[1], False))

        def line(cells: Sequence[str]) -> str:
            parts = (
                c.ljust(w) if left else c.rjust(w)
                for c, (_, w, _, left) in zip(cells, heads, strict=True)
            )
            return "  ".join(parts) + "  "

        bar = "  ".join("-" * w for _, w, _, _ in heads) + "  "
        out = [bar, line([h for h, *_ in heads]), bar]
        rule = "=" * (len(bar) - 2)
        if self.top_only:
            out = [rule, "This report only display top-level ops statistics", *out]
        if self.header is not None:
            out = [rule, self.header, *out]
        for e in self.rows:
            out.append(line([cell(e) for _, _, cell, _ in heads]))
            if self.has_stacks:
                source = next(i for i, h in enumerate(heads) if h[0] == "Source Location")
                blank = [""] * len(heads)
                for i in range(1, len(e.stack or ())):
                    blank[source] = self._place(e, i, src_width)
                    out.append(line(blank))
                blank[source] = ""
                out.append(line(blank))
        out.append(bar)
        cpu, device = self._totals()
        out.append(f"Self CPU time total: {self._time(cpu)}")
        if self.device:
            out.append(f"Self {self.device.upper()} time total: {self._time(device)}")
        return "\n".join(out) + "\n"

    def _place(self, e: Any, i: int, width: int) -> str:
        if not e.stack or i >= len(e.stack):
            return ""
        s = str(e.stack[i])
        return s if len(s) <= width else "..." + s[3 - width :]


__all__ = ["EventList"]

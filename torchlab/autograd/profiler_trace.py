"""What a `Collector` collected as events, and as a trace for chrome://tracing or Perfetto.

The trace has the keys that PyTorch's has. Times in it are microseconds since
`baseTimeNanoseconds`.
"""

from __future__ import annotations

import gzip
import json
import os
import platform
from bisect import bisect_left, bisect_right
from typing import Any

from torchlab._core.backends import cuda as _gpus
from torchlab.autograd.profiler_events import DeviceType, FunctionEvent
from torchlab.autograd.profiler_tables import EventList
from torchlab.autograd.profiler_watch import BACKWARD, FUNCTION, USER, Collector, Record

_DEVICE_TYPES = {"cuda": DeviceType.CUDA, "xpu": DeviceType.XPU, "sim": DeviceType.PrivateUse1}


def _ordered(collector: Collector) -> list[Record]:
    """By the time they began, those around others first."""
    done = [r for r in collector.records if r.end]
    done.sort(key=lambda r: (r.start, -r.end))
    threads = {r.seq: r.thread for r in done if r.scope == FUNCTION and r.seq >= 0}
    for r in done:
        if r.scope == BACKWARD:
            r.forward_thread = threads.get(r.seq, 0)
    return done


class _Usage:
    """Bytes taken in an interval by a thread: sums from the beginning."""

    def __init__(self, collector: Collector, cpu: bool) -> None:
        self.threads: dict[int, tuple[list[int], list[int]]] = {}
        for m in sorted(collector.memories, key=lambda m: m.time):
            if (m.device == "cpu") == cpu:
                times, sums = self.threads.setdefault(m.thread, ([], [0]))
                times.append(m.time)
                sums.append(sums[-1] + m.bytes)

    def between(self, thread: int, start: int, end: int) -> int:
        if thread not in self.threads:
            return 0
        times, sums = self.threads[thread]
        return sums[bisect_right(times, end)] - sums[bisect_left(times, start)]


def _name(record: Record) -> str:
    """All steps of a schedule have one name."""
    return "ProfilerStep*" if record.name.startswith("ProfilerStep#") else record.name


def events_of(collector: Collector, device: str | None, memory: bool, flops: bool) -> EventList:
    """The events, the calls within each known."""
    records = _ordered(collector)
    cpu, other = _Usage(collector, True), _Usage(collector, False)
    numbers: dict[int, int] = {}
    found = []
    for i, r in enumerate(records):
        thread = numbers.setdefault(r.thread, len(numbers) + 1)
        forward = numbers.setdefault(r.forward_thread, len(numbers) + 1) if r.forward_thread else 0
        inputs = r.inputs
        e = FunctionEvent(
            id=i + 1, name=_name(r), trace_name=r.name, overload_name=r.overload, thread=thread,
            start_us=(r.start - collector.began) / 1e3, end_us=(r.end - collector.began) / 1e3,
            fwd_thread=forward, input_shapes=inputs.shapes if inputs else [],
            concrete_inputs=inputs.concrete if inputs else [], kwinputs={}, stack=r.stack,
            scope=r.scope, use_device=device, sequence_nr=r.seq, flops=r.flops,
            cpu_memory_usage=cpu.between(r.thread, r.start, r.end),
            device_memory_usage=other.between(r.thread, r.start, r.end),
            is_user_annotation=r.scope == USER, is_python_function=r.kind == "python_function",
            activity_type=r.kind, external_id=i + 1,
            structured_input_shapes=inputs.shapes if inputs else [],
            structured_input_strides=inputs.strides if inputs else [],
            input_dtypes=inputs.types if inputs else [],
        )  # fmt: skip
        found.append(e)
        if r.timers is not None and device is not None:
            _add_kernel(found, e, r, device)
    result = EventList(found, use_device=device, profile_memory=memory, with_flops=flops)
    result._build_tree()
    return result


def _add_kernel(found: list[FunctionEvent], e: FunctionEvent, r: Record, device: str) -> None:
    """What a call ran on the device, as an event there."""
    first, last = r.timers
    last.synchronize()
    us = _gpus.cupy.cuda.get_elapsed_time(first, last) * 1e3
    start = e.time_range.start
    kernel = FunctionEvent(
        id=e.id, name=r.name, thread=e.thread, start_us=start, end_us=start + us,
        use_device=device, device_type=_DEVICE_TYPES.get(device, DeviceType.PrivateUse1),
        input_shapes=[], stack=[], flops=0, trace_name=r.name, overload_name="",
        activity_type="kernel", linked_correlation_id=e.id,
    )  # fmt: skip
    e.append_kernel(r.name, 0, us)
    found.append(kernel)


# ---- the trace ----------------------------------------------------------------------------------


def trace_of(collector: Collector, facts: dict[str, Any], path: str) -> dict[str, Any]:
    """The whole trace. `facts`: what else stands at its top."""
    records = _ordered(collector)
    pid = os.getpid()

    def at(ns: int) -> float:
        return (ns - collector.began) / 1e3

    out: list[dict[str, Any]] = []
    out += _headings(pid, [r.thread for r in records], 0.0)
    forward: dict[int, Record] = {}
    for i, r in enumerate(records):
        args: dict[str, Any] = {"External id": i + 1, "Record function id": 0}
        if r.kind == "cpu_op" and r.seq >= 0:
            args |= {"Sequence number": r.seq, "Fwd thread id": r.forward_thread}
        if r.inputs is not None:
            args |= {
                "Concrete Inputs": r.inputs.concrete, "Input type": r.inputs.types,
                "Input Strides": r.inputs.strides, "Input Dims": r.inputs.shapes,
            }  # fmt: skip
        if r.stack:
            args["Call stack"] = ";".join(reversed(r.stack))
        args["Ev Idx"] = i
        place = {"pid": pid, "tid": r.thread}
        ts = at(r.start)
        out.append(
            {"ph": "X", "cat": r.kind, "name": r.name, **place, "ts": ts,
             "dur": (r.end - r.start) / 1e3, "args": args}
        )  # fmt: skip
        if r.scope == FUNCTION and r.seq >= 0:
            forward.setdefault(r.seq, r)
        elif r.scope == BACKWARD and r.seq in forward:
            f = forward[r.seq]
            arrow = {"id": r.seq, "pid": pid, "cat": "fwdbwd", "name": "fwdbwd"}
            out.append({"ph": "s", **arrow, "tid": f.thread, "ts": at(f.start)})
            out.append({"ph": "f", **arrow, "tid": r.thread, "ts": ts, "bp": "e"})
    total: dict[str, int] = {}
    for m in sorted(collector.memories, key=lambda m: m.time):
        total[m.device] = total.get(m.device, 0) + m.bytes
        kind, _, index = m.device.partition(":")
        out.append(
            {"ph": "i", "cat": "cpu_instant_event", "s": "t", "name": "[memory]", "pid": pid,
             "tid": m.thread, "ts": at(m.time),
             "args": {"Total Reserved": 0, "Total Allocated": total[m.device], "Bytes": m.bytes,
                      "Device Id": int(index or (-1 if kind == "cpu" else 0)),
                      "Device Type": int(_DEVICE_TYPES.get(kind, DeviceType.CPU)),
                      "Addr": m.address}}
        )  # fmt: skip
    whole = (collector.ended - collector.began) / 1e3
    out.append(
        {"ph": "X", "cat": "Trace", "ts": 0.0, "dur": whole, "pid": "Spans",
         "tid": "PyTorch Profiler", "name": "PyTorch Profiler (0)", "args": {"Op count": 0}}
    )  # fmt: skip
    for text, ts in (("Iteration Start: PyTorch Profiler", 0.0), ("Record Window End", whole)):
        row: dict[str, Any] = {"pid": "Traces", "tid": "Trace PyTorch Profiler"}
        if ts:
            row = {"pid": "", "tid": ""}
        out.append({"ph": "i", "s": "g", "name": text, **row, "ts": ts})
    return {
        "schemaVersion": 1, "deviceProperties": [], **facts, "host_name": platform.node(),
        "displayTimeUnit": "ms", "baseTimeNanoseconds": collector.wall, "traceEvents": out,
        "traceName": path,
    }  # fmt: skip


def _headings(pid: int, threads: list[int], ts: float) -> list[dict[str, Any]]:
    def told(what: str, tid: int, **args: Any) -> dict[str, Any]:
        return {"ph": "M", "name": what, "ts": ts, "pid": pid, "tid": tid, "args": args}

    found = [
        told("process_name", 0, name="python"),
        told("process_labels", 0, labels="CPU"),
        told("process_sort_index", 0, sort_index=pid),
    ]
    for thread in dict.fromkeys(threads):
        found.append(told("thread_name", thread, name=f"thread {thread} (python)"))
        found.append(told("thread_sort_index", thread, sort_index=thread))
    return found


def write_trace(trace: dict[str, Any], path: str) -> None:
    """Write it, compressed if the path says so."""
    if path.endswith(".gz"):
        with gzip.open(path, "wt", encoding="utf-8") as z:
            json.dump(trace, z)
        return
    with open(path, "w", encoding="utf-8") as f:
        json.dump(trace, f)


__all__ = ["events_of", "trace_of", "write_trace"]

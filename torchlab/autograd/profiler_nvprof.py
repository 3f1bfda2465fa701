"""`load_nvprof`: the trace that NVIDIA's nvprof wrote of a program under `emit_nvtx`.

The file is a SQLite database with CUPTI's tables: names (`StringTable`), NVTX ranges
(`CUPTI_ACTIVITY_KIND_MARKER`: two rows, the beginning with a name and the end with 0), runtime
calls and kernels, joined by their correlation id. A range's kernels are those that a runtime call
within it started.

Source: https://docs.pytorch.org/docs/2.13/generated/torch.autograd.profiler.load_nvprof.html,
https://docs.nvidia.com/cupti/api/index.html
"""

from __future__ import annotations

from contextlib import closing
from typing import Any

from torchlab._core.lazy import lazy
from torchlab.autograd.profiler_events import EnforceUnique, FunctionEvent, StringTable
from torchlab.autograd.profiler_tables import EventList

sqlite3 = lazy("sqlite3")
_LAUNCH = 211  # CUPTI's number of cudaLaunchKernel

_RANGES = """
    SELECT start.id AS marker_id, start.name AS name, start.timestamp AS start_time,
           stop.timestamp AS end_time
    FROM CUPTI_ACTIVITY_KIND_MARKER AS start
    INNER JOIN CUPTI_ACTIVITY_KIND_MARKER AS stop ON start.id = stop.id
    WHERE start.name != 0 AND stop.name = 0
"""
_KERNELS = """
    SELECT start.id AS marker_id, start.name AS name, start.timestamp AS start_time,
           stop.timestamp AS end_time, runtime._id_ AS runtime_id, runtime.cbid AS cbid,
           kernel.start AS kernel_start, kernel.end AS kernel_end, kernel.name AS kernel_name
    FROM CUPTI_ACTIVITY_KIND_MARKER AS start
    INNER JOIN CUPTI_ACTIVITY_KIND_MARKER AS stop ON start.id = stop.id
    INNER JOIN CUPTI_ACTIVITY_KIND_RUNTIME AS runtime
        ON start.timestamp < runtime.start AND stop.timestamp > runtime.end
    INNER JOIN CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL AS kernel
        ON kernel.correlationId = runtime.correlationId
"""


def parse_nvprof_trace(path: str) -> list[FunctionEvent]:
    """The ranges in a trace of nvprof, with the kernels that ran in each."""
    with closing(sqlite3.connect(path)) as db:
        db.row_factory = sqlite3.Row
        strings = StringTable()
        for row in db.execute("SELECT _id_ AS id, value FROM StringTable"):
            strings[row["id"]] = row["value"]
        found: list[FunctionEvent] = []
        by_marker: dict[Any, FunctionEvent] = {}
        seen = EnforceUnique()
        for row in db.execute(_RANGES):
            seen.see(row["marker_id"])
            e = FunctionEvent(
                id=row["marker_id"],
                node_id=0,
                name=strings[row["name"]],
                start_us=row["start_time"],
                end_us=row["end_time"],
                thread=0,
            )
            found.append(e)
            by_marker[e.id] = e
        seen = EnforceUnique()
        for row in db.execute(_KERNELS):
            seen.see(row["marker_id"], row["runtime_id"])
            if row["cbid"] != _LAUNCH:
                raise AssertionError(f"Expected cbid to be {_LAUNCH}, but got {row['cbid']}")
            by_marker[row["marker_id"]].append_kernel(
                row["kernel_name"], 0, row["kernel_end"] - row["kernel_start"]
            )
    found.sort(key=lambda e: e.time_range.start)
    return found


def load_nvprof(path: str) -> EventList:
    """The ranges of a trace of nvprof as a list of events."""
    return EventList(parse_nvprof_trace(path))


__all__ = ["load_nvprof", "parse_nvprof_trace"]

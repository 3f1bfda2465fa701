"""`autograd.profiler_util`: the events of the profiler and their lists, under PyTorch's path."""

from __future__ import annotations

from torchlab.autograd.profiler_events import (
    DeviceType,
    FormattedTimesMixin,
    FunctionEvent,
    FunctionEventAvg,
    Interval,
    Kernel,
    MemRecordsAcc,
    StringTable,
)
from torchlab.autograd.profiler_tables import EventList

__all__ = [
    "DeviceType", "EventList", "FormattedTimesMixin", "FunctionEvent", "FunctionEventAvg",
    "Interval", "Kernel", "MemRecordsAcc", "StringTable",
]  # fmt: skip

"""The public name space `torchlab.profiler`.

Source: https://docs.pytorch.org/docs/2.13/profiler.html
"""

from __future__ import annotations

from torchlab.autograd.profiler import KinetoStepTracker, record_function
from torchlab.autograd.profiler_events import DeviceType
from torchlab.profiler import itt, modules
from torchlab.profiler.execution_trace import ExecutionTraceObserver
from torchlab.profiler.handlers import tensorboard_trace_handler
from torchlab.profiler.profiler import profile
from torchlab.profiler.schedules import (
    ProfilerAction,
    ProfilerActivity,
    schedule,
    supported_activities,
)


def kineto_available() -> bool:
    """Whether traces can be recorded. They can, without Kineto."""
    return True


__all__ = [
    "DeviceType", "ExecutionTraceObserver", "KinetoStepTracker", "ProfilerAction",
    "ProfilerActivity", "itt", "kineto_available", "modules", "profile", "record_function",
    "schedule", "supported_activities", "tensorboard_trace_handler",
]  # fmt: skip

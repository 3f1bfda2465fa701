"""`torch.utils.benchmark`: timing statements, and tables of the times.

Source: https://docs.pytorch.org/docs/2.13/benchmark_utils.html
"""

from __future__ import annotations

from torchlab.utils.benchmark.common import (
    Measurement,
    TaskSpec,
    ordered_unique,
    select_unit,
    set_torch_threads,
    trim_sigfig,
    unit_to_english,
)
from torchlab.utils.benchmark.compare import Colorize, Compare
from torchlab.utils.benchmark.timer import Language, Timer, timer

__all__ = [
    "Colorize",
    "Compare",
    "Language",
    "Measurement",
    "TaskSpec",
    "Timer",
    "ordered_unique",
    "select_unit",
    "set_torch_threads",
    "timer",
    "trim_sigfig",
    "unit_to_english",
]

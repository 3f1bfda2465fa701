"""`torch.utils.benchmark`: how long statements take, with statistics, and tables to compare.

    t = benchmark.Timer("x @ x", globals={"x": torch.rand(100, 100)}, label="matmul")
    print(t.blocked_autorange())

Instruction counts (`Timer.collect_callgrind`) and statements in C++ are missing.

Source: https://docs.pytorch.org/docs/2.13/benchmark_utils.html
"""

from torchlab.utils.benchmark.utils.common import (
    Measurement,
    TaskSpec,
    ordered_unique,
    select_unit,
    set_torch_threads,
    trim_sigfig,
    unit_to_english,
)
from torchlab.utils.benchmark.utils.compare import Colorize, Compare
from torchlab.utils.benchmark.utils.timer import Language, Timer, timer

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

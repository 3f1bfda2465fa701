"""Capture: from a Python call to a *segment*: a graph, the guards under which it holds, and how to
run it.

Here capture runs the function once on fake tensors (`fake`), after reading its code for what the
run
cannot see (`scan`). What replaces it later only has to make `Segment`s.
"""

from torchlab.compiler.capture.breaks import Break
from torchlab.compiler.capture.capture import STATE, capture, environment
from torchlab.compiler.capture.segment import Captured, Guards, Segment, arguments_key

__all__ = [
    "Break",
    "Captured",
    "Guards",
    "STATE",
    "Segment",
    "arguments_key",
    "capture",
    "environment",
]

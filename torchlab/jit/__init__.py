"""`torch.jit`: functions and modules as TorchScript's language, or as the calls that they make.

    @torch.jit.script
    def clipped(x, low: float, high: Optional[float] = None):
        return x.clamp(low, high)

    traced = torch.jit.trace(model, torch.rand(1, 3, 224, 224))

A script runs as Python. What it gives is what the language promises: the source is checked when the
script is made, and the arguments' types when it is called. A trace runs the calls that an example
made. Neither makes anything faster; `torch.compile` does. PyTorch deprecates TorchScript. `save`,
`load` and its archives, `freeze` and `optimize_for_inference` are missing: use `torch.export`.

Source: https://docs.pytorch.org/docs/2.13/jit.html
"""

from torchlab.jit import annotations, frontend
from torchlab.jit._interfaces import Attribute, interface
from torchlab.jit._overloads import _overload, _overload_method
from torchlab.jit._state import export, ignore, is_scripting, is_tracing, unused
from torchlab.jit.forking import Future, fork, wait
from torchlab.jit.functions import Error, ScriptFunction
from torchlab.jit.modules import RecursiveScriptModule, ScriptModule
from torchlab.jit.scripting import (
    Final,
    ScriptWarning,
    annotate,
    isinstance,
    script,
    script_if_tracing,
)
from torchlab.jit.tracing import trace, trace_module
from torchlab.jit.tracing_check import TracingCheckError
from torchlab.jit.tracing_modules import TopLevelTracedModule, TracedModule
from torchlab.jit.tracing_tensors import TracerWarning

__all__ = [
    "Attribute",
    "Error",
    "Final",
    "Future",
    "RecursiveScriptModule",
    "ScriptFunction",
    "ScriptModule",
    "ScriptWarning",
    "TopLevelTracedModule",
    "TracedModule",
    "TracerWarning",
    "TracingCheckError",
    "_overload",
    "_overload_method",
    "annotate",
    "annotations",
    "export",
    "fork",
    "frontend",
    "ignore",
    "interface",
    "is_scripting",
    "is_tracing",
    "isinstance",
    "script",
    "script_if_tracing",
    "trace",
    "trace_module",
    "unused",
    "wait",
]

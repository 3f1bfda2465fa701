"""`torch.jit.script`: functions and modules that keep to TorchScript's language, run as Python.

    @torch.jit.script
    def clipped(x, low: float, high: Optional[float] = None):
        return x.clamp(low, high)

What it gives here is what the language promises: the source is checked when the script is made, and
the arguments' types when it is called. It makes nothing faster; `torch.compile` does. PyTorch
deprecates TorchScript. `trace`, `save`, `load` and `freeze` are missing: use `torch.export`.

Source: https://docs.pytorch.org/docs/2.13/jit.html
"""

from torchlab.jit import frontend
from torchlab.jit._state import export, ignore, is_scripting, is_tracing, unused
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

__all__ = [
    "Error",
    "Final",
    "RecursiveScriptModule",
    "ScriptFunction",
    "ScriptModule",
    "ScriptWarning",
    "annotate",
    "export",
    "frontend",
    "ignore",
    "is_scripting",
    "is_tracing",
    "isinstance",
    "script",
    "script_if_tracing",
    "unused",
]

"""Debug mode: what both runs did, operator by operator, when they differ."""

from __future__ import annotations

import os
import sys
from contextlib import AbstractContextManager
from typing import Any, NoReturn

from torchlab._core.pytree import tree_leaves
from torchlab._core.tensor import Tensor
from torchlab.utils._python_dispatch import TorchDispatchMode
from torchlab.utils.checkpoint._region import CheckpointError

_INTERNAL = tuple(
    os.path.join(os.path.dirname(os.path.dirname(os.path.dirname(__file__))), part)
    for part in ("_core", os.path.join("utils", "_python_dispatch"))
)
_SHORT = {
    "float32": "f32", "float64": "f64", "float16": "f16", "bfloat16": "bf16", "int64": "i64",
    "int32": "i32", "int16": "i16", "int8": "i8", "uint8": "u8", "bool": "b8", "complex64": "c64",
    "complex128": "c128",
}  # fmt: skip


def _frame(title: str) -> str:
    bar = "~" * 78
    return f"+{bar}+\n|{title:<78}|\n+{'-' * 78}+\n"


class _Log(TorchDispatchMode):
    """Writes down every operator with the stack that called it."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []
        self.stacks: list[list[str]] = []
        self.names: dict[int, str] = {}
        self.alive: list[Tensor] = []  # names go by id: an id must not come back

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        given = [self._text(a) for a in args] + [f"{k}={self._text(v)}" for k, v in kwargs.items()]
        out = func(*args, **kwargs)
        results = [t for t in tree_leaves(out) if isinstance(t, Tensor)]
        left = ", ".join(f"{self._name(t)}: {_kind(t)}" for t in results) or "None"
        name = f"{func.namespace}.{func.__name__}"
        self.lines.append(f"{left} = torch._ops.{name}({', '.join(given)})")
        self.stacks.append(_stack())
        return out

    def _name(self, t: Tensor) -> str:
        found = self.names.get(id(t))
        if found is None:
            found = self.names[id(t)] = f"${len(self.names)}"
            self.alive.append(t)
        return found

    def _text(self, x: Any) -> str:
        if isinstance(x, Tensor):
            return self._name(x)
        if isinstance(x, (list, tuple)):
            return f"[{', '.join(self._text(y) for y in x)}]"
        return repr(x)

    def told(self, which: str) -> str:
        """Every operator with its stack."""
        n = len(self.lines)
        return "".join(
            f"{line}   ({i} of {n} in {which})\n\n" + "".join(stack) + "\n\n"
            for i, (line, stack) in enumerate(zip(self.lines, self.stacks, strict=True), 1)
        )


def _kind(t: Tensor) -> str:
    return f"{_SHORT.get(t.dtype.name, t.dtype.name)}[{', '.join(str(n) for n in t.shape)}]"


def _stack() -> list[str]:
    """The Python functions that led here, the innermost first, without the dispatcher's own."""
    found = []
    f = sys._getframe(2)
    while f is not None:
        code = f.f_code
        if not code.co_filename.startswith((*_INTERNAL, "<")):
            found.append(f"{code.co_filename}:{f.f_lineno}:{code.co_name}\n")
        f = f.f_back  # type: ignore[assignment]
    return found


class Recorder:
    """The logs of both runs, and the error that tells them."""

    def __init__(self) -> None:
        self.first = _Log()
        self.again = _Log()

    def contexts(self) -> tuple[AbstractContextManager[Any], AbstractContextManager[Any]]:
        """What `context_fn` returns in debug mode."""
        return self.first, _Restarted(self)

    def fail(self, error: CheckpointError) -> NoReturn:
        """The error again, with both logs."""
        raise CheckpointError(
            " An error happened while unpacking tensors; dumping logs of latest computation\n"
            "because you passed `debug=True` to `torch.utils.checkpoint.checkpoint()`.\n"
            "Scroll all the way down for guidance on how to navigate these logs.\n\n"
            + _frame("        1. Stack traces of the operators that ran in the original forward")
            + "\n"
            + self.first.told("original")
            + _frame("        2. Stack traces of the operators that ran during recomputation")
            + "\n"
            + self.again.told("recompute")
            + _frame("       3. Log of operators in the original forward and recomputation")
            + _HOW_TO_COMPARE
            + "Operations executed during the original forward:\n\n"
            + "".join(line + "\n" for line in self.first.lines)
            + "\nOperations executed during recomputation:\n\n"
            + "".join(line + "\n" for line in self.again.lines)
            + _GUIDE
        ) from error


class _Restarted(AbstractContextManager[Any]):
    """The log of the second run starts anew each time that run does."""

    def __init__(self, recorder: Recorder) -> None:
        self.recorder = recorder

    def __enter__(self) -> Any:
        self.recorder.again = _Log()
        return self.recorder.again.__enter__()

    def __exit__(self, *exc: object) -> None:
        self.recorder.again.__exit__(*exc)


_HOW_TO_COMPARE = """\
(Scroll up to correlate stack traces with each operation listed below. This
 helps identify their source in the code.)

IMPORTANT: Differences in "detach" calls between the original forward and the
           recomputation are expected. They are introduced by the checkpointing
           mechanism and can be ignored.

"""

_GUIDE = f"""
+{"-" * 78}+
 ERROR: Detected non-determinism while running activation checkpointing

 You are seeing this error because you passed `debug=True` to checkpoint and
 tensors to be saved during the original forward and differ between those saved
 during recomputation. This can happen if different operators were ran in the
 original forward and in the recomputation.

 To identify where the mismatch may be coming from, you can do the following:

 1) Compare the operators ran during original forward and recomputation to
    see where they differ. These operators are printed above in the order they
    were executed.

 2) Review the stack trace for each operator to locate its invocation source.
    Each operator's stack trace is printed in their execution order.

 Note that the logs can be quite long. Here's how they are structured:
 (Tip: you can Ctrl-f for these headers)

 1. Stack traces of the operators that ran in the original forward
 2. Stack traces of the operators that ran during recomputation
 3. Log of operators in the original forward and recomputation
 4. Error message                                             <--- You are here
{"-" * 80}
"""

__all__ = ["Recorder"]

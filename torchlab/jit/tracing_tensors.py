"""The tensors that a traced program sees, and the warnings for what a trace cannot follow.

A `TracedTensor` stands for a plain tensor. Whatever is asked of it (an operator, a method, its
shape) is handed to the thread's recorder, which runs it on the plain tensor and notes it. Sizes are
tensors without dimensions, as in PyTorch's traces: what is computed from them is noted as well, and
stays right for inputs of other sizes.

Source: https://docs.pytorch.org/docs/2.13/generated/torch.jit.trace.html
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterator
from typing import Any

from torchlab._core.tensor import Tensor
from torchlab.fx.immutable_collections import immutable_dict
from torchlab.jit._state import STATE
from torchlab.overrides import DisableTorchFunction

_PACKAGE = __name__.partition(".")[0]

_CONVERTED = (
    "Converting a tensor to a Python {} might cause the trace to be incorrect. We can't record the"
    " data flow of Python values, so this value will be treated as a constant in the future. This"
    " means that the trace might not generalize to other inputs!"
)
NUMPY = _CONVERTED.replace("Python {}", "NumPy array")
LEN = (
    "Using len to get tensor shape might cause the trace to be incorrect. Recommended usage would"
    " be tensor.shape[0]. Passing a tensor of different shape might lead to errors or silently give"
    " incorrect results."
)
ITERATED = (
    "Iterating over a tensor might cause the trace to be incorrect. Passing a tensor of different"
    " shape won't change the number of iterations executed (and might lead to errors or silently"
    " give incorrect results)."
)
CONSTANT = (
    "torch.{} results are registered as constants in the trace. You can safely ignore this warning"
    " if you use this function to create tensors out of constant variables that would be the same"
    " every time you call this function. In any other case, this might cause the trace to be"
    " incorrect."
)
READS = {
    "item": "number", "__complex__": "number", "__bool__": "boolean", "is_nonzero": "boolean",
    "equal": "boolean", "allclose": "boolean", "__int__": "integer", "__float__": "float",
    "tolist": "list", "__contains__": "number", "_local_scalar_dense": "number",
}  # fmt: skip
"""Functions that read data into Python, and what they make of it."""


class TracerWarning(Warning):
    """A trace depends on something that it could not record."""

    @staticmethod
    def ignore_lib_warnings() -> None:
        """Ignore those that torchlab's own lines cause."""
        warnings.filterwarnings("ignore", category=TracerWarning, module=rf"{_PACKAGE}\..*")


def place() -> tuple[str, int]:
    """The user's line that is running: (file, line)."""
    f: Any = sys._getframe(1)
    while f is not None:
        name = f.f_globals.get("__name__", "")
        own = name == _PACKAGE or name.startswith(f"{_PACKAGE}.")
        if not own and not f.f_code.co_filename.startswith("<"):
            return f.f_code.co_filename, f.f_lineno
        f = f.f_back
    return "<unknown>", 0


def warn(text: str) -> None:
    """A TracerWarning at the user's line."""
    file, line = place()
    warnings.warn_explicit(text, TracerWarning, file, line)


def converted(to: str) -> None:
    """Warn that a tensor's data became a Python value."""
    warn(_CONVERTED.format(to))


class TracedTensor(Tensor):
    """A tensor in a traced program; its recorder knows the plain one."""

    @classmethod
    def __torch_function__(
        cls, func: Callable[..., Any], types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        recorder = STATE.recorder
        if recorder is not None:
            return recorder.call(func, args, kwargs or {})
        with DisableTorchFunction():  # kept by somebody after the trace has ended
            return func(*mapped(args, plain), **mapped(kwargs or {}, plain))

    def __iter__(self) -> Iterator[Any]:
        if STATE.recorder is not None:
            warn(ITERATED)
        return iter(self.unbind(0))

    def __reversed__(self) -> Any:
        return self.flip(0) if self.ndim else self

    def __repr__(self, **kwargs: Any) -> str:  # type: ignore[override]
        with DisableTorchFunction():
            return repr(plain(self))

    __str__ = __repr__


def plain(x: Any) -> Any:
    """The tensor that a TracedTensor stands for; anything else itself."""
    return x.__dict__["_stands_for"] if type(x) is TracedTensor else x


def standing_for(t: Tensor) -> TracedTensor:
    """A new TracedTensor for a plain tensor."""
    with DisableTorchFunction():
        made = t.detach().as_subclass(TracedTensor)
    made.__dict__["_stands_for"] = t
    return made


def mapped(x: Any, fn: Callable[[Any], Any]) -> Any:
    """`x` with `fn` of everything in it that is no list, tuple, dict or slice; containers stay of
    their kind."""
    if isinstance(x, tuple):
        parts = [mapped(v, fn) for v in x]
        if hasattr(x, "_fields"):
            return type(x)._make(parts)  # type: ignore[attr-defined]
        if type(x) is tuple:
            return tuple(parts)
        return tuple.__new__(type(x), parts)
    if isinstance(x, list):
        return [mapped(v, fn) for v in x]
    if isinstance(x, dict):
        made = {k: mapped(v, fn) for k, v in x.items()}
        return made if type(x) in (dict, immutable_dict) else type(x)(made)
    if type(x) is slice:
        return slice(mapped(x.start, fn), mapped(x.stop, fn), mapped(x.step, fn))
    return fn(x)


def leaves(x: Any) -> list[Any]:
    """What `mapped` would visit."""
    found: list[Any] = []
    mapped(x, found.append)
    return found


__all__ = [
    "TracedTensor", "TracerWarning", "converted", "leaves", "mapped", "place", "plain",
    "standing_for", "warn",
]  # fmt: skip

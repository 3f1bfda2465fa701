"""What is replaced while a trace is made, and put back at the end.

Operators ask the classes of their arguments, so a recorder hears of them. The public functions that
are Python above operators do not all ask, and they read sizes in ways that nobody hears of. While a
trace is made their bodies are replaced by ones that hand the whole call to the recorder, wherever
the program has the function from. Other threads run what they always run.

Source: https://docs.pytorch.org/docs/2.13/generated/torch.jit.trace.html
"""

from __future__ import annotations

import functools
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FunctionType
from typing import Any

from torchlab import autograd
from torchlab import functional as torch_functional
from torchlab._core.dispatch import generate
from torchlab._core.dispatch.generate.source import NAMESPACE
from torchlab._core.dispatch.op import Op
from torchlab.autograd import api as autograd_api
from torchlab.autograd import functional as autograd_functional
from torchlab.autograd.function import Function
from torchlab.func import tracking
from torchlab.fx._patches import Patcher
from torchlab.jit._state import STATE
from torchlab.jit.tracing_tensors import TracedTensor, leaves
from torchlab.nn import functional as nn_functional

_NOT = frozenset(
    """
    assert_int_or_pair boolean_dispatch handle_torch_function has_torch_function check_ints
    has_torch_function_unary has_torch_function_variadic reduction_number
    """.split()
)
_lock = threading.RLock()
_patcher = Patcher()
_depth = 0


def _told(fn: Callable[..., Any]) -> Callable[..., Any]:
    """`fn`, whose calls are noted whole."""

    @functools.wraps(fn)
    def call(*args: Any, **kwargs: Any) -> Any:
        recorder = STATE.recorder
        if recorder is None or recorder.inside:
            return fn(*args, **kwargs)
        return recorder.call(fn, args, kwargs)

    call.__dict__["_told_of"] = fn
    return call


def _bodies() -> None:
    """Replace the bodies of the public functions that have been generated."""
    for key, value in list(NAMESPACE.items()):
        if key.startswith("FACE_") and isinstance(value, FunctionType):
            if "_told_of" not in value.__dict__ and "_default_" not in key:
                _patcher.put_item(NAMESPACE, key, _told(value))


def _generated(face: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(face)
    def make(*args: Any, **kwargs: Any) -> Any:
        made = face(*args, **kwargs)
        with _lock:
            if _depth:
                _bodies()
        return made

    return make


def _own_functions(module: Any) -> None:
    for name, fn in list(module.__dict__.items()):
        if (
            isinstance(fn, FunctionType)
            and "_told_of" not in fn.__dict__
            and not name.startswith("_")
            and name not in _NOT
        ):
            _patcher.put_item(module.__dict__, name, _told(fn))


def _apply() -> None:
    """Calls of a user's `autograd.Function` are noted whole, so that its backward stays."""
    whole = Function.__dict__["apply"].__func__

    def apply(cls: Any, *args: Any, **kwargs: Any) -> Any:
        recorder = STATE.recorder
        if recorder is None or recorder.inside:
            return whole(cls, *args, **kwargs)
        return recorder.record(cls.apply, args, kwargs, "apply")

    _patcher.put(Function, "apply", classmethod(apply))


def _written() -> None:
    """Calls with `out=`, which ask nobody."""
    form = Op.__dict__["out"].fget
    of_face = NAMESPACE["face_out"]

    def out(self: Any) -> Any:
        recorder = STATE.recorder
        call = form(self)
        if recorder is None or recorder.inside:
            return call
        return lambda *args, out: recorder.record(call, args, {"out": out}, self.name)

    def face_out(face: Any, args: Any, named: Any, out: Any) -> Any:
        recorder = STATE.recorder
        if recorder is None or recorder.inside:
            return of_face(face, args, named, out)
        return recorder.record(of_face, (face, args, named, out), {}, face.name)

    _patcher.put(Op, "out", property(out))
    _patcher.put_item(NAMESPACE, "face_out", face_out)


def _refused(table: dict[str, Any], name: str, what: str) -> None:
    """A function that a trace cannot contain: it says so when it is given tensors of the trace."""
    fn = table[name]

    @functools.wraps(fn)
    def call(*args: Any, **kwargs: Any) -> Any:
        recorder = STATE.recorder
        if recorder is not None and not recorder.inside:
            if any(type(x) is TracedTensor for x in leaves((args, kwargs))):
                raise recorder.refused(f"`{what}`")
        return fn(*args, **kwargs)

    _patcher.put_item(table, name, call)


@contextmanager
def patched() -> Iterator[None]:
    """The replacements are in place until the end of `with`, for all that are in one."""
    global _depth
    with _lock:
        _depth += 1
        if _depth == 1:
            _bodies()
            _patcher.put(generate, "face", _generated(generate.face))
            _own_functions(nn_functional)
            _own_functions(torch_functional)
            package = sys.modules[__name__.partition(".")[0]]
            _patcher.put_item(package.__dict__, "from_numpy", _told(package.from_numpy))
            _apply()
            _written()
            for name in ("grad", "backward"):
                _refused(autograd.__dict__, name, f"torch.autograd.{name}")
                _refused(autograd_api.__dict__, name, f"torch.autograd.{name}")
            _refused(tracking.__dict__, "stand_in", "torch.func")
            for name in ("jacobian", "hessian", "jvp", "vjp", "hvp", "vhp"):
                _refused(autograd_functional.__dict__, name, f"torch.autograd.functional.{name}")
    try:
        yield
    finally:
        with _lock:
            _depth -= 1
            if _depth == 0:
                _patcher.revert()


__all__ = ["patched"]

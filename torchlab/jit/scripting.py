"""`script` itself, and the words that scripts are written with.

Source: https://docs.pytorch.org/docs/2.13/jit.html#torchscript-language
"""

from __future__ import annotations

import builtins
import functools
import types
import typing
from collections.abc import Callable
from typing import Any

from torchlab.jit import _types
from torchlab.jit._state import is_tracing, mark_of
from torchlab.jit.functions import ScriptFunction
from torchlab.jit.modules import ScriptModule, scripted_module
from torchlab.nn.module import Module

Final = typing.Final


class ScriptWarning(Warning):
    """Something in a script is not what it seems."""


def script(
    obj: Any,
    optimize: None = None,
    _frames_up: int = 0,
    _rcb: Callable[[str], Any] | None = None,
    example_inputs: Any = None,
) -> Any:
    """A function or a module as a script; classes of plain data stay what they are.

    Raises `torch.jit.frontend.UnsupportedNodeError` (and shows the place) for Python that is no
    TorchScript, RuntimeError for unknown names, TypeError for what is no function, class or module.
    """
    if builtins.isinstance(obj, ScriptModule) or builtins.isinstance(obj, ScriptFunction):
        return obj
    if builtins.isinstance(obj, Module):
        return scripted_module(obj, {})
    if builtins.isinstance(obj, types.MethodType):
        raise RuntimeError(f"{obj.__qualname__} is a method: script its module instead")
    if builtins.isinstance(obj, types.FunctionType):
        if mark_of(obj) in ("ignored", "unused"):
            return obj
        return ScriptFunction(obj, {})
    if builtins.isinstance(obj, type):
        if obj.__module__ == "builtins":
            raise TypeError(f"{obj} is a built-in class")
        if issubclass(obj, Module):
            raise RuntimeError(
                f"Type '{obj.__name__}' cannot be compiled since it inherits from nn.Module,"
                " consider passing an instance instead"
            )
        return obj
    raise TypeError(f"{type(obj)} is a built-in class" if _plain(obj) else f"cannot script {obj!r}")


def _plain(obj: Any) -> bool:
    return type(obj).__module__ == "builtins"


def annotate(the_type: Any, the_value: Any) -> Any:
    """`the_value`; says to a reader (and to TorchScript) that it is of `the_type`."""
    return the_value


def isinstance(obj: Any, target_type: Any) -> bool:
    """`isinstance` that looks into containers: `isinstance([1], List[int])`."""
    targets = target_type if type(target_type) is tuple else (target_type,)
    for t in targets:
        try:
            if _types.cast(obj, t) is obj:
                return True
        except _types.Mismatch:
            continue
    return False


def script_if_tracing(fn: Callable[..., Any]) -> Any:
    """`fn`, which becomes a script when a trace first calls it: so its branches and loops stay."""
    made: list[Any] = []

    @functools.wraps(fn)
    def call(*args: Any, **kwargs: Any) -> Any:
        if not is_tracing():
            return fn(*args, **kwargs)
        if not made:
            made.append(script(fn))
        return made[0](*args, **kwargs)

    return call


__all__ = ["Final", "ScriptWarning", "annotate", "isinstance", "script", "script_if_tracing"]

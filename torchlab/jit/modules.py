"""Modules whose methods are scripts.

A scripted module has the parameters, buffers and attributes of its original (the same tensors), its
submodules scripted, and as methods `forward`, what `forward` calls on `self`, what is marked with
`export` or `ignore`, and nothing else. The modules of `torch.nn` keep their own methods.

Source: https://docs.pytorch.org/docs/2.13/generated/torch.jit.ScriptModule.html
"""

from __future__ import annotations

import ast
import copy
import types
from typing import Any

from torchlab.jit._state import mark_of, outside
from torchlab.jit.frontend import Source
from torchlab.jit.functions import ScriptFunction, _never
from torchlab.nn.module import Module

_PACKAGE = __name__.partition(".")[0]
_OWN = frozenset(Module().__dict__)  # what every module has: not the user's attributes


class ScriptModule(Module):
    """What all scripted modules are."""


class RecursiveScriptModule(ScriptModule):
    """A module scripted with all that is in it; `torch.jit.script` makes it."""

    original_name: str

    def __init__(self, original: Module, known: dict[Any, Any]) -> None:
        super().__init__()
        known[original] = self
        self.training = original.training
        self._parameters.update(original._parameters)
        self._buffers.update(original._buffers)
        self._non_persistent_buffers_set.update(original._non_persistent_buffers_set)
        for hooks in ("_forward_hooks", "_forward_pre_hooks", "_state_dict_hooks"):
            getattr(self, hooks).update(getattr(original, hooks))
        for key, value in original.__dict__.items():
            if key not in _OWN:
                self.__dict__[key] = value
        self.__dict__["_original"] = type(original)
        self.__dict__["original_name"] = type(original).__name__
        for name, child in original._modules.items():
            self._modules[name] = None if child is None else scripted_module(child, known)
        self.__dict__["_methods"] = {} if _is_ours(original) else _methods(original, known)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        return self._method("forward")(*args, **kwargs)

    def _method(self, name: str) -> Any:
        found = self._methods.get(name)
        if found is None and (self._original.__module__ or "").partition(".")[0] == _PACKAGE:
            found = getattr(self._original, name, None)
        if found is None:
            raise AttributeError(f"'RecursiveScriptModule' object has no attribute '{name}'")
        return found.__get__(self) if hasattr(found, "__get__") else types.MethodType(found, self)

    def __getattr__(self, name: str) -> Any:
        try:
            return super().__getattr__(name)
        except AttributeError:
            if "_methods" not in self.__dict__:  # being copied
                raise
            value = getattr(self._original, name, None)
            if isinstance(value, property):
                return value.__get__(self)
            if value is None or callable(value):
                return self._method(name)
            return value

    def _get_name(self) -> str:
        return "RecursiveScriptModule"

    def extra_repr(self) -> str:
        return f"original_name={self.original_name}"

    def __reduce_ex__(self, protocol: Any) -> Any:
        raise RuntimeError(
            f"Tried to serialize object __torch__.{self.original_name}: a scripted module holds"
            " functions that a file cannot. Save its state_dict, and script the module again."
        )

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        made = memo[id(self)] = type(self).__new__(type(self))
        shared = ("_methods", "_original", "original_name")
        for key, value in self.__dict__.items():
            made.__dict__[key] = value if key in shared else copy.deepcopy(value, memo)
        return made


def _special(name: str) -> Any:
    def call(self: Any, *args: Any) -> Any:
        found = getattr(self._original, name, None)
        if found is None:
            raise TypeError(f"{self.original_name} has no {name}")
        return found(self, *args)

    call.__name__ = name
    return call


for _name in ("__iter__", "__len__", "__getitem__", "__contains__"):  # of containers
    setattr(RecursiveScriptModule, _name, _special(_name))
RecursiveScriptModule.__bool__ = lambda self: True  # type: ignore[attr-defined]


def _is_ours(m: Module) -> bool:
    return (type(m).__module__ or "").partition(".")[0] == _PACKAGE


def scripted_module(m: Module, known: dict[Any, Any]) -> Any:
    """`m` as a script; a module that is met twice becomes one, scripts and traces stay."""
    if isinstance(m, ScriptModule):
        return m
    return known[m] if m in known else RecursiveScriptModule(m, known)


def _methods(m: Module, known: dict[Any, Any]) -> dict[str, Any]:
    """The methods of a user's module that are scripts, and those that are left as Python."""
    cls = type(m)
    found: dict[str, Any] = {}
    wanted = ["forward"] if cls.forward is not Module.forward else []
    for name in dir(cls):
        value: Any = getattr(cls, name, None)
        mark = mark_of(value) if isinstance(value, types.FunctionType) else None
        if mark == "exported":
            wanted.append(name)
        elif mark is not None:
            found[name] = outside(value) if mark == "ignored" else _never(value)
    while wanted:
        name = wanted.pop()
        if name in found:
            continue
        fn = getattr(cls, name)
        owner = (fn.__module__ or "").partition(".")[0]
        if owner == _PACKAGE:  # inherited from a module of torch.nn
            found[name] = fn
            continue
        found[name] = known.get((cls, name)) or ScriptFunction(fn, known, cls.__name__)
        known[cls, name] = found[name]
        wanted += _called(m, fn)
    return found


def _called(m: Module, fn: Any) -> list[str]:
    """The methods that a method asks of `self`; raises an error for what `self` has not got."""
    source = Source(fn)
    arguments = source.tree.args.posonlyargs + source.tree.args.args
    if not arguments:
        return []
    own = arguments[0].arg
    found = []
    for node in ast.walk(source.tree):
        if not (
            isinstance(node, ast.Attribute)
            and isinstance(node.value, ast.Name)
            and node.value.id == own
            and isinstance(node.ctx, ast.Load)
        ):
            continue
        if not hasattr(m, node.attr):
            raise RuntimeError(
                f"\nModule '{type(m).__name__}' has no attribute '{node.attr}' :\n"
                + source.place(node)
            )
        if isinstance(getattr(type(m), node.attr, None), types.FunctionType):
            if node.attr not in Module.__dict__:
                found.append(node.attr)
    return found


__all__ = ["RecursiveScriptModule", "ScriptModule", "scripted_module"]

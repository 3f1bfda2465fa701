"""How graphs and generated code call things: callables by where a program finds them, types as
one writes them.
"""

from __future__ import annotations

import builtins
import functools
import sys
import types
import typing
from typing import Any

from torchlab._core.dispatch import registry
from torchlab._core.dispatch.written import BUILTIN_NN, PYTHON_FUNCTIONS
from torchlab.nn import modules as nn_modules

_PACKAGE = __name__.partition(".")[0]

# Functions of these name spaces are built-in ones in PyTorch, whose names say where they are bound.
_BUILTIN_SPACES = {
    "linalg": ("_C._linalg", "linalg_"),
    "fft": ("_C._fft", "fft_"),
    "special": ("_C._special", "special_"),
}


def callable_name(fn: Any) -> str:
    """The short name of a callable; declarations of operators have theirs in `name`."""
    return getattr(fn, "__name__", None) or (
        fn.name if hasattr(fn, "schema") else type(fn).__name__
    )


def _resolves(dotted: str, value: Any) -> bool:
    at: Any = sys.modules.get(_PACKAGE)
    for part in dotted.split("."):
        at = getattr(at, part, None)
        if at is None:
            return False
    return bool(at is value)


def space_of(fn: Any) -> tuple[str, str] | None:
    """(name space, public name) of a generated function of torchlab's; None for others."""
    if not registry.is_generated(fn):
        return None
    name = callable_name(fn)
    for space, names in registry.FUNCTIONS.items():
        prefix = space.replace(".", "_") + "_"
        for public in (name, name.removeprefix(prefix)):
            if public in names and registry.function(public, space) is fn:
                return space, public
    return None


@functools.cache
def _file_of(cls: type) -> str | None:
    """The file of PyTorch's `nn.modules` in which a class of modules is."""
    for file in nn_modules._files():
        if vars(getattr(nn_modules, file)).get(cls.__name__) is cls:
            return file
    return None


def torch_path(obj: Any) -> str | None:
    """`torch.<path>` at which a program finds one of torchlab's own objects; None for others."""
    where = space_of(obj)
    if where is not None:
        space, name = where
        if space == "torch":
            if name in PYTHON_FUNCTIONS and _resolves(f"functional.{name}", obj):
                return f"torch.functional.{name}"
            return f"torch.{name}"
        if space == "nn.functional" and name in BUILTIN_NN:
            dotted = f"_C._nn.{BUILTIN_NN[name]}"
            if _resolves(dotted, obj):
                return f"torch.{dotted}"
        if space in _BUILTIN_SPACES:
            bound, prefix = _BUILTIN_SPACES[space]
            if _resolves(f"{bound}.{prefix}{name}", obj):
                return f"torch.{bound}.{prefix}{name}"
        return f"torch.{space}.{name}"
    module = getattr(obj, "__module__", None)
    if not isinstance(module, str) or module.partition(".")[0] != _PACKAGE:
        return None
    name = getattr(obj, "__qualname__", None) or callable_name(obj)
    inner = module.partition(".")[2]
    if isinstance(obj, type) and inner.startswith("nn."):
        file = _file_of(obj)
        if file is not None:
            return f"torch.nn.modules.{file}.{name}"
    if not isinstance(obj, type):  # functions by the shortest path, as PyTorch's modules have them
        parts = inner.split(".")
        for i in range(1, len(parts)):
            if _resolves(f"{'.'.join(parts[:i])}.{name}", obj):
                return f"torch.{'.'.join(parts[:i])}.{name}"
    for dotted in (f"{inner}.{name}" if inner and "_core" not in inner else name, name):
        if _resolves(dotted, obj):
            return f"torch.{dotted}"
    return f"torch.{inner}.{name}" if inner and _resolves(f"{inner}.{name}", obj) else None


def bound_name(fn: Any) -> str:
    """The short name of a callable as PyTorch binds it: `fft_fft` for `torch.fft.fft`."""
    if registry.is_generated(fn):
        path = torch_path(fn)
        if path is not None and path.startswith("torch._C."):
            return path.rpartition(".")[2]
    return callable_name(fn)


def _get_qualified_name(func: Any) -> str:
    """The dotted name under which a callable is found: `torch.relu`, `_operator.add`, `len`."""
    name = callable_name(func)
    if getattr(builtins, name, None) is func:
        return name
    if hasattr(func, "_qualified_op_name"):  # all overloads of an operator
        return f"torch.ops.{func}"
    if hasattr(func, "schema"):
        return f"torch.ops.{func}"
    if isinstance(func, (types.MethodDescriptorType, types.WrapperDescriptorType)):
        return f"{func.__objclass__.__module__}.{func.__qualname__}"
    found = torch_path(func)
    if found is not None:
        return found
    module = getattr(func, "__module__", None) or ""
    return f"{module}.{name}" if module else name


def pretty_target(target: Any) -> str:
    """A target as `str(graph)` and tables show it."""
    if isinstance(target, str):
        return target
    module = getattr(target, "__module__", None)
    name = callable_name(target)
    if module == "builtins":
        return f"builtins.{name}"
    if module == "_operator":
        return f"operator.{name}"
    return _get_qualified_name(target)


def _type_repr(obj: Any) -> str:
    """A type as one writes it: `int`, `torch.Tensor`, `typing.List[int]`."""
    if isinstance(obj, type) and not isinstance(obj, types.GenericAlias):
        if obj.__module__ == "builtins":
            return obj.__qualname__
        return torch_path(obj) or f"{obj.__module__}.{obj.__qualname__}"
    if obj is ...:
        return "..."
    if isinstance(obj, types.FunctionType):
        return obj.__name__
    args = typing.get_args(obj)
    if args and not isinstance(obj, types.UnionType):
        name = getattr(obj, "_name", None) or getattr(obj, "__name__", None)
        origin = typing.get_origin(obj)
        if isinstance(obj, types.GenericAlias):
            head = _type_repr(origin)
        elif origin is typing.Union and type(None) in args and len(args) == 2:
            inner = next(a for a in args if a is not type(None))
            return f"typing.Optional[{_type_repr(inner)}]"
        else:
            head = f"typing.{name}"
        if name not in ("Callable", "Literal"):
            return f"{head}[{', '.join(map(_type_repr, args))}]"
    return repr(obj)

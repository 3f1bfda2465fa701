"""What is replaced while a program is traced, and put back at the end.

Note [Functions that do not ask]
~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
PyTorch's functions all ask the classes of their arguments (`__torch_function__`), so proxies see
every call. torchlab's ask while a mode is on, or when the program has a class of tensors that
overrides (Note [Functions that ask] in torchlab._core.dispatch.watching); a proxy is neither. Then
operators ask, and public functions whose first argument is a tensor, but the functions of
`nn.functional` that are written in Python above operators do not, nor do functions of sizes or of
several tensors (`ones`, `einsum`). And an operator that asks hands on what differs from the
defaults, not what was written. So all of them are replaced for the time of a trace by ones that
make a node. Calls of functions that PyTorch has in Python are noted as PyTorch notes them: required
arguments by position, the others by name with their defaults; those of others as they are written.
A name that a program has imported (`from torch import cat`) is not replaced; there the operator
asks.
"""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable
from types import FunctionType
from typing import Any

from torchlab import functional as torch_functional
from torchlab._core.dispatch import registry
from torchlab._core.dispatch.generate.source import NAMESPACE
from torchlab._core.dispatch.written import (
    AS_WRITTEN,
    CALLED_AS_WRITTEN,
    EQUATION,
    IN_FULL,
    PYTHON_FUNCTIONS,
    Layout,
    layout,
)
from torchlab.fx.proxy import find_proxy
from torchlab.nn import functional

_PACKAGE = __name__.partition(".")[0]
_NO_FUNCTIONS = frozenset(
    """
    assert_int_or_pair boolean_dispatch handle_torch_function has_torch_function
    has_torch_function_unary has_torch_function_variadic
    """.split()
)
_ALIASES = ("sigmoid", "tanh")  # PyTorch's call the method, which a proxy notes


class Patcher:
    """Replacements, and how to take them back."""

    def __init__(self) -> None:
        self._undo: list[Callable[[], None]] = []
        self._seen: set[int] = set()

    def put(self, owner: Any, name: str, value: Any) -> None:
        """Replace an attribute of a class or a module."""
        before = owner.__dict__.get(name, self)
        setattr(owner, name, value)
        if before is self:  # inherited
            self._undo.append(lambda: delattr(owner, name))
        else:
            self._undo.append(lambda: setattr(owner, name, before))

    def put_item(self, table: dict[str, Any], name: str, value: Any) -> None:
        """Replace an entry of a table of globals; what is not in it yet goes again."""
        if name in table:
            before = table[name]
            self._undo.append(lambda: table.__setitem__(name, before))
        else:
            self._undo.append(lambda: table.__delitem__(name))
        table[name] = value

    def seen(self, thing: Any) -> bool:
        """Whether this was asked before of the same object."""
        if id(thing) in self._seen:
            return True
        self._seen.add(id(thing))
        return False

    def revert(self) -> None:
        """Take everything back, the last first."""
        while self._undo:
            self._undo.pop()()


def whole_functions(patcher: Patcher) -> None:
    """Let the functions that do not ask become nodes when a proxy is among their arguments."""
    own = {
        name
        for name, fn in functional.__dict__.items()
        if isinstance(fn, FunctionType)
        and fn.__module__ == functional.__name__
        and not registry.is_generated(fn)
        and not name.startswith("_")
    }
    names = (own | registry.FUNCTIONS["nn.functional"] | {*_ALIASES}) - _NO_FUNCTIONS
    _replace(patcher, functional.__dict__, names, names - CALLED_AS_WRITTEN)
    package = sys.modules[_PACKAGE].__dict__
    names = registry.FUNCTIONS["torch"] | {"_assert"}
    in_full = {name for name in names if layout("torch", name) != AS_WRITTEN}
    _replace(patcher, package, names, in_full)
    _replace(patcher, torch_functional.__dict__, PYTHON_FUNCTIONS, in_full)
    for name, face in registry.FACES.items():
        key = f"FACE_{name}"
        if (
            key in NAMESPACE  # it has been called; asking others for their function would make it
            and hasattr(face, "body")
            and face.name == name
            and face.function is not face.body
        ):
            patcher.put_item(NAMESPACE, key, _whole(name, face.body, False, face.function))


def _replace(patcher: Patcher, table: dict[str, Any], names: Any, in_full: Any) -> None:
    """Replace the functions with these names in a module; those that the module makes when they
    are first asked for, when they are."""
    for name in names:
        fn = table.get(name)
        if isinstance(fn, FunctionType):
            patcher.put_item(table, name, _whole(name, fn, name in in_full))
    lazily = table["__getattr__"]

    def look_up(name: str) -> Any:
        value = lazily(name)
        if name not in names or not isinstance(value, FunctionType):
            return value
        made = _whole(name, value, name in in_full)
        patcher.put_item(table, name, made)
        return made

    patcher.put_item(table, "__getattr__", look_up)


class _Whole:
    """A function, but a node if a proxy is among its arguments. It equals the function, so that
    what runs during a trace may compare targets with it."""

    def __init__(self, name: str, fn: Any, in_full: bool, target: Any) -> None:
        functools.update_wrapper(self, fn)
        self.name, self.fn, self.in_full = name, fn, in_full
        self.target = fn if target is None else target

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        found = find_proxy((args, kwargs))
        if found is None:
            return self.fn(*args, **kwargs)
        if self.name in _ALIASES and self.in_full:
            return getattr(args[0], self.name)()
        target = self.target
        if self.in_full:
            how = EQUATION if self.name == "einsum" else IN_FULL
            args, kwargs = Layout(how, _signature(target)).of(args, kwargs)
            if self.name in _SIGNATURES and kwargs.get("return_indices") is True:
                target = getattr(functional, f"{self.name}_with_indices").target
        return found.tracer.create_proxy("call_function", target, args, kwargs)

    def __eq__(self, other: object) -> bool:
        return self is other or other is self.target

    def __hash__(self) -> int:
        return hash(self.target)


@functools.cache
def _whole(name: str, fn: Any, in_full: bool, target: Any = None) -> _Whole:
    return _Whole(name, fn, in_full, target)


def _pool(
    input: Any,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    dilation: Any = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> None:
    """Only for its signature."""


_SIGNATURES = {f"max_pool{d}d": inspect.signature(_pool) for d in (1, 2, 3)}


@functools.cache
def _signature(fn: Any) -> inspect.Signature:
    own = _SIGNATURES.get(fn.__name__) if fn.__module__ == functional.__name__ else None
    return inspect.signature(fn) if own is None else own

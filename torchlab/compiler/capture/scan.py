"""What a function may read or do beside its tensors, found in its code before it is run.

The capture's run on fake tensors sees operators, not Python: so everything the code can reach by
name
(globals, closures, attributes of modules and objects, functions it calls) is entered into the
guards, and
code that writes to something outside, prints, or draws numbers is refused with its line.
"""

from __future__ import annotations

import builtins
import dis
import functools
import sys
import types
from collections.abc import Iterator
from typing import Any

from torchlab._core.tensor import Tensor
from torchlab.autograd.function import Function
from torchlab.compiler.capture.breaks import Break
from torchlab.compiler.capture.segment import SCALARS, Guards
from torchlab.nn.module import Module

_EFFECTS = {
    "STORE_ATTR": "sets an attribute",
    "DELETE_ATTR": "deletes an attribute",
    "STORE_GLOBAL": "sets a global",
    "DELETE_GLOBAL": "deletes a global",
    "STORE_SUBSCR": "assigns to an item",
    "DELETE_SUBSCR": "deletes an item",
    "YIELD_VALUE": "yields",
    "STORE_SLICE": "assigns to a slice",
}
_BUILTINS = frozenset(
    (
        "print input open exec eval compile globals locals vars breakpoint id hash setattr "
        "delattr __import__"
    ).split()
)
_MODULES = frozenset(
    (
        "random time os sys logging datetime secrets uuid warnings threading subprocess "
        "socket inspect gc"
    ).split()
)
_NAMES = {
    **dict.fromkeys(("backward", "grad"), "differentiates"),
    **dict.fromkeys(
        ("manual_seed", "seed", "initial_seed", "get_rng_state", "set_rng_state", "fork_rng"),
        "uses the random state",
    ),
    **dict.fromkeys(("register_hook", "register_forward_hook", "retain_grad"), "registers a hook"),
    **dict.fromkeys(
        ("requires_grad_", "set_default_dtype", "set_default_device", "data"),
        "changes what is recorded",
    ),
    **dict.fromkeys(("item", "tolist", "numpy", "data_ptr"), "reads a tensor's values"),
    **dict.fromkeys(("breakpoint", "set_trace", "_getframe"), "inspects frames"),
}
_EMPTY_TABLES = (
    "_backward_pre_hooks",
    "_backward_hooks",
    "_forward_hooks",
    "_forward_pre_hooks",
    "_forward_hooks_with_kwargs",
)
_LIBRARY = frozenset(sys.stdlib_module_names) | {"torchlab", "numpy", "scipy"}


def scan(root: Any, guards: Guards, arguments: Any = ()) -> None:
    """Enter all that `root` (a function, method or module) and its arguments may read into
    `guards`.

    Raises:
        Break: it may do what a graph cannot repeat.
    """
    s = _Scan(guards)
    s.visit(root, getattr(root, "__name__", type(root).__name__))
    for x in arguments:
        if isinstance(x, Module) or callable(x) and hasattr(x, "__code__"):
            guards.cells.append(
                (types.CellType(x), x, "an argument")
            )  # keeps it alive, so that its id stays its own
            s.visit(x, "an argument")
    s.finish()


class _Scan:
    def __init__(self, guards: Guards) -> None:
        self.guards = guards
        self.seen: set[int] = set()
        self.keep: list[Any] = []
        self.names: set[str] = {"forward"}
        self.classes: list[tuple[type, str]] = []
        self.modules: list[tuple[types.ModuleType, str]] = []
        self.done: set[tuple[int, str]] = set()

    def once(self, x: Any) -> bool:
        if id(x) in self.seen:
            return False
        self.seen.add(id(x))
        self.keep.append(x)
        return True

    def entry(self, table: Any, key: Any, what: str) -> None:
        value = table[key]
        self.guards.entries.append((table, key, value, what))
        self.visit(value, what)

    def finish(self) -> None:
        """Classes and modules: only the names that some code mentions; new code brings new
        names.
        """
        before = -1
        while before != len(self.done) + len(self.names):
            before = len(self.done) + len(self.names)
            for cls, what in list(self.classes):
                for c in cls.__mro__:
                    if not _library(c.__module__):
                        self.named(c.__dict__, f"{what}", id(c))
            for module, what in list(self.modules):
                self.named(module.__dict__, what, id(module))

    def named(self, table: Any, what: str, owner: int) -> None:
        for name in list(self.names):
            if name in table and (owner, name) not in self.done:
                self.done.add((owner, name))
                value = table[name]
                for f in (value, getattr(value, "__func__", None), getattr(value, "fget", None)):
                    if isinstance(f, types.FunctionType):
                        self.function(f)
                if isinstance(table, dict):
                    self.entry(table, name, f"{what}.{name}")
                elif isinstance(value, SCALARS) or not callable(value):
                    # type: ignore[arg-type]
                    self.guards.entries.append((table, name, value, f"{what}.{name}"))
                    self.visit(value, f"{what}.{name}")

    # ---- values ----------------------------------------------------------------------------------

    def visit(self, x: Any, what: str) -> None:
        if isinstance(x, SCALARS) or isinstance(x, Tensor) or not self.once(x):
            return
        if isinstance(x, Module):
            self.module(x, what)
        elif isinstance(x, types.FunctionType):
            if not _library(x.__module__):
                self.function(x)
        elif isinstance(x, types.MethodType):
            self.visit(x.__self__, what)
            self.visit(x.__func__, what)
        elif isinstance(x, types.ModuleType):
            name = x.__name__.partition(".")[0]
            if not _library(name):
                self.modules.append((x, x.__name__))
        elif isinstance(x, type):
            if issubclass(x, Function):
                raise Break(f"{what} is a custom autograd Function; its forward is not traced")
            if not _library(x.__module__):
                self.classes.append((x, x.__name__))
                self.names.add("__init__")
        elif isinstance(x, (list, tuple, set, frozenset)):
            if not isinstance(x, (tuple, frozenset)):
                self.guards.copies.append((x, type(x)(x), what))
            for i, y in enumerate(x):
                self.visit(y, f"{what}[{i}]")
        elif isinstance(x, dict):
            self.guards.sizes.append((x, len(x), what))
            for k in list(x):
                self.entry(x, k, f"{what}[{k!r}]")
        elif isinstance(x, functools.partial):
            for y in (x.func, *x.args, *x.keywords.values()):
                self.visit(y, what)
        elif isinstance(getattr(x, "__dict__", None), dict) and not _library(type(x).__module__):
            for k in list(x.__dict__):
                self.entry(x.__dict__, k, f"{what}.{k}")
            self.classes.append((type(x), type(x).__name__))
            self.names.update(("__call__", "__getattr__", "__getitem__"))
        elif not callable(x) and not _library(type(x).__module__):
            raise Break(f"{what} is a {type(x).__name__}, whose state cannot be watched")

    def module(self, m: Module, what: str) -> None:
        for name in _EMPTY_TABLES:
            if m.__dict__.get(name):
                raise Break(f"{what} ({type(m).__name__}) has hooks")
            self.guards.sizes.append((m.__dict__[name], 0, f"{what}.{name}"))
        for name, value in list(m.__dict__.items()):
            if name in ("_parameters", "_buffers", "_modules"):
                self.guards.sizes.append((value, len(value), f"{what}.{name}"))
                for k in list(value):
                    self.entry(value, k, f"{what}.{k}")
            elif not name.startswith("_") or (
                isinstance(value, SCALARS) and name != "_is_full_backward_hook"
            ):
                self.entry(m.__dict__, name, f"{what}.{name}")
        if not _library(type(m).__module__):
            self.classes.append((type(m), type(m).__name__))

    # ---- code ------------------------------------------------------------------------------------

    def function(self, f: types.FunctionType) -> None:
        if getattr(f, "_torchlab_disable", False):
            raise Break(
                f"{f.__name__} is marked with torch.compiler.disable",
                f"{f.__code__.co_filename}:{f.__code__.co_firstlineno}",
            )
        if (id(f.__code__), "") in self.done:
            return
        self.done.add((id(f.__code__), ""))
        self.keep.append(f)
        for cell, name in zip(f.__closure__ or (), f.__code__.co_freevars, strict=True):
            try:
                value = cell.cell_contents
            except ValueError:
                continue
            if name != "__class__":
                self.guards.cells.append((cell, value, name))
                self.visit(value, name)
        for value in (*(f.__defaults__ or ()), *(f.__kwdefaults__ or {}).values()):
            self.visit(value, f"a default of {f.__name__}")
        inner = getattr(f, "__wrapped__", None)
        if inner is not None:
            self.visit(inner, f.__name__)
        for code in _codes(f.__code__):
            self.code(code, f)

    def code(self, code: types.CodeType, f: types.FunctionType) -> None:
        line = code.co_firstlineno
        for i in dis.get_instructions(code):
            found = i.positions.lineno if i.positions is not None else None
            line = found if found is not None else line
            where = f"{code.co_filename}:{line}"
            if i.opname in _EFFECTS and not (i.opname == "YIELD_VALUE" and code is not f.__code__):
                if i.opname == "STORE_ATTR" and f.__name__ == "__init__":
                    continue
                raise Break(f"{f.__name__} {_EFFECTS[i.opname]}", where)
            if i.opname == "STORE_DEREF" and i.argval in f.__code__.co_freevars:
                raise Break(f"{f.__name__} sets the outer variable '{i.argval}'", where)
            if i.opname == "IMPORT_NAME" and i.argval.partition(".")[0] in _MODULES:
                raise Break(f"{f.__name__} imports {i.argval}", where)
            if i.opname in ("LOAD_GLOBAL", "LOAD_NAME") and isinstance(i.argval, str):
                self.load_global(i.argval, f, where)
            elif i.opname in ("LOAD_ATTR", "LOAD_METHOD") and isinstance(i.argval, str):
                if i.argval in _NAMES:
                    raise Break(f"{f.__name__} {_NAMES[i.argval]} (.{i.argval})", where)
                self.names.add(i.argval)

    def load_global(self, name: str, f: types.FunctionType, where: str) -> None:
        table = f.__globals__
        if name not in table:
            if name in _BUILTINS:
                raise Break(f"{f.__name__} calls {name}()", where)
            if hasattr(builtins, name):
                return
            raise Break(f"{f.__name__} reads the global '{name}', which does not exist", where)
        value = table[name]
        if isinstance(value, types.ModuleType) and value.__name__.partition(".")[0] in _MODULES:
            raise Break(f"{f.__name__} uses the module {value.__name__}", where)
        if getattr(value, "__module__", None) in _MODULES and callable(value):
            raise Break(f"{f.__name__} calls {value.__module__}.{name}", where)
        if (id(table), name) not in self.done:
            self.done.add((id(table), name))
            self.entry(table, name, name)


def _library(module: str | None) -> bool:
    return (module or "builtins").partition(".")[0] in _LIBRARY


def _codes(code: types.CodeType) -> Iterator[types.CodeType]:
    yield code
    for c in code.co_consts:
        if isinstance(c, types.CodeType):
            yield from _codes(c)

"""Which module is running: names by a global hook, while somebody records."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from torchlab._core.tensor import Tensor
from torchlab.nn.modules.module import (
    register_module_forward_hook,
    register_module_forward_pre_hook,
)


@dataclass(frozen=True, slots=True)
class Call:
    """A module that is running: its path ('encoder.layers.0'), and what it is called in its place
    ('layers.0: Layer'; '' for the model itself)."""

    module: weakref.ref[Any]
    path: str
    label: str


class Trail(threading.local):
    """The modules that a thread is in, outermost first."""

    def __init__(self) -> None:
        self.stack: list[Call] = []


class ModuleTrail:
    """Follows module calls; `here()` says where the calling thread is.

    Names are those of `root.named_modules()` where the model is given, else those that the calling
    module knows its children by, below the class name of the outermost. A module's second call is a
    place of its own ('cell: Cell (2)'), so that a loop is not drawn as a cycle. Parameters are
    named when their module is called.
    """

    def __init__(self, root: Any, name_parameter: Callable[[str, Tensor], None]) -> None:
        self._trail = Trail()
        self._name_parameter = name_parameter
        self._handles: list[Any] = []
        self._calls: dict[str, int] = {}
        self._names: dict[int, tuple[weakref.ref[Any], str]] = {}
        if hasattr(root, "named_modules"):
            self._names = {id(m): (weakref.ref(m), name) for name, m in root.named_modules()}

    def start(self) -> None:
        """Hook into the calls of all modules."""
        self._handles = [
            register_module_forward_pre_hook(self._enter),
            register_module_forward_hook(self._leave, always_call=True),
        ]

    def stop(self) -> None:
        """Take the hooks out."""
        for handle in self._handles:
            handle.remove()
        self._handles = []

    def again(self) -> None:
        """A new forward: calls count from one again."""
        self._calls.clear()

    def here(self) -> tuple[str, list[str]]:
        """The path of the running module, and the labels of all that it is in."""
        stack = self._trail.stack
        return (stack[-1].path, [c.label for c in stack if c.label]) if stack else ("", [])

    def _enter(self, module: Any, args: Any) -> None:
        stack = self._trail.stack
        path = self._path(module, stack[-1] if stack else None)
        base = stack[-1].path if stack else ""
        name = path.removeprefix(f"{base}.") if base else path
        kind = type(module).__name__
        label = f"{name}: {kind}" if name else ""
        if not name and (stack or id(module) not in self._names):
            label = kind
        if label:
            key = "/".join([*(c.label for c in stack), label])
            count = self._calls[key] = self._calls.get(key, 0) + 1
            label = f"{label} ({count})" if count > 1 else label
        # The outermost names all in it: some parameters are used without a call of their module.
        inside = module.named_parameters() if not stack else module._parameters.items()
        for key, parameter in inside:
            if parameter is not None:
                self._name_parameter(f"{path}.{key}" if path else key, parameter)
        stack.append(Call(weakref.ref(module), path, label))

    def _path(self, module: Any, parent: Call | None) -> str:
        found = self._names.get(id(module))
        if found is not None and found[0]() is module:
            return found[1]
        path = ""
        owner = parent.module() if parent is not None else None
        if parent is not None and owner is not None:
            for name, child in owner.named_modules():
                if child is module and name:
                    path = f"{parent.path}.{name}" if parent.path else name
                    break
            self._names[id(module)] = (weakref.ref(module), path)
        return path

    def _leave(self, module: Any, args: Any, result: Any) -> None:
        stack = self._trail.stack
        while stack:
            if stack.pop().module() is module:
                return

"""`torch.utils.module_tracker`: which modules are running, forward or backward.

Source: https://docs.pytorch.org/docs/2.13/module_tracker.html
"""

from __future__ import annotations

import weakref
from typing import Any

from torchlab._core.pytree import tree_leaves
from torchlab._core.tensor import Tensor
from torchlab.autograd.graph import register_multi_grad_hook
from torchlab.autograd.variable import Variable
from torchlab.nn.module import Module
from torchlab.nn.modules.module import (
    register_module_forward_hook,
    register_module_forward_pre_hook,
)

_ROOT = "Global"


class ModuleTracker:
    """While the block runs, `parents` is the set of the names of the modules that are running, as
    in a state dict, behind the class of the outermost one, and "Global"; `is_bw` tells whether
    their backward is.

    The backward of a module begins when the gradients of its outputs are there, and ends when
    those of its inputs are.
    """

    def __init__(self) -> None:
        self.parents: set[str] = {_ROOT}
        self._names: weakref.WeakKeyDictionary[Module, str] = weakref.WeakKeyDictionary()
        self._known: weakref.WeakSet[Module] = weakref.WeakSet()
        self._hooks: list[Any] = []
        self._waits = False
        self._backward = False

    @property
    def is_bw(self) -> bool:
        """Whether the backward is running."""
        return self._backward

    def _name(self, module: Module) -> str:
        if module not in self._known:
            self._known.add(module)
            own = self._names.setdefault(module, type(module).__name__)
            for name, child in module.named_children():
                self._names[child] = f"{own}.{name}"
                self._name(child)
        return self._names[module]

    def _enter(self, name: str, backward: bool) -> None:
        if backward and not self._waits:  # the outermost backward of this pass
            Variable._execution_engine.queue_callback(self._end_of_backward)
            self._waits = True
            self.parents = {_ROOT}
        self._backward = backward
        self.parents.add(name)

    def _end_of_backward(self) -> None:
        self.parents, self._waits, self._backward = {_ROOT}, False, False

    def _leave(self, name: str) -> None:
        self.parents.discard(name)

    def _before(self, module: Module, args: Any) -> None:
        name = self._name(module)
        self._backward = False
        self.parents.add(name)
        inputs = _with_history(args)
        if inputs:
            self._hooks.append(register_multi_grad_hook(inputs, lambda grads: self._leave(name)))

    def _after(self, module: Module, args: Any, result: Any) -> None:
        name = self._name(module)
        self._leave(name)
        outputs = _with_history(result)
        if outputs:
            self._hooks.append(
                register_multi_grad_hook(outputs, lambda grads: self._enter(name, True))
            )

    def __enter__(self) -> ModuleTracker:
        self._handles = [
            register_module_forward_pre_hook(self._before),
            register_module_forward_hook(self._after, always_call=True),
        ]
        return self

    def __exit__(self, *error: object) -> None:
        for handle in (*self._handles, *self._hooks):
            handle.remove()
        self._hooks.clear()


def _with_history(values: Any) -> list[Tensor]:
    return [t for t in tree_leaves(values) if isinstance(t, Tensor) and t.requires_grad]


__all__ = ["ModuleTracker"]

"""Writing to tensors that the tape has saved: the old value is copied first.

Source: https://docs.pytorch.org/docs/2.13/autograd.html#torch.autograd.graph.allow_mutation_on_saved_tensors
"""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from torchlab._core.dispatch import python_key
from torchlab._core.dispatch.registry import aten
from torchlab._core.tape import storage_of
from torchlab._core.tensor import Tensor
from torchlab.autograd.packing import saved_tensors_hooks


class _Saved:
    """A saved tensor: the memory it had, or a copy from before the first write to it."""

    __slots__ = ("tensor", "owner", "__weakref__")

    def __init__(self, tensor: Tensor, owner: _AllowMutationOnSavedContext) -> None:
        self.tensor: Tensor | None = tensor
        self.owner = owner


class _AllowMutationOnSavedContext:
    """What `allow_mutation_on_saved_tensors` keeps while it is on."""

    def __init__(self) -> None:
        self._saved: weakref.WeakKeyDictionary[Any, list[Any]] = weakref.WeakKeyDictionary()
        self._every: weakref.WeakSet[_Saved] = weakref.WeakSet()

    def clear(self) -> None:
        """Forget everything; a graph recorded before cannot be run backward any more."""
        for saved in list(self._every):
            saved.tensor = None
        self._saved.clear()

    def _pack(self, t: Tensor) -> _Saved:
        saved = _Saved(aten.detach(t), self)
        self._every.add(saved)
        self._saved.setdefault(storage_of(t), []).append(weakref.ref(saved))
        return saved

    def _unpack(self, saved: _Saved) -> Tensor:
        if saved.tensor is None:
            raise AssertionError(
                "Trying to backward outside of the 'allow_mutation_on_saved_tensors' context in"
                " which the graph was originally recorded."
            )
        return saved.tensor

    def _before_write(self, t: Tensor) -> None:
        for ref in self._saved.pop(storage_of(t), ()):
            saved = ref()
            if saved is not None and saved.tensor is not None:
                saved.tensor = aten.clone(saved.tensor)


class _CopyBeforeWrite:
    """The mode that sees every write before it is done."""

    below_autograd = True

    def __init__(self, context: _AllowMutationOnSavedContext) -> None:
        self.context = context

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        named = kwargs or {}
        for i, a in enumerate(func._schema.arguments):
            if a.alias_info is None or not a.alias_info.is_write:
                continue
            value = args[i] if i < len(args) else named.get(a.name)
            for t in value if isinstance(value, (list, tuple)) else (value,):
                if isinstance(t, Tensor):
                    self.context._before_write(t)
        return func(*args, **named)


_active: list[bool] = []


@contextmanager
def allow_mutation_on_saved_tensors() -> Iterator[_AllowMutationOnSavedContext]:
    """Inside, a tensor that the tape has saved may be written in place: its value from before is
    copied first. Forward and backward must both run inside."""
    if _active:
        raise RuntimeError("allow_mutation_on_saved_tensors contexts cannot be nested")
    context = _AllowMutationOnSavedContext()
    mode = _CopyBeforeWrite(context)
    with saved_tensors_hooks(context._pack, context._unpack):
        _active.append(True)
        python_key.on(mode)
        try:
            yield context
        finally:
            python_key.off(mode)
            _active.pop()
            context.clear()


__all__ = ["allow_mutation_on_saved_tensors"]

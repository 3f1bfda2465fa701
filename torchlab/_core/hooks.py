"""The hooks of a node of the tape, and the handle that takes one back.

Source: https://docs.pytorch.org/docs/2.13/notes/autograd.html#backward-hooks-execution
"""

from __future__ import annotations

import weakref
from itertools import count
from typing import Any


class HookDict(dict):  # a plain dict cannot be referenced weakly
    __slots__ = ("__weakref__",)


_ids = count()


def _skip_id(used: int) -> None:
    """Give no later hook an id that came out of another process."""
    global _ids
    _ids = count(max(next(_ids), used + 1))


class RemovableHandle:
    """What registering a hook returns: `remove()` takes the hook back; also a context manager."""

    def __init__(self, hooks_dict: Any, *, extra_dict: Any = None) -> None:
        self.id = next(_ids)
        self._hooks = weakref.ref(hooks_dict)
        more = extra_dict if isinstance(extra_dict, (list, tuple)) else (extra_dict,)
        self._extra = tuple(weakref.ref(e) for e in more if e is not None)

    def remove(self) -> None:
        """Forget the hook; calling it again does nothing."""
        for ref in (self._hooks, *self._extra):
            table = ref()
            if table is not None:
                table.pop(self.id, None)

    def __getstate__(self) -> Any:
        # The tables themselves: they are copied and pickled once, with the module that has them.
        return self._hooks(), self.id, tuple(ref() for ref in self._extra)

    def __setstate__(self, state: Any) -> None:
        hooks, self.id, *more = state  # PyTorch once wrote two entries
        self._hooks = weakref.ref(HookDict() if hooks is None else hooks)
        self._extra = tuple(weakref.ref(e) for e in (more and more[0]) or () if e is not None)
        _skip_id(self.id)

    def __enter__(self) -> RemovableHandle:
        return self

    def __exit__(self, *exc: object) -> None:
        self.remove()


RemovableHandle.__module__ = "torchlab.utils.hooks"  # where files name it


class Hooks:
    """The hooks of a node: `tensor` by output number, `pre`, `post`, `accumulated`, `retain`."""

    __slots__ = ("tensor", "pre", "post", "accumulated", "retain")

    def __init__(self) -> None:
        self.tensor: dict[int, HookDict] = {}
        self.pre = HookDict()
        self.post = HookDict()
        self.accumulated = HookDict()
        self.retain: dict[int, Any] = {}

    def add(self, what: str, fn: Any, nr: int | None = None) -> RemovableHandle:
        table = getattr(self, what) if nr is None else self.tensor.setdefault(nr, HookDict())
        handle = RemovableHandle(table)
        table[handle.id] = fn
        return handle


def hooks_of(node: Any) -> Hooks:
    if node._hooks is None:
        node._hooks = Hooks()
    return node._hooks


# Tensors that were asked to retain their gradient, by id, and have another history by now, which
# did not take the wish over: they still say that they do.
RETAINING: dict[int, Any] = {}


def keep_retaining(t: Any) -> None:
    """Remember that `t` retains its gradient, before its history is dropped."""
    if t.retains_grad:
        at = id(t)
        RETAINING[at] = weakref.ref(t, lambda r: RETAINING.pop(at, None))

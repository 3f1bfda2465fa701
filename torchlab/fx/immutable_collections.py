"""Lists and dicts that cannot be changed: what `Node.args` and `Node.kwargs` hold.

A change inside them would bypass the bookkeeping of who uses whom.
Source: https://docs.pytorch.org/docs/2.13/fx.html#torch.fx.Node
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NoReturn

from torchlab._core.pytree import register_pytree_node

__all__ = ["immutable_list", "immutable_dict"]

_HELP = """If you are attempting to modify the kwargs or args of a torch.fx.Node object,
instead create a new copy of it and assign the copy to the node:

    new_args = ...  # copy and mutate args
    node.args = new_args"""


def _no_mutation(self: Any, *args: Any, **kwargs: Any) -> NoReturn:
    raise TypeError(f"'{type(self).__name__}' object does not support mutation. {_HELP}")


class immutable_list(list):  # type: ignore[type-arg]
    """A list that refuses every change."""

    __delitem__ = __iadd__ = __imul__ = __setitem__ = _no_mutation  # type: ignore[assignment]
    append = clear = extend = insert = pop = remove = _no_mutation  # type: ignore[assignment]
    reverse = sort = _no_mutation  # type: ignore[assignment]

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(tuple(self))

    def __reduce__(self) -> tuple[type, tuple[Any, ...]]:
        return immutable_list, (tuple(self),)


class immutable_dict(dict):  # type: ignore[type-arg]
    """A dict that refuses every change."""

    __delitem__ = __ior__ = __setitem__ = _no_mutation  # type: ignore[assignment]
    clear = pop = popitem = setdefault = update = _no_mutation  # type: ignore[assignment]

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(frozenset(self.items()))

    def __reduce__(self) -> tuple[type, tuple[Any, ...]]:
        return immutable_dict, (tuple(self.items()),)


def _list_flatten(d: Any) -> tuple[list[Any], Any]:
    return list(d), None


def _list_unflatten(values: Iterable[Any], context: Any) -> immutable_list:
    return immutable_list(values)


def _dict_flatten(d: Any) -> tuple[list[Any], Any]:
    return list(d.values()), list(d.keys())


def _dict_unflatten(values: Iterable[Any], context: Any) -> immutable_dict:
    return immutable_dict(zip(context, values, strict=True))


register_pytree_node(immutable_list, _list_flatten, _list_unflatten)
register_pytree_node(immutable_dict, _dict_flatten, _dict_unflatten)

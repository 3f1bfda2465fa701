"""The named tuples that operators with several results give: `torchlab.return_types`.

`x.max(0)` is a tuple with `values` and `indices`. As PyTorch's, the class takes one sequence and
prints its fields line by line; called with the results one by one it works like `namedtuple`, whose
`_fields` it has. Given `out=`, an operator's result has a class of its own (`max_out`).

Source: https://docs.pytorch.org/docs/2.13/torch.html
"""

from __future__ import annotations

import inspect
from collections import namedtuple
from collections.abc import Sequence
from typing import Any

from torchlab._core.pytree import SUPPORTED_NODES, keyed_sequence, register_pytree_node

_made: dict[str, Any] = {}  # name → class
_new = tuple.__new__
_named: Any = namedtuple
_ONE = inspect.Parameter("iterable", inspect.Parameter.POSITIONAL_ONLY, default=())
_SHOWN = inspect.Signature([_ONE])


def structure(name: str, fields: Sequence[str]) -> Any:
    """The class of results `name` with these fields; one for each name."""
    found = _made.get(name)
    if found is None:
        found = _made[name] = _make(name, tuple(fields))
        register(found)
    return found


def with_out(cls: Any) -> Any:
    """The class of what an operator returns that gets `out=` and else would return `cls`."""
    return structure(f"{cls.__name__}_out", cls._fields)


def register(cls: Any) -> None:
    """Let trees of tensors (`torchlab.utils._pytree`) go into the instances of `cls`."""
    if cls not in SUPPORTED_NODES:
        register_pytree_node(
            cls,
            lambda n: (list(n), None),
            lambda children, _: cls(children),
            flatten_with_keys_fn=lambda n: (keyed_sequence(n), None),
        )


def _make(name: str, fields: tuple[str, ...]) -> Any:
    n = len(fields)
    cls = _named(name, fields, module="torchlab.return_types")

    def new(cls: Any, *results: Any) -> Any:
        if len(results) == n:
            return _new(cls, results)
        if len(results) != 1:
            raise TypeError(f"torch.return_types.{name}() takes one sequence of {n} results")
        try:
            values = tuple(results[0])
        except TypeError:
            raise TypeError("constructor requires a sequence") from None
        if len(values) != n:
            raise TypeError(
                f"torch.return_types.{name}() takes a {n}-sequence ({len(values)}-sequence given)"
            )
        return _new(cls, values)

    def show(self: Any) -> str:
        lines = ",\n".join(f"{f}={x!r}" for f, x in zip(fields, self, strict=True))
        return f"torch.return_types.{name}(\n{lines})"

    cls.__new__, cls.__repr__ = new, show
    cls.n_fields = cls.n_sequence_fields = n
    cls.n_unnamed_fields = 0
    cls.__signature__ = _SHOWN
    return cls


__all__ = ["register", "structure", "with_out"]

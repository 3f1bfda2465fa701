"""A call of an operator on batched tensors, as the batching rules see it.

Rules put the hidden dimension of every tensor first. A tensor's logical rank is the one that the
mapped function sees.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from torchlab._core import layout
from torchlab._core.dispatch.batches import (
    RULES,
    batched,
    front,
    is_batched,
    one_by_one,
    size_of,
)
from torchlab._core.dispatch.levels import again, mapped
from torchlab._core.dispatch.registry import aten
from torchlab._core.tensor import Tensor


class Call:
    """One call: arguments by name, in three forms."""

    __slots__ = ("op", "args", "level", "n", "names")

    def __init__(self, op: Any, args: tuple[Any, ...], level: int) -> None:
        self.op, self.args, self.level = op, args, level
        n = size_of(args, level)
        self.n = n if n > 0 else 0
        names = op._cache.get("names")
        if names is None:
            names = op._cache["names"] = {a.name: i for i, a in enumerate(op.schema.arguments)}
        self.names: dict[str, int] = names

    def raw(self, name: str) -> Any:
        """An argument as it was given."""
        return self.args[self.names[name]]

    def has(self, name: str) -> bool:
        """Whether it is a tensor with a hidden dimension."""
        return is_batched(self.raw(name), self.level)

    def front(self, name: str) -> Any:
        """A tensor with its hidden dimension first, or one without as it is."""
        return front(self.raw(name), self.level)

    def full(self, name: str) -> Any:
        """A tensor with the hidden dimension first; one without is expanded. None stays."""
        x = self.raw(name)
        return x if x is None else self.filled(x)

    def filled(self, x: Any) -> Any:
        """`full` of a tensor."""
        value = front(x, self.level)
        return value if is_batched(x, self.level) else aten.expand(value, (self.n, *value._a.shape))

    def rank(self, name: str) -> int:
        """A tensor's logical rank."""
        return len(self.raw(name)._a.shape)

    def shape(self, name: str) -> tuple[int, ...]:
        """A tensor's logical shape."""
        return tuple(self.raw(name)._a.shape)

    def tensors(self) -> list[str]:
        """The names of the arguments that are tensors."""
        return [n for n, i in self.names.items() if isinstance(self.args[i], Tensor)]

    def only(self, name: str) -> bool:
        """Whether this is the only tensor with a hidden dimension."""
        return self.has(name) and all(
            n == name or not size_of((self.args[i],), self.level) for n, i in self.names.items()
        )

    def call(self, /, **changed: Any) -> Any:
        """The operator's result on what the arguments hold, some of them changed."""
        values = [
            changed[n] if n in changed else mapped(lambda x: front(x, self.level), self.args[i])
            for n, i in self.names.items()
        ]
        return again(self.op, values)

    def run(self, /, **changed: Any) -> Any:
        """`call`, with the hidden dimension first in all results."""
        return self.wrap(self.call(**changed))

    def wrap(self, result: Any, bdim: int = 0) -> Any:
        """Results with the hidden dimension `bdim` as batched tensors."""
        return mapped(lambda r: batched(r, bdim, self.level), result)

    def loop(self) -> Any:
        """Once for each element."""
        return one_by_one(self.op, self.args, self.level)


def rule(*names: str) -> Callable[[Callable[[Call], Any]], Callable[[Call], Any]]:
    """Let the decorated function of a `Call` be the batching rule of these declarations."""

    def declare(body: Callable[[Call], Any]) -> Callable[[Call], Any]:
        for name in names:
            RULES[name] = lambda op, args, level: body(Call(op, args, level))
        return body

    return declare


def each(names: str, body: Callable[[Call], Any]) -> None:
    """`rule` for names in a text."""
    rule(*names.split())(body)


def wrap_dim(dim: int, rank: int, name: str) -> int:
    """A dimension counted from the front; of a 0-d tensor there is one, as in PyTorch."""
    return layout.wrap_dim(dim, max(rank, 1), name)


def padded(value: Any, rank: int) -> Any:
    """A tensor with the hidden dimension first, with dimensions of size 1 after it up to a logical
    rank: so it broadcasts against others of that rank."""
    shape = value._a.shape
    missing = rank - (len(shape) - 1)
    return value if missing <= 0 else aten.reshape(value, (shape[0], *(1,) * missing, *shape[1:]))


def aligned(c: Call, names: Iterable[str], cores: dict[str, int] | None = None) -> dict[str, Any]:
    """Tensors that broadcast, in all dimensions before the last few (`cores`; 0): the hidden
    dimension first and the ranks filled up."""
    cores = cores or {}
    present = [n for n in names if isinstance(c.raw(n), Tensor)]
    rank = max(c.rank(n) - cores.get(n, 0) for n in present)
    return {
        n: padded(c.front(n), rank + cores.get(n, 0)) if c.has(n) else c.front(n) for n in present
    }


__all__ = [
    "Call", "aligned", "each", "padded", "rule", "wrap_dim",
]  # fmt: skip

"""Functions of Python's own that look at the data of their arguments: run once for each element.

They have no declaration that a rule could be entered for. Some ask here at their beginning
(`factories.transformed`); others when they are called and their first argument is a wrapper.
"""

from __future__ import annotations

from typing import Any

from torchlab._core.dispatch import factories, levels
from torchlab._core.dispatch.batches import Batched, batched, size_of
from torchlab._core.dispatch.batching.random import below
from torchlab._core.dispatch.levels import mapped
from torchlab._core.dispatch.registry import aten
from torchlab._core.tensor import Tensor

_LOOPED = frozenset(
    ("histogram", "histogramdd", "one_hot", "unravel_index")
)  # fmt: skip


def looped(face: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The results of a function for each element, stacked; NotImplemented if it is not one of
    these, or the innermost transform is no vmap."""
    if face.name == "equal":
        raise RuntimeError(
            "vmap: torch.equal gives one answer, which cannot be different for each element. Use"
            " torch.eq(a, b).all()"
        )
    if face.name not in _LOOPED:
        return NotImplemented
    if face.name == "one_hot" and (*args, *kwargs.values())[1:] in ((), (-1,)):
        raise RuntimeError(
            "When vmap-ing torch.nn.functional.one_hot, please provide an explicit positive"
            " num_classes argument."
        )
    return _each(face.function, args, kwargs)


def elements(body: Any, parameters: dict[str, Any], looked_at: tuple[str, ...]) -> Any:
    """The same for a function that asks itself, all parameters by name."""
    given = {k: v for k, v in parameters.items() if k not in ("seen", "padded")}
    inner = levels.innermost(given.values())
    if inner is None or not size_of([given[n] for n in looked_at], inner._level):
        return NotImplemented
    return _each(body, (), given)


def _told(name: str, parameters: dict[str, Any]) -> Any:
    """The same for makers that take tensors."""
    if name not in ("linspace", "logspace"):
        return NotImplemented
    named = {k: v for k, v in parameters.items() if v is not None and v is not False}
    return _each(getattr(aten, name), (), named)


def _each(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    inner = levels.innermost((*args, *kwargs.values()))
    if type(inner) is not Batched:
        return NotImplemented
    level = inner._level
    n = size_of((*args, *kwargs.values()), level)
    if levels.recorded((*args, *kwargs.values()), level):
        raise NotImplementedError(
            f"vmap: {getattr(function, '__name__', 'this function')} looks at data that differ for"
            " each element and runs once for each; a gradient inside vmap is not there for it. Take"
            " the gradient of the vmap, or give all elements the same lengths, offsets or counts."
        )
    if n < 0:
        raise RuntimeError("vmap: this function cannot run over a batch of size 0")

    def element(x: Any, i: int) -> Any:
        if x._level != level:
            return x
        return x.value if x.bdim is None else aten.select(x.value, x.bdim, i)

    def row(i: int) -> Any:
        return function(
            *(mapped(lambda x: element(x, i), a) for a in args),
            **{k: mapped(lambda x: element(x, i), v) for k, v in kwargs.items()},
        )

    rows = below(level, lambda: [row(i) for i in range(n or 1)])
    return _stacked(rows, level) if n else rows[0]


def _stacked(rows: list[Any], level: int) -> Any:
    first = rows[0]
    if isinstance(first, Tensor):
        return batched(aten.stack(rows), 0, level)
    if not isinstance(first, (list, tuple)):
        return first
    made = [_stacked(list(r), level) for r in zip(*rows, strict=True)]
    return type(first)(*made) if hasattr(first, "_fields") else type(first)(made)


factories.looped.append(looped)
factories.elements.append(elements)
factories.drawn.append(_told)

__all__ = ["looped"]

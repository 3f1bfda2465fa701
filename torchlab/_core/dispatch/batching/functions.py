"""Functions of Python's own that look at the data of their arguments: run once for each element.

They have no declaration that a rule could be entered for. Some ask here at their beginning
(`factories.transformed`); others when they are called and their first argument is a wrapper.
"""

from __future__ import annotations

from typing import Any

from torchlab._core.dispatch import batches, factories, levels
from torchlab._core.dispatch.batches import Batched, size_of
from torchlab._core.dispatch.batching import rows
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
    level = max((_level_of(given[n]) for n in looked_at), default=0)
    if not level:
        return NotImplemented
    return _each(body, (), given, level)


def _level_of(x: Any) -> int:
    """The level of the vmap that a tensor has a hidden dimension of, the innermost; 0 if none."""
    while isinstance(x, Batched):
        if x.bdim is not None:
            return x._level  # type: ignore[attr-defined, no-any-return]
        x = x.value
    return 0


def _told(name: str, parameters: dict[str, Any]) -> Any:
    """The same for makers that take tensors."""
    if name not in ("linspace", "logspace"):
        return NotImplemented
    named = {k: v for k, v in parameters.items() if v is not None and v is not False}
    return _each(getattr(aten, name), (), named)


def _each(
    function: Any, args: tuple[Any, ...], kwargs: dict[str, Any], level: int | None = None
) -> Any:
    """Once for each element of the vmap of `level`, the innermost transform's if not said."""
    every = (*args, *kwargs.values())
    if level is None:
        inner = levels.innermost(every)
        if type(inner) is not Batched:
            return NotImplemented
        level = inner._level
    n = batches.facts(level)[0]
    if n == 0:
        raise RuntimeError("vmap: this function cannot run over a batch of size 0")
    several = size_of(every, level) != 0 or levels.top_level(every) > level

    def row(i: int) -> Any:
        def element(x: Any) -> Any:
            return rows.element(x, i, n, level)

        return function(
            *(mapped(element, a) for a in args),
            **{k: mapped(element, v) for k, v in kwargs.items()},
        )

    def all_rows() -> list[Any]:
        return [row(i) for i in range(n if several else 1)]

    # Where a tape or another transform looks on, wrappers go on into the function.
    followed = levels.top_level(every) > level or levels.recorded(every, level)
    found = all_rows() if followed else below(level, all_rows)
    return _stacked(found, level) if several else found[0]


def _stacked(found: list[Any], level: int) -> Any:
    first = found[0]
    if isinstance(first, Tensor):
        return rows.stacked(found, level)
    if not isinstance(first, (list, tuple)):
        return first
    made = [_stacked(list(r), level) for r in zip(*found, strict=True)]
    return type(first)(*made) if hasattr(first, "_fields") else type(first)(made)


factories.looped.append(looped)
factories.elements.append(elements)
factories.drawn.append(_told)

__all__ = ["looped"]

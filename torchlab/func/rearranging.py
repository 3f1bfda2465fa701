"""`rearrange`: transposing, splitting and joining dimensions by their names.

Source: https://docs.pytorch.org/docs/2.13/generated/torch.func.rearrange.html
"""

from __future__ import annotations

import re
from typing import Any

from torchlab._core.dispatch.registry import aten
from torchlab._core.tensor import Tensor

_TOKEN = re.compile(r"\.\.\.|\(|\)|[^\s().]+|\.")
Group = list[str]


def _parsed(text: str, pattern: str) -> list[Group]:
    """The dimensions of one side, each a list of names: `(h w) c 1` is [[h, w], [c], []]."""
    groups: list[Group] = []
    seen: set[str] = set()
    inside: Group | None = None
    for token in _TOKEN.findall(text):
        if token == "(":
            if inside is not None:
                raise ValueError(f"brackets within brackets are not allowed: '{pattern}'")
            inside = []
        elif token == ")":
            if inside is None:
                raise ValueError(f"a bracket is closed that was not opened: '{pattern}'")
            groups.append(inside)
            inside = None
        elif token == "1":
            if inside is None:
                groups.append([])
        else:
            if token != "..." and not token.isidentifier():
                raise ValueError(f"'{token}' is no name of a dimension: '{pattern}'")
            if token in seen:
                raise ValueError(f"the dimension '{token}' stands twice on one side: '{pattern}'")
            seen.add(token)
            if inside is None:
                groups.append([token])
            else:
                inside.append(token)
    if inside is not None:
        raise ValueError(f"a bracket is not closed: '{pattern}'")
    return groups


def _spread(groups: list[Group], names: Group) -> list[Group]:
    """`...` as the dimensions that it stands for: one each, or together within brackets."""
    found: list[Group] = []
    for g in groups:
        if g == ["..."]:
            found += [[n] for n in names]
        else:
            found.append([m for n in g for m in (names if n == "..." else [n])])
    return found


def _sizes(groups: list[Group], shape: Any, given: dict[str, int], pattern: str) -> dict[str, int]:
    """The size of each name on the left."""
    sizes = dict(given)
    for g, n in zip(groups, shape, strict=True):
        known, unknown = 1, []
        for name in g:
            if name in sizes:
                known *= sizes[name]
            else:
                unknown.append(name)
        if len(unknown) > 1:
            raise ValueError(f"rearrange: the sizes of {unknown} are not known: '{pattern}'")
        if (n % known if known else n) or (not unknown and known != n):
            raise ValueError(
                f"rearrange: a dimension of size {n} is not ({' '.join(g) or '1'}) of sizes"
                f" {[sizes.get(x) for x in g]}: '{pattern}'"
            )
        for name in unknown:
            sizes[name] = n // known if known else 0
    return sizes


def rearrange(
    tensor: Tensor | list[Tensor] | tuple[Tensor, ...], pattern: str, **axes_lengths: int
) -> Tensor:
    """The tensor (or several, stacked) with its dimensions in another order, split and joined.

        rearrange(images, "b h w c -> b c h w")
        rearrange(images, "b (h1 h) w c -> (b h1) (c h w)", h1=2)

    pattern: the dimensions by name before and after the arrow; brackets join, `...` stands for any
    number, 1 for a dimension of size 1. axes_lengths: sizes of names that are not clear from the
    shape. ValueError if the pattern is wrong or does not fit.
    """
    x: Any = tensor if isinstance(tensor, Tensor) else aten.stack(list(tensor))
    if pattern.count("->") != 1:
        raise ValueError(f"rearrange: a pattern has one arrow, got '{pattern}'")
    before, after = (_parsed(side, pattern) for side in pattern.split("->"))
    names = [n for g in before for n in g]
    if {*names} != {n for g in after for n in g}:
        raise ValueError(f"rearrange: both sides must have the same dimensions: '{pattern}'")
    if unknown := axes_lengths.keys() - {*names}:
        raise ValueError(f"rearrange: {sorted(unknown)} are not in the pattern '{pattern}'")
    rank = x.ndim
    dots: Group = []
    if "..." in names:
        if any("..." in g and len(g) > 1 for g in before):
            raise ValueError(f"rearrange: no brackets around the dots on the left: '{pattern}'")
        dots = [f"...{i}" for i in range(rank - len(before) + 1)]
    before, after = _spread(before, dots), _spread(after, dots)
    if len(before) != rank:
        raise ValueError(
            f"rearrange: the pattern '{pattern}' has {len(before)} dimensions, the tensor {rank}"
        )
    sizes = _sizes(before, x.shape, axes_lengths, pattern)
    order = [n for g in before for n in g]
    x = aten.reshape(x, tuple(sizes[n] for n in order))
    x = aten.permute(x, tuple(order.index(n) for g in after for n in g))
    shape = []
    for g in after:
        n = 1
        for name in g:
            n *= sizes[name]
        shape.append(n)
    return x if tuple(shape) == tuple(x.shape) else aten.reshape(x, tuple(shape))


__all__ = ["rearrange"]

"""How much of what backward reads the forward keeps, where a memory budget is set.

Everything that is not kept is computed again in backward, from the graph's inputs and what is kept.
Which values to keep is a 0-1 knapsack: their bytes must stay within the budget, and what computing
the others again costs is to be least.

Source: https://docs.pytorch.org/docs/2.13/generated/torch.autograd.graph.region_activation_memory_budget.html
"""

from __future__ import annotations

from math import prod
from operator import getitem
from typing import Any

import numpy as np

from torchlab.compiler.aot.joint import Joint
from torchlab.fx.node import Node

META = "activation_memory_budget"  # of a node: the budget of the region that it was traced in
_UNITS = 1000  # sizes are rounded up to thousandths of the budget


class BudgetError(RuntimeError):
    """The regions in a graph do not give it one budget."""


def region_budget(j: Joint) -> float | None:
    """The budget of a graph; None if no part of it has one. BudgetError unless every operator of
    the forward has the same: there is one budget for a graph."""
    operators = [n for n in j.forward if n.op == "call_function" and n.target is not getitem]
    found = {n.meta.get(META) for n in operators}
    if found <= {None}:
        return None
    if len(found) > 1:
        said = sorted(b for b in found if b is not None)
        raise BudgetError(
            "torch.autograd.graph.region_activation_memory_budget must be around all operators of a"
            " compiled graph, with one budget"
            + (f", not {said}" if len(said) > 1 else "; here it is around some of them")
            + ". Separate parts with different budgets by torch._dynamo.graph_break()"
        )
    return found.pop()


def _elements(n: Node) -> int:
    v: Any = n.meta.get("val")
    return prod(v.shape) if hasattr(v, "shape") else 0


def size_of(n: Node) -> int:
    """Bytes of a node's value."""
    v: Any = n.meta.get("val")
    return _elements(n) * v.dtype.itemsize if hasattr(v, "shape") else 0


_PRODUCTS = ("mm", "addmm", "bmm", "baddbmm", "convolution", "mv", "addmv")


def cost_of(n: Node) -> float:
    """About how long it takes to compute a node again: operations for products, elements moved for
    all else."""
    name = getattr(n.target, "name", "")
    inputs = [m for m in n.all_input_nodes if hasattr(m.meta.get("val"), "shape")]
    moved = float(_elements(n) + sum(_elements(m) for m in inputs))
    if name in _PRODUCTS and inputs:
        inner = max(m.meta["val"].shape[-1] for m in inputs if m.meta["val"].shape)
        return moved + 2.0 * _elements(n) * inner
    return moved


def chosen(values: list[Node], budget: float) -> set[Node]:
    """Of the values that would all be kept, those to keep within `budget` times their bytes."""
    sizes = np.array([size_of(n) for n in values], float)
    limit = budget * float(sizes.sum())
    if budget >= 1 or not values:
        return set(values)
    if limit <= 0:
        return set()
    weights = np.ceil(sizes / limit * _UNITS).astype(int)
    best = np.zeros(_UNITS + 1)
    taken: list[Any] = []
    for w, n in zip(weights, values, strict=True):
        with_it = np.full(_UNITS + 1, -1.0)
        if w <= _UNITS:
            with_it[w:] = best[: _UNITS + 1 - w] + cost_of(n)
        better = with_it > best
        best = np.where(better, with_it, best)
        taken.append(better)
    kept: set[Node] = set()
    room = _UNITS
    for w, n, better in reversed(list(zip(weights, values, taken, strict=True))):
        if better[room]:
            kept.add(n)
            room -= int(w)
    return kept


__all__ = ["META", "BudgetError", "chosen", "cost_of", "region_budget", "size_of"]

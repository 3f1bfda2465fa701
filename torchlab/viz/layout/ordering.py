"""The order of the nodes inside every rank: barycenter sweeps that lower the number of
crossings."""

from __future__ import annotations

import numpy as np

Layers = list[list[int]]


def initial(rank: list[int], succ: list[list[int]], pred: list[list[int]]) -> Layers:
    """A first order: depth-first from the upper nodes, so that a chain stays in one column."""
    layers: Layers = [[] for _ in range(max(rank, default=-1) + 1)]
    seen = [False] * len(rank)
    starts = sorted((i for i in range(len(rank)) if not pred[i]), key=lambda i: (rank[i], i))
    for start in starts:
        stack = [start]
        while stack:
            node = stack.pop()
            if seen[node]:
                continue
            seen[node] = True
            layers[rank[node]].append(node)
            stack.extend(reversed(succ[node]))
    return layers


def crossings(layers: Layers, succ: list[list[int]]) -> int:
    """How many pairs of edges between neighbouring ranks cross."""
    total = 0
    for layer, below in zip(layers, layers[1:], strict=False):
        place = {node: i for i, node in enumerate(below)}
        targets = [place[c] for node in layer for c in sorted(succ[node], key=place.__getitem__)]
        total += _inversions(targets, len(below))
    return total


def _inversions(values: list[int], bound: int) -> int:
    """Pairs out of order, with a binary indexed tree."""
    if len(values) < 2:
        return 0
    tree = [0] * (bound + 1)
    count = 0
    for seen, value in enumerate(values):
        i, not_greater = value + 1, 0
        while i > 0:
            not_greater += tree[i]
            i -= i & -i
        count += seen - not_greater
        i = value + 1
        while i <= bound:
            tree[i] += 1
            i += i & -i
    return count


def _sorted_by(layer: list[int], neighbours: list[list[int]], place: list[int]) -> list[int]:
    """`layer` sorted by the mean place of the neighbours; nodes without any keep their place."""
    keys = np.empty(len(layer))
    for i, node in enumerate(layer):
        near = neighbours[node]
        keys[i] = sum(place[m] for m in near) / len(near) if near else place[node]
    return [layer[i] for i in np.argsort(keys, kind="stable")]


def order(
    rank: list[int], succ: list[list[int]], pred: list[list[int]], sweeps: int = 12
) -> Layers:
    """Orders per rank. The best of `sweeps` down-and-up sweeps is kept; ties keep the earlier."""
    layers = initial(rank, succ, pred)
    place = [0] * len(rank)
    for layer in layers:
        for i, node in enumerate(layer):
            place[node] = i
    best, best_count = [list(layer) for layer in layers], crossings(layers, succ)
    stale = 0
    for sweep in range(sweeps):
        if best_count == 0 or stale >= 4:
            break
        down = sweep % 2 == 0
        span = range(1, len(layers)) if down else range(len(layers) - 2, -1, -1)
        for r in span:
            layers[r] = _sorted_by(layers[r], pred if down else succ, place)
            for i, node in enumerate(layers[r]):
                place[node] = i
        count = crossings(layers, succ)
        stale += 1
        if count < best_count:
            best, best_count, stale = [list(layer) for layer in layers], count, 0
    return best

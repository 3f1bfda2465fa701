"""The x of every node: each rank is placed as near as its order allows to what its neighbours want.

Placing one rank is a least squares problem with the constraints `x[i+1] - x[i] >= gap[i]`. With the
gaps subtracted it is isotonic regression, which pooling adjacent violators solves exactly in linear
time (Barlow et al., "Statistical Inference under Order Restrictions", 1972): no overlap is
possible.
"""

from __future__ import annotations


def isotonic(wanted: list[float], weights: list[float]) -> list[float]:
    """The non-decreasing sequence nearest to `wanted` in weighted least squares."""
    blocks: list[tuple[float, float, int]] = []  # mean, weight, length
    for value, weight in zip(wanted, weights, strict=True):
        mean, total, length = value, weight, 1
        while blocks and blocks[-1][0] > mean:
            other, other_weight, other_length = blocks.pop()
            mean = (mean * total + other * other_weight) / (total + other_weight)
            total += other_weight
            length += other_length
        blocks.append((mean, total, length))
    return [mean for mean, _, length in blocks for _ in range(length)]


def place_rank(
    wanted: list[float], widths: list[float], weights: list[float], gap: float
) -> list[float]:
    """Centres for one rank, in order, at least `gap` between neighbouring boxes."""
    offset, offsets = 0.0, []
    for i, width in enumerate(widths):
        if i:
            offset += (widths[i - 1] + width) / 2 + gap
        offsets.append(offset)
    shifted = isotonic([w - o for w, o in zip(wanted, offsets, strict=True)], weights)
    return [s + o for s, o in zip(shifted, offsets, strict=True)]


def _median(values: list[float]) -> float:
    values.sort()
    middle = len(values) // 2
    return values[middle] if len(values) % 2 else (values[middle - 1] + values[middle]) / 2


def centres(
    layers: list[list[int]],
    widths: list[float],
    succ: list[list[int]],
    pred: list[list[int]],
    virtual: list[bool],
    gap: float,
    sweeps: int = 10,
) -> list[float]:
    """The centre x of every node. Virtual nodes weigh more, which makes long edges straight; nodes
    that end the graph weigh next to nothing and pull at nobody, so that a chain with a leaf at
    every link stays upright. The sweep with the straightest links is kept."""
    x = [0.0] * len(widths)
    through = [[m for m in after if succ[m]] or after for after in succ]
    weights = [6.0 if v else 1.0 if after else 0.001 for v, after in zip(virtual, succ)]
    for layer in layers:
        left = 0.0
        for node in layer:
            x[node] = left + widths[node] / 2
            left += widths[node] + gap
        for node in layer:
            x[node] -= (left - gap) / 2
    links = [
        (u, v, 4.0 if virtual[u] and virtual[v] else 1.0) for u in range(len(x)) for v in succ[u]
    ]
    best, best_cost = x, float("inf")
    for sweep in range(sweeps):
        down = sweep % 2 == 0
        both = sweeps // 3 <= sweep < sweeps - 4
        for r in range(len(layers)) if down else range(len(layers) - 1, -1, -1):
            layer = layers[r]
            wanted = []
            for node in layer:
                near = pred[node] if down else through[node]
                if both or not near:
                    near = pred[node] + through[node]
                wanted.append(_median([x[m] for m in near]) if near else x[node])
            placed = place_rank(
                wanted, [widths[n] for n in layer], [weights[n] for n in layer], gap
            )
            for node, value in zip(layer, placed, strict=True):
                x[node] = value
        cost = sum(w * _bend(x[u] - x[v]) for u, v, w in links)
        if cost < best_cost - 1e-6:
            best, best_cost = list(x), cost
    return best


def _bend(dx: float) -> float:
    """The cost of a link: its sideways way, and a fixed price for not being straight."""
    return abs(dx) + 25.0 if abs(dx) > 0.5 else 0.0

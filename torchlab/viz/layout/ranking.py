"""Which rank (row) each node stands on, and how cycles are opened."""

from __future__ import annotations

Adjacency = list[list[int]]


def adjacency(n: int, edges: list[tuple[int, int]]) -> tuple[Adjacency, Adjacency]:
    """Successor and predecessor lists of `n` nodes, in the order of the edges."""
    succ: Adjacency = [[] for _ in range(n)]
    pred: Adjacency = [[] for _ in range(n)]
    for u, v in edges:
        succ[u].append(v)
        pred[v].append(u)
    return succ, pred


def back_edges(n: int, edges: list[tuple[int, int]]) -> set[int]:
    """Positions in `edges` of a set of edges that closes every cycle (depth-first, iterative).
    Self loops are in it. Reversing them leaves no cycle."""
    out: list[list[tuple[int, int]]] = [[] for _ in range(n)]
    has_parent = [False] * n
    for k, (u, v) in enumerate(edges):
        out[u].append((v, k))
        has_parent[v] = has_parent[v] or u != v
    state = [0] * n  # 0 unseen, 1 on the path, 2 finished
    found: set[int] = set()
    for start in [i for i in range(n) if not has_parent[i]] + list(range(n)):
        if state[start]:
            continue
        state[start] = 1
        stack = [(start, iter(out[start]))]
        while stack:
            node, rest = stack[-1]
            for child, k in rest:
                if state[child] == 1:
                    found.add(k)
                elif state[child] == 0:
                    state[child] = 1
                    stack.append((child, iter(out[child])))
                    break
            else:
                state[node] = 2
                stack.pop()
    return found


def topological(succ: Adjacency, pred: Adjacency) -> list[int]:
    """Kahn's order of a graph without cycles, lower numbers first among equals."""
    missing = [len(p) for p in pred]
    order = [i for i, m in enumerate(missing) if m == 0]
    for node in order:  # grows while it is walked
        for child in succ[node]:
            missing[child] -= 1
            if missing[child] == 0:
                order.append(child)
    return order


def ranks(succ: Adjacency, pred: Adjacency) -> list[int]:
    """A rank per node, every edge going at least one down: longest path from the sources, then
    nodes with more edges out than in are pulled down towards their nearest successor, which keeps
    an input beside the first operation that reads it."""
    order = topological(succ, pred)
    rank = [0] * len(succ)
    for node in order:
        for child in succ[node]:
            rank[child] = max(rank[child], rank[node] + 1)
    for node in reversed(order):
        if succ[node] and len(succ[node]) > len(pred[node]):
            rank[node] = min(rank[child] for child in succ[node]) - 1
    lowest = min(rank, default=0)
    return [r - lowest for r in rank]


def components(n: int, edges: list[tuple[int, int]]) -> list[list[int]]:
    """The connected parts, each sorted, ordered by their lowest node."""
    parent = list(range(n))

    def find(i: int) -> int:
        while parent[i] != i:
            parent[i] = parent[parent[i]]
            i = parent[i]
        return i

    for u, v in edges:
        a, b = find(u), find(v)
        if a != b:
            parent[max(a, b)] = min(a, b)
    parts: dict[int, list[int]] = {}
    for i in range(n):
        parts.setdefault(find(i), []).append(i)
    return list(parts.values())

"""The whole layout: components, groups, ranks, order, coordinates, routes."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from torchlab.viz.layout import coordinates, ordering, ranking
from torchlab.viz.layout.result import Box, Layout, Point, Route

VIRTUAL_WIDTH = 10.0
GROUP_PADDING = 14.0
GROUP_TITLE = 18.0

Size = tuple[float, float]
Edge = tuple[str, str]


def layered(
    sizes: Mapping[str, Size],
    edges: Sequence[Edge],
    groups: Mapping[str, Sequence[str]] | None = None,
    *,
    rank_gap: float = 30.0,
    node_gap: float = 22.0,
    max_width: float = 1600.0,
    group_widths: Mapping[str, float] | None = None,
) -> Layout:
    """Draw a graph in ranks from top to bottom.

    Args:
        sizes: width and height of every node, in pixels; their order breaks all ties.
        edges: pairs (source, target); cycles are allowed (some edge then points up).
        groups: disjoint sets of nodes that get a box around them, which nothing else enters.
        rank_gap: the least distance between two ranks; wide edges get more.
        node_gap: the least distance between two boxes of one rank.
        max_width: unconnected parts are set side by side up to this width.
        group_widths: a least width for a group's box (for its title).

    Returns:
        A layout with its corner at (0, 0). The same arguments give the same layout.

    Raises:
        ValueError: an edge or a group names a node that is not in `sizes`, or groups overlap.
    """
    groups = dict(groups or {})
    owner: dict[str, str] = {}
    for group, members in groups.items():
        for member in members:
            if member not in sizes:
                raise ValueError(f"layered: group {group!r} has the unknown node {member!r}")
            if member in owner:
                raise ValueError(
                    f"layered: node {member!r} is in two groups, {owner[member]!r} and {group!r}"
                )
            owner[member] = group
    for edge in edges:
        for end in edge:
            if end not in sizes:
                raise ValueError(f"layered: edge {edge!r} has the unknown node {end!r}")
    if owner:
        drawn = _grouped(
            sizes, edges, groups, owner, rank_gap, node_gap, max_width, dict(group_widths or {})
        )
    else:
        drawn = _flat(sizes, edges, rank_gap, node_gap, max_width)
    drawn.routes = [Route(r.src, r.dst, _without_repeats(r.points)) for r in drawn.routes]
    return drawn


def _without_repeats(points: Sequence[Point]) -> tuple[Point, ...]:
    return tuple(p for i, p in enumerate(points) if i == 0 or p != points[i - 1])


def _flat(
    sizes: Mapping[str, Size],
    edges: Sequence[Edge],
    rank_gap: float,
    node_gap: float,
    max_width: float,
    ports: Collection[str] = (),
) -> Layout:
    """A graph without groups: its connected parts, drawn and set on shelves."""
    names = list(sizes)
    index = {name: i for i, name in enumerate(names)}
    pairs = [(index[u], index[v]) for u, v in edges]
    box: dict[str, Box] = {}
    routes: dict[int, Route] = {}
    inside: dict[int, list[int]] = {}
    parts = ranking.components(len(names), pairs)
    part_of = {node: p for p, part in enumerate(parts) for node in part}
    for k, (u, _) in enumerate(pairs):
        inside.setdefault(part_of[u], []).append(k)
    x = y = shelf = width = 0.0
    for p, part in enumerate(parts):
        ids = inside.get(p, [])
        drawn = _connected(
            [names[i] for i in part], sizes, [edges[k] for k in ids], rank_gap, node_gap, ports
        )
        if x and x + drawn.width > max_width:
            x, y, shelf = 0.0, y + shelf + rank_gap, 0.0
        box.update((n, b.moved(x, y)) for n, b in drawn.nodes.items())
        routes.update((k, r.moved(x, y)) for k, r in zip(ids, drawn.routes, strict=True))
        width, shelf = max(width, x + drawn.width), max(shelf, drawn.height)
        x += drawn.width + 1.5 * node_gap
    return Layout(
        width, y + shelf, {n: box[n] for n in names}, [routes[k] for k in range(len(edges))]
    )


def _connected(
    names: list[str],
    sizes: Mapping[str, Size],
    edges: Sequence[Edge],
    rank_gap: float,
    node_gap: float,
    ports: Collection[str] = (),
) -> Layout:
    """One connected part; `ports` without predecessors go to the first rank, others to the
    last."""
    index = {name: i for i, name in enumerate(names)}
    pairs = [(index[u], index[v]) for u, v in edges]
    turned = ranking.back_edges(len(names), pairs)
    loops = {k for k in turned if pairs[k][0] == pairs[k][1]}
    down = [(v, u) if k in turned else (u, v) for k, (u, v) in enumerate(pairs)]
    succ, pred = ranking.adjacency(len(names), [e for k, e in enumerate(down) if k not in loops])
    rank = ranking.ranks(succ, pred)
    for i, name in enumerate(names):  # a group's ports: the edges' ways begin and end at its border
        if name in ports:
            rank[i] = max(rank) if pred[i] else 0

    widths = [sizes[n][0] for n in names]
    heights = [sizes[n][1] for n in names]
    limit = _longest_bent(rank, down, len(names))
    chains: list[list[int]] = []
    links: list[tuple[int, int]] = []
    shared: dict[tuple[int, int], list[int]] = {}
    for k, (u, v) in enumerate(down):
        if k in loops or rank[v] - rank[u] > limit:
            chains.append([u, v])
            continue
        if (u, v) in shared:  # parallel edges share their way
            chains.append(shared[u, v])
            continue
        chain = [u]
        for r in range(rank[u] + 1, rank[v]):
            chain.append(len(rank))
            rank.append(r)
            widths.append(VIRTUAL_WIDTH)
            heights.append(0.0)
        chain.append(v)
        links.extend(zip(chain, chain[1:], strict=False))
        chains.append(chain)
        shared[u, v] = chain
    total = len(rank)
    succ, pred = ranking.adjacency(total, links)
    layers = ordering.order(rank, succ, pred, sweeps=24 if total < 8000 else 8)
    virtual = [i >= len(names) for i in range(total)]
    cx = coordinates.centres(layers, widths, succ, pred, virtual, node_gap, sweeps=12)
    left = min((cx[i] - widths[i] / 2 for i in range(total)), default=0.0)
    cx = [c - left for c in cx]
    right = max((cx[i] + widths[i] / 2 for i in range(total)), default=0.0)

    tops, bottoms, height = _rank_rows(layers, heights, succ, cx, rank_gap)
    nodes = {}
    for i, name in enumerate(names):
        middle = (tops[rank[i]] + bottoms[rank[i]]) / 2
        nodes[name] = Box(cx[i] - widths[i] / 2, middle - heights[i] / 2, widths[i], heights[i])
    routes = []
    for k, chain in enumerate(chains):
        points: list[Point] = []
        for i in chain:
            half = heights[i] / 2
            middle = (tops[rank[i]] + bottoms[rank[i]]) / 2
            if i != chain[0]:
                points += [
                    (cx[i], tops[rank[i]]),
                    (cx[i], max(middle - half, tops[rank[i]]) if i == chain[-1] else middle),
                ]
            if i != chain[-1]:
                points += [
                    (cx[i], min(middle + half, bottoms[rank[i]]) if i == chain[0] else middle),
                    (cx[i], bottoms[rank[i]]),
                ]
        if k in loops:
            box = nodes[names[chain[0]]]
            points = [
                (box.right, box.y + 4),
                (box.right + 8, box.y + box.height / 2),
                (box.right, box.bottom - 4),
            ]
        if k in turned and k not in loops:
            points.reverse()
        routes.append(Route(*edges[k], tuple(points)))
    return Layout(right + (10.0 if loops else 0.0), height, nodes, routes)


def _longest_bent(rank: list[int], down: list[tuple[int, int]], n: int) -> int:
    """The longest span of an edge that gets virtual nodes: at most 8 a node and 4000 more, so that
    a graph with very many long edges is still drawn in time (those edges are then drawn
    straight)."""
    budget, limit = 8 * n + 4000, 0
    for span in sorted(rank[v] - rank[u] for u, v in down):
        budget -= max(0, span - 1)
        if budget < 0:
            return max(limit, 1)
        limit = span
    return max(limit, 1)


def _rank_rows(
    layers: list[list[int]],
    heights: list[float],
    succ: list[list[int]],
    cx: list[float],
    rank_gap: float,
) -> tuple[list[float], list[float], float]:
    """Top and bottom y of every rank; gaps grow with the widest edge so that curves stay
    readable."""
    tops, bottoms, y = [], [], 0.0
    for layer in layers:
        tops.append(y)
        y += max((heights[i] for i in layer), default=0.0)
        bottoms.append(y)
        widest = max((abs(cx[i] - cx[j]) for i in layer for j in succ[i]), default=0.0)
        y += min(rank_gap + 0.07 * widest, 3 * rank_gap)
    return tops, bottoms, bottoms[-1] if bottoms else 0.0


def _grouped(
    sizes: Mapping[str, Size],
    edges: Sequence[Edge],
    groups: Mapping[str, Sequence[str]],
    owner: Mapping[str, str],
    rank_gap: float,
    node_gap: float,
    max_width: float,
    group_widths: Mapping[str, float],
) -> Layout:
    """Every group is drawn by itself, with a port on its border for each edge that leaves it, and
    then takes part in the outer drawing as one big node."""

    def outer_name(node: str) -> str:
        return f"group:{owner[node]}" if node in owner else f"node:{node}"

    inner: dict[str, Layout] = {}
    for group, members in groups.items():
        inside: dict[str, Size] = {f"node:{m}": sizes[m] for m in members}
        lines: list[Edge] = []
        for u, v in edges:
            mine = owner.get(u) == group, owner.get(v) == group
            if mine == (True, True):
                lines.append((f"node:{u}", f"node:{v}"))
            elif mine[0]:
                inside[f"out:{u}"] = (VIRTUAL_WIDTH, 0.0)
                lines.append((f"node:{u}", f"out:{u}"))
            elif mine[1]:
                inside[f"in:{u}"] = (VIRTUAL_WIDTH, 0.0)
                lines.append((f"in:{u}", f"node:{v}"))
        ports = {name for name in inside if not name.startswith("node:")}
        unique = list(dict.fromkeys(lines))
        inner[group] = _flat(inside, unique, rank_gap, node_gap, max_width, ports)

    outer_sizes: dict[str, Size] = {}
    for node in sizes:
        name = outer_name(node)
        if node in owner:
            drawn = inner[owner[node]]
            outer_sizes[name] = (
                max(drawn.width + 2 * GROUP_PADDING, group_widths.get(owner[node], 0.0)),
                drawn.height + 2 * GROUP_PADDING + GROUP_TITLE,
            )
        else:
            outer_sizes[name] = sizes[node]
    outer_edges = list(
        dict.fromkeys(
            (outer_name(u), outer_name(v)) for u, v in edges if outer_name(u) != outer_name(v)
        )
    )
    outside = _flat(outer_sizes, outer_edges, rank_gap, node_gap, max_width)
    way = dict(zip(outer_edges, outside.routes, strict=True))

    result = Layout(outside.width, outside.height)
    lifted: dict[str, Layout] = {}
    for group in groups:
        box = outside.nodes.get(f"group:{group}")
        if box is None:  # an empty group
            continue
        result.groups[group] = box
        drawn = inner[group]
        dx = box.x + (box.width - drawn.width) / 2
        dy = box.y + GROUP_PADDING + GROUP_TITLE
        lifted[group] = Layout(
            drawn.width,
            drawn.height,
            {n: b.moved(dx, dy) for n, b in drawn.nodes.items()},
            [r.moved(dx, dy) for r in drawn.routes],
        )
    for node in sizes:
        if node in owner:
            result.nodes[node] = lifted[owner[node]].nodes[f"node:{node}"]
        else:
            result.nodes[node] = outside.nodes[f"node:{node}"]
    inner_way = {g: {(r.src, r.dst): r for r in drawn.routes} for g, drawn in lifted.items()}
    for u, v in edges:
        gu, gv = owner.get(u), owner.get(v)
        if gu is not None and gu == gv:
            points = list(inner_way[gu][f"node:{u}", f"node:{v}"].points)
        else:
            middle = list(way[outer_name(u), outer_name(v)].points)
            head: list[Point] = []
            tail: list[Point] = []
            # a route's first two points belong to its source's rank, its last two to its target's
            if gu is not None:
                head = list(inner_way[gu][f"node:{u}", f"out:{u}"].points)
                middle[:2] = [(head[-1][0], y) for _, y in middle[:2]]
            if gv is not None:
                tail = list(inner_way[gv][f"in:{u}", f"node:{v}"].points)
                middle[-2:] = [(tail[0][0], y) for _, y in middle[-2:]]
            points = head + middle + tail
        result.routes.append(Route(u, v, tuple(points)))
    return result

"""Groups within groups: every group is drawn by itself, with ports on its border, and then takes
part in what encloses it as one big box. (`widgets/static/layered.js` does the same on a page.)"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from torchlab.viz.layout.layered import GROUP_PADDING, GROUP_TITLE, VIRTUAL_WIDTH, Edge, Size, _flat
from torchlab.viz.layout.result import Box, Layout, Point, Route


def nested(
    sizes: Mapping[str, Size],
    edges: Sequence[Edge],
    inside: Mapping[str, str],
    parents: Mapping[str, str],
    group_widths: Mapping[str, float],
    *,
    rank_gap: float = 30.0,
    node_gap: float = 22.0,
) -> Layout:
    """Draw a graph whose nodes lie in groups that lie in groups.

    Args:
        sizes: width and height of every node.
        edges: pairs (source, target), without repeats.
        inside: node → its group, '' for none.
        parents: group → the group around it, '' for none; every group on the way is a key.
        group_widths: a least width for every group's box.
        rank_gap, node_gap: as for `layered`.
    """

    def around(node: str) -> list[str]:
        found, group = [], inside[node]
        while group:
            found.append(group)
            group = parents[group]
        return [*found, ""]

    def depth(group: str) -> int:
        n = 0
        while group:
            n, group = n + 1, parents[group]
        return n

    level: dict[str, dict[str, Size]] = {g: {} for g in ("", *parents)}
    lines: dict[str, list[Edge]] = {g: [] for g in level}
    ports: dict[str, set[str]] = {g: set() for g in level}
    for node, size in sizes.items():
        level[inside[node]][f"node:{node}"] = size
    ways: list[tuple[list[tuple[str, Edge]], int]] = []
    for u, v in edges:
        up, down = around(u), around(v)
        common = next(g for g in up if g in down)
        outward, inward = up[: up.index(common)], down[: down.index(common)][::-1]
        way: list[tuple[str, Edge]] = []
        item = f"node:{u}"
        for group in outward:
            way.append((group, (item, f"out:{u}")))
            ports[group].add(f"out:{u}")
            item = f"group:{group}"
        for k, group in enumerate(["", *inward]):
            end = f"group:{inward[k]}" if k < len(inward) else f"node:{v}"
            if k == 0:
                way.append((common, (item, end)))
            else:
                way.append((group, (f"in:{u}", end)))
                ports[group].add(f"in:{u}")
        for group, line in way:
            lines[group].append(line)
        ways.append((way, len(outward)))

    drawn: dict[str, Layout] = {}
    for group in sorted(level, key=depth, reverse=True):
        own = {**level[group], **dict.fromkeys(sorted(ports[group]), (VIRTUAL_WIDTH, 0.0))}
        unique = list(dict.fromkeys(lines[group]))
        drawn[group] = _flat(own, unique, rank_gap, node_gap, 1600.0, ports[group])
        if group:
            level[parents[group]][f"group:{group}"] = (
                max(drawn[group].width + 2 * GROUP_PADDING, group_widths.get(group, 0.0)),
                drawn[group].height + 2 * GROUP_PADDING + GROUP_TITLE,
            )

    result = Layout(drawn[""].width, drawn[""].height)
    shift: dict[str, Point] = {"": (0.0, 0.0)}
    boxes: dict[str, Box] = {}
    for group in sorted(level, key=depth):
        if group:
            box = result.groups[group]
            room = (box.width - drawn[group].width) / 2
            shift[group] = (box.x + room, box.y + GROUP_PADDING + GROUP_TITLE)
        for name, placed in drawn[group].nodes.items():
            kind, _, own_name = name.partition(":")
            if kind == "group":
                result.groups[own_name] = placed.moved(*shift[group])
            elif kind == "node":
                boxes[own_name] = placed.moved(*shift[group])
    result.nodes = {node: boxes[node] for node in sizes}
    paths = {g: {(r.src, r.dst): r for r in drawn[g].routes} for g in drawn}
    for (u, v), (way, outward_count) in zip(edges, ways, strict=True):
        parts = [list(paths[g][line].moved(*shift[g]).points) for g, line in way]
        for k, (here, after) in enumerate(zip(parts, parts[1:], strict=False)):
            if k < outward_count:  # the enclosing way begins at the port
                after[:2] = [(here[-1][0], y) for _, y in after[:2]]
        for k in range(len(parts) - 2, outward_count - 1, -1):  # and ends at one
            parts[k][-2:] = [(parts[k + 1][0][0], y) for _, y in parts[k][-2:]]
        result.routes.append(Route(u, v, tuple(p for points in parts for p in points)))
    return result

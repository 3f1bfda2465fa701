"""What a big graph is folded into: modules within modules, and parts of what is still too long."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

OPEN_AT_FIRST = 60  # boxes that a picture begins with, at most
LONGEST = 60  # children of a group before they are parted


@dataclass(slots=True)
class Group:
    """A module (or a part): its nodes and groups, in the order in which backward comes to them."""

    id: str
    label: str
    parent: str
    children: list[str] = field(default_factory=list)  # ids of nodes and groups
    size: int = 0  # nodes in it, at any depth


def order_of(snapshot: Mapping[str, Any]) -> dict[str, int]:
    """The place of every node in backward: nodes that never ran come last, the newest first."""
    order: dict[str, int] = {}
    for step in snapshot["steps"]:
        order.setdefault(step["node"], len(order))
    for node in reversed(snapshot["nodes"]):
        order.setdefault(node["id"], len(order))
    return order


def fold(snapshot: Mapping[str, Any]) -> dict[str, Group]:
    """All groups by id; the root is ''.

    A module with one node only is no group. Where a group has very many children they are parted
    by backward's order, so that every level can be drawn.
    """
    order = order_of(snapshot)
    sizes: dict[tuple[str, ...], int] = {}
    for node in snapshot["nodes"]:
        path = tuple(node["group"])
        for k in range(len(path) + 1):
            sizes[path[:k]] = sizes.get(path[:k], 0) + 1
    groups: dict[str, Group] = {"": Group("", "", "")}
    ids: dict[tuple[str, ...], str] = {(): ""}
    for node in sorted(snapshot["nodes"], key=lambda n: order[n["id"]]):
        path = tuple(node["group"])
        while path and sizes[path] < 2:
            path = path[:-1]
        for k in range(1, len(path) + 1):
            part = path[:k]
            if part not in ids:
                ids[part] = f"g{len(ids)}"
                parent = ids[part[:-1]]
                groups[ids[part]] = Group(ids[part], part[-1], parent)
                groups[parent].children.append(ids[part])
        groups[ids[path]].children.append(node["id"])
        for k in range(len(path) + 1):
            groups[ids[path[:k]]].size += 1
    names = {n["id"]: n["label"] or n["name"] for n in snapshot["nodes"]}
    for group in list(groups.values()):
        _part(group, groups, names)
    return groups


def _part(group: Group, groups: dict[str, Group], names: Mapping[str, str]) -> None:
    """Fold a long row of children into at most twenty parts, and these again if need be."""
    queue = [group]
    for here in queue:  # grows while it is walked
        n = len(here.children)
        if n <= LONGEST:
            continue
        length = max(20, -(-n // 20))
        rows = [here.children[i : i + length] for i in range(0, n, length)]
        here.children = []
        for k, row in enumerate(rows):
            ends = [groups[m].label.split(":")[0] if m in groups else names[m] for m in row]
            label = " … ".join([ends[0], ends[-1]][: len(row)])
            part = Group(f"{here.id}p{k}", f"{k + 1}/{len(rows)}: {label}", here.id, row)
            part.size = sum(groups[m].size if m in groups else 1 for m in row)
            for member in row:
                if member in groups:
                    groups[member].parent = part.id
            groups[part.id] = part
            here.children.append(part.id)
            queue.append(part)


def opened(groups: Mapping[str, Group], most: int = OPEN_AT_FIRST) -> set[str]:
    """The groups that a picture begins with open: those of one group all or none, outer ones
    first, while there is room."""
    found, boxes = {""}, len(groups[""].children)
    queue = [""]
    for identity in queue:  # grows while it is walked
        inner = [c for c in groups[identity].children if c in groups]
        more = sum(len(groups[c].children) - 1 for c in inner)
        if inner and boxes + more <= most:
            boxes += more
            found.update(inner)
            queue.extend(inner)
    return found


def shown(groups: Mapping[str, Group], are_open: set[str]) -> dict[str, str]:
    """Node → the box that stands for it: itself, or the outermost folded group."""
    found: dict[str, str] = {}
    queue: list[tuple[str, str]] = [("", "")]
    for identity, box in queue:
        here = box or ("" if identity in are_open else identity)
        for child in groups[identity].children:
            if child in groups:
                queue.append((child, here))
            else:
                found[child] = here or child
    return found


def members(groups: Mapping[str, Group], identity: str) -> list[str]:
    """All nodes in a group, at any depth."""
    queue: list[str] = [identity]
    found: list[str] = []
    for here in queue:
        for child in groups[here].children:
            (queue if child in groups else found).append(child)
    return found

"""Fusion groups: nodes brought to common loops. Pure index arithmetic; `schedule` decides with it.

Note [Common loops]
A group has `dims` (no ones among them) and, once it holds a reduction, the
flags `reduced`. Every member's accesses are strides over those dims. A member is *full* if it
runs over all dims, or *kept* if it runs once per result of the reduction (its strides are 0 along
the reduced dims): the mean of a row, and what is computed from it. To join two groups their dims
are split to a common refinement: (6, 5) and (2, 3, 5) both become (2, 3, 5), so that a reshape
between two steps does not stand in the way.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from torchlab._core.codegen.loop_ir import INDEX, Access, Node, Pointwise, Reduction, Shape


@dataclass(frozen=True)
class Member:
    """A node inside a group: its accesses over the group's dims; `full` as in Note [Common
    loops]."""

    node: Node
    order: int
    loads: dict[str, Access]
    store: Access
    full: bool

    @property
    def name(self) -> str:
        return self.node.name


@dataclass(frozen=True)
class Group:
    """Members in program order over common `dims`; `reduced` is None while all members are
    pointwise."""

    dims: Shape
    reduced: tuple[bool, ...] | None
    members: tuple[Member, ...]

    @property
    def kept_dims(self) -> Shape:
        assert self.reduced is not None
        return tuple(n for n, r in zip(self.dims, self.reduced, strict=True) if not r)

    @property
    def names(self) -> frozenset[str]:
        """The buffers computed here."""
        return frozenset(m.name for m in self.members)

    @property
    def reads(self) -> frozenset[str]:
        """The buffers read from outside."""
        return frozenset(b for m in self.members for b in m.node.reads) - self.names

    def member(self, name: str) -> Member:
        return next(m for m in self.members if m.name == name)


def single(node: Node, order: int) -> Group:
    """The group of one pointwise or reduction node."""
    keep = tuple(d for d, n in enumerate(node.loops) if n != 1)
    member = Member(
        node,
        order,
        {k: a.permute(keep) for k, a in node.loads.items()},
        node.store.permute(keep),
        True,
    )
    reduced = tuple(node.reduced[d] for d in keep) if isinstance(node, Reduction) else None
    return Group(tuple(node.loops[d] for d in keep), reduced, (member,))


def refine(a: Shape, b: Shape) -> Shape | None:
    """The coarsest dims that split both `a` and `b` (equal numels), or None.

    >>> refine((6, 5), (2, 3, 5)), refine((6, 4), (4, 6))
    ((2, 3, 5), None)
    """
    cuts = sorted({math.prod(s[i:]) for s in (a, b) for i in range(len(s) + 1)})
    if any(high % low for low, high in zip(cuts, cuts[1:], strict=False)):
        return None
    return tuple(high // low for low, high in zip(cuts, cuts[1:], strict=False))[::-1]


def split(stride: Shape, dims: Shape, finer: Shape) -> Shape:
    """Strides over `dims` as strides over their refinement `finer`."""
    result: list[int] = []
    parts = list(reversed(finer))
    for size, step in zip(reversed(dims), reversed(stride), strict=True):
        while size > 1:
            part = parts[len(result)]
            result.append(step)
            size, step = size // part, step * part
    return tuple(reversed(result))


def _split_flags(flags: tuple[bool, ...], dims: Shape, finer: Shape) -> tuple[bool, ...]:
    # a stride of 1 marks a reduced dim, 0 a kept one; splitting keeps zero apart from the rest
    return tuple(s != 0 for s in split(tuple(int(f) for f in flags), dims, finer))


def _respread(
    access: Access, dims: Shape, finer: Shape, places: tuple[int, ...], rank: int
) -> Access:
    """Split an access and put its loops at `places` among `rank` group dims, stride 0 elsewhere."""
    stride = [0] * rank
    for place, step in zip(places, split(access.stride, dims, finer), strict=True):
        stride[place] = step
    return Access(access.buffer, (), tuple(stride), access.offset)


def _place(
    group: Group, old: Shape, finer: Shape, places: tuple[int, ...], rank: int, full: bool
) -> list[Member]:
    return [
        replace(
            m,
            loads={k: _respread(a, old, finer, places, rank) for k, a in m.loads.items()},
            store=_respread(m.store, old, finer, places, rank),
            full=m.full and full,
        )
        for m in group.members
    ]


def join(first: Group, second: Group) -> Group | str:
    """Both groups over common loops, or the reason (a phrase) why there are none."""
    if math.prod(first.dims) == math.prod(second.dims):
        dims = refine(first.dims, second.dims)
        if dims is None:
            return f"their shapes {first.dims} and {second.dims} have no common loops"
        flags = [
            _split_flags(g.reduced, g.dims, dims) for g in (first, second) if g.reduced is not None
        ]
        if len(flags) == 2 and flags[0] != flags[1]:
            return "they reduce over different dims"
        everywhere = tuple(range(len(dims)))
        members = [
            m for g in (first, second) for m in _place(g, g.dims, dims, everywhere, len(dims), True)
        ]
        return _sorted(dims, flags[0] if flags else None, members)
    for outer, inner in ((first, second), (second, first)):
        if outer.reduced is None or math.prod(outer.kept_dims) != math.prod(inner.dims):
            continue
        if inner.reduced is not None:
            break
        return _join_kept(outer, inner)
    return f"one loops over {first.dims}, the other over {second.dims}"


def _join_kept(outer: Group, inner: Group) -> Group | str:
    """`inner` runs once per result of `outer`'s reduction."""
    assert outer.reduced is not None
    kept = refine(outer.kept_dims, inner.dims)
    if kept is None:
        return f"their shapes {outer.kept_dims} and {inner.dims} have no common loops"
    # split outer's kept dims so that they spell `kept`; its reduced dims stay
    dims: list[int] = []
    flags: list[bool] = []
    todo = list(kept)
    for size, reduced in zip(outer.dims, outer.reduced, strict=True):
        if reduced:
            dims.append(size)
            flags.append(True)
        while not reduced and size > 1:
            dims.append(todo.pop(0))
            flags.append(False)
            size //= dims[-1]
    rank = len(dims)
    places = tuple(d for d in range(rank) if not flags[d])
    members = _place(outer, outer.dims, tuple(dims), tuple(range(rank)), rank, True)
    members += _place(inner, inner.dims, kept, places, rank, False)
    return _sorted(tuple(dims), tuple(flags), members)


def _sorted(dims: Shape, reduced: tuple[bool, ...] | None, members: list[Member]) -> Group:
    return Group(dims, reduced, tuple(sorted(members, key=lambda m: m.order)))


def mismatched_read(group: Group) -> str | None:
    """A read of a member's result at another place than where it was just computed, as a phrase."""
    made = {m.name: m for m in group.members}
    for m in group.members:
        for access in m.loads.values():
            maker = made.get(access.buffer)
            if maker is not None and (access.stride, access.offset) != (maker.store.stride, 0):
                return f"'{m.name}' reads '{maker.name}' in another order than it is computed"
    return None


def fast_dim(group: Group) -> int | None:
    """The dim along which most full accesses are contiguous: the natural innermost loop."""
    votes = [0] * len(group.dims)
    for m in group.members:
        if not m.full:
            continue
        stores = [m.store] if isinstance(m.node, Pointwise) else []
        for access in (*m.loads.values(), *stores):
            for d, step in enumerate(access.stride):
                votes[d] += step == 1 and access.buffer != INDEX
    return max(range(len(votes)), key=lambda d: (votes[d], d)) if any(votes) else None


def merge_dims(
    accesses: list[Access], dims: Shape, order: tuple[int, ...]
) -> tuple[Shape, list[Access]]:
    """The dims in `order`, neighbours joined wherever every access walks them as one."""
    sizes: list[int] = []
    columns: list[list[int]] = []  # per loop, one stride per access
    for d in order:
        column = [a.stride[d] for a in accesses]
        if sizes and all(p == s * dims[d] for p, s in zip(columns[-1], column, strict=True)):
            sizes[-1] *= dims[d]
            columns[-1] = column
        else:
            sizes.append(dims[d])
            columns.append(column)
    merged = [
        Access(a.buffer, (), tuple(c[i] for c in columns), a.offset) for i, a in enumerate(accesses)
    ]
    return tuple(sizes), merged

"""From a fusion group to a kernel: which loop nest, and which loops over the row in it.

Note [Stages]
A kernel with a reduction visits each *row* (the reduced dims) several times:
softmax finds the maximum, then the exponentials and their sum, then the quotients. Each visit is
a stage: one loop over the row, which computes full members and accumulates reductions, and then
what is computed once per row. A value that a later stage reads again is kept in a row buffer
(which stays in the L1 or L2 cache), read back from the output it was written to, or, if it is one
cheap operation on one row (x - mean), computed again.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from torchlab._core.codegen.group import Group, Member, fast_dim
from torchlab._core.codegen.loop_ir import INDEX, Pointwise, Reduction
from torchlab._core.codegen.scalar import TRANSCENDENTAL
from torchlab._core.codegen.scalar_types import ITEMSIZE, compute_type

ROW_BUFFER_LIMIT = 256 * 1024
"""Bytes of row buffers a kernel may keep: they must stay in the L2 cache and fit a thread's
stack."""
ROW_LIMIT = 1024 * 1024
"""Bytes of one row that is visited more than once."""


@dataclass(frozen=True)
class Stage:
    """One visit of the row: `body` (full members in order), the reductions it feeds, and what
    follows."""

    body: tuple[Member, ...]
    reductions: tuple[Member, ...]
    after: tuple[Member, ...]


@dataclass(frozen=True)
class Plan:
    """`mode`: "pointwise" (one loop), "row" (rows outside, stages inside) or "column" (a tile of
    columns accumulates while rows pass). `before`: members computed once per row ahead of the
    first stage. `scratch`: the full members kept in row buffers."""

    mode: str
    group: Group
    before: tuple[Member, ...]
    stages: tuple[Stage, ...]
    scratch: tuple[str, ...] = ()


def make_plan(group: Group, written: frozenset[str]) -> Plan | str:
    """The stages of a kernel for `group`, or the reason (a phrase) why it would be a bad kernel.
    `written`: members whose result is needed outside."""
    if group.reduced is None:
        return Plan("pointwise", group, (), (Stage(group.members, (), ()),))
    planner = _Planner(group, written)
    fast = fast_dim(group)
    down_columns = fast is not None and not group.reduced[fast]
    if down_columns and planner.kept_to_full is None and planner.count == 1:
        return planner.plan("column", ())
    if down_columns and planner.kept_to_full is not None:
        first, second = planner.kept_to_full
        return (
            f"'{second}' needs '{first}' for every element, and memory runs across the reduction:"
            " the last row would have to be read before the first is finished"
        )
    return planner.row_plan()


class _Planner:
    def __init__(self, group: Group, written: frozenset[str]) -> None:
        self.group, self.written = group, written
        self.made = {m.name: m for m in group.members}
        self.home: dict[str, int] = {}
        self.ready: dict[str, int] = {}
        self.kept_to_full: tuple[str, str] | None = None
        for m in group.members:
            inputs = [b for b in m.node.reads if b in self.made]
            stage = max((self.ready[b] for b in inputs), default=0)
            self.home[m.name] = stage
            self.ready[m.name] = stage + isinstance(m.node, Reduction)
            if m.full:
                kept = [b for b in inputs if self.once_per_row(b)]
                if kept:
                    self.kept_to_full = (kept[0], m.name)
        self.count = 1 + max(self.home[m.name] for m in group.members if m.full)

    def once_per_row(self, name: str) -> bool:
        member = self.made[name]
        return not member.full or isinstance(member.node, Reduction)

    def row_plan(self) -> Plan | str:
        assert self.group.reduced is not None
        row = math.prod(n for n, r in zip(self.group.dims, self.group.reduced, strict=True) if r)
        if self.count > 1 and row * 4 > ROW_LIMIT:
            return f"the row of {row} elements would leave the cache before it is read again"
        scratch: dict[str, None] = {}
        bodies: list[tuple[Member, ...]] = []
        for stage in reversed(range(self.count)):
            bodies.append(self.demand(stage, scratch))
        size = sum(row * ITEMSIZE[compute_type(self.made[name].node.dtype)] for name in scratch)
        if size > ROW_BUFFER_LIMIT:
            return (
                f"its row buffers would take {size} bytes, more than stays in cache"
                f" ({ROW_BUFFER_LIMIT})"
            )
        if self.has_search() and any(_expensive(m) for m in self.group.members if m.full):
            return (
                "argmax and argmin walk a row in order, which would keep the rest from vectorising"
            )
        return self.plan(
            "row",
            tuple(reversed(bodies)),
            tuple(m.name for m in self.group.members if m.name in scratch),
        )

    def has_search(self) -> bool:
        return any(
            isinstance(m.node, Reduction) and m.node.kind.startswith("arg")
            for m in self.group.members
        )

    def demand(self, stage: int, scratch: dict[str, None]) -> tuple[Member, ...]:
        """The pointwise members that the loop of `stage` computes; adds to `scratch` what it reads
        back."""
        computed: dict[str, Member] = {}

        def compute(m: Member) -> None:
            if isinstance(m.node, Pointwise):
                if m.name in computed:
                    return
                computed[m.name] = m
            for name in m.node.reads:
                if name not in self.made or self.once_per_row(name):
                    continue
                source = self.made[name]
                if self.home[name] == stage or self.cheap(source):
                    compute(source)
                elif name not in self.written:
                    scratch[name] = None

        for m in self.group.members:
            if m.full and self.home[m.name] == stage:
                if isinstance(m.node, Reduction) or m.name in self.written or m.name in scratch:
                    compute(m)
        return tuple(m for m in self.group.members if m.name in computed)

    def cheap(self, m: Member) -> bool:
        """One arithmetic operation on one row: computing it again costs less than a row buffer."""
        assert self.group.reduced is not None
        reduced = self.group.reduced
        rows = sum(
            any(step and r for step, r in zip(a.stride, reduced, strict=True))
            for a in m.loads.values()
            if a.buffer != INDEX
        )
        return rows <= 1 and not _expensive(m) and m.name not in self.written

    def plan(
        self, mode: str, bodies: tuple[tuple[Member, ...], ...], scratch: tuple[str, ...] = ()
    ) -> Plan:
        members = self.group.members
        if mode == "column":
            bodies = (tuple(m for m in members if m.full and isinstance(m.node, Pointwise)),)
        once = [m for m in members if not m.full]
        stages = tuple(
            Stage(
                body,
                tuple(
                    m for m in members if isinstance(m.node, Reduction) and self.home[m.name] == i
                ),
                tuple(m for m in once if self.home[m.name] == i + 1 or mode == "column"),
            )
            for i, body in enumerate(bodies)
        )
        # columns have no "once per row": what precedes the reductions is computed with what follows
        # them
        before = () if mode == "column" else tuple(m for m in once if self.home[m.name] == 0)
        return Plan(mode, self.group, before, stages, scratch)


def _expensive(m: Member) -> bool:
    return isinstance(m.node, Pointwise) and any(n.op in TRANSCENDENTAL for n in m.node.body.walk())

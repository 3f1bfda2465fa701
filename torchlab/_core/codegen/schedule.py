"""Fusion: which nodes share a kernel, decided greedily in program order, every decision with its
reason."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from torchlab._core import events
from torchlab._core.codegen.group import Group, join, mismatched_read, single
from torchlab._core.codegen.loop_ir import ExternKernel, Graph, Node
from torchlab._core.codegen.scalar_types import ITEMSIZE
from torchlab._core.codegen.stages import Plan, make_plan


@dataclass(frozen=True)
class FusionDecision:
    """Whether `second` (a node) joined the kernel of `first`, and why."""

    first: str
    second: str
    accepted: bool
    reason: str

    def __str__(self) -> str:
        return (
            f"{self.first} + {self.second}: {'fused' if self.accepted else 'not fused'}:"
            f" {self.reason}"
        )


@dataclass(frozen=True)
class Kernel:
    """A plan with a name, the buffers it reads (`inputs`) and writes (`outputs`), in parameter
    order."""

    name: str
    plan: Plan
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]

    @property
    def nodes(self) -> tuple[Node, ...]:
        return tuple(m.node for m in self.plan.group.members)


@dataclass(frozen=True)
class Schedule:
    """Kernels and library calls in the order they run, and how it came to that."""

    graph: Graph
    tasks: tuple[Kernel | ExternKernel, ...]
    decisions: tuple[FusionDecision, ...]


def schedule(graph: Graph, fuse: bool = True) -> Schedule:
    """Group the nodes of `graph` into kernels (one each if not `fuse`)."""
    return _Scheduler(graph).run(fuse)


class _Scheduler:
    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.decisions: list[FusionDecision] = []
        nodes = [n for n in graph.nodes if graph.buffers[n.name].numel]
        self.order = {n.name: i for i, n in enumerate(nodes)}
        self.nodes = nodes
        self.groups: dict[int, Group | ExternKernel] = {}  # by number; node i starts as group i
        self.home = list(range(len(nodes)))  # node → group
        self.below: dict[int, int] = {}  # group → bit set of the nodes it depends on
        self.bits: dict[int, int] = {}  # group → bit set of its nodes
        for i, n in enumerate(nodes):
            self.groups[i] = n if isinstance(n, ExternKernel) else single(n, i)
            self.bits[i] = 1 << i
            self.below[i] = 0
            for name in n.reads:
                if name in self.order:
                    j = self.order[name]
                    self.below[i] |= self.below[j] | self.bits[j]
        self.readers: dict[str, list[int]] = {}
        for i, n in enumerate(nodes):
            for name in n.reads:
                self.readers.setdefault(name, []).append(i)
        self.results = {a.buffer for a in graph.outputs}

    def run(self, fuse: bool) -> Schedule:
        if fuse:
            for i, node in enumerate(self.nodes):
                for name in node.reads:
                    if name in self.order:
                        self.consider(self.order[name], i)
            self.fuse_siblings()
        return Schedule(self.graph, tuple(self.sorted_tasks()), tuple(self.decisions))

    def consider(self, first: int, second: int) -> None:
        a, b = self.home[first], self.home[second]
        names = self.nodes[first].name, self.nodes[second].name
        if a == b:
            self.decide(*names, True, "already in one kernel")
            return
        merged = self.merged(a, b)
        if isinstance(merged, str):
            self.decide(*names, False, merged)
            return
        self.replace(a, b, merged)
        size = self.graph.buffers[names[0]].numel * ITEMSIZE[self.nodes[first].dtype]
        kept = names[0] not in self.written(merged)
        gain = "need not be written and read" if kept else "need not be read again"
        self.decide(*names, True, f"same loops; {size} bytes of '{names[0]}' {gain}")

    def fuse_siblings(self) -> None:
        """Kernels that read the same large buffer and do not depend on each other share its
        reading."""
        for name, readers in self.readers.items():
            for second in readers[1:]:
                first = readers[0]
                a, b = self.home[first], self.home[second]
                if (
                    a == b
                    or isinstance(self.groups[a], ExternKernel)
                    or isinstance(self.groups[b], ExternKernel)
                ):
                    continue
                if self.below[a] & self.bits[b]:
                    a, b = b, a
                merged = self.merged(a, b)
                names = self.nodes[first].name, self.nodes[second].name
                if isinstance(merged, str):
                    self.decide(*names, False, merged)
                else:
                    self.replace(a, b, merged)
                    self.decide(*names, True, f"same loops; both read '{name}'")

    def merged(self, a: int, b: int) -> Group | str:
        """The group of `a` and `b` together, or the reason against it."""
        first, second = self.groups[a], self.groups[b]
        for group in (first, second):
            if isinstance(group, ExternKernel):
                return f"'{group.name}' is a library call"
        assert isinstance(first, Group) and isinstance(second, Group)
        for other in self.groups:
            if (
                other not in (a, b)
                and self.below[b] & self.bits[other]
                and self.below[other] & self.bits[a]
            ):
                return f"'{self.name_of(other)}' must run between them"
        group = join(first, second)
        if isinstance(group, str):
            return group
        problem = mismatched_read(group)
        if problem is not None:
            return problem
        plan = make_plan(group, self.written(group))
        return plan if isinstance(plan, str) else group

    def replace(self, a: int, b: int, group: Group) -> None:
        self.groups[a] = group
        self.bits[a] |= self.bits.pop(b)
        self.below[a] = (self.below[a] | self.below.pop(b)) & ~self.bits[a]
        del self.groups[b]
        for m in group.members:
            self.home[m.order] = a
        for other in self.groups:
            if self.below[other] & self.bits[a]:
                self.below[other] |= self.below[a] | self.bits[a]

    def written(self, group: Group) -> frozenset[str]:
        """The members of `group` whose result something outside reads."""
        inside = {m.order for m in group.members}
        return frozenset(
            m.name
            for m in group.members
            if m.name in self.results or any(r not in inside for r in self.readers.get(m.name, ()))
        )

    def name_of(self, number: int) -> str:
        group = self.groups[number]
        return group.name if isinstance(group, ExternKernel) else group.members[-1].name

    def sorted_tasks(self) -> Iterable[Kernel | ExternKernel]:
        # a group may only run when all it depends on has: the number of nodes below it grows along
        # paths
        taken: set[str] = set()
        done = 0
        waiting = sorted(self.groups)
        while waiting:
            number = next(g for g in waiting if not self.below[g] & ~done)
            waiting.remove(number)
            done |= self.bits[number]
            group = self.groups[number]
            yield group if isinstance(group, ExternKernel) else self.kernel(group, taken)

    def kernel(self, group: Group, taken: set[str]) -> Kernel:
        written = self.written(group)
        plan = make_plan(group, written)
        assert isinstance(plan, Plan), plan
        inputs = dict.fromkeys(
            b for m in group.members for b in m.node.reads if b not in group.names
        )
        outputs = tuple(m.name for m in group.members if m.name in written)
        return Kernel(_kernel_name(group, taken), plan, tuple(inputs), outputs)

    def decide(self, first: str, second: str, accepted: bool, reason: str) -> None:
        self.decisions.append(FusionDecision(first, second, accepted, reason))
        if events.fusion.listeners:
            events.fusion.emit(first=first, second=second, accepted=accepted, reason=reason)


def _kernel_name(group: Group, taken: set[str]) -> str:
    names = [re.sub(r"\W", "_", m.name) for m in group.members]
    base = names[0] if len(names) == 1 else "fused_" + "_".join(names)
    base = f"kernel_{base}"
    if len(base) > 48:
        base = f"kernel_fused_{names[0]}_to_{names[-1]}"[:60]
    name, n = base, 1
    while name in taken:
        n += 1
        name = f"{base}_{n}"
    taken.add(name)
    return name

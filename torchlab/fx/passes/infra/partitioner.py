"""Group the nodes that a backend supports, as many as go together.

Source: https://docs.pytorch.org/docs/2.13/fx.html
"""

from __future__ import annotations

import operator
from collections.abc import Iterable, Sequence
from typing import Any

from torchlab.fx._naming import _get_qualified_name
from torchlab.fx.graph_module import GraphModule
from torchlab.fx.node import Node
from torchlab.fx.passes.operator_support import OperatorSupportBase
from torchlab.fx.passes.utils.fuser_utils import fuse_by_partitions, validate_partition

__all__ = ["CapabilityBasedPartitioner", "Partition"]


class Partition:
    """A group of nodes."""

    def __init__(
        self,
        id: int | None = None,
        nodes: Iterable[Node] | None = None,
        node_orders: Iterable[int] | None = None,
    ) -> None:
        self.id = id
        if nodes is None:
            self.nodes: dict[Node, int | None] = {}
        elif node_orders is None:
            self.nodes = dict.fromkeys(nodes, None)
        else:
            self.nodes = dict(zip(nodes, node_orders, strict=True))

    def __repr__(self) -> str:
        return str(self.nodes)

    def add_node(self, node: Node, node_order: int | None = None) -> None:
        """One more node."""
        self.nodes[node] = node_order

    def remove_node(self, node: Node) -> None:
        """One less."""
        del self.nodes[node]

    def size(self) -> int:
        """How many nodes."""
        return len(self.nodes)


def _latest(group: tuple[int, Partition]) -> int:
    return max(place or 0 for place in group[1].nodes.values())


class CapabilityBasedPartitioner:
    """Finds groups of supported nodes that can each be one call, and fuses them.

    allows_single_node_partition: a group of one is a group. non_compute_ops: names of operators
    that are no work; groups of them alone are dropped. allowed_single_node_partition_ops: names of
    operators that may be groups by themselves. skip_horizontal_fusion: only nodes that read each
    other are grouped.
    """

    def __init__(
        self,
        graph_module: GraphModule,
        operator_support: OperatorSupportBase,
        allows_single_node_partition: bool = False,
        non_compute_ops: Sequence[str] | None = None,
        allowed_single_node_partition_ops: Sequence[str] | None = None,
        skip_horizontal_fusion: bool = False,
    ) -> None:
        self.graph_module = graph_module
        self.operator_support = operator_support
        self.allows_single_node_partition = allows_single_node_partition
        self.non_compute_ops = non_compute_ops if non_compute_ops is not None else []
        self.allowed_single_node_partition_ops = (
            allowed_single_node_partition_ops
            if allowed_single_node_partition_ops is not None
            else []
        )
        self.skip_horizontal_fusion = skip_horizontal_fusion

    def _is_node_supported(self, node: Node) -> bool:
        modules: Any = dict(self.graph_module.named_modules())
        return self.operator_support.is_node_supported(modules, node)

    def propose_partitions(self) -> list[Partition]:
        """The groups, each of which can be one call."""
        groups: dict[int, Partition] = {}
        of: dict[Node, int] = {}
        count = 0
        for place, node in reversed(list(enumerate(self.graph_module.graph.nodes))):
            if not self._is_node_supported(node) or node.op in ("placeholder", "output"):
                continue
            own = Partition(count, [node], [place])
            groups[count] = own
            of[node] = count
            for other in list(groups):
                if other == own.id:
                    continue
                if self.skip_horizontal_fusion and not self._touch(own, groups[other]):
                    continue
                together = [*own.nodes, *groups[other].nodes]
                if validate_partition(together):
                    own.nodes.update(groups.pop(other).nodes)
            for n in own.nodes:
                of[n] = count
            if own.size() > 1:  # it stands where the group that it joined stood
                groups = dict(sorted(groups.items(), key=_latest, reverse=True))
            count += 1
        self._move_parts(groups, of)
        wanted = [p for p in groups.values() if p.nodes]
        if self.allows_single_node_partition:
            return wanted
        return [p for p in wanted if self._worth(p)]

    @staticmethod
    def _touch(a: Partition, b: Partition) -> bool:
        return any(u in b.nodes for n in a.nodes for u in n.users) or any(
            u in a.nodes for n in b.nodes for u in n.users
        )

    def _move_parts(self, groups: dict[int, Partition], of: dict[Node, int]) -> None:
        """What takes a part of a sequence goes where the sequence is made."""
        for node in self.graph_module.graph.nodes:
            if node.op != "call_function" or node.target is not operator.getitem:
                continue
            source = node.args[0]
            if not isinstance(source, Node) or of.get(source) == of.get(node):
                continue
            if node in of:
                groups[of.pop(node)].remove_node(node)
            if source in of:
                groups[of[source]].add_node(node, None)
                of[node] = of[source]

    def _worth(self, partition: Partition) -> bool:
        """Whether it has more than one node that is work, or one that may be alone."""
        work = 0
        for node in partition.nodes:
            if node.op != "call_function":
                work += 1
                continue
            name = _get_qualified_name(node.target)
            if name not in self.non_compute_ops and node.target is not operator.getitem:
                work += 1
            if name in self.allowed_single_node_partition_ops:
                return True
        return work > 1

    def fuse_partitions(self, partitions: list[Partition], prefix: str = "fused_") -> GraphModule:
        """The module with each group in a submodule `<prefix><number>`."""
        return fuse_by_partitions(self.graph_module, [p.nodes for p in partitions], prefix=prefix)

    def remove_bookend_non_compute_ops(self, partitions: list[Partition]) -> None:
        """Take operators that are no work out of the groups' beginnings and ends, in place."""

        def idle(node: Node) -> bool:
            return (
                node.op == "call_function"
                and _get_qualified_name(node.target) in self.non_compute_ops
            )

        for partition in partitions:
            changed = True
            while changed:
                ends = [
                    n
                    for n in partition.nodes
                    if idle(n)
                    and (
                        not any(i in partition.nodes for i in n.all_input_nodes)
                        or not any(u in partition.nodes for u in n.users)
                    )
                ]
                for n in ends:
                    partition.remove_node(n)
                changed = bool(ends)

    def partition_and_fuse(self, prefix: str = "fused_") -> GraphModule:
        """`propose_partitions`, and then `fuse_partitions`."""
        return self.fuse_partitions(self.propose_partitions(), prefix=prefix)

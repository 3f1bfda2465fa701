"""The graph: nodes in the order they run, and what one does to them.

Source: https://docs.pytorch.org/docs/2.13/fx.html#torch.fx.Graph
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from torchlab.fx.names import Names, snake
from torchlab.fx.node import Node, callable_name, map_arg, target_name
from torchlab.fx.python_code import PythonCode, python_code

__all__ = ["Graph", "PythonCode"]


class _NodeList:
    """The nodes of a graph in order; a view, so that it may be changed while one walks."""

    def __init__(self, graph: Graph, backwards: bool = False) -> None:
        self.graph = graph
        self.backwards = backwards

    def __len__(self) -> int:
        return self.graph._len

    def __iter__(self) -> Iterator[Node]:
        root = self.graph._root
        at = root._prev if self.backwards else root._next
        while at is not root:
            following = at._prev if self.backwards else at._next
            if not at._erased:
                yield at
                following = at._prev if self.backwards else at._next
            at = following

    def __reversed__(self) -> _NodeList:
        return _NodeList(self.graph, not self.backwards)

    def __getitem__(self, i: Any) -> Any:
        return list(self)[i]

    def __contains__(self, node: object) -> bool:
        return any(n is node for n in self)


class Graph:
    """Nodes of six kinds (see `Node`) in the order in which they run.

    >>> g = Graph()
    >>> x = g.placeholder("x")
    >>> _ = g.output(g.call_method("neg", (x,)))
    >>> print(g)
    graph():
        %x : [num_users=1] = placeholder[target=x]
        %neg : [num_users=1] = call_method[target=neg](args = (%x,), kwargs = {})
        return neg
    """

    def __init__(
        self, owning_module: Any = None, tracer_cls: Any = None, tracer_extras: Any = None
    ) -> None:
        self._root = Node(self, "", "placeholder", "", (), {})
        self._insert: Callable[[Node], None] = self._root.prepend
        self._len = 0
        self._names = Names()
        self.owning_module = owning_module
        self._tracer_cls = tracer_cls

    @property
    def nodes(self) -> _NodeList:
        """All nodes, in the order they run."""
        return _NodeList(self)

    def find_nodes(self, *, op: str, target: Any = None, sort: bool = True) -> list[Node]:
        """The nodes of one kind, and of one target if given."""
        return [n for n in self.nodes if n.op == op and (target is None or n.target == target)]

    # ---- making nodes ----------------------------------------------------------------------------

    def create_node(
        self,
        op: str,
        target: Any,
        args: tuple[Any, ...] | None = None,
        kwargs: dict[str, Any] | None = None,
        name: str | None = None,
        type_expr: Any = None,
    ) -> Node:
        """A node at the insertion point (the end, unless `inserting_before` says otherwise)."""
        args, kwargs = args or (), kwargs or {}
        self._check_own(map_nodes((args, kwargs)))
        chosen = self._names.create(name or self._candidate(op, target))
        node = Node(self, chosen, op, target, args, kwargs, type_expr)
        self._insert(node)
        self._len += 1
        return node

    def _check_own(self, nodes: list[Node]) -> None:
        for n in nodes:
            if n.graph is not self:
                raise RuntimeError(
                    f"Argument '{n}' does not belong to this Graph; use node_copy to bring it here"
                )

    @staticmethod
    def _candidate(op: str, target: Any) -> str:
        if op == "output":
            return "output"
        if op == "call_function":
            return snake(callable_name(target))
        if op in ("placeholder", "call_method"):
            return target.lstrip("*").strip("_") if op == "call_method" else target.lstrip("*")
        return target.replace(".", "_")

    def placeholder(self, name: str, type_expr: Any = None, default_value: Any = ...) -> Node:
        """An input of the graph; `*args` and `**kwargs` are names too."""
        args = () if default_value is ... else (default_value,)
        return self.create_node("placeholder", name, args, type_expr=type_expr)

    def get_attr(self, qualified_name: str, type_expr: Any = None) -> Node:
        """A parameter, buffer or other attribute of the module, by its path."""
        return self.create_node("get_attr", qualified_name, type_expr=type_expr)

    # fmt: skip
    def call_function(
        self,
        the_function: Callable[..., Any],
        args: Any = None,
        kwargs: Any = None,
        type_expr: Any = None,
        name: str | None = None,
    ) -> Node:
        """`the_function(*args, **kwargs)`."""
        return self.create_node("call_function", the_function, args, kwargs, name, type_expr)

    def call_method(
        self, method_name: str, args: Any = None, kwargs: Any = None, type_expr: Any = None
    ) -> Node:
        """`args[0].method_name(*args[1:], **kwargs)`."""
        return self.create_node("call_method", method_name, args, kwargs, type_expr=type_expr)

    def call_module(
        self, module_name: str, args: Any = None, kwargs: Any = None, type_expr: Any = None
    ) -> Node:
        """Calls the submodule at a path."""
        return self.create_node("call_module", module_name, args, kwargs, type_expr=type_expr)

    def output(self, result: Any, type_expr: Any = None) -> Node:
        """What the graph returns."""
        return self.create_node("output", "output", (result,), type_expr=type_expr)

    def node_copy(self, node: Node, arg_transform: Callable[[Node], Any] = lambda x: x) -> Node:
        """A copy of another graph's node here; `arg_transform` maps its inputs to nodes of
        this graph.
        """
        args, kwargs = map_arg((node.args, node.kwargs), arg_transform)
        made = self.create_node(node.op, node.target, args, kwargs, node.name, node.type)
        made.meta = dict(node.meta)
        return made

    def graph_copy(
        self, g: Graph, val_map: dict[Node, Any], return_output_node: bool = False
    ) -> Any:
        """Copy all nodes of `g`; gives what its output returned, in terms of the copies."""
        for node in g.nodes:
            if node in val_map:
                continue
            if node.op == "output":
                value = map_arg(node.args[0], lambda n: val_map[n])
                return (value, node) if return_output_node else value
            val_map[node] = self.node_copy(node, lambda n: val_map[n])
        return None

    def __deepcopy__(self, memo: Any = None) -> Graph:
        made = Graph(tracer_cls=self._tracer_cls)
        table: dict[Node, Any] = {}
        result = made.graph_copy(self, table, True)
        if isinstance(result, tuple) and len(result) == 2 and isinstance(result[1], Node):
            made.output(result[0], result[1].type).meta = dict(result[1].meta)
        return made

    # ---- changing --------------------------------------------------------------------------------

    @contextmanager
    def _inserting(self, where: Callable[[Node], None]) -> Iterator[None]:
        before, self._insert = self._insert, where
        try:
            yield
        finally:
            self._insert = before

    def inserting_before(self, n: Node | None = None) -> Any:
        """`with graph.inserting_before(n):` new nodes come before `n` (None: at the start)."""
        return self._inserting(self._root.append if n is None else self._own(n).prepend)

    def inserting_after(self, n: Node | None = None) -> Any:
        """`with graph.inserting_after(n):` each new node comes right after `n` (None: at
        the end).
        """
        return self._inserting(self._root.prepend if n is None else self._own(n).append)

    def _own(self, n: Node) -> Node:
        if n.graph is not self:
            raise AssertionError("Node to insert before or after is not in graph.")
        return n

    def erase_node(self, to_erase: Node) -> None:
        """Remove a node that nobody reads; RuntimeError if somebody does."""
        if to_erase.users:
            raise RuntimeError(
                f"Tried to erase Node {to_erase} but it still had {len(to_erase.users)} "
                f"users in the graph: {to_erase.users}!"
            )
        if to_erase.graph is not self:
            raise RuntimeError(f"Attempting to remove {to_erase} from wrong graph!")
        if to_erase._erased:
            return
        to_erase._unlink()
        to_erase._erased = True
        self._len -= 1
        to_erase._update((), {})

    def eliminate_dead_code(self, is_impure_node: Callable[[Node], bool] | None = None) -> bool:
        """Remove nodes without users, last first, but those with side effects; whether any went."""
        impure = is_impure_node or Node.is_impure
        dead = [n for n in reversed(self.nodes) if not n.users and not impure(n)]
        changed = bool(dead)
        while dead:
            for n in dead:
                self.erase_node(n)
            dead = [n for n in reversed(self.nodes) if not n.users and not impure(n)]
        return changed

    def lint(self) -> None:
        """RuntimeError unless every node reads earlier nodes of this graph and names are
        unique; with an
        owning module, targets must exist in it."""
        seen: dict[Node, None] = {}
        names: set[str] = set()
        for node in self.nodes:
            if node.graph is not self:
                raise RuntimeError(f"Node '{node}' does not belong to this Graph!")
            for n in node.all_input_nodes:
                if n.graph is not self:
                    raise RuntimeError(
                        f"Argument '{n}' of Node '{node}' does not belong to this Graph, "
                        "but was used as an argument!"
                    )
                if n not in seen:
                    raise RuntimeError(
                        f"Argument '{n}' of Node '{node}' was used before it has been "
                        "defined! Please check that Nodes in the graph are "
                        f"topologically ordered\n{self}"
                    )
            if node.name in names:
                raise RuntimeError(f"Node redefined name {node.name}!")
            names.add(node.name)
            seen[node] = None
            if node.op in ("get_attr", "call_module") and self.owning_module is not None:
                at = self.owning_module
                for part in node.target.split("."):
                    if not hasattr(at, part):
                        raise RuntimeError(
                            f"Node {node} target {node.target} references nonexistent "
                            f"attribute {part} of {type(at).__name__}"
                        )
                    at = getattr(at, part)

    def output_node(self) -> Node:
        """The node that returns; RuntimeError if there is none."""
        last = self._root._prev
        if last is self._root or last.op != "output":
            raise RuntimeError("the graph has no output node")
        return last

    # ---- text ------------------------------------------------------------------------------------

    def python_code(self, root_module: str = "self", *, verbose: bool = False) -> PythonCode:
        """The graph as the Python source of a `forward`, and the globals that it needs."""
        return python_code(self, root_module, verbose)

    def __str__(self) -> str:
        lines = [n.format_node() for n in self.nodes]
        return "graph():\n" + "\n".join(f"    {line}" for line in lines if line)

    def print_tabular(self) -> None:
        """Print the nodes as a table: opcode, name, target, args, kwargs."""
        head = ["opcode", "name", "target", "args", "kwargs"]
        rows = [
            [
                n.op,
                n.name,
                n.target if isinstance(n.target, str) else target_name(n.target),
                str(n.args),
                str(n.kwargs),
            ]
            for n in self.nodes
        ]
        widths = [max(len(r[c]) for r in [head, *rows]) for c in range(5)]
        for row in [head, ["-" * w for w in widths], *rows]:
            print("  ".join(x.ljust(w) for x, w in zip(row, widths, strict=True)).rstrip())


def map_nodes(value: Any) -> list[Node]:
    """All nodes in nested arguments."""
    found: list[Node] = []

    def note(n: Node) -> Node:
        found.append(n)
        return n

    map_arg(value, note)
    return found

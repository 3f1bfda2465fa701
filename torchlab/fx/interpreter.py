"""Running a graph node by node, and rewriting it on the way."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from torchlab.fx.graph import Graph
from torchlab.fx.graph_module import GraphModule
from torchlab.fx.node import Node, map_arg
from torchlab.fx.proxy import Proxy
from torchlab.fx.tracer import Tracer
from torchlab.nn.module import Module


class Interpreter:
    """Runs `module.graph`; override `run_node` or one of the six methods to change what happens.

    garbage_collect_values: drop each value after its last use. graph: another graph than the
        module's.
    """

    def __init__(
        self, module: Module, garbage_collect_values: bool = True, graph: Graph | None = None
    ) -> None:
        self.module = module
        self.submodules = dict(module.named_modules())
        self.graph: Graph = graph if graph is not None else module.graph  # type: ignore[assignment]
        self.env: dict[Node, Any] = {}
        self.name = "Interpreter"
        self.garbage_collect_values = garbage_collect_values
        self._last: dict[Node, list[Node]] = {}
        if garbage_collect_values:
            seen: set[Node] = set()
            for node in reversed(self.graph.nodes):
                for n in node.all_input_nodes:
                    if n not in seen:
                        seen.add(n)
                        self._last.setdefault(node, []).append(n)

    def run(
        self,
        *args: Any,
        initial_env: dict[Node, Any] | None = None,
        enable_io_processing: bool = True,
    ) -> Any:
        """What the graph returns for `args`. An error names the node it came from in a note."""
        self.env = dict(initial_env or {})
        self.args_iter: Iterator[Any] = iter(args)
        for node in self.graph.nodes:
            if node in self.env:
                continue
            try:
                self.env[node] = self.run_node(node)
            except Exception as error:
                error.add_note(
                    f"While executing {node.format_node()}"
                    + (f"\nOriginal line: {node.meta['origin']}" if "origin" in node.meta else "")
                )
                raise
            if self.garbage_collect_values:
                for n in self._last.get(node, ()):
                    self.env.pop(n, None)
            if node.op == "output":
                return self.env[node]
        return None

    def boxed_run(self, args_list: list[Any]) -> Any:
        """`run`, emptying the list, so that arguments can be freed."""
        args = list(args_list)
        args_list.clear()
        return self.run(*args)

    def run_node(self, n: Node) -> Any:
        """The value of one node."""
        args, kwargs = self.fetch_args_kwargs_from_env(n)
        return getattr(self, n.op)(n.target, args, kwargs)

    def placeholder(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if target.startswith("*"):
            return list(self.args_iter)
        try:
            return next(self.args_iter)
        except StopIteration:
            if args:
                return args[0]
            raise RuntimeError(
                f"Expected positional argument for parameter {target}, but one was not passed in!"
            ) from None

    def get_attr(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        return self.fetch_attr(target)

    def call_function(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        return target(*args, **kwargs)

    def call_method(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        return getattr(args[0], target)(*args[1:], **kwargs)

    def call_module(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        return self.fetch_attr(target)(*args, **kwargs)

    def output(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        return args[0]

    def fetch_attr(self, target: str) -> Any:
        """What stands at a path of the module."""
        at: Any = self.module
        for i, part in enumerate(target.split(".")):
            if not hasattr(at, part):
                raise RuntimeError(
                    f"Node referenced nonexistent target {'.'.join(target.split('.')[: i + 1])}"
                )
            at = getattr(at, part)
        return at

    def fetch_args_kwargs_from_env(self, n: Node) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The node's arguments with values in the places of nodes."""
        return map_arg((n.args, n.kwargs), lambda x: self.env[x])

    def map_nodes_to_values(self, args: Any, n: Node) -> Any:
        return map_arg(args, lambda x: self.env[x])


class Transformer(Interpreter):
    """An Interpreter whose values are proxies: what it runs becomes a new graph; see
    `transform`.
    """

    def __init__(self, module: GraphModule) -> None:
        super().__init__(module, garbage_collect_values=False)
        self.new_graph = Graph()
        self.tracer = _Into(self.new_graph)
        self.tracer.root = module

    def placeholder(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Proxy:
        return Proxy(
            self.new_graph.placeholder(target, default_value=args[0] if args else ...), self.tracer
        )

    def get_attr(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Proxy:
        return self.tracer.create_proxy("get_attr", target, args, kwargs)

    def call_module(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        return self.tracer.create_proxy("call_module", target, args, kwargs)

    def call_function(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        return self.tracer.create_proxy("call_function", target, args, kwargs)

    def call_method(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        return self.tracer.create_proxy("call_method", target, args, kwargs)

    def transform(self) -> GraphModule:
        """The new graph as a module with the old one's parameters."""
        result = super().run()
        if result is not None or self.graph.output_node():
            self.new_graph.output(self.tracer.create_arg(result))
        return GraphModule(self.module, self.new_graph, type(self.module).__name__)

    def run_node(self, n: Node) -> Any:
        made = super().run_node(n)
        if isinstance(made, Proxy) and n.op != "output":
            made.node.meta = {**n.meta, **made.node.meta}
        return made


class _Into(Tracer):
    """A tracer that only writes into a graph."""

    def __init__(self, graph: Graph) -> None:
        super().__init__()
        self.graph = graph
        self.tensor_attrs = {}

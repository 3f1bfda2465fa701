"""Running a graph node by node, and rewriting it on the way.

Source: https://docs.pytorch.org/docs/2.13/fx.html#torch.fx.Interpreter
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from torchlab.fx import traceback as fx_traceback
from torchlab.fx._symbolic_trace import Tracer
from torchlab.fx.graph import Graph
from torchlab.fx.graph_module import GraphModule
from torchlab.fx.node import Node, map_aggregate, map_arg
from torchlab.fx.proxy import Proxy
from torchlab.nn.module import Module

__all__ = ["Interpreter", "Transformer"]


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
        self.extra_traceback = True
        self.user_to_last_uses: dict[Node, list[Node]] = {}
        if garbage_collect_values:
            seen: set[Node] = set()
            for node in reversed(self.graph.nodes):
                for n in node._input_nodes:
                    if n not in seen:
                        seen.add(n)
                        self.user_to_last_uses.setdefault(node, []).append(n)

    def run(
        self,
        *args: Any,
        initial_env: dict[Node, Any] | None = None,
        enable_io_processing: bool = True,
    ) -> Any:
        """What the graph returns for `args`. An error says which node it came from.

        initial_env: values that are known already. enable_io_processing: let the graph's CodeGen
            take the arguments apart and put the results together.
        """
        self.env = initial_env if initial_env is not None else {}
        if enable_io_processing:
            args = self.graph.process_inputs(*args)
        self.args_iter: Iterator[Any] = iter(args)
        for node in self.graph.nodes:
            if node in self.env:
                continue
            try:
                self.env[node] = self.run_node(node)
            except Exception as e:
                if self.extra_traceback:
                    _say_where(e, node)
                raise
            if self.garbage_collect_values:
                for n in self.user_to_last_uses.get(node, ()):
                    self.env.pop(n, None)
            if node.op == "output":
                result = self.env[node]
                return self.graph.process_outputs(result) if enable_io_processing else result
        return None

    def boxed_run(self, args_list: list[Any]) -> Any:
        """`run` without the CodeGen's part, emptying the list, so that arguments can be freed."""
        args = iter(list(args_list))
        env = {n: next(args) for n in self.graph.nodes if n.op == "placeholder"}
        args_list.clear()
        return self.run(initial_env=env, enable_io_processing=False)

    def _set_current_node(self, node: Node) -> AbstractContextManager[None]:
        if not fx_traceback.has_preserved_node_meta():
            return nullcontext()
        return fx_traceback.set_current_meta(node, f"Interpreter_{type(self).__name__}")

    def run_node(self, n: Node) -> Any:
        """The value of one node."""
        with self._set_current_node(n):
            args, kwargs = self.fetch_args_kwargs_from_env(n)
            return getattr(self, n.op)(n.target, args, kwargs)

    def placeholder(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The next argument; the default if there are no more. `*args`: all that are left."""
        if not isinstance(target, str):
            raise AssertionError(f"Expected target to be str, got {type(target)}")
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
        """What stands at a path of the module."""
        return self.fetch_attr(target)

    def call_function(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Calls the function."""
        return target(*args, **kwargs)

    def call_method(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Calls the method of the first argument."""
        self_obj, *rest = args
        return getattr(self_obj, target)(*rest, **kwargs)

    def call_module(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Calls the submodule."""
        return self.fetch_attr(target)(*args, **kwargs)

    def output(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """What the graph returns."""
        return args[0]

    def fetch_attr(self, target: str) -> Any:
        """What stands at a path of the module; RuntimeError if there is nothing."""
        at: Any = self.module
        parts = target.split(".")
        for i, part in enumerate(parts):
            if not hasattr(at, part):
                raise RuntimeError(f"Node referenced nonexistent target {'.'.join(parts[: i + 1])}")
            at = getattr(at, part)
        return at

    def fetch_args_kwargs_from_env(self, n: Node) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The node's arguments with values in the places of nodes."""
        args = self.map_nodes_to_values(n.args, n)
        kwargs = self.map_nodes_to_values(n.kwargs, n)
        if not isinstance(args, tuple) or not isinstance(kwargs, dict):
            raise AssertionError("the arguments of a node are a tuple and a dict")
        return args, kwargs

    def map_nodes_to_values(self, args: Any, n: Node) -> Any:
        """Nested arguments with values in the places of nodes."""

        def load(x: Node) -> Any:
            if x not in self.env:
                raise RuntimeError(
                    f"Node {n} referenced nonexistent value {x}! Run Graph.lint() to diagnose such "
                    "issues"
                )
            return self.env[x]

        return _plain(args, load)


def _plain(a: Any, load: Any) -> Any:
    """`map_arg` into lists and dicts that may be changed: operators are given ordinary ones."""
    if isinstance(a, Node):
        return load(a)
    if isinstance(a, tuple):
        parts = [_plain(x, load) for x in a]
        return type(a)(*parts) if hasattr(a, "_fields") else tuple(parts)
    if isinstance(a, list):
        return [_plain(x, load) for x in a]
    if isinstance(a, dict):
        return {k: _plain(x, load) for k, x in a.items()}
    if isinstance(a, slice):
        return slice(*(_plain(x, load) for x in (a.start, a.stop, a.step)))
    return a


def _say_where(e: Exception, node: Node) -> None:
    """Put the node, and where it came from, into the error's message."""
    where = f"While executing {node.format_node()}"
    origin = node.stack_trace or node.meta.get("origin")
    text = f"{e.args[0]}\n\n{where}" if e.args else where
    text += f"\nOriginal traceback:\n{origin}"
    if isinstance(e, KeyError) or not e.args or not isinstance(e.args[0], str):
        e.add_note(text.split("\n\n", 1)[-1])
        return
    e.args = (text, *e.args[1:])


class Transformer(Interpreter):
    """An Interpreter whose values are proxies: what it runs becomes a new graph (`transform`)."""

    def __init__(self, module: GraphModule) -> None:
        super().__init__(module)
        self.new_graph = Graph()
        self.new_graph.set_codegen(module.graph._codegen)
        self.tracer = _Into(self.new_graph)
        self.tracer.root = module

    def placeholder(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Proxy:
        """A placeholder of the new graph."""
        node = (
            self.new_graph.placeholder(target, default_value=args[0])
            if args
            else self.new_graph.placeholder(target)
        )
        return Proxy(node, self.tracer)

    def get_attr(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Proxy:
        """The attribute, read in the new graph."""
        return self.tracer.create_proxy("get_attr", target, args, kwargs)

    def call_module(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The call of the submodule: a node, or its forward traced, if it is no leaf."""
        return self.tracer.call_module(
            self.fetch_attr(target), self.fetch_attr(target).forward, args, kwargs
        )

    def call_function(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """A node of the new graph."""
        return self.tracer.create_proxy("call_function", target, args, kwargs)

    def transform(self) -> GraphModule:
        """The new graph as a module with the old one's parameters."""
        with fx_traceback.preserve_node_meta():
            result = super().run(enable_io_processing=False)
        if result is not None:

            def strip(a: Any) -> Any:
                return a.node if isinstance(a, Proxy) else a

            new_output = self.new_graph.output(map_aggregate(result, strip))
            old = self.graph.output_node()
            for k, v in old.meta.items():
                new_output.meta.setdefault(k, v)
        return GraphModule(self.module, self.new_graph, type(self.module).__name__)


class _Into(Tracer):
    """A tracer that only writes into a graph; every module stays whole."""

    def __init__(self, graph: Graph) -> None:
        super().__init__()
        self.graph = graph
        self.tensor_attrs: dict[Any, str] = {}

    def is_leaf_module(self, m: Module, module_qualified_name: str) -> bool:
        return True


__all__ += ["map_arg"]

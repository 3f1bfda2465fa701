"""The graph: nodes in the order they run, and what one does to them.

Source: https://docs.pytorch.org/docs/2.13/fx.html#torch.fx.Graph
"""

from __future__ import annotations

import contextlib
import copy
import inspect
import types
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from torchlab.fx._naming import bound_name, pretty_target
from torchlab.fx.codegen import (
    CodeGen,
    PythonCode,
    _BoxedCodeGen,
    _format_target,
    _PyTreeCodeGen,
    _PyTreeInfo,
)
from torchlab.fx.names import (
    _custom_builtins,
    _CustomBuiltin,
    _is_magic,
    _Namespace,
    _register_custom_builtin,
    _snake_case,
)
from torchlab.fx.node import Argument, Node, Target, map_arg
from torchlab.fx.sizes import SYM_SIZE, SYM_STORAGE_OFFSET, SYM_STRIDE
from torchlab.fx.source_text import BINARY, INPLACE, REFLECTABLE, UNARY

__all__ = ["PythonCode", "CodeGen", "Graph"]

TransformCodeFunc = Callable[[list[str]], list[str]]
magic_methods = {**BINARY, **UNARY}
inplace_methods = dict(INPLACE)
reflectable_magic_methods = dict(REFLECTABLE)


class _node_list:
    """The nodes of a graph in order; a view, so that it may be changed while one walks."""

    def __init__(self, graph: Graph, direction: str = "_next") -> None:
        if direction not in ("_next", "_prev"):
            raise AssertionError(f"direction must be '_next' or '_prev', got {direction}")
        self.graph = graph
        self.direction = direction

    def __len__(self) -> int:
        return self.graph._len

    def __iter__(self) -> Iterator[Node]:
        root, step = self.graph._root, self.direction
        at = getattr(root, step)
        while at is not root:
            if not at._erased:
                yield at
            at = getattr(at, step)

    def __reversed__(self) -> Any:
        return iter(_node_list(self.graph, "_next" if self.direction == "_prev" else "_prev"))


class _InsertPoint:
    """Where new nodes go, between `with` and its end."""

    def __init__(self, graph: Graph, new_insert: Callable[..., None]) -> None:
        self.graph = graph
        self.orig_insert, graph._insert = graph._insert, new_insert

    def __enter__(self) -> None:
        pass

    def __exit__(self, type: Any, value: Any, tb: Any) -> None:
        self.graph._insert = self.orig_insert


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
        self,
        owning_module: Any = None,
        tracer_cls: Any = None,
        tracer_extras: dict[str, Any] | None = None,
    ) -> None:
        self._numbered = True
        self._owners = 0
        self._owning_module = owning_module
        self._root = Node(self, "", "root", "", (), {})
        self._insert: Callable[[Node], None] = self._root.prepend
        self._len = 0
        self._graph_namespace = _Namespace()
        self._tracer_cls = tracer_cls
        self._tracer_extras = tracer_extras
        self._codegen = CodeGen()
        self._co_fields: dict[str, Any] = {}

    @property
    def owning_module(self) -> Any:
        """The GraphModule that has the graph; None if there is none, or more than one."""
        return self._owning_module

    @owning_module.setter
    def owning_module(self, mod: Any) -> None:
        if mod is not None:
            self._owning_module = mod if not self._owners else None
            self._owners += 1

    @property
    def nodes(self) -> _node_list:
        """All nodes, in the order they run."""
        return _node_list(self)

    def _number(self) -> None:
        if not self._numbered:
            for i, n in enumerate(self.nodes):
                n._index = i
            self._numbered = True

    def find_nodes(self, *, op: str, target: Any = None, sort: bool = True) -> list[Node]:
        """The nodes of one kind, and of one target if given, in their order."""
        return [n for n in self.nodes if n.op == op and (target is None or n.target == target)]

    def output_node(self) -> Node:
        """The last node, which is the one that returns; AssertionError if it is of another kind."""
        last = next(reversed(self.nodes), self._root)
        if last.op != "output":
            raise AssertionError(f"Expected output node, got op={last.op}")
        return last

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
        args = args if args is not None else ()
        kwargs = kwargs if kwargs is not None else {}
        if not isinstance(args, tuple):
            raise AssertionError(f"args must be a tuple, got {type(args)}")
        if not isinstance(kwargs, dict):
            raise AssertionError(f"kwargs must be a dict, got {type(kwargs)}")
        candidate = name if name is not None else self._target_to_str(target)
        chosen = self._graph_namespace.create_name(candidate, None)
        node = Node(self, chosen, op, target, args, kwargs, type_expr)
        self._graph_namespace.associate_name_with_obj(chosen, node)
        self._insert(node)
        self._numbered = False
        self._len += 1
        for hook in getattr(self._owning_module, "_create_node_hooks", ()):
            hook(node)
        return node

    def _target_to_str(self, target: Any) -> str:
        op = bound_name(target) if callable(target) else target
        if not isinstance(op, str):
            raise AssertionError(f"Expected target to be str, got {type(target)}")
        return _snake_case(op[2:-2] if _is_magic(op) else op)

    def placeholder(
        self, name: str, type_expr: Any = None, default_value: Any = inspect.Signature.empty
    ) -> Node:
        """An input of the graph; `*args` and `**kwargs` are names too."""
        args = () if default_value is inspect.Signature.empty else (default_value,)
        return self.create_node("placeholder", name, args=args, type_expr=type_expr)

    def get_attr(self, qualified_name: str, type_expr: Any = None) -> Node:
        """A parameter, buffer or other attribute of the module, by its path."""
        if self._owning_module is not None and not _reaches(self._owning_module, qualified_name):
            warnings.warn(
                "Attempted to insert a get_attr Node with no underlying reference in the owning "
                "GraphModule! Call GraphModule.add_submodule to add the necessary submodule, "
                "GraphModule.add_parameter to add the necessary Parameter, or "
                "nn.Module.register_buffer to add the necessary buffer",
                stacklevel=2,
            )
        return self.create_node("get_attr", qualified_name, type_expr=type_expr)

    def call_module(
        self,
        module_name: str,
        args: tuple[Any, ...] | None = None,
        kwargs: dict[str, Any] | None = None,
        type_expr: Any = None,
    ) -> Node:
        """Calls the submodule at a path."""
        if self._owning_module is not None and not _reaches(self._owning_module, module_name):
            warnings.warn(
                "Attempted to insert a call_module Node with no underlying reference in the "
                "owning GraphModule! Call GraphModule.add_submodule to add the necessary submodule",
                stacklevel=2,
            )
        return self.create_node("call_module", module_name, args, kwargs, type_expr=type_expr)

    def call_method(
        self,
        method_name: str,
        args: tuple[Any, ...] | None = None,
        kwargs: dict[str, Any] | None = None,
        type_expr: Any = None,
    ) -> Node:
        """`args[0].method_name(*args[1:], **kwargs)`."""
        return self.create_node("call_method", method_name, args, kwargs, type_expr=type_expr)

    def call_function(
        self,
        the_function: Callable[..., Any],
        args: tuple[Any, ...] | None = None,
        kwargs: dict[str, Any] | None = None,
        type_expr: Any = None,
        name: str | None = None,
    ) -> Node:
        """`the_function(*args, **kwargs)`."""
        return self.create_node(
            "call_function", the_function, args, kwargs, name=name, type_expr=type_expr
        )

    def output(self, result: Any, type_expr: Any = None) -> Node:
        """What the graph returns."""
        return self.create_node("output", "output", (result,), type_expr=type_expr)

    def _create_geometry(self, op: Any, tensor_node: Node, *rest: int) -> Node:
        made = self.call_function(op, (tensor_node, *rest))
        if "val" in tensor_node.meta:
            made.meta["val"] = op.run((tensor_node.meta["val"], *rest), {})
        return made

    def create_size_node(self, tensor_node: Node, dim: int) -> Node:
        """A node for `tensor.size(dim)`."""
        return self._create_geometry(SYM_SIZE, tensor_node, dim)

    def create_stride_node(self, tensor_node: Node, dim: int) -> Node:
        """A node for `tensor.stride(dim)`."""
        return self._create_geometry(SYM_STRIDE, tensor_node, dim)

    def create_storage_offset_node(self, tensor_node: Node) -> Node:
        """A node for `tensor.storage_offset()`."""
        return self._create_geometry(SYM_STORAGE_OFFSET, tensor_node)

    def materialize_symint(self, value: int) -> Node | int:
        """What stands for a size in the graph: a number stands for itself, and torchlab's sizes
        are numbers. TypeError for anything else."""
        if not isinstance(value, int):
            raise TypeError(f"materialize_symint: expected an int, got {type(value).__name__}")
        return value

    def materialize_symints(self, values: Sequence[int]) -> list[Node | int]:
        """`materialize_symint` of each."""
        return [self.materialize_symint(v) for v in values]

    def node_copy(self, node: Node, arg_transform: Callable[[Node], Any] = lambda x: x) -> Node:
        """A copy of another graph's node here; `arg_transform` maps its inputs to nodes of
        this graph."""
        args = map_arg(node.args, arg_transform)
        kwargs = map_arg(node.kwargs, arg_transform)
        if not isinstance(args, tuple) or not isinstance(kwargs, dict):
            raise AssertionError("args must be a tuple and kwargs a dict")
        made = self.create_node(node.op, node.target, args, kwargs, node.name, node.type)
        made.meta = copy.copy(node.meta)
        return made

    def graph_copy(
        self, g: Graph, val_map: dict[Node, Any], return_output_node: bool = False
    ) -> Any:
        """Copy all nodes of `g`; gives what its output returned, in terms of the copies (with
        `return_output_node` also that node)."""
        for node in g.nodes:
            if node in val_map:
                continue
            if node.op == "output":
                value = map_arg(node.args[0], lambda n: val_map[n])
                return (value, node) if return_output_node else value
            val_map[node] = self.node_copy(node, lambda n: val_map[n])
        return None

    def __deepcopy__(self, memo: Any = None) -> Graph:
        memo = memo if memo else {}
        made = Graph(tracer_cls=self._tracer_cls)
        table: dict[Node, Any] = {}
        result = made.graph_copy(self, table, return_output_node=True)
        made._codegen = copy.deepcopy(self._codegen)
        if result is not None:
            value, old = result
            node = made.output(value, old.type)
            node.meta = copy.copy(old.meta)
        for old_node, new_node in table.items():
            memo[id(old_node)] = new_node
        return made

    # ---- changing --------------------------------------------------------------------------------

    def inserting_before(self, n: Node | None = None) -> _InsertPoint:
        """`with graph.inserting_before(n):` new nodes come before `n` (None: at the start)."""
        if n is None:
            return self.inserting_after(self._root)
        if n.graph is not self:
            raise AssertionError("Node to insert before is not in graph.")
        return _InsertPoint(self, n.prepend)

    def inserting_after(self, n: Node | None = None) -> _InsertPoint:
        """`with graph.inserting_after(n):` each new node comes right after `n` (None: at
        the end)."""
        if n is None:
            return self.inserting_before(self._root)
        if n.graph is not self:
            raise AssertionError("Node to insert after is not in graph.")
        return _InsertPoint(self, n.append)

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
            warnings.warn(f"erase_node({to_erase}) on an already erased node", stacklevel=2)
            return
        for hook in getattr(self._owning_module, "_erase_node_hooks", ()):
            hook(to_erase)
        to_erase._remove_from_list()
        to_erase._erased = True
        self._len -= 1
        to_erase._update((), {})

    def _clear_nodes(self) -> None:
        for node in reversed(self.nodes):
            node.users.clear()
            self.erase_node(node)

    def eliminate_dead_code(self, is_impure_node: Callable[[Node], bool] | None = None) -> bool:
        """Remove nodes without users, last first, but those with side effects; whether any went.
        Methods that write in place count as free of side effects; see `Node.is_impure`."""
        self.lint()
        impure = is_impure_node or Node.is_impure
        changed = False
        for node in reversed(self.nodes):
            if not node.users and not impure(node):
                self.erase_node(node)
                changed = True
        for _, inner in _graph_modules(self._owning_module):
            changed |= bool(inner.graph.eliminate_dead_code(is_impure_node))
        return changed

    def lint(self) -> None:
        """RuntimeError unless every node reads earlier nodes of this graph and names are unique;
        with an owning module, targets must exist in it."""
        names: set[str] = set()
        seen: set[Node] = set()
        for node in self.nodes:
            if node.op not in ("placeholder", "call_method", "call_module", "call_function",
                               "get_attr", "output"):  # fmt: skip
                raise RuntimeError(f"Node {node} had unknown opcode {node.op}!")
            if node.graph is not self:
                raise RuntimeError(f"Node '{node}' does not belong to this Graph!")
            for n in node._input_nodes:
                if n.graph is not self:
                    raise RuntimeError(
                        f"Argument '{n}' of Node '{node}' does not belong to this Graph, but was "
                        "used as an argument! If you are copying nodes from another graph, make "
                        f"sure to use ``arg_transform`` on node_copy() to remap values\n{self}"
                    )
                if n not in seen:
                    raise RuntimeError(
                        f"Argument '{n}' of Node '{node}' was used before it has been defined! "
                        f"Please check that Nodes in the graph are topologically ordered\n{self}"
                    )
            seen.add(node)
            if node.name in names:
                raise RuntimeError(f"Node redefined name {node.name}!")
            names.add(node.name)
        if self._owning_module is not None:
            for node in self.nodes:
                if node.op in ("get_attr", "call_module"):
                    self._lint_target(node)

    def _lint_target(self, node: Node) -> None:
        at, where = self._owning_module, ""
        parts = node.target.split(".")
        for i, part in enumerate(parts):
            if not hasattr(at, part):
                raise RuntimeError(
                    f"Node {node} target {node.target} references nonexistent attribute {part} "
                    f"of {where}"
                )
            at = getattr(at, part)
            if node.op == "call_module" and i == len(parts) - 1 and not hasattr(at, "_modules"):
                raise RuntimeError(
                    f"Node {node} target {node.target} {part} of {where} does not reference an "
                    "nn.Module"
                )
            where = f"{where}.{part}" if where else part

    # ---- code ------------------------------------------------------------------------------------

    def set_codegen(self, codegen: CodeGen) -> None:
        """Write the source with `codegen` from now on."""
        self._codegen = codegen

    def process_inputs(self, *args: Any) -> Any:
        """The placeholders' values for the arguments of a call; see `CodeGen`."""
        return self._codegen.process_inputs(*args)

    def process_outputs(self, out: Any) -> Any:
        """What a call returns for the value of the output node; see `CodeGen`."""
        return self._codegen.process_outputs(out)

    def on_generate_code(
        self, make_transformer: Callable[[TransformCodeFunc | None], TransformCodeFunc]
    ) -> contextlib.AbstractContextManager[None]:
        """Let a function change the lines of the body. `make_transformer` gets the function that
        did so before (or None) and returns the new one. `with` takes it back."""
        before = self._codegen._body_transformer
        self._codegen._body_transformer = make_transformer(before)

        @contextlib.contextmanager
        def until_the_end() -> Iterator[None]:
            try:
                yield
            finally:
                self._codegen._body_transformer = before

        return until_the_end()

    def python_code(
        self,
        root_module: str,
        *,
        verbose: bool = False,
        include_stride: bool = False,
        include_device: bool = False,
        colored: bool = False,
        expanded_def: bool = False,
        record_func: bool = False,
        additional_meta: list[str] | None = None,
    ) -> PythonCode:
        """The graph as the Python source of a `forward`, and the globals that it needs.
        `root_module`: what the module is called in it."""
        namespace = _Namespace()
        shown = {node: node._repr_fn for node in self.nodes}
        for node in self.nodes:
            node._repr_fn = lambda n: namespace.create_name(n.name, n)
        try:
            return self._codegen._gen_python_code(
                self.nodes,
                root_module,
                namespace,
                verbose=verbose,
                include_stride=include_stride,
                include_device=include_device,
                colored=colored,
                expanded_def=expanded_def,
                record_func=record_func,
                additional_meta=additional_meta,
            )
        finally:
            for node, fn in shown.items():
                node._repr_fn = fn

    def __str__(self) -> str:
        lines = [n.format_node() for n in self.nodes]
        return "graph():" + "".join(f"\n    {line}" for line in lines if line is not None)

    def print_tabular(self) -> None:
        """Print the nodes as a table: opcode, name, target, args, kwargs."""
        head = ["opcode", "name", "target", "args", "kwargs"]
        rows = [
            [n.op, n.name, _table_target(n.target), str(n.args), str(n.kwargs)] for n in self.nodes
        ]
        widths = [max(len(r[c]) for r in [head, *rows]) for c in range(5)]
        for row in [head, ["-" * w for w in widths], *rows]:
            print("  ".join(x.ljust(w) for x, w in zip(row, widths, strict=True)).rstrip())


def _table_target(target: Any) -> str:
    builtin = isinstance(target, (str, types.BuiltinFunctionType))
    return str(target) if builtin else pretty_target(target)


def _reaches(module: Any, path: str) -> bool:
    at = module
    for part in path.split("."):
        if not hasattr(at, part):
            return False
        at = getattr(at, part)
    return True


def _graph_modules(module: Any) -> Iterator[tuple[str, Any]]:
    """The graph modules directly in a module."""
    for name, child in module.named_children() if module is not None else ():
        if isinstance(getattr(child, "graph", None), Graph):
            yield name, child


__all__ += [
    "Argument", "Target", "_BoxedCodeGen", "_CustomBuiltin", "_Namespace", "_PyTreeCodeGen",
    "_PyTreeInfo", "_custom_builtins", "_format_target", "_is_magic", "_register_custom_builtin",
    "_snake_case", "inplace_methods", "magic_methods", "reflectable_magic_methods",
]  # fmt: skip

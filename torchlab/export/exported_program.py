"""`ExportedProgram`: a graph, the tensors that it needs, and what its inputs may be.

Source: https://docs.pytorch.org/docs/2.13/export.html#torch.export.ExportedProgram
"""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from torchlab._core.tensor import Parameter, Tensor
from torchlab.export._checks import Checks
from torchlab.export._constraints import ValueRanges
from torchlab.export.graph_signature import (
    ExportGraphSignature,
    InputKind,
    OutputKind,
    TensorArgument,
)
from torchlab.fx.codegen import CodeGen
from torchlab.fx.experimental._expressions import Expr
from torchlab.fx.experimental._shape_env import Relation
from torchlab.fx.graph import Graph
from torchlab.fx.graph_module import GraphModule, _assign_attr
from torchlab.fx.node import Node
from torchlab.nn.module import Module
from torchlab.utils import _pytree as pytree


@dataclasses.dataclass
class CallSpec:
    """The structure of the arguments, as `(args, kwargs)`, and of the result."""

    in_spec: Any
    out_spec: Any


@dataclasses.dataclass
class ModuleCallSignature:
    """How a module is called: structures, and the names of forward's arguments."""

    inputs: list[Any]
    outputs: list[Any]
    in_spec: Any
    out_spec: Any
    forward_arg_names: list[str] | None = None


@dataclasses.dataclass
class ModuleCallEntry:
    """A module of the program by its name; the whole program's is empty."""

    fqn: str
    signature: ModuleCallSignature | None = None


class ExportedProgram:
    """A program that `export` made: `program.module()(*args, **kwargs)` runs it.

    graph_module: the graph as a module that takes all tensors, the module's first, as
    `graph_signature` says. state_dict: parameters and persistent buffers. constants: other tensors
    that the graph needs. range_constraints: what the sizes that vary may be. guards: what has to
    hold of them besides.
    """

    def __init__(
        self,
        graph: Graph,
        graph_signature: ExportGraphSignature,
        state_dict: dict[str, Any],
        constants: dict[str, Any],
        range_constraints: dict[Expr, ValueRanges],
        guards: list[Relation],
        module_call_graph: list[ModuleCallEntry],
        inputs: list[tuple[str, Any]],
        example_inputs: tuple[tuple[Any, ...], dict[str, Any]] | None = None,
        dim_names: dict[Any, str] | None = None,
    ) -> None:
        self._graph_module = GraphModule({}, graph)
        self._graph_signature = graph_signature
        self._state_dict = state_dict
        self._constants = constants
        self._range_constraints = range_constraints
        self.guards = guards
        self._module_call_graph = module_call_graph
        self.inputs = inputs
        self._example_inputs = example_inputs
        self.dim_names = dim_names or {}  # symbol → the name of its Dim

    # ---- what it is ------------------------------------------------------------------------------

    @property
    def graph_module(self) -> GraphModule:
        """The graph as a module: all tensors are its arguments, flat."""
        return self._graph_module

    @property
    def graph(self) -> Graph:
        """The graph."""
        return self._graph_module.graph

    @property
    def graph_signature(self) -> ExportGraphSignature:
        """What the graph's inputs and outputs are."""
        return self._graph_signature

    @property
    def state_dict(self) -> dict[str, Any]:
        """Parameters and persistent buffers by name."""
        return self._state_dict

    @property
    def constants(self) -> dict[str, Any]:
        """Constant tensors and buffers that are not in the state dict, by name."""
        return self._constants

    tensor_constants = constants

    @property
    def range_constraints(self) -> dict[Expr, ValueRanges]:
        """The bounds of the sizes that vary."""
        return self._range_constraints

    @property
    def module_call_graph(self) -> list[ModuleCallEntry]:
        """The modules of the program, the whole first."""
        return self._module_call_graph

    @property
    def example_inputs(self) -> Any:
        """`(args, kwargs)` that it was exported with."""
        return self._example_inputs

    @property
    def call_spec(self) -> CallSpec:
        """The structure of arguments and result."""
        signature = self._module_call_graph[0].signature
        assert signature is not None
        return CallSpec(signature.in_spec, signature.out_spec)

    def parameters(self) -> Iterator[Parameter]:
        """The parameters."""
        for _, p in self.named_parameters():
            yield p

    def named_parameters(self) -> Iterator[tuple[str, Parameter]]:
        """The parameters with their names."""
        for name in self.graph_signature.parameters:
            yield name, self.state_dict[name]

    def buffers(self) -> Iterator[Tensor]:
        """The buffers."""
        for _, b in self.named_buffers():
            yield b

    def named_buffers(self) -> Iterator[tuple[str, Tensor]]:
        """The buffers with their names."""
        rest = set(self.graph_signature.non_persistent_buffers)
        for name in self.graph_signature.buffers:
            yield name, (self.constants if name in rest else self.state_dict)[name]

    def tensor_of(self, target: str) -> Tensor:
        """A parameter, buffer or constant by name."""
        found = self._state_dict.get(target)
        return self._constants[target] if found is None else found  # type: ignore[no-any-return]

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise RuntimeError(
            "Unable to call ExportedProgram directly. You should use `exported_program.module()`"
            " instead."
        )

    # ---- running it ------------------------------------------------------------------------------

    def module(self, check_guards: bool = True) -> GraphModule:
        """The program as a module with the parameters and buffers of the one it was made of. A call
        checks its arguments first: AssertionError for sizes that the program does not hold for."""
        graph, root, volatile = _with_attributes(self)
        checks = Checks(
            self.call_spec.in_spec, self.inputs, self._range_constraints, self.guards
        )  # fmt: skip
        if not check_guards:
            checks.check = lambda flat: None  # type: ignore[method-assign]
        graph.set_codegen(_ExportCodeGen())
        made = GraphModule(root, graph, "GraphModule")
        for target in volatile:
            owner, _, name = target.rpartition(".")
            made.get_submodule(owner)._non_persistent_buffers_set.add(name)
        made._flat_inputs = checks
        made._in_spec, made._out_spec = self.call_spec.in_spec, self.call_spec.out_spec
        made.range_constraints = self._range_constraints
        for name in ("train", "eval"):
            setattr(made, name, _Refusal(name))
        return made

    def run_decompositions(
        self, decomp_table: Mapping[Any, Callable[..., Any]] | None = None
    ) -> ExportedProgram:
        """The program below autograd: composites in their parts, nothing written in place. What was
        written becomes an output of the graph, which `graph_signature` says where to write. What
        `decomp_table` has a function for is replaced by what that runs."""
        return decomposer[0](self, decomp_table)  # type: ignore[no-any-return]

    def __deepcopy__(self, memo: Any) -> ExportedProgram:
        made = object.__new__(ExportedProgram)
        memo[id(self)] = made
        for k, v in self.__dict__.items():
            made.__dict__[k] = v if k == "_example_inputs" else copy.deepcopy(v, memo)
        return made

    def __str__(self) -> str:
        text = self.graph_module.print_readable(print_output=False).replace("\n", "\n    ")
        return (
            f"ExportedProgram:\n    {text}\nGraph signature: {self.graph_signature}\n"
            f"Range constraints: {self.range_constraints}\n"
        )


decomposer: list[Any] = []  # torchlab.export._decompositions


class _Refusal:
    """`train` and `eval` of an exported module: what they change is decided already."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __call__(self, mode: bool = True) -> None:
        raise NotImplementedError(
            f"Calling {self.name}() is not supported yet: the graph was exported in one mode. Set"
            " the mode of the module before export"
        )


class _ExportCodeGen(CodeGen):
    """A forward with nested arguments, whose structure and sizes are checked, and a nested
    result."""

    def gen_fn_def(
        self, free_vars: list[str], maybe_return_annotation: str, *, expanded_def: bool = False
    ) -> str:
        """The head of the function."""
        names = [v.split(":")[0].split("=")[0].strip() for v in free_vars]
        head = super().gen_fn_def(
            ["self", "*args", "**kwargs"], maybe_return_annotation, expanded_def=expanded_def
        )
        taken = f"{', '.join(names)}, = " if names else ""
        return f"{head}\n    {taken}self._flat_inputs(args, kwargs)"

    def generate_output(
        self,
        output_args: Any,
        *,
        descs: Sequence[str] | None = None,
        repr_fn: Callable[[object], str] | None = None,
    ) -> str:
        """The return statement."""
        return f"return pytree.tree_unflatten({(repr_fn or repr)(output_args)}, self._out_spec)"

    def process_inputs(self, *inputs: Any) -> Any:
        """The arguments, flat."""
        return pytree.tree_flatten(inputs)[0]


def _with_attributes(program: ExportedProgram) -> tuple[Graph, Module, list[str]]:
    """The graph with the module's tensors as attributes, writes at its end; a module that has them;
    the names of those that are not in its state dict."""
    root = Module()
    volatile: list[str] = []
    signature = program.graph_signature
    graph = Graph()
    mapping: dict[Node, Node] = {}
    inputs = {s.arg.name: s for s in signature.input_specs}
    result: Any = None
    by_target: dict[str, Node] = {}
    for node in program.graph.nodes:
        if node.op == "output":
            result = node.args[0]
            break
        spec = inputs.get(node.name) if node.op == "placeholder" else None
        if spec is None or spec.kind == InputKind.USER_INPUT:
            mapping[node] = graph.node_copy(node, lambda n: mapping[n])
            if spec is not None:
                by_target[node.name] = mapping[node]
            continue
        target = str(spec.target)
        value = program.tensor_of(target)
        _assign_attr(value, root, target)
        if spec.kind != InputKind.PARAMETER and spec.persistent is not True:
            volatile.append(target)
        mapping[node] = by_target[target] = graph.get_attr(target)
        mapping[node].meta = dict(node.meta)
    users = [n for n in graph.nodes if n.op == "placeholder"]
    for before, node in zip(users, users[1:], strict=False):  # arguments first, tensors after
        before.append(node)
    if users:
        first = next(iter(graph.nodes))
        if first is not users[0]:
            first.prepend(users[0])
            for before, node in zip(users, users[1:], strict=False):
                before.append(node)
    values = []
    for spec_out, value in zip(signature.output_specs, result, strict=True):
        node = mapping[value] if isinstance(value, Node) else value
        if spec_out.kind == OutputKind.USER_OUTPUT:
            values.append(node)
        else:
            assert isinstance(spec_out.arg, TensorArgument)
            graph.call_method("copy_", (by_target[str(spec_out.target)], node))
    graph.output(tuple(values))
    return graph, root, volatile


__all__ = [
    "CallSpec", "ExportedProgram", "ModuleCallEntry", "ModuleCallSignature", "decomposer",
]  # fmt: skip

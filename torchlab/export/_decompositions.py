"""`ExportedProgram.run_decompositions`: the program below autograd, with nothing written in place.

Source: https://docs.pytorch.org/docs/2.13/export.ir_spec.html
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from torchlab._core.dispatch.functionals import KEPT
from torchlab._core.tensor import Tensor
from torchlab._subclasses.fake_tensor import FakeTensor, FakeTensorMode
from torchlab.autograd.grad_mode import no_grad
from torchlab.export.exported_program import ExportedProgram, decomposer
from torchlab.export.graph_signature import (
    ConstantArgument,
    ExportGraphSignature,
    InputKind,
    InputSpec,
    OutputKind,
    OutputSpec,
    SymFloatArgument,
    SymIntArgument,
    TensorArgument,
)
from torchlab.func import functionalize
from torchlab.fx.experimental._symbolic_numbers import SymFloat, SymInt
from torchlab.fx.experimental.proxy_tensor import ProxyTorchDispatchMode, PythonKeyTracer
from torchlab.fx.experimental.symbolic_shapes import SymTypes
from torchlab.fx.graph import Graph
from torchlab.fx.interpreter import Interpreter
from torchlab.fx.node import Node
from torchlab.fx.proxy import Proxy
from torchlab.nn.module import Module

_MUTATION = {
    InputKind.PARAMETER: OutputKind.PARAMETER_MUTATION,
    InputKind.BUFFER: OutputKind.BUFFER_MUTATION,
    InputKind.USER_INPUT: OutputKind.USER_INPUT_MUTATION,
}


class _Noting(Interpreter):
    """Runs a graph; new nodes know the modules and the line of the node that they come from."""

    def __init__(self, module: Any, tracer: _Tracer) -> None:
        super().__init__(module)
        self.tracer = tracer

    def run_node(self, n: Node) -> Any:
        """The value of one node."""
        self.tracer.source = n
        return super().run_node(n)


class _Tracer(PythonKeyTracer):
    def __init__(self) -> None:
        super().__init__()
        self.root = Module()
        self.graph = Graph(tracer_cls=PythonKeyTracer)
        self.source: Node | None = None
        self.mode: FakeTensorMode | None = None
        self.first_user: Node | None = None
        self.constants_made: list[tuple[Node, Tensor]] = []

    def create_arg(self, a: Any) -> Any:
        """As ever, but a tensor that an operator's parts made is a constant of the program."""
        if type(a) is Tensor and self.known(a) is None:
            return self.constant(a)
        return super().create_arg(a)

    def constant(self, t: Tensor) -> Node:
        """The placeholder of a constant, before the user's inputs."""
        for node, known in self.constants_made:
            if known is t:
                return node
        with self.graph.inserting_before(self.first_user):
            node = self.graph.placeholder("c_decomposed_tensor")
        assert self.mode is not None
        node.meta["val"] = self.mode.from_tensor(t, static_shapes=True)
        self.constants_made.append((node, t))
        return node

    def create_node(self, *args: Any, **kwargs: Any) -> Node:
        node = super().create_node(*args, **kwargs)
        if self.source is not None and node.op == "call_function":
            for key in ("origin", "nn_module_stack", "stack_trace"):
                if key in self.source.meta:
                    node.meta[key] = self.source.meta[key]
        return node


def decompose(
    program: ExportedProgram,
    table: Mapping[Any, Callable[..., Any]] | None = None,
    keep: Callable[[Any], bool] | None = None,
) -> ExportedProgram:
    """The program in operators below autograd; composites for which `keep` is true stay whole."""
    tracer = _Tracer()
    proxies = ProxyTorchDispatchMode(tracer, "symbolic", keep or False, table)
    mode: FakeTensorMode | None = None
    values: list[Any] = []
    placeholders: dict[str, Node] = {}
    for old in program.graph.nodes:
        if old.op != "placeholder":
            continue
        node = tracer.graph.placeholder(old.name)
        node.name = node.target = old.name  # `input`, which a new graph would number
        node.meta.update(old.meta)
        placeholders[node.name] = node
        if old.name in program.graph_signature.user_inputs:
            tracer.first_user = tracer.first_user or node
        value = old.meta.get("val")
        if isinstance(value, FakeTensor):
            mode = value.fake_mode
            value = value.snapshot().requires_grad_(False)
            tracer.track(value, Proxy(node, tracer))
            node.meta["val"] = old.meta["val"]
        tracer.sizes.input(value, node)
        values.append(_constant(program, old.name) if value is None else value)

    tracer.mode = mode = mode or FakeTensorMode(allow_non_fake_inputs=True)

    def run(*flat: Any) -> Any:
        return _Noting(program.graph_module, tracer).run(*flat)

    if keep is not None:
        KEPT.append(keep)
    try:
        with no_grad(), mode, proxies:
            out = functionalize(run)(*values)
    finally:
        if keep is not None:
            KEPT.remove(keep)
    outputs = [tracer.create_arg(x) if _noted(x) else x for x in out]
    written = _written(tracer.graph, placeholders)
    specs = [_write(program, target, node) for target, node in written.items()]
    for x, before in zip(outputs, program.graph_signature.output_specs, strict=True):
        specs.append(OutputSpec(before.kind, _argument(x), before.target))
    tracer.graph.output((*written.values(), *outputs))
    tracer.graph.eliminate_dead_code()
    inputs = list(program.graph_signature.input_specs)
    constants = dict(program.constants)
    first = next((i for i, s in enumerate(inputs) if s.kind == InputKind.USER_INPUT), len(inputs))
    for node, t in tracer.constants_made:
        target = node.name.removeprefix("c_")
        constants[target] = t
        made = InputSpec(InputKind.CONSTANT_TENSOR, TensorArgument(node.name), target)
        inputs.insert(first, made)
        first += 1
    signature = ExportGraphSignature(inputs, specs)
    return ExportedProgram(
        tracer.graph, signature, program.state_dict, constants, program.range_constraints,
        program.guards, program.module_call_graph, program.inputs, program.example_inputs,
        program.dim_names,
    )  # fmt: skip


def _noted(x: Any) -> bool:
    return isinstance(x, Tensor) or type(x) in SymTypes


def _constant(program: ExportedProgram, name: str) -> Any:
    for s in program.graph_signature.input_specs:
        if s.arg.name == name and isinstance(s.arg, ConstantArgument):
            return s.arg.value
    raise KeyError(name)


def _written(graph: Graph, placeholders: dict[str, Node]) -> dict[str, Node]:
    """Input → its new value: the copies at the end of the graph, which are taken away."""
    found: dict[str, Node] = {}
    for node in reversed(list(graph.nodes)):
        opname = getattr(node.target, "_opname", "")
        first = node.args[0] if node.args else None
        if opname == "copy_" and isinstance(first, Node) and first.op == "placeholder":
            found[first.name] = node.args[1]  # type: ignore[assignment]
            graph.erase_node(node)
    return dict(reversed(found.items()))


def _write(program: ExportedProgram, name: str, node: Node) -> OutputSpec:
    spec = next(s for s in program.graph_signature.input_specs if s.arg.name == name)
    target = name if spec.kind == InputKind.USER_INPUT else spec.target
    return OutputSpec(_MUTATION[spec.kind], TensorArgument(node.name), target)


def _argument(x: Any) -> Any:
    if not isinstance(x, Node):
        return ConstantArgument("", x)
    val = x.meta.get("val")
    if type(val) is SymInt:
        return SymIntArgument(x.name)
    return SymFloatArgument(x.name) if type(val) is SymFloat else TensorArgument(x.name)


decomposer.append(decompose)

__all__ = ["decompose"]

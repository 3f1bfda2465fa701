"""An exported program as an ONNX model.

Source: https://docs.pytorch.org/docs/2.13/onnx_export.html
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from torchlab._core.dispatch import arrivals
from torchlab._core.dispatch.overload import OpOverload, bind
from torchlab._core.tensor import Tensor
from torchlab._version import __version__
from torchlab.export import ExportedProgram
from torchlab.export._decompositions import decompose
from torchlab.export.graph_signature import InputKind, OutputKind
from torchlab.fx.experimental._symbolic_numbers import SymFloat, SymInt
from torchlab.fx.node import Node
from torchlab.onnx._builder import Builder, array_proto, class_name, element, onnx
from torchlab.onnx._program import ONNXProgram
from torchlab.onnx.errors import OnnxExporterError, UnsupportedOperatorError, Untranslatable
from torchlab.onnx.translations import find

IR = {18: 8, 19: 9, 20: 10, 21: 10, 22: 10, 23: 11}  # opset → version of the format


def _known_values(g: Builder, graph: Any) -> list[Any]:
    """Types and shapes of the values inside, for those who look at the model."""
    made = {n for node in graph.node for n in node.output} - {o.name for o in graph.output}
    found = {}
    for node, name in g.values.items():
        val = node.meta.get("val")
        parts = zip(name, val or (), strict=False) if isinstance(name, list) else [(name, val)]
        for n, v in parts:
            if n in made and isinstance(v, Tensor):
                found[n] = _info(g, n, v)
    return list(found.values())


def _functional(program: ExportedProgram) -> ExportedProgram:
    """The program without writes in place, composites that ONNX knows left whole."""
    for node in program.graph.nodes:
        target = node.target
        if isinstance(target, OpOverload) and (target.parsed.is_mutable or not find(target)):
            try:
                return decompose(program, keep=_known)
            except NotImplementedError as error:  # a part of an operator has no rule for shapes
                raise UnsupportedOperatorError(_unknown(program)) from error
    return program


def _unknown(program: ExportedProgram) -> list[tuple[str, str, str]]:
    """The calls without a translation."""
    return [
        (str(n.target), "ONNX has no counterpart that torchlab knows", _where(n))
        for n in program.graph.nodes
        if n.op == "call_function" and n.target is not operator.getitem and find(n.target) is None
    ]


def _known(op: Any) -> bool:
    return find(arrivals.overload_of(op)) is not None


def translated(
    program: ExportedProgram,
    opset: int,
    input_names: Sequence[str] | None = None,
    output_names: Sequence[str] | None = None,
) -> ONNXProgram:
    """The ONNX model of a program."""
    lowered = _functional(program)
    g = Builder(opset, program.dim_names)
    inputs = _inputs(g, lowered, input_names)
    problems = _writes(lowered)
    g.live = _live(lowered)
    for node in lowered.graph.nodes:
        if node.op == "call_function" and node in g.live:
            g.origin = node
            why = _translate(g, node)
            if why is not None:
                problems.append((str(node.target), why, _where(node)))
    if problems:
        raise UnsupportedOperatorError(problems)
    g.origin = None
    outputs = _outputs(g, lowered, output_names)
    graph = onnx.helper.make_graph(
        _used_only(g.nodes, [o.name for o in outputs]), "main_graph", inputs, outputs,
    )  # fmt: skip
    graph.value_info.extend(_known_values(g, graph))
    read = {n for node in graph.node for n in node.input} | {o.name for o in outputs}
    graph.initializer.extend([p for n, p in g.initializers.items() if n in read])
    made = onnx.helper.make_model(
        graph,
        producer_name="torchlab",
        producer_version=__version__,
        ir_version=IR[opset],
        opset_imports=[onnx.helper.make_opsetid("", opset)],
    )
    return ONNXProgram(made, program)


def _writes(program: ExportedProgram) -> list[tuple[str, str, str]]:
    """What still writes in place: no result would tell of it."""
    return [
        (str(n.target), "it writes in place, to what is a view of another tensor", _where(n))
        for n in program.graph.nodes
        if isinstance(n.target, OpOverload) and n.target.parsed.is_mutable and not find(n.target)
    ]


def _live(program: ExportedProgram) -> set[Node]:
    """The nodes that what the module returns needs."""
    end = next(n for n in program.graph.nodes if n.op == "output")
    values = zip(program.graph_signature.output_specs, end.args[0], strict=True)
    left = [x for s, x in values if isinstance(x, Node) and s.kind == OutputKind.USER_OUTPUT]
    found: set[Node] = set()
    while left:
        node = left.pop()
        if node not in found:
            found.add(node)
            left += node.all_input_nodes
    return found


def _translate(g: Builder, node: Node) -> str | None:
    """Translate a node; why that cannot be, or None."""
    if node.target is operator.getitem:
        source, i = node.args
        parts = g.values.get(source)  # type: ignore[call-overload]
        if isinstance(parts, list):
            g.values[node] = parts[i]  # type: ignore[index]
            return None
        return None if parts is None else "an index of what is one tensor"
    fn = find(node.target)
    if fn is None:
        return "ONNX has no counterpart that torchlab knows"
    args: Sequence[Any] = node.args
    if isinstance(node.target, OpOverload):
        args = bind(node.target.parsed, node.args, node.kwargs)
    if any(isinstance(a, Node) and _missing(g, a) for a in node.all_input_nodes):
        return None  # what it takes is told already
    try:
        made = fn(g, node, *args)
        if made is not None:
            g.values[node] = made
    except Untranslatable as error:
        return str(error)
    return None


def _missing(g: Builder, node: Node) -> bool:
    return node not in g.values and node not in g.vectors


def _where(node: Node) -> str:
    stack = list((node.meta.get("nn_module_stack") or {}).values())
    place = "in the program"
    if stack:
        path, cls = stack[-1]
        name = class_name(cls).rpartition(".")[2]
        place = f"in '{path}', {name}" if path else f"in {name}"
    return f"{place}, {node.meta.get('origin', 'line unknown')}"


def _inputs(g: Builder, program: ExportedProgram, names: Sequence[str] | None) -> list[Any]:
    """The model's inputs; parameters and constants become initializers."""
    given = iter(names or ())
    found = []
    placeholders = {n.name: n for n in program.graph.nodes if n.op == "placeholder"}
    for s in program.graph_signature.input_specs:
        node = placeholders[s.arg.name]
        val = node.meta.get("val")
        if s.kind != InputKind.USER_INPUT:
            name = g.fresh(str(s.target))
            t = program.tensor_of(str(s.target)).detach()
            g.values[node] = name
            try:
                element(t.dtype)
            except Untranslatable as error:
                raise OnnxExporterError(f"{s.target}: {error}") from None
            g.initializers[name] = array_proto(np.asarray(t.cpu()._a), name)
            continue
        if val is None:
            continue  # a constant of the program
        name = g.fresh(next(given, node.name))
        if isinstance(val, Tensor):
            g.values[node] = name
            found.append(_info(g, name, val))
            for i, n in enumerate(val.shape):
                if type(n) is SymInt:
                    g.inputs.append((name, i, n.node.expr))
        else:
            scalar = onnx.helper.make_tensor_value_info(name, 7, [])
            found.append(scalar)
            g.vectors[node] = g.op("Unsqueeze", name, g.const([0]))
    return found


def _info(g: Builder, name: str, t: Tensor) -> Any:
    return onnx.helper.make_tensor_value_info(name, element(t.dtype), [g.said(n) for n in t.shape])


def _outputs(g: Builder, program: ExportedProgram, names: Sequence[str] | None) -> list[Any]:
    """The model's outputs: what the module returns, but for None."""
    given = iter(names or ())
    values = next(n for n in program.graph.nodes if n.op == "output").args[0]
    taken: set[str] = set()
    found = []
    for s, x in zip(program.graph_signature.output_specs, values, strict=True):
        if s.kind != OutputKind.USER_OUTPUT or x is None:
            continue
        wanted = next(given, x.name if isinstance(x, Node) else None)
        val = x.meta.get("val") if isinstance(x, Node) else None
        value = g.of(x)
        name = _renamed(g, value, wanted or value, taken)
        taken.add(name)
        if isinstance(val, Tensor):
            found.append(_info(g, name, val))
        else:
            number = 11 if type(val) is SymFloat else 7
            if not isinstance(x, Node):
                number = 9 if isinstance(x, bool) else 7 if isinstance(x, int) else 1
            found.append(onnx.helper.make_tensor_value_info(name, number, []))
    return found


def _renamed(g: Builder, value: str, wanted: str, taken: set[str]) -> str:
    """The value under the name of an output: its node gives it, or a copy."""
    if value == wanted and value not in taken:
        made = [n for n in g.nodes if value in n.output]
        if made:
            return value
    for node in g.nodes:
        if value in node.output and value not in taken and wanted not in g._used:
            for i, n in enumerate(node.output):
                if n == value:
                    node.output[i] = wanted
            for other in g.nodes:
                for i, n in enumerate(other.input):
                    if n == value:
                        other.input[i] = wanted
            g._used.add(wanted)
            for key, v in list(g.values.items()):
                if v == value:
                    g.values[key] = wanted
            return wanted
    name = g.fresh(wanted if wanted != value else f"{wanted}_output")
    g.nodes.append(onnx.helper.make_node("Identity", [value], [name], g.fresh("node_Identity")))
    return name


def _used_only(nodes: list[Any], outputs: list[str]) -> list[Any]:
    """The nodes that an output needs; copies are passed over."""
    copies: dict[str, str] = {}
    for n in nodes:
        for i, name in enumerate(n.input):
            n.input[i] = copies.get(name, name)
        if n.op_type == "Identity" and n.output[0] not in outputs:
            copies[n.output[0]] = n.input[0]
    needed = set(outputs)
    kept = []
    for n in reversed(nodes):
        if any(o in needed for o in n.output):
            kept.append(n)
            needed.update(n.input)
    return kept[::-1]


__all__ = ["IR", "translated"]

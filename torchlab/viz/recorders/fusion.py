"""Fusion: what the code generator made of a program, read from the compiled program itself."""

from __future__ import annotations

import linecache
import re
from collections.abc import Sequence
from typing import Any

from torchlab._core.codegen.compile import CompiledProgram
from torchlab._core.codegen.loop_ir import ExternKernel, Node, Reduction
from torchlab._core.codegen.program import PointwiseStep
from torchlab.viz.pictures import FusionPicture
from torchlab.viz.snapshots.common import VERSION, Source
from torchlab.viz.snapshots.fusion import FusionSnapshot, Group, IRNode, Rejection

_NAME = re.compile(r"\b[A-Za-z_]\w*\b(?!\()")
_ONCE = re.compile(r"(?<![\w.])1(\.0)? \* ")
_CELL = re.compile(r"\S*ipykernel_\d+[/\\]\d+\.py")  # the random name of a notebook's cell
_PLACE = re.compile(r"^(?P<file>.+):(?P<line>\d+)$")


def _origin(origin: Sequence[str]) -> Source | None:
    """The first 'file:line' among a node's origins."""
    for text in origin:
        found = _PLACE.match(text)
        if found:
            file, line = found["file"], int(found["line"])
            code = linecache.getline(file, line).strip()
            return {"file": "cell" if "ipykernel_" in file else file, "line": line, "code": code}
    return None


def _expression(step: PointwiseStep) -> str:
    """The step's expression over the names of the values in the graph, numbers filled in."""
    known = {**step.inputs, **{name: f"{value:g}" for name, value in step.scalars.items()}}
    return _ONCE.sub("", _NAME.sub(lambda found: known.get(found[0], found[0]), step.expr))


def _op(node: Node, expressions: dict[str, str]) -> str:
    if isinstance(node, Reduction):
        return node.kind
    if isinstance(node, ExternKernel):
        return getattr(node.function, "__name__", "library call")
    return expressions.get(node.name, "pointwise")


def fusion_snapshot(compiled: CompiledProgram) -> FusionSnapshot:
    """The snapshot of one compiled program."""
    graph = compiled.graph
    expressions = {
        s.name: _expression(s) for s in compiled.program.steps if isinstance(s, PointwiseStep)
    }
    lines = {
        (k.name, name): numbers for k in compiled.kernels for name, numbers in k.line_map.items()
    }
    home = {node.name: k.name for k in compiled.kernels for node in k.nodes}
    nodes: list[IRNode] = []
    edges: list[list[str]] = []

    def add(
        identity: str, kind: str, op: str, shape: Sequence[int], dtype: str, origin: Source | None
    ) -> None:
        nodes.append(
            {
                "id": identity,
                "kind": kind,
                "op": op,
                "shape": [int(n) for n in shape],
                "dtype": dtype,
                "origin": origin,
                "lines": sorted(set(lines.get((home.get(identity, ""), identity), []))),
            }
        )

    for name in graph.inputs:
        buffer = graph.buffers[name]
        add(name, "input", "input", buffer.shape, buffer.dtype, None)
    for node in graph.nodes:
        buffer = graph.buffers[node.name]
        add(
            node.name,
            "op",
            _op(node, expressions),
            buffer.shape,
            buffer.dtype,
            _origin(node.origin),
        )
        edges += [[name, node.name] for name in node.reads]
    for i, access in enumerate(graph.outputs):
        identity = f"result {i}" if len(graph.outputs) > 1 else "result"
        add(identity, "output", "output", access.shape, graph.buffers[access.buffer].dtype, None)
        edges.append([access.buffer, identity])
    groups: list[Group] = [
        {
            "id": f"k{i}",
            "name": kernel.name,
            "nodes": [node.name for node in kernel.nodes],
            "language": kernel.language,
            "source": _CELL.sub("cell", kernel.source),
        }
        for i, kernel in enumerate(compiled.kernels)
    ]
    rejections: list[Rejection] = [
        {"first": d.first, "second": d.second, "reason": d.reason}
        for d in compiled.decisions
        if not d.accepted and home.get(d.first, d.first) != home.get(d.second, d.second)
    ]
    return FusionSnapshot(
        kind="fusion",
        version=VERSION,
        name=compiled.program.name,
        nodes=nodes,
        edges=edges,
        groups=groups,
        rejections=rejections,
    )


def _programs(compiled: Any) -> list[CompiledProgram]:
    if isinstance(compiled, CompiledProgram):
        return [compiled]
    found = getattr(compiled, "compiled_programs", None)
    found = found() if callable(found) else found
    return [p for p in found or () if isinstance(p, CompiledProgram)]


def fusion(compiled: Any, index: int = -1) -> FusionPicture:
    """What was fused in a compiled function, its generated source, and why the rest was not.

    Args:
        compiled: a `CompiledProgram`, or a compiled function that has run (anything whose
            `compiled_programs` lists its programs).
        index: which of its programs, in the order of compilation; default the newest.

    Raises:
        TypeError: `compiled` has no generated code; a compiled function must have been called once.
        IndexError: it has fewer programs.
    """
    programs = _programs(compiled)
    if not programs:
        raise TypeError(
            f"fusion: {type(compiled).__name__!r} holds no generated program; give a compiled "
            "function, after "
            "it has been called once"
        )
    return FusionPicture(fusion_snapshot(programs[index]))

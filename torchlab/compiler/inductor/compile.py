"""From what capture gives to a function of tensors that runs generated kernels."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from torchlab._core.codegen import CompiledProgram, compile_program
from torchlab._core.dispatch.compute import wrap
from torchlab._core.tensor import Tensor
from torchlab.compiler.aot import differentiable, joint, partition, region_budget
from torchlab.compiler.capture.segment import Captured
from torchlab.compiler.inductor.decompose import decomposed
from torchlab.compiler.inductor.lower import lower_graph
from torchlab.fx.graph import Graph

Call = Callable[[Sequence[Tensor]], Sequence[Tensor]]


def compile_captured(
    captured: Captured, options: dict[str, Any] | None = None
) -> tuple[Call, list[CompiledProgram]]:
    """A function of the graph's inputs, and the compiled programs behind it (forward, backward)."""
    options = options or {}
    if any(t.requires_grad for t in captured.outputs):
        j = joint(captured)
        parts = partition(captured.graph, j, region_budget(j))
        forward = _program(parts.forward, f"{captured.name}_forward", options)
        backward = _program(parts.backward, f"{captured.name}_backward", options)
        shapes = []
        for i in j.differentiable:
            v = j.outputs[i].meta["val"]
            size = v.dtype.itemsize
            shapes.append((v.shape, tuple(s * size for s in v.stride), v.dtype.np))
        call = differentiable(parts, _fresh(forward, len(j.outputs)), _fresh(backward), j, shapes)
        return call, [forward, backward]
    program = _program(captured.graph, captured.name, options)
    run = _fresh(program)
    return lambda tensors: [wrap(a) for a in run(*[t._a for t in tensors])], [program]


def _program(graph: Graph, name: str, options: dict[str, Any]) -> CompiledProgram:
    clean = "".join(c if c.isalnum() else "_" for c in name).strip("_") or "fn"
    program = lower_graph(decomposed(graph), clean)
    known = {k: v for k, v in options.items() if k in ("language", "num_threads", "fuse")}
    return compile_program(program, **known)


def _fresh(program: CompiledProgram, count: int | None = None) -> Callable[..., list[np.ndarray]]:
    """`program.run` whose first `count` results (None: all) share memory with no input and each
    other.
    """
    graph = program.graph
    seen = set(graph.inputs)
    shared = []
    for i, access in enumerate(graph.outputs[:count]):
        if access.buffer in seen:
            shared.append(i)
        seen.add(access.buffer)
    run = program.run
    if not shared:
        return run

    def copied(*arrays: np.ndarray) -> list[np.ndarray]:
        results = run(*arrays)
        for i in shared:
            results[i] = results[i].copy()
        return results

    return copied

"""The Python function around the kernels: it allocates buffers, calls kernels and libraries,
returns outputs."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from typing import Any

import numpy as np

from torchlab._core import events, threads
from torchlab._core.codegen.loop_ir import Access, Buffer, contiguous
from torchlab._core.codegen.memory_plan import MemoryPlan
from torchlab._core.codegen.nest import Names
from torchlab._core.codegen.program import Program
from torchlab._core.codegen.python_helpers import array, strided
from torchlab._core.codegen.scalar_types import numpy_dtype
from torchlab._core.codegen.schedule import Kernel, Schedule

PARALLEL_WORK = 65536
"""Points of a kernel's loops from which starting threads pays."""


class Threads:
    """How many threads a large kernel uses: `count`, or what `torch.set_num_threads` allows, if that
    is less; but one in forked children, where OpenMP's are missing."""

    def __init__(self, count: int) -> None:
        self.count = max(1, count)
        self.pid = os.getpid()

    def __call__(self) -> int:
        count = min(self.count, threads.limit)
        return count if count == 1 or os.getpid() == self.pid else 1


def ERRORS(status: int, function: Any, arguments: Any) -> int:
    """ctypes' errcheck: a kernel that met an integer division by zero returns 1."""
    if status:
        raise RuntimeError("ZeroDivisionError")
    return status


def allocate(shape: tuple[int, ...], stride: tuple[int, ...], dtype: Any) -> np.ndarray:
    """An empty array of a dense layout that is not row-major."""
    order = sorted(range(len(shape)), key=lambda d: (-stride[d], d))
    made = np.empty([shape[d] for d in order], dtype)
    return made.transpose(np.argsort(order))


def take_over(dead: np.ndarray, shape: tuple[int, ...], dtype: Any) -> np.ndarray:
    """The memory of `dead` as a row-major array."""
    return dead.reshape(-1).view(dtype).reshape(shape)


def wrapper_globals(
    schedule: Schedule, functions: dict[str, Callable[..., Any]], threads: Threads
) -> dict[str, Any]:
    """The names that `wrapper_source`'s text uses."""
    scope: dict[str, Any] = {
        "empty": np.empty, "allocate": allocate, "take_over": take_over, "view": strided, "array": array,
        "launched": events.kernel_launched, "get_threads": threads, "errstate": np.errstate, **functions,
    }  # fmt: skip
    for buffer in schedule.graph.buffers.values():
        scope.setdefault(buffer.dtype, numpy_dtype(buffer.dtype))
    for n, task in enumerate(schedule.tasks):
        if not isinstance(task, Kernel):
            scope[f"call_{n}"] = task.function  # type: ignore[attr-defined]
    return scope


def wrapper_source(
    program: Program, schedule: Schedule, memory: MemoryPlan, work: dict[str, int]
) -> str:
    """The text of `run(*inputs) -> list of outputs`; `work`: the size of every C++ kernel."""
    graph = schedule.graph
    names = Names()
    for taken in (
        "empty",
        "allocate",
        "take_over",
        "view",
        "array",
        "launched",
        "get_threads",
        "errstate",
        "run",
    ):
        names.fresh(taken)
    for buffer in graph.buffers.values():
        if buffer.dtype not in names._taken:
            names.fresh(buffer.dtype)
    inputs = [names[b] for b in graph.inputs]
    lines = [f"def run({', '.join(inputs)}):"]
    if any(work.get(t.name, 0) >= PARALLEL_WORK for t in schedule.tasks):
        lines.append("    num_threads = get_threads()")

    def seen(access: Access) -> str:
        buffer = graph.buffers[access.buffer]
        if (access.shape, access.stride, access.offset) == (buffer.shape, buffer.stride, 0):
            return names[access.buffer]
        return f"view({names[access.buffer]}, {access.shape}, {access.stride}, {access.offset})"

    made: set[str] = set(graph.inputs)
    for n, task in enumerate(schedule.tasks):
        if isinstance(task, Kernel):
            for name in task.outputs:
                reuses = memory.find(name).reuses
                lines.append(
                    f"    {names[name]} ="
                    f" {_allocation(graph.buffers[name], names[reuses] if reuses else None)}"
                )
            arguments = ", ".join(names[b] for b in (*task.inputs, *task.outputs))
            lines.append(f'    if launched.listeners: launched.emit(name="{task.name}")')
            threads = "num_threads" if work.get(task.name, 0) >= PARALLEL_WORK else "1"
            call = f"{task.name}({arguments}, {threads})"
            if task.name in work:
                lines.append(f"    {call}")
            else:
                lines.append('    with errstate(all="ignore"):')
                lines.append(f"        {call}")
            made.update(task.outputs)
        else:
            buffer = graph.buffers[task.name]
            for access in task.loads.values():
                if access.buffer not in made:  # it has no elements: no task makes it
                    text = _allocation(graph.buffers[access.buffer], None)
                    lines.append(f"    {names[access.buffer]} = {text}")
                    made.add(access.buffer)
            arguments = ", ".join(seen(a) for a in task.loads.values())
            what = re.sub(r"\W", " ", getattr(task.function, "__name__", "call"))  # type: ignore[attr-defined]
            order = ""
            if buffer.stride != contiguous(buffer.shape):
                dims = sorted(range(len(buffer.shape)), key=lambda d: (-buffer.stride[d], d))
                order = f", {tuple(dims)}"
            lines.append(
                f"    {names[task.name]} = array(call_{n}({arguments}), {buffer.shape},"
                f" {buffer.dtype}{order})  # {what}"
            )
            made.add(task.name)
        dead = [names[x] for x in memory.dying(n) if x in made]
        if dead and n < len(schedule.tasks) - 1:
            lines.append(f"    del {', '.join(dead)}")
    for access in graph.outputs:
        buffer = graph.buffers[access.buffer]
        if access.buffer not in made:  # it has no elements: no task makes it
            lines.append(f"    {names[access.buffer]} = {_allocation(buffer, None)}")
            made.add(access.buffer)
    results = ", ".join(seen(a) for a in graph.outputs)
    lines.append(f"    return [{results}]")
    return "\n".join(lines) + "\n"


def _allocation(buffer: Buffer, reuses: str | None) -> str:
    if reuses is not None:
        return f"take_over({reuses}, {buffer.shape}, {buffer.dtype})  # {reuses} is dead"
    if buffer.stride == contiguous(buffer.shape):
        return f"empty({buffer.shape}, {buffer.dtype})"
    return f"allocate({buffer.shape}, {buffer.stride}, {buffer.dtype})"

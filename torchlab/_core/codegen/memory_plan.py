"""Which intermediate buffers live when, and which take over the memory of a dead one."""

from __future__ import annotations

from dataclasses import dataclass

from torchlab._core.codegen.loop_ir import ExternKernel, contiguous
from torchlab._core.codegen.scalar_types import ITEMSIZE
from torchlab._core.codegen.schedule import Kernel, Schedule


@dataclass(frozen=True)
class Allocation:
    """A buffer between tasks: made before task `born`, last read by task `dies` (the number of
    tasks for an output). `reuses`: the dead buffer whose memory it takes over."""

    name: str
    nbytes: int
    born: int
    dies: int
    reuses: str | None
    output: bool


@dataclass(frozen=True)
class MemoryPlan:
    """`peak`: bytes of all buffers at the worst moment; `total`: what it would be without reuse."""

    allocations: tuple[Allocation, ...]
    peak: int
    total: int

    def find(self, name: str) -> Allocation:
        """The allocation of buffer `name`; KeyError if it has none."""
        for allocation in self.allocations:
            if allocation.name == name:
                return allocation
        raise KeyError(name)

    def dying(self, task: int) -> list[str]:
        """The buffers that nothing reads after `task`, and whose memory nobody takes over."""
        heirs = {a.reuses for a in self.allocations}
        return [
            a.name
            for a in self.allocations
            if a.dies == task and not a.output and a.name not in heirs
        ]


def plan_memory(schedule: Schedule) -> MemoryPlan:
    """Assign every buffer of the schedule its memory. A library call's result is its own."""
    graph, tasks = schedule.graph, schedule.tasks
    outputs = {a.buffer for a in graph.outputs}
    born: dict[str, int] = {}
    dies: dict[str, int] = {}
    handed_out: set[str] = set()  # seen by library calls: their results may be views of it
    for t, task in enumerate(tasks):
        made = task.outputs if isinstance(task, Kernel) else (task.name,)
        for name in made:
            born[name] = dies[name] = t
        for name in task.inputs if isinstance(task, Kernel) else task.reads:
            if name in born:
                dies[name] = t
        if isinstance(task, ExternKernel):
            handed_out.update(task.reads, (task.name,))
    result: list[Allocation] = []
    free: list[str] = []
    for t, task in enumerate(tasks):
        free += [n for n, last in dies.items() if last == t - 1 and n not in outputs | handed_out]
        for name in task.outputs if isinstance(task, Kernel) else (task.name,):
            buffer = graph.buffers[name]
            nbytes = buffer.numel * ITEMSIZE[buffer.dtype]
            reuses = None
            if (
                isinstance(task, Kernel)
                and name not in outputs
                and buffer.stride == contiguous(buffer.shape)
            ):
                fitting = (
                    f
                    for f in free
                    if graph.buffers[f].numel * ITEMSIZE[graph.buffers[f].dtype] == nbytes
                )
                reuses = next(fitting, None)
            if reuses is not None:
                free.remove(reuses)
            end = len(tasks) if name in outputs else dies[name]
            result.append(Allocation(name, nbytes, t, end, reuses, name in outputs))
    return MemoryPlan(tuple(result), _peak(result, len(tasks)), sum(a.nbytes for a in result))


def _peak(allocations: list[Allocation], tasks: int) -> int:
    return max(
        (sum(a.nbytes for a in allocations if a.born <= t <= a.dies) for t in range(tasks)),
        default=0,
    )

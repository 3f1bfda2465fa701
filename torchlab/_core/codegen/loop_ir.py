"""The loop IR: buffers, accesses to them, and the nodes that compute one buffer each.

All index maps are affine: an access is a stride per loop and an offset, counted in elements,
which covers permuting, expanding, slicing and most reshapes without copies. A node says *what* is
computed for each point of its loops; `schedule` decides which nodes share loops (`Kernel`), and
`cpp` and `python` print them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from torchlab._core.codegen.scalar import Printer, Scalar, evaluate, unwrap

Shape = tuple[int, ...]

REDUCTIONS = ("sum", "prod", "max", "min", "mean", "any", "all", "argmax", "argmin")


def contiguous(shape: Shape) -> Shape:
    """Row-major strides of `shape`, in elements.

    >>> contiguous((2, 3, 4))
    (12, 4, 1)
    """
    strides, step = [], 1
    for size in reversed(shape):
        strides.append(step)
        step *= max(size, 1)
    return tuple(reversed(strides))


@dataclass(frozen=True)
class Buffer:
    """An array in memory. `stride` in elements; `offset` is added to the array's first element (0
    for an ndarray, whose data pointer already stands at its first element)."""

    name: str
    shape: Shape
    stride: Shape
    dtype: str
    offset: int = 0

    @property
    def numel(self) -> int:
        return math.prod(self.shape)


@dataclass(frozen=True)
class Access:
    """Where loops touch a buffer: element `offset + sum(index[d] * stride[d])`."""

    buffer: str
    shape: Shape
    stride: Shape
    offset: int = 0

    def permute(self, order: tuple[int, ...]) -> Access:
        """The same access with the loops in another order."""
        shape = tuple(self.shape[d] for d in order)
        return Access(self.buffer, shape, tuple(self.stride[d] for d in order), self.offset)

    def expand(self, shape: Shape) -> Access:
        """Broadcast to `shape` (stride 0 along what is repeated)."""
        lead = len(shape) - len(self.shape)
        stride = tuple(
            0 if size == 1 and target != 1 else step
            for size, step, target in zip(self.shape, self.stride, shape[lead:], strict=True)
        )
        return Access(self.buffer, shape, (0,) * lead + stride, self.offset)

    def __str__(self) -> str:
        start = f"{self.offset} + " if self.offset else ""
        return f"{self.buffer}[{start}{'·'.join(map(str, self.stride)) or '0'}]"


INDEX = "#index"
"""The pseudo-buffer behind `index(dim)`: its element number is its value."""


@dataclass(frozen=True, eq=False)
class Node:
    """Computes buffer `name`. `loops`: extents; `loads`: argument → access over the loops; `store`:
    where the result goes, over the loops (stride 0 along reduced ones); `origin`: what the user
    wrote.
    """

    name: str
    dtype: str
    loops: Shape
    loads: Mapping[str, Access]
    store: Access
    origin: tuple[str, ...] = ()

    @property
    def reads(self) -> tuple[str, ...]:
        """The buffers read, each once."""
        return tuple(dict.fromkeys(a.buffer for a in self.loads.values() if a.buffer != INDEX))


@dataclass(frozen=True, eq=False)
class Pointwise(Node):
    """`store[i] = body(loads[i])` for every point of the loops."""

    body: Scalar = field(kw_only=True)

    def __str__(self) -> str:
        names = {arg: access.buffer for arg, access in self.loads.items()}
        return f"{self.name}{list(self.loops)} = {unwrap(evaluate(self.body, Printer(names)))}"


@dataclass(frozen=True, eq=False)
class Reduction(Node):
    """`store = kind of loads["self"]` over the loops marked in `reduced`. `input_dtype`: what is
    read."""

    kind: str = field(kw_only=True)
    reduced: tuple[bool, ...] = field(kw_only=True)
    input_dtype: str = field(kw_only=True)

    @property
    def count(self) -> int:
        """How many elements each result takes in."""
        return math.prod(n for n, r in zip(self.loops, self.reduced, strict=True) if r)

    def __str__(self) -> str:
        dims = [d for d, r in enumerate(self.reduced) if r]
        return (
            f"{self.name} = {self.kind}({self.loads['self'].buffer}{list(self.loops)}, dims={dims})"
        )


@dataclass(frozen=True, eq=False)
class ExternKernel(Node):
    """`store = function(*loads)` on whole arrays: a library call such as matmul."""

    function: Callable[..., Any] = field(kw_only=True)

    def __str__(self) -> str:
        name = getattr(self.function, "__name__", type(self.function).__name__)
        return f"{self.name}{list(self.loops)} = {name}({', '.join(self.reads)})"


@dataclass(frozen=True)
class Graph:
    """A lowered program: no views are left, every node fills its own buffer."""

    buffers: Mapping[str, Buffer]
    inputs: tuple[str, ...]
    nodes: tuple[Node, ...]
    outputs: tuple[Access, ...]

    def __str__(self) -> str:
        return "\n".join(map(str, self.nodes))

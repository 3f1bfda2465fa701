"""What the generator is given: a `Program` of steps over named values, and a builder for it.

It is neutral: shapes, strides, type names and expressions, no tensors. The compiler makes one
from an fx graph; an eager kernel makes one with a single step.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from torchlab._core.codegen.loop_ir import Buffer, Shape, contiguous
from torchlab._core.codegen.scalar import Number


@dataclass(frozen=True, kw_only=True)
class Step:
    """One value. `name` is unique in the program; `origin` names what it came from (node, source
    line)."""

    name: str
    origin: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class PointwiseStep(Step):
    """`expr` (see `scalar.parse`) over `inputs` (argument → value), broadcast together.

    `dtype`: of the result (None: inferred). `shape`: of the result (None: the broadcast of the
    inputs). `stride`: layout of the result (None: row-major); it must be dense.
    """

    expr: str
    inputs: Mapping[str, str]
    scalars: Mapping[str, Number] = field(default_factory=dict)
    dtype: str | None = None
    shape: Shape | None = None
    stride: Shape | None = None


@dataclass(frozen=True, kw_only=True)
class ReductionStep(Step):
    """`kind` (loop_ir.REDUCTIONS) of `input` over `dims` (None: all); `dtype`: of sum, prod and
    mean."""

    kind: str
    input: str
    dims: tuple[int, ...] | None = None
    keepdim: bool = False
    dtype: str | None = None


@dataclass(frozen=True, kw_only=True)
class ViewStep(Step):
    """An index map on `input`. `kind` and `args`: ("permute", dims), ("expand", shape),
    ("reshape", shape), ("slice", (dim, start, stop, step)), ("select", (dim, index)). A reshape
    that strides cannot express becomes a copy."""

    kind: str
    input: str
    args: tuple[int, ...]


@dataclass(frozen=True, kw_only=True)
class ExternStep(Step):
    """`function(*arrays) -> array`, run by Python between the kernels. `stride`: layout of the
    result (None: row-major); it must be dense."""

    function: Callable[..., Any]
    inputs: tuple[str, ...]
    shape: Shape
    dtype: str
    stride: Shape | None = None


@dataclass(frozen=True)
class Program:
    """Inputs, steps in order, and the names of the values to return."""

    inputs: tuple[Buffer, ...]
    steps: tuple[Step, ...]
    outputs: tuple[str, ...]
    name: str = "program"


class Builder:
    """Writes a Program step by step; every method returns the new value's name.

    >>> b = Builder()
    >>> x = b.input("x", (2, 3), "float32")
    >>> y = b.pointwise("y", "exp(self) * 2", self=x)
    >>> b.finish([y]).outputs
    ('y',)
    """

    def __init__(self, name: str = "program") -> None:
        self.name = name
        self.inputs: list[Buffer] = []
        self.steps: list[Step] = []

    def input(
        self, name: str, shape: Iterable[int], dtype: str, stride: Shape | None = None
    ) -> str:
        """An array given at every call; `stride` in elements (None: row-major)."""
        shape = tuple(shape)
        self.inputs.append(
            Buffer(name, shape, contiguous(shape) if stride is None else stride, dtype)
        )
        return name

    def add(self, step: Step) -> str:
        """Append any step."""
        self.steps.append(step)
        return step.name

    def pointwise(
        self,
        name: str,
        expr: str,
        /,
        *,
        dtype: str | None = None,
        shape: Shape | None = None,
        stride: Shape | None = None,
        scalars: Mapping[str, Number] | None = None,
        origin: tuple[str, ...] = (),
        **inputs: str,
    ) -> str:
        """See PointwiseStep; the keywords are the expression's inputs."""
        return self.add(
            PointwiseStep(
                name=name,
                expr=expr,
                inputs=inputs,
                scalars=scalars or {},
                dtype=dtype,
                shape=shape,
                stride=stride,
                origin=origin,
            )  # fmt: skip
        )

    def reduce(
        self,
        name: str,
        kind: str,
        input: str,
        dims: Iterable[int] | None = None,
        keepdim: bool = False,
        dtype: str | None = None,
        origin: tuple[str, ...] = (),
    ) -> str:
        """See ReductionStep."""
        where = None if dims is None else tuple(dims)
        return self.add(
            ReductionStep(
                name=name,
                kind=kind,
                input=input,
                dims=where,
                keepdim=keepdim,
                dtype=dtype,
                origin=origin,
            )
        )

    def view(
        self, name: str, kind: str, input: str, *args: int, origin: tuple[str, ...] = ()
    ) -> str:
        """See ViewStep."""
        return self.add(ViewStep(name=name, kind=kind, input=input, args=args, origin=origin))

    def extern(
        self,
        name: str,
        function: Callable[..., Any],
        inputs: Iterable[str],
        shape: Iterable[int],
        dtype: str,
        origin: tuple[str, ...] = (),
        stride: Shape | None = None,
    ) -> str:
        """See ExternStep."""
        return self.add(
            ExternStep(
                name=name,
                function=function,
                inputs=tuple(inputs),
                shape=tuple(shape),
                dtype=dtype,
                origin=origin,
                stride=stride,
            )
        )

    def finish(self, outputs: Iterable[str]) -> Program:
        """The program that returns the values `outputs`."""
        return Program(tuple(self.inputs), tuple(self.steps), tuple(outputs), self.name)

"""Loop bodies → C++ or NumPy kernels. Pure data in (shapes, strides, type names, scalar
expressions), callables on NumPy arrays out; it knows no tensors. Eager kernels and the compiler
use it alike.

    b = Builder("softmax")
    x = b.input("x", (64, 1000), "float32")
    top = b.reduce("top", "max", x, dims=(-1,), keepdim=True)
    e = b.pointwise("e", "exp(self - other)", self=x, other=top)
    total = b.reduce("total", "sum", e, dims=(-1,), keepdim=True)
    y = b.pointwise("y", "self / other", self=e, other=total)
    softmax = compile_program(b.finish([y]))          # one kernel; softmax.source, .decisions, .kernels
    (result,) = softmax.run(array)

Path of a program: `program` → `lower` (views become index maps) → `schedule` with `group` and
`stages` (what shares loops) → `cpp` or `python` → `toolchain`, `cache` → `compile`.
"""

from torchlab._core.codegen.compile import CompiledKernel, CompiledProgram, compile_program
from torchlab._core.codegen.eager import PointwiseKernel, pointwise_kernel
from torchlab._core.codegen.loop_ir import Buffer
from torchlab._core.codegen.program import (
    Builder,
    ExternStep,
    PointwiseStep,
    Program,
    ReductionStep,
    Step,
    ViewStep,
)
from torchlab._core.codegen.schedule import FusionDecision
from torchlab._core.codegen.toolchain import CompileError

__all__ = [
    "Buffer",
    "Builder",
    "CompileError",
    "CompiledKernel",
    "CompiledProgram",
    "ExternStep",
    "FusionDecision",
    "PointwiseKernel",
    "PointwiseStep",
    "Program",
    "ReductionStep",
    "Step",
    "ViewStep",
    "compile_program",
    "pointwise_kernel",
]

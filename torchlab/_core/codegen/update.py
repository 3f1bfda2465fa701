"""Kernels that update arrays in place: several formulas, one pass over the memory.

An optimizer's step reads a parameter, its gradient and its state, and writes most of them back. Op
by op that is a dozen passes; here it is one loop, which the memory's speed alone limits.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from torchlab._core.codegen import toolchain
from torchlab._core.codegen.cpp import ARRAY, HEADER
from torchlab._core.codegen.cpp_math import prelude
from torchlab._core.codegen.cpp_ops import CppOps, convert, value_type
from torchlab._core.codegen.scalar import evaluate, parse, unwrap
from torchlab._core.codegen.wrapper import PARALLEL_WORK, Threads


@dataclass(frozen=True)
class UpdateKernel:
    """`kernel(*arrays, *numbers)`: the arrays (row-major, of one size and of `dtype`, which is not
    checked) and then the numbers, in the order of `arrays` and `numbers`."""

    name: str
    arrays: tuple[str, ...]
    numbers: tuple[str, ...]
    source: str
    call: Callable[..., None]

    def __call__(self, *arguments: object) -> None:
        self.call(*arguments)


def update_kernel(
    formulas: Mapping[str, str],
    *,
    arrays: tuple[str, ...],
    numbers: tuple[str, ...],
    dtype: str,
    name: str = "update",
    num_threads: int | None = None,
) -> UpdateKernel | None:
    """Build the kernel that assigns `formulas` in their order: name → expression over `arrays`,
    `numbers` and the names assigned before. A name that is no array is a local value.

    dtype: "float32" or "float64", of the arrays and of the arithmetic; numbers are passed in
    float64 and rounded to it. None where there is no compiler
    (said once).
    """
    compiler = toolchain.find_compiler()
    if compiler is None:
        toolchain.say_once(
            "no compiler", f"torchlab: no C++ compiler was found: '{name}' runs as NumPy code."
        )
        return None
    types = dict.fromkeys((*arrays, *numbers), dtype)
    c_type = value_type(dtype)
    ops = CppOps(lambda argument: f"{argument}_", _no_index)
    lines = []
    for target, expression in formulas.items():
        body = parse(expression, types)
        text = unwrap(convert(evaluate(body, ops), body.dtype, dtype))
        known = target in types
        lines.append(f"{'' if known else 'const ' + c_type + ' '}{target}_ = {text};")
        types[target] = dtype
    written = [a for a in arrays if a in formulas]
    body_text = "\n".join(
        f"        {line}"
        for line in (
            *(f"{c_type} {a}_ = {a}[i];" for a in arrays),
            *lines,
            *(f"{a}[i] = {a}_;" for a in written),
        )
    )
    pointers = ", ".join(f"{'' if a in written else 'const '}{c_type}* {a}" for a in arrays)
    values = ", ".join(f"const {c_type} {n}_" for n in numbers)
    heads = ", ".join(f"Array* {a}" for a in arrays)
    given = ", ".join(f"double {n}" for n in numbers)
    passed = ", ".join(
        [f"({c_type}*){a}->data" for a in arrays] + [f"({c_type}){n}" for n in numbers]
    )
    code = f"""\
static void kernel_{name}_range(int64 begin, int64 end, {pointers}, {values}) {{
    #pragma omp simd
    for (int64 i = begin; i < end; ++i) {{
{body_text}
    }}
}}

extern "C" void kernel_{name}({heads}, {given}, int64 n, int32 threads) {{
    if (threads > 1) {{
        #pragma omp parallel for num_threads(threads) schedule(static)
        for (int32 t = 0; t < threads; ++t)
            kernel_{name}_range(n * t / threads, n * (t + 1) / threads, {passed});
        return;
    }}
    kernel_{name}_range(0, n, {passed});
}}
"""
    source = (
        HEADER.format(flags=" ".join(compiler.flags))
        + prelude(code)
        + ARRAY.format(header=object.__basicsize__)
        + "\n"
        + code
    )
    try:
        library, _ = toolchain.build(source, name, compiler)
    except toolchain.CompileError as e:
        toolchain.say_once("compile error", f"torchlab: {e}\nIt runs as NumPy code instead.")
        return None
    function = library[f"kernel_{name}"]
    function.argtypes = (
        [ctypes.py_object] * len(arrays)
        + [ctypes.c_double] * len(numbers)
        + [ctypes.c_longlong, ctypes.c_int]
    )
    function.restype = None
    threads = Threads(toolchain.default_threads() if num_threads is None else num_threads)

    def call(first: np.ndarray, *rest: object) -> None:
        n = first.size
        function(first, *rest, n, 1 if n < PARALLEL_WORK else threads())

    return UpdateKernel(name, arrays, numbers, source, call)


def _no_index(dim: int) -> str:
    raise TypeError("index() has no meaning in a kernel for any shape")

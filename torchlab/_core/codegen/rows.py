"""Kernels over the rows of row-major arrays: reductions of a row and what is computed with them.

Softmax, its logarithm and their gradients read each row a few times. Op by op every reading goes
through the whole memory, and a small array pays for every call; here a row stays in the processor's
first cache from its first reading to its last.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from torchlab._core.codegen import fastcall, toolchain
from torchlab._core.codegen.cpp_math import prelude
from torchlab._core.codegen.cpp_ops import CppOps, convert, value_type
from torchlab._core.codegen.cpp_reduce import SHORT
from torchlab._core.codegen.library import library
from torchlab._core.codegen.scalar import evaluate, parse, unwrap
from torchlab._core.codegen.wrapper import PARALLEL_WORK, Threads

Step = tuple[str, str, str]
"""(name, kind, expression). Kinds: "max" and "sum" of the expression over the row, "value" computed
once a row, "each" computed for every element; its name is "out"."""

_REST = object.__basicsize__ - ctypes.sizeof(ctypes.c_ssize_t)
_ARRAY = """
// the head of a NumPy array
struct Array {{ __INTPTR_TYPE__ references; char object[{rest}]; char* data; int32 rank; const __INTPTR_TYPE__* sizes; }};
"""
_LOOPS = {
    "max": """\
        {t} {name}_ = -__builtin_inf();
        #pragma omp simd reduction(maximum : {name}_)
        for (int64 i = 0; i < n; ++i) {name}_ = tl_maximum<{t}>({name}_, {value});
""",
    # the parts of a long row's sum are added in double, so that its error does not grow with n
    "sum": """\
        double {name}_total = 0;
        for (int64 b = 0; b < n; b += {short}) {{
            const int64 e = n - b < {short} ? n : b + {short};
            {t} {name}_part = 0;
            #pragma omp simd reduction(+ : {name}_part)
            for (int64 i = b; i < e; ++i) {name}_part += {value};
            {name}_total += {name}_part;
        }}
        const {t} {name}_ = ({t}){name}_total;
""",
    "value": "        const {t} {name}_ = {value};\n",
    "each": """\
        #pragma omp simd
        for (int64 i = 0; i < n; ++i) out[i] = {value};
""",
}


@dataclass(frozen=True)
class RowKernel:
    """`kernel.call(out, *arrays)` fills `out` and returns it; so does `kernel.short`, for arrays of
    less than `kernel.parallel_work` elements. All are NumPy arrays, row-major, of one shape with at
    least one dimension and one element, and of `dtype`, which is not checked."""

    name: str
    dtype: str
    source: str
    call: Callable[..., np.ndarray]
    short: Callable[..., np.ndarray]
    parallel_work: int = PARALLEL_WORK


def row_kernel(
    steps: tuple[Step, ...],
    *,
    arrays: tuple[str, ...],
    dtype: str,
    name: str,
    num_threads: int | None = None,
) -> RowKernel | None:
    """Build the kernel that takes `steps` in their order for every row. Expressions are over
    `arrays` and the names of the steps before.

    dtype: "float32" or "float64", of the arrays and of the arithmetic. None where there is no
    compiler, or where it failed (said once).
    """
    t = value_type(dtype)
    each = {*arrays, "out"}
    ops = CppOps(lambda a: f"{a}[i]" if a in each else f"{a}_", _no_index)
    types = dict.fromkeys(arrays, dtype)
    body = ""
    for target, kind, expression in steps:
        tree = parse(expression, types)
        value = unwrap(convert(evaluate(tree, ops), tree.dtype, dtype))
        body += _LOOPS[kind].format(t=t, name=target, value=value, short=SHORT)
        types[target] = dtype
    moves = "".join(f"        const {t}* {a} = all_{a} + row * n;\n" for a in arrays)
    pointers = ", ".join(f"const {t}* all_{a}" for a in arrays)
    passed = ", ".join(f"({t}*){a}->data" for a in ("out", *arrays))
    code = f"""\
#pragma omp declare reduction(maximum : {t} : omp_out = tl_maximum(omp_out, omp_in)) \
initializer(omp_priv = omp_orig)

static void kernel_{name}_range(int64 begin, int64 end, int64 n, {t}* all_out, {pointers}) {{
    for (int64 row = begin; row < end; ++row) {{
        {t}* out = all_out + row * n;
{moves}{body}    }}
}}

extern "C" void kernel_{name}({", ".join(f"Array* {a}" for a in ("out", *arrays))}, \
int32 threads) {{
    const int64 n = out->sizes[out->rank - 1];
    int64 rows = 1;
    for (int32 d = 0; d < out->rank - 1; ++d) rows *= out->sizes[d];
    if (threads > 1) {{
        #pragma omp parallel for num_threads(threads) schedule(static)
        for (int32 t = 0; t < threads; ++t)
            kernel_{name}_range(rows * t / threads, rows * (t + 1) / threads, n, {passed});
        return;
    }}
    kernel_{name}_range(0, rows, n, {passed});
}}

// as CPython's METH_FASTCALL has it
extern "C" void* short_{name}(void*, Array* const* given, __INTPTR_TYPE__) {{
    kernel_{name}({", ".join(f"given[{j}]" for j in range(1 + len(arrays)))}, 1);
    ++given[0]->references;
    return given[0];
}}
"""
    source = prelude(code) + _ARRAY.format(rest=_REST) + "\n" + code
    made = library(source, name)
    if made is None:
        return None
    function = made[f"kernel_{name}"]
    function.argtypes = [ctypes.py_object] * (1 + len(arrays)) + [ctypes.c_int]
    function.restype = None
    threads = Threads(toolchain.default_threads() if num_threads is None else num_threads)

    def call(out: np.ndarray, *given: np.ndarray) -> np.ndarray:
        function(out, *given, 1 if out.size < PARALLEL_WORK else threads())
        return out

    short = fastcall.function(made, f"short_{name}") if fastcall.available() else call
    return RowKernel(name, dtype, source, call, short)


def _no_index(dim: int) -> str:
    raise TypeError("index() has no meaning in a kernel for any shape")


__all__ = ["RowKernel", "Step", "row_kernel"]

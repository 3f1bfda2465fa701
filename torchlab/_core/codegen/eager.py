"""Kernels for eager operators: one expression over arrays whose shapes are known only when it is
called."""

from __future__ import annotations

import ctypes
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from torchlab._core.codegen import python, toolchain
from torchlab._core.codegen.cpp import ARRAY, HEADER
from torchlab._core.codegen.cpp_math import prelude
from torchlab._core.codegen.cpp_ops import CppOps, Unsupported, convert, memory_type, round_to
from torchlab._core.codegen.scalar import Number, Scalar, evaluate, parse, unwrap
from torchlab._core.codegen.scalar_types import HALF, numpy_dtype
from torchlab._core.codegen.wrapper import ERRORS, PARALLEL_WORK, Threads

_POINTER = ctypes.POINTER(ctypes.c_longlong)


@dataclass(frozen=True)
class PointwiseKernel:
    """`kernel(out, *arrays)` fills `out`. All arrays have out's shape (broadcast them before) and
    the declared types, which is not checked; if `contiguous`, all are row-major, so that only
    their number of elements matters. `dtype`: the type `out` must have."""

    name: str
    dtype: str
    contiguous: bool
    language: str
    source: str
    call: Callable[..., None]

    def __call__(self, out: np.ndarray, *arrays: np.ndarray) -> np.ndarray:
        """Fill `out` and return it. Raises RuntimeError if an integer was divided by zero."""
        self.call(out, *arrays)
        return out


def pointwise_kernel(
    expr: str,
    dtypes: Mapping[str, str],
    *,
    contiguous: bool = True,
    scalars: Mapping[str, Number] | None = None,
    dtype: str | None = None,
    name: str = "pointwise",
    num_threads: int | None = None,
) -> PointwiseKernel:
    """Build a kernel for `expr` over the inputs named (in call order) and typed by `dtypes`.

    `dtype`: of the result (None: inferred as PyTorch would). C++ where a compiler is found, else
    NumPy.
    """
    body = parse(expr, dtypes, scalars)
    result = dtype or body.dtype
    if not name.isidentifier():
        raise ValueError(f"a kernel's name must be an identifier, got {name!r}")
    compiler = toolchain.find_compiler()
    if compiler is not None:
        try:
            source = _source(name, body, dtypes, result, contiguous, " ".join(compiler.flags))
            library, _ = toolchain.build(source, name, compiler)
            threads = Threads(toolchain.default_threads() if num_threads is None else num_threads)
            call = _caller(library, source, name, len(dtypes) + 1, contiguous, threads)
            return PointwiseKernel(name, result, contiguous, "cpp", source, call)
        except Unsupported:
            pass  # NumPy code computes it just as well
    source = _numpy_source(name, body, dtypes, result)
    function = python.load_kernel(f"kernel_{name}", source)

    def run(*arrays: np.ndarray) -> None:
        with np.errstate(all="ignore"):
            function(*arrays)

    return PointwiseKernel(name, result, contiguous, "python", source, run)


def _caller(
    library: ctypes.CDLL, source: str, name: str, arrays: int, contiguous: bool, threads: Threads
) -> Callable[..., None]:
    function: Any = library[f"kernel_{name}"]
    extra = [ctypes.c_longlong] if contiguous else [_POINTER, _POINTER, ctypes.c_longlong]
    function.argtypes = [ctypes.py_object] * arrays + extra + [ctypes.c_int]
    function.restype = ctypes.c_int
    if "tl_error" in source:
        function.errcheck = ERRORS
    if contiguous:

        def call(out: np.ndarray, *inputs: np.ndarray) -> None:
            n = out.size
            function(out, *inputs, n, 1 if n < PARALLEL_WORK else threads())

    else:

        def call(out: np.ndarray, *inputs: np.ndarray) -> None:
            shape = out.shape or (1,)
            steps = [s // a.itemsize for a in (out, *inputs) for s in a.strides or (0,)]
            sizes = (ctypes.c_longlong * len(shape))(*shape)
            function(out, *inputs, sizes, (ctypes.c_longlong * len(steps))(*steps), len(shape), 1)

    return call


def _source(
    name: str, body: Scalar, dtypes: Mapping[str, str], result: str, contiguous: bool, flags: str
) -> str:
    # an input called `n` or `double` must not meet a name of C++ or of this file
    safe = {arg: f"{re.sub(chr(92) + 'W', '_', arg)}_" for arg in dtypes}
    arrays = {"out": memory_type(result), **{safe[a]: memory_type(t) for a, t in dtypes.items()}}

    def load(arg: str) -> str:
        step = "[i]" if contiguous else f"[i * step_{safe[arg]}]"
        text = f"{safe[arg]}{step}"
        return f"tl_from_{dtypes[arg]}({text})" if dtypes[arg] in HALF else text

    def index(dim: int) -> str:
        raise TypeError("index() has no meaning in a kernel for any shape")

    text = convert(evaluate(body, CppOps(load, index)), body.dtype, result)
    text = f"tl_to_{result}({unwrap(text)})" if result in HALF else unwrap(round_to(text, result))
    emit = _contiguous_text if contiguous else _strided_text
    code = emit(name, arrays, text, str(body))
    return (
        HEADER.format(flags=flags)
        + prelude(code)
        + ARRAY.format(header=object.__basicsize__)
        + "\n"
        + code
    )


def _contiguous_text(name: str, arrays: dict[str, str], text: str, comment: str) -> str:
    heads = ", ".join(f"Array* {a}" for a in arrays)
    casts = ", ".join(f"({t}*){a}->data" for a, t in arrays.items())
    parameters = ", ".join(
        f"{t}* {a}" if a == "out" else f"const {t}* {a}" for a, t in arrays.items()
    )
    store = "out[i]"
    error = "tl_error" if "tl_floordiv" in text or "tl_mod" in text else "0"
    reset = "    tl_error = 0;\n" if error != "0" else ""
    return f"""\
// {name}: {comment}
static void kernel_{name}_range(int64 begin, int64 end, {parameters}) {{
    #pragma omp simd
    for (int64 i = begin; i < end; ++i) {{
        {store} = {text};
    }}
}}

extern "C" int32 kernel_{name}({heads}, int64 n, int32 threads) {{
{reset}    const auto range = [=](int64 begin, int64 end) {{ kernel_{name}_range(begin, end, {casts}); }};
    if (threads > 1) {{
        #pragma omp parallel for num_threads(threads) schedule(static)
        for (int32 t = 0; t < threads; ++t)
            range(n * t / threads, n * (t + 1) / threads);
        return {error};
    }}
    range(0, n);
    return {error};
}}
"""


def _strided_text(name: str, arrays: dict[str, str], text: str, comment: str) -> str:
    heads = ", ".join(f"Array* {a}_array" for a in arrays)
    starts = "".join(
        f"        {t}* {a} = ({t}*){a}_array->data;\n        const int64 step_{a} = strides[{n} *"
        " rank + rank - 1];\n"
        for n, (a, t) in enumerate(arrays.items())
    )
    moves = "".join(
        f"            {a} += position * strides[{n} * rank + d];\n" for n, a in enumerate(arrays)
    )
    error = "tl_error" if "tl_floordiv" in text or "tl_mod" in text else "0"
    reset = "    tl_error = 0;\n" if error != "0" else ""
    return f"""\
// {name}: {comment}, any strides (in elements; strides[array * rank + dim])
extern "C" int32 kernel_{name}({heads}, const int64* sizes, const int64* strides, int64 rank, int32) {{
{reset}    int64 rows = 1;
    for (int64 d = 0; d < rank - 1; ++d) rows *= sizes[d];
    for (int64 row = 0; row < rows; ++row) {{
{starts}        int64 rest = row;
        for (int64 d = rank - 2; d >= 0; --d) {{
            const int64 position = rest % sizes[d];
            rest /= sizes[d];
{moves}        }}
        for (int64 i = 0; i < sizes[rank - 1]; ++i) {{
            out[i * step_out] = {text};
        }}
    }}
    return {error};
}}
"""


def _numpy_source(name: str, body: Scalar, dtypes: Mapping[str, str], result: str) -> str:
    def index(dim: int) -> str:
        raise TypeError("index() has no meaning in a kernel for any shape")

    safe = {arg: f"{arg}_" for arg in dtypes}
    text = unwrap(evaluate(body, python.NumpyOps(lambda arg: safe[arg], index)))
    numpy_dtype(result)
    return (
        f"def kernel_{name}({', '.join(['out', *safe.values()])}):\n    # {body}\n    out[...] ="
        f" array({text}, out.shape, {result})\n"
    )

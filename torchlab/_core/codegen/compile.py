"""`compile_program`: a Program as a callable on NumPy arrays, with everything one wants to see of
it."""

from __future__ import annotations

import linecache
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from torchlab._core import events
from torchlab._core.codegen import cpp, python, toolchain
from torchlab._core.codegen.cpp_ops import Unsupported
from torchlab._core.codegen.loop_ir import Buffer, Graph, Node
from torchlab._core.codegen.lower import lower
from torchlab._core.codegen.memory_plan import MemoryPlan, plan_memory
from torchlab._core.codegen.program import Program
from torchlab._core.codegen.scalar_types import numpy_dtype
from torchlab._core.codegen.schedule import FusionDecision, Kernel, schedule
from torchlab._core.codegen.wrapper import ERRORS, Threads, wrapper_globals, wrapper_source


@dataclass(frozen=True)
class CompiledKernel:
    """One kernel: `source` in `language`; `line_map`: node name or origin → its lines in `source`
    (from 1); `first_line`: where the source starts in the program's; `decision` says which nodes
    are together.
    """

    name: str
    language: str
    source: str
    nodes: tuple[Node, ...]
    line_map: dict[str, list[int]]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    first_line: int


class CompiledProgram:
    """A program made callable.

    `source`: all kernels' source; `wrapper`: the Python function that allocates and calls them;
    `kernels`, `decisions`, `memory`: what was fused, why, and where it lives; `cached`: whether
    no compiler had to run.
    """

    def __init__(
        self,
        program: Program,
        graph: Graph,
        language: str,
        source: str,
        wrapper: str,
        call: Callable[..., list[np.ndarray]],
        kernels: tuple[CompiledKernel, ...],
        decisions: tuple[FusionDecision, ...],
        memory: MemoryPlan,
        cached: bool,
    ) -> None:
        self.program, self.graph, self.language = program, graph, language
        self.source, self.wrapper = source, wrapper
        self.run_unchecked = call
        self.kernels, self.decisions, self.memory, self.cached = kernels, decisions, memory, cached
        self._expected = [
            (
                b,
                b.shape,
                tuple(s * numpy_dtype(b.dtype).itemsize for s in b.stride),
                numpy_dtype(b.dtype),
            )
            for b in program.inputs
        ]

    def run(self, *arrays: np.ndarray) -> list[np.ndarray]:
        """The outputs for `arrays`, one per input, of exactly the declared shapes, strides and
        types.

        Outputs are new arrays, except that an output which is a view of an input shares its memory.

        Raises:
            ValueError: an array is not as declared (nothing has run then).
            RuntimeError: an integer was divided by zero.
        """
        if len(arrays) != len(self._expected):
            raise ValueError(
                f"{self.program.name} takes {len(self._expected)} arrays, got {len(arrays)}"
            )
        for array, (buffer, shape, strides, dtype) in zip(arrays, self._expected, strict=True):
            if (
                not isinstance(array, np.ndarray)
                or array.shape != shape
                or array.dtype != dtype
                or array.strides != strides
            ):
                _check(self.program.name, array, buffer)
        return self.run_unchecked(*arrays)

    def __repr__(self) -> str:
        return (
            f"CompiledProgram({self.program.name!r}, {len(self.kernels)} kernel(s),"
            f" {self.language})"
        )


def _check(program: str, array: np.ndarray, buffer: Buffer) -> None:
    if not isinstance(array, np.ndarray):
        # a NumPy scalar has a shape and strides too, but not the memory that kernels read
        raise ValueError(
            f"{program}: the input '{buffer.name}' must be a NumPy array, got"
            f" {type(array).__name__}"
        )
    size = array.itemsize
    strides = tuple(s // size for s in array.strides)
    relevant = any(
        n > 1 and a != b for n, a, b in zip(buffer.shape, strides, buffer.stride, strict=False)
    )
    if (
        array.shape != buffer.shape
        or array.dtype != numpy_dtype(buffer.dtype)
        or (relevant and array.size)
    ):
        raise ValueError(
            f"{program}: the input '{buffer.name}' was compiled for shape {buffer.shape}, strides"
            f" {buffer.stride}, {buffer.dtype}; got shape {array.shape}, strides {strides},"
            f" {array.dtype}"
        )


def compile_program(
    program: Program, *, language: str = "auto", num_threads: int | None = None, fuse: bool = True
) -> CompiledProgram:
    """Lower, schedule and build `program`.

    Args:
        language: "cpp", "python", or "auto": C++ where a compiler is found, else Python (said once).
        num_threads: for large kernels; None: `OMP_NUM_THREADS`, else the processors of this process.
        fuse: False makes a kernel of every step (to compare).

    Raises:
        ValueError, TypeError: the program is not well formed (see `lower`).
        RuntimeError: language="cpp" and there is no compiler.
        toolchain.CompileError: language="cpp" and the compiler refused the source.
    """
    if language not in ("auto", "cpp", "python"):
        raise ValueError(f"language must be 'auto', 'cpp' or 'python', got {language!r}")
    plan = schedule(lower(program), fuse)
    kernels = [t for t in plan.tasks if isinstance(t, Kernel)]
    built = _Built()
    if language != "python" and kernels:
        compiler = toolchain.find_compiler()
        if compiler is not None:
            _build_cpp(program.name, kernels, plan.graph, compiler, built, strict=language == "cpp")
        elif language == "cpp":
            raise RuntimeError(
                "no C++ compiler was found: install g++ or clang++, `pip install ziglang`, or"
                " set CXX"
            )
        else:
            toolchain.say_once(
                "compiler",
                "torchlab found no C++ compiler: generated kernels run as NumPy code, which is"
                " slower. Install g++ or clang++, `pip install ziglang`, or set CXX.",
            )
    for kernel in kernels:
        if kernel.name not in built.functions:
            _build_python(kernel, plan.graph, built)
    memory = plan_memory(plan)
    text = wrapper_source(program, plan, memory, built.work)
    name = f"<torchlab {program.name} {abs(hash(text)):x}>"
    linecache.cache[name] = (len(text), None, text.splitlines(True), name)
    threads = Threads(toolchain.default_threads() if num_threads is None else num_threads)
    scope = wrapper_globals(plan, built.functions, threads)
    exec(compile(text, name, "exec"), scope)
    source = "\n".join(built.sources)
    return CompiledProgram(
        program, plan.graph, "cpp" if built.cpp else "python", source, text, scope["run"],
        tuple(built.kernels[k.name] for k in kernels), plan.decisions, memory, built.cached,
    )  # fmt: skip


class _Built:
    """What the generators have made so far."""

    def __init__(self) -> None:
        self.functions: dict[str, Callable[..., Any]] = {}
        self.kernels: dict[str, CompiledKernel] = {}
        self.sources: list[str] = []
        self.work: dict[str, int] = {}
        self.cached = True
        self.cpp = False


def _build_cpp(
    name: str,
    kernels: list[Kernel],
    graph: Graph,
    compiler: toolchain.Compiler,
    built: _Built,
    strict: bool,
) -> None:
    texts: list[cpp.KernelSource] = []
    made: list[Kernel] = []
    for kernel in kernels:
        try:
            texts.append(cpp.kernel_source(kernel, graph))
            made.append(kernel)
        except Unsupported as e:
            toolchain.say_once(str(e), f"torchlab: {kernel.name} runs as NumPy code: {e}.")
    if not texts:
        return
    source, starts = cpp.program_source(texts, " ".join(compiler.flags), object.__basicsize__)
    start = time.perf_counter()
    try:
        library, cached = toolchain.build(
            source, f"{name} ({', '.join(t.name for t in texts)})", compiler
        )
    except toolchain.CompileError as e:
        if strict:
            raise
        toolchain.say_once(
            "compile error", f"torchlab: {e}\nThese kernels run as NumPy code instead."
        )
        return
    seconds = time.perf_counter() - start
    for kernel, text, first in zip(made, texts, starts, strict=True):
        function = toolchain.entry_point(library, kernel.name, len(text.parameters))
        if "tl_error" in text.text:
            function.errcheck = ERRORS  # type: ignore[attr-defined]
        built.functions[kernel.name] = function
        built.work[kernel.name] = text.work
        _record(built, kernel, "cpp", text.text, text.line_map, first, seconds / len(texts), cached)
    built.sources.append(source)
    built.cached = cached
    built.cpp = True


def _build_python(kernel: Kernel, graph: Graph, built: _Built) -> None:
    start = time.perf_counter()
    text, line_map = python.kernel_source(kernel, graph)
    built.functions[kernel.name] = python.load_kernel(kernel.name, text)
    first = sum(s.count("\n") + 1 for s in built.sources) + 1
    built.sources.append(text)
    _record(built, kernel, "python", text, line_map, first, time.perf_counter() - start, False)


def _record(
    built: _Built, kernel: Kernel, language: str, text: str, lines: dict[str, list[int]], first: int,
    seconds: float, cached: bool,
) -> None:  # fmt: skip
    built.kernels[kernel.name] = CompiledKernel(
        kernel.name, language, text, kernel.nodes, lines, kernel.inputs, kernel.outputs, first
    )
    if events.kernel_compiled.listeners:
        events.kernel_compiled.emit(
            name=kernel.name, source=text, language=language, seconds=seconds, cached=cached
        )

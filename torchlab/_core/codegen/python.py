"""The reference generator: the same kernels as readable NumPy code.

It is used where no C++ compiler is found and for what C++ code is not made for (complex numbers),
and it is what the C++ generator is tested against. Sums of floats accumulate in float64 here too.
"""

from __future__ import annotations

import linecache
from collections.abc import Callable, Mapping

from torchlab._core.codegen.group import Member
from torchlab._core.codegen.loop_ir import (
    INDEX,
    Access,
    Graph,
    Pointwise,
    Reduction,
    Shape,
    contiguous,
)
from torchlab._core.codegen.nest import Names
from torchlab._core.codegen.python_helpers import HELPERS
from torchlab._core.codegen.scalar import INFIX, Number, Scalar, evaluate, infix, unwrap
from torchlab._core.codegen.scalar_types import CATEGORY, FLOATING, HALF, ITEMSIZE, compute_type
from torchlab._core.codegen.schedule import Kernel


class NumpyOps:
    """The handler that writes an expression as NumPy code."""

    def __init__(self, load: Callable[[str], str], index: Callable[[int], str]) -> None:
        self._load, self._index = load, index

    def const(self, value: Number, dtype: str) -> str:
        if isinstance(value, float) and (value != value or value in (float("inf"), float("-inf"))):
            return repr(value)  # inf and nan are names in HELPERS
        if CATEGORY[dtype] < FLOATING:
            return f"{dtype}({value!r})" if dtype != "bool" else repr(bool(value))
        return repr(value)

    def load(self, name: str, dtype: str) -> str:
        return f"{self._load(name)}.astype(float32)" if dtype in HALF else self._load(name)

    def index(self, dim: int) -> str:
        return self._index(dim)

    def to(self, x: str, source: str, dtype: str) -> str:
        narrow = CATEGORY[source] == FLOATING and CATEGORY[dtype] < FLOATING and dtype != "bool"
        if narrow and ITEMSIZE[dtype] < 8:
            return f"{x}.astype(int64).astype({dtype})"  # out-of-range values wrap, as in C
        if dtype in HALF:
            return f"{x}.astype({dtype}).astype(float32)"
        return f"{x}.astype({dtype})"

    def call(self, op: str, args: list[str], node: Scalar) -> str:
        floating = CATEGORY[node.args[-1].dtype] >= FLOATING
        if op == "where" and all(a.op == "const" for a in node.args[1:]):
            kind = compute_type(node.dtype)
            args = [args[0], *(f"{kind}({a})" for a in args[1:])]
        if op in INFIX:
            return infix(op, args)
        if op == "neg":
            return f"(-{args[0]})"
        if op in ("floor", "ceil", "trunc", "round") and not floating:
            return args[0]
        if op == "pow" and floating:
            return f"({args[0]} ** {args[1]})"
        return f"{op}({', '.join(map(unwrap, args))})"


def kernel_source(kernel: Kernel, graph: Graph) -> tuple[str, dict[str, list[int]]]:
    """A Python function `kernel.name(*inputs, *outputs, threads)`, and origin → its lines (from
    1)."""
    return _Emitter(kernel, graph).emit()


def load_kernel(name: str, source: str) -> Callable[..., int]:
    """Compile a kernel's source; it is found in tracebacks and by debuggers."""
    filename = f"<torchlab {name} {abs(hash(source)):x}>"
    linecache.cache[filename] = (len(source), None, source.splitlines(True), filename)
    namespace = HELPERS.bind(source)
    exec(compile(source, filename, "exec"), namespace)
    return namespace[name]


class _Emitter:
    def __init__(self, kernel: Kernel, graph: Graph) -> None:
        self.kernel, self.graph = kernel, graph
        self.names = Names()
        for helper in HELPERS:
            self.names.fresh(helper)
        self.members: Mapping[str, Member] = {m.name: m for m in kernel.plan.group.members}
        self.arrays = {b: self.names[b] for b in (*kernel.inputs, *kernel.outputs)}
        self.locals = {
            m: self.names.fresh(f"{m}_value") if m in kernel.outputs else self.names[m]
            for m in self.members
        }
        self.lines: list[str] = []
        self.line_map: dict[str, list[int]] = {}

    def emit(self) -> tuple[str, dict[str, list[int]]]:
        self.lines.append(
            f"def {self.kernel.name}({', '.join([*self.arrays.values(), 'threads=1'])}):"
        )
        for m in self.members.values():
            self.line(f"# {m.node}", m)
            value = self.reduction(m.node) if isinstance(m.node, Reduction) else self.pointwise(m)
            self.line(f"{self.locals[m.name]} = {value}", m)
            if m.name in self.arrays:
                buffer = self.graph.buffers[m.name]
                shape = self.shape_of(m.name)
                target = self.place(
                    self.arrays[m.name], buffer.shape, buffer.stride, shape, contiguous(shape), 0
                )
                self.line(f"{target}[...] = {self.locals[m.name]}", m)
        self.lines.append("    return 0")
        return "\n".join(self.lines) + "\n", self.line_map

    def line(self, text: str, m: Member) -> None:
        self.lines.append(f"    {text}".replace("\n", " "))
        for origin in dict.fromkeys((m.name, *m.node.origin)):
            self.line_map.setdefault(origin, []).append(len(self.lines))

    def shape_of(self, name: str) -> Shape:
        """The shape that a member's local array has; its memory is row-major."""
        node = self.members[name].node
        return node.loops if isinstance(node, Pointwise) else self.graph.buffers[name].shape

    def pointwise(self, m: Member) -> str:
        node = m.node
        assert isinstance(node, Pointwise)

        def index(dim: int) -> str:
            access = node.loads[f"index({dim})"]
            assert access.buffer == INDEX
            along = access.stride.index(1)
            return f"index({node.loops}, {along})"

        text = evaluate(node.body, NumpyOps(lambda name: self.read(node.loads[name]), index))
        return f"array({unwrap(text)}, {node.loops}, {node.dtype})"

    def reduction(self, node: Reduction) -> str:
        dims = tuple(d for d, r in enumerate(node.reduced) if r)
        shape = self.graph.buffers[node.name].shape
        source = self.read(node.loads["self"], exact=True)
        return f"reduce_{node.kind}({source}, {dims}, {node.dtype}).reshape({shape})"

    def read(self, access: Access, exact: bool = False) -> str:
        """The text of an array that broadcasts to what is accessed, or (`exact`) has its shape."""
        if access.buffer in self.members:
            shape = self.shape_of(access.buffer)
            name, stride = self.locals[access.buffer], contiguous(shape)
        else:
            buffer = self.graph.buffers[access.buffer]
            name, shape, stride = self.arrays[access.buffer], buffer.shape, buffer.stride
        if exact and shape != access.shape:
            return f"strided({name}, {access.shape}, {access.stride}, {access.offset})"
        return self.place(name, shape, stride, access.shape, access.stride, access.offset)

    @staticmethod
    def place(
        name: str, shape: Shape, stride: Shape, wanted: Shape, steps: Shape, offset: int
    ) -> str:
        """The array `name` (`shape`, `stride`) seen as (`wanted`, `steps`): itself, if that
        broadcasts to it."""
        lead = len(wanted) - len(shape)
        same = (
            offset == 0
            and lead >= 0
            and all(n == 1 or s == 0 for n, s in zip(wanted[:lead], steps, strict=False))
        )
        for n, s, w, t in zip(shape, stride, wanted[lead:], steps[lead:], strict=False):
            same = same and ((n == w and (n == 1 or s == t)) or (n == 1 and t == 0))
        return name if same else f"strided({name}, {wanted}, {steps}, {offset})"

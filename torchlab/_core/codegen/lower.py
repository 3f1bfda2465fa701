"""Program → loop IR: views become index maps, expressions typed trees, special sizes plain
nodes."""

from __future__ import annotations

from collections.abc import Mapping

from torchlab._core.codegen.loop_ir import (
    INDEX,
    REDUCTIONS,
    Access,
    Buffer,
    ExternKernel,
    Graph,
    Node,
    Pointwise,
    Reduction,
    Shape,
    contiguous,
)
from torchlab._core.codegen.program import (
    ExternStep,
    PointwiseStep,
    Program,
    ReductionStep,
    Step,
    ViewStep,
)
from torchlab._core.codegen.scalar import Number, Scalar, cast, number, parse
from torchlab._core.codegen.scalar_types import CATEGORY, FLOATING, promote, sum_type


def lower(program: Program) -> Graph:
    """Lower every step of `program`.

    Raises:
        ValueError: an unknown value or kind, shapes that do not broadcast, a dim out of range.
        TypeError: an expression that cannot be read, or types it does not take.
    """
    return _Lowering(program).run()


def broadcast(shapes: list[Shape], name: str = "") -> Shape:
    """The common shape of `shapes` by the broadcasting rule; ValueError if there is none."""
    rank = max(map(len, shapes), default=0)
    result = [1] * rank
    for shape in shapes:
        for d, size in enumerate(shape, rank - len(shape)):
            if size != 1:
                if result[d] not in (1, size):
                    raise ValueError(f"{name}: the shapes {shapes} cannot be broadcast together")
                result[d] = size
    return tuple(result)


def reshape_strides(shape: Shape, stride: Shape, target: Shape) -> Shape | None:
    """Strides that show an array of (`shape`, `stride`) as `target`, or None where it takes a copy.

    >>> reshape_strides((4, 6), (6, 1), (2, 2, 6)), reshape_strides((4, 6), (1, 4), (24,))
    ((12, 6, 1), None)
    """
    if 0 in shape:
        return contiguous(target)
    # runs of the source that behave as one long dimension: [elements, smallest stride]
    runs: list[list[int]] = []
    for size, step in zip(shape, stride, strict=True):
        if size == 1:
            continue
        if runs and runs[-1][1] == step * size:
            runs[-1] = [runs[-1][0] * size, step]
        else:
            runs.append([size, step])
    result: list[int] = []
    run = len(runs) - 1
    left, step = runs[run] if runs else (1, 1)
    for size in reversed(target):
        if size == 1:
            result.append(step)
            continue
        if left == 1:
            run -= 1
            left, step = runs[run]
        if left % size:
            return None
        result.append(step)
        left, step = left // size, step * size
    return tuple(reversed(result))


class _Lowering:
    def __init__(self, program: Program) -> None:
        self.program = program
        self.buffers: dict[str, Buffer] = {b.name: b for b in program.inputs}
        self.values: dict[str, Access] = {
            b.name: Access(b.name, b.shape, b.stride, b.offset) for b in program.inputs
        }
        self.nodes: list[Node] = []

    def run(self) -> Graph:
        rules = {
            PointwiseStep: self.pointwise,
            ReductionStep: self.reduction,
            ViewStep: self.view,
            ExternStep: self.extern,
        }
        for step in self.program.steps:
            if step.name in self.values:
                raise ValueError(f"the value '{step.name}' is defined twice")
            rules[type(step)](step)  # type: ignore[operator]
        outputs = tuple(self.value(name, "outputs") for name in self.program.outputs)
        return Graph(
            self.buffers,
            tuple(b.name for b in self.program.inputs),
            self.live_nodes(outputs),
            outputs,
        )

    def live_nodes(self, outputs: tuple[Access, ...]) -> tuple[Node, ...]:
        """Without the nodes that no output and no library call depends on."""
        wanted = {a.buffer for a in outputs}
        live: list[Node] = []
        for node in reversed(self.nodes):
            if node.name in wanted or isinstance(node, ExternKernel):
                if self.buffers[node.name].numel:  # what has no elements is not computed
                    wanted.update(node.reads)
                live.append(node)
        return tuple(reversed(live))

    def value(self, name: str, user: str) -> Access:
        try:
            return self.values[name]
        except KeyError:
            raise ValueError(f"{user}: there is no value '{name}' before it") from None

    def dtype(self, access: Access) -> str:
        return self.buffers[access.buffer].dtype

    def define(self, name: str, shape: Shape, stride: Shape, dtype: str) -> None:
        self.buffers[name] = Buffer(name, shape, stride, dtype)
        self.values[name] = Access(name, shape, stride)

    # -- pointwise

    def pointwise(self, step: PointwiseStep) -> None:
        accesses = {arg: self.value(v, step.name) for arg, v in step.inputs.items()}
        shape = (
            broadcast([a.shape for a in accesses.values()], step.name)
            if step.shape is None
            else step.shape
        )
        types = {arg: self.dtype(a) for arg, a in accesses.items()}
        zero_dim = {a for a, v in accesses.items() if not v.shape}
        body = parse(step.expr, types, step.scalars, _zero_dim_types(types, zero_dim))
        dtype = step.dtype or body.dtype
        stride = contiguous(shape) if step.stride is None else step.stride
        self.emit_pointwise(step, body, accesses, shape, stride, dtype)

    def emit_pointwise(
        self,
        step: Step,
        body: Scalar,
        accesses: Mapping[str, Access],
        shape: Shape,
        stride: Shape,
        dtype: str,
    ) -> None:
        # loops run in the order of the result's memory, so that it is written front to back
        order = tuple(sorted(range(len(shape)), key=lambda d: (-stride[d], d)))
        loops = tuple(shape[d] for d in order)
        dense = contiguous(loops)
        if any(n > 1 and stride[d] != s for d, n, s in zip(order, loops, dense, strict=True)):
            raise ValueError(
                f"{step.name}: a result of shape {shape} cannot have the strides {stride} (not"
                " dense)"
            )
        used = {n.value for n in body.walk() if n.op == "load"}
        loads = {arg: a.expand(shape).permute(order) for arg, a in accesses.items() if arg in used}
        for n in body.walk():
            if n.op == "index":
                if not -len(shape) <= n.value < len(shape):
                    raise ValueError(
                        f"{step.name}: index({n.value}) is out of range for the shape {shape}"
                    )
                d = n.value % len(shape)
                along = tuple(int(o == d) for o in order)
                loads[f"index({n.value})"] = Access(INDEX, loops, along)
        self.define(step.name, shape, stride, dtype)
        store = Access(step.name, loops, dense)
        self.nodes.append(
            Pointwise(step.name, dtype, loops, loads, store, _origin(step), body=body)
        )

    # -- reductions

    def reduction(self, step: ReductionStep) -> None:
        source = self.value(step.input, step.name)
        rank = len(source.shape)
        if step.kind not in REDUCTIONS:
            raise ValueError(
                f"{step.name}: unknown reduction '{step.kind}'; known: {', '.join(REDUCTIONS)}"
            )
        dims = tuple(range(rank)) if step.dims is None else step.dims
        if any(not -max(rank, 1) <= d < max(rank, 1) for d in dims):
            raise ValueError(
                f"{step.name}: the dims {dims} are out of range for the shape {source.shape}"
            )
        where = {d % rank for d in dims} if rank else set()
        reduced = tuple(d in where for d in range(rank))
        kept = tuple(n for n, r in zip(source.shape, reduced, strict=True) if not r)
        shape = (
            tuple(1 if r else n for n, r in zip(source.shape, reduced, strict=True))
            if step.keepdim
            else kept
        )
        given = self.dtype(source)
        dtype = step.dtype or _reduction_type(step.kind, given)
        if step.kind == "mean" and CATEGORY[dtype] < FLOATING:
            raise TypeError(
                "mean(): could not infer output dtype. Input dtype must be floating point, got"
                f" {given}"
            )
        count = 1
        for n, r in zip(source.shape, reduced, strict=True):
            count *= n if r else 1
        if count <= 1:
            self.trivial_reduction(step, source, shape, dtype, count)
            return
        steps = iter(contiguous(kept))
        stride = tuple(0 if r else next(steps) for r in reduced)
        self.define(step.name, shape, contiguous(shape), dtype)
        self.nodes.append(
            Reduction(
                step.name,
                dtype,
                source.shape,
                {"self": source},
                Access(step.name, source.shape, stride),
                _origin(step),
                kind=step.kind,
                reduced=reduced,
                input_dtype=given,
            )  # fmt: skip
        )

    def trivial_reduction(
        self, step: ReductionStep, source: Access, shape: Shape, dtype: str, count: int
    ) -> None:
        """Over one element or none a reduction is pointwise: the element, or the neutral one."""
        if count == 0:
            neutral: dict[str, Number] = {
                "sum": 0, "prod": 1, "mean": float("nan"), "any": False, "all": True
            }  # fmt: skip
            if step.kind not in neutral:
                raise ValueError(
                    f"{step.kind}(): Expected reduction dim to be specified for input.numel() == 0,"
                    f" with a non-zero size; got the shape {source.shape} (step '{step.name}')"
                )
            body, accesses = cast(number(neutral[step.kind]), dtype), {}
        else:
            given = Scalar("load", (), self.dtype(source), "self")
            body = (
                cast(number(0), dtype) if step.kind in ("argmax", "argmin") else cast(given, dtype)
            )
            keep = [d for d, n in enumerate(source.shape) if n != 1]
            squeezed = source.permute(tuple(keep))
            stride = reshape_strides(squeezed.shape, squeezed.stride, shape)
            assert stride is not None
            accesses = {"self": Access(source.buffer, shape, stride, source.offset)}
        self.emit_pointwise(step, body, accesses, shape, contiguous(shape), dtype)

    # -- views and calls

    def view(self, step: ViewStep) -> None:
        base = self.value(step.input, step.name)
        args = step.args
        rank = len(base.shape)
        try:
            match step.kind:
                case "permute":
                    result = base.permute(tuple(d % rank for d in args))
                case "expand":
                    lead = len(args) - rank
                    target = tuple(
                        base.shape[d - lead] if n == -1 else n for d, n in enumerate(args)
                    )
                    if broadcast([base.shape, target], step.name) != target:
                        raise ValueError(
                            f"{step.name}: the shape {base.shape} does not expand to {target}"
                        )
                    result = base.expand(target)
                case "reshape":
                    result = self.reshape(step, base)
                case "slice":
                    result = _slice(base, *args)
                case "select":
                    d, at = args[0] % rank, args[1] % base.shape[args[0]]
                    rest = tuple(k for k in range(rank) if k != d)
                    moved = base.permute(rest)
                    result = Access(
                        base.buffer, moved.shape, moved.stride, base.offset + at * base.stride[d]
                    )
                case _:
                    raise ValueError(f"{step.name}: unknown view '{step.kind}'")
        except (IndexError, ZeroDivisionError):
            raise ValueError(
                f"{step.name}: {step.kind}{args} does not fit the shape {base.shape}"
            ) from None
        self.values[step.name] = result

    def reshape(self, step: ViewStep, base: Access) -> Access:
        target = step.args
        total, wanted = _numel(base.shape), _numel(target)
        if total != wanted:
            raise ValueError(
                f"shape '{list(target)}' is invalid for input of size {total} (step '{step.name}')"
            )
        stride = reshape_strides(base.shape, base.stride, target)
        if stride is not None:
            return Access(base.buffer, target, stride, base.offset)
        copy = PointwiseStep(
            name=f"{step.name}_copy", expr="self", inputs={"self": step.input}, origin=_origin(step)
        )
        self.pointwise(copy)
        return Access(copy.name, target, contiguous(target))

    def extern(self, step: ExternStep) -> None:
        loads = {str(i): self.value(v, step.name) for i, v in enumerate(step.inputs)}
        stride = contiguous(step.shape) if step.stride is None else step.stride
        self.define(step.name, step.shape, stride, step.dtype)
        self.nodes.append(
            ExternKernel(
                step.name,
                step.dtype,
                step.shape,
                loads,
                Access(step.name, step.shape, stride),
                _origin(step),
                function=step.function,
            )  # fmt: skip
        )


def _origin(step: Step) -> tuple[str, ...]:
    return step.origin or (step.name,)


def _numel(shape: Shape) -> int:
    result = 1
    for n in shape:
        result *= n
    return result


def _slice(base: Access, dim: int, start: int, stop: int, step: int = 1) -> Access:
    d = range(len(base.shape))[dim]
    kept = range(base.shape[d])[start:stop:step]
    shape = (*base.shape[:d], len(kept), *base.shape[d + 1 :])
    stride = (*base.stride[:d], base.stride[d] * step, *base.stride[d + 1 :])
    offset = base.offset + (base.stride[d] * kept.start if len(kept) else 0)
    return Access(base.buffer, shape, stride, offset)


def _reduction_type(kind: str, given: str) -> str:
    if kind in ("sum", "prod"):
        return sum_type(given)
    return {"any": "bool", "all": "bool", "argmax": "int64", "argmin": "int64"}.get(kind, given)


def _zero_dim_types(types: Mapping[str, str], zero_dim: set[str]) -> dict[str, str]:
    """PyTorch lets a 0-d operand change the category of a result, not its width: such operands are
    converted first, to the type found here."""
    others = [t for arg, t in types.items() if arg not in zero_dim]
    if not zero_dim or not others:
        return {}
    common = others[0]
    for t in others[1:]:
        common = promote(common, t)
    return {
        a: common for a in zero_dim if CATEGORY[types[a]] == CATEGORY[common] and types[a] != common
    }

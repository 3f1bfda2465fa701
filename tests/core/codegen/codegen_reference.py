"""What a Program means: NumPy on whole arrays in float64, with no index maps and no fusion."""

from __future__ import annotations

import numpy as np
from scipy import special

from torchlab._core.codegen import ExternStep, PointwiseStep, Program, ReductionStep, ViewStep

REDUCE = {
    "sum": np.sum, "prod": np.prod, "max": np.max, "min": np.min, "mean": np.mean, "any": np.any,
    "all": np.all, "argmax": np.argmax, "argmin": np.argmin,
}  # fmt: skip


def scope(shape: tuple[int, ...]) -> dict[str, object]:
    """The functions that expressions may call."""
    names: dict[str, object] = {
        name: getattr(np, name)
        for name in ("exp", "log", "tanh", "sqrt", "abs", "sign", "maximum", "minimum", "where")
    }
    names.update(
        sigmoid=special.expit, rsqrt=lambda x: 1 / np.sqrt(x),
        index=lambda d: np.indices(shape)[d] if shape else np.zeros(()),
    )  # fmt: skip
    return names


def interpret(program: Program, arrays: list[np.ndarray]) -> list[np.ndarray]:
    """The outputs of `program`, floats as float64."""
    values: dict[str, np.ndarray] = {}
    for buffer, array in zip(program.inputs, arrays, strict=True):
        values[buffer.name] = array.astype(np.float64) if array.dtype.kind not in "biu" else array
    for step in program.steps:
        match step:
            case PointwiseStep():
                inputs = {k: values[v] for k, v in step.inputs.items()}
                shape = (
                    np.broadcast_shapes(*(v.shape for v in inputs.values()))
                    if inputs
                    else step.shape
                )
                with np.errstate(all="ignore"):
                    result = eval(step.expr, {**scope(shape), **step.scalars, **inputs})
                values[step.name] = np.broadcast_to(np.asarray(result), step.shape or shape)
            case ReductionStep():
                x = values[step.input]
                dims = (
                    tuple(range(x.ndim))
                    if step.dims is None
                    else tuple(d % x.ndim for d in step.dims if x.ndim)
                )
                with np.errstate(all="ignore"):
                    if step.kind.startswith("arg"):
                        kept = [d for d in range(x.ndim) if d not in dims]
                        rows = x.transpose([*kept, *dims]).reshape(
                            [x.shape[d] for d in kept] + [-1]
                        )
                        result = REDUCE[step.kind](rows, -1)
                        if step.keepdim:
                            result = np.expand_dims(result, dims)
                    else:
                        result = REDUCE[step.kind](x, axis=dims, keepdims=step.keepdim)
                values[step.name] = np.asarray(result)
            case ViewStep(kind="permute"):
                values[step.name] = values[step.input].transpose(step.args)
            case ViewStep(kind="expand"):
                values[step.name] = np.broadcast_to(values[step.input], step.args)
            case ViewStep(kind="reshape"):
                values[step.name] = values[step.input].reshape(step.args)
            case ViewStep(kind="slice"):
                dim, start, stop, hop = (*step.args, 1)[:4]
                where = [slice(None)] * values[step.input].ndim
                where[dim] = slice(start, stop, hop)
                values[step.name] = values[step.input][tuple(where)]
            case ViewStep(kind="select"):
                values[step.name] = np.take(values[step.input], step.args[1], step.args[0])
            case ExternStep():
                values[step.name] = step.function(*(values[v] for v in step.inputs))
    return [values[name] for name in program.outputs]

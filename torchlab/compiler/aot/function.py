"""A compiled forward and backward as one step of the tape."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from torchlab._core.dispatch.compute import wrap
from torchlab._core.dispatch.modes import grad_enabled
from torchlab._core.tape import (
    RELEASED,
    MultiNode,
    Out,
    edge_of,
    next_seq,
    save,
    save_output,
    unpack,
)
from torchlab._core.tensor import Tensor
from torchlab.compiler.aot.partition import Parts

_Run = Callable[..., list[np.ndarray]]


class CompiledFunctionBackward(MultiNode):
    """The backward of a compiled segment: one call of a compiled graph."""

    __slots__ = ("plan", "s_tensors", "s_values")
    saves = ("s_tensors", "s_values")
    s_tensors: Any
    s_values: Any
    plan: _Plan

    def apply(self, grads: Any) -> Any:
        """The gradients of the inputs, from those of the outputs (None: zero)."""
        if self.s_tensors is RELEASED:
            unpack(RELEASED, self)
        if grad_enabled():
            raise RuntimeError(
                "torch.compile with aot_autograd does not currently support double backward."
                " Compile with backend='aot_eager', or run the function eagerly, where the gradient"
                " itself is differentiated."
            )
        return self.plan.backward(self, grads)


class _Plan:
    """What all calls of one segment share."""

    def __init__(
        self, parts: Parts, forward: _Run, backward: _Run, joint: Any, shapes: list[Any]
    ) -> None:
        self.parts, self.forward, self.run_backward = parts, forward, backward
        self.count = len(joint.outputs)
        self.differentiable = joint.differentiable
        self.tangents = shapes  # (shape, strides in bytes, dtype) of each tangent
        self.tensors = [(k, i) for k, i in parts.saved if k != "value"]

    def call(self, tensors: Sequence[Tensor]) -> list[Tensor]:
        arrays = self.forward(*[t._a for t in tensors])
        outputs = [wrap(a) for a in arrays[: self.count]]
        node = object.__new__(CompiledFunctionBackward)
        node._hooks = None
        node._seq = next_seq()
        node.next = tuple([edge_of(tensors[i]) for i in self.parts.wanted])
        node.plan = self
        node.s_values = arrays[self.count :]
        node._outs = []
        for nr, i in enumerate(self.differentiable):
            t = outputs[i]
            node._outs.append((t._a.shape, t._k))
            t._e = Out(node, nr)
        numbers = {i: nr for nr, i in enumerate(self.differentiable)}
        node.s_tensors = [
            save(tensors[i])
            if kind == "input"
            else save_output(node, outputs[i], numbers[i])
            if i in numbers
            else save(outputs[i])
            for kind, i in self.tensors
        ]
        return outputs

    def backward(self, node: CompiledFunctionBackward, grads: Any) -> Any:
        tensors = iter(unpack(node.s_tensors, node))
        values = iter(node.s_values)
        arrays = [
            next(values) if kind == "value" else next(tensors)._a for kind, _ in self.parts.saved
        ]
        for g, (shape, strides, dtype) in zip(grads, self.tangents, strict=True):
            if g is None:
                a = np.zeros(shape, dtype)
            else:
                a = g._a
            if a.strides != strides:
                fresh = (
                    np.lib.stride_tricks.as_strided(np.empty(a.size, dtype), shape, strides)
                    if a.size
                    else np.empty(shape, dtype)
                )
                fresh[...] = a
                a = fresh
            arrays.append(a)
        arrays += [t._a for t in self.parts.extra]
        return tuple(
            [
                wrap(a) if e is not None else None
                for a, e in zip(self.run_backward(*arrays), node.next, strict=True)
            ]
        )


def differentiable(
    parts: Parts, forward: _Run, backward: _Run, joint: Any, shapes: list[Any]
) -> Callable[[Sequence[Tensor]], list[Tensor]]:
    """A function of tensors whose results have one node of the tape, CompiledFunctionBackward."""
    return _Plan(parts, forward, backward, joint, shapes).call

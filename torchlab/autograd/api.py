"""`backward` and `grad`: the ways into the engine.

Source: https://docs.pytorch.org/docs/2.13/autograd.html
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from torchlab._core.dispatch.compute import wrap
from torchlab._core.dispatch.modes import SLOW
from torchlab._core.dispatch.registry import aten
from torchlab._core.formats import preserve_format
from torchlab._core.tape import TLS, AccumulateGrad, edge_of
from torchlab._core.tensor import Tensor
from torchlab.autograd import engine


def _tuple(x: Any) -> tuple[Any, ...]:
    return (x,) if isinstance(x, Tensor) or x is None else tuple(x)


def _roots(
    tensors: Sequence[Tensor], grads: Sequence[Any], create: bool
) -> list[tuple[Any, Tensor]]:
    roots = []
    if len(grads) != len(tensors):
        raise RuntimeError(f"got {len(tensors)} tensors and {len(grads)} gradients")
    for i, (t, g) in enumerate(zip(tensors, grads, strict=True)):
        e = edge_of(t)
        if e is None:
            raise RuntimeError(
                f"element {i} of tensors does not require grad and does not have a grad_fn. Was it"
                " computed under no_grad, detached, or from tensors without requires_grad?"
            )
        if g is None:
            if t._a.size != 1:
                raise RuntimeError(
                    "grad can be implicitly created only for scalar outputs, not for shape"
                    f" {list(t.shape)}"
                )
            if not t._k.dtype.is_floating_point:
                raise RuntimeError(
                    "grad can be implicitly created only for real scalar outputs but got"
                    f" {t._k.dtype}"
                )
            g = aten.ones_like(t, memory_format=preserve_format)
        elif g._a.shape != t._a.shape:
            raise RuntimeError(
                f"Mismatch in shape: grad_output[{i}] has a shape of {g.shape} and output[{i}] has"
                f" a shape of {t.shape}."
            )
        elif g._k.dtype.is_complex != t._k.dtype.is_complex:
            raise RuntimeError(
                "For complex Tensors, both grad_output and output are required to have the same"
                f" dtype. Mismatch in dtype: grad_output[{i}] has a dtype of {g.dtype} and"
                f" output[{i}] has a dtype of {t.dtype}."
            )
        roots.append((e, g if create or g._e is None else aten.detach(g)))
    return roots


def backward(
    tensors: Any,
    grad_tensors: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    grad_variables: Any = None,
    inputs: Any = None,
) -> None:
    """Add to `.grad` of every leaf (or of `inputs`) the gradient of the tensors, weighted by
    `grad_tensors`, which scalars may leave out."""
    tensors = _tuple(tensors)
    grads = _tuple(grad_tensors) if grad_tensors is not None else (None,) * len(tensors)
    keep = create_graph if retain_graph is None else retain_graph
    roots = _roots(tensors, grads, create_graph)
    if inputs is None:
        engine.run(roots, keep=keep, create=create_graph)
        return
    inputs = _tuple(inputs)
    if not inputs:
        raise RuntimeError("'inputs' argument to backward() cannot be empty.")
    edges = _edges(inputs, "backward")
    found = engine.run(roots, keep=keep, create=create_graph, inputs=edges)
    for i, t in enumerate(inputs):
        if type(edges[i]) is not AccumulateGrad and found[i] is not None:
            t._g = found[i] if t._g is None else aten.add(t._g, found[i])


def _edges(inputs: Sequence[Tensor], what: str) -> list[Any]:
    edges = []
    for t in inputs:
        e = edge_of(t)
        if e is None:
            raise RuntimeError("One of the differentiated Tensors does not require grad")
        edges.append(e)
    return edges


def grad(
    outputs: Any,
    inputs: Any,
    grad_outputs: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    only_inputs: bool = True,
    allow_unused: bool | None = None,
    is_grads_batched: bool = False,
    materialize_grads: bool = False,
) -> tuple[Tensor, ...]:
    """The gradients of `outputs` with respect to `inputs`; `.grad` stays as it is."""
    if materialize_grads and allow_unused is False:
        raise ValueError(
            "Expected allow_unused to be True or not passed when materialize_grads=True, but got:"
            " allow_unused=False."
        )
    if allow_unused is None:
        allow_unused = materialize_grads
    outputs, inputs = _tuple(outputs), _tuple(inputs)
    grads = _tuple(grad_outputs) if grad_outputs is not None else (None,) * len(outputs)
    keep = create_graph if retain_graph is None else retain_graph
    if is_grads_batched:
        rows = [
            grad(
                outputs,
                inputs,
                tuple(None if g is None else g[i] for g in grads),
                True,
                create_graph,
                True,
                allow_unused,
            )
            for i in range(len(next(g for g in grads if g is not None)))
        ]
        return tuple(None if c[0] is None else aten.stack(list(c)) for c in zip(*rows, strict=True))  # type: ignore[misc]
    roots = _roots(outputs, grads, create_graph)
    edges = _edges(inputs, "grad")
    found = engine.run(roots, keep=keep, create=create_graph, inputs=edges, accumulate=False)
    result = []
    for i, t in enumerate(inputs):
        g = found[i]
        if g is None:
            if not allow_unused:
                raise RuntimeError(
                    "One of the differentiated Tensors appears to not have been used in the graph."
                    f" Set allow_unused=True if this is the desired behavior. (input {i}, shape"
                    f" {list(t.shape)})"
                )
            if materialize_grads:
                g = aten.zeros_like(t)
        result.append(g)
    return tuple(result)  # type: ignore[arg-type]


def _one(t: Tensor) -> Tensor:
    return wrap(np.ones(t._a.shape, t._a.dtype))


def tensor_backward(
    self: Tensor,
    gradient: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    inputs: Any = None,
) -> None:
    """The gradient of this tensor with respect to the leaves of its graph."""
    if (
        inputs is None
        and not create_graph
        and type(self) is Tensor
        and not engine.LISTENING
        and not (SLOW and TLS.dispatch_modes)
    ):
        e = self._e
        if e is not None and self._v is None:
            k = self._k
            if gradient is None:
                if self._a.size == 1 and k.fp:
                    engine.run_plain(e, _one(self), bool(retain_graph))
                    return
            elif (
                type(gradient) is Tensor
                and gradient._k is k
                and gradient._a.shape == self._a.shape
                and gradient._e is None
            ):
                engine.run_plain(e, gradient, bool(retain_graph))
                return
    backward((self,), (gradient,), retain_graph, create_graph, inputs=inputs)


__all__ = ["backward", "grad", "tensor_backward"]

"""`backward` and `grad`: the ways into the engine.

Source: https://docs.pytorch.org/docs/2.13/autograd.html
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from torchlab._core.dispatch import batches, derived, watching
from torchlab._core.dispatch.compute import wrap
from torchlab._core.dispatch.modes import SLOW
from torchlab._core.dispatch.registry import aten
from torchlab._core.dispatch.written import IN_FULL
from torchlab._core.formats import preserve_format
from torchlab._core.kind import Kind
from torchlab._core.settings import warn_once
from torchlab._core.tape import (
    ANOMALY,
    TLS,
    AccumulateGrad,
    GradientEdge,
    Node,
    Out,
    edge_of,
    nobody,
    node_of_leaf,
)
from torchlab._core.tensor import Tensor
from torchlab.autograd import engine


def _tuple(x: Any) -> tuple[Any, ...]:
    return (x,) if isinstance(x, (Tensor, GradientEdge)) or x is None else tuple(x)


def _edge(x: Any) -> Any:
    """The tape's edge of a tensor or of a GradientEdge."""
    if type(x) is not GradientEdge:
        e = edge_of(x)
        if type(e) is AccumulateGrad:
            return None if e.leaf is nobody else node_of_leaf(e)
        return e
    return x.node if x.node._outs is None else Out(x.node, x.output_nr)


def _facts(x: Any) -> tuple[Any, Kind]:
    """The shape and kind of what the gradient belongs to."""
    if type(x) is not GradientEdge:
        return x._a.shape, x._k
    node: Any = x.node
    if type(node) is AccumulateGrad:
        return node.expects(node.variable)
    return (node.shape, node.k) if node._outs is None else node._outs[x.output_nr]


def _roots(outputs: Sequence[Any], grads: Sequence[Any]) -> list[tuple[Any, Tensor]]:
    if len(grads) != len(outputs):
        raise RuntimeError(f"got {len(outputs)} tensors and {len(grads)} gradients")
    edges = [_edge(t) for t in outputs]
    made = [_made(i, t, g, edges[i]) for i, (t, g) in enumerate(zip(outputs, grads, strict=True))]
    for i, e in enumerate(edges):
        if e is None:
            raise RuntimeError(
                f"element {i} of tensors does not require grad and does not have a grad_fn. Was it"
                " computed under no_grad, detached, or from tensors without requires_grad?"
            )
    return list(zip(edges, made, strict=True))


def _made(i: int, output: Any, g: Any, edge: Any) -> Any:
    """The gradient to start with at output number i, checked; 1 for a scalar."""
    shape, k = _facts(output)
    if g is None:
        if edge is None:
            return None
        n = 1
        for x in shape:
            n *= x
        if n != 1:
            raise RuntimeError(
                "grad can be implicitly created only for scalar outputs, not for shape"
                f" {list(shape)}"
            )
        if not k.dtype.is_floating_point:
            raise RuntimeError(
                f"grad can be implicitly created only for real scalar outputs but got {k.dtype}"
            )
        if type(output) is GradientEdge:
            return aten.ones(tuple(shape), dtype=k.dtype, device=k.device)
        return aten.ones_like(output, memory_format=preserve_format)
    if not isinstance(g, Tensor):
        raise TypeError(f"gradients can be either Tensors or None, but got {type(g).__name__}")
    if g._a.shape != tuple(shape):
        raise RuntimeError(
            f"Mismatch in shape: grad_output[{i}] has a shape of {g.shape} and output[{i}] has"
            f" a shape of {list(shape)}."
        )
    if g._k.dtype.is_complex != k.dtype.is_complex:
        raise RuntimeError(
            "For complex Tensors, both grad_output and output are required to have the same"
            f" dtype. Mismatch in dtype: grad_output[{i}] has a dtype of {g.dtype} and"
            f" output[{i}] has a dtype of {k.dtype}."
        )
    return g


def backward(
    tensors: Any,
    grad_tensors: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    grad_variables: Any = None,
    inputs: Any = None,
) -> None:
    """Add to `.grad` of every leaf (or of `inputs`) the gradient of the tensors, weighted by
    `grad_tensors`, which scalars may leave out. Tensors may be given as `GradientEdge`s."""
    if grad_variables is not None:
        warnings.warn(
            "`grad_variables` is deprecated. Use `grad_tensors` instead.",
            FutureWarning,
            stacklevel=2,
        )
        if grad_tensors is not None:
            raise RuntimeError(
                "`grad_tensors` and `grad_variables` (deprecated) arguments both passed to"
                " `backward()`. Please only use `grad_tensors`."
            )
        grad_tensors = grad_variables
    tensors = _tuple(tensors)
    grads = _tuple(grad_tensors) if grad_tensors is not None else (None,) * len(tensors)
    wanted = None
    if inputs is not None:
        wanted = _tuple(inputs)
        if not wanted:
            raise RuntimeError("`inputs` argument to `backward()` cannot be empty.")
    keep = create_graph if retain_graph is None else retain_graph
    if create_graph:
        warn_once(
            "backward",
            "Using backward() with create_graph=True will create a reference cycle between the "
            "parameter and its gradient which can cause a memory leak. We recommend using "
            "autograd.grad when creating the graph to avoid this. If you have to use this function,"
            " make sure to reset the .grad fields of your parameters to None after use to break the"
            " cycle and avoid the leak.",
        )
    roots = _roots(tensors, grads)
    if wanted is None:
        engine.run(roots, keep=keep, create=create_graph)
        return
    for t in wanted:
        if isinstance(t, Tensor):
            t.retain_grad()
    engine.run(roots, keep=keep, create=create_graph, inputs=_edges(wanted))


def _edges(inputs: Sequence[Any]) -> list[Any]:
    edges = []
    for t in inputs:
        e = _edge(t)
        if e is None and isinstance(t, Tensor) and t.requires_grad:
            e = Node()  # a view that was made under no_grad: no path leads to it
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
) -> Any:
    """The gradients of `outputs` with respect to `inputs`; `.grad` stays as it is.

    outputs, inputs: a tensor or `GradientEdge`, or a sequence of them; the result is a tuple. For a
    dictionary of inputs it is a dictionary.
    is_grads_batched: the first dimension of every `grad_outputs` counts gradients; the results have
    that dimension, too. The graph is walked once, on all of them together, as vmap does.
    """
    if materialize_grads and allow_unused is False:
        raise ValueError(
            "Expected allow_unused to be True or not passed when materialize_grads=True, but got:"
            " allow_unused=False."
        )
    if allow_unused is None:
        allow_unused = materialize_grads
    if not only_inputs:
        warnings.warn(
            "only_inputs argument is deprecated and is ignored now (defaults to True). To"
            " accumulate gradient for other parts of the graph, please use"
            " torch.autograd.backward.",
            FutureWarning,
            stacklevel=2,
        )
    names = None
    if isinstance(inputs, Mapping):
        names, inputs = tuple(inputs), tuple(inputs.values())
    outputs, inputs = _tuple(outputs), _tuple(inputs)
    if not inputs:
        raise RuntimeError("`inputs` argument to `grad()` cannot be empty.")
    grads = _tuple(grad_outputs) if grad_outputs is not None else (None,) * len(outputs)
    keep = create_graph if retain_graph is None else retain_graph
    if is_grads_batched:
        found = _batched(outputs, inputs, grads, keep, create_graph, allow_unused)
    else:
        roots = _roots(outputs, grads)
        edges = _edges(inputs)
        ran = engine.run(roots, keep=keep, create=create_graph, inputs=edges, accumulating=False)
        found = [ran[i] for i in range(len(inputs))]
    for i, (t, g) in enumerate(zip(inputs, found, strict=True)):
        if g is None:
            if not allow_unused:
                raise RuntimeError(
                    f"The differentiated Tensor at index {i} appears to not have been used in the"
                    " graph. Set allow_unused=True if this is the desired behavior."
                )
            if materialize_grads:
                if type(t) is GradientEdge:
                    raise RuntimeError(
                        "materialize_grads cannot be used when the given input is a GradientEdge"
                    )
                found[i] = aten.zeros_like(t, requires_grad=create_graph)
    return tuple(found) if names is None else dict(zip(names, found, strict=True))


derived.grad.append(grad)


def _batched(
    outputs: Any, inputs: Any, grads: Any, keep: bool, create: bool, allow_unused: bool
) -> list[Any]:
    sizes = {len(g) for g in grads if g is not None}
    if len(sizes) != 1:
        raise RuntimeError(
            "is_grads_batched: every grad_outputs must have the same number of gradients in its"
            f" first dimension, got {sorted(sizes)}"
        )
    (n,) = sizes
    for i, (g, output) in enumerate(zip(grads, outputs, strict=False)):
        shape = tuple(_facts(output)[0])
        if g is not None and g._a.shape[1:] != shape:
            raise RuntimeError(
                "If `is_grads_batched=True`, we interpret the first dimension of each grad_output"
                " as the batch dimension. The sizes of the remaining dimensions are expected to"
                f" match the shape of corresponding output, but grad_output[{i}] has a shape of"
                f" {list(g._a.shape[1:])} and output[{i}] has a shape of {list(shape)}."
            )
    if n == 0:
        raise RuntimeError("is_grads_batched: there must be at least one gradient, got 0")
    level = batches.enter(n, "error")
    try:
        given = tuple(None if g is None else batches.batched(g, 0, level) for g in grads)
        found = grad(outputs, inputs, given, keep, create, True, allow_unused)
        return [None if g is None else batches.whole(g, n, level) for g in found]
    finally:
        batches.leave()


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
        and not ANOMALY
        and not (SLOW and TLS.dispatch_modes)
    ):
        e = self._e
        if e is not None and self._v is None:
            k = self._k
            if gradient is None:
                if self._a.size == 1 and k.fp:
                    engine.run_plain(e, _one(self), retain_graph)
                    return
            elif (
                type(gradient) is Tensor
                and gradient._k is k
                and gradient._a.shape == self._a.shape
                and gradient._e is None
            ):
                engine.run_plain(e, gradient, retain_graph)
                return
    backward((self,), (gradient,), retain_graph, create_graph, inputs=inputs)


watching.watch(grad, layout=IN_FULL)

__all__ = ["backward", "grad", "tensor_backward"]

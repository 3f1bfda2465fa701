"""Hooks on a module's backward, by identity steps on the tape at its inputs and outputs.

The step at the outputs sees the gradients that arrive first, the one at the inputs those that
leave last; between them lies whatever forward recorded.
"""

from __future__ import annotations

import functools
import warnings
from typing import Any

from torchlab._core.settings import warn_user
from torchlab._core.tape import NOGRAD, TLS, Out, edge_of
from torchlab._core.tensor import Tensor
from torchlab.autograd.function import Function


class BackwardHookFunction(Function):
    """Passes tensors and gradients through; its node carries the hooks."""

    @staticmethod
    def forward(ctx: Any, *tensors: Any) -> Any:
        ctx.set_materialize_grads(False)
        ctx.mark_non_differentiable(*[t for t in tensors if not t.requires_grad])
        return tensors

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        return grads


class BackwardHooks:
    """The backward hooks of one call of a module: `full(module, grad_input, grad_output)` and
    `pre(module, grad_output)`."""

    def __init__(self, module: Any, full: list[Any], pre: list[Any]) -> None:
        self.module = module
        self.full = full
        self.pre = pre
        self.grad_outputs: Any = None
        self.inputs: list[int] | None = None  # positions of tensors among the arguments
        self.count = -1
        self.outputs: list[int] | None = None
        self.returned = -1

    def watch_inputs(self, args: tuple[Any, ...]) -> tuple[Any, ...]:
        """The arguments, those that want gradients behind the identity step."""

        def on_input_grads(grad_input: Any, _: Any) -> Any:
            if self.grad_outputs is None:  # the gradient did not come through the outputs
                return None
            return self._run_full(grad_input)

        new, self.inputs = _through(args, lambda node: node.register_hook(on_input_grads))
        self.count = len(args)
        return new

    def watch_outputs(self, result: Any) -> Any:
        """The result of forward behind the identity step."""
        single = not isinstance(result, tuple)
        if single and not isinstance(result, Tensor):
            warn_user(
                "For backward hooks to be called, module output should be a Tensor or a tuple of "
                f"Tensors but received {type(result)}"
            )

        def on_output_grads(grads: Any) -> Any:
            self.grad_outputs = _spread(grads, self.outputs, self.returned)
            for hook in self.pre:
                r = hook(self.module, self.grad_outputs)
                if r is not None:
                    self.grad_outputs = _as_tuple(
                        r, len(self.grad_outputs), "Backward pre hook", "grad_output"
                    )
            new = tuple(self.grad_outputs[i] for i in self.outputs or ())
            if self.inputs is None and self.full:  # no input wants a gradient: this is the end
                self._run_full_without_inputs()
            return new

        results = (result,) if single else result
        new, self.outputs = _through(results, lambda node: node.register_prehook(on_output_grads))
        self.returned = len(results)
        return new[0] if single else new

    def _run_full(self, grads: Any) -> Any:
        grad_input = _spread(grads, self.inputs, self.count)
        for hook in self.full:
            r = hook(self.module, grad_input, self.grad_outputs)
            if r is not None:
                grad_input = _as_tuple(r, len(grad_input), "Backward hook", "grad_input")
        self.grad_outputs = None
        return tuple(grad_input[i] for i in self.inputs or ())

    def _run_full_without_inputs(self) -> None:
        given = (None,) * max(self.count, 0)
        warn_user(
            "Full backward hook is firing when gradients are computed with respect to module "
            f"outputs since no inputs require gradients (module {type(self.module).__name__})."
        )
        for hook in self.full:
            r = hook(self.module, given, self.grad_outputs)
            if r is not None and not (isinstance(r, tuple) and all(x is None for x in r)):
                raise RuntimeError(
                    "Backward hook for Modules where no input requires gradient should always "
                    "return None or None for all gradients."
                )
        self.grad_outputs = None


def watch_last_node(module: Any, hooks: list[Any], args: Any, result: Any) -> None:
    """The old kind of hooks: on the node of the first tensor in the result, whatever it is."""
    first = result
    while not isinstance(first, Tensor):
        entries = first.values() if isinstance(first, dict) else first
        first = next((v for v in entries if isinstance(v, Tensor)), None)
        if first is None:
            first = next(iter(entries))
    node = first.grad_fn
    if node is None:
        return
    for hook in hooks:
        node.register_hook(functools.partial(hook, module))
    _warn_of_what_is_missed(args, result, node)


def _warn_of_what_is_missed(args: Any, result: Any, node: Any) -> None:
    outputs = result if isinstance(result, tuple) else (result,)
    inputs = args if isinstance(args, tuple) else (args,)
    if not all(isinstance(t, Tensor) for t in outputs):
        _deprecated(
            "non-full backward hooks on a Module that does not return a single Tensor or a tuple of"
            " Tensors",
            "some of the grad_output",
        )
    elif not all(isinstance(t, Tensor) for t in inputs):
        _deprecated(
            "non-full backward hooks on a Module that does not take as input a single Tensor or a"
            " tuple of Tensors",
            "some of the grad_input",
        )
    elif len(outputs) > 1 and any(t.grad_fn is not node for t in outputs):
        _deprecated(
            "a non-full backward hook when outputs are generated by different autograd Nodes",
            "some grad_output",
        )
    else:
        # A leaf has no node of its own, so that this is said of most modules at the begin.
        given = {id(t.grad_fn) for t in inputs}
        if given != {id(n) for n, _ in node.next_functions if n is not None}:
            _deprecated(
                "a non-full backward hook when the forward contains multiple autograd Nodes",
                "some grad_input",
            )


def _deprecated(using: str, missed: str) -> None:
    warnings.warn(
        f"Using {using} is deprecated and will be removed in future versions. This hook will be"
        f" missing {missed}. Please use register_full_backward_hook to get the documented"
        " behavior.",
        FutureWarning,
        stacklevel=5,
    )


def _through(values: tuple[Any, ...], attach: Any) -> tuple[tuple[Any, ...], list[int] | None]:
    """The values with all tensors behind one identity step, if any of them wants a gradient."""
    at = [i for i, v in enumerate(values) if isinstance(v, Tensor)]
    recording = not NOGRAD or TLS.grad
    if not recording or not any(edge_of(values[i]) is not None for i in at):
        return values, None
    passed = BackwardHookFunction.apply(*[values[i] for i in at])
    edges = [t._e for t in passed if t._e is not None]
    attach(edges[0].node if type(edges[0]) is Out else edges[0])
    new = list(values)
    for i, t in zip(at, passed, strict=True):
        new[i] = t
    return (tuple(new) if type(values) is tuple else type(values)(*new)), at


def _spread(grads: Any, at: list[int] | None, count: int) -> tuple[Any, ...]:
    """Gradients of the tensors in the places of all values; None for what is no tensor."""
    full = [None] * count
    for i, g in zip(at or (), grads, strict=False):
        full[i] = g
    return tuple(full)


def _as_tuple(r: Any, count: int, who: str, what: str) -> tuple[Any, ...]:
    r = r if isinstance(r, tuple) else (r,)
    if len(r) != count:
        raise RuntimeError(
            f"{who} returned an invalid number of {what}, got {len(r)}, but expected {count}"
        )
    return r

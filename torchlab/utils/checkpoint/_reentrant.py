"""Checkpointing by a custom Function: forward without a tape, backward runs it again with one.

Source: https://docs.pytorch.org/docs/2.13/checkpoint.html
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from typing import Any

from torchlab._core.tape import TLS
from torchlab._core.tensor import Tensor
from torchlab.autograd.api import backward as run_backward
from torchlab.autograd.function import Function
from torchlab.autograd.grad_mode import enable_grad
from torchlab.utils.checkpoint._state import Surroundings


def detach_variable(inputs: tuple[Any, ...]) -> tuple[Tensor, ...]:
    """The tensors of a tuple as leaves that want a gradient where the originals did; what is no
    tensor stays."""
    if not isinstance(inputs, tuple):
        raise RuntimeError(
            "Only tuple of tensors is supported. Got Unsupported input type: "
            f"{type(inputs).__name__}"
        )
    return tuple(
        x.detach().requires_grad_(x.requires_grad) if isinstance(x, Tensor) else x for x in inputs
    )


def check_backward_validity(inputs: Iterable[Any]) -> None:
    """Warn if no tensor among the inputs requires a gradient."""
    if not any(isinstance(x, Tensor) and x.requires_grad for x in inputs):
        warnings.warn(
            "None of the inputs have requires_grad=True. Gradients will be None", stacklevel=2
        )


class CheckpointFunction(Function):
    """`apply(function, preserve_rng_state, *args)`: what `checkpoint(..., use_reentrant=True)` puts
    on the tape."""

    @staticmethod
    def forward(ctx: Any, run_function: Any, preserve_rng_state: bool, *args: Any) -> Any:
        check_backward_validity(args)
        ctx.run_function = run_function
        ctx.surroundings = Surroundings(preserve_rng_state, *args)
        ctx.others = [None if isinstance(x, Tensor) else x for x in args]
        ctx.tensor_indices = [i for i, x in enumerate(args) if isinstance(x, Tensor)]
        ctx.save_for_backward(*(args[i] for i in ctx.tensor_indices))
        return run_function(*args)

    @staticmethod
    def backward(ctx: Any, *args: Any) -> Any:
        if not TLS.all_leaves:
            raise RuntimeError(
                "When use_reentrant=True, torch.utils.checkpoint is incompatible with .grad() or"
                " passing an `inputs` parameter to .backward(). To resolve this error, you can"
                " either set use_reentrant=False, or call .backward() without passing the `inputs`"
                " argument."
            )
        inputs = list(ctx.others)
        for i, t in zip(ctx.tensor_indices, ctx.saved_tensors, strict=True):
            inputs[i] = t
        leaves = detach_variable(tuple(inputs))
        with ctx.surroundings.restored(), enable_grad():
            outputs = ctx.run_function(*leaves)
        if isinstance(outputs, Tensor):
            outputs = (outputs,)
        pairs = [
            (o, g)
            for o, g in zip(outputs, args, strict=False)
            if isinstance(o, Tensor) and o.requires_grad
        ]
        if not pairs:
            raise RuntimeError(
                "none of output has requires_grad=True, this checkpoint() is not necessary"
            )
        run_backward([o for o, _ in pairs], [g for _, g in pairs])
        return (None, None, *(x.grad if isinstance(x, Tensor) else None for x in leaves))


__all__ = ["CheckpointFunction", "check_backward_validity", "detach_variable"]

"""`NestedIOFunction`: an operator of the user's whose arguments and results are nested.

    class Scale(NestedIOFunction):
        def forward_extended(self, pair, factor): …          # tuples, lists, dicts of tensors
        def backward_extended(self, *grads): …               # one for each argument, nested as it

    Scale()((x, y), 2.0)

Kept for programs written for it; `Function` is what to write today.

Source: https://docs.pytorch.org/docs/2.13/autograd.html
"""

from __future__ import annotations

from typing import Any

from torchlab._core import pytree
from torchlab._core.tensor import Tensor
from torchlab.autograd.function import Function


class _Flat(Function):
    """The operator on flat arguments, those of the owner's call."""

    @staticmethod
    def forward(ctx: Any, owner: NestedIOFunction, spec: Any, *flat: Any) -> Any:
        owner._ctx = ctx
        ctx.owner, ctx.inputs = owner, spec
        results, owner._out_spec = pytree.tree_flatten(
            owner.forward_extended(*spec.unflatten(flat))
        )
        ctx.outputs = owner._out_spec
        return tuple(results)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        owner = ctx.owner
        nested = ctx.outputs.unflatten(grads)
        single = ctx.outputs.is_leaf() or not isinstance(nested, tuple)
        found = owner.backward_extended(*((nested,) if single else nested))
        found = found if isinstance(found, tuple) else (found,)
        flat = pytree.tree_leaves(found)
        wanted = ctx.inputs.num_leaves
        if len(flat) != wanted:
            raise RuntimeError(
                f"{type(owner).__name__}.backward_extended returned {len(flat)} gradients for"
                f" {wanted} arguments; nested in the same way, None where there is none"
            )
        return (None, None, *flat)


class NestedIOFunction(Function):
    """Define `forward_extended` and `backward_extended`, and call an instance."""

    _ctx: Any = None
    _out_spec: Any = None
    _saved_spec: Any = None

    def __call__(self, *input: Any) -> Any:
        """Run it on nested arguments; the result is nested as `forward_extended` gave it."""
        flat, spec = pytree.tree_flatten(input)
        results = _Flat.apply(self, spec, *flat)
        return self._out_spec.unflatten(results)

    def forward_extended(self, *input: Any) -> Any:
        """What the operator computes."""
        raise NotImplementedError

    def backward_extended(self, *grad_output: Any) -> Any:
        """The gradients of the arguments, from those of the results."""
        raise NotImplementedError

    def save_for_backward(self, *args: Any) -> None:
        """Keep nested tensors; they come back as `saved_tensors`."""
        flat, self._saved_spec = pytree.tree_flatten(args)
        self._ctx.save_for_backward(*flat)

    @property
    def saved_tensors(self) -> Any:
        """What was kept."""
        return self._saved_spec.unflatten(self._ctx.saved_tensors)

    def mark_dirty(self, *args: Any, **kwargs: Any) -> None:
        """Say which arguments `forward_extended` has written to; they must be results, too."""
        self._ctx.mark_dirty(*_tensors(args), *_tensors(kwargs))

    def mark_non_differentiable(self, *args: Any, **kwargs: Any) -> None:
        """Say which results have no gradient."""
        self._ctx.mark_non_differentiable(*_tensors(args), *_tensors(kwargs))


def _tensors(values: Any) -> list[Tensor]:
    return [x for x in pytree.tree_leaves(values) if isinstance(x, Tensor)]


__all__ = ["NestedIOFunction"]

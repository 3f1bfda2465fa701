"""Hooks: what registering one returns, those on a module's backward, those that files leave out.

Source: https://docs.pytorch.org/docs/2.13/generated/torch.nn.Module.html
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from torchlab._core.tape import Out, edge_of
from torchlab._core.tensor import Tensor
from torchlab.nn._backward_hooks import BackwardHooks
from torchlab.nn._calls import RemovableHandle

__all__ = ["BackwardHook", "RemovableHandle", "unserializable_hook", "warn_if_has_hooks"]

F = TypeVar("F", bound=Callable[..., Any])


class BackwardHook(BackwardHooks):
    """The backward hooks of one call of a module, for code that calls its forward itself:

        hooks = BackwardHook(module, [after], [before])
        output = hooks.setup_output_hook(module.forward(*hooks.setup_input_hook(args)))

    `after(module, grad_input, grad_output)` runs once both are known, `before(module,
    grad_output)` when the gradient of the output is.
    """

    def __init__(
        self,
        module: Any,
        user_hooks: Sequence[Callable[..., Any]],
        user_pre_hooks: Sequence[Callable[..., Any]],
    ) -> None:
        super().__init__(module, list(user_hooks), list(user_pre_hooks))

    def setup_input_hook(self, args: tuple[Any, ...]) -> tuple[Any, ...]:
        """The arguments to call forward with."""
        return self.watch_inputs(args)

    def setup_output_hook(self, args: Any) -> Any:
        """What to return instead of what forward returned."""
        return self.watch_outputs(args)


def unserializable_hook(f: F) -> F:
    """Let nobody be warned that this hook on a tensor is not saved with it."""
    f.__torch_unserializable__ = True  # type: ignore[attr-defined]
    return f


def warn_if_has_hooks(tensor: Tensor) -> None:
    """UserWarning for each hook on a tensor that is lost when the tensor is saved."""
    edge: Any = edge_of(tensor)
    node, number = (edge.node, edge.nr) if type(edge) is Out else (edge, 0)
    hooks = getattr(node, "_hooks", None)
    if hooks is None:
        return
    for hook in (hooks.tensor.get(number) or {}).values():
        if not getattr(hook, "__torch_unserializable__", False):
            warnings.warn(
                f"backward hook {hook!r} on tensor will not be serialized.  If this is expected,"
                " you can decorate the function with @torch.utils.hooks.unserializable_hook to"
                " suppress this warning",
                stacklevel=2,
            )

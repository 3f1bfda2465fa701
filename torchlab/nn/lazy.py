"""What lazy modules share: they learn their sizes from their first input.

Source: https://docs.pytorch.org/docs/2.13/generated/torch.nn.modules.lazy.LazyModuleMixin.html
"""

from __future__ import annotations

import itertools
import warnings
from typing import Any

from torchlab._core.dispatch.registry import aten
from torchlab.autograd.grad_mode import no_grad
from torchlab.nn._state import _EXTRA, _has_extra, _persistent, _put, _write
from torchlab.nn.parameter import is_lazy


class LazyModuleMixin:
    """Put it in front of a module class: parameters and buffers that depend on the input's shape
    start as `UninitializedParameter` and `UninitializedBuffer`; before the first forward
    `initialize_parameters` gives them their shapes, and the module becomes one of class
    `cls_to_become`.

    A state_dict of uninitialised parameters may be saved and loaded; loading one of a ready module
    gives a lazy one its shapes.
    """

    cls_to_become: Any = None
    _parameters: dict[str, Any]
    _buffers: dict[str, Any]

    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._initialize_hook = self.register_forward_pre_hook(
            self._infer_parameters, with_kwargs=True
        )
        warnings.warn(
            "Lazy modules are a new feature under heavy development so changes to the API or "
            "functionality can happen at any moment.",
            stacklevel=3,
        )

    def initialize_parameters(self, *args: Any, **kwargs: Any) -> None:
        """Give all uninitialised parameters their shapes and values. args, kwargs: forward's."""
        raise NotImplementedError(
            f"initialize_parameters is not implemented for {type(self).__name__}"
        )

    def has_uninitialized_params(self) -> bool:
        """Whether a parameter or buffer of this module has no shape yet."""
        own = itertools.chain(self._parameters.values(), self._buffers.values())
        return any(is_lazy(t) for t in own)

    def _infer_parameters(self: Any, module: Any, args: Any, kwargs: Any = None) -> None:
        """Before the first forward: initialise, then be an ordinary module."""
        module.initialize_parameters(*args, **(kwargs or {}))
        if module.has_uninitialized_params():
            raise RuntimeError(
                f"module {type(self).__name__} has not been fully initialized: its "
                "initialize_parameters must give every parameter and buffer a shape"
            )
        module._initialize_hook.remove()
        del module._initialize_hook
        if module.cls_to_become is not None:
            module.__class__ = module.cls_to_become

    def _save_to_state_dict(self: Any, destination: Any, prefix: str, keep_vars: bool) -> None:
        for name, value in _persistent(self).items():
            if value is not None:
                whole = keep_vars or is_lazy(value)
                destination[prefix + name] = value if whole else aten.detach(value)
        if _has_extra(self, "get_extra_state"):
            destination[prefix + _EXTRA] = self.get_extra_state()

    def _load_one(
        self: Any, name: str, target: Any, key: str, value: Any, assign: bool, error_msgs: list[str]
    ) -> None:
        if is_lazy(target) and assign:
            _write(lambda: _put(self, name, target, value, True))
        elif not is_lazy(target):
            super()._load_one(name, target, key, value, assign, error_msgs)  # type: ignore[misc]
        elif not is_lazy(value):
            _write(lambda: _fill(target, value))


def _fill(target: Any, value: Any) -> None:
    with no_grad():
        target.materialize(value.shape)
        target.copy_(value)


__all__ = ["LazyModuleMixin"]

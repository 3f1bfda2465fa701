"""Modules as functions of their parameters, the way of before `torch.func.functional_call`.

Source: https://docs.pytorch.org/docs/2.13/func.migrating.html
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

from torchlab._core.dispatch.registry import aten
from torchlab._core.tensor import Tensor
from torchlab.nn.module import Module
from torchlab.nn.utils.functional_state import functional_call

__all__ = [
    "FunctionalModule",
    "FunctionalModuleWithBuffers",
    "combine_state_for_ensemble",
    "make_functional",
    "make_functional_with_buffers",
]


def _taken_apart(model: Module, detached: bool) -> tuple[Module, Any, Any, Any, Any]:
    """(a copy of the module without data, names and values of the parameters of another copy, those
    of its buffers)."""
    found = copy.deepcopy(model)
    params = tuple(p.detach() if detached else p for p in found.parameters())
    names = tuple(n for n, _ in found.named_parameters())
    buffer_names = tuple(n for n, _ in found.named_buffers())
    return copy.deepcopy(model).to("meta"), names, params, buffer_names, tuple(found.buffers())


class FunctionalModule(Module):
    """A module without parameters: `fmodel(params, *args)`."""

    def __init__(self, stateless_model: Module, param_names: tuple[str, ...]) -> None:
        super().__init__()
        self.stateless_model = stateless_model
        self.param_names = param_names

    def forward(  # type: ignore[override]
        self, params: Sequence[Tensor], *args: Any, **kwargs: Any
    ) -> Any:
        """What the module gives with these parameters."""
        state = dict(zip(self.param_names, params, strict=True))
        return functional_call(self.stateless_model, state, args, kwargs)


class FunctionalModuleWithBuffers(Module):
    """A module without parameters and buffers: `fmodel(params, buffers, *args)`."""

    def __init__(
        self,
        stateless_model: Module,
        param_names: tuple[str, ...],
        buffer_names: tuple[str, ...],
    ) -> None:
        super().__init__()
        self.stateless_model = stateless_model
        self.param_names, self.buffer_names = param_names, buffer_names

    def forward(  # type: ignore[override]
        self, params: Sequence[Tensor], buffers: Sequence[Tensor], *args: Any, **kwargs: Any
    ) -> Any:
        """What the module gives with these parameters and buffers."""
        names = (*self.param_names, *self.buffer_names)
        state = dict(zip(names, (*params, *buffers), strict=True))
        return functional_call(self.stateless_model, state, args, kwargs)


def make_functional(
    model: Module, disable_autograd_tracking: bool = False
) -> tuple[FunctionalModule, tuple[Any, ...]]:
    """(function of the parameters, parameters). RuntimeError if the module has buffers."""
    if any(True for _ in model.buffers()):
        raise RuntimeError(
            "make_functional(model): `model` has buffers. Please use"
            " make_functional_with_buffers(model) instead."
        )
    empty, names, params, _, _ = _taken_apart(model, disable_autograd_tracking)
    return FunctionalModule(empty, names), params


def make_functional_with_buffers(
    model: Module, disable_autograd_tracking: bool = False
) -> tuple[FunctionalModuleWithBuffers, tuple[Any, ...], tuple[Any, ...]]:
    """(function of parameters and buffers, parameters, buffers)."""
    empty, names, params, buffer_names, buffers = _taken_apart(model, disable_autograd_tracking)
    return FunctionalModuleWithBuffers(empty, names, buffer_names), params, buffers


def combine_state_for_ensemble(
    models: Sequence[Module],
) -> tuple[FunctionalModuleWithBuffers, tuple[Any, ...], tuple[Any, ...]]:
    """One function for modules of one kind, for `vmap`, with their parameters and buffers stacked.

    Raises:
        RuntimeError: there is none, or they differ in their class or in `training`.
    """
    if not models:
        raise RuntimeError("combine_state_for_ensemble: Expected at least one model, got 0.")
    if len({m.training for m in models}) > 1:
        raise RuntimeError(
            "combine_state_for_ensemble: Expected all models to have the same training/eval mode."
        )
    if len({type(m) for m in models}) > 1:
        raise RuntimeError(
            "combine_state_for_ensemble: Expected all models to be of the same class."
        )
    functions, params, buffers = zip(
        *(make_functional_with_buffers(m) for m in models), strict=True
    )
    stacked = [
        tuple(aten.stack(list(group)).detach() for group in zip(*each, strict=True))
        for each in (params, buffers)
    ]
    return functions[0], stacked[0], stacked[1]

"""Modules and function transforms: calling a module with other parameters, stacking the parameters
of several, and batch norms without running statistics.

Source: https://docs.pytorch.org/docs/2.13/generated/torch.func.functional_call.html,
https://docs.pytorch.org/docs/2.13/generated/torch.func.stack_module_state.html
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torchlab._core.dispatch.registry import aten
from torchlab._core.tensor import Tensor
from torchlab.nn.batchnorm import _BatchNorm
from torchlab.nn.module import Module
from torchlab.nn.utils.stateless import call_with


def functional_call(
    module: Module,
    parameter_and_buffer_dicts: dict[str, Tensor] | Sequence[dict[str, Tensor]],
    args: Any = None,
    kwargs: dict[str, Any] | None = None,
    *,
    tie_weights: bool = True,
    strict: bool = False,
) -> Any:
    """The module's result with the given tensors in the places of its parameters and buffers.

    parameter_and_buffer_dicts: a dictionary, or several without a common name. Buffers that the
    forward replaces are replaced in it, too. tie_weights: one name of a tied tensor stands for all
    of them. strict: all names must be given and no others. ValueError for other types, or a name
    that several dictionaries have.
    """
    if isinstance(parameter_and_buffer_dicts, dict):
        given = parameter_and_buffer_dicts
    elif isinstance(parameter_and_buffer_dicts, Sequence):
        if not all(isinstance(d, dict) for d in parameter_and_buffer_dicts):
            raise ValueError(
                "Expected all elements of parameter_and_buffer_dicts to be dictionaries"
            )
        given = {}
        for d in parameter_and_buffer_dicts:
            twice = sorted(given.keys() & d.keys())
            if twice:
                raise ValueError(
                    f"{', '.join(twice)} appear in multiple dictionaries; behavior of functional"
                    " call is ambiguous"
                )
            given.update(d)
    else:
        raise ValueError(
            "Expected parameter_and_buffer_dicts to be a dict, or a list/tuple of dicts, but got"
            f" {type(parameter_and_buffer_dicts)}"
        )
    return call_with(module, given, args, kwargs, tie_weights=tie_weights, strict=strict)


def stack_module_state(
    models: Sequence[Module] | Module,
) -> tuple[dict[str, Any], dict[str, Any]]:
    """(parameters, buffers) of several modules of one class by name, each stacked in a new first
    dimension: for `vmap` over `functional_call`.

    Stacked parameters are new leaves. RuntimeError for no models, or if their classes, training
    modes or requires_grad differ.
    """
    every: list[Module] = list(models)  # type: ignore[arg-type]
    if not every:
        raise RuntimeError("stack_module_state: Expected at least one model, got 0.")
    if len({m.training for m in every}) > 1:
        raise RuntimeError(
            "stack_module_state: Expected all models to have the same training/eval mode."
        )
    if any(type(m) is not type(every[0]) for m in every):
        raise RuntimeError("stack_module_state: Expected all models to be of the same class.")

    def stacked(tables: list[dict[str, Any]]) -> dict[str, Any]:
        return {k: _leaf([t[k] for t in tables]) for k in tables[0]}

    return (
        stacked([dict(m.named_parameters()) for m in every]),
        stacked([dict(m.named_buffers()) for m in every]),
    )


def _leaf(tensors: list[Tensor]) -> Tensor:
    wants = {t.requires_grad for t in tensors}
    if len(wants) > 1:
        raise RuntimeError(
            "Expected parameters/buffers of the models to have the same requires_grad; some want"
            " gradients and some do not"
        )
    made: Tensor = aten.stack([aten.detach(t) for t in tensors])
    return made.requires_grad_() if wants.pop() else made


def replace_all_batch_norm_modules_(root: Module) -> Module:
    """Let all batch norms in `root` (itself, too) use the statistics of the batch only, and keep
    none: what vmap cannot write to. In place; returns `root`."""
    for m in root.modules():
        if isinstance(m, _BatchNorm):
            m.running_mean = m.running_var = m.num_batches_tracked = None
            m.track_running_stats = False
    return root


__all__ = ["functional_call", "replace_all_batch_norm_modules_", "stack_module_state"]

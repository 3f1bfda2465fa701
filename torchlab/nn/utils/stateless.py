"""Calling a module with other parameters and buffers than its own.

Source: https://docs.pytorch.org/docs/2.13/generated/torch.func.functional_call.html
"""

from __future__ import annotations

import warnings
from typing import Any

from torchlab._core.tensor import Tensor
from torchlab.nn.module import Module


def _names_of(module: Module) -> dict[str, Any]:
    """Every parameter and buffer by every name it has."""
    return {
        **dict(module.named_parameters(remove_duplicate=False)),
        **dict(module.named_buffers(remove_duplicate=False)),
    }


def _with_ties(own: dict[str, Any], given: dict[str, Any]) -> dict[str, Any]:
    """The same tensors also under the other names of what they replace."""
    groups: dict[int, list[str]] = {}
    for name, t in own.items():
        groups.setdefault(id(t), []).append(name)
    full = dict(given)
    for names in groups.values():
        asked = [n for n in names if n in given]
        if not asked:
            continue
        first = given[asked[0]]
        if any(given[n] is not first for n in asked):
            raise ValueError(
                f"functional_call got multiple values for keys {sorted(asked)}, which are tied. "
                "Consider using tie_weights=False"
            )
        full.update(dict.fromkeys(names, first))
    return full


def _check_strict(module: Module, own: dict[str, Any], full: dict[str, Any]) -> None:
    problems = []
    for what, keys in (
        ("Unexpected", sorted(full.keys() - own.keys())),
        ("Missing", sorted(own.keys() - full.keys())),
    ):
        if keys:
            listed = ", ".join(repr(k) for k in keys)
            problems.append(f"\n\t{what} key(s): {listed}.")
    if problems:
        raise RuntimeError(
            f"Error(s) in reparametrizing for {module._get_name()}:{''.join(problems)}"
        )


def _place(module: Any, path: str) -> tuple[Any, str]:
    *above, name = path.split(".")
    for part in above:
        below = getattr(module, part, None)
        if not isinstance(below, Module):
            raise AttributeError(f"{module._get_name()} has no attribute `{part}`")
        module = below
    if not name:
        raise KeyError('tensor name can\'t be empty string ""')
    return module, name


class _Swap:
    """Puts tensors in a module's places, and what was there back."""

    def __init__(self, module: Module, full: dict[str, Any]) -> None:
        self.places: dict[str, tuple[Any, str, Any]] = {}
        for path, t in full.items():
            owner, name = _place(module, path)
            if t is not None and not isinstance(t, Tensor):
                raise TypeError(f"{t} is not an instance of torch.Tensor")
            table = self._table(owner, name)
            if table is not None:  # a name that the module has not got concerns nobody
                self.places[path] = (table, name, table[name])
        for path, (table, name, _) in self.places.items():
            table[name] = full[path]

    @staticmethod
    def _table(owner: Any, name: str) -> Any:
        for table in (owner._parameters, owner._buffers, owner.__dict__):
            if name in table:
                return table
        return None

    def back(self) -> dict[str, Any]:
        """Undo it; returns what stood in the places at the end."""
        now = {path: table.get(name) for path, (table, name, _) in self.places.items()}
        for table, name, old in self.places.values():
            table[name] = old
        return now


def call_with(
    module: Module,
    parameters_and_buffers: dict[str, Any],
    args: Any = None,
    kwargs: dict[str, Any] | None = None,
    *,
    tie_weights: bool = True,
    strict: bool = False,
) -> Any:
    """The module's result with the given tensors in the places of its parameters and buffers.

    Buffers that the forward replaces are replaced in `parameters_and_buffers`, too. tie_weights:
    one name of a tied tensor stands for all of them. strict: all names must be given and no others.
    """
    args = () if args is None else args if isinstance(args, tuple) else (args,)
    own = _names_of(module)
    given = dict(parameters_and_buffers)
    full = _with_ties(own, given) if tie_weights else given
    if strict:
        _check_strict(module, own, full)
    swap = _Swap(module, full)
    try:
        return module(*args, **(kwargs or {}))
    finally:
        now = swap.back()
        parameters_and_buffers.update({k: t for k, t in now.items() if k in given})


def functional_call(
    module: Module,
    parameters_and_buffers: dict[str, Any],
    args: Any = None,
    kwargs: dict[str, Any] | None = None,
    *,
    tie_weights: bool = True,
    strict: bool = False,
) -> Any:
    """`call_with` under the name that PyTorch deprecates."""
    warnings.warn(
        "`torch.nn.utils.stateless.functional_call` is deprecated as of PyTorch 2.0 and will be "
        "removed in a future version of PyTorch. Please use `torch.func.functional_call` instead "
        "which is a drop-in replacement.",
        category=FutureWarning,
        stacklevel=2,
    )
    return call_with(
        module, parameters_and_buffers, args, kwargs, tie_weights=tie_weights, strict=strict
    )


__all__ = ["functional_call"]

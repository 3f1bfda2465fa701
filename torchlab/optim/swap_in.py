"""Other parameters and another state for an optimizer, for a while.

Source: https://docs.pytorch.org/docs/2.13/optim.html
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from torchlab._core.tensor import Tensor
from torchlab.optim.optimizer import Optimizer


@contextmanager
def swap_in_optimizer_params_and_state(
    optimizer: Optimizer,
    swapin_parameters: dict[str, Tensor],
    swapin_optim_state: dict[str, Any],
) -> Iterator[None]:
    """Within the context the optimizer works on `swapin_parameters`, in the order of its own, with
    the state and the options of `swapin_optim_state`, a `state_dict()`.

    Tensors of that state change in place; nothing else of it does, and on exit the optimizer has
    its own parameters, groups and state again. Raises RuntimeError if the optimizer has no state
    yet, or if parameters or groups are not as many as its own.
    """
    saved_state, saved_groups = optimizer.state, optimizer.param_groups
    parameters, theirs = list(swapin_parameters.values()), swapin_optim_state["param_groups"]
    _check(optimizer, parameters, theirs)
    numbers = [n for group in theirs for n in group["params"]]
    by_number = dict(zip(numbers, parameters, strict=True))
    state: Any = defaultdict(dict)
    for key, value in swapin_optim_state["state"].items():
        state[by_number.get(key, key)] = dict(value) if isinstance(value, dict) else value
    groups = [{**group, "params": [by_number[n] for n in group["params"]]} for group in theirs]
    optimizer.state, optimizer.param_groups = state, groups
    try:
        yield
    finally:
        optimizer.state, optimizer.param_groups = saved_state, saved_groups


def _check(optimizer: Optimizer, parameters: list[Tensor], theirs: list[dict[str, Any]]) -> None:
    own = optimizer.param_groups
    if not optimizer.state:
        raise RuntimeError(
            "swap_in_optimizer_params_and_state requires initialized optimizer state."
        )
    if len(theirs) != len(own):
        raise RuntimeError(
            "swapin_optim_state has a different number of parameter groups than the live"
            f" optimizer: {len(theirs)} instead of {len(own)}."
        )
    for i, (a, b) in enumerate(zip(theirs, own, strict=True)):
        if len(a["params"]) != len(b["params"]):
            raise RuntimeError(
                f"swapin_optim_state param group {i} has a different number of params than the"
                f" live optimizer param group: {len(a['params'])} instead of {len(b['params'])}."
            )
    count = sum(len(group["params"]) for group in own)
    if len(parameters) != count:
        raise RuntimeError(
            "swap_in_optimizer_params_and_state requires the explicit parameter state to match"
            f" optimizer.param_groups ordering: {len(parameters)} parameters were given for the"
            f" optimizer's {count}."
        )


__all__ = ["swap_in_optimizer_params_and_state"]

"""The base of learning-rate schedulers.

A scheduler counts epochs (or whatever its `step` is called for) and sets each group's "lr". Most
compute the next rate from the present one, so that schedulers can be chained; `_closed` gives the
rate of an epoch directly, for `step(epoch)`.

Source: https://docs.pytorch.org/docs/2.13/optim.html#how-to-adjust-learning-rate
"""

from __future__ import annotations

import warnings
from types import FunctionType
from typing import Any

from torchlab._core.dispatch.registry import aten
from torchlab._core.tensor import Tensor
from torchlab.optim.optimizer import Optimizer

EPOCH_WARNING = (
    "The epoch parameter in `scheduler.step()` was not necessary and is being deprecated where "
    "possible. Please use "
    "`scheduler.step()` to step the scheduler. During the deprecation, if epoch is different "
    "from None, the closed form "
    "is used instead of the new chainable form, where available."
)


def kept(value: Any) -> Any:
    """A value that later writes in place do not change."""
    return aten.clone(aten.detach(value)) if isinstance(value, Tensor) else value


def set_option(group: dict[str, Any], name: str, value: Any) -> None:
    """Set a group's option; a tensor there is written to and stays the same object."""
    if isinstance(group[name], Tensor):
        aten.detach(group[name]).fill_(value if not isinstance(value, Tensor) else value.item())
    else:
        group[name] = value


def for_each(optimizer: Optimizer, name: str, value: Any) -> list[Any]:
    """One value for each group: the list given, or the number repeated.

    Raises ValueError if the list has another length.
    """
    n = len(optimizer.param_groups)
    if isinstance(value, (list, tuple)):
        if len(value) != n:
            raise ValueError(
                f"{name} must have the same length as optimizer.param_groups. {name} has "
                f"{len(value)} values, "
                f"param_groups has {n}."
            )
        return list(value)
    return [value] * n


class LRScheduler:
    """Subclasses define `get_lr()`: the rates of all groups at epoch `self.last_epoch`.

    last_epoch: -1 starts anew; otherwise the groups must have "initial_lr" (KeyError if not).
    Raises TypeError if `optimizer` is none.
    """

    _get_lr_called_within_step = False
    _is_initial = False

    def __init__(self, optimizer: Optimizer, last_epoch: int = -1) -> None:
        if not isinstance(optimizer, Optimizer):
            raise TypeError(f"{type(optimizer).__name__} is not an Optimizer")
        self.optimizer = optimizer
        if last_epoch == -1:
            for group in optimizer.param_groups:
                group.setdefault("initial_lr", kept(group["lr"]))
        else:
            for i, group in enumerate(optimizer.param_groups):
                if "initial_lr" not in group:
                    raise KeyError(
                        f"param 'initial_lr' is not specified in param_groups[{i}] when resuming "
                        "scheduler with "
                        "last_epoch >= 0: load the optimizer's state_dict first, or start with "
                        "last_epoch=-1"
                    )
        self.base_lrs = [kept(group["initial_lr"]) for group in optimizer.param_groups]
        self.last_epoch = last_epoch
        self._step_count = 0
        self._is_initial = False
        self._get_lr_called_within_step = False
        self._initial_step()

    def _initial_step(self) -> None:
        self.optimizer._opt_called = False  # type: ignore[attr-defined]
        self._step_count = 0
        self._is_initial = True
        try:
            self.step()
        finally:
            self._is_initial = False

    def state_dict(self) -> dict[str, Any]:
        """Everything but the optimizer."""
        return {k: v for k, v in self.__dict__.items() if k != "optimizer"}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over what `state_dict` gave."""
        self.__dict__.update(state_dict)

    def get_last_lr(self) -> list[Any]:
        """The rates that the last `step` set."""
        return self._last_lr

    def get_lr(self) -> list[Any]:
        """The rates of epoch `self.last_epoch`."""
        raise NotImplementedError(f"{type(self).__name__} has no get_lr(): a scheduler defines one")

    def _present(self) -> list[Any]:
        """The groups' rates as they are; warns if a user calls `get_lr` for them."""
        if not self._get_lr_called_within_step:
            warnings.warn(
                "To get the last learning rate computed by the scheduler, please use "
                "`get_last_lr()`.",
                stacklevel=3,
            )
        return [group["lr"] for group in self.optimizer.param_groups]

    def step(self, epoch: int | None = None) -> None:
        """Go to the next epoch and set its rates."""
        if self._step_count == 1 and not getattr(self.optimizer, "_opt_called", True):
            warnings.warn(
                "Detected call of `lr_scheduler.step()` before `optimizer.step()`. In PyTorch "
                "1.1.0 and later, you should "
                "call them in the opposite order: `optimizer.step()` before "
                "`lr_scheduler.step()`. Failure to do this "
                "will result in PyTorch skipping the first value of the learning rate schedule.",
                stacklevel=2,
            )
        self._step_count += 1
        if epoch is not None:
            warnings.warn(EPOCH_WARNING, stacklevel=2)
        self._update_lr(epoch)

    def _update_lr(self, epoch: int | None = None) -> None:
        self._get_lr_called_within_step = True
        try:
            if epoch is None:
                self.last_epoch += 1
                rates = self.get_lr()
            else:
                self.last_epoch = epoch
                closed = getattr(self, "_get_closed_form_lr", None)
                rates = self.get_lr() if closed is None else closed()
        finally:
            self._get_lr_called_within_step = False
        self._set(rates)

    def _set(self, rates: list[Any]) -> None:
        for group, rate in zip(self.optimizer.param_groups, rates, strict=True):
            set_option(group, "lr", rate)
        self._last_lr = [kept(group["lr"]) for group in self.optimizer.param_groups]


def saved_functions(functions: list[Any]) -> list[Any]:
    """What a state dict keeps of user's functions: attributes of callable objects, nothing of
    others."""
    return [None if isinstance(f, FunctionType) else dict(f.__dict__) for f in functions]


def restore_functions(functions: list[Any], saved: list[Any]) -> None:
    """Give callable objects their saved attributes back."""
    for f, attributes in zip(functions, saved, strict=True):
        if attributes is not None:
            f.__dict__.update(attributes)


__all__ = ["LRScheduler"]

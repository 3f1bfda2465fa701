"""Schedulers that also move the momentum: CyclicLR and OneCycleLR.

Source: https://docs.pytorch.org/docs/2.13/optim.html#how-to-adjust-learning-rate
"""

from __future__ import annotations

import math
from collections.abc import Callable
from types import FunctionType
from typing import Any

from torchlab.optim.lr_scheduler.base import LRScheduler, for_each, set_option
from torchlab.optim.optimizer import Optimizer


def _momentum(group: dict[str, Any], use_beta1: bool) -> Any:
    return group["betas"][0] if use_beta1 else group["momentum"]


def _set_momentum(group: dict[str, Any], use_beta1: bool, value: Any) -> None:
    if use_beta1:
        group["betas"] = (value, *group["betas"][1:])
    else:
        group["momentum"] = value


def _has_beta1(optimizer: Optimizer) -> bool:
    """Whether it is Adam's β₁ that plays the momentum; ValueError if there is neither."""
    if "momentum" not in optimizer.defaults and "betas" not in optimizer.defaults:
        raise ValueError(
            "optimizer must support momentum or beta1 with `cycle_momentum` option enabled"
        )
    return "betas" in optimizer.defaults


class CyclicLR(LRScheduler):
    """Between base_lr and max_lr, up in `step_size_up` steps and down in `step_size_down`
    (Smith, 2015).

    mode: "triangular" (always the full height), "triangular2" (half the height each cycle),
    "exp_range" (height·gamma^step), or your own `scale_fn` of the cycle or the step (scale_mode).
    """

    def __init__(
        self,
        optimizer: Optimizer,
        base_lr: Any,
        max_lr: Any,
        step_size_up: int = 2000,
        step_size_down: int | None = None,
        mode: str = "triangular",
        gamma: float = 1.0,
        scale_fn: Callable[[float], float] | None = None,
        scale_mode: str = "cycle",
        cycle_momentum: bool = True,
        base_momentum: Any = 0.8,
        max_momentum: Any = 0.9,
        last_epoch: int = -1,
    ) -> None:
        if not isinstance(optimizer, Optimizer):
            raise TypeError(f"{type(optimizer).__name__} is not an Optimizer")
        if mode not in ("triangular", "triangular2", "exp_range") and scale_fn is None:
            raise ValueError("mode is invalid and scale_fn is None")
        self.optimizer = optimizer
        low = for_each(optimizer, "base_lr", base_lr)
        self.max_lrs = for_each(optimizer, "max_lr", max_lr)
        up, down = (
            float(step_size_up),
            float(step_size_down if step_size_down is not None else step_size_up),
        )
        self.total_size = up + down
        self.step_ratio = up / self.total_size
        self.mode = mode
        self.gamma = gamma
        self._scale_fn_custom = scale_fn
        self.scale_mode = (
            scale_mode
            if scale_fn is not None
            else ("iterations" if mode == "exp_range" else "cycle")
        )
        self.cycle_momentum = cycle_momentum
        if cycle_momentum:
            self.use_beta1 = _has_beta1(optimizer)
            self.base_momentums = for_each(optimizer, "base_momentum", base_momentum)
            self.max_momentums = for_each(optimizer, "max_momentum", max_momentum)
        if last_epoch == -1:
            for i, group in enumerate(optimizer.param_groups):
                set_option(group, "lr", low[i])
                if cycle_momentum:
                    _set_momentum(group, self.use_beta1, self.max_momentums[i])
                    group["max_momentum"], group["base_momentum"] = (
                        self.max_momentums[i],
                        self.base_momentums[i],
                    )
        super().__init__(optimizer, last_epoch)
        self.base_lrs = low

    def scale_fn(self, x: float) -> float:
        """The height of cycle (or step) x, 1 being full."""
        if self._scale_fn_custom is not None:
            return self._scale_fn_custom(x)
        if self.mode == "triangular":
            return 1.0
        return 1 / (2.0 ** (x - 1)) if self.mode == "triangular2" else self.gamma**x

    def get_lr(self) -> list[Any]:
        self._present()
        cycle = math.floor(1 + self.last_epoch / self.total_size)
        x = 1.0 + self.last_epoch / self.total_size - cycle
        climb = x / self.step_ratio if x <= self.step_ratio else (x - 1) / (self.step_ratio - 1)
        scale = self.scale_fn(cycle if self.scale_mode == "cycle" else self.last_epoch)
        rates = [
            low + (high - low) * climb * scale
            for low, high in zip(self.base_lrs, self.max_lrs, strict=True)
        ]
        if self.cycle_momentum:
            for low, high, group in zip(
                self.base_momentums, self.max_momentums, self.optimizer.param_groups, strict=True
            ):
                _set_momentum(group, self.use_beta1, high - (high - low) * climb * scale)
        return rates

    def state_dict(self) -> dict[str, Any]:
        state = super().state_dict()
        custom = state.pop("_scale_fn_custom")
        plain = custom is None or isinstance(custom, FunctionType)
        state["_scale_fn_custom"] = None if plain else dict(custom.__dict__)
        return state

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        state = dict(state_dict)
        attributes = state.pop("_scale_fn_custom")
        self.__dict__.update(state)
        if attributes is not None:
            self._scale_fn_custom.__dict__.update(attributes)


class OneCycleLR(LRScheduler):
    """Up from max_lr / div_factor to max_lr in the first `pct_start` of the steps, then down to
    1 / final_div_factor of the start; the momentum goes the other way (Smith and Topin, 2017).

    total_steps, or epochs and steps_per_epoch. three_phase: down to the start first, then to the
    end.
    Raises ValueError for bad arguments and for a step after the last.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        max_lr: Any,
        total_steps: int | None = None,
        epochs: int | None = None,
        steps_per_epoch: int | None = None,
        pct_start: float = 0.3,
        anneal_strategy: str = "cos",
        cycle_momentum: bool = True,
        base_momentum: Any = 0.85,
        max_momentum: Any = 0.95,
        div_factor: float = 25.0,
        final_div_factor: float = 1e4,
        three_phase: bool = False,
        last_epoch: int = -1,
    ) -> None:
        if not isinstance(optimizer, Optimizer):
            raise TypeError(f"{type(optimizer).__name__} is not an Optimizer")
        self.optimizer = optimizer
        self.total_steps = _total(total_steps, epochs, steps_per_epoch)
        if pct_start < 0 or pct_start > 1 or not isinstance(pct_start, float):
            raise ValueError(f"Expected float between 0 and 1 pct_start, but got {pct_start}")
        self._schedule_phases = _phases(self.total_steps, pct_start, three_phase)
        if anneal_strategy not in ("cos", "linear"):
            raise ValueError(
                f"anneal_strategy must be one of 'cos' or 'linear', instead got {anneal_strategy}"
            )
        self._anneal_func_type = anneal_strategy
        self.cycle_momentum = cycle_momentum
        high = for_each(optimizer, "max_lr", max_lr)
        if cycle_momentum:
            self.use_beta1 = _has_beta1(optimizer)
            top = for_each(optimizer, "max_momentum", max_momentum)
            bottom = for_each(optimizer, "base_momentum", base_momentum)
        if last_epoch == -1:
            for i, group in enumerate(optimizer.param_groups):
                group["initial_lr"] = high[i] / div_factor
                group["max_lr"] = high[i]
                group["min_lr"] = group["initial_lr"] / final_div_factor
                if cycle_momentum:
                    _set_momentum(group, self.use_beta1, top[i])
                    group["max_momentum"], group["base_momentum"] = top[i], bottom[i]
        super().__init__(optimizer, last_epoch)

    def _between(self, start: float, end: float, share: float) -> float:
        if self._anneal_func_type == "cos":
            return end + (start - end) / 2.0 * (math.cos(math.pi * share) + 1)
        return (end - start) * share + start

    def get_lr(self) -> list[Any]:
        self._present()
        step = self.last_epoch
        if step > self.total_steps:
            raise ValueError(
                f"Tried to step {step} times. The specified number of total steps is "
                f"{self.total_steps}"
            )
        start = 0.0
        for phase in self._schedule_phases:
            end = phase["end_step"]
            if step <= end or phase is self._schedule_phases[-1]:
                break
            start = end
        share = (step - start) / (end - start)
        rates = []
        for group in self.optimizer.param_groups:
            rates.append(self._between(group[phase["start_lr"]], group[phase["end_lr"]], share))
            if self.cycle_momentum:
                momentum = self._between(
                    group[phase["start_momentum"]], group[phase["end_momentum"]], share
                )
                _set_momentum(group, self.use_beta1, momentum)
        return rates


def _total(total_steps: Any, epochs: Any, steps_per_epoch: Any) -> int:
    if total_steps is not None:
        given = (("total_steps", total_steps),)
    elif epochs is not None and steps_per_epoch is not None:
        given = (("epochs", epochs), ("steps_per_epoch", steps_per_epoch))  # type: ignore[assignment]
    else:
        raise ValueError("You must define either total_steps OR (epochs AND steps_per_epoch)")
    total = 1
    for name, value in given:
        if value <= 0 or not isinstance(value, int):
            raise ValueError(f"Expected positive integer {name}, but got {value}")
        total *= value
    return total


def _phases(total: int, pct_start: float, three_phase: bool) -> list[dict[str, Any]]:
    up = float(pct_start * total) - 1
    first = ("initial_lr", "max_lr", "max_momentum", "base_momentum")
    if three_phase:
        rows = [
            (up, first),
            (
                float(2 * pct_start * total) - 2,
                ("max_lr", "initial_lr", "base_momentum", "max_momentum"),
            ),
            (total - 1, ("initial_lr", "min_lr", "max_momentum", "max_momentum")),
        ]
    else:
        rows = [(up, first), (total - 1, ("max_lr", "min_lr", "base_momentum", "max_momentum"))]
    keys = ("start_lr", "end_lr", "start_momentum", "end_momentum")
    return [{"end_step": end, **dict(zip(keys, names, strict=True))} for end, names in rows]

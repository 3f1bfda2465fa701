"""Averages of models: of their weights (SWA; Izmailov and others, 2018), or exponential ones (EMA).

Source: https://docs.pytorch.org/docs/2.13/optim.html#weight-averaging-swa-and-ema
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable
from copy import deepcopy
from typing import Any, Literal

from torchlab._core import dtype as dt
from torchlab._core.dispatch.registry import aten
from torchlab._core.tensor import Tensor
from torchlab.autograd.grad_mode import no_grad
from torchlab.nn.batchnorm import _BatchNorm
from torchlab.nn.module import Module
from torchlab.optim.lr_scheduler.base import LRScheduler, for_each
from torchlab.optim.optimizer import Optimizer


def _check_decay(decay: float) -> None:
    if not 0.0 <= decay <= 1.0:
        raise ValueError(
            f"Invalid decay value {decay} provided. Please provide a value in [0,1] range."
        )


def get_ema_multi_avg_fn(decay: float = 0.999) -> Callable[..., None]:
    """A function for `multi_avg_fn`: average ← decay·average + (1 - decay)·current."""
    _check_decay(decay)

    @no_grad()
    def ema_update(ema_param_list: Any, current_param_list: Any, _: Any) -> None:
        for average, current in zip(ema_param_list, current_param_list, strict=True):
            if average.is_floating_point() or average.is_complex():
                average.lerp_(current, 1 - decay)
            else:
                average.copy_(average * decay + current * (1 - decay))

    return ema_update


def get_swa_multi_avg_fn() -> Callable[..., None]:
    """A function for `multi_avg_fn`: the mean of all models so far."""

    @no_grad()
    def swa_update(averaged_param_list: Any, current_param_list: Any, num_averaged: Any) -> None:
        share = 1 / (float(num_averaged) + 1)
        for average, current in zip(averaged_param_list, current_param_list, strict=True):
            if average.is_floating_point() or average.is_complex():
                average.lerp_(current, share)
            else:
                average.copy_(average + (current - average) * share)

    return swa_update


def get_ema_avg_fn(decay: float = 0.999) -> Callable[..., Tensor]:
    """A function for `avg_fn`: decay·average + (1 - decay)·current."""
    _check_decay(decay)

    @no_grad()
    def ema_update(ema_param: Any, current_param: Any, num_averaged: Any) -> Any:
        return decay * ema_param + (1 - decay) * current_param

    return ema_update


def get_swa_avg_fn() -> Callable[..., Tensor]:
    """A function for `avg_fn`: the mean of all models so far."""

    @no_grad()
    def swa_update(averaged_param: Any, current_param: Any, num_averaged: Any) -> Any:
        return averaged_param + (current_param - averaged_param) / (num_averaged + 1)

    return swa_update


class AveragedModel(Module):
    """A copy of `model` whose parameters are averages of those of the models that
    `update_parameters` is called with.

    avg_fn: (average, current, number of models averaged) → new average; multi_avg_fn: the same for
    lists, in place; default: the mean. use_buffers: average buffers too; else they are copied.
    The count is the buffer `n_averaged`.
    """

    n_averaged: Tensor

    def __init__(
        self,
        model: Module,
        device: Any = None,
        avg_fn: Callable[..., Tensor] | None = None,
        multi_avg_fn: Callable[..., None] | None = None,
        use_buffers: bool = False,
    ) -> None:
        super().__init__()
        if avg_fn is not None and multi_avg_fn is not None:
            raise AssertionError("Only one of avg_fn and multi_avg_fn should be provided")
        self.module = deepcopy(model)
        if device is not None:
            self.module = self.module.to(device)
        self.register_buffer("n_averaged", aten.tensor(0, dtype=dt.int64, device=device))
        self.avg_fn = avg_fn
        self.multi_avg_fn = multi_avg_fn
        self.use_buffers = use_buffers

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """What the averaged model computes."""
        return self.module(*args, **kwargs)

    def update_parameters(self, model: Module) -> None:
        """Take `model` into the average."""
        mine = _tensors(self.module, self.use_buffers)
        theirs = _tensors(model, self.use_buffers)
        pairs = [(a, b.detach().to(a.device)) for a, b in zip(mine, theirs, strict=False)]
        with no_grad():
            if self.n_averaged == 0:
                for average, current in pairs:
                    average.copy_(current)
            elif self.avg_fn is not None:
                for average, current in pairs:
                    count = self.n_averaged.to(average.device)  # type: ignore[attr-defined]
                    average.copy_(self.avg_fn(average, current, count))
            else:
                self._update_lists(pairs)
            if not self.use_buffers:
                for b, other in zip(self.module.buffers(), model.buffers(), strict=False):
                    b.detach().copy_(other.detach().to(b.device))  # type: ignore[attr-defined]
            self.n_averaged += 1  # type: ignore[operator]

    def _update_lists(self, pairs: list[tuple[Any, Any]]) -> None:
        """Call multi_avg_fn once for each device and dtype."""
        lists: dict[Any, tuple[list[Any], list[Any]]] = {}
        for average, current in pairs:
            averages, currents = lists.setdefault((average.device, average.dtype), ([], []))
            averages.append(average)
            currents.append(current)
        update = self.multi_avg_fn or get_swa_multi_avg_fn()
        for (device, _), (averages, currents) in lists.items():
            update(averages, currents, self.n_averaged.to(device))  # type: ignore[attr-defined]


def _tensors(model: Module, use_buffers: bool) -> list[Any]:
    buffers = model.buffers() if use_buffers else ()
    return [t.detach() for t in itertools.chain(model.parameters(), buffers)]


def update_bn(loader: Iterable[Any], model: Module, device: Any = None) -> None:
    """Compute the running statistics of all batch normalizations anew: their mean over the inputs
    of `loader` (of tuples and lists, the first element), in training mode."""
    norms = [m for m in model.modules() if isinstance(m, _BatchNorm)]
    if not norms:
        return
    momenta = [m.momentum for m in norms]
    was_training = model.training
    with no_grad():
        for m in norms:
            m.reset_running_stats()
            m.momentum = None  # the mean of all batches
        model.train()
        for batch in loader:
            x = batch[0] if isinstance(batch, (list, tuple)) else batch
            model(x if device is None else x.to(device))
    for m, momentum in zip(norms, momenta, strict=True):
        m.momentum = momentum
    model.train(was_training)


def _linear_anneal(t: float) -> float:
    return t


def _cosine_anneal(t: float) -> float:
    return (1 - math.cos(math.pi * t)) / 2


_ANNEAL = {"cos": _cosine_anneal, "linear": _linear_anneal}


class SWALR(LRScheduler):
    """Move each group's rate to `swa_lr` within `anneal_epochs`, along a line or a cosine, and keep
    it there.

    Raises ValueError for an unknown anneal_strategy and for anneal_epochs that is no count.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        swa_lr: float,
        anneal_epochs: int = 10,
        anneal_strategy: Literal["cos", "linear"] = "cos",
        last_epoch: int = -1,
    ) -> None:
        rates = for_each(optimizer, "swa_lr", swa_lr)
        if anneal_strategy not in _ANNEAL:
            raise ValueError(
                f"anneal_strategy must be one of 'cos' or 'linear', instead got {anneal_strategy}"
            )
        if not isinstance(anneal_epochs, int) or anneal_epochs < 0:
            raise ValueError(f"anneal_epochs must be equal or greater than 0, got {anneal_epochs}")
        for rate, group in zip(rates, optimizer.param_groups, strict=True):
            group["swa_lr"] = rate
        self._anneal_strategy = anneal_strategy
        self.anneal_epochs = anneal_epochs
        super().__init__(optimizer, last_epoch)

    def _share(self, step: int) -> float:
        """How far on the way to swa_lr the rates are at a step."""
        t = max(0.0, min(1.0, step / max(1, self.anneal_epochs)))
        return _ANNEAL[self._anneal_strategy](t)

    def get_lr(self) -> list[Any]:
        """The rates of all groups at epoch `self.last_epoch`."""
        step = self._step_count - 1
        if self.anneal_epochs == 0:
            step = max(1, step)
        before, now = self._share(step - 1), self._share(step)
        rates = []
        for group in self.optimizer.param_groups:
            rate, goal = group["lr"], group["swa_lr"]
            # the rate at the start, as far as the present one tells
            first = goal if before == 1 else (rate - before * goal) / (1 - before)
            rates.append(goal * now + first * (1 - now))
        return rates


__all__ = [
    "SWALR",
    "AveragedModel",
    "get_ema_avg_fn",
    "get_ema_multi_avg_fn",
    "get_swa_avg_fn",
    "get_swa_multi_avg_fn",
    "update_bn",
]

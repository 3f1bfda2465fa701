"""Calling several modules at once, each in its thread.

Source: https://docs.pytorch.org/docs/2.13/generated/torch.nn.DataParallel.html
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

from torchlab._core import device as devices
from torchlab._core.tensor import Tensor
from torchlab.amp import switches
from torchlab.autograd.grad_mode import is_grad_enabled, set_grad_enabled
from torchlab.nn.module import Module
from torchlab.nn.parallel._places import place

__all__ = ["parallel_apply"]


def _device_in(x: Any) -> devices.device | None:
    """The device of the first tensor in containers."""
    if isinstance(x, Tensor):
        return x.device
    items = x.values() if isinstance(x, dict) else x if isinstance(x, (tuple, list)) else ()
    return next((d for d in map(_device_in, items) if d is not None), None)


def parallel_apply(
    modules: Sequence[Module],
    inputs: Sequence[Any],
    kwargs_tup: Sequence[dict[str, Any]] | None = None,
    devices: Sequence[Any] | None = None,
) -> list[Any]:
    """`module(*input, **kwargs)` for each, at the same time; the results in that order.

    An input that is no tuple or list is one argument. The calling thread's grad mode and autocast
    hold in the threads. The first error that happens is raised.
    """
    count = len(modules)
    named = [{}] * count if kwargs_tup is None else kwargs_tup
    places = [None] * count if devices is None else devices
    if not count == len(inputs) == len(named) == len(places):
        raise AssertionError(
            f"The number of modules {count} must be equal to the number of inputs {len(inputs)},"
            f" keyword arguments {len(named)} and devices {len(places)}"
        )
    results: list[Any] = [None] * count
    errors: list[BaseException | None] = [None] * count
    grad = is_grad_enabled()
    kinds = [
        (kind, switches.is_autocast_enabled(kind), switches.get_autocast_dtype(kind))
        for kind in switches.AVAILABLE
    ]

    def work(i: int) -> None:
        set_grad_enabled(grad)
        for kind, on, dtype in kinds:
            switches.turn(kind, on)
            switches.set_autocast_dtype(kind, dtype)
        argument = inputs[i]
        try:
            where = place(places[i]) if places[i] is not None else _device_in(argument)
            if where is None:
                raise RuntimeError(
                    f"no tensor among the inputs of replica {i}, and no device was given"
                )
            arguments = argument if isinstance(argument, (list, tuple)) else (argument,)
            results[i] = modules[i](*arguments, **named[i])
        except Exception as e:  # raised in the calling thread, below
            e.add_note(f"(raised in replica {i} of nn.parallel.parallel_apply)")
            errors[i] = e

    if count == 1:
        work(0)
    else:
        threads = [threading.Thread(target=work, args=(i,)) for i in range(count)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    for error in errors:
        if error is not None:
            raise error
    return results

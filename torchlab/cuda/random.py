"""Random numbers on GPUs. All devices draw from the one generator of the CPU, so that the numbers
do not depend on the device; seeds and states are that generator's.

Without a GPU `manual_seed` and `seed` do nothing, as in PyTorch, where they would wait for its
start: a program that seeds both devices gets the numbers of its CPU seed.

Source: https://docs.pytorch.org/docs/2.13/cuda.html#random-number-generator
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from torchlab._core.backends import cuda as _gpus
from torchlab._core.dispatch.registry import aten

__all__ = [
    "get_rng_state",
    "get_rng_state_all",
    "initial_seed",
    "manual_seed",
    "manual_seed_all",
    "seed",
    "seed_all",
    "set_rng_state",
    "set_rng_state_all",
]


def manual_seed(seed: int) -> None:
    """Restart the generator of the current GPU from `seed`; nothing if there is no GPU."""
    seed = int(seed)
    if _gpus.device_count():
        aten.manual_seed(seed)


def manual_seed_all(seed: int) -> None:
    """Restart the generators of all GPUs, of which there is one; nothing if there is no GPU."""
    manual_seed(seed)


def seed() -> None:
    """Restart the generator from a seed of the operating system; nothing if there is no GPU."""
    if _gpus.device_count():
        aten.seed()


def seed_all() -> None:
    """As `seed`."""
    seed()


def initial_seed() -> int:
    """The seed that the generator started from. AssertionError if there is no GPU."""
    _gpus.require()
    return aten.initial_seed()


def get_rng_state(device: Any = "cuda") -> Any:
    """The generator's state. AssertionError if there is no GPU."""
    _gpus.require()
    return aten.get_rng_state()


def get_rng_state_all() -> list[Any]:
    """The states of all GPUs' generators: a list as long as there are GPUs."""
    return [aten.get_rng_state() for _ in range(_gpus.device_count())]


def set_rng_state(new_state: Any, device: Any = "cuda") -> None:
    """Continue from a state; nothing if there is no GPU."""
    state = new_state.clone()
    if _gpus.device_count():
        aten.set_rng_state(state)


def set_rng_state_all(new_states: Iterable[Any]) -> None:
    """Continue from the states that `get_rng_state_all` gave."""
    for state in new_states:
        set_rng_state(state)

"""`torchlab.random`: the state of the random numbers.

Source: https://docs.pytorch.org/docs/2.13/random.html
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from typing import Any

from torchlab._core.dispatch.registry import aten
from torchlab._core.generator import Generator, default_generator

__all__ = [
    "fork_rng",
    "get_rng_state",
    "initial_seed",
    "manual_seed",
    "seed",
    "set_rng_state",
    "thread_safe_generator",
]


def manual_seed(seed: Any) -> Generator:
    """Restart the default generator from `seed`, in [-2^63, 2^64); returns the generator."""
    return aten.manual_seed(seed)


def seed() -> int:
    """Restart the default generator from a seed of the operating system; returns that seed."""
    return aten.seed()


def initial_seed() -> int:
    """The seed from which the default generator started."""
    return aten.initial_seed()


def get_rng_state() -> Any:
    """The state of the default generator: a uint8 tensor of 5056 elements, PyTorch's own layout."""
    return aten.get_rng_state()


def set_rng_state(new_state: Any) -> None:
    """Continue from a state that `get_rng_state`, ours or PyTorch's, returned."""
    aten.set_rng_state(new_state)


def thread_safe_generator() -> Generator | None:
    """The generator of a data loader's worker thread; None elsewhere, and here everywhere: workers
    are processes."""
    return None


@contextlib.contextmanager
def fork_rng(
    devices: Iterable[Any] | None = None,
    enabled: bool = True,
    _caller: str = "fork_rng",
    _devices_kw: str = "devices",
    device_type: str | None = None,
) -> Iterator[None]:
    """What is drawn inside does not change what is drawn afterwards.

    All devices draw from the one generator of the CPU, so its state is all there is to keep;
    `devices` and `device_type` are accepted as PyTorch's.
    """
    if not enabled:
        yield
        return
    if device_type not in (None, "cpu", "cuda", "sim", "meta"):
        raise RuntimeError(
            f"torch has no module of `{device_type}`, you should register a module by"
            " `torch._register_device_module`."
        )
    state = default_generator.get_state()
    try:
        yield
    finally:
        default_generator.set_state(state)

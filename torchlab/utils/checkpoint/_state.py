"""What a region's second run must find as the first found it: random numbers, autocast, devices."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Iterable, Iterator
from typing import Any

from torchlab._core.generator import default_generator
from torchlab._core.pytree import tree_leaves
from torchlab._core.tensor import Tensor
from torchlab.amp import switches
from torchlab.amp.autocast_mode import autocast
from torchlab.random import fork_rng, get_rng_state, set_rng_state


class DefaultDeviceType:
    """The type of device whose random numbers are kept when no argument lies on an accelerator.

    >>> DefaultDeviceType.set_device_type("sim")
    """

    _default_device_type = "cpu"

    @staticmethod
    def set_device_type(device: str = "cuda") -> None:
        """Set it, "cuda" for example."""
        DefaultDeviceType._default_device_type = device

    @staticmethod
    def get_device_type() -> str:
        """The type that was set; "cpu" at first."""
        return DefaultDeviceType._default_device_type


def _accelerators(args: Any) -> dict[str, list[int]]:
    """The numbers of the devices that tensors in `args` lie on, by type; without cpu and meta."""
    found: dict[str, list[int]] = {}
    for t in tree_leaves(args):
        if isinstance(t, Tensor) and t.device.type not in ("cpu", "meta"):
            numbers = found.setdefault(t.device.type, [])
            if t.get_device() not in numbers:
                numbers.append(t.get_device())
    return found


def infer_device_type(*args: Any) -> str:
    """The type of the accelerator that the arguments lie on; with several a warning, and the first
    in the alphabet (cuda if it is among them); with none the default type."""
    types = sorted(_accelerators(args))
    if len(types) > 1:
        warnings.warn(
            "Tensor arguments, excluding CPU tensors, are detected on at least two types of"
            " devices. Device state will only be saved for devices of a single device type, and the"
            " remaining devices will be ignored. Consequently, if any checkpointed functions"
            " involve randomness, this may result in incorrect gradients. (Note that if CUDA"
            " devices are among the devices detected, it will be prioritized; otherwise, the first"
            f" device encountered will be selected.)\nDevice types: {types} first device type:"
            f" {types[0]}",
            stacklevel=4,
        )
    if not types:
        return DefaultDeviceType.get_device_type()
    return "cuda" if "cuda" in types else types[0]


def get_device_states(*args: Any) -> tuple[list[int], list[Tensor]]:
    """The devices (of one type) that tensors in `args` lie on, and the states of their random
    numbers. torchlab's accelerators all draw from the generator of the CPU."""
    numbers = _accelerators(args).get(infer_device_type(*args), [])
    return numbers, [get_rng_state() for _ in numbers]


def set_device_states(
    devices: Iterable[int], states: Iterable[Tensor], *, device_type: str | None = None
) -> None:
    """Give the devices the states that `get_device_states` returned."""
    if device_type == "meta":
        return
    for _, state in zip(devices, states, strict=False):
        set_rng_state(state)


class Surroundings:
    """Random state and autocast as they are now; `restored()` brings them back for a while."""

    def __init__(self, preserve_rng_state: bool, *args: Any) -> None:
        self.preserve = preserve_rng_state
        self.device_type = infer_device_type(*args)
        if preserve_rng_state:
            self.state = default_generator.get_state()
        self.autocasts: list[dict[str, Any]] = []
        for kind in dict.fromkeys((self.device_type, "cpu")):
            if kind in switches.AVAILABLE:
                self.autocasts.append(
                    {
                        "device_type": kind,
                        "enabled": switches.is_autocast_enabled(kind),
                        "dtype": switches.get_autocast_dtype(kind),
                        "cache_enabled": switches.is_autocast_cache_enabled(),
                    }
                )

    @contextlib.contextmanager
    def restored(self) -> Iterator[None]:
        """Inside, both are as they were; afterwards, random numbers go on as if nothing was."""
        with fork_rng(enabled=self.preserve), contextlib.ExitStack() as stack:
            if self.preserve:
                default_generator.set_state(self.state)
            for options in self.autocasts:
                stack.enter_context(autocast(**options))
            yield


__all__ = [
    "DefaultDeviceType", "Surroundings", "get_device_states", "infer_device_type",
    "set_device_states",
]  # fmt: skip

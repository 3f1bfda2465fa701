"""`torchlab.xpu`: Intel's GPUs, which torchlab does not reach. Programs may ask, and get "none".

Source: https://docs.pytorch.org/docs/2.13/xpu.html
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable
from typing import Any

from torchlab._core.device import device as _device

__all__ = [
    "StreamContext",
    "current_device",
    "current_stream",
    "default_generators",
    "device",
    "device_count",
    "device_of",
    "empty_cache",
    "get_arch_list",
    "get_device_capability",
    "get_device_name",
    "get_device_properties",
    "get_gencode_flags",
    "get_rng_state",
    "get_rng_state_all",
    "init",
    "initial_seed",
    "is_available",
    "is_bf16_supported",
    "is_initialized",
    "is_tf32_supported",
    "manual_seed",
    "manual_seed_all",
    "max_memory_allocated",
    "max_memory_reserved",
    "mem_get_info",
    "memory_allocated",
    "memory_reserved",
    "memory_snapshot",
    "memory_stats",
    "memory_stats_as_nested_dict",
    "reset_accumulated_memory_stats",
    "reset_peak_memory_stats",
    "seed",
    "seed_all",
    "set_device",
    "set_rng_state",
    "set_rng_state_all",
    "set_stream",
    "stream",
    "synchronize",
]

Device = _device | str | int | None

default_generators: tuple[Any, ...] = ()
"""Empty: there are no generators."""


def _missing() -> AssertionError:
    return AssertionError("Torch not compiled with XPU enabled")


def is_available() -> bool:
    """Whether there is such a GPU that can be used: no."""
    return False


def device_count() -> int:
    """The number of such GPUs: 0."""
    return 0


def manual_seed(seed: int) -> None:
    """Nothing: there is no generator to seed."""
    int(seed)


def manual_seed_all(seed: int) -> None:
    """Nothing: there is no generator to seed."""
    manual_seed(seed)


def is_initialized() -> bool:
    """Whether one is in use: no."""
    return False


def empty_cache() -> None:
    """Nothing: there is no memory to give back."""


def is_bf16_supported(including_emulation: bool = True) -> bool:
    """Whether one computes in bfloat16: no."""
    return False


def is_tf32_supported() -> bool:
    """Whether one computes in TF32: no."""
    return False


def get_arch_list() -> list[str]:
    """The architectures that kernels are compiled for: none."""
    return []


def get_gencode_flags() -> str:
    """The compiler's flags for those architectures: none."""
    return ""


def memory_allocated(device: Device = None) -> int:
    """Bytes that tensors hold: 0."""
    return 0


def memory_reserved(device: Device = None) -> int:
    """Bytes that the allocator holds: 0."""
    return 0


def max_memory_allocated(device: Device = None) -> int:
    """The peak of `memory_allocated`: 0."""
    return 0


def max_memory_reserved(device: Device = None) -> int:
    """The peak of `memory_reserved`: 0."""
    return 0


def memory_stats(device: Device = None) -> dict[str, Any]:
    """The allocator's counters: none."""
    return OrderedDict()


def memory_stats_as_nested_dict(device: Device = None) -> dict[str, Any]:
    """The allocator's counters: none."""
    return {}


def memory_snapshot(mempool_id: tuple[int, int] | None = None) -> list[dict[str, Any]]:
    """The allocator's segments: none."""
    return []


def reset_peak_memory_stats(device: Device = None) -> None:
    """Nothing: there are no peaks."""


def reset_accumulated_memory_stats(device: Device = None) -> None:
    """Nothing: there are no counters."""


def seed() -> None:
    """Nothing: there is no generator to seed."""


def seed_all() -> None:
    """Nothing: there is no generator to seed."""


def get_rng_state_all() -> list[Any]:
    """The states of all generators: none."""
    return []


def set_rng_state_all(new_states: Iterable[Any]) -> None:
    """AssertionError for the first state: there is no generator."""
    for state in new_states:
        set_rng_state(state)


def set_rng_state(new_state: Any, device: Device = "xpu") -> None:
    """AssertionError: there is no generator."""
    raise _missing()


def get_rng_state(device: Device = "xpu") -> Any:
    """AssertionError: there is no generator."""
    raise _missing()


def initial_seed() -> int:
    """AssertionError: there is no generator."""
    raise _missing()


def init() -> None:
    """AssertionError: there is no such GPU."""
    raise _missing()


def current_device() -> int:
    """AssertionError: there is no such GPU."""
    raise _missing()


def set_device(device: Device) -> None:
    """AssertionError: there is no such GPU."""
    raise _missing()


def synchronize(device: Device = None) -> None:
    """AssertionError: there is no such GPU."""
    raise _missing()


def get_device_name(device: Device = None) -> str:
    """AssertionError: there is no such GPU."""
    raise _missing()


def get_device_properties(device: Device = None) -> Any:
    """AssertionError: there is no such GPU."""
    raise _missing()


def get_device_capability(device: Device = None) -> dict[str, Any]:
    """AssertionError: there is no such GPU."""
    raise _missing()


def mem_get_info(device: Device = None) -> tuple[int, int]:
    """AssertionError: there is no such GPU."""
    raise _missing()


def current_stream(device: Device = None) -> Any:
    """AssertionError: there is no such GPU."""
    raise _missing()


def set_stream(stream: Any) -> None:
    """AssertionError: there is no such GPU."""
    raise _missing()


class device:
    """A context in which that GPU is the current one. It does nothing; AssertionError when a GPU
    that is not there is entered."""

    def __init__(self, device: Any) -> None:
        self.idx = -1 if device is None else getattr(device, "index", device)

    def __enter__(self) -> None:
        if isinstance(self.idx, int) and self.idx >= 0:
            raise _missing()

    def __exit__(self, *exc: object) -> None:
        pass


class device_of(device):
    """A context in which the GPU of a tensor is the current one: of others, none."""

    def __init__(self, obj: Any) -> None:
        super().__init__(None)


class StreamContext:
    """A context in which work goes to `stream`. There is none, so it does nothing."""

    def __init__(self, stream: Any) -> None:
        self.stream = stream

    def __enter__(self) -> None:
        pass

    def __exit__(self, *exc: object) -> None:
        pass


def stream(stream: Any) -> StreamContext:
    """A context in which work goes to `stream`."""
    return StreamContext(stream)


def __getattr__(name: str) -> Any:
    raise AttributeError(
        f"module 'torchlab.xpu' has no attribute '{name}'"
        + ("" if name.startswith("_") else ": torchlab does not reach Intel's GPUs")
    )

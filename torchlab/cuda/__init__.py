"""`torchlab.cuda`: GPUs, reached through CuPy.

Without CuPy or without a driver everything can be asked still: `is_available()` is False,
`device_count()` is 0, seeds do nothing, and what needs a device raises the class of error that
PyTorch's builds for the CPU raise. `torchlab.sim` has these names for an accelerator simulated on
host memory.

Source: https://docs.pytorch.org/docs/2.13/cuda.html
"""

from __future__ import annotations

import importlib
from typing import Any

from torchlab._core import device as _devices
from torchlab._core import legacy as _legacy
from torchlab._core.backends import cuda as _gpus
from torchlab._core.errors import OutOfMemoryError
from torchlab.cuda import memory, random, streams
from torchlab.cuda.devices import (
    AcceleratorError,
    CudaError,
    DeferredCudaCallError,
    can_device_access_peer,
    current_device,
    device,
    device_count,
    device_of,
    get_arch_list,
    get_device_capability,
    get_device_name,
    get_device_properties,
    get_gencode_flags,
    init,
    is_available,
    is_bf16_supported,
    is_initialized,
    is_tf32_supported,
    set_device,
    synchronize,
)
from torchlab.cuda.graphs import CUDAGraph, graph, is_current_stream_capturing
from torchlab.cuda.memory import (
    empty_cache,
    max_memory_allocated,
    max_memory_cached,
    max_memory_reserved,
    mem_get_info,
    memory_allocated,
    memory_cached,
    memory_reserved,
    memory_stats,
    memory_stats_as_nested_dict,
    reset_accumulated_memory_stats,
    reset_max_memory_allocated,
    reset_max_memory_cached,
    reset_peak_memory_stats,
)
from torchlab.cuda.random import (
    get_rng_state,
    get_rng_state_all,
    initial_seed,
    manual_seed,
    manual_seed_all,
    seed,
    seed_all,
    set_rng_state,
    set_rng_state_all,
)
from torchlab.cuda.streams import (
    Event,
    Stream,
    StreamContext,
    current_stream,
    default_stream,
    set_stream,
    stream,
)

has_half = True
has_magma = False
default_generators: tuple[Any, ...] = ()
"""Empty: GPUs draw from the generator of the CPU."""


class _TensorType(_legacy.tensortype):
    """The class of `torch.cuda.FloatTensor` and its like."""

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        count, why = _gpus.found()
        if not count:
            raise TypeError(
                f"type torch.cuda.{cls.__name__} not available. Torch not compiled with CUDA"
                f" enabled: {why}"
            )
        return super().__call__(*args, **kwargs)


_TYPED = {
    name: _TensorType(
        name,
        (),
        {
            "dtype": t.dtype,
            "_device": _devices.concrete(_devices.device("cuda")),
            "__module__": "torchlab.cuda",
        },
    )
    for name, t in _legacy.TYPED.items()
}
globals().update(_TYPED)


def __getattr__(name: str) -> Any:
    if name == "amp":
        return importlib.import_module("torchlab.cuda.amp")
    raise AttributeError(
        f"module 'torchlab.cuda' has no attribute '{name}'"
        + ("" if name.startswith("_") else ": that part of torch.cuda is missing from torchlab")
    )


__all__ = [
    "AcceleratorError",
    "CUDAGraph",
    "CudaError",
    "DeferredCudaCallError",
    "Event",
    "OutOfMemoryError",
    "Stream",
    "StreamContext",
    "can_device_access_peer",
    "current_device",
    "current_stream",
    "default_generators",
    "default_stream",
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
    "graph",
    "has_half",
    "has_magma",
    "init",
    "initial_seed",
    "is_available",
    "is_bf16_supported",
    "is_current_stream_capturing",
    "is_initialized",
    "is_tf32_supported",
    "manual_seed",
    "manual_seed_all",
    "max_memory_allocated",
    "max_memory_cached",
    "max_memory_reserved",
    "mem_get_info",
    "memory",
    "memory_allocated",
    "memory_cached",
    "memory_reserved",
    "memory_stats",
    "memory_stats_as_nested_dict",
    "random",
    "reset_accumulated_memory_stats",
    "reset_max_memory_allocated",
    "reset_max_memory_cached",
    "reset_peak_memory_stats",
    "seed",
    "seed_all",
    "set_device",
    "set_rng_state",
    "set_rng_state_all",
    "set_stream",
    "stream",
    "streams",
    "synchronize",
]
__all__ += list(_TYPED)

"""The GPUs: how many, which is the current one, what they are, and waiting for them.

Source: https://docs.pytorch.org/docs/2.13/cuda.html
"""

from __future__ import annotations

import threading
from dataclasses import dataclass
from types import TracebackType
from typing import Any

from torchlab._core import device as devices
from torchlab._core.backends import cuda as _gpus
from torchlab._core.tensor import Tensor

cupy = _gpus.cupy
Device = devices.device | str | int | None


class DeferredCudaCallError(Exception):
    """A call that had waited for the GPU's start failed."""


class CudaError(RuntimeError):
    """An error of the CUDA runtime, by its number."""

    def __init__(self, code: int) -> None:
        _gpus.require()
        super().__init__(f"{cupy.cuda.runtime.getErrorString(code)} ({code})")


class AcceleratorError(RuntimeError):
    """A kernel of an accelerator failed."""


def is_available() -> bool:
    """Whether there is a GPU: CuPy is installed and a driver answers."""
    return _gpus.device_count() > 0


def device_count() -> int:
    """The number of GPUs; 0 without CuPy or a driver."""
    return _gpus.device_count()


def is_initialized() -> bool:
    """Whether the GPU is in use by this process. CuPy starts at its first call, which asking for
    the number of GPUs is; so this is `is_available()`."""
    return is_available()


def init() -> None:
    """Start the GPU now rather than at its first use. AssertionError if there is none."""
    _gpus.require()


def index_of(device: Device, optional: bool = True) -> int:
    """The index of a device as users name it: None or "cuda" is the current one (if `optional`).

    ValueError for other devices.
    """
    if isinstance(device, int):
        return device
    if device is None:
        if optional:
            return current_device()
        raise ValueError("Expected a torch.device with a specified index or an integer, not None")
    d = devices.device(device)
    if d.type != "cuda":
        raise ValueError(f"Expected a cuda device, but got: {d}")
    if d.index is None:
        if optional:
            return current_device()
        raise ValueError(
            f"Expected a torch.device with a specified index or an integer, but got:{device}"
        )
    return d.index


def current_device() -> int:
    """The index of the device that CuPy's calls go to in this thread."""
    _gpus.require()
    return int(cupy.cuda.runtime.getDevice())


def set_device(device: Device) -> None:
    """Make `device` the current one of this thread; negative indices do nothing."""
    index = index_of(device, optional=False)
    if index >= 0:
        _gpus.require()
        cupy.cuda.runtime.setDevice(index)


class device:
    """`with torch.cuda.device(1):` makes it the current one inside. Negative: does nothing."""

    def __init__(self, device: Any) -> None:
        self.idx = index_of(device)
        self._before = threading.local()

    def __enter__(self) -> None:
        stack = self._before.__dict__.setdefault("stack", [])
        if self.idx < 0:
            stack.append(-1)
            return
        _gpus.require()
        stack.append(current_device())
        set_device(self.idx)

    def __exit__(
        self, type: type | None, value: BaseException | None, traceback: TracebackType | None
    ) -> None:
        set_device(self._before.stack.pop())


class device_of(device):
    """`with torch.cuda.device_of(tensor):` — the tensor's GPU, if any, is the current one."""

    def __init__(self, obj: Any) -> None:
        on_gpu = isinstance(obj, Tensor) and obj.is_cuda
        super().__init__(obj.device if on_gpu else -1)


def synchronize(device: Device = None) -> None:
    """Wait until the GPU has done all work that was given to it."""
    _gpus.require()
    cupy.cuda.Device(index_of(device)).synchronize()


@dataclass(frozen=True)
class CudaDeviceProperties:
    """What a GPU is."""

    name: str
    major: int
    minor: int
    total_memory: int
    multi_processor_count: int
    warp_size: int


def _raw(device: Device) -> dict[str, Any]:
    _gpus.require()
    count = device_count()
    index = index_of(device)
    if not 0 <= index < count:
        raise AssertionError(f"Invalid device id {index}: there are {count} GPUs")
    return dict(cupy.cuda.runtime.getDeviceProperties(index))


def get_device_properties(device: Device = None) -> CudaDeviceProperties:
    """Name, capability, memory in bytes and number of processors."""
    raw = _raw(device)
    return CudaDeviceProperties(
        raw["name"].decode(errors="replace"),
        raw["major"],
        raw["minor"],
        raw["totalGlobalMem"],
        raw["multiProcessorCount"],
        raw["warpSize"],
    )


def get_device_name(device: Device = None) -> str:
    """The GPU's name."""
    return get_device_properties(device).name


def get_device_capability(device: Device = None) -> tuple[int, int]:
    """The (major, minor) of the GPU's compute capability."""
    properties = get_device_properties(device)
    return properties.major, properties.minor


def can_device_access_peer(device: Device, peer_device: Device) -> bool:
    """Whether one GPU reads the other's memory directly."""
    _gpus.require()
    pair = index_of(device, optional=False), index_of(peer_device, optional=False)
    return bool(cupy.cuda.runtime.deviceCanAccessPeer(*pair))


def is_bf16_supported(including_emulation: bool = True) -> bool:
    """Whether kernels can compute in bfloat16: NumPy and CuPy emulate it everywhere, so this is
    whether there is a GPU; without emulation, one of capability 8.0 or later."""
    if not is_available():
        return False
    return including_emulation or get_device_capability()[0] >= 8


def is_tf32_supported() -> bool:
    """Whether the GPU has TF32 (capability 8.0 or later)."""
    return is_available() and get_device_capability()[0] >= 8


def get_arch_list() -> list[str]:
    """The architectures that kernels were compiled for in advance: none, NVRTC compiles them for
    the GPU that is there."""
    return []


def get_gencode_flags() -> str:
    """The flags of nvcc for kernels compiled in advance: none."""
    return ""

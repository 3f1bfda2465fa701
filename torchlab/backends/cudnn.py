"""`torchlab.backends.cudnn`: the switches of cuDNN, which torchlab does not use: on GPUs too it
computes with CuPy and its own kernels, so they change nothing.

Source: https://docs.pytorch.org/docs/2.13/backends.html#torch-backends-cudnn
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

from torchlab._core import dtype as dt
from torchlab.backends import _flags

CUDNN_TENSOR_DTYPES = {dt.float16, dt.float32, dt.float64}


def is_available() -> bool:
    """Whether cuDNN is used: no."""
    return False


def version() -> int | None:
    """The version of cuDNN: None, it is not used."""
    return None


def is_acceptable(tensor: Any) -> bool:
    """Whether cuDNN would work on the tensor: no."""
    return False


def set_flags(
    _enabled: bool | None = None,
    _benchmark: bool | None = None,
    _benchmark_limit: int | None = None,
    _deterministic: bool | None = None,
    _allow_tf32: bool | None = None,
) -> tuple[Any, ...]:
    """Set switches (None leaves one as it is) and return what they were."""
    return _flags.set_all(_module, _named(locals()))


def flags(
    enabled: bool = False,
    benchmark: bool = False,
    benchmark_limit: int = 10,
    deterministic: bool = False,
    allow_tf32: bool = True,
) -> AbstractContextManager[None]:
    """A context in which the switches have these values."""
    return _flags.kept(_module, _named(locals()))


def _named(values: dict[str, Any]) -> dict[str, Any]:
    return {name.removeprefix("_"): value for name, value in values.items()}


class CudnnModule(_flags.Switches):
    """The module, with its switches."""

    enabled = _flags.switch("enabled", True, bool, "Whether cuDNN may be used.")
    benchmark = _flags.switch("benchmark", False, bool, "Whether it looks for the fastest way.")
    benchmark_limit = _flags.switch(
        "benchmark_limit", None, (int, type(None)), "How many ways it tries."
    )
    deterministic = _flags.switch("deterministic", False, bool, "Whether only repeatable ways.")
    allow_tf32 = _flags.switch("allow_tf32", True, bool, "Whether float32 may be rounded to TF32.")


_module = _flags.become(__name__, CudnnModule)

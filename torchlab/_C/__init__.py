"""The few names of `torch._C` that programs with tensor subclasses use.

Source: https://docs.pytorch.org/docs/2.13/notes/extending.html
"""

from __future__ import annotations

import importlib
import sys
from typing import Any

from torchlab._core.dispatch import registry
from torchlab._core.dispatch.levels import LEVELS
from torchlab._core.dispatch.modes import disabled_function as _disabled_torch_function_impl
from torchlab._core.dispatch.python_key import disabled as _disabled_torch_dispatch_impl
from torchlab._core.errors import LinAlgError as _LinAlgError
from torchlab._core.generator import Generator
from torchlab._core.tape import TLS, storage_of
from torchlab._core.tensor import Tensor
from torchlab.overrides import DisableTorchFunction, DisableTorchFunctionSubclass

__all__ = [
    "DisableTorchFunction",
    "DisableTorchFunctionSubclass",
    "Generator",
    "_LinAlgError",
    "_TensorMeta",
    "_are_functorch_transforms_active",
    "_disabled_torch_dispatch_impl",
    "_disabled_torch_function_impl",
    "_functorch",
    "_get_default_device",
    "_get_tracing_state",
    "_is_alias_of",
    "_is_torch_function_mode_enabled",
    "_log_api_usage_once",
]


def _get_tracing_state() -> Any:
    """What `torch.jit.trace` records with in this thread; None when nothing is traced."""
    jit = sys.modules.get("torchlab.jit._state")  # higher up: where it is not loaded, nobody traces
    return None if jit is None else jit.STATE.recorder


def _are_functorch_transforms_active() -> bool:
    """Whether a transform of `torch.func` runs a function in this thread."""
    return bool(LEVELS.running or LEVELS.reverse)


_TensorMeta = type(Tensor)


def _log_api_usage_once(event: str) -> None:
    """PyTorch counts for those who run it which parts are used; nobody is told here."""


def _parse_to(*args: Any, **kwargs: Any) -> tuple[Any, Any, bool, Any]:
    """The device, dtype, non_blocking and memory format of the arguments of `Module.to`."""
    conversion = importlib.import_module("torchlab.nn._conversion")  # higher up
    return conversion._parse_to(args, kwargs)  # type: ignore[no-any-return]


def _is_torch_function_mode_enabled() -> bool:
    """Whether a mode that is told of calls of functions is on in this thread."""
    return bool(TLS.function_modes)


def _is_alias_of(tensor: Any, other: Any) -> bool:
    """Whether two tensors share their storage."""
    return storage_of(tensor) is storage_of(other)


def _get_default_device() -> str:
    """The device whose tensors print no `device=`, whatever `torch.set_default_device` says."""
    return "cpu"


def __getattr__(name: str) -> Any:
    if name == "_functorch":  # higher up
        return importlib.import_module("torchlab._C._functorch")
    if name == "PyTorchFileReader":  # higher up
        return importlib.import_module("torchlab.serialization.file_reader").PyTorchFileReader
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")


class _Bound:
    """The functions of a name space by the names under which PyTorch binds them:
    `torch._C._nn.linear` is `torch.nn.functional.linear`. Graphs of `torch.fx` name them so."""

    def __init__(self, space: str, prefix: str = "", others: Any = ()) -> None:
        self._space, self._prefix, self._others = space, prefix, dict(others)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or not name.startswith(self._prefix):
            raise AttributeError(name)
        public = self._others.get(name, name[len(self._prefix) :])
        value = self.__dict__[name] = registry.function(public, self._space)
        return value


_nn = _Bound("nn.functional", others={"log_sigmoid": "logsigmoid"})
vars(_nn)["_parse_to"] = _parse_to
_linalg = _Bound("linalg", "linalg_")
_fft = _Bound("fft", "fft_")
_special = _Bound("special", "special_")

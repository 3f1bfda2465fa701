"""The few names of `torch._C` that programs with tensor subclasses use.

Source: https://docs.pytorch.org/docs/2.13/notes/extending.html
"""

from __future__ import annotations

from typing import Any

from torchlab._core.dispatch import registry
from torchlab._core.dispatch.modes import disabled_function as _disabled_torch_function_impl
from torchlab._core.dispatch.python_key import disabled as _disabled_torch_dispatch_impl
from torchlab._core.errors import LinAlgError as _LinAlgError
from torchlab._core.generator import Generator
from torchlab.overrides import DisableTorchFunction, DisableTorchFunctionSubclass

__all__ = [
    "DisableTorchFunction",
    "DisableTorchFunctionSubclass",
    "Generator",
    "_LinAlgError",
    "_disabled_torch_dispatch_impl",
    "_disabled_torch_function_impl",
]


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
_linalg = _Bound("linalg", "linalg_")
_fft = _Bound("fft", "fft_")
_special = _Bound("special", "special_")

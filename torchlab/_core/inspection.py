"""What Python objects and this installation are: `torch.typename`, `torch.has_lapack`.

Source: https://docs.pytorch.org/docs/2.13/torch.html
"""

from __future__ import annotations

import importlib
from types import ModuleType
from typing import Any

import numpy as np

from torchlab._core import device as devices
from torchlab._core.lazy import lazy
from torchlab._core.tensor import Tensor

toolchain = lazy("torchlab._core.codegen.toolchain")


def typename(obj: Any, /) -> str:
    """The full name of an object's type: "torch.FloatTensor" for tensors, the object's own name if
    it is a class or a function."""
    if isinstance(obj, Tensor):
        return obj.type()
    named = obj if hasattr(obj, "__qualname__") else type(obj)
    module = getattr(named, "__module__", None) or ""
    name = named.__qualname__
    root, dot, rest = module.partition(".")
    module = ("torch" if root == "torchlab" else root) + dot + rest
    return name if module in ("", "builtins") else f"{module}.{name}"


def has_mkl() -> bool:
    """Whether NumPy's matrix products are MKL's."""
    blas = np.show_config(mode="dicts")["Build Dependencies"]["blas"]  # type: ignore[index]
    return "mkl" in str(blas["name"]).lower()


def compiled_with_cxx11_abi() -> bool:
    """True: generated C++ is compiled with the compiler's default, which is the C++11 ABI."""
    return True


def has_openmp() -> bool:
    """Whether generated kernels use OpenMP: there is a compiler that has it."""
    found = toolchain.find_compiler()
    return found is not None and "-fopenmp" in found.flags


def get_device_module(device: Any = None) -> ModuleType:
    """The module of a device's kind: torch.cpu for "cpu". Without a device the accelerator's, or
    torch.cpu if there is none. RuntimeError for a kind that has none ("meta")."""
    kind = "cpu" if device is None else devices.device(device).type
    try:
        return importlib.import_module(f"torchlab.{kind}")
    except ModuleNotFoundError as error:
        if error.name != f"torchlab.{kind}":
            raise
        raise RuntimeError(
            f"Device '{kind}' does not have a corresponding module registered as 'torch.{kind}'."
        ) from None

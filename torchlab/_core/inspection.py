"""What Python objects and this installation are: `torch.typename`, `torch.has_lapack`.

Source: https://docs.pytorch.org/docs/2.13/torch.html
"""

from __future__ import annotations

from typing import Any

import numpy as np

from torchlab._core.tensor import Tensor


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

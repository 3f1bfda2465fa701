"""Matrix products by MKL, where the extra `fast` has installed it.

NumPy's wheels bring OpenBLAS; on Intel's processors MKL is up to a third faster, on AMD's it is
not, and is not used there (`TORCHLAB_MKL=1` uses it anyway, `0` never). `product` calls its
`cblas_?gemm` through ctypes for matrices large enough that the call (2 µs) does not matter. NumPy
computes everything else.

MKL's threads are those of GNU's OpenMP, the runtime of torchlab's generated kernels and of oneDNN:
two runtimes in one process would spin against each other. In forked children, where OpenMP's
threads are missing, NumPy computes.
Source: https://www.intel.com/content/www/us/en/docs/onemkl/developer-reference-c/2024-2/cblas-gemm-001.html
"""

from __future__ import annotations

import ctypes
import os
import pathlib
import sys
import threading
from typing import Any

import numpy as np

LARGE = 1 << 20
"""Multiplications of a product from which MKL is called."""

_ROW_MAJOR, _PLAIN, _TRANSPOSED = 101, 111, 112
_GNU = 3  # mkl_set_threading_layer
_lock = threading.Lock()
_found: list[Any] = []


def library() -> Any:
    """(gemm by type, process id) of the library, or None; looked for once."""
    if not _found:
        with _lock:
            if not _found:
                _found.append(_load())
    return _found[0]


def _intel() -> bool:
    if sys.platform == "linux":
        with open("/proc/cpuinfo") as f:
            return "GenuineIntel" in f.read(1000)
    return "GenuineIntel" in os.environ.get("PROCESSOR_IDENTIFIER", "")


def _load() -> Any:
    names = {"linux": ("lib", "libmkl_rt.so.3"), "win32": ("Library/bin", "mkl_rt.3.dll")}
    wanted = os.environ.get("TORCHLAB_MKL")
    if sys.platform not in names or wanted == "0" or (wanted != "1" and not _intel()):
        return None
    folder, name = names[sys.platform]
    path = pathlib.Path(sys.prefix) / folder / name
    if not path.exists():
        return None
    lib = ctypes.CDLL(str(path))
    if sys.platform == "linux":
        lib.MKL_Set_Threading_Layer(_GNU)
    calls = {}
    for char, letter, real in (("f", "s", ctypes.c_float), ("d", "d", ctypes.c_double)):
        gemm = getattr(lib, f"cblas_{letter}gemm")
        size, pointer = ctypes.c_int, ctypes.c_void_p
        gemm.argtypes = [size] * 6 + [real, pointer, size, pointer, size, real, pointer, size]
        gemm.restype = None
        calls[char] = gemm
    return calls, os.getpid()


def _side(a: np.ndarray) -> tuple[int, int] | None:
    """(transposed or not, leading dimension) of a matrix whose rows or columns lie together."""
    size = a.itemsize
    down, right = a.strides
    n, m = a.shape
    if right == size and down >= m * size and down % size == 0:
        return _PLAIN, down // size
    if down == size and right >= n * size and right % size == 0:
        return _TRANSPOSED, right // size
    return None


def product(a: np.ndarray, b: np.ndarray) -> np.ndarray | None:
    """a @ b, (n, k) @ (k, m) → (n, m), row-major; None where NumPy should compute it."""
    n, k = a.shape
    m = b.shape[1]
    if n * k * m < LARGE or max(n, k, m) > 2**31 - 1:
        return None
    lib = library()
    if lib is None or lib[1] != os.getpid():
        return None
    gemm = lib[0].get(a.dtype.char)
    left, right = _side(a), _side(b)
    if gemm is None or b.dtype.char != a.dtype.char or left is None or right is None:
        return None
    out = np.empty((n, m), a.dtype)
    gemm(
        _ROW_MAJOR, left[0], right[0], n, m, k, 1.0, a.__array_interface__["data"][0], left[1],
        b.__array_interface__["data"][0], right[1], 0.0, out.__array_interface__["data"][0], m,
    )  # fmt: skip
    return out

"""How many threads the numerical work takes: `torch.set_num_threads` and its neighbours.

The work that runs on several threads is BLAS's (matrix products, LAPACK). NumPy bundles OpenBLAS,
SciPy a second copy; both export functions that get and set their number of threads. They are looked
up in the shared libraries that this process has loaded; where there is none (Apple's Accelerate,
MKL under another name), setting raises and names what was looked for.

Generated kernels take as many threads as the machine has processors, at most `limit`. Everything
else is NumPy's and runs on the thread that calls it.

Source: https://docs.pytorch.org/docs/2.13/generated/torch.set_num_threads.html
"""

from __future__ import annotations

import ctypes
import os
import pathlib
import sys
from collections.abc import Iterator
from numbers import Integral
from typing import Any

import numpy as np

from torchlab._core import lazy

# NumPy's and SciPy's wheels rename OpenBLAS's symbols; conda's and Debian's do not.
_PREFIXES = ("scipy_openblas", "openblas", "MKL")
_SUFFIXES = ("64_", "_64", "64", "", "_")

limit = sys.maxsize
"""What `set_num_threads` has set: the most threads that a generated kernel takes."""
_wanted: int | None = None
_interop: int | None = None
_forked = False


def _after_fork() -> None:
    """A forked child has lost OpenMP's threads; a kernel that waited for them would hang."""
    global limit, _forked
    limit, _forked = 1, True


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


def _files() -> list[str]:
    """The shared libraries that may hold a BLAS: those beside NumPy and SciPy, those loaded."""
    found: dict[str, None] = {}
    site = pathlib.Path(np.__file__).parents[1]
    for folder in ("numpy.libs", "numpy/.dylibs", "scipy.libs", "scipy/.dylibs"):
        if folder.startswith("scipy") and "scipy" not in sys.modules:
            continue
        for path in sorted((site / folder).glob("*openblas*")):
            found[str(path)] = None
    maps = pathlib.Path("/proc/self/maps")
    if maps.exists():
        for line in maps.read_text().splitlines():
            path_text = line.partition("/")[2]
            name = path_text.rpartition("/")[2]
            if "openblas" in name or name.startswith("libmkl_rt"):
                found["/" + path_text] = None
    return list(found)


def _controls() -> Iterator[tuple[Any, Any]]:
    """(get, set) of each loaded BLAS."""
    for path in _files():
        # RTLD_NOLOAD: only what the process has loaded already counts.
        mode = os.RTLD_NOLOAD | os.RTLD_NOW if hasattr(os, "RTLD_NOLOAD") else 0
        try:
            library = ctypes.CDLL(path, mode=mode)
        except OSError:
            continue  # bundled, but not loaded into this process
        for prefix in _PREFIXES:
            pair = next(
                (
                    (getattr(library, get), getattr(library, set_))
                    for suffix in _SUFFIXES
                    for get, set_ in [
                        (f"{prefix}_get_num_threads{suffix}", f"{prefix}_set_num_threads{suffix}")
                        if prefix != "MKL"
                        else ("MKL_Get_Max_Threads", "MKL_Set_Num_Threads")
                    ]
                    if hasattr(library, get) and hasattr(library, set_)
                ),
                None,
            )
            if pair:
                pair[0].restype, pair[1].argtypes = ctypes.c_int, [ctypes.c_int]
                yield pair
                break


def _positive(n: Any, function: str) -> int:
    if isinstance(n, bool) or not isinstance(n, Integral):
        raise RuntimeError(f"{function} expects an int, but got {type(n).__name__}")
    if n <= 0:
        raise RuntimeError(f"{function} expects a positive integer, not {n}")
    return int(n)


def get_num_threads() -> int:
    """The threads that a matrix product may take; 1 where no BLAS with such a control is found."""
    return max((get() for get, _ in _controls()), default=1)


def _again(module: str) -> None:
    """SciPy brings a BLAS of its own, perhaps after the number was set."""
    if _wanted is not None and module.startswith("scipy"):
        for _, change in _controls():
            change(_wanted)


lazy.WHEN_LOADED.append(_again)


def set_num_threads(num: int) -> None:
    """Let matrix products and generated kernels take `num` threads. RuntimeError where BLAS has no
    control for it."""
    global limit, _wanted
    n = _positive(num, "set_num_threads")
    changed = False
    for _, change in _controls():
        change(n)
        changed = True
    if not changed and n != 1:
        raise RuntimeError(
            "set_num_threads: no BLAS that lets its threads be set is loaded (looked for OpenBLAS"
            " and MKL); set the environment variable of your BLAS before Python starts"
        )
    limit = 1 if _forked else n
    _wanted = n


def get_num_interop_threads() -> int:
    """The threads on which independent operators may run: what was set, else the CPU count.
    torchlab runs operators on the thread that calls them."""
    return _interop if _interop is not None else max(1, (os.cpu_count() or 1))


def set_num_interop_threads(num: int) -> None:
    """Keep the number; it may be set once, as in PyTorch."""
    global _interop
    n = _positive(num, "set_num_interop_threads")
    if _interop is not None:
        raise RuntimeError(
            "Error: cannot set number of interop threads after parallel work has started or"
            " set_num_interop_threads called"
        )
    _interop = n


def set_flush_denormal(mode: bool, /) -> bool:
    """False: neither NumPy nor Python offers a way to flush denormal numbers to zero, and nothing
    has changed. (PyTorch returns False on CPUs without that mode.)"""
    if not isinstance(mode, bool):
        raise RuntimeError(f"flush_denormal expects a bool, but got {type(mode).__name__}")
    return False

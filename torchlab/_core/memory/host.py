"""How the C library keeps host memory that is freed.

Note: freed memory stays
    Left to itself, glibc gives large blocks back to the system as soon as they are freed, and the
    next step of a training loop gets the same memory page by page, every page by a fault: a tenth
    to a third of the step's time. Told once to keep up to `KEPT` bytes at the end of the heap, it
    hands the same pages out again, as the caching allocator does on accelerators. More than that
    goes back, and so do blocks of `SEPARATE` bytes and more, the largest that glibc would learn to
    keep by itself.

    Nothing is changed where the user has decided: by one of glibc's own environment variables, or
    with `TORCHLAB_KEEP_MEMORY=0`. Other C libraries have no such setting.
Source: https://man7.org/linux/man-pages/man3/mallopt.3.html
"""

from __future__ import annotations

import ctypes
import os
import sys

KEPT = 256 << 20
SEPARATE = 32 << 20
_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # <malloc.h>
_GLIBC = ("MALLOC_TRIM_THRESHOLD_", "MALLOC_MMAP_THRESHOLD_", "MALLOC_TOP_PAD_", "GLIBC_TUNABLES")


def keep_freed() -> bool:
    """Tell the C library to keep freed memory; whether it took the advice. 60 µs."""
    if sys.platform != "linux" or os.environ.get("TORCHLAB_KEEP_MEMORY") == "0":
        return False
    if any(name in os.environ for name in _GLIBC):
        return False
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is None:
        return False
    # Either call ends the adaptation to what is freed, so both are needed.
    return bool(mallopt(_MMAP_THRESHOLD, SEPARATE)) and bool(mallopt(_TRIM_THRESHOLD, KEPT))

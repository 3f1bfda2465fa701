"""Whether there are GPUs: CuPy reaches them, if it is installed and a driver answers.

Nothing here imports CuPy before it is known to be installed; the answer is kept, since a GPU does
not come while a process runs.
"""

from __future__ import annotations

import functools
import importlib.util
import sys

from torchlab._core.lazy import lazy

cupy = lazy("cupy", "pip install 'torchlab[cuda12]' or 'torchlab[cuda13]'")


@functools.lru_cache(maxsize=1)
def found() -> tuple[int, str]:
    """(number of GPUs, why there is none)."""
    if "cupy" not in sys.modules and importlib.util.find_spec("cupy") is None:
        return 0, (
            "torchlab reaches GPUs through CuPy, which is not installed (pip install"
            " 'torchlab[cuda12]' or 'torchlab[cuda13]')"
        )
    try:
        count = cupy.cuda.runtime.getDeviceCount()
    except Exception as e:  # CuPy raises its own classes, a broken driver also OSError, ImportError
        return 0, f"CuPy is installed but reaches no GPU ({type(e).__name__}: {e})"
    return count, "" if count else "CuPy is installed but sees no GPU"


def device_count() -> int:
    """The number of GPUs."""
    return found()[0]


def require() -> None:
    """Raise AssertionError, as PyTorch's builds without CUDA do, if there is no GPU."""
    count, why = found()
    if not count:
        raise AssertionError(
            f"Torch not compiled with CUDA enabled: {why}. Use device='cpu', or device='sim', an"
            " accelerator simulated on host memory"
        )

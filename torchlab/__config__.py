"""`torchlab.__config__`: what the numerical work is done with, as text.

Source: https://docs.pytorch.org/docs/2.13/config_mod.html
"""

from __future__ import annotations

import os
import platform

import numpy as np

from torchlab._core import inspection, threads
from torchlab._core.backends import mkl, onednn
from torchlab._core.codegen import toolchain
from torchlab._version import __version__


def _blas() -> str:
    facts = np.show_config(mode="dicts")["Build Dependencies"]["blas"]  # type: ignore[index]
    return f"{facts.get('name', 'none')} {facts.get('version', '')}".strip()


def _compiler() -> str:
    found = toolchain.find_compiler()
    return "none (kernels run in Python)" if found is None else " ".join(found.command)


def show() -> str:
    """Versions, BLAS, oneDNN and the compiler of generated kernels; one line each."""
    lines = [
        f"torchlab {__version__} runs on:",
        f"{platform.python_implementation()} {platform.python_version()}, {platform.machine()}",
        f"NumPy {np.__version__}",
        f"BLAS: {_blas()}",
        f"MKL: {'yes' if mkl.library() is not None else 'no'}",
        f"oneDNN: {'yes' if onednn.library() is not None else 'no'}",
        f"C++ compiler: {_compiler()}",
    ]
    return "\n  - ".join(lines) + "\n"


def parallel_info() -> str:
    """How many threads the numerical work takes, and what decides it."""
    lines = [
        "torchlab/Parallel:",
        f"torch.get_num_threads() : {threads.get_num_threads()}",
        f"torch.get_num_interop_threads() : {threads.get_num_interop_threads()}",
        f"OpenMP in generated kernels : {'yes' if inspection.has_openmp() else 'no'}",
        f"os.cpu_count() : {os.cpu_count()}",
        "Environment variables:",
        f"\tOMP_NUM_THREADS : {os.environ.get('OMP_NUM_THREADS', '[not set]')}",
        f"\tMKL_NUM_THREADS : {os.environ.get('MKL_NUM_THREADS', '[not set]')}",
    ]
    return "\n\t".join(lines[:6]) + "\n" + "\n".join(lines[5:]) + "\n"

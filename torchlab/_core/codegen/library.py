"""C++ that stands beside NumPy code for the same: compiled where that is possible."""

from __future__ import annotations

import ctypes

from torchlab._core.codegen import toolchain
from torchlab._core.codegen.cpp import HEADER


def library(code: str, name: str) -> ctypes.CDLL | None:
    """`code` compiled, from the cache if it is there. None where there is no compiler, or where it
    failed (said once): the caller has NumPy code then."""
    compiler = toolchain.find_compiler()
    if compiler is None:
        return None
    source = HEADER.format(flags=" ".join(compiler.flags)) + code
    try:
        return toolchain.build(source, name, compiler)[0]
    except toolchain.CompileError as e:
        toolchain.say_once("compile error", f"torchlab: {e}\nIt runs as NumPy code instead.")
        return None


__all__ = ["library"]

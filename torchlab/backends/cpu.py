"""`torchlab.backends.cpu`: the vectors of this CPU.

Source: https://docs.pytorch.org/docs/2.13/backends.html#torch-backends-cpu
"""

from __future__ import annotations

from torchlab.cpu import get_capabilities


def get_cpu_capability() -> str:
    """ "AVX512", "AVX2" or "DEFAULT": the widest vectors that generated kernels can use here."""
    able = get_capabilities()
    if all(able.get(f"avx512_{part}") for part in ("f", "vl", "bw", "dq")):
        return "AVX512"
    return "AVX2" if able.get("avx2") and able.get("fma3") else "DEFAULT"

"""`torchlab.functional`: functions that PyTorch writes in Python, by the module that PyTorch has
them in.

Source: https://docs.pytorch.org/docs/2.13/torch.html
"""

from __future__ import annotations

from typing import Any

from torchlab._core.dispatch import registry

_NAMES = """
    atleast_1d atleast_2d atleast_3d block_diag broadcast_shapes broadcast_tensors cartesian_prod
    cdist chain_matmul einsum istft lu meshgrid norm pca_lowrank split stft svd_lowrank tensordot
    unique unique_consecutive unravel_index
    """.split()
__all__ = list(_NAMES)


def __getattr__(name: str) -> Any:
    if name not in _NAMES:
        raise AttributeError(f"module 'torchlab.functional' has no attribute '{name}'")
    value = registry.function(name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_NAMES})

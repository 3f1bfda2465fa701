"""What users hand to a SummaryWriter, as NumPy arrays."""

from __future__ import annotations

from typing import Any

import numpy as np

from torchlab._core.tensor import Tensor


def to_array(x: Any) -> np.ndarray:
    """An array, a tensor (on any device, with or without history) or a number as a NumPy array; a
    number has shape (1,). NotImplementedError for anything else."""
    if isinstance(x, np.ndarray):
        return x
    if np.isscalar(x):
        return np.array([x])
    if isinstance(x, Tensor):
        host = x.detach().cpu()
        if host.dtype.itemsize == 2 and host.is_floating_point():  # NumPy has no bfloat16
            host = host.float()
        found: np.ndarray = host.numpy()
        return found
    raise NotImplementedError(f"Got {type(x)}, but numpy array or torch tensor are expected.")


__all__ = ["to_array"]

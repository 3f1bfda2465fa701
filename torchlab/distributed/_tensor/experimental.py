"""An older path of what `torch.distributed.tensor` tries out."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

__all__ = ["implicit_replication"]


@contextlib.contextmanager
def implicit_replication() -> Iterator[None]:
    """Let plain tensors stand beside a DTensor as if every process had them. No tensor is a DTensor
    here, so all may stand together anyway."""
    yield

"""Data pipes with indices."""

from __future__ import annotations

from torchlab.utils.data.datapipes.map.pipes import (
    Batcher,
    Concater,
    Mapper,
    SequenceWrapper,
    Shuffler,
    Zipper,
)

__all__ = ["Batcher", "Concater", "Mapper", "SequenceWrapper", "Shuffler", "Zipper"]

"""Streams of other libraries as datasets of a loader.

Source: https://huggingface.co/docs/datasets/stream
"""

from __future__ import annotations

import copy
import itertools
from collections.abc import Iterable, Iterator
from typing import Any

from torchlab.utils.data.dataset import IterableDataset
from torchlab.utils.data.state import stateful
from torchlab.utils.data.worker import get_worker_info

__all__ = ["IterableDatasetAdapter"]


class IterableDatasetAdapter(IterableDataset[Any]):
    """Anything that can be iterated over, again for every pass, as an `IterableDataset`: the
    streams of Hugging Face's `datasets` are meant. (Its datasets with indices need nothing.)

    With workers, each takes shards of its own if the source has as many (`num_shards` and
    `shard(num_shards=, index=)`), else every n-th sample. A pass is taken up by the source's
    `state_dict` where it has one, else by leaving out what was given.
    """

    def __init__(self, source: Iterable[Any]) -> None:
        if isinstance(source, Iterator) or not isinstance(source, Iterable):
            raise TypeError(
                "IterableDatasetAdapter: the source has to be iterable anew for every pass, got"
                f" {type(source).__name__}"
            )
        self.source: Any = source
        self._part: Any = None
        self._count = 0
        self._resume: dict[str, Any] | None = None

    def __iter__(self) -> Iterator[Any]:
        info = get_worker_info()
        part, start, step = self.source, 0, 1
        if info is not None and info.num_workers > 1:
            if getattr(part, "num_shards", 0) >= info.num_workers and hasattr(part, "shard"):
                part = part.shard(num_shards=info.num_workers, index=info.id)
            else:
                start, step = info.id, info.num_workers
        saved, self._resume = self._resume, None
        self._part, self._count = part, 0
        skip = start
        if saved is not None:
            self._count = saved["count"]
            if saved["source"] is not None:
                # Hugging Face's stream, and what is made of it, begins later passes there, too:
                # only a copy is told.
                part = self._part = copy.deepcopy(part)
                part.load_state_dict(copy.deepcopy(saved["source"]))
                skip = step - 1 if self._count else start
            else:
                skip = start + self._count * step
        return self._walk(itertools.islice(part, skip, None, step))

    def _walk(self, stream: Iterator[Any]) -> Iterator[Any]:
        for sample in stream:
            self._count += 1
            yield sample

    def __len__(self) -> int:
        return len(self.source)

    def set_epoch(self, epoch: int) -> None:
        """Tell the source which pass it is."""
        self.source.set_epoch(epoch)

    def state_dict(self) -> dict[str, Any]:
        """Where the pass is."""
        if self._resume is not None:
            return self._resume
        part = self.source if self._part is None else self._part
        told = copy.deepcopy(part.state_dict()) if self._count and stateful(part) else None
        return {"count": self._count, "source": told}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Let the next pass go on where that state was."""
        self._resume = dict(state_dict)

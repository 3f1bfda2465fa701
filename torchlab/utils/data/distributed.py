"""Each process its part of a dataset: `DistributedSampler`.

Source: https://docs.pytorch.org/docs/2.13/data.html#torch.utils.data.distributed.DistributedSampler
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from torchlab._core.dispatch.registry import aten
from torchlab._core.generator import Generator
from torchlab._core.lazy import lazy
from torchlab.utils.data.sampler import Sampler

distributed = lazy("torchlab.distributed")

__all__ = ["DistributedSampler"]


class DistributedSampler(Sampler):
    """Indices rank, rank + n, rank + 2 n … of a dataset, shuffled anew for every epoch.

    num_replicas, rank: the number of processes n and this one's; by default the default group's.
    seed: the same in all processes; `set_epoch` changes the order.
    drop_last: whether the rest that cannot be shared evenly is left out; else indices from the
        beginning are taken twice.
    """

    def __init__(
        self,
        dataset: Any,
        num_replicas: int | None = None,
        rank: int | None = None,
        shuffle: bool = True,
        seed: int = 0,
        drop_last: bool = False,
    ) -> None:
        n = distributed.get_world_size() if num_replicas is None else num_replicas
        rank = distributed.get_rank() if rank is None else rank
        if not 0 <= rank < n:
            raise ValueError(f"Invalid rank {rank}, rank should be in the interval [0, {n - 1}]")
        self.dataset = dataset
        self.num_replicas = n
        self.rank = rank
        self.epoch = 0
        self.drop_last = drop_last
        size = len(dataset)
        even = not drop_last or size % n == 0
        self.num_samples = math.ceil(size / n) if even else math.ceil((size - n) / n)
        self.total_size = self.num_samples * n
        self.shuffle = shuffle
        self.seed = seed

    def __iter__(self) -> Iterator[int]:
        size = len(self.dataset)
        if self.shuffle:
            g = Generator().manual_seed(self.seed + self.epoch)
            order = aten.randperm(size, generator=g).tolist()
        else:
            order = list(range(size))
        if not self.drop_last and order:
            missing = self.total_size - size
            order += (order * math.ceil(missing / size))[:missing]
        return iter(order[self.rank : self.total_size : self.num_replicas])

    def __len__(self) -> int:
        return self.num_samples

    def set_epoch(self, epoch: int) -> None:
        """Take the order of that epoch from the next iteration on."""
        self.epoch = epoch

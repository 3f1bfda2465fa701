"""Which samples come, and in which order: shuffling, samplers, shares for workers."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

from torchlab.utils.data import sampler as samplers
from torchlab.utils.data.datapipes._common import need_length
from torchlab.utils.data.datapipes._decorators import functional_datapipe
from torchlab.utils.data.datapipes.datapipe import IterDataPipe
from torchlab.utils.data.datapipes.iter.grouping import UnBatcher


@functional_datapipe("shuffle")
class ShufflerIterDataPipe(IterDataPipe[Any]):
    """A random order, as far as a buffer of `buffer_size` samples allows. unbatch_level: take
    batches apart first, see `unbatch`."""

    def __init__(
        self, datapipe: IterDataPipe[Any], *, buffer_size: int = 10000, unbatch_level: int = 0
    ) -> None:
        if buffer_size <= 0:
            raise AssertionError("buffer_size should be larger than 0")
        self.datapipe = datapipe if unbatch_level == 0 else UnBatcher(datapipe, unbatch_level)
        self.buffer_size = buffer_size
        self._enabled = True
        self._seed: int | None = None
        self._rng = random.Random()

    def set_shuffle(self, shuffle: bool = True) -> ShufflerIterDataPipe:
        """Switch it on or off."""
        self._enabled = shuffle
        return self

    def set_seed(self, seed: int) -> ShufflerIterDataPipe:
        """The seed of the next pass; by default one is drawn."""
        self._seed = seed
        return self

    def reset(self) -> None:
        if self._enabled:
            seed = samplers.drawn_seed() if self._seed is None else self._seed
            self._rng.seed(seed)
            self._seed = None

    def __iter__(self) -> Iterator[Any]:
        if not self._enabled:
            yield from self.datapipe
            return
        buffer: list[Any] = []
        for x in self.datapipe:
            if len(buffer) == self.buffer_size:
                i = self._rng.randint(0, len(buffer) - 1)
                chosen, buffer[i] = buffer[i], x
                yield chosen
            else:
                buffer.append(x)
        while buffer:
            yield buffer.pop(self._rng.randint(0, len(buffer) - 1))

    def __len__(self) -> int:
        return need_length(self, self.datapipe)


class SamplerIterDataPipe(IterDataPipe[Any]):
    """What `sampler(data_source=datapipe, ...)` gives."""

    def __init__(
        self,
        datapipe: IterDataPipe[Any],
        sampler: Any = samplers.SequentialSampler,
        sampler_args: tuple[Any, ...] | None = None,
        sampler_kwargs: dict[str, Any] | None = None,
    ) -> None:
        self.datapipe = datapipe
        self.sampler_args = sampler_args or ()
        self.sampler_kwargs = {**(sampler_kwargs or {}), "data_source": datapipe}
        self.sampler = sampler(*self.sampler_args, **self.sampler_kwargs)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.sampler)

    def __len__(self) -> int:
        return need_length(self, self.sampler)


@functional_datapipe("sharding_filter")
class ShardingFilterIterDataPipe(IterDataPipe[Any]):
    """Every n-th sample, once `apply_sharding(n, i)` has said which: loaders do so in workers."""

    def __init__(
        self, source_datapipe: IterDataPipe[Any], sharding_group_filter: Any = None
    ) -> None:
        self.source_datapipe = source_datapipe
        self.sharding_group_filter = sharding_group_filter
        self.num_of_instances = 1
        self.instance_id = 0

    def is_shardable(self) -> bool:
        """True."""
        return True

    def apply_sharding(
        self, num_of_instances: int, instance_id: int, sharding_group: Any = None
    ) -> None:
        """Be number `instance_id` of `num_of_instances`."""
        if instance_id >= num_of_instances:
            raise ValueError(
                f"instance_id({instance_id}) should be smaller than"
                f" num_of_instances({num_of_instances})"
            )
        self.num_of_instances, self.instance_id = num_of_instances, instance_id

    def __iter__(self) -> Iterator[Any]:
        for i, sample in enumerate(self.source_datapipe):
            if i % self.num_of_instances == self.instance_id:
                yield sample

    def __len__(self) -> int:
        n = need_length(self, self.source_datapipe)
        return n // self.num_of_instances + (self.instance_id < n % self.num_of_instances)


Shuffler, Sampler = ShufflerIterDataPipe, SamplerIterDataPipe
ShardingFilter = ShardingFilterIterDataPipe

"""Batches of samples of similar length, so that little padding is needed.

Source: https://docs.pytorch.org/docs/2.13/data.html#torch.utils.data.BatchSampler
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from torchlab._core.dispatch.registry import aten
from torchlab._core.generator import Generator
from torchlab.utils.data.sampler import Sampler, drawn_seed

__all__ = ["BucketBatchSampler"]


class BucketBatchSampler(Sampler[list[int]]):
    """Lists of `batch_size` indices of samples whose lengths are near one another.

    lengths: of all samples. shuffle: the samples are mixed, cut into buckets of `bucket` batches,
    sorted within each, and the batches mixed again; else the whole is sorted by length and given so
    (the buckets do not matter). drop_last: no shorter batch. generator: where the order comes from;
    by default a seed from the default one for every pass. Every index comes once in a pass.
    """

    def __init__(
        self,
        lengths: Sequence[int],
        batch_size: int,
        *,
        bucket: int = 100,
        shuffle: bool = True,
        drop_last: bool = False,
        generator: Any = None,
    ) -> None:
        for name, value in (("batch_size", batch_size), ("bucket", bucket)):
            if not isinstance(value, int) or isinstance(value, bool) or value <= 0:
                raise ValueError(
                    f"BucketBatchSampler: {name} should be a positive integer, got {value!r}"
                )
        self.lengths = np.asarray(lengths)
        if self.lengths.ndim != 1:
            raise ValueError(
                "BucketBatchSampler: lengths has one number for each sample, got the shape"
                f" {self.lengths.shape}"
            )
        self.batch_size = batch_size
        self.bucket = bucket
        self.shuffle = shuffle
        self.drop_last = drop_last
        self.generator = generator

    def __iter__(self) -> Iterator[list[int]]:
        n = len(self.lengths)
        if not self.shuffle:
            order = self.lengths.argsort(kind="stable")
            yield from (order[i : i + self.batch_size].tolist() for i in self._starts())
            return
        generator = self.generator
        if generator is None:
            generator = Generator().manual_seed(drawn_seed())
        order = np.array(aten.randperm(n, generator=generator).tolist(), np.int64)
        size = self.bucket * self.batch_size
        for i in range(0, n, size):
            part = order[i : i + size]
            order[i : i + size] = part[self.lengths[part].argsort(kind="stable")]
        starts = list(self._starts())
        for k in aten.randperm(len(starts), generator=generator).tolist():
            yield order[starts[k] : starts[k] + self.batch_size].tolist()

    def _starts(self) -> range:
        return range(0, len(self) * self.batch_size, self.batch_size)

    def __len__(self) -> int:
        n = len(self.lengths)
        return n // self.batch_size if self.drop_last else -(-n // self.batch_size)

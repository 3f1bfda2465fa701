"""Samples together: batches, batches taken apart, groups by a key."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from typing import Any

from torchlab.utils.data.datapipes._common import need_length, warn_of_local
from torchlab.utils.data.datapipes._decorators import functional_datapipe
from torchlab.utils.data.datapipes.datapipe import DataChunk, IterDataPipe


@functional_datapipe("batch")
class BatcherIterDataPipe(IterDataPipe[Any]):
    """Lists (`wrapper_class`) of `batch_size` samples; drop_last: no shorter one at the end."""

    def __init__(
        self,
        datapipe: IterDataPipe[Any],
        batch_size: int,
        drop_last: bool = False,
        wrapper_class: type[DataChunk[Any]] = DataChunk,
    ) -> None:
        if batch_size <= 0:
            raise AssertionError("Batch size is required to be larger than 0!")
        self.datapipe = datapipe
        self.batch_size = batch_size
        self.drop_last = drop_last
        self.wrapper_class = wrapper_class

    def __iter__(self) -> Iterator[Any]:
        batch: list[Any] = []
        for x in self.datapipe:
            batch.append(x)
            if len(batch) == self.batch_size:
                yield self.wrapper_class(batch)
                batch = []
        if batch and not self.drop_last:
            yield self.wrapper_class(batch)

    def __len__(self) -> int:
        n = need_length(self, self.datapipe)
        return n // self.batch_size if self.drop_last else -(-n // self.batch_size)


@functional_datapipe("unbatch")
class UnBatcherIterDataPipe(IterDataPipe[Any]):
    """The elements of lists, `unbatch_level` levels down; -1: all."""

    def __init__(self, datapipe: IterDataPipe[Any], unbatch_level: int = 1) -> None:
        self.datapipe = datapipe
        self.unbatch_level = unbatch_level

    def __iter__(self) -> Iterator[Any]:
        if self.unbatch_level < -1:
            raise ValueError("unbatch_level must be -1 or >= 0")
        for element in self.datapipe:
            yield from self._parts(element, self.unbatch_level)

    def _parts(self, element: Any, level: int) -> Iterator[Any]:
        nested = isinstance(element, (list, DataChunk))
        if level == 0 or (level == -1 and not nested):
            yield element
        elif nested:
            for item in element:
                yield from self._parts(item, level if level == -1 else level - 1)
        else:
            raise IndexError(
                f"unbatch_level {self.unbatch_level} exceeds the depth of the DataPipe"
            )


@functional_datapipe("groupby")
class GrouperIterDataPipe(IterDataPipe[Any]):
    """Groups of samples with the same key, as lists (keep_key: pairs with it).

    At most buffer_size samples wait; then the largest group is given early, of
    guaranteed_group_size samples at least. group_size: groups are given when they are so large.
    drop_remaining: what is given early is left out.
    """

    def __init__(
        self,
        datapipe: IterDataPipe[Any],
        group_key_fn: Callable[[Any], Any],
        *,
        keep_key: bool = False,
        buffer_size: int = 10000,
        group_size: int | None = None,
        guaranteed_group_size: int | None = None,
        drop_remaining: bool = False,
    ) -> None:
        warn_of_local(group_key_fn)
        self.datapipe = datapipe
        self.group_key_fn = group_key_fn
        self.keep_key = keep_key
        self.max_buffer_size = buffer_size
        self.group_size = group_size
        self.guaranteed_group_size = None
        if group_size is not None and buffer_size is not None:
            if not 0 < group_size <= buffer_size:
                raise AssertionError("group_size must be > 0 and <= buffer_size")
            self.guaranteed_group_size = group_size
        if guaranteed_group_size is not None:
            if group_size is None or not 0 < guaranteed_group_size <= group_size:
                raise AssertionError(
                    "guaranteed_group_size must be > 0 and <= group_size and group_size must be set"
                )
            self.guaranteed_group_size = guaranteed_group_size
        self.drop_remaining = drop_remaining
        self.wrapper_class = DataChunk

    def __iter__(self) -> Iterator[Any]:
        groups: dict[Any, list[Any]] = defaultdict(list)
        waiting = 0
        for x in self.datapipe:
            key = self.group_key_fn(x)
            groups[key].append(x)
            waiting += 1
            if self.group_size is not None and self.group_size == len(groups[key]):
                waiting -= self.group_size
                yield self._given(key, groups.pop(key))
            if waiting == self.max_buffer_size:
                key = max(groups, key=lambda k: len(groups[k]))
                group = groups.pop(key)
                waiting -= len(group)
                least = self.guaranteed_group_size
                if least is not None and len(group) < least and not self.drop_remaining:
                    raise RuntimeError("Failed to group items", str(group))
                if least is None or len(group) >= least:
                    yield self._given(key, group)
        for key, group in groups.items():
            yield self._given(key, group)

    def _given(self, key: Any, group: list[Any]) -> Any:
        chunk = self.wrapper_class(group)
        return (key, chunk) if self.keep_key else chunk


Batcher, Grouper, UnBatcher = BatcherIterDataPipe, GrouperIterDataPipe, UnBatcherIterDataPipe

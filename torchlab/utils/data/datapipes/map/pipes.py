"""Data pipes with indices: a source and the steps on it."""

from __future__ import annotations

import copy
import random
import warnings
from collections.abc import Callable, Iterator
from typing import Any

from torchlab.utils.data.datapipes._common import length_of, need_length, warn_of_local
from torchlab.utils.data.datapipes._decorators import functional_datapipe
from torchlab.utils.data.datapipes.datapipe import DataChunk, IterDataPipe, MapDataPipe
from torchlab.utils.data.sampler import drawn_seed


class SequenceWrapperMapDataPipe(MapDataPipe[Any]):
    """The elements of a sequence or mapping, copied first (`deepcopy`)."""

    def __init__(self, sequence: Any, deepcopy: bool = True) -> None:
        self.sequence = sequence
        if deepcopy:
            try:
                self.sequence = copy.deepcopy(sequence)
            except TypeError:
                warnings.warn(
                    "The input sequence can not be deepcopied, please be aware of in-place"
                    " modification would affect source data",
                    stacklevel=2,
                )

    def __getitem__(self, index: Any) -> Any:
        return self.sequence[index]

    def __len__(self) -> int:
        return len(self.sequence)


def default_fn(data: Any) -> Any:
    """The sample itself."""
    return data


@functional_datapipe("map")
class MapperMapDataPipe(MapDataPipe[Any]):
    """`fn` of every sample."""

    def __init__(self, datapipe: MapDataPipe[Any], fn: Callable[..., Any] = default_fn) -> None:
        warn_of_local(fn)
        self.datapipe = datapipe
        self.fn = fn

    def __len__(self) -> int:
        return need_length(self, self.datapipe)

    def __getitem__(self, index: Any) -> Any:
        return self.fn(self.datapipe[index])


@functional_datapipe("batch")
class BatcherMapDataPipe(MapDataPipe[Any]):
    """Lists (`wrapper_class`) of `batch_size` samples; drop_last: no shorter one at the end."""

    def __init__(
        self,
        datapipe: MapDataPipe[Any],
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

    def __getitem__(self, index: int) -> Any:
        if not 0 <= index < len(self):
            raise IndexError(f"Index {index} is out of bound.")
        start = index * self.batch_size
        end = min(start + self.batch_size, need_length(self, self.datapipe))
        return self.wrapper_class(self.datapipe[i] for i in range(start, end))

    def __len__(self) -> int:
        n = need_length(self, self.datapipe)
        return n // self.batch_size if self.drop_last else -(-n // self.batch_size)


@functional_datapipe("concat")
class ConcaterMapDataPipe(MapDataPipe[Any]):
    """One pipe after the other."""

    def __init__(self, *datapipes: MapDataPipe[Any]) -> None:
        if not datapipes:
            raise ValueError("Expected at least one DataPipe, but got nothing")
        if not all(isinstance(d, MapDataPipe) for d in datapipes):
            raise TypeError("Expected all inputs to be `MapDataPipe`")
        self.datapipes = datapipes

    def __getitem__(self, index: int) -> Any:
        left = index
        for pipe, n in zip(self.datapipes, length_of(self, self.datapipes), strict=True):
            if left < n:
                return pipe[left]
            left -= n
        raise IndexError(f"Index {index} is out of range.")

    def __len__(self) -> int:
        return sum(length_of(self, self.datapipes))


@functional_datapipe("zip")
class ZipperMapDataPipe(MapDataPipe[Any]):
    """Tuples with a sample of each pipe."""

    def __init__(self, *datapipes: MapDataPipe[Any]) -> None:
        if not datapipes:
            raise ValueError("Expected at least one DataPipe, but got nothing")
        if not all(isinstance(d, MapDataPipe) for d in datapipes):
            raise TypeError("Expected all inputs to be `MapDataPipe`")
        self.datapipes = datapipes

    def __getitem__(self, index: Any) -> tuple[Any, ...]:
        found = []
        for pipe in self.datapipes:
            try:
                found.append(pipe[index])
            except IndexError as error:
                raise IndexError(
                    f"Index {index} is out of range for one of the input MapDataPipes {pipe}."
                ) from error
        return tuple(found)

    def __len__(self) -> int:
        return min(length_of(self, self.datapipes))


class ShufflerIterDataPipe(IterDataPipe[Any]):
    """The samples of a pipe with indices in random order. indices: of the samples, by default from
    0 on."""

    def __init__(self, datapipe: MapDataPipe[Any], *, indices: list[Any] | None = None) -> None:
        self.datapipe = datapipe
        self.indices = list(range(len(datapipe))) if indices is None else indices  # type: ignore[arg-type]
        self._enabled = True
        self._seed: int | None = None
        self._rng = random.Random()
        self._order: list[Any] = list(self.indices)

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
            self._rng.seed(drawn_seed() if self._seed is None else self._seed)
            self._seed = None
            self._order = self._rng.sample(self.indices, len(self.indices))
        else:
            self._order = self.indices[::-1]

    def __iter__(self) -> Iterator[Any]:
        while self._order:
            yield self.datapipe[self._order.pop()]

    def __len__(self) -> int:
        return need_length(self, self.datapipe)


# A pipe to iterate over, but a step of pipes with indices.
MapDataPipe.register_datapipe_as_function("shuffle", ShufflerIterDataPipe)
SequenceWrapper, Mapper, Batcher = SequenceWrapperMapDataPipe, MapperMapDataPipe, BatcherMapDataPipe
Concater, Zipper, Shuffler = ConcaterMapDataPipe, ZipperMapDataPipe, ShufflerIterDataPipe

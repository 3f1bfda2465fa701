"""Several data pipes as one."""

from __future__ import annotations

import builtins
from collections.abc import Iterator
from typing import Any

from torchlab.utils.data.datapipes._common import length_of
from torchlab.utils.data.datapipes._decorators import functional_datapipe
from torchlab.utils.data.datapipes.datapipe import IterDataPipe


@functional_datapipe("concat")
class ConcaterIterDataPipe(IterDataPipe[Any]):
    """One pipe after the other."""

    def __init__(self, *datapipes: IterDataPipe[Any]) -> None:
        if not datapipes:
            raise ValueError("Expected at least one DataPipe, but got nothing")
        if not all(isinstance(d, IterDataPipe) for d in datapipes):
            raise TypeError("Expected all inputs to be `IterDataPipe`")
        self.datapipes = datapipes

    def __iter__(self) -> Iterator[Any]:
        for pipe in self.datapipes:
            yield from pipe

    def __len__(self) -> int:
        return sum(length_of(self, self.datapipes))


@functional_datapipe("mux")
class MultiplexerIterDataPipe(IterDataPipe[Any]):
    """One sample of each pipe in turn, until the shortest is at its end."""

    def __init__(self, *datapipes: IterDataPipe[Any]) -> None:
        self.datapipes = datapipes

    def __iter__(self) -> Iterator[Any]:
        for samples in builtins.zip(*self.datapipes, strict=False):
            yield from samples

    def __len__(self) -> int:
        return min(length_of(self, self.datapipes)) * len(self.datapipes)


@functional_datapipe("zip")
class ZipperIterDataPipe(IterDataPipe[Any]):
    """Tuples with a sample of each pipe, until the shortest is at its end."""

    def __init__(self, *datapipes: IterDataPipe[Any]) -> None:
        if not all(isinstance(d, IterDataPipe) for d in datapipes):
            raise TypeError("All inputs are required to be `IterDataPipe` for `ZipIterDataPipe`.")
        self.datapipes = datapipes

    def __iter__(self) -> Iterator[Any]:
        yield from builtins.zip(*self.datapipes, strict=False)

    def __len__(self) -> int:
        return min(length_of(self, self.datapipes))


Concater, Multiplexer = ConcaterIterDataPipe, MultiplexerIterDataPipe
Zipper = ZipperIterDataPipe

"""One data pipe as several: the same samples for all, or each sample for one."""

from __future__ import annotations

import copy
import warnings
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any

from torchlab.utils.data.datapipes._common import need_length, warn_of_local
from torchlab.utils.data.datapipes._decorators import functional_datapipe
from torchlab.utils.data.datapipes.datapipe import IterDataPipe


class _Source:
    """What the branches read from: a pipe, and what waits for each of them."""

    def __init__(self, datapipe: Any, num_instances: int, buffer_size: int, name: str) -> None:
        self.main_datapipe = datapipe
        self.num_instances = num_instances
        self.buffer_size = buffer_size
        self.name = name
        self.begin()

    def begin(self) -> None:
        """Forget the pass before."""
        self.iterator: Any = None
        self.waiting: list[deque[Any]] = [deque() for _ in range(self.num_instances)]
        self.passes = [0] * self.num_instances

    def enter(self, i: int) -> None:
        """Branch i begins a pass. The first to begin another one begins it for all."""
        if self.passes[i]:
            self.begin()
        self.passes[i] = 1
        if self.iterator is None:
            self.iterator = iter(self.main_datapipe)

    def read(self, i: int) -> Iterator[Any]:
        """The samples of branch i."""
        own = self.waiting
        while own is self.waiting:
            if own[i]:
                yield own[i].popleft()
                continue
            try:
                sample = next(self.iterator)
            except StopIteration:
                return
            for j in self.branches(sample):
                if j != i and 0 <= self.buffer_size <= self.kept():
                    raise BufferError(self.overflow)
                own[j].append(self.passed(sample))

    def kept(self) -> int:
        """How many samples wait."""
        return max(len(w) for w in self.waiting)

    def branches(self, sample: Any) -> Any:
        """Who gets the sample."""
        return range(self.num_instances)

    def passed(self, sample: Any) -> Any:
        """The sample as a branch gets it."""
        return sample

    @property
    def overflow(self) -> str:
        """What is said when too many samples wait."""
        return f"{self.name} buffer overflow,buffer size {self.buffer_size} is insufficient."

    def __getstate__(self) -> Any:
        state = dict(self.__dict__)
        for name in ("iterator", "waiting", "passes"):
            del state[name]
        return state

    def __setstate__(self, state: Any) -> None:
        self.__dict__.update(state)
        self.begin()


class _Fork(_Source):
    copies: dict[str | None, Callable[[Any], Any]] = {
        None: lambda x: x,
        "shallow": copy.copy,
        "deep": copy.deepcopy,
    }
    how: str | None = None

    def passed(self, sample: Any) -> Any:
        return self.copies[self.how](sample)


class _Demux(_Source):
    classifier_fn: Any = None
    drop_none = False

    def branches(self, sample: Any) -> Any:
        number = self.classifier_fn(sample)
        if number is None and self.drop_none:
            return ()
        if number is None or not 0 <= number < self.num_instances:
            raise ValueError(
                f"Output of the classification fn should be between 0 and {self.num_instances - 1}."
                f" {number} is returned."
            )
        return (number,)

    def kept(self) -> int:
        return sum(len(w) for w in self.waiting)

    @property
    def overflow(self) -> str:
        return f"{self.name} buffer overflow, buffer size {self.buffer_size} is insufficient."


class _ChildDataPipe(IterDataPipe[Any]):
    """One branch."""

    def __init__(self, main_datapipe: _Source, instance_id: int, sized: bool) -> None:
        self.main_datapipe = main_datapipe
        self.instance_id = instance_id
        self._sized = sized

    def __iter__(self) -> Iterator[Any]:
        self.main_datapipe.enter(self.instance_id)
        return self.main_datapipe.read(self.instance_id)

    def __len__(self) -> int:
        if not self._sized:
            raise TypeError(f"object of type '{type(self).__name__}' has no len()")
        return need_length(self, self.main_datapipe.main_datapipe)


def _checked(num_instances: int, buffer_size: int, name: str) -> None:
    if num_instances < 1:
        raise ValueError(f"Expected `num_instances` larger than 0, but {num_instances} is found")
    if buffer_size < 0:
        warnings.warn(
            f"Unlimited buffer size is set for `{name}`, please be aware of OOM at random places",
            stacklevel=3,
        )


@functional_datapipe("fork")
class ForkerIterDataPipe(IterDataPipe[Any]):
    """`num_instances` pipes with the same samples, copied or not (copy: None, "shallow", "deep").
    At most `buffer_size` samples wait for the slowest; -1: any number."""

    def __new__(
        cls,
        datapipe: IterDataPipe[Any],
        num_instances: int,
        buffer_size: int = 1000,
        copy: str | None = None,
    ) -> Any:
        _checked(num_instances, buffer_size, "fork")
        if copy not in _Fork.copies:
            raise ValueError(
                f"Unknown copy method `{copy}` requested, choose one of None, `shallow` or `deep`."
            )
        if num_instances == 1:
            return datapipe
        source = _Fork(datapipe, num_instances, buffer_size, cls.__name__)
        source.how = copy
        return [_ChildDataPipe(source, i, True) for i in range(num_instances)]


@functional_datapipe("demux")
class DemultiplexerIterDataPipe(IterDataPipe[Any]):
    """`num_instances` pipes; `classifier_fn(sample)` says which gets a sample. None: nobody, if
    `drop_none`. At most `buffer_size` samples wait; -1: any number."""

    def __new__(
        cls,
        datapipe: IterDataPipe[Any],
        num_instances: int,
        classifier_fn: Callable[[Any], int | None],
        drop_none: bool = False,
        buffer_size: int = 1000,
    ) -> Any:
        _checked(num_instances, buffer_size, "demux")
        warn_of_local(classifier_fn)
        source = _Demux(datapipe, num_instances, buffer_size, cls.__name__)
        source.classifier_fn, source.drop_none = classifier_fn, drop_none
        return [_ChildDataPipe(source, i, False) for i in range(num_instances)]


Forker, Demultiplexer = ForkerIterDataPipe, DemultiplexerIterDataPipe

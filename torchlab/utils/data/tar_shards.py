"""A stream of samples from tar files, in WebDataset's layout.

Source: https://github.com/webdataset/webdataset#the-webdataset-format
"""

from __future__ import annotations

import glob
import itertools
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from torchlab._core.lazy import lazy
from torchlab.utils.data.dataset import IterableDataset
from torchlab.utils.data.fields import DECODERS, decoded
from torchlab.utils.data.tar_reader import members, unpacked
from torchlab.utils.data.worker import get_worker_info

distributed = lazy("torchlab.distributed")
request = lazy("urllib.request")

__all__ = ["TarShards"]

_BRACES = re.compile(r"\{([^{}]*)\}")
_RANGE = re.compile(r"(\d+)\.\.(\d+)")
_NAME = re.compile(r"((?:.*/)?[^./]+)\.([^/]+)", re.DOTALL)
_WORD = 2**64 - 1

Entry = tuple[int, int, dict[str, Any]]  # shard, number in the shard, sample


class TarShards(IterableDataset[Any]):
    """Samples of tar files: files of one base name, one after the other, are one sample's fields.

    urls: paths, glob patterns, http:// and https:// addresses, each with braces as in
        "train-{000..146}.tar" or "{a,b}.tar"; one or several. Gzipped ones, too.
    shuffle: how many samples wait in a buffer from which one is drawn at random; 0: the order of
        the files. shuffle_shards: also take the files in a random order; by default if `shuffle`.
    seed: what the order comes from, with the number of the pass, in all processes the same. That
        number grows by one after each pass; where workers are started for every pass, they learn it
        from `set_epoch`.
    decode: True: fields by their extension (`fields.DECODERS`); a mapping adds to that, extension →
        function of bytes; False: bytes.
    fields: give tuples of these fields instead of dictionaries; "jpg;png" is the first that is
        there.
    rank, world_size: the part of the stream that this process gets; by default the default group's.
        Together with the loader's workers every part gets whole files, or if there are fewer files
        than parts, every n-th sample.
    largest: bytes that a sample may have. timeout: seconds that a server may be silent.

    A sample is {"__key__": base name with its folder, "__url__": where from, "jpg": …, "cls": …}.
    Nothing is written to disk. With `state_dict` a pass is taken up where it was; the samples in
    the buffer are read again. Raises FileNotFoundError for a pattern without files,
    tarfile.ReadError for damaged, cut off and suspicious tars, ValueError for fields that cannot
    be decoded or come twice.
    """

    def __init__(
        self,
        urls: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
        *,
        shuffle: int = 0,
        shuffle_shards: bool | None = None,
        seed: int = 0,
        decode: bool | Mapping[str, Callable[[bytes], Any]] = True,
        fields: Iterable[str] | None = None,
        rank: int | None = None,
        world_size: int | None = None,
        largest: int = 1 << 30,
        timeout: float = 60.0,
    ) -> None:
        if shuffle < 0:
            raise ValueError(f"TarShards: shuffle is the size of a buffer, got {shuffle}")
        one = isinstance(urls, (str, os.PathLike))
        self.urls = _addresses([urls] if one else urls)  # type: ignore[list-item, arg-type]
        self.shuffle = shuffle
        self.shuffle_shards = bool(shuffle) if shuffle_shards is None else shuffle_shards
        self.seed = seed
        self.decoders: dict[str, Any] = {}
        if decode is not False:
            self.decoders = DECODERS | ({} if decode is True else dict(decode))
        self.fields = None if fields is None else tuple(fields)
        known = distributed.is_initialized() if rank is None or world_size is None else False
        self.rank = rank if rank is not None else distributed.get_rank() if known else 0
        self.world_size = (
            world_size if world_size is not None else distributed.get_world_size() if known else 1
        )
        if not 0 <= self.rank < self.world_size:
            raise ValueError(f"TarShards: rank {self.rank} of {self.world_size} processes")
        self.largest = largest
        self.timeout = timeout
        self.epoch = 0
        self._at: _Place | None = None  # of the pass under way
        self._buffer: list[Entry] = []
        self._resume: dict[str, Any] | None = None

    def set_epoch(self, epoch: int) -> None:
        """Take the order of that pass from the next iteration on."""
        self.epoch = epoch

    def __iter__(self) -> Iterator[Any]:
        info = get_worker_info()
        workers, number = (1, 0) if info is None else (info.num_workers, info.id)
        at = _Place(self, self.rank * workers + number, self.world_size * workers)
        buffer: list[Entry] = []
        if self._resume is not None:
            saved, self._resume = self._resume, None
            at.shard, at.sample, at.seen, at.draws = saved["place"]
            buffer = self._read_again(at, saved["buffer"])
        self._at, self._buffer = at, buffer
        return self._pass(at, buffer)

    def _pass(self, at: _Place, buffer: list[Entry]) -> Iterator[Any]:
        for entry in self._entries(at):
            if self.shuffle and len(buffer) < self.shuffle:
                buffer.append(entry)
                continue
            if self.shuffle:
                k = at.draw(len(buffer))
                entry, buffer[k] = buffer[k], entry
            yield self._finished(entry[2])
        while buffer:
            k = at.draw(len(buffer))
            buffer[k], buffer[-1] = buffer[-1], buffer[k]
            yield self._finished(buffer.pop()[2])
        if self._at is at:
            self._at = None
            self.epoch = at.epoch + 1

    def _entries(self, at: _Place) -> Iterator[Entry]:
        """This part's samples from the place on, which moves on before each."""
        while at.shard < len(at.shards):
            start = at.sample
            for i, sample in enumerate(self._samples(at.shards[at.shard])):
                if i < start:
                    continue
                at.sample = i + 1
                at.seen += 1
                if (at.seen - 1) % at.every == at.offset:
                    yield at.shard, i, sample
            at.shard += 1
            at.sample = 0

    def _samples(self, url: str) -> Iterator[dict[str, Any]]:
        sample: dict[str, Any] = {}
        size = 0
        with _opened(url, self.timeout) as file:
            for name, data in members(unpacked(file), url, self.largest):
                found = _NAME.fullmatch(name)
                if found is None or name.startswith("__"):
                    continue  # hidden files, and what the format keeps for itself
                key, extension = found[1], found[2].lower()
                if key != sample.get("__key__"):
                    if sample:
                        yield sample
                    sample, size = {"__key__": key, "__url__": url}, 0
                if extension in sample:
                    raise ValueError(f"{url}: the sample {key!r} has the field {extension!r} twice")
                size += len(data)
                if size > self.largest:
                    raise ValueError(
                        f"{url}: the sample {key!r} has more than {self.largest} bytes (`largest`)"
                    )
                sample[extension] = data
        if sample:
            yield sample

    def _finished(self, sample: dict[str, Any]) -> Any:
        if self.fields is not None:
            names = [_first(sample, field) for field in self.fields]
            wanted = {n: sample[n] for n in ("__key__", "__url__", *names)}
            made = decoded(wanted, self.decoders)
            return tuple(made[n] for n in names)
        return decoded(sample, self.decoders)

    def _read_again(self, at: _Place, places: list[int]) -> list[Entry]:
        """The samples that were in the buffer, in their order."""
        wanted = list(zip(places[::2], places[1::2], strict=True))
        found = {}
        for shard in sorted({s for s, _ in wanted}):
            numbers = {i for s, i in wanted if s == shard}
            stream = self._samples(at.shards[shard])
            for i, sample in enumerate(itertools.islice(stream, max(numbers) + 1)):
                if i in numbers:
                    found[shard, i] = sample
        if len(found) < len(set(wanted)):
            raise ValueError("TarShards: the files hold fewer samples than when the state was made")
        return [(s, i, found[s, i]) for s, i in wanted]

    def state_dict(self) -> dict[str, Any]:
        """Where the pass is: plain numbers, no samples."""
        state: dict[str, Any] = {"epoch": self.epoch, "urls": len(self.urls), "place": None}
        if self._resume is not None:
            return {**self._resume}
        if self._at is not None:
            at = self._at
            state["epoch"] = at.epoch
            state["place"] = [at.shard, at.sample, at.seen, at.draws]
            state["buffer"] = [n for entry in self._buffer for n in entry[:2]]
        return state

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Let the next pass go on where that state was. ValueError if the number of files
        differs."""
        if state_dict["urls"] != len(self.urls):
            raise ValueError(
                f"TarShards.load_state_dict: the state is of {state_dict['urls']} files, this"
                f" dataset has {len(self.urls)}"
            )
        self.epoch = state_dict["epoch"]
        self._at, self._buffer = None, []
        self._resume = dict(state_dict) if state_dict["place"] is not None else None

    def __getstate__(self) -> dict[str, Any]:
        # A worker begins its own pass; what is in the buffer stays here.
        return self.__dict__ | {"_at": None, "_buffer": []}


class _Place:
    """Where a pass is, and its random numbers: the draws are counted, which is all their state."""

    def __init__(self, data: TarShards, part: int, parts: int) -> None:
        self.epoch = data.epoch
        self.shard = self.sample = self.seen = self.draws = 0
        self.key = (data.seed * 0x9E3779B97F4A7C15 + data.epoch * 0xD1B54A32D192ED03) & _WORD
        shards = list(data.urls)
        if data.shuffle_shards:  # the same order in all parts
            for i in range(len(shards) - 1, 0, -1):
                k = self.draw(i + 1)
                shards[i], shards[k] = shards[k], shards[i]
        whole = len(shards) >= parts
        self.every, self.offset = (1, 0) if whole else (parts, part)
        self.shards = shards[part::parts] if whole else shards
        self.key ^= (part * 0xA0761D6478BD642F) & _WORD

    def draw(self, n: int) -> int:
        """A number below n: splitmix64 of the count of draws."""
        self.draws += 1
        z = (self.key + self.draws * 0x9E3779B97F4A7C15) & _WORD
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & _WORD
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & _WORD
        return ((z ^ (z >> 31)) * n) >> 64


def _first(sample: dict[str, Any], field: str) -> str:
    for name in field.split(";"):
        if name in sample:
            return name
    there = [n for n in sample if not n.startswith("__")]
    raise KeyError(
        f"{sample['__url__']}: the sample {sample['__key__']!r} has no field {field!r}, only"
        f" {there}"
    )


def _opened(url: str, timeout: float) -> Any:
    """A buffered file to read."""
    if not url.startswith(("http://", "https://")):
        return open(url, "rb")
    return request.urlopen(url, timeout=timeout)


def _addresses(patterns: Iterable[str | os.PathLike[str]]) -> list[str]:
    """Patterns written out, in order."""
    found = []
    for pattern in patterns:
        for one in _braces(os.fspath(pattern)):
            scheme = re.match(r"(\w+)://", one)
            if scheme is not None and scheme[1] not in ("http", "https"):
                raise ValueError(
                    f"TarShards: {one!r}: paths, http:// and https:// are read, not {scheme[1]}://"
                )
            if scheme is not None or not glob.has_magic(one) or os.path.exists(one):
                found.append(one)
                continue
            names = sorted(glob.glob(one, recursive=True))
            if not names:
                raise FileNotFoundError(f"TarShards: no file fits the pattern {one!r}")
            found += names
    if not found:
        raise ValueError("TarShards: urls is empty")
    return found


def _braces(text: str) -> Iterator[str]:
    """ "a{0..2}" → a0, a1, a2; "{x,y}" → x, y; inner braces first."""
    found = _BRACES.search(text)
    if found is None:
        yield text
        return
    numbers = _RANGE.fullmatch(found[1])
    if numbers is not None:
        low, high = numbers.groups()
        width = len(low) if low.startswith("0") else 0
        choices: Iterable[str] = (f"{n:0{width}d}" for n in range(int(low), int(high) + 1))
    else:
        choices = found[1].split(",")
    for choice in choices:
        yield from _braces(text[: found.start()] + choice + text[found.end() :])

"""Lists and dictionaries that worker processes share instead of copying.

A Python list in a dataset is copied by workers little by little: forked ones write reference counts
into its pages, spawned ones get it pickled. A `SharedList` holds its items pickled, end to end in
shared memory, with their offsets beside them: processes see the same memory, nobody writes into it,
and what is sent is a handle.

Source: https://docs.pytorch.org/docs/2.13/data.html#multi-process-data-loading
"""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator, Mapping, Sequence
from hashlib import blake2b
from itertools import chain
from typing import Any, overload

import numpy as np

from torchlab._core import sharing
from torchlab._core.dispatch.compute import wrap
from torchlab._core.tensor import Tensor

__all__ = ["SharedDict", "SharedList"]


def _shared(array: np.ndarray) -> Tensor:
    t = wrap(array)
    sharing.share_tensor(t)
    return t


class SharedList(Sequence[Any]):
    """The items of an iterable, in shared memory and not to be changed.

    `shared[i]` makes the item anew each time: changing what it gives changes nothing here. Items
    are pickled one by one, and have to be picklable. A slice is a view of the same memory.

        names = SharedList(["a.png", "b.png"])
        names[1], len(names), list(names[:1])    # ('b.png', 2, ['a.png'])

    A pickle of it made for another process (a loader's workers, `torch.multiprocessing`) holds
    a handle; one made for a file holds the items.
    """

    def __init__(self, items: Iterable[Any] = ()) -> None:
        data, ends = bytearray(), [0]
        for item in items:
            data += pickle.dumps(item, protocol=pickle.HIGHEST_PROTOCOL)
            ends.append(len(data))
        self._data = _shared(np.frombuffer(data, np.uint8))
        self._ends = _shared(np.array(ends, np.int64))
        self._chosen = range(len(ends) - 1)
        self._look()

    def _look(self) -> None:
        # Read through memoryviews: no tensor is made for an access.
        self._bytes = memoryview(self._data.numpy())
        self._offsets = memoryview(self._ends.numpy())

    def __getstate__(self) -> dict[str, Any]:
        return {"data": self._data, "ends": self._ends, "chosen": self._chosen}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self._data, self._ends, self._chosen = state["data"], state["ends"], state["chosen"]
        self._look()

    def __len__(self) -> int:
        return len(self._chosen)

    @overload
    def __getitem__(self, index: int) -> Any: ...
    @overload
    def __getitem__(self, index: slice) -> SharedList: ...
    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            part = type(self).__new__(type(self))
            part.__setstate__(self.__getstate__() | {"chosen": self._chosen[index]})
            return part
        try:
            place = self._chosen[index]
        except IndexError:
            raise IndexError(
                f"SharedList index {index} is out of range for {len(self)} items"
            ) from None
        return self._item(place)

    def _item(self, place: int) -> Any:
        return pickle.loads(self._bytes[self._offsets[place] : self._offsets[place + 1]])

    def __iter__(self) -> Iterator[Any]:
        return map(self._item, self._chosen)

    @property
    def nbytes(self) -> int:
        """How much memory all processes together use for it (for a slice: for the whole)."""
        return self._bytes.nbytes + self._offsets.nbytes

    def __repr__(self) -> str:
        return f"SharedList({len(self)} items, {self.nbytes} bytes)"


class SharedDict(Mapping[Any, Any]):
    """The entries of a mapping, or of pairs, in shared memory and not to be changed.

    Keys: text, bytes, numbers, None, and tuples of these; TypeError for others, since theirs is no
    hash on which processes agree. They keep their order. Values are as items of `SharedList`.
    """

    def __init__(self, items: Mapping[Any, Any] | Iterable[tuple[Any, Any]] = ()) -> None:
        entries = dict(items)
        digests = np.array([_digest(key) for key in entries], np.int64)
        order = np.argsort(digests, kind="stable")
        self._keys = SharedList(entries)
        self._values = SharedList(entries.values())
        self._digests = _shared(digests[order])
        self._places = _shared(order.astype(np.int64))
        self._look()

    def _look(self) -> None:
        self._sorted = self._digests.numpy()
        self._order = memoryview(self._places.numpy())

    def __getstate__(self) -> dict[str, Any]:
        return {
            "keys": self._keys,
            "values": self._values,
            "digests": self._digests,
            "places": self._places,
        }

    def __setstate__(self, state: dict[str, Any]) -> None:
        self._keys, self._values = state["keys"], state["values"]
        self._digests, self._places = state["digests"], state["places"]
        self._look()

    def __getitem__(self, key: Any) -> Any:
        digest = np.int64(_digest(key))
        at = int(np.searchsorted(self._sorted, digest))
        while at < len(self._order) and self._sorted[at] == digest:
            place = self._order[at]
            if self._keys[place] == key:
                return self._values[place]
            at += 1
        raise KeyError(key)

    def __contains__(self, key: object) -> bool:
        try:
            self[key]
        except (KeyError, TypeError):  # a key of a kind that cannot be in here
            return False
        return True

    def __len__(self) -> int:
        return len(self._keys)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._keys)

    @property
    def nbytes(self) -> int:
        """How much memory all processes together use for it."""
        own = self._sorted.nbytes + self._order.nbytes
        return own + self._keys.nbytes + self._values.nbytes

    def __repr__(self) -> str:
        return f"SharedDict({len(self)} entries, {self.nbytes} bytes)"


def _digest(key: Any) -> int:
    """A number that is equal for equal keys, in every process."""
    found = blake2b(_words(key), digest_size=8).digest()
    return int.from_bytes(found, "little", signed=True)


def _words(key: Any) -> bytes:
    if isinstance(key, str):
        return b"s" + key.encode("utf-8", "surrogatepass")
    if isinstance(key, bytes):
        return b"b" + key
    if isinstance(key, (int, float, complex, np.number, np.bool)):
        return b"n%d" % hash(key)  # 1, 1.0 and True are the same key; no seed is in it
    if key is None:
        return b"0"
    if isinstance(key, tuple):
        parts = [_words(part) for part in key]
        return b"t" + b"".join(chain.from_iterable((b"%d:" % len(p), p) for p in parts))
    raise TypeError(
        "SharedDict: keys are text, bytes, numbers, None or tuples of these, found "
        f"{type(key).__name__}"
    )

"""The state of a loader in the middle of a pass, and how a pass is taken up again.

Note [Resuming a pass]
~~~~~~~~~~~~~~~~~~~~~~
A state says which batches have been given out, not which were got ahead. The order of the samples
is taken up by the sampler's own `state_dict` where it has one; else the sampler runs again, from
the random numbers that it began with, and what it had given is left out: no sample is read for
that. What a dataset needs is its own `state_dict` (or its iterator's); a map-style dataset needs
nothing, and a stream without one is read again up to the place. Last, all random streams are set
to where they stood: the default generator, the loader's and the sampler's, Python's and NumPy's,
in every worker too. A worker keeps these for the batches that it has got ahead, and tells them
when it is asked.

What this cannot repeat: a sampler without `state_dict` that draws in the middle of a pass from a
generator from which somebody else draws meanwhile.

Source: https://docs.pytorch.org/data/0.11/torchdata.stateful_dataloader.html
"""

from __future__ import annotations

import copy
import random
import sys
from collections import deque
from typing import Any

import numpy as np

from torchlab._core.dispatch.compute import wrap
from torchlab._core.generator import Generator, default_generator

Randomness = tuple[Any, Any, Any, list[Any]]
"""Where the random streams stand: the default generator, Python's, NumPy's, further generators."""


def capture(generators: list[Generator]) -> Randomness:
    """Where the streams stand now. NumPy's is left out where nobody has loaded it."""
    legacy = None
    if "numpy.random" in sys.modules:
        found: Any = np.random.get_state(legacy=False)
        if found["bit_generator"] == "MT19937":
            legacy = found
    own = [g.get_state() for g in generators]
    return default_generator.get_state(), random.getstate(), legacy, own


def restore(where: Randomness, generators: list[Generator]) -> None:
    """Set the streams to where they stood."""
    torch_state, python_state, numpy_state, own = where
    default_generator.set_state(torch_state)
    random.setstate(python_state)
    if numpy_state is not None:
        np.random.set_state(numpy_state)
    for g, state in zip(generators, own, strict=True):
        g.set_state(state)


def pack(where: Randomness | None) -> Any:
    """The same in tensors and plain containers, as files may hold them."""
    if where is None:
        return None
    torch_state, (version, words, normal), numpy_state, own = where
    packed: dict[str, Any] = {
        "torch": wrap(torch_state),
        "python": {"version": version, "words": wrap(np.array(words, np.int64)), "normal": normal},
        "numpy": None,
        "generators": [wrap(state) for state in own],
    }
    if numpy_state is not None:
        packed["numpy"] = {
            "key": wrap(numpy_state["state"]["key"].astype(np.int64)),
            "pos": int(numpy_state["state"]["pos"]),
            "has_gauss": int(numpy_state["has_gauss"]),
            "gauss": float(numpy_state["gauss"]),
        }
    return packed


def unpack(packed: Any) -> Any:
    """What `pack` was given."""
    if packed is None:
        return None
    python = packed["python"]
    numpy_state = None
    if packed["numpy"] is not None:
        found = packed["numpy"]
        numpy_state = {
            "bit_generator": "MT19937",
            "state": {"key": found["key"].numpy().astype(np.uint32), "pos": found["pos"]},
            "has_gauss": found["has_gauss"],
            "gauss": found["gauss"],
        }
    return (
        packed["torch"].numpy().copy(),
        (python["version"], tuple(python["words"].tolist()), python["normal"]),
        numpy_state,
        [state.numpy().copy() for state in packed["generators"]],
    )


def stateful(thing: Any) -> bool:
    """Whether a sampler, dataset or iterator keeps account of itself."""
    return callable(getattr(thing, "state_dict", None)) and callable(
        getattr(thing, "load_state_dict", None)
    )


def generators_of(loader: Any) -> list[Generator]:
    """The generators of a loader and its samplers, besides the default one."""
    inner = getattr(loader.batch_sampler, "sampler", None)
    found: dict[int, Generator] = {}
    for owner in (loader, loader.sampler, loader.batch_sampler, inner):
        g = getattr(owner, "generator", None)
        if isinstance(g, Generator) and g is not default_generator:
            found[id(g)] = g
    return list(found.values())


def dataset_state(fetch: Any) -> Any:
    """What the dataset, or the iterator over it, says of where it is; None if it says nothing."""
    owners: dict[str, Any] = {"iterator": getattr(fetch, "source", None), "dataset": fetch.dataset}
    for kind, owner in owners.items():
        if stateful(owner):
            return {"of": kind, "state": owner.state_dict()}
    return None


def taken_up(make: Any, dataset: Any, saved: Any, ended: bool) -> Any:
    """The fetcher that `make` makes, its dataset set to where it was. The dataset is told before
    it is iterated over, an iterator after."""
    if saved is not None and saved["of"] == "dataset":
        dataset.load_state_dict(copy.deepcopy(saved["state"]))
    fetch = make()
    if saved is not None and saved["of"] == "iterator":
        fetch.source.load_state_dict(copy.deepcopy(saved["state"]))
    if ended:
        fetch.ended = True
    return fetch


class Order:
    """A pass over a loader's sampler: numbers from 0 and what they ask for."""

    def __init__(self, loader: Any, saved: Any = None) -> None:
        sampler = loader.batch_sampler if loader.batch_sampler is not None else loader.sampler
        self.streams = loader._streams
        self.generators = generators_of(loader)
        self.owner: Any = next((s for s in (sampler, loader.sampler) if stateful(s)), None)
        self.held: deque[tuple[int, Any]] = deque()
        self.taken = 0
        self.first: Randomness | None = None
        if saved is not None:
            if saved["sampler"] is not None and self.owner is not None:
                self.owner.load_state_dict(copy.deepcopy(saved["sampler"]))
            elif saved["sampler"] is not None:
                raise ValueError(
                    "load_state_dict: the state holds that of a sampler, but this loader's"
                    f" {type(sampler).__name__} has no load_state_dict"
                )
            else:
                restore(unpack(saved["before"]), self.generators)
        # Samplers draw when they are asked for an iterator, or when that is first asked: between
        # the two somebody else may draw.
        self.before = capture(self.generators)
        self.source = iter(sampler)

    def __next__(self) -> tuple[int, Any]:
        if self.held:
            return self.held.popleft()
        if self.first is None:
            self.first = capture(self.generators)
        indices = next(self.source)
        self.taken += 1
        return self.taken - 1, indices

    def rewind(self, saved: Any) -> None:
        """Set the random streams to where they stood before the first step."""
        if saved["sampler"] is None and saved["first"] is not None:
            self.first = unpack(saved["first"])
            restore(self.first, self.generators)

    def replay(self, saved: Any, keep: bool = False) -> list[Any]:
        """Go to where the pass was; what was asked for and not given comes again. With `keep`
        returns what was given (nothing if the sampler has a state itself)."""
        if saved["sampler"] is not None:
            self.taken = saved["taken"]
            self.held.extend(zip(saved["open"], saved["held"], strict=True))
            return []
        self.rewind(saved)
        left: set[int] = set(saved["open"])
        ahead: list[tuple[int, Any]] = []
        past: list[Any] = []
        for _ in range(saved["taken"]):
            try:
                number, indices = next(self)
            except StopIteration:
                raise ValueError(
                    f"load_state_dict: the state is {saved['taken']} batches into a pass, but this"
                    f" loader's sampler has only {self.taken}: it is another dataset or batch size"
                ) from None
            if number in left:
                ahead.append((number, indices))
            elif keep:
                past.append(indices)
        self.held.extend(ahead)
        return past

    def state(self, opened: list[tuple[int, Any]]) -> dict[str, Any]:
        """`opened`: what was asked for and not given out yet."""
        opened = sorted([*opened, *self.held], key=lambda item: item[0])
        own = None if self.owner is None else copy.deepcopy(self.owner.state_dict())
        return {
            "sampler": own,
            "before": pack(self.before),
            "first": pack(self.first),
            "taken": self.taken,
            "open": [] if self.streams else [number for number, _ in opened],
            "held": None if own is None else [indices for _, indices in opened],
        }


VERSION = 1


def check(loader: Any, state: Any) -> None:
    """ValueError if a state is not one of such a loader."""
    if not isinstance(state, dict) or state.get("loader_version") != VERSION:
        raise ValueError("load_state_dict: this is no state that DataLoader.state_dict() made")
    if state["num_workers"] != loader.num_workers:
        raise ValueError(
            f"load_state_dict: the state is of a loader with num_workers={state['num_workers']},"
            f" this one has num_workers={loader.num_workers}; every worker has a part of it"
        )
    if state["streams"] != loader._streams:
        raise ValueError(
            "load_state_dict: the state and this loader differ in whether the dataset is an"
            " IterableDataset"
        )
    if len(state["rng"]["generators"]) != len(generators_of(loader)):
        raise ValueError(
            "load_state_dict: the state and this loader differ in how many generators they use"
        )


__all__ = [
    "VERSION",
    "Order",
    "capture",
    "check",
    "dataset_state",
    "generators_of",
    "pack",
    "restore",
    "stateful",
    "taken_up",
    "unpack",
]

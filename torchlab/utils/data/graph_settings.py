"""Settings for all data pipes of a chain: loaders make them before a pass.

Source: https://github.com/pytorch/pytorch/blob/v2.13.0/torch/utils/data/graph_settings.py
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

from torchlab.utils.data.datapipes.datapipe import IterDataPipe, MapDataPipe
from torchlab.utils.data.datapipes.iter.branching import _Source
from torchlab.utils.data.datapipes.iter.order import Shuffler
from torchlab.utils.data.datapipes.map.pipes import Shuffler as MapShuffler
from torchlab.utils.data.sampler import drawn_seed

__all__ = ["apply_random_seed", "apply_sharding", "apply_shuffle_settings", "get_all_pipes"]


def _sources(value: Any) -> Iterator[Any]:
    """The data pipes that a value holds at its top."""
    if isinstance(value, (IterDataPipe, MapDataPipe)):
        yield value
    elif isinstance(value, _Source):
        yield from _sources(value.main_datapipe)
    elif isinstance(value, dict):
        yield from _sources(list(value.values()))
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from _sources(item)


def _before(pipe: Any) -> Iterator[Any]:
    yield from _sources(list(pipe.__dict__.values()))


def get_all_pipes(datapipe: Any) -> list[Any]:
    """A pipe and all that it reads from, each once."""
    found: dict[int, Any] = {}
    stack = [datapipe]
    while stack:
        pipe = stack.pop()
        if id(pipe) not in found:
            found[id(pipe)] = pipe
            stack += reversed(list(_before(pipe)))
    return list(found.values())


def apply_sharding(
    datapipe: Any, num_of_instances: int, instance_id: int, sharding_group: Any = None
) -> Any:
    """Let the `sharding_filter` of every branch keep its share. RuntimeError if there are two in
    one branch."""

    def visit(pipe: Any, done: Any) -> None:
        if hasattr(type(pipe), "is_shardable") and pipe.is_shardable():
            if done is not None:
                raise RuntimeError(
                    "Sharding twice on a single pipeline is likely unintended and will cause data"
                    f" loss. Sharding already applied to {done} while trying to apply to {pipe}"
                )
            pipe.apply_sharding(num_of_instances, instance_id, sharding_group)
            done = pipe
        for source in _before(pipe):
            visit(source, done)

    visit(datapipe, None)
    return datapipe


def apply_shuffle_settings(datapipe: Any, shuffle: bool | None = None) -> Any:
    """Switch all shufflers on or off; with `shuffle` and none there, add one at the end."""
    if shuffle is None:
        return datapipe
    shufflers = [p for p in get_all_pipes(datapipe) if isinstance(p, (Shuffler, MapShuffler))]
    if not shufflers and shuffle:
        warnings.warn(
            "`shuffle=True` was set, but the datapipe does not contain a `Shuffler`. Adding one at"
            " the end. Be aware that the default buffer size might not be sufficient for your"
            " task.",
            stacklevel=3,
        )
        datapipe = datapipe.shuffle()
        shufflers = [datapipe]
    for shuffler in shufflers:
        shuffler.set_shuffle(shuffle)
    return datapipe


def apply_random_seed(datapipe: Any, rng: Any) -> Any:
    """Give every pipe that draws random numbers a seed from the generator `rng`."""
    for pipe in get_all_pipes(datapipe):
        if hasattr(type(pipe), "set_seed"):
            pipe.set_seed(drawn_seed(rng))
    return datapipe

"""Where storages lie, as a text in the file, and how they come back to such a place.

A tagger says "cpu" or "cuda:1" of a storage; a deserializer brings a storage that was read into
host memory to such a place. `register_package` adds a pair; the lowest priority is asked first.

Source: https://docs.pytorch.org/docs/2.13/notes/serialization.html
"""

from __future__ import annotations

import importlib.util
import operator
from collections.abc import Callable
from typing import Any

from torchlab._core import device as devices
from torchlab._core.backends import sim
from torchlab._core.lazy import lazy
from torchlab._core.storages import TypedStorage, UntypedStorage, typed

cupy = lazy("cupy")
Tagger = Callable[[Any], "str | None"]
Deserializer = Callable[[Any, str], Any]
_packages: list[tuple[int, Tagger, Deserializer]] = []

_CPU_REMEDY = (
    "If you are running on a CPU-only machine, please use torch.load with"
    " map_location=torch.device('cpu') to map your storages to the CPU."
)


def register_package(priority: int, tagger: Tagger, deserializer: Deserializer) -> None:
    """Ask `tagger(storage)` for the place of storages when saving (None: not mine), and
    `deserializer(storage, location)` for the storage at that place when loading (None: not
    mine). Lower priorities are asked first."""
    if isinstance(priority, bool) or not isinstance(priority, int):
        raise TypeError(f"register_package: priority must be an int, not {priority!r}")
    for what, value in (("tagger", tagger), ("deserializer", deserializer)):
        if not callable(value):
            raise TypeError(f"register_package: {what} must be callable, not {value!r}")
    _packages.append((priority, tagger, deserializer))
    _packages.sort(key=operator.itemgetter(0))


def location_tag(storage: Any) -> str:
    """The text that files keep about a storage's place: "cpu", "cuda:0", "meta", "sim:0"."""
    for _, tagger, _ in _packages:
        location = tagger(storage)
        if location:
            return location
    raise RuntimeError(
        "don't know how to determine data location of "
        + getattr(type(storage), "__name__", repr(storage))
    )


def default_restore_location(storage: Any, location: str) -> Any:
    """The storage at the place that `location` says, as `torch.load` without map_location does."""
    for _, _, deserializer in _packages:
        result = deserializer(storage, location)
        if result is not None:
            return result
    raise RuntimeError(
        "don't know how to restore data location of torch.storage.UntypedStorage (tagged with"
        f" {location})"
    )


def _available(kind: str) -> int:
    """How many devices of a kind there are."""
    if kind == "sim":
        return sim.device_count()
    if importlib.util.find_spec("cupy") is None:
        return 0
    try:
        return cupy.cuda.runtime.getDeviceCount()
    except cupy.cuda.runtime.CUDARuntimeError:  # no driver, or no GPU
        return 0


def validate_cuda_device(location: str) -> int:
    """The index that "cuda:1" names; RuntimeError if there is no such GPU here."""
    return _index("cuda", location)


def validate_hpu_device(location: str) -> int:
    """RuntimeError: there is no HPU backend."""
    raise RuntimeError("The HPU device module is not registered. " + _CPU_REMEDY)


def _index(kind: str, location: str) -> int:
    index = devices.device(location).index or 0
    count = _available(kind)
    if not count:
        raise RuntimeError(
            f"Attempting to deserialize object on a {kind.upper()} device but"
            f" torch.{kind}.is_available() is False. {_CPU_REMEDY}"
        )
    if index >= count:
        raise RuntimeError(
            f"Attempting to deserialize object on {kind.upper()} device {index} but"
            f" torch.{kind}.device_count() is {count}. Please use torch.load with map_location to"
            " map your storages to an existing device."
        )
    return index


def _moved(storage: Any, place: str) -> Any:
    if isinstance(storage, TypedStorage):
        return typed(_moved(storage.untyped(), place), storage.dtype)
    if devices.as_device(place).type == "meta":
        return UntypedStorage(storage.nbytes(), device="meta")
    return storage.to(device=place)


def _tag_of(kind: str) -> Tagger:
    def tag(storage: Any) -> str | None:
        place = storage.device
        if place.type != kind:
            return None
        return kind if place.index is None else f"{kind}:{place.index}"

    return tag


def _restorer(kind: str) -> Deserializer:
    def restore(storage: Any, location: str) -> Any:
        if location != kind and not location.startswith(kind + ":"):
            return None
        if kind in ("cuda", "sim"):
            return _moved(storage, f"{kind}:{_index(kind, location)}")
        return storage if kind == "cpu" and storage.device.type == "cpu" else _moved(storage, kind)

    return restore


for _priority, _kind in ((10, "cpu"), (20, "cuda"), (21, "sim"), (22, "meta")):
    register_package(_priority, _tag_of(_kind), _restorer(_kind))


def restorer(map_location: Any) -> Callable[[Any, str], Any]:
    """What `torch.load` does with each storage, from its argument `map_location`."""
    if map_location is None:
        return default_restore_location
    if isinstance(map_location, dict):

        def by_table(storage: Any, location: str) -> Any:
            return default_restore_location(storage, map_location.get(location, location))

        return by_table
    if isinstance(map_location, (str, bytes, devices.device)):
        text = map_location.decode("ascii") if isinstance(map_location, bytes) else map_location
        place = str(text)
        return lambda storage, location: default_restore_location(storage, place)
    if not callable(map_location):
        raise TypeError(
            "torch.load: map_location must be None, a device, a string, a dict or a callable, and"
            f" '{type(map_location).__name__}' object is not callable"
        )

    def by_function(storage: Any, location: str) -> Any:
        result = map_location(storage, location)
        return default_restore_location(storage, location) if result is None else result

    return by_function


for _public in (
    register_package, location_tag, default_restore_location, validate_cuda_device,
    validate_hpu_device,
):  # fmt: skip
    _public.__module__ = "torchlab.serialization"

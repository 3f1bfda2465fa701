"""`torch.load`.

Source: https://docs.pytorch.org/docs/2.13/generated/torch.load.html
"""

from __future__ import annotations

import contextlib
import io
import os
import pickle
import pickletools
import sys
from collections.abc import Callable, Iterator
from typing import IO, Any

import numpy as np

from torchlab._core.device import cpu, device
from torchlab._core.memory.storage import Storage
from torchlab._core.storages import UntypedStorage, typed, wrap_storage
from torchlab.serialization import legacy_reader, options, safe_globals
from torchlab.serialization.locations import restorer
from torchlab.serialization.names import find, is_torch
from torchlab.serialization.options import LoadEndianness
from torchlab.serialization.safe_unpickler import SCRIPT_ARCHIVE, SafeUnpickler, explain
from torchlab.serialization.storage_ids import parse
from torchlab.serialization.zip_reader import ZipReader, corrupt

_DAMAGED = (
    KeyError, IndexError, TypeError, ValueError, AttributeError, UnicodeError, OverflowError,
    RecursionError,
)  # fmt: skip
MapLocation = Callable[[Any, str], Any] | device | str | dict[str, str] | None
_TRUE = frozenset({"1", "y", "yes", "true"})


def load(
    f: str | os.PathLike[str] | IO[bytes],
    map_location: MapLocation = None,
    pickle_module: Any = None,
    *,
    weights_only: bool | None = None,
    mmap: bool | None = None,
    **pickle_load_args: Any,
) -> Any:
    """Read what `torch.save` wrote, here or in PyTorch.

    f: a path, or an object with `read`, `readline`, `seek` and `tell`.
    map_location: where tensors go: a device, a dict of devices as they are in the file, or a
        function of (storage, device in the file). None: where they were.
    weights_only: True, the default, reads tensors, containers and what `add_safe_globals` allowed,
        and runs nothing that the file asks for. False runs any code that is in the file: only for
        files that you trust.
    mmap: map the file into memory instead of reading it: tensors are read when they are used.
        Writes to them stay in memory (`set_default_mmap_options`).

    Raises:
        pickle.UnpicklingError: the file holds something that `weights_only` does not allow.
        RuntimeError: the file is damaged, or a device is missing.
    """
    safe = _is_safe(weights_only, pickle_module)
    if safe and pickle_module is not None:
        raise RuntimeError("Can not safely load weights when explicit pickle_module is specified")
    restore = restorer(map_location)
    arguments = {"encoding": "utf-8", **pickle_load_args}
    module = pickle if pickle_module is None else pickle_module

    def loader(file: Any, persistent: Any) -> Any:
        if safe:
            return _safely(file, persistent, arguments)
        return _trusting(file, persistent, module, arguments)

    with _opened(f) as file:
        if _is_zip(file):
            return _load_zip(f, file, loader, restore, bool(mmap), safe)
        if mmap:
            raise RuntimeError(
                "mmap can only be used with files saved with"
                f" `torch.save({f}, _use_new_zipfile_serialization=True), please torch.save your"
                " checkpoint with this option in order to use mmap."
            )
        if not isinstance(f, (str, os.PathLike)) and isinstance(file, io.TextIOBase):
            raise TypeError("torch.load: the file is opened as text; open it with mode 'rb'")
        return legacy_reader.read(file, loader, loader, restore)


def _is_safe(weights_only: bool | None, pickle_module: Any) -> bool:
    force = os.environ.get("TORCH_FORCE_WEIGHTS_ONLY_LOAD", "0").lower() in _TRUE
    relax = os.environ.get("TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD", "0").lower() in _TRUE
    if force and relax:
        raise RuntimeError(
            "Only one of `TORCH_FORCE_WEIGHTS_ONLY_LOAD` or `TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD`"
            " should be set, but both were set."
        )
    if force:
        return True
    if weights_only is None:
        return not relax and pickle_module is None
    return bool(weights_only)


@contextlib.contextmanager
def _opened(f: Any) -> Iterator[Any]:
    if isinstance(f, (str, os.PathLike)):
        with open(f, "rb") as file:
            yield file
        return
    for name in ("seek", "read", "readline", "tell"):
        if not hasattr(f, name):
            raise AttributeError(
                f"'{type(f).__name__}' object has no attribute '{name}'. You can only torch.load"
                " from a file that is seekable. Please pre-load the data into a buffer like"
                " io.BytesIO and try to load from it instead."
            )
    yield f


def _is_zip(file: Any) -> bool:
    start = file.tell()
    head = file.read(4)
    file.seek(start)
    return head == b"PK\3\4"


# ---- the two unpicklers --------------------------------------------------------------------------


def _safely(file: Any, persistent: Any, arguments: dict[str, Any]) -> Any:
    machine = SafeUnpickler(file, persistent_load=persistent, **arguments)
    try:
        return machine.load()
    except pickle.UnpicklingError as e:
        raise pickle.UnpicklingError(explain(str(e))) from None
    except _DAMAGED as e:
        message = f"the pickle is damaged, or calls a function wrongly: {type(e).__name__}: {e}"
        raise pickle.UnpicklingError(explain(message[:2000])) from e


def _trusting(file: Any, persistent: Any, module: Any, arguments: dict[str, Any]) -> Any:
    base = module.Unpickler

    class Unpickler(base):  # type: ignore[misc, valid-type]
        """Python's, with PyTorch's names meaning torchlab."""

        def find_class(self, mod: str, name: str) -> Any:
            return find(mod, name) if is_torch(mod) else super().find_class(mod, name)

        def persistent_load(self, pid: Any) -> Any:
            if persistent is None:
                raise pickle.UnpicklingError("a storage in a pickle that has no storages")
            return persistent(pid)

    return Unpickler(file, **arguments).load()


# ---- zip archives -------------------------------------------------------------------------------


def _load_zip(f: Any, file: Any, loader: Any, restore: Any, mapped: bool, safe: bool) -> Any:
    if mapped and not isinstance(f, (str, os.PathLike)):
        raise ValueError("f must be a file path in order to use the mmap argument")
    archive = ZipReader(file)
    if "constants.pkl" in archive:
        if safe:
            raise RuntimeError(SCRIPT_ARCHIVE)
        raise RuntimeError(
            "'torch.load' received a zip file that looks like a TorchScript archive, use"
            " torch.jit.load to read it"
        )
    if options.skipping():
        memory = None
    elif mapped:
        shared = options.get_default_mmap_options() == options.MAP_SHARED
        memory = np.memmap(os.fspath(f), np.uint8, "r+" if shared else "c")
    else:
        memory = None
    storages = _Storages(archive, restore, memory)
    pickled = io.BytesIO(archive.record("data.pkl"))
    return loader(pickled, storages.load)


class _Storages:
    """The storages of an archive, each read once."""

    def __init__(self, archive: ZipReader, restore: Any, memory: Any) -> None:
        self._archive, self._restore, self._memory = archive, restore, memory
        self._found: dict[str, Any] = {}
        self._swap = _other_order(archive)

    def load(self, pid: Any) -> Any:
        """The typed storage of a persistent id."""
        wanted = parse(pid)
        known = self._found.get(wanted.key)
        if known is None:
            raw = self._read(f"data/{wanted.key}", wanted)
            known = self._found[wanted.key] = (wanted, self._restore(raw, wanted.location))
        first, storage = known
        if first.nbytes != wanted.nbytes:
            raise RuntimeError(
                f"storage {wanted.key[:60]} appears with {first.nbytes} and with {wanted.nbytes}"
                " bytes in the file"
            )
        return typed(storage.untyped(), wanted.dtype)

    def _read(self, name: str, wanted: Any) -> UntypedStorage:
        n = self._archive.size(name)
        if n != wanted.nbytes:
            item = wanted.dtype.itemsize
            raise RuntimeError(
                f"record size ({n} bytes) does not match expected size ({wanted.nbytes} bytes ="
                f" {wanted.numel} elements * {item} bytes/element) for dtype"
                f" {wanted.dtype.scalar_name}"
            )
        if options.skipping():
            made = UntypedStorage(n, device=cpu)
            made._storage.bytes[:] = 0
            return made
        if self._memory is None:
            made = UntypedStorage(n, device=cpu)
            self._archive.read_into(name, made._storage.bytes)
        else:
            made = self._mapped(name, n)
        if self._swap and wanted.dtype.itemsize > 1:
            made.byteswap(wanted.dtype)
        return made

    def _mapped(self, name: str, n: int) -> UntypedStorage:
        if not self._archive.stored(name):
            raise corrupt(f"mapping file {name}", "it is compressed; load it without mmap")
        if not n:
            return UntypedStorage(0, device=cpu)
        at = self._archive.offset(name)
        part = np.asarray(self._memory)[at : at + n]
        memory = Storage(part)
        memory.lent = True  # the file's: it cannot grow
        return wrap_storage(memory, cpu)


def _other_order(archive: ZipReader) -> bool:
    """Whether the file's numbers are in the other byte order than this machine's."""
    if "byteorder" in archive:
        text = archive.small("byteorder").decode("latin-1")
        if text not in ("little", "big"):
            raise ValueError(f"Unknown endianness type: {text[:40]}")
        return text != sys.byteorder
    default = options.get_default_load_endianness()
    if default in (None, LoadEndianness.NATIVE):
        return False
    return (default is LoadEndianness.LITTLE) != (sys.byteorder == "little")


# ---- looking without loading ---------------------------------------------------------------------


def get_unsafe_globals_in_checkpoint(f: str | os.PathLike[str] | IO[bytes]) -> list[str]:
    """The names in a file that `torch.load(weights_only=True)` would refuse. Nothing is loaded.

    Raises:
        ValueError: it is no file of `torch.save` in the zip format.
    """
    with _opened(f) as file:
        if not _is_zip(file):
            raise ValueError("Expected input to be a checkpoint returned by torch.save")
        archive = ZipReader(file)
        if "constants.pkl" in archive:
            raise ValueError(
                "Expected input to be a checkpoint returned by torch.save but got a torchscript"
                " checkpoint"
            )
        data = archive.record("data.pkl")
    allowed = {*safe_globals.DEFAULTS, *safe_globals.user_globals()}
    return sorted(_named(data) - allowed)


_MEMO_PUT = frozenset({"BINPUT", "LONG_BINPUT", "PUT"})
_MEMO_GET = frozenset({"BINGET", "LONG_BINGET", "GET"})
_TEXT = frozenset({"SHORT_BINUNICODE", "BINUNICODE", "BINUNICODE8", "UNICODE"})


def _named(data: bytes) -> set[str]:
    """The names of all globals in a pickle."""
    found: set[str] = set()
    recent: list[Any] = []  # texts, for STACK_GLOBAL takes its names from the stack
    memo: dict[int, Any] = {}
    arg: Any
    for op, arg, _ in pickletools.genops(data):
        if op.name == "GLOBAL":
            module, _, name = arg.partition(" ")
            found.add(_full(module, name))
        elif op.name == "STACK_GLOBAL":
            if len(recent) < 2:
                raise ValueError("the pickle in the checkpoint is damaged")
            found.add(_full(recent[-2], recent[-1]))
        elif op.name in _TEXT:
            recent.append(arg)
        elif op.name == "MEMOIZE":
            memo[len(memo)] = recent[-1] if recent else None
        elif op.name in _MEMO_PUT:
            memo[arg] = recent[-1] if recent else None
        elif op.name in _MEMO_GET and isinstance(memo.get(arg), str):
            recent.append(memo[arg])
    return found


def _full(module: Any, name: Any) -> str:
    module = "builtins" if module == "__builtin__" else module
    return f"{module}.{name}"


for _public in (load, get_unsafe_globals_in_checkpoint):
    _public.__module__ = "torchlab.serialization"

"""What a file may name when it is loaded with `weights_only=True`.

A name in a file is looked up in a table and nowhere else: nothing is imported because a file asks
for it. For the table's own functions there is a guarded form that checks its arguments and uses no
more memory than they have; what the user adds is called as it is.

Source: https://docs.pytorch.org/docs/2.13/notes/serialization.html#weights-only
"""

from __future__ import annotations

import codecs
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterable
from pickle import UnpicklingError
from typing import Any

from torchlab._core import device as devices
from torchlab._core import dtype as dt
from torchlab._core import storages
from torchlab._core.tensor import Size, Tensor
from torchlab.nn.parameter import Parameter
from torchlab.serialization import rebuild
from torchlab.serialization.names import on_disk
from torchlab.serialization.storage_classes import CLASSES, StorageType

Entry = Any  # an object, or (object, "the.name.it.has.in.files")
_added: dict[Any, None] = {}  # in the order in which they were added

BLOCKED_MODULES = frozenset({"sys", "os", "posix", "nt"})
"""No allow-list opens these."""

_SIMPLE = frozenset(
    {str, int, float, bool, bytes, complex, type(None), dt.dtype, devices.device}
)  # fmt: skip
_MOST_IN_KEY = 1000


def check_key(key: Any) -> Any:
    """The key, if hashing it is quick: tuples within tuples can stand for exponentially many."""
    if type(key) in _SIMPLE:
        return key
    pending, seen = [key], 0
    while pending:
        x = pending.pop()
        seen += 1
        if seen > _MOST_IN_KEY:
            raise UnpicklingError(f"a key of a dict or set has more than {_MOST_IN_KEY} parts")
        if type(x) is tuple or type(x) is Size:
            pending.extend(x)
        elif type(x) not in _SIMPLE and not isinstance(x, Tensor):
            raise UnpicklingError(f"a key of a dict or set is a {type(x).__name__}")
    return key


# ---- guarded forms ------------------------------------------------------------------------------


def _pairs(items: Any, what: str) -> list[Any]:
    if isinstance(items, dict):
        return list(items.items())
    if type(items) not in (list, tuple):
        raise UnpicklingError(f"{what} of a {type(items).__name__}")
    for pair in items:
        if type(pair) not in (list, tuple) or len(pair) != 2:
            raise UnpicklingError(f"{what} of something else than pairs")
        check_key(pair[0])
    return list(items)


def _ordered_dict(items: Any = ()) -> Any:
    return OrderedDict(_pairs(items, "OrderedDict"))


def _counter(items: Any = None) -> Any:
    if items is None:
        return Counter()
    if not isinstance(items, dict):
        raise UnpicklingError(f"Counter of a {type(items).__name__}")
    return Counter(items)


def _set(items: Any = ()) -> Any:
    if type(items) not in (list, tuple):
        raise UnpicklingError(f"set of a {type(items).__name__}")
    return {check_key(x) for x in items}


def _bytes_of(text: Any, encoding: Any) -> bytes:
    if type(text) is not str or type(encoding) is not str:
        raise UnpicklingError("_codecs.encode of something else than a text and an encoding")
    if encoding.replace("_", "").replace("-", "").lower() not in ("latin1", "utf8"):
        raise UnpicklingError(f"_codecs.encode with the encoding {encoding[:40]!r}")
    return codecs.encode(text, encoding)


def _bytearray(data: Any = b"", encoding: Any = None) -> bytearray:
    if encoding is not None:
        return bytearray(_bytes_of(data, encoding))
    if type(data) is not bytes:  # bytearray(10**12) would ask for a terabyte
        raise UnpicklingError(f"bytearray of a {type(data).__name__}")
    return bytearray(data)


def _complex(real: Any = 0.0, imag: Any = 0.0) -> complex:
    if type(real) not in (int, float) or type(imag) not in (int, float):
        raise UnpicklingError("complex of something else than numbers")
    return complex(real, imag)


def _size(items: Any = ()) -> Size:
    if type(items) not in (list, tuple) or not all(type(x) is int for x in items):
        raise UnpicklingError("torch.Size of something else than integers")
    return Size(items)


def _device(kind: Any, index: Any = None) -> Any:
    if type(kind) is not str or type(index) not in (int, type(None)):
        raise UnpicklingError("torch.device of something else than a name and an index")
    return devices.device(kind, index)


def _dtype_of_tensor(*args: Any) -> Any:
    raise UnpicklingError("a class of tensors is called: only the _rebuild functions make tensors")


def _parameter(data: Any, requires_grad: Any = True) -> Any:
    return rebuild.rebuild_parameter(data, requires_grad, None)


def _from_type(func: Any, type: Any, args: Any, state: Any) -> Any:
    if type is not Tensor and type is not Parameter and not is_added(type):
        raise UnpicklingError("a tensor of a class that is not allowed")
    return rebuild.rebuild_from_type(func, type, args, state)


def _wrapper(cls: Any, *facts: Any) -> Any:
    if not is_added(cls):
        raise UnpicklingError("a tensor of a class that is not allowed")
    return rebuild.rebuild_wrapper_subclass(cls, *facts)


_GUARDS: tuple[tuple[Any, Callable[..., Any]], ...] = (
    (OrderedDict, _ordered_dict),
    (Counter, _counter),
    (set, _set),
    (bytearray, _bytearray),
    (complex, _complex),
    (codecs.encode, _bytes_of),
    (Size, _size),
    (devices.device, _device),
    (Tensor, _dtype_of_tensor),
    (Parameter, _parameter),
    (rebuild.rebuild_from_type, _from_type),
    (rebuild.rebuild_wrapper_subclass, _wrapper),
    (rebuild.get_layout, rebuild.get_layout),
    *((f, f) for f in rebuild.PLAIN),
)
GUARDED = {id(obj): (obj, guard) for obj, guard in _GUARDS}
"""By identity of the object that a file names: how a file may call it."""


def _defaults() -> dict[str, Any]:
    found: dict[str, Any] = {
        "collections.OrderedDict": OrderedDict,
        "collections.Counter": Counter,
        "builtins.set": set,
        "builtins.bytearray": bytearray,
        "builtins.complex": complex,
        "_codecs.encode": codecs.encode,
        "torch.Size": Size,
        "torch.Tensor": Tensor,
        "torch.device": devices.device,
        "torch.nn.parameter.Parameter": Parameter,
        "torch.storage.UntypedStorage": storages.UntypedStorage,
        "torch.storage.TypedStorage": storages.TypedStorage,
        "torch.serialization._get_layout": rebuild.get_layout,
        "torch._tensor._rebuild_from_type_v2": rebuild.rebuild_from_type,
        "torch._utils._rebuild_wrapper_subclass": rebuild.rebuild_wrapper_subclass,
    }
    for scheme in rebuild.SCHEMES:
        found[str(scheme)] = scheme
    for d in (*dt.ALL, *dt.QUANTIZED):
        found[f"torch.{d.name}"] = d
    for name in CLASSES:
        found[f"torch.{name}"] = StorageType(name)
        found[f"torch.cuda.{name}"] = StorageType(name)
    for f in rebuild.PLAIN:
        place = on_disk(f)
        assert place is not None
        found[".".join(place)] = f
    return found


DEFAULTS: dict[str, Any] = _defaults()


# ---- what the user adds -------------------------------------------------------------------------


def add_safe_globals(safe_globals: Iterable[Entry]) -> None:
    """Let files name these classes and functions with `weights_only=True`, and call them. An entry
    is the object, or (object, full name in the file)."""
    for entry in _checked(safe_globals):
        _added[entry] = None


def get_safe_globals() -> list[Entry]:
    """What `add_safe_globals` added."""
    return list(_added)


def clear_safe_globals() -> None:
    """Forget what `add_safe_globals` added."""
    _added.clear()


class safe_globals:
    """`with safe_globals([Net]): torch.load(…)`: these are allowed inside."""

    def __init__(self, safe_globals: Iterable[Entry]) -> None:
        self.safe_globals = _checked(safe_globals)

    def __enter__(self) -> None:
        self._new = [x for x in self.safe_globals if x not in _added]
        add_safe_globals(self._new)

    def __exit__(self, *exc: object) -> None:
        for x in self._new:
            _added.pop(x, None)


def _checked(entries: Iterable[Entry]) -> list[Entry]:
    found = list(entries)
    for x in found:
        if type(x) is tuple and not (len(x) == 2 and callable(x[0]) and isinstance(x[1], str)):
            raise ValueError(
                "add_safe_globals: expected an object, or a tuple (object, 'module.name'), not"
                f" {x!r:.100}"
            )
    return found


def _object(entry: Entry) -> Any:
    return entry[0] if type(entry) is tuple else entry


def is_added(obj: Any) -> bool:
    """Whether the user allowed this very object."""
    return any(_object(entry) is obj for entry in _added)


def user_globals() -> dict[str, Any]:
    """The user's objects under the names that files may have for them."""
    found: dict[str, Any] = {}
    for entry in _added:
        obj = _object(entry)
        if type(entry) is tuple:
            found[entry[1]] = obj
            continue
        module = getattr(obj, "__module__", None)
        name = getattr(obj, "__qualname__", getattr(obj, "__name__", None))
        if module is None or name is None:
            continue
        found[f"{module}.{name}"] = obj
        place = on_disk(obj)
        if place is not None:
            found[".".join(place)] = obj
    return found


for _public in (add_safe_globals, get_safe_globals, clear_safe_globals, safe_globals):
    _public.__module__ = "torchlab.serialization"

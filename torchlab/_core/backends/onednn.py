"""oneDNN's convolutions, where the extra `fast` has installed the library.

The package `onednn-cpu-gomp` brings oneDNN's C interface (3.x) as a shared library; it is called
through ctypes, and nothing is loaded before the first convolution. What it does not cover (other
types than float32, forked children, where OpenMP's threads are missing) NumPy computes.

Note: memory formats
    oneDNN is told the strides of what torchlab has and may choose the format ("any") of what it
    reads and writes; where they differ it reorders, which is one pass over the memory. The weight
    is left to it in every primitive: with a plain weight, or a hint made from one, it would take
    its slow reference kernel.
Source: https://uxlfoundation.github.io/oneDNN/v3.2/dev_guide_convolution.html
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import pathlib
import sys
import threading
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

_Dims = ctypes.c_int64 * 12
_P = ctypes.c_void_p
_F32, _ANY = 3, 1
_CPU, _IN_ORDER = 1, 1
_TRAINING, _DIRECT = 64, 1
_SRC, _DST, _WEIGHTS = 1, 17, 33
_DIFF_SRC, _DIFF_DST, _DIFF_WEIGHTS = 129, 145, 161
_QUERY = {_SRC: 129, _DIFF_SRC: 130, _WEIGHTS: 131, _DIFF_WEIGHTS: 132, _DST: 133, _DIFF_DST: 134}


class _Argument(ctypes.Structure):
    _fields_ = [("number", ctypes.c_int), ("memory", _P)]


class OneDNNError(RuntimeError):
    """oneDNN refused a call; the number is its dnnl_status_t."""


class _Library:
    """The loaded library: an engine, and calls whose status is checked."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.lib = ctypes.CDLL(path)
        self.pid = os.getpid()
        self.engine = _P()
        self("engine_create", ctypes.byref(self.engine), _CPU, ctypes.c_size_t(0))
        query = self.lib.dnnl_primitive_desc_query_md
        query.restype, query.argtypes = _P, [_P, ctypes.c_int, ctypes.c_int]
        size = self.lib.dnnl_memory_desc_get_size
        size.restype, size.argtypes = ctypes.c_size_t, [_P]
        equal = self.lib.dnnl_memory_desc_equal
        equal.restype, equal.argtypes = ctypes.c_int, [_P, _P]

    def __call__(self, name: str, *arguments: Any) -> None:
        status = getattr(self.lib, "dnnl_" + name)(*arguments)
        if status:
            raise OneDNNError(f"oneDNN: {name} failed with status {status}")

    def layout(self, shape: Sequence[int], strides: Sequence[int] | None) -> Any:
        """A memory descriptor of float32; `strides` in elements, None: oneDNN may choose."""
        made = _P()
        dims = _Dims(*shape)
        if strides is None:
            self("memory_desc_create_with_tag", ctypes.byref(made), len(shape), dims, _F32, _ANY)
        else:
            self(
                "memory_desc_create_with_strides", ctypes.byref(made), len(shape), dims, _F32,
                _Dims(*strides),
            )  # fmt: skip
        return made

    def memory(self, layout: Any, address: int) -> Any:
        made = _P()
        self("memory_create", ctypes.byref(made), layout, self.engine, _P(address))
        return made


_lock = threading.Lock()
_found: list[_Library | None] = []


def library() -> _Library | None:
    """The library if it is installed; looked for once."""
    if not _found:
        with _lock:
            if not _found:
                _found.append(_load())
    return _found[0]


def _load() -> _Library | None:
    if os.environ.get("TORCHLAB_ONEDNN") == "0":
        return None
    names = {"linux": "libdnnl.so.3", "darwin": "libdnnl.3.dylib", "win32": "dnnl.dll"}
    name = names.get(sys.platform)
    if name is None:
        return None
    for folder in (pathlib.Path(sys.prefix) / "lib", pathlib.Path(sys.prefix) / "Library" / "bin"):
        path = folder / name
        if path.exists():
            return _Library(str(path))
    return None


_enabled = True


def enabled() -> bool:
    """Whether convolutions may go to the library."""
    return _enabled


def enable(on: bool) -> None:
    """Let them, or not: `torch.backends.mkldnn.enabled`, for the whole process."""
    global _enabled
    _enabled = on


def fits(*arrays: np.ndarray) -> bool:
    """Whether oneDNN is there, switched on, and takes these arrays."""
    if not _enabled:
        return False
    for a in arrays:
        if a.dtype.char != "f" or not a.size or a.ndim > 5 or min(a.strides) < 0:
            return False
    lib = library()
    return lib is not None and lib.pid == os.getpid()


class _Side:
    """One argument of a primitive: the caller's layout, oneDNN's, and the reorder between them,
    through the thread's buffer for arguments of this place."""

    def __init__(
        self, lib: _Library, number: int, own: Any, theirs: Any, place: int, write: bool
    ) -> None:
        self.lib, self.number, self.place, self.theirs = lib, number, place, theirs
        self.outer = lib.memory(own, 0)
        self.primitive: Any = None
        if lib.lib.dnnl_memory_desc_equal(own, theirs):
            self.inner = self.outer
            return
        self.size, self.address = lib.lib.dnnl_memory_desc_get_size(theirs), 0
        self.inner = lib.memory(theirs, 0)
        first, second = (theirs, own) if write else (own, theirs)
        made, self.primitive = _P(), _P()
        lib("reorder_primitive_desc_create", ctypes.byref(made), first, lib.engine, second,
            lib.engine, None)  # fmt: skip
        lib("primitive_create", ctypes.byref(self.primitive), made)
        lib("primitive_desc_destroy", made)
        a, b = (self.inner, self.outer) if write else (self.outer, self.inner)
        self.arguments = (_Argument * 2)(_Argument(_SRC, a), _Argument(_DST, b))

    def bind(self, array: np.ndarray) -> None:
        self.lib("memory_set_data_handle", self.outer, _P(_address(array)))
        if self.primitive is not None and (there := _local.buffer(self.place, self.size)) != (
            self.address
        ):
            self.lib("memory_set_data_handle", self.inner, _P(there))
            self.address = there

    def reorder(self, stream: Any) -> None:
        if self.primitive is not None:
            self.lib("primitive_execute", self.primitive, stream, 2, self.arguments)


def _aligned(size: int) -> np.ndarray:
    whole = np.empty(size + 64, np.uint8)
    start = -_address(whole) % 64
    return whole[start : start + size]


def _address(a: np.ndarray) -> int:
    return a.__array_interface__["data"][0]


class _Primitive:
    """A prepared convolution: `run(arrays)` in the order of its arguments, the last is written."""

    def __init__(
        self, lib: _Library, description: Any, arguments: Sequence[tuple[int, Any]]
    ) -> None:
        self.lib = lib
        self.primitive, self.stream = _P(), _P()
        lib("primitive_create", ctypes.byref(self.primitive), description)
        lib("stream_create", ctypes.byref(self.stream), lib.engine, _IN_ORDER)
        self.sides = []
        for i, (number, own) in enumerate(arguments):
            theirs = _P(lib.lib.dnnl_primitive_desc_query_md(description, _QUERY[number], 0))
            self.sides.append(_Side(lib, number, own, theirs, i, i == len(arguments) - 1))
        self.arguments = (_Argument * len(self.sides))(
            *(_Argument(s.number, s.inner) for s in self.sides)
        )

    def run(self, arrays: Sequence[np.ndarray]) -> None:
        for side, array in zip(self.sides, arrays, strict=True):
            side.bind(array)
        for side, array in zip(self.sides[:-1], arrays, strict=False):
            if side.place or not _local.has(side, array):
                side.reorder(self.stream)
        self.lib("primitive_execute", self.primitive, self.stream, len(self.sides), self.arguments)
        self.sides[-1].reorder(self.stream)
        self.lib("stream_wait", self.stream)


class _Local(threading.local):
    """The prepared primitives of a thread: their memory objects are rebound for every call; and one
    buffer for each place of their arguments, as large as the largest argument so far."""

    def __init__(self) -> None:
        self.made: dict[Any, _Primitive] = {}
        self.buffers: dict[int, tuple[np.ndarray, int]] = {}  # place → (bytes, address)
        self.once = False  # whether first arguments stay as they are
        self.first: Any = None  # the first argument that its buffer holds, and in which layout

    def buffer(self, place: int, size: int) -> int:
        found = self.buffers.get(place)
        if found is None or len(found[0]) < size:
            room = _aligned(size)
            found = self.buffers[place] = room, _address(room)
            if place == 0:
                self.first = None
        return found[1]

    def has(self, side: _Side, array: np.ndarray) -> bool:
        """Whether the buffer holds the array already, in the layout that `side` wants."""
        if not self.once or side.primitive is None:
            self.first = None
            return False
        now = _address(array), array.shape, array.strides
        if (
            self.first is not None
            and self.first[0] == now
            and side.lib.lib.dnnl_memory_desc_equal(self.first[1], side.theirs)
        ):
            return True
        self.first = now, side.theirs, array  # kept: no other may come to lie there meanwhile
        return False


_local = _Local()


@contextlib.contextmanager
def first_argument_stays() -> Iterator[None]:
    """Inside, nobody writes to the first argument of the calls: it is brought to oneDNN's layout
    once for all of them."""
    _local.once, _local.first = True, None
    try:
        yield
    finally:
        _local.once, _local.first = False, None


_KEPT = 256  # primitives per thread


def empty_like_format(shape: Sequence[int], x: np.ndarray) -> np.ndarray:
    """An array for a result: channels last in memory if x is, else row-major."""
    last = (0, *range(2, x.ndim), 1)
    if x.flags.c_contiguous or not x.transpose(last).flags.c_contiguous:
        return np.empty(shape, x.dtype)
    return np.empty([shape[d] for d in last], x.dtype).transpose(np.argsort(last))


def _strides(a: np.ndarray) -> tuple[int, ...]:
    return tuple(s // a.itemsize for s in a.strides)


def _weights(w: np.ndarray, groups: int) -> np.ndarray:
    """(O, I / groups, …) as oneDNN's (groups, O / groups, I / groups, …)."""
    return w if groups == 1 else w.reshape(groups, w.shape[0] // groups, *w.shape[1:])


def _forward_description(lib: _Library, x: Any, w: Any, y: Any, geometry: Any) -> Any:
    made = _P()
    lib("convolution_forward_primitive_desc_create", ctypes.byref(made), lib.engine, _TRAINING,
        _DIRECT, lib.layout(x.shape, None), lib.layout(w.shape, None), None,
        lib.layout(y.shape, None), *geometry, None)  # fmt: skip
    return made


def _prepared(what: str, arrays: Sequence[np.ndarray], stride: Any, padding: Any, dilation: Any,
              groups: int) -> _Primitive:  # fmt: skip
    """The primitive for arrays of these layouts; `what` tells their roles."""
    key = (what, *((a.shape, a.strides) for a in arrays), *map(tuple, (stride, padding, dilation)))
    found = _local.made.get(key)
    if found is not None:
        return found
    lib = library()
    assert lib is not None
    by = dict(zip(what, arrays, strict=True))
    x, w, y = by["x"], by["w"], by["y"]
    geometry = (
        _Dims(*stride), _Dims(*(d - 1 for d in dilation)), _Dims(*padding), _Dims(*padding)
    )  # fmt: skip
    own = {name: lib.layout(a.shape, _strides(a)) for name, a in by.items()}
    hint = _forward_description(lib, x, w, y, geometry)
    made = _P()
    free = {name: lib.layout(a.shape, None) for name, a in by.items()}
    if what[-1] == "y":
        made, roles = hint, {"x": _SRC, "w": _WEIGHTS, "y": _DST}
    elif what[-1] == "x":
        lib("convolution_backward_data_primitive_desc_create", ctypes.byref(made), lib.engine,
            _DIRECT, free["x"], free["w"], free["y"], *geometry, hint, None)  # fmt: skip
        roles = {"x": _DIFF_SRC, "w": _WEIGHTS, "y": _DIFF_DST}
    else:
        lib("convolution_backward_weights_primitive_desc_create", ctypes.byref(made), lib.engine,
            _DIRECT, free["x"], free["w"], None, free["y"], *geometry, hint, None)  # fmt: skip
        roles = {"x": _SRC, "w": _DIFF_WEIGHTS, "y": _DIFF_DST}
    if len(_local.made) >= _KEPT:
        _local.made.clear()
    found = _local.made[key] = _Primitive(lib, made, [(roles[n], own[n]) for n in what])
    return found


def forward(x: np.ndarray, w: np.ndarray, out: np.ndarray, stride: Any, padding: Any,
            dilation: Any, groups: int) -> np.ndarray:  # fmt: skip
    """out (N, O, …) ← the convolution of x (N, I, …) with w (O, I / groups, …)."""
    arrays = [x, _weights(w, groups), out]
    _prepared("xwy", arrays, stride, padding, dilation, groups).run(arrays)
    return out


def input_grad(g: np.ndarray, w: np.ndarray, out: np.ndarray, stride: Any, padding: Any,
               dilation: Any, groups: int) -> np.ndarray:  # fmt: skip
    """out (N, I, …) ← the gradient of the input."""
    arrays = [g, _weights(w, groups), out]
    _prepared("ywx", arrays, stride, padding, dilation, groups).run(arrays)
    return out


def weight_grad(g: np.ndarray, x: np.ndarray, out: np.ndarray, stride: Any, padding: Any,
                dilation: Any, groups: int) -> np.ndarray:  # fmt: skip
    """out (O, I / groups, …) ← the gradient of the weight."""
    arrays = [g, x, _weights(out, groups)]
    _prepared("yxw", arrays, stride, padding, dilation, groups).run(arrays)
    return out

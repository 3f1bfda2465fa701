"""oneDNN's long short-term memory, where the extra `fast` has installed the library.

One primitive runs a whole layer in one direction over all times; its backward needs the workspace
that the forward fills. For float32; what it does not cover (packed sequences, projections, other
types, forked children) NumPy computes, in a quarter more time.

Note: weights
    PyTorch's (4·hidden, n) is oneDNN's (layer, direction, n, gate, hidden) with other strides, the
    gates in the same order. oneDNN chooses the format it multiplies with, another one for every
    primitive, and reorders: one pass over the weights. Gradients come back the same way. oneDNN
    adds them to what it finds, so they start as zeros.
Source: https://uxlfoundation.github.io/oneDNN/v3.2/dev_guide_rnn.html
"""

from __future__ import annotations

import ctypes
import threading
import weakref
from collections.abc import Sequence
from typing import Any

import numpy as np

from torchlab._core.backends import onednn
from torchlab._core.backends.onednn import _IN_ORDER, _P, _TRAINING, _address, _aligned, _Argument

_INFERENCE, _BACKWARD = 96, 128
_ARGUMENT_MD = 255  # the query for an argument's memory descriptor
_X, _H, _C, _Y, _LAST_H, _LAST_C, _W_IH, _W_HH, _BIAS, _WORKSPACE = (
    1, 2, 3, 17, 18, 19, 33, 34, 41, 64
)  # fmt: skip
_GRAD = 128  # added to an argument's number: its gradient


class _Call:
    """A prepared primitive: `run(arrays)` in the order of its arguments."""

    def __init__(self, lib: Any, description: Any, arguments: Sequence[tuple[int, Any]]) -> None:
        self.lib = lib
        self.primitive, self.stream = _P(), _P()
        lib("primitive_create", ctypes.byref(self.primitive), description)
        lib("stream_create", ctypes.byref(self.stream), lib.engine, _IN_ORDER)
        self.memories = [lib.memory(layout, 0) for _, layout in arguments]
        handles = [("memory", m) for m in self.memories]
        handles += [("primitive", self.primitive), ("stream", self.stream)]
        weakref.finalize(self, _destroy, lib, handles).atexit = False
        self.arguments = (_Argument * len(arguments))(
            *(_Argument(n, m) for (n, _), m in zip(arguments, self.memories, strict=True))
        )

    def run(self, *arrays: np.ndarray) -> None:
        lib = self.lib
        for memory, array in zip(self.memories, arrays, strict=True):
            lib("memory_set_data_handle", memory, _P(_address(array)))
        lib("primitive_execute", self.primitive, self.stream, len(self.arguments), self.arguments)
        lib("stream_wait", self.stream)


def _destroy(lib: Any, handles: list[tuple[str, Any]]) -> None:
    for kind, handle in handles:
        lib(f"{kind}_destroy", handle)


class _Layer:
    """The primitives of one layer of given sizes in one direction."""

    def __init__(
        self, lib: Any, times: int, batch: int, size: int, hidden: int, back: bool, train: bool
    ) -> None:
        self.lib = lib
        self.hidden = hidden
        self.made: list[Any] | None = None
        state = (1, 1, batch, hidden)
        self.plain = {
            _X: _row_major(lib, (times, batch, size)), _Y: _row_major(lib, (times, batch, hidden)),
            _BIAS: _row_major(lib, (1, 1, 4, hidden)),
            **{n: _row_major(lib, state) for n in (_H, _C, _LAST_H, _LAST_C)},
        }  # fmt: skip
        widths = {_W_IH: size, _W_HH: hidden}
        self.free = {n: lib.layout((1, 1, k, 4, hidden), None) for n, k in widths.items()}
        self.ours = {  # (4·hidden, k) row-major
            n: lib.layout((1, 1, k, 4, hidden), (4 * hidden * k, 4 * hidden * k, 1, hidden * k, k))
            for n, k in widths.items()
        }
        self.direction = 2 if back else 1
        self.description = _P()
        lib("lstm_forward_primitive_desc_create", ctypes.byref(self.description), lib.engine,
            _TRAINING if train else _INFERENCE, self.direction, *self._inputs(), *self._outputs(),
            0, None)  # fmt: skip
        self.inputs = self._turned(self.description)
        arguments = [*self._arguments(self.description)]
        if train:
            arguments.append((_WORKSPACE, self._layout(self.description, _WORKSPACE)))
        self.forward = _Call(lib, self.description, arguments)
        self.workspace = self._size(self.description, _WORKSPACE) if train else 0

    def _inputs(self) -> list[Any]:
        """x, h, c, the weights, no peephole, no projection, the bias."""
        p = self.plain
        return [p[_X], p[_H], p[_C], self.free[_W_IH], self.free[_W_HH], None, None, p[_BIAS]]

    def _outputs(self) -> list[Any]:
        return [self.plain[n] for n in (_Y, _LAST_H, _LAST_C)]

    def _layout(self, description: Any, number: int) -> Any:
        return _P(self.lib.lib.dnnl_primitive_desc_query_md(description, _ARGUMENT_MD, number))

    def _size(self, description: Any, number: int) -> int:
        return self.lib.lib.dnnl_memory_desc_get_size(self._layout(description, number))

    def _arguments(self, description: Any, grad: int = 0) -> list[tuple[int, Any]]:
        order = (_X, _H, _C, _W_IH, _W_HH, _BIAS, _Y, _LAST_H, _LAST_C)
        return [(n + grad, self.plain.get(n) or self._layout(description, n + grad)) for n in order]

    def _turned(self, description: Any, grad: int = 0) -> list[tuple[_Call, int]]:
        """For both weights: the reorder to oneDNN's format (of gradients: from it) and its size."""
        found = []
        for n in (_W_IH, _W_HH):
            theirs = self._layout(description, n + grad)
            pair = (theirs, self.ours[n]) if grad else (self.ours[n], theirs)
            made = _P()
            self.lib("reorder_primitive_desc_create", ctypes.byref(made), pair[0], self.lib.engine,
                     pair[1], self.lib.engine, None)  # fmt: skip
            call = _Call(self.lib, made, [(_X, pair[0]), (_Y, pair[1])])
            found.append((call, self._size(description, n + grad)))
        return found

    def weights(self, turned: list[tuple[_Call, int]], *weights: np.ndarray) -> list[np.ndarray]:
        found = []
        for (call, size), w in zip(turned, weights, strict=True):
            found.append(_aligned(size))
            call.run(w, found[-1])
        return found

    def backward(self) -> list[Any]:
        """(the primitive, the weights' reorders, those of their gradients); made when first
        needed."""
        if self.made is None:
            p, made = self.plain, _P()
            self.lib(
                "lstm_backward_primitive_desc_create", ctypes.byref(made), self.lib.engine,
                _BACKWARD, self.direction, *self._inputs(), *self._outputs(), p[_X], p[_H], p[_C],
                self.free[_W_IH], self.free[_W_HH], None, None, p[_BIAS], *self._outputs(), 0,
                self.description, None,
            )  # fmt: skip
            arguments = [
                *self._arguments(made), (_WORKSPACE, self._layout(made, _WORKSPACE)),
                *self._arguments(made, _GRAD),
            ]  # fmt: skip
            self.made = [
                _Call(self.lib, made, arguments), self._turned(made), self._turned(made, _GRAD)
            ]  # fmt: skip
        return self.made


def _row_major(lib: Any, shape: tuple[int, ...]) -> Any:
    strides = [1]
    for n in shape[:0:-1]:
        strides.insert(0, strides[0] * n)
    return lib.layout(shape, strides)


class _Local(threading.local):
    """The prepared layers of a thread: their memory objects are rebound for every call."""

    def __init__(self) -> None:
        self.made: dict[Any, _Layer] = {}


_local = _Local()
_KEPT = 64  # layers per thread


def _layer(x: Any, hidden: int, backwards: bool, train: bool) -> _Layer:
    key = (*x.shape, hidden, backwards, train)
    found = _local.made.get(key)
    if found is None:
        if len(_local.made) >= _KEPT:
            _local.made.clear()
        found = _local.made[key] = _Layer(onednn.library(), *key)
    return found


def fits(*arrays: Any) -> bool:
    """Whether oneDNN is there, switched on, and takes arrays of this type."""
    return onednn.fits(*arrays)


def workspace(x: Any, hidden: int, backwards: bool) -> int:
    """Bytes that a forward for training writes for its backward."""
    return _layer(x, hidden, backwards, True).workspace


def _bias(w: Any, b_ih: Any, b_hh: Any) -> Any:
    if b_ih is None or b_hh is None:
        b = b_hh if b_ih is None else b_ih
        return np.zeros(w.shape[0], w.dtype) if b is None else np.ascontiguousarray(b)
    return b_ih + b_hh


def forward(
    x: Any, h: Any, c: Any, w_ih: Any, w_hh: Any, b_ih: Any, b_hh: Any, backwards: bool,
    train: bool, room: int,
) -> tuple[Any, Any, Any, Any]:  # fmt: skip
    """x (T, N, in) → (T, N, hidden), the last h and c, and `room` bytes that begin with the
    workspace, if `train`."""
    hidden = w_hh.shape[1]
    layer = _layer(x, hidden, backwards, train)
    x, h, c, w_ih, w_hh = map(np.ascontiguousarray, (x, h, c, w_ih, w_hh))
    y = np.empty((*x.shape[:2], hidden), x.dtype)
    last_h, last_c = np.empty(h.shape, x.dtype), np.empty(c.shape, x.dtype)
    space = _aligned(room)
    weights = layer.weights(layer.inputs, w_ih, w_hh)
    more = (space,) if train else ()
    layer.forward.run(x, h, c, *weights, _bias(w_hh, b_ih, b_hh), y, last_h, last_c, *more)
    return y, last_h, last_c, space


def backward(
    g: Any, gh: Any, gc: Any, x: Any, h: Any, c: Any, w_ih: Any, w_hh: Any, y: Any, last_h: Any,
    last_c: Any, space: Any, backwards: bool,
) -> tuple[Any, ...]:  # fmt: skip
    """The gradients of x, h, c, w_ih, w_hh and the sum of the biases; absent ones that come in are
    None."""
    hidden = w_hh.shape[1]
    layer = _layer(x, hidden, backwards, True)
    call, turned, back = layer.backward()
    x, h, c, w_ih, w_hh, y = map(np.ascontiguousarray, (x, h, c, w_ih, w_hh, y))
    given = [
        np.zeros(like.shape, like.dtype) if v is None else np.ascontiguousarray(v)
        for v, like in ((g, y), (gh, h), (gc, c))
    ]
    weights = layer.weights(turned, w_ih, w_hh)
    bias = np.zeros(4 * hidden, x.dtype)
    sums = [_aligned(size) for _, size in back]
    for s in sums:
        s[...] = 0
    found = [np.empty(v.shape, v.dtype) for v in (x, h, c)]
    g_bias = np.zeros(4 * hidden, x.dtype)
    call.run(x, h, c, *weights, bias, y, last_h, last_c, space, *found, *sums, g_bias, *given)
    g_weights = [np.empty(w.shape, w.dtype) for w in (w_ih, w_hh)]
    for (reorder, _), s, w in zip(back, sums, g_weights, strict=True):
        reorder.run(s, w)
    return (*found, *g_weights, g_bias)

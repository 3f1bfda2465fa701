"""`x[...]` and `x[...] = v`: ints, slices, None, Ellipsis, masks, integer tensors and lists.

Basic indexing gives views, advanced indexing copies; PyTorch's rules, errors and grad_fn names.
Without recording, a basic index is one NumPy index and one view; under recording it is the chain of
selects, slices and unsqueezes that PyTorch records.
Source: https://docs.pytorch.org/docs/2.13/tensors.html,
https://numpy.org/doc/stable/user/basics.indexing.html
"""

from __future__ import annotations

from typing import Any

import numpy as np

from torchlab._core import dtype as dt
from torchlab._core.dispatch import compute, modes, viewing, writes
from torchlab._core.dispatch.factories import fresh
from torchlab._core.dispatch.op import face
from torchlab._core.dispatch.registry import aten
from torchlab._core.layout import as_size
from torchlab._core.memory.storage import Storage
from torchlab._core.refusals import NORMAL
from torchlab._core.tape import NOGRAD, TLS, ViewMeta
from torchlab._core.tensor import Parameter, Tensor

SLOW = modes.SLOW
_new = object.__new__
_REST = (Ellipsis,)
_FULL = slice(None)
_INTS = (int, np.integer)


def _basic_key(index: tuple[Any, ...]) -> Any:
    """The index as NumPy's, `...` added so that no scalar comes out, or None if it is not plainly
    basic. Nones count only if nothing after them changes the strides that PyTorch derives them
    from.
    """
    rest: tuple[Any, ...] = _REST
    news = False
    for x in index:
        c = type(x)
        if c is int:
            if news:
                return None
        elif c is slice:
            step = x.step
            if step is not None and (type(step) is not int or step < 1):
                return None
            if news and x != _FULL:
                return None
        elif x is Ellipsis:
            if not rest:
                return None
            rest = ()
        elif x is None:
            news = True
        else:
            return None
    return index + rest


@face("__getitem__", spaces=())
def getitem(self: Any, index: Any) -> Any:
    """`self[index]`: a view for ints, slices, None and Ellipsis, a copy if tensors or lists take
    part.

    IndexError for too many indices or one out of range, ValueError for a slice with a step below 1.
    """
    c = type(self)
    if SLOW or (c is not Tensor and c is not Parameter):
        return _getitem_odd(self, index)
    s = self._s
    if (self._e is None and (s is None or not s.stale)) or (NOGRAD and not TLS.grad):
        c = type(index)
        if c is int:
            key: Any = (index, ...)
        elif c is slice:
            step = index.step
            key = index if step is None or (type(step) is int and step > 0) else None
        elif c is tuple:
            key = _basic_key(index)
        elif index is None:
            key = (None, ...)
        else:
            key = None
        if key is not None:
            try:
                r = self._a[key]
                if c is not int and c is not slice and None in key:
                    r = _row_major(r, key)
            except (IndexError, TypeError, ValueError):
                r = None
            if r is not None:
                if s is None:
                    s = self._s = Storage(self._a)
                result = _new(Tensor)
                result._a = r
                k = self._k
                result._k = k.c if r.flags.c_contiguous else k.v
                result._s = s
                v = self._v
                if v is None:
                    v = self
                if type(v) is ViewMeta or (NOGRAD and not TLS.grad):
                    v = viewing.view_meta(v, s, result)
                elif s.version:
                    v = (v, NORMAL, s.version, None)
                result._v = v
                result._g = result._e = None
                if self._e is not None:
                    viewing.view_leaf(result)
                return result
        elif c is Tensor and _plain_indices(self, index):
            return aten.index(self, [index])
    elif type(index) is int:
        if self._a.ndim:
            return _select(self, 0, index, 0)
    elif type(index) is tuple:
        if _basic_key(index) is not None:
            return _chain(self, index)
    elif type(index) is Tensor and _plain_indices(self, index):
        return aten.index(self, [index])
    return _getitem(self, index)


def _plain_indices(t: Any, index: Any) -> bool:
    """Whether the tensor of indices needs no preparation."""
    k = index._k
    n = index._a.ndim
    return (
        (k.dtype is dt.int64 or k.dtype is dt.bool_)
        and 0 < n <= t._a.ndim + (k.dtype is dt.int64) * n
        and (t._a.ndim > 0 and k.device is t._k.device)
    )


def _chain(self: Any, index: tuple[Any, ...]) -> Any:
    """The recorded views of a plainly basic index, one after the other."""
    count = 0
    for x in index:
        if x is not None and x is not Ellipsis:
            count += 1
    n = self._a.ndim
    if count > n:
        raise IndexError(f"too many indices for tensor of dimension {n}")
    view, dim, own = self, 0, 0
    for x in index:
        c = type(x)
        if c is int:
            view = _select(view, dim, x, own)
            own += 1
        elif c is slice:
            if not _is_full(x, view._a.shape[dim]):
                view = _slice(view, dim, x)
            dim += 1
            own += 1
        elif x is None:
            view = aten.unsqueeze(view, dim)
            dim += 1
        else:
            dim += n - count
            own += n - count
    return aten.alias(self) if view is self else view


def _row_major(r: Any, key: tuple[Any, ...]) -> Any:
    """NumPy gives a new dim stride 0; PyTorch what row-major order gives. None: not that simple."""
    if r.flags.c_contiguous and r.shape.count(1) == key.count(None):
        return r.ravel().reshape(r.shape)
    return None


def _getitem_odd(self: Any, index: Any) -> Any:
    """Under modes, or on subclasses."""
    parts = index if type(index) is tuple else (index,)
    handlers = modes.overriding((self, *parts))
    for x in handlers:
        r = type(x).__torch_function__(
            Tensor.__getitem__, tuple({type(y): None for y in handlers}), (self, index), {}
        )  # type: ignore[attr-defined]
        if r is not NotImplemented:
            return r
    return _getitem(self, index)


def _getitem(self: Any, index: Any) -> Any:
    view, indices = basic_part(self, index)
    if indices is not None:
        return aten.index(view, indices)
    return aten.alias(self) if view is self else view


def _entries(index: Any) -> tuple[Any, ...]:
    """The index as a tuple. A list is one if it holds what only a tuple can mean."""
    if type(index) is tuple:
        return index
    if isinstance(index, list) and len(index) < 32:
        for x in index:
            if isinstance(x, (Tensor, list, tuple, range, slice)) or x is None or x is Ellipsis:
                return tuple(index)
    if isinstance(index, tuple):
        return tuple(index)
    return (index,)


def _as_index(x: Any, like: Tensor) -> Any:
    """A list, an array or a range as a tensor of indices (a mask if it holds bools)."""
    if (
        isinstance(x, (np.bool_, np.number))
        or not (hasattr(x, "__len__") and hasattr(x, "__getitem__"))
        or isinstance(x, dict)
    ):
        if not (isinstance(x, np.ndarray)):
            name = f"numpy.{type(x).__name__}" if isinstance(x, np.generic) else type(x).__name__
            raise IndexError(
                "only integers, slices (`:`), ellipsis (`...`), None and long or byte Variables "
                "are valid indices "
                f"(got {name})"
            )
    if isinstance(x, (str, bytes)):
        raise TypeError(f"new(): invalid data type '{type(x).__name__}'")
    t = aten.tensor(x)
    d = t._k.dtype
    if d is not dt.bool_ and d is not dt.uint8 and d is not dt.int64:
        t = aten.to(t, dtype=dt.int64)
    return t


def basic_part(self: Any, index: Any) -> tuple[Any, list[Any] | None]:
    """Apply ints, slices, Ellipsis and None as views. Returns the view (self if nothing changed)
    and
    the list of index tensors that remain (None entries keep a dim), or None if none remain."""
    n = self._a.ndim
    if isinstance(index, slice):
        return _slice(self, 0, index), None
    if isinstance(index, _INTS) and not isinstance(index, bool) and n == 0:
        raise IndexError(
            "invalid index of a 0-dim tensor. Use `tensor.item()` in Python to convert a 0-dim "
            "tensor to a number"
        )
    entries = [
        (
            x
            if x is None or isinstance(x, (int, np.integer, slice, Tensor)) or x is Ellipsis
            else _as_index(x, self)
        )
        for x in _entries(index)
    ]
    count = sum(map(_dims_of, entries))
    if count > n:
        raise IndexError(f"too many indices for tensor of dimension {n}")
    view, dim = self, 0
    own = 0  # the dimension of self that comes next, for messages
    indices: list[Any] = []
    for x in entries:
        if x is None:
            view = aten.unsqueeze(view, dim)
        elif x is Ellipsis:
            indices += [None] * (n - count)
            dim += n - count
            own += n - count
            continue
        elif isinstance(x, slice):
            if not _is_full(x, view._a.shape[dim]):
                view = _slice(view, dim, x)
            own += 1
        elif isinstance(x, bool):
            view = aten.unsqueeze(view, dim)
            indices.append(aten.tensor([0][:x], dtype=dt.int64, device=view._k.device))
            dim += 1
            continue
        elif isinstance(x, Tensor):
            if x._a.ndim == 0 and x._k.dtype.category == dt.INT and x._k.dtype is not dt.uint8:
                view = _select(view, dim, int(x.item()), own)  # type: ignore[attr-defined]
                own += 1
                continue
            if x._a.ndim == 0 and x._k.dtype.category <= dt.INT:
                view = aten.unsqueeze(view, dim)
                if x._k.plain and not SLOW:  # True and False are the places [0] and []
                    x = aten.tensor([0][: bool(x._a)], dtype=dt.int64, device=view._k.device)
                else:
                    x = aten.reshape(x, (1,))
            mask = x._k.dtype is dt.bool_ or x._k.dtype is dt.uint8
            indices.append(
                x if x._k.device is view._k.device else aten.to(x, device=view._k.device)
            )
            dim += x._a.ndim if mask else 1
            own += x._a.ndim if mask else 1
            continue
        else:
            view = _select(view, dim, as_size(x), own)
            own += 1
            continue
        indices.append(None)
        dim += 1
    if all(x is None for x in indices):
        return view, None
    return view, indices


def _dims_of(x: Any) -> int:
    """How many dims an entry uses up."""
    if x is None or x is Ellipsis or isinstance(x, bool):
        return 0
    if isinstance(x, Tensor) and (x._k.dtype is dt.bool_ or x._k.dtype is dt.uint8):
        return x._a.ndim
    return 1


def _is_full(x: slice, size: int) -> bool:
    """Whether PyTorch passes over the slice: it names everything, from 0 on."""
    for given in (x.start, x.stop, x.step):
        if given is not None and type(given) is not int:
            return False
    return x.start in (None, 0) and x.step in (None, 1) and (x.stop is None or x.stop >= size)


def _select(t: Any, dim: int, i: int, own: int) -> Any:
    size = t._a.shape[dim]
    if not -size <= i < size:
        raise IndexError(f"index {i} is out of bounds for dimension {own} with size {size}")
    return aten.select(t, dim, i)


def _slice(t: Any, dim: int, x: slice) -> Any:
    if t._a.ndim == 0:
        raise IndexError("slice() cannot be applied to a 0-dim tensor.")
    try:
        start, end, step = (None if v is None else as_size(v) for v in (x.start, x.stop, x.step))
    except TypeError:
        raise TypeError(
            "slice indices must be integers or None or have an __index__ method"
        ) from None
    if step is not None and step <= 0:
        raise ValueError("step must be greater than zero")
    return aten.slice(t, dim, start, end, 1 if step is None else step)


# ---- writing ------------------------------------------------------------------------------------


@face("__setitem__", spaces=())
def setitem(self: Any, index: Any, value: Any) -> None:
    """`self[index] = value`, value broadcast and converted; recorded if gradients flow."""
    c = type(self)
    if not SLOW and (c is Tensor or c is Parameter) and _wrote_plainly(self, index, value):
        return
    handlers = modes.overriding((self, value))
    for x in handlers:
        r = type(x).__torch_function__(
            Tensor.__setitem__, tuple({type(y): None for y in handlers}), (self, index, value), {}
        )  # type: ignore[attr-defined]
        if r is not NotImplemented:
            return
    _setitem(self, index, value)


def _wrote_plainly(t: Any, index: Any, value: Any) -> bool:
    """Write through one NumPy index if no gradient can be concerned and no type changes."""
    k = t._k
    s = t._s
    if t._e is not None or not k.plain or (s is not None and s.stale):
        return False
    v = t._v
    if s is not None and not k.contiguous:  # its elements may share cells
        return False
    if v is not None and (v[0] if type(v) is ViewMeta else v)._e is not None:
        return False
    c = type(index)
    if c is int:
        key: Any = index
    elif c is tuple:
        key = _basic_key(index)
    elif c is slice:
        key = index if index.step is None or (type(index.step) is int and index.step > 0) else None
    elif index is Ellipsis:
        key = index
    elif (
        c is Tensor
        and index._k.dtype is dt.bool_
        and index._k.plain
        and index._a.shape == t._a.shape
        and t._a.ndim
    ):
        key = index._a
        if type(value) is Tensor:
            return False
    elif (
        c is Tensor
        and index._k.dtype is dt.int64
        and index._k.plain
        and index._a.ndim
        and index._a.size
        and t._a.size
        and index is not t
        and (s is None or index._s is not s)
    ):
        key = index._a
    else:
        return False
    if key is None:
        return False
    c = type(value)
    if c is float:
        if k.np.kind != "f" or not -3e38 < value < 3e38:
            return False
    elif c is int:
        if k.np.kind not in "fi":
            return False
    elif c is Tensor:
        if value._e is not None or value._k.dtype is not k.dtype or value._k.device is not k.device:
            return False
        if value._s is not None and (value._s is s or value._s.stale) or value is t:
            return False
        value = value._a
    else:
        return False
    try:
        t._a[key] = value
    except (IndexError, TypeError, ValueError, OverflowError):
        return False  # nothing was written: the long way says what is wrong
    writes.wrote(t)
    return True


def _setitem(self: Any, index: Any, value: Any) -> None:
    if not isinstance(value, Tensor):
        if not isinstance(value, compute.NUMBERS):
            raise TypeError(
                f"can't assign a {_type_name(value)} to a torch.{self._k.dtype.scalar_name}Tensor"
            )
        value = _number(value, self)
        if SLOW:
            value = fresh(value)
    if isinstance(index, bool) and not index:
        return
    # Only with recording on may a view be refused later; the view itself is like any other.
    view, indices = _written_part(self, index)
    if indices is None and not value._a.ndim and view._a.ndim and value._k.device is view._k.device:
        aten.fill_(view, value)
        return
    if indices is None:
        shape = view._a.shape
        if value._a.shape != shape:
            many = value._a.ndim
            value = _without_leading_ones(value, 0, always=True)
            if value._a.shape != shape and many:
                value = aten.expand(value, shape)
        if SLOW and not value._a.ndim and modes.dispatched():
            view.fill_(value)
            return
        view.copy_(value)
        return
    if value._k.device is not view._k.device and value._a.ndim == 0:
        value = aten.to(value, device=view._k.device)
    view.index_put_(indices, _without_leading_ones(value, 0))


def _written_part(self: Any, index: Any) -> tuple[Any, list[Any] | None]:
    """As `basic_part`, but `x[:] = y` writes to x itself, and `x[True] = y` converts."""
    if type(index) is slice and self._a.ndim and _is_full(index, self._a.shape[0]):
        return self, None
    if index is True:
        return aten.unsqueeze(self, 0), None
    return basic_part(self, index)


def _number(value: Any, like: Any) -> Tensor:
    array = compute.scalar_array(value, like._k.dtype, saturate=True)
    return compute.wrap_on(array, like._k.device)


def _without_leading_ones(t: Any, least: int, always: bool = False) -> Any:
    """A value may have more dims than the place it goes to if they are of size 1."""
    shape = t._a.shape
    first = 0
    while len(shape) - first > least and shape[first] == 1:
        first += 1
    return aten.view(t, shape[first:]) if first or always else t


def _type_name(x: Any) -> str:
    c = type(x)
    return c.__name__ if c.__module__ == "builtins" else f"{c.__module__}.{c.__name__}"

"""Views as tensors: what a view knows of its base, and how it was made.

Source: https://docs.pytorch.org/docs/2.13/tensor_view.html
"""

from __future__ import annotations

from typing import Any

from torchlab._core.backends.meta import MetaArray
from torchlab._core.memory.storage import Storage
from torchlab._core.refusals import INFERENCE, MULTI_OUTPUT, NO_GRAD, NORMAL
from torchlab._core.tape import NOGRAD, NOWHERE, TLS, ViewMeta, base_of, geometry, mark_view
from torchlab._core.tensor import Tensor

_new = object.__new__


def view_outputs(t: Tensor, arrays: Any, s: Storage) -> list[Tensor]:
    """The several views of one tensor."""
    v = t._v
    base_tensor = t if v is None else v[0] if type(v) is ViewMeta else v
    creation = MULTI_OUTPUT if (not NOGRAD or TLS.grad) else unrecorded()
    k = t._k
    out = []
    for a in arrays:
        r = _new(Tensor)
        r._a = a
        r._k = k.c if a.flags.c_contiguous else k.v
        r._s = s
        r._v = (base_tensor, creation, s.version, None)
        r._e = r._g = None
        out.append(r)
    return out


def view_meta(parent: Any, s: Storage, r: Tensor) -> Any:
    """The `_v` of `r`, a view of `parent` (a base tensor or its ViewMeta): how that was made is
    inherited by what is recorded."""
    creation, way = NORMAL, None
    if type(parent) is ViewMeta:
        parent, creation, _, way = parent
        if way is not None:  # Note [The way of a view] in ops._view_histories
            way = (way, geometry(r))
    if NOGRAD and not TLS.grad:
        creation = unrecorded()
    if creation == NORMAL and way is None and not s.version:
        return parent
    return (parent, creation, s.version, way)


def unrecorded() -> int:
    """How a view is made that the tape does not see."""
    return INFERENCE if TLS.inference else NO_GRAD


def view_leaf(t: Tensor) -> None:
    """A view that was not recorded, of a base that wants a gradient, says that it wants one too.
    It is a leaf that never gets any."""
    base_tensor = base_of(t)
    if base_tensor is not None and base_tensor._e is not None and not t._k.inference:
        t._e = NOWHERE
        t._s.stale = True  # so that no short way records it
        mark_view(t._s)


def meta_view(op: Any, t: Tensor, *values: Any) -> Any:
    """A view on the meta device, by the declaration's layout rule."""
    a = t._a
    if op.meta is None:
        raise NotImplementedError(
            f"{op.qualname}: there is no layout rule: it cannot run on the meta device"
        )
    size = a.itemsize
    r = op.meta(a.shape, tuple(x // size for x in a.strides), a.offset, *values)
    if isinstance(r, list):
        return [MetaArray(s, a.dtype, st, o) for s, st, o in r]
    shape, strides, offset = r
    return MetaArray(shape, a.dtype, strides, offset)


def alias(t: Tensor, creation: int = NORMAL) -> Tensor:
    """A view of the whole tensor without history."""
    s = t._s
    if s is None:
        s = t._s = Storage(t._a)
    r = _new(type(t) if t._exotic else Tensor)
    r._a, r._k, r._s = t._a, t._k, s
    v = t._v
    b, _, _, way = v if type(v) is ViewMeta else (t if v is None else v, NORMAL, 0, None)
    plain = creation == NORMAL and way is None and not s.version
    way = None if way is None else (way, geometry(r))
    r._v = b if plain else (b, creation, s.version, way)
    r._e = r._g = None
    return r

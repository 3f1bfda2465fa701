"""How tensors are taken apart for files: a function of rebuild.py and its arguments.

Source: https://docs.pytorch.org/docs/2.13/notes/serialization.html
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

from torchlab._core import dtype as dt
from torchlab._core.backends.meta import MetaArray
from torchlab._core.dispatch.registry import aten
from torchlab._core.ops._quantized import PER_CHANNEL
from torchlab._core.tape import AccumulateGrad, edge_of, geometry, storage_of
from torchlab._core.tensor import Size, Tensor, strides_of
from torchlab.nn.parameter import Parameter, is_parameter
from torchlab.serialization.rebuild import (
    rebuild_from_type,
    rebuild_meta_tensor,
    rebuild_parameter,
    rebuild_parameter_with_state,
    rebuild_quantized,
    rebuild_sparse,
    rebuild_tensor_v2,
    rebuild_tensor_v3,
    rebuild_wrapper_subclass,
)

_new = object.__new__


def _state(t: Any) -> Any:
    """The attributes of a tensor: a dict, or (dict, slots of its class), or None."""
    slots = {}
    for cls in type(t).__mro__:
        if cls in (Tensor, Parameter, object):
            break
        names = cls.__dict__.get("__slots__", ())
        for name in (names,) if isinstance(names, str) else names:
            if name not in ("__dict__", "__weakref__") and hasattr(t, name):
                slots[name] = getattr(t, name)
    attributes = dict(t.__dict__)
    attributes.pop("_is_param", None)
    if slots:
        return attributes, slots
    return attributes


def bare(t: Tensor) -> Tensor:
    """The plain strided tensor over the same memory (a bit that it has stays), without history or
    attributes."""
    r: Any = _new(type(t) if t._exotic else Tensor)
    r._a, r._k, r._s = t._a, t._k, t.untyped_storage()._storage
    r._e = r._v = r._g = None
    return r


def _metadata(t: Tensor) -> tuple[Any, ...]:
    bits = {name: True for name in ("conj", "neg") if getattr(t, f"is_{name}")()}
    return (bits,) if bits else ()


WITHOUT_STORAGE_TYPE = frozenset(
    d for d in dt.ALL
    if d.name.startswith("float8") or d in (dt.uint16, dt.uint32, dt.uint64)
)  # fmt: skip


def _geometry(t: Any) -> Any:
    """(shape, strides, offset) in the storage; of tensors with bits, those of their memory."""
    memory = getattr(t._a, "memory", None)
    if memory is not None:
        at = memory.__array_interface__["data"][0] if memory.size else storage_of(t).address
        offset = (at - storage_of(t).address) // t._k.itemsize
        return memory.shape, tuple(t.stride()), offset
    if t._a.size == 0:
        return t._a.shape, strides_of(t), 0
    return geometry(t)


def _plain(t: Any, storage: Any) -> tuple[Any, tuple[Any, ...]]:
    """(maker, arguments) of a strided tensor; `storage(t)` gives what stands for its storage."""
    wants = edge_of(t) is not None
    if t._k.device.type == "meta":
        return rebuild_meta_tensor, (t._k.dtype, tuple(t.shape), strides_of(t), wants)
    if type(t._a) is MetaArray:  # its class keeps the data in attributes
        facts = (t._k.dtype, tuple(t.shape), strides_of(t), geometry(t)[2])
        return rebuild_wrapper_subclass, (type(t), *facts, t.layout, t._k.device, wants)
    shape, strides, offset = _geometry(t)
    place: tuple[Any, ...] = (
        storage(t),
        offset,
        tuple(shape),
        tuple(strides),
        wants,
        OrderedDict(),
    )
    if t._k.dtype in WITHOUT_STORAGE_TYPE:
        return rebuild_tensor_v3, (*place, t._k.dtype, *_metadata(t))
    return rebuild_tensor_v2, (*place, *_metadata(t))


def _sparse(t: Any) -> tuple[Any, tuple[Any, ...]]:
    p = t._a
    if str(p.layout) == "torch.sparse_coo":
        data: tuple[Any, ...] = (p.indices, p.values, Size(p.shape), bool(p.coalesced))
    else:
        data = (p.compressed, p.plain, p.values, Size(p.shape))
    return rebuild_sparse, (p.layout, data)


def _quantized(t: Any, storage: Any) -> tuple[Any, tuple[Any, ...]]:
    q = t._a.quantizer
    shape, strides, offset = _geometry(t._a.codes)
    if q.per_tensor:
        params: tuple[Any, ...] = (q.scheme, float(q.scale), int(q.zero_point))
    else:
        scales, zeros = aten.q_per_channel_scales(t), aten.q_per_channel_zero_points(t)
        params = (PER_CHANNEL, scales, zeros, q.axis)
    place = (storage(t), offset, tuple(shape), tuple(strides))
    return rebuild_quantized, (*place, params, edge_of(t) is not None, OrderedDict())


def reduce_tensor(t: Any, storage: Any) -> tuple[Any, tuple[Any, ...]]:
    """(function, arguments) that make the tensor again."""
    if is_parameter(t):
        # As in PyTorch a subclass of Parameter comes back as a Parameter.
        state = _state(t)
        data = t.data if t._exotic else bare(t)
        if type(t) not in (Tensor, Parameter) and not isinstance(t, Parameter) and not t._exotic:
            data = data.as_subclass(type(t))
        first: tuple[Any, ...] = (data, edge_of(t) is not None, OrderedDict())
        if state:
            return rebuild_parameter_with_state, (*first, state)
        return rebuild_parameter, first
    if t.is_quantized:
        return _quantized(t, storage)
    if t._exotic and not getattr(t, "strided", False):
        made = _sparse(t)
        if edge_of(t) is not None and type(edge_of(t)) is not AccumulateGrad:
            raise RuntimeError(
                "Only Tensors created explicitly by the user (graph leaves) can be saved if they"
                " are sparse; save x.detach()"
            )
        return made
    maker, arguments = _plain(t, storage)
    state = _state(t)
    cls = Tensor if t._exotic else type(t)
    if cls is Tensor and not state:
        return maker, arguments
    return rebuild_from_type, (maker, cls, arguments, state or None)

"""Quantized tensors: views, indexing, joining, copies and writes in place. All of it works on the
codes; what has to be decided is which quantizer the result has.

Source: https://docs.pytorch.org/docs/2.13/quantization-support.html
"""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from torchlab._core import layout as shapes
from torchlab._core.dispatch.compute import wrap
from torchlab._core.dispatch.exotic import exotic, exotic_method
from torchlab._core.dispatch.registry import aten
from torchlab._core.ops._quantized import (
    KEY,
    Codes,
    QuantizedTensor,
    Quantizer,
    around,
    codes_of,
    need_per_tensor,
    need_quantized,
    values_of,
)
from torchlab._core.tensor import Tensor

_STRIDES = "Setting strides is possible only on uniformly quantized tensor"


def _uniform(x: Any, name: str) -> Quantizer:
    q = x._a.quantizer
    if not q.per_tensor:
        raise RuntimeError(f"{name}: {_STRIDES}, not on one of scheme {q.scheme}")
    return q


def _uniform_view(name: str) -> None:
    @exotic(KEY, name)
    def entry(self: Any, *args: Any) -> Any:
        q = _uniform(self, name)
        return around(getattr(aten, name)(self._a.codes, *args), q)


for _name in ("permute", "transpose", "t", "unfold", "diagonal", "flip"):
    _uniform_view(_name)


@exotic_method(KEY, "as_strided")
def as_strided_method(self: Any, size: Any, stride: Any, storage_offset: Any = None) -> Any:
    """Another geometry over the same codes."""
    q = _uniform(self, "as_strided")
    return around(aten.as_strided(self._a.codes, size, stride, storage_offset), q)


exotic(KEY, "as_strided", face=True)(as_strided_method)


def _uniform_copy(name: str) -> None:
    @exotic(KEY, name)
    def entry(self: Any, *args: Any) -> Any:
        q = need_per_tensor(self, name)
        return around(getattr(aten, name)(self._a.codes, *args), q)


for _name in ("pixel_shuffle", "pixel_unshuffle", "channel_shuffle"):
    _uniform_copy(_name)


@exotic(KEY, "expand")
def expand(self: Any, size: Any, implicit: bool = False) -> Any:
    return around(aten.expand(self._a.codes, size), _uniform(self, "expand"))


@exotic(KEY, "repeat")
def repeat(self: Any, repeats: Any) -> Any:
    return around(aten.repeat(self._a.codes, repeats), _uniform(self, "repeat"))


@exotic(KEY, "detach")
def detach(self: Any) -> Any:
    return around(aten.detach(self._a.codes), self._a.quantizer)


@exotic(KEY, "alias")
def alias(self: Any) -> Any:
    return around(aten.alias(self._a.codes), self._a.quantizer)


@exotic(KEY, "view", "_reshape_alias", "_unsafe_view")
def view(self: Any, size: Any) -> Any:
    return around(aten.view(self._a.codes, size), self._a.quantizer)


@exotic(KEY, "unsqueeze")
def unsqueeze(self: Any, dim: int) -> Any:
    q = self._a.quantizer
    codes = aten.unsqueeze(self._a.codes, dim)
    if not q.per_tensor and shapes.wrap_dim(dim, codes._a.ndim, "unsqueeze") <= q.axis:
        q = q.moved(q.axis + 1)
    return around(codes, q)


def _squeezed(self: Any, dims: Any) -> Any:
    q, shape = self._a.quantizer, self._a.shape
    gone = [d for d in dims if shape[d] == 1]
    codes = aten.squeeze(self._a.codes, tuple(gone)) if gone else aten.alias(self._a.codes)
    if not q.per_tensor:
        if q.axis in gone:
            raise RuntimeError("Squeeze is only possible on non-axis dimension for Per-Channel"
                               f" Quantized Tensors, got dim {q.axis}")  # fmt: skip
        q = q.moved(q.axis - sum(d < q.axis for d in gone))
    return around(codes, q)


@exotic(KEY, "squeeze.default")
def squeeze(self: Any) -> Any:
    return _squeezed(self, range(self._a.ndim))


@exotic(KEY, "squeeze.dim")
def squeeze_dim(self: Any, dim: int) -> Any:
    d = shapes.wrap_dim(dim, self._a.ndim, "squeeze")
    return _squeezed(self, (d,) if self._a.ndim else ())


@exotic(KEY, "squeeze.dims")
def squeeze_dims(self: Any, dim: Any) -> Any:
    return _squeezed(self, [shapes.wrap_dim(d, self._a.ndim, "squeeze") for d in dim])


@exotic(KEY, "select")
def select(self: Any, dim: int, index: int) -> Any:
    q = self._a.quantizer
    codes = aten.select(self._a.codes, dim, index)
    if not q.per_tensor:
        d = shapes.wrap_dim(dim, self._a.ndim, "select")
        q = q.part(int(index)) if d == q.axis else q.moved(q.axis - 1)
    return around(codes, q)


@exotic(KEY, "slice")
def slice_(self: Any, dim: int = 0, start: Any = None, end: Any = None, step: int = 1) -> Any:
    q, d = self._a.quantizer, shapes.wrap_dim(dim, self._a.ndim, "slice")
    codes = self._a.codes[(slice(None),) * d + (slice(start, end, step),)]
    if not q.per_tensor and d == q.axis:
        q = q.part(slice(start, end, step))
    return around(codes, q)


@exotic(KEY, "narrow")
def narrow(self: Any, dim: int, start: int, length: int) -> Any:
    n = self._a.shape[shapes.wrap_dim(dim, self._a.ndim, "narrow")]
    aten.narrow(self._a.codes, dim, start, length)  # its checks
    start = start + n if start < 0 else start
    return slice_(self, dim, start, start + length, 1)


@exotic(KEY, "unbind")
def unbind(self: Any, dim: int = 0) -> Any:
    d = shapes.wrap_dim(dim, self._a.ndim, "unbind")
    return tuple(select(self, d, i) for i in range(self._a.shape[d]))


@exotic(KEY, "split.Tensor")
def split(self: Any, split_size: int, dim: int = 0) -> Any:
    d = shapes.wrap_dim(dim, self._a.ndim, "split")
    ends = np.cumsum([p._a.shape[d] for p in aten.split(self._a.codes, split_size, d)]).tolist()
    return tuple(slice_(self, d, a, b, 1) for a, b in zip([0, *ends], ends, strict=False))


@exotic(KEY, "split_with_sizes")
def split_with_sizes(self: Any, split_sizes: Any, dim: int = 0) -> Any:
    d = shapes.wrap_dim(dim, self._a.ndim, "split_with_sizes")
    aten.split(self._a.codes, list(split_sizes), d)  # its checks
    ends = np.cumsum(split_sizes).tolist()
    return tuple(slice_(self, d, a, b, 1) for a, b in zip([0, *ends], ends, strict=False))


@exotic_method(KEY, "__getitem__")
def getitem(self: Any, key: Any) -> Any:
    """`self[key]`: as for strided tensors; channels that are taken bring their scales along."""
    q = self._a.quantizer
    if q.per_tensor:
        return around(self._a.codes[key], q)
    parts = key if type(key) is tuple else (key,)
    if _advanced(key):
        return index(self, list(parts))
    used = sum(k is not None and k is not Ellipsis for k in parts)
    if used > self._a.ndim:
        raise IndexError(f"too many indices for tensor of dimension {self._a.ndim}")
    r, d = alias(self), 0
    for k in parts:
        if k is Ellipsis:
            d += self._a.ndim - used
        elif k is None:
            r, d = unsqueeze(r, d), d + 1
        elif isinstance(k, slice):
            r, d = slice_(r, d, k.start, k.stop, k.step or 1), d + 1
        else:
            r = select(r, d, operator.index(k))
    return r


# ---- copies of parts ----------------------------------------------------------------------------


@exotic(KEY, "index")
def index(self: Any, indices: Any) -> Any:
    q = self._a.quantizer
    if not q.per_tensor:
        raise RuntimeError(
            f"Indexing is only supported for per-Tensor quantized Tensors, not for {q.scheme}"
        )
    return around(aten.index(self._a.codes, indices), q)


@exotic(KEY, "index_select")
def index_select(self: Any, dim: int, index: Any) -> Any:
    q = self._a.quantizer
    if not q.per_tensor:
        raise RuntimeError(
            "Only per_tensor quantized quantized tensors are supported by index_select, not"
            f" {q.scheme}"
        )
    return around(aten.index_select(self._a.codes, dim, index), q)


@exotic(KEY, "constant_pad_nd")
def constant_pad_nd(self: Any, pad: Any, value: Any = 0) -> Any:
    q = need_per_tensor(self, "constant_pad_nd")
    code = codes_of(np.array(value, np.float32), q, self._k.dtype)
    return around(aten.constant_pad_nd(self._a.codes, pad, int(code)), q)


def _padded(name: str) -> None:
    @exotic(KEY, name)
    def entry(self: Any, padding: Any) -> Any:
        q = need_per_tensor(self, name)
        return around(getattr(aten, name)(aten.contiguous(self._a.codes), padding), q)


for _name in ("reflection_pad1d", "reflection_pad2d"):
    _padded(_name)


def joined(tensors: Any, dim: int, q: Quantizer, relu: bool = False) -> Any:
    """Joined along a dim, all with the codes of one quantizer."""
    first = tensors[0]
    for x in tensors:
        need_quantized(x, "aten::qscheme")
        if x._k is not first._k:
            raise RuntimeError(
                f"cat: All dtypes must be the same, got {first._k.dtype} and {x._k.dtype}"
            )
        if not x._a.quantizer.per_tensor:
            raise RuntimeError("Only per-tensor quantization is supported in 'cat'!")
    parts = []
    for x in tensors:
        codes = x._a.codes
        if not x._a.quantizer.same(q):
            codes = wrap(codes_of(values_of(x), q, x._k.dtype))
        if relu:
            codes = wrap(np.maximum(codes._a, codes._a.dtype.type(q.zero_point)))
        parts.append(codes)
    return around(aten.cat(parts, dim), q)


@exotic(KEY, "cat")
def cat(tensors: Any, dim: int = 0) -> Any:
    q = need_quantized(tensors[0], "aten::qscheme")._a.quantizer
    return joined(tensors, dim, q)


@exotic(KEY, "stack")
def stack(tensors: Any, dim: int = 0) -> Any:
    for x in tensors:
        need_quantized(x, "aten::qscheme")
    d = shapes.wrap_dim(dim, tensors[0]._a.ndim + 1, "stack")
    return cat([unsqueeze(x, d) for x in tensors], d)


@exotic(KEY, "clone")
def clone(self: Any, memory_format: Any = None) -> Any:
    return around(aten.clone(self._a.codes, memory_format=memory_format), self._a.quantizer)


@exotic(KEY, "_to_copy")
def to_copy(self: Any, dtype: Any = None, device: Any = None, memory_format: Any = None) -> Any:
    if dtype is not None and dtype is not self._k.dtype:
        raise RuntimeError(
            f"to(): a tensor of {self._k.dtype} cannot become one of {dtype}: Creation of quantized"
            " tensor requires quantized dtype like torch.quint8; use dequantize() for its values,"
            " int_repr() for its codes"
        )
    if device is not None and device is not self._k.device:
        raise NotImplementedError(
            f"Could not run 'aten::empty_quantized' on {device}: quantized tensors are there for"
            " the CPU only"
        )
    return clone(self, memory_format)


@exotic(KEY, "empty_like", face=True)
def empty_like(self: Any, *, dtype: Any = None, memory_format: Any = None, **more: Any) -> Any:
    if dtype is not None and dtype is not self._k.dtype:
        raise RuntimeError(
            "It is currently not supported to specify a dtype that doesn't match the input tensor's"
            f" dtype via empty_like.  Specified: {dtype} Input tensor's dtype: {self._k.dtype}"
        )
    codes = aten.empty_like(self._a.codes, memory_format=memory_format)
    return around(codes, self._a.quantizer)


@exotic(KEY, "full_like", face=True)
def full_like(self: Any, fill_value: Any, **more: Any) -> Any:
    return fill_(empty_like(self, **more), fill_value)


@exotic(KEY, "ones_like", face=True)
def ones_like(self: Any, **more: Any) -> Any:
    return fill_(empty_like(self, **more), 1)


# ---- writes in place ----------------------------------------------------------------------------


@exotic_method(KEY, "fill_")
def fill_(self: Any, value: Any) -> Any:
    """Every element the code nearest to `value`."""
    v = value.item() if isinstance(value, Tensor) else value
    full = np.full(self._a.shape, v, np.float32)
    self._a.codes.copy_(wrap(codes_of(full, self._a.quantizer, self._k.dtype)))
    return self


@exotic_method(KEY, "copy_")
def copy_(self: Any, src: Any, non_blocking: bool = False) -> Any:
    """Quantize a float tensor into this one; a quantized source brings its quantizer along."""
    if isinstance(src, QuantizedTensor):
        a, b = self._a.quantizer, src._a.quantizer
        if a.scheme is not b.scheme:
            raise RuntimeError(
                f"Quantized Copy only works with same qscheme, not {b.scheme} into {a.scheme}"
            )
        if self._k.dtype is not src._k.dtype:
            raise RuntimeError(
                f"copy_: Expected self and src of one type, not {self._k.dtype} and {src._k.dtype}"
            )
        self._a.codes.copy_(src._a.codes)
        self._a.quantizer = b
        return self
    if src._k.dtype.name != "float32":
        raise RuntimeError(
            f"Quantized copy only works with kFloat as source Tensor, not {src._k.dtype}"
        )
    if src._a.shape != self._a.shape:
        raise RuntimeError(
            "Quantized copy only works with Tensors with the same shape, not"
            f" {list(src._a.shape)} into {list(self._a.shape)}"
        )
    self._a.codes.copy_(wrap(codes_of(src._a, self._a.quantizer, self._k.dtype)))
    return self


@exotic_method(KEY, "__setitem__")
def setitem(self: Any, key: Any, value: Any) -> None:
    target = self[key] if not _advanced(key) else None
    if target is None:
        q = need_per_tensor(self, "index_put_")
        self._a.codes[key] = _as_codes(value, q, self._k.dtype)
        return
    if isinstance(value, Tensor) and value._a.ndim:
        if value._a.shape != target._a.shape:
            value = aten.expand(value, tuple(target._a.shape))
        was = self._a.quantizer
        copy_(target, value)
        if target._a.quantizer is not was and was.per_tensor:  # a part cannot have its own
            target._a.quantizer = was
    else:
        fill_(target, value)


def _advanced(key: Any) -> bool:
    parts = key if type(key) is tuple else (key,)
    return any(isinstance(k, (Tensor, list, np.ndarray, bool)) for k in parts)


def _as_codes(value: Any, q: Quantizer, dtype: Any) -> Any:
    if isinstance(value, QuantizedTensor):
        a = values_of(value)
    else:
        a = np.asarray(value._a if isinstance(value, Tensor) else value, np.float32)
    return wrap(codes_of(a, q, dtype))


@exotic(KEY, "masked_fill")
def masked_fill(self: Any, mask: Any, value: Any) -> Any:
    q = need_per_tensor(self, "masked_fill for quantized tensors")
    v = value.item() if isinstance(value, Tensor) else value
    code = int(codes_of(np.array(v, np.float32), q, self._k.dtype))
    return around(aten.masked_fill(self._a.codes, mask, code), q)


@exotic_method(KEY, "zero_")
def zero_(self: Any) -> Any:
    """NotImplementedError: fill_(0) is there."""
    return type(self).refuse("zero_", False, [self])


@exotic_method(KEY, "masked_fill_")
def masked_fill_(self: Any, mask: Any, value: Any) -> Any:
    """The code nearest to `value` where the mask is True."""
    self._a.codes.copy_(masked_fill(self, mask, value)._a.codes)
    return self


@exotic_method(KEY, "resize_")
def resize_(self: Any, *size: Any, memory_format: Any = None) -> Any:
    """Another shape in the same memory, see Tensor.resize_."""
    self._a.codes.resize_(*size, memory_format=memory_format)
    self._a = Codes(self._a.codes, need_per_tensor(self, "resize_"))
    return self

"""What a quantized tensor is to Python: its codes and quantizer, text, copies and pickles.

Source: https://docs.pytorch.org/docs/2.13/quantization-support.html
"""

from __future__ import annotations

import copy
from typing import Any, NoReturn

import numpy as np

from torchlab._core import printing
from torchlab._core.dispatch.compute import wrap
from torchlab._core.dispatch.exotic import exotic
from torchlab._core.dispatch.op import face
from torchlab._core.dispatch.registry import aten
from torchlab._core.ops._quantized import (
    KEY,
    Codes,
    QuantizedTensor,
    Quantizer,
    around,
    laid,
    need_quantized,
    values_of,
)
from torchlab._core.tape import base_of


@face("int_repr")
def int_repr(self: Any) -> Any:
    """The codes (a copy): int8, uint8 or int32."""
    need_quantized(self, "aten::int_repr")
    return laid(self._a.codes._a.copy(), self)


@face("qscheme", spaces=())
def qscheme(self: Any) -> Any:
    """How the tensor is quantized: torch.per_tensor_affine, say."""
    return need_quantized(self, "aten::qscheme")._a.quantizer.scheme


def _tensorwise(self: Any, name: str) -> Quantizer:
    q = need_quantized(self, f"aten::{name}")._a.quantizer
    if not q.per_tensor:
        raise RuntimeError(
            f"{name}(): Expected quantizer->qscheme() == kPerTensorAffine to be true, but got"
            f" {q.scheme}; see q_per_channel_scales()"
        )
    return q


def _channelwise(self: Any, name: str) -> Quantizer:
    q = need_quantized(self, f"aten::{name}")._a.quantizer
    if q.per_tensor:
        raise RuntimeError(
            f"{name}(): Expected a tensor quantized per channel, but got {q.scheme}; see q_scale()"
            " and q_zero_point()"
        )
    return q


@face("q_scale")
def q_scale(self: Any) -> float:
    """The scale of a tensor quantized per tensor."""
    return float(_tensorwise(self, "q_scale").scale)


@face("q_zero_point")
def q_zero_point(self: Any) -> int:
    """The code of zero of a tensor quantized per tensor."""
    return int(_tensorwise(self, "q_zero_point").zero_point)


@face("q_per_channel_scales")
def q_per_channel_scales(self: Any) -> Any:
    """The scale of each channel: float64 (float32 with float zero points)."""
    return wrap(_channelwise(self, "q_per_channel_scales").scale.copy())


@face("q_per_channel_zero_points")
def q_per_channel_zero_points(self: Any) -> Any:
    """The zero point of each channel: int64 (or float32)."""
    return wrap(_channelwise(self, "q_per_channel_zero_points").zero_point.copy())


@face("q_per_channel_axis")
def q_per_channel_axis(self: Any) -> int:
    """The dim of the channels."""
    q = _channelwise(self, "q_per_channel_axis")
    assert q.axis is not None
    return q.axis


# ---- text and numbers ---------------------------------------------------------------------------


def _repr(self: Any, *, tensor_contents: Any = None) -> str:
    q, options = self._a.quantizer, printing._options
    values = values_of(self)
    suffixes = [f"size={tuple(self._a.shape)}", f"dtype={self._k.dtype}"]
    suffixes.append(f"quantization_scheme={q.scheme}")
    if q.per_tensor:
        suffixes += [f"scale={q.scale}", f"zero_point={q.zero_point}"]
    else:
        suffixes += [f"scale={wrap(q.scale)}", f"zero_point={wrap(q.zero_point)}"]
        suffixes.append(f"axis={q.axis}")
    body = printing._body(values, 7, options) if values.size else "[]"
    text = printing._with_suffixes("tensor(" + body, suffixes, 7, options.linewidth)
    return f"Parameter containing:\n{text}" if self._is_param else text


def _item(self: Any) -> float:
    if self._a.size != 1:
        raise RuntimeError(f"a Tensor with {self._a.size} elements cannot be converted to Scalar")
    return float(values_of(self).reshape(-1)[0])


def _no_list(self: Any) -> NoReturn:
    raise RuntimeError(
        f"load_scalar: invalid type {self._k.dtype}: use dequantize().tolist() or"
        " int_repr().tolist()"
    )


def _no_numpy(self: Any, *args: Any, **kwargs: Any) -> NoReturn:
    raise TypeError(
        f"Got unsupported ScalarType {self._k.dtype.scalar_name}: use dequantize().numpy() or"
        " int_repr().numpy()"
    )


def _no_sign(self: Any) -> NoReturn:
    raise RuntimeError("isSignedType not supported for quantized types")


def _type(self: Any, dtype: Any = None, non_blocking: bool = False) -> Any:
    if dtype is not None:
        return self.to(dtype)
    return f"torch.quantized.{self._k.dtype.scalar_name}Tensor"


def _storage_type(self: Any) -> NoReturn:
    raise RuntimeError(f"unsupported Storage type: {self._k.dtype}; see untyped_storage()")


# ---- copies -------------------------------------------------------------------------------------


def _deepcopy(self: Any, memo: dict[int, Any]) -> Any:
    if id(self) in memo:
        return memo[id(self)]
    r = memo[id(self)] = around(copy.deepcopy(self._a.codes, memo), self._a.quantizer)
    r.__dict__.update(copy.deepcopy(self.__dict__, memo))
    return r


def rebuild(codes: Any, scheme: Any, scale: Any, zero: Any, axis: Any, rest: Any) -> Any:
    """Make a quantized tensor from what `__reduce_ex__` gave."""
    r = around(codes, Quantizer(scheme, scale, zero, axis))
    r.__dict__.update(rest)
    return r


def _reduce(self: Any, protocol: Any) -> Any:
    q = self._a.quantizer
    return rebuild, (
        self._a.codes, q.scheme, q.scale, q.zero_point, q.axis, dict(self.__dict__),
    )  # fmt: skip


def _set_data(self: Any, value: Any) -> None:
    need_quantized(value, "set_data")
    self._a, self._k = Codes(value._a.codes, value._a.quantizer), value._k


def _base(self: Any) -> Any:
    base = base_of(self._a.codes)
    return None if base is None else around(base, self._a.quantizer)


def _equal(self: Any, other: Any) -> bool:
    """Whether shape, type, quantizer and codes are the same."""
    if not isinstance(other, QuantizedTensor) or self._k.dtype is not other._k.dtype:
        return False
    a, b = self._a, other._a
    return a.shape == b.shape and a.quantizer.same(b.quantizer) and np.array_equal(
        a.codes._a, b.codes._a
    )  # fmt: skip


exotic(KEY, "equal", face=True)(_equal)


@exotic(KEY, "is_nonzero", face=True)
def is_nonzero(self: Any) -> bool:
    return bool(_item(self))


def _delegate(cls: Any, *names: str) -> None:
    def method(name: str) -> Any:
        return lambda self, *args, **kwargs: getattr(self._a.codes, name)(*args, **kwargs)

    for name in names:
        setattr(cls, name, method(name))


def _install(cls: Any) -> None:
    _delegate(
        cls, "is_contiguous", "stride", "storage_offset", "data_ptr", "untyped_storage", "_is_view"
    )
    cls.is_quantized = property(lambda self: True)
    cls.__repr__ = cls.__str__ = _repr
    cls.__deepcopy__ = _deepcopy
    cls.__reduce_ex__ = _reduce
    cls.item = _item
    cls.tolist = _no_list
    cls.numpy = cls.__array__ = _no_numpy
    cls.is_signed = _no_sign
    cls.type = _type
    cls.storage_type = _storage_type
    cls.storage = _storage_type
    cls.__float__ = lambda self: float(self.item())
    cls.__int__ = lambda self: int(self.item())
    cls.__bool__ = lambda self: bool(self.item())
    cls.__complex__ = lambda self: complex(self.item())
    cls.data = property(lambda self: around(aten.detach(self._a.codes), self._a.quantizer),
                        _set_data)  # fmt: skip
    cls._version = property(lambda self: self._a.codes._version)
    cls._base = property(_base)
    cls.equal = _equal


_install(QuantizedTensor)

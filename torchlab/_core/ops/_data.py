"""Python data as arrays, with PyTorch's choice of type and its errors.

Source of the semantics: https://docs.pytorch.org/docs/2.13/generated/torch.tensor.html
"""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from torchlab._core import dtype as dt
from torchlab._core import layout, settings
from torchlab._core.dispatch import compute
from torchlab._core.dispatch.registry import aten
from torchlab._core.kind import cpu_kind
from torchlab._core.memory.storage import Storage
from torchlab._core.ops.kernels import before_ints
from torchlab._core.tensor import Tensor, strides_of

_PLAIN = (bool, int, float, complex)


def check_array(a: np.ndarray, what: str) -> dt.dtype:
    """The dtype of an array that a tensor could share; ValueError or TypeError if none could."""
    if any(s < 0 for s in a.strides):
        raise ValueError(
            f"{what}: At least one stride in the given numpy array is negative, and tensors with"
            " negative strides are not currently supported. (You can probably work around this by"
            " making a copy of your array with array.copy().)"
        )
    d = dt.from_numpy(a.dtype, what)
    if any(s % a.itemsize for s, n in zip(a.strides, a.shape, strict=True) if n > 1):
        raise ValueError(
            f"{what}: given numpy array strides not a multiple of the element byte size. Copy the"
            " numpy array first."
        )
    return d


def from_array(a: np.ndarray, what: str = "from_numpy") -> Tensor:
    """A tensor that shares a NumPy array's memory. Arrays that may not be written to give a
    warning, once."""
    d = check_array(a, what)
    if not a.flags.writeable:
        settings.warn_once(
            "read-only array",
            "The given NumPy array is not writable, and PyTorch does not support non-writable"
            " tensors. This means writing to this tensor will result in undefined behavior. You may"
            " want to copy the array to protect its data or make it writable before converting it"
            " to a tensor. This type of warning will be suppressed for the rest of this program.",
        )
    t = compute.wrap(np.asarray(a))
    t._k = cpu_kind(t._a)
    t._s = Storage(t._a)
    t._s.lent = True
    assert t._k.dtype is d
    return t


def array_of(data: Any, dtype: Any, what: str) -> np.ndarray:
    """A fresh array with the data: numbers, nested sequences, arrays."""
    if isinstance(data, np.ndarray):
        return _copied(data, dtype, what)
    if isinstance(data, (str, bytes)):
        raise TypeError(f"new(): invalid data type '{type(data).__name__}'")
    if isinstance(data, np.generic):
        if dtype is None:
            return np.array(data, dtype=dt.from_numpy(data.dtype, what).np)
        return _values([data], [], dtype).reshape(())
    if isinstance(data, _PLAIN):
        return _values([data], [dt.of_scalar(data)] if dtype is None else [], dtype).reshape(())
    if _is_sequence(data):
        return _sequence(data, dtype, what)
    if dtype is None:
        _refuse(data)
    return _values([data], [], dtype).reshape(())


def _copied(a: np.ndarray, dtype: Any, what: str) -> np.ndarray:
    check_array(a, what)
    a = np.asarray(a)
    target = dtype.np if dtype else a.dtype
    like = compute.wrap(a)
    made = compute.empty(
        a.shape,
        dt.from_numpy(target),
        strides=None
        if like._k.contiguous
        else layout.empty_like_strides(a.shape, strides_of(like)),
    )._a
    if a.dtype.kind == "c" and target.kind not in "cb":
        a = a.real
    np.copyto(made, before_ints(a, target) if target.kind in "iu" else a, casting="unsafe")
    return made


def _sequence(data: Any, dtype: Any, what: str) -> np.ndarray:
    shape = _shape_of(data)
    found = _Found()
    _flatten(data, shape, 0, found)
    kinds = [] if dtype is not None else found.dtypes()
    return _values(found.flat, kinds, dtype).reshape(shape)


class _Found:
    """What flattening nested sequences has found: the elements in order, and what says their type:
    the rows of single elements, the dtypes of whole arrays."""

    def __init__(self) -> None:
        self.flat: list[Any] = []
        self.rows: list[Any] = []
        self.arrays: list[dt.dtype] = []

    def dtypes(self) -> list[dt.dtype]:
        """The dtypes that the result has to hold."""
        kinds = {type(x): x for row in self.rows for x in row}
        telling: Any = kinds.values()
        if any(isinstance(x, (Tensor, np.generic)) for x in telling):
            telling = [x for row in self.rows for x in row]
        return [*dict.fromkeys([*self.arrays, *map(_dtype_of, telling)])]


def _values(flat: list[Any], kinds: list[dt.dtype], dtype: dt.dtype | None) -> np.ndarray:
    """The numbers as a one-dimensional array of `dtype`, or of what `kinds` promote to."""
    inferred = dtype is None
    if dtype is None:
        dtype = kinds[0] if kinds else dt.get_default_dtype()
        for k in kinds[1:]:
            dtype = dt.promote_types(dtype, k)
    if any(isinstance(x, (Tensor, np.generic)) for x in {type(x): x for x in flat}.values()):
        flat = [_element(x, dtype) for x in flat]
    if dtype.category == dt.INT:
        return _integers(flat, dtype, inferred)
    if dtype.category != dt.COMPLEX and any(isinstance(x, complex) for x in flat):
        if dtype.category == dt.FLOAT:
            raise TypeError("must be real number, not complex")
        flat = [x != 0 for x in flat]
    if not all(issubclass(c, _PLAIN) for c in set(map(type, flat))):
        flat = [x if isinstance(x, _PLAIN) else _other(x, dtype) for x in flat]
    return np.array(flat, dtype=dtype.np)


def _other(x: Any, dtype: dt.dtype) -> Any:
    """The number that an object says it is, as PyTorch asks for the dtype; else TypeError."""
    if dtype.category == dt.BOOL:
        return bool(operator.index(x))
    if dtype.category == dt.COMPLEX and hasattr(x, "__complex__"):
        return complex(x)
    if not hasattr(x, "__float__") and not hasattr(x, "__index__"):
        raise TypeError(f"must be real number, not {type(x).__name__}")
    return float(x)


def _integers(flat: list[Any], dtype: dt.dtype, inferred: bool) -> np.ndarray:
    bits = 8 * dtype.itemsize
    low = -(1 << (bits - 1)) if dtype.is_signed else 1 - (1 << bits)
    high = (1 << (bits - 1)) if dtype.is_signed else 1 << bits
    ints = []
    for x in flat:
        try:
            value = x if type(x) is int else int(x) if isinstance(x, float) else x.__index__()
        except (ValueError, OverflowError):  # nan, inf
            raise RuntimeError(
                f"value cannot be converted to type {dtype.name} without overflow: {x}"
            ) from None
        except AttributeError:
            raise TypeError(
                f"'{type(x).__name__}' object cannot be interpreted as an integer"
            ) from None
        if not (0 if isinstance(x, float) and not dtype.is_signed else low) <= value < high:
            unsigned = dtype is dt.uint64
            if inferred or type(x) is int and not -(2**63) <= value < 2 ** (63 + unsigned):
                raise ValueError(f"Overflow when unpacking long long: {value}")
            raise RuntimeError(
                f"value cannot be converted to type {dtype.name} without overflow: {value}"
            )
        ints.append(value)
    if not dtype.is_signed:
        ints = [x % high for x in ints]  # -1 is the largest number, as in C
    return np.array(ints, dtype.np)


def _element(x: Any, dtype: dt.dtype) -> Any:
    """A Python number for one that came as a tensor or as a NumPy scalar."""
    if isinstance(x, Tensor):
        if x._a.size != 1:
            if dtype.category == dt.INT:
                raise TypeError(
                    "only integer tensors of a single element can be converted to an index"
                )
            raise ValueError(
                "only one element tensors can be converted to Python scalars, not one of shape"
                f" {list(x._a.shape)}"
            )
        return x.item()
    if not isinstance(x, np.generic):
        return x
    if dtype.category <= dt.INT and not isinstance(x, (np.float64, np.complex128, np.integer)):
        # Only what Python itself takes for a number, or for an index, becomes an integer.
        if not (isinstance(x, np.bool_) and dtype is dt.bool_):
            raise TypeError(
                f"'numpy.{type(x).__name__}' object cannot be interpreted as an integer"
            )
    if dtype.category == dt.FLOAT and isinstance(x, np.complexfloating):
        return float(x)  # with NumPy's warning that the imaginary part is lost
    return x.item()


def _dtype_of(x: Any) -> dt.dtype:
    if isinstance(x, Tensor):
        return x._k.dtype
    if isinstance(x, np.generic):
        if isinstance(x, np.str_):
            raise ValueError("too many dimensions 'str'")
        return dt.from_numpy(x.dtype)
    return dt.of_scalar(x) if isinstance(x, _PLAIN) else _refuse(x)


def _refuse(x: Any) -> Any:
    if isinstance(x, (str, bytes)):
        raise TypeError(f"new(): invalid data type '{type(x).__name__}'")
    raise RuntimeError(f"Could not infer dtype of {type(x).__name__}")


def _is_sequence(x: Any) -> bool:
    if isinstance(x, (list, tuple)):
        return True
    if isinstance(x, (str, bytes, Tensor, dict, np.generic)):
        return False
    return hasattr(x, "__len__") and hasattr(x, "__getitem__")


def _shape_of(data: Any) -> tuple[int, ...]:
    shape: list[int] = []
    while _is_sequence(data):
        n = len(data)
        shape.append(n)
        if n == 0:
            break
        if len(shape) > 128:
            raise ValueError("excessive nesting: the data has more than 128 dimensions")
        try:
            data = data[0]
        except (KeyError, IndexError, TypeError) as e:
            raise ValueError(
                f"could not determine the shape of object type '{type(data).__name__}'"
            ) from e
    if isinstance(data, str):
        raise ValueError("too many dimensions 'str'")
    return tuple(shape)


def _flatten(data: Any, shape: tuple[int, ...], depth: int, found: _Found) -> None:
    if isinstance(data, Tensor) and data._a.ndim:
        data = aten.detach(data).numpy()
    if not _is_sequence(data):
        raise TypeError(f"not a sequence at dim {depth}: {type(data).__name__}")
    if shape[depth] == 0:
        return
    if len(data) != shape[depth]:
        raise ValueError(
            f"expected sequence of length {shape[depth]} at dim {depth} (got {len(data)})"
        )
    if isinstance(data, np.ndarray):
        _flatten_array(data, shape, depth, found)
    elif depth < len(shape) - 1:
        for x in data:
            _flatten(x, shape, depth + 1, found)
    else:
        row = data if isinstance(data, (list, tuple)) else [data[i] for i in range(shape[depth])]
        for x in {type(x): x for x in row}.values():
            if isinstance(x, (list, tuple)):
                raise TypeError(
                    f"'{type(x).__name__}' object cannot be interpreted as a number at dim"
                    f" {depth + 1}"
                )
            if isinstance(x, np.ndarray):
                raise TypeError("len() of unsized object: an array where a number was expected")
        found.rows.append(row)
        found.flat.extend(row)


def _flatten_array(a: np.ndarray, shape: tuple[int, ...], depth: int, found: _Found) -> None:
    if depth:
        settings.warn_once(
            "list of arrays",
            "Creating a tensor from a list of numpy.ndarrays is extremely slow. Please consider"
            " converting the list to a single numpy.ndarray with numpy.array() before converting to"
            " a tensor.",
        )
    for i, (n, wanted) in enumerate(zip(a.shape, shape[depth:], strict=False)):
        if n != wanted:
            raise ValueError(f"expected sequence of length {wanted} at dim {depth + i} (got {n})")
    if a.ndim != len(shape) - depth:
        raise TypeError(f"not a sequence at dim {depth + a.ndim}: {a.dtype}")
    found.arrays.append(dt.from_numpy(a.dtype.newbyteorder("=")))  # the values are read out
    found.flat.extend(a.ravel().tolist())

"""Element types and PyTorch's rules for promoting them.

Source: https://docs.pytorch.org/docs/2.13/tensor_attributes.html (type promotion).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from torchlab._core.lazy import lazy

ml_dtypes = lazy("ml_dtypes")

BOOL, INT, FLOAT, COMPLEX = 0, 1, 2, 3
_CATEGORY_NAMES = ("Bool", "Integral", "Floating", "Complex")


class dtype:
    """The type of a tensor's elements, such as `torchlab.float32`. One object per type."""

    __module__ = "torchlab"
    __slots__ = (
        "name",
        "aliases",
        "category",
        "itemsize",
        "is_floating_point",
        "is_complex",
        "is_signed",
        "_np",
        "scalar_name",
        "__weakref__",
    )

    name: str
    aliases: tuple[str, ...]
    category: int
    itemsize: int

    def __init__(
        self,
        name: str,
        category: int,
        itemsize: int,
        scalar_name: str,
        *aliases: str,
        signed: bool = True,
    ) -> None:
        self.name = name
        self.aliases = aliases
        self.category = category
        self.itemsize = itemsize
        self.scalar_name = scalar_name
        self.is_floating_point = category == FLOAT
        self.is_complex = category == COMPLEX
        self.is_signed = signed
        self._np: np.dtype | None = None

    @property
    def np(self) -> np.dtype:
        """The NumPy dtype; bfloat16 and float8 come from ml_dtypes, loaded at first use."""
        found = self._np
        if found is None:
            if self in CODES:
                raise RuntimeError(
                    f"{self} is a type of quantized tensors only: it does not say scale and zero"
                    " point; see quantize_per_tensor() and quantize_per_channel()"
                )
            if self in NAMED_ONLY:
                raise NotImplementedError(
                    f"tensors of {self} are not there: neither NumPy nor ml_dtypes has the type"
                )
            native = self.name not in _FROM_ML_DTYPES
            found = np.dtype(self.name) if native else np.dtype(getattr(ml_dtypes, self.name))
            self._np = found
        return found

    def to_real(self) -> dtype:
        """complex64 → float32, complex128 → float64; real types stay."""
        return {complex32: float16, complex64: float32, complex128: float64}.get(self, self)

    def to_complex(self) -> dtype:
        """float32 → complex64, float64 → complex128."""
        return {float32: complex64, float64: complex128}.get(self, self)

    def __repr__(self) -> str:
        return "torch." + self.name

    def __reduce__(self) -> str | tuple[Any, ...]:
        return (_by_name, (self.name,))


_FROM_ML_DTYPES = frozenset(
    {"bfloat16", "float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz"}
)
CODES: dict[dtype, np.dtype] = {}  # what the codes of a quantized type are
NAMED_ONLY: set[dtype] = set()  # types of which there are no tensors

uint8 = dtype("uint8", INT, 1, "Byte", signed=False)
int8 = dtype("int8", INT, 1, "Char")
int16 = dtype("int16", INT, 2, "Short", "short")
int32 = dtype("int32", INT, 4, "Int", "int")
int64 = dtype("int64", INT, 8, "Long", "long")
uint16 = dtype("uint16", INT, 2, "UInt16", signed=False)
uint32 = dtype("uint32", INT, 4, "UInt32", signed=False)
uint64 = dtype("uint64", INT, 8, "UInt64", signed=False)
float16 = dtype("float16", FLOAT, 2, "Half", "half")
bfloat16 = dtype("bfloat16", FLOAT, 2, "BFloat16")
float32 = dtype("float32", FLOAT, 4, "Float", "float")
float64 = dtype("float64", FLOAT, 8, "Double", "double")
complex64 = dtype("complex64", COMPLEX, 8, "ComplexFloat", "cfloat")
complex128 = dtype("complex128", COMPLEX, 16, "ComplexDouble", "cdouble")
bool_ = dtype("bool", BOOL, 1, "Bool", signed=False)
float8_e4m3fn = dtype("float8_e4m3fn", FLOAT, 1, "Float8_e4m3fn")
float8_e5m2 = dtype("float8_e5m2", FLOAT, 1, "Float8_e5m2")
float8_e4m3fnuz = dtype("float8_e4m3fnuz", FLOAT, 1, "Float8_e4m3fnuz")
float8_e5m2fnuz = dtype("float8_e5m2fnuz", FLOAT, 1, "Float8_e5m2fnuz")

ALL: tuple[dtype, ...] = tuple(v for v in list(globals().values()) if isinstance(v, dtype))
_NAMES: dict[str, dtype] = {n: d for d in ALL for n in (d.name, *d.aliases)}
NATIVE = frozenset(d for d in ALL if d.name not in _FROM_ML_DTYPES)
_BY_NUMPY: dict[np.dtype, dtype] = {d.np: d for d in NATIVE}


def _quantized(name: str, itemsize: int, scalar_name: str) -> dtype:
    """A type of quantized tensors. No strided tensor has such a type, so it is in none of the
    tables above, and has no NumPy type of its own; its codes have."""
    d = _NAMES[name] = dtype(name, INT, itemsize, scalar_name)
    CODES[d] = np.dtype(name[1:])
    return d


qint8 = _quantized("qint8", 1, "QInt8")
quint8 = _quantized("quint8", 1, "QUInt8")
qint32 = _quantized("qint32", 4, "QInt32")
QUANTIZED = frozenset(CODES)


def _named_only(name: str, category: int, scalar_name: str, *aliases: str, **facts: Any) -> dtype:
    """A type that programs name in their tables of types."""
    d = dtype(name, category, facts.pop("itemsize", 1), scalar_name, *aliases, **facts)
    _NAMES.update(dict.fromkeys((name, *aliases), d))
    NAMED_ONLY.add(d)
    return d


complex32 = _named_only("complex32", COMPLEX, "ComplexHalf", "chalf", itemsize=4)
for _bits in range(1, 8):
    _named_only(f"uint{_bits}", INT, f"UInt{_bits}", signed=False)
    _named_only(f"int{_bits}", INT, f"Int{_bits}")
for _packed in ("4x2", "2x4"):
    _named_only(f"quint{_packed}", INT, f"QUInt{_packed}")


def _by_name(name: str) -> dtype:
    return _NAMES[name]


def public_names() -> dict[str, dtype]:
    """Every public name of a dtype: `float32` and `float`, `int64` and `long`, and so on."""
    return dict(_NAMES)


def from_numpy(np_dtype: np.dtype, what: str = "from_numpy") -> dtype:
    """The torchlab dtype of a NumPy dtype; TypeError names those that are supported."""
    found = _BY_NUMPY.get(np_dtype)
    if found is not None:
        return found
    if np_dtype.name in _FROM_ML_DTYPES:
        found = _BY_NUMPY[np_dtype] = _NAMES[np_dtype.name]
        return found
    native = np_dtype.newbyteorder("=")
    if native != np_dtype and native in _BY_NUMPY:
        raise ValueError(
            f"{what}: given numpy array has byte order different from the native byte order."
            " Conversion between byte orders is currently not supported; use"
            " array.astype(array.dtype.newbyteorder('='))"
        )
    raise TypeError(
        f"{what}: can't convert np.ndarray of type {np_dtype}. The only supported types are:"
        " float64, float32, float16, bfloat16, complex64, complex128, int64, int32, int16, int8,"
        " uint64, uint32, uint16, uint8, and bool."
    )


_BAREBONES = frozenset({uint16, uint32, uint64})


def _promote(a: dtype, b: dtype) -> dtype:
    if a is b:
        return a
    if a.category < b.category:
        a, b = b, a
    if a in QUANTIZED or b in QUANTIZED:
        raise RuntimeError(
            "promoteTypes with quantized numbers is not handled: there is no common type of"
            f" {a.scalar_name} and {b.scalar_name}; use dequantize() first"
        )
    if a.itemsize == 1 and a.category == FLOAT or b.itemsize == 1 and b.category == FLOAT:
        raise RuntimeError(
            f"Promotion for Float8 Types is not supported, attempted to promote {a} and {b}"
        )
    if (a in _BAREBONES or b in _BAREBONES) and FLOAT not in (a.category, b.category):
        raise RuntimeError(
            f"Promotion for uint16, uint32, uint64 types is not supported, attempted to promote {a}"
            f" and {b}"
        )
    if a is complex32 and (b is float16 or b.category < FLOAT):
        return a
    if a.category == COMPLEX:
        wide = complex128 in (a, b) or float64 in (a, b)
        return complex128 if wide else complex64
    if a.category == FLOAT:
        if b.category != FLOAT:
            return a
        if {a, b} == {float16, bfloat16}:
            return float32
        return a if a.itemsize >= b.itemsize else b
    if b.category == BOOL:
        return a
    if a.is_signed == b.is_signed:
        return a if a.itemsize >= b.itemsize else b
    signed = a if a.is_signed else b
    return int16 if signed is int8 else signed


_PROMOTED: dict[tuple[dtype, dtype], dtype] = {}


def _checked(function: str, **arguments: Any) -> list[dtype]:
    """The dtypes, Python's own types read as such."""
    found = []
    for position, (name, value) in enumerate(arguments.items()):
        d = value if isinstance(value, dtype) else of_type(value)
        if d is None:
            raise TypeError(
                f"{function}(): argument '{name}' (position {position + 1}) must be torch.dtype,"
                f" not {type(value).__name__}"
            )
        found.append(d)
    return found


def promote_types(type1: dtype, type2: dtype) -> dtype:
    """The smallest type that holds both, as in `torch.promote_types`."""
    found = _PROMOTED.get((type1, type2))
    if found is None:
        found = _promote(*_checked("promote_types", type1=type1, type2=type2))
        _PROMOTED[type1, type2] = found
    return found


def can_cast(from_: dtype, to: dtype) -> bool:
    """Whether a result of type `from_` may be written into a tensor of type `to`."""
    source, target = _checked("can_cast", from_=from_, to=to)
    return source.category <= target.category


_default = float32


def get_default_dtype() -> dtype:
    """The floating type of new tensors made from Python floats."""
    return _default


def set_default_dtype(d: dtype) -> None:
    """Set the floating type of new tensors made from Python floats."""
    global _default
    if not isinstance(d, dtype) or not d.is_floating_point:
        raise TypeError(f"only floating-point types are supported as the default type, not {d}")
    _default = d
    for forget in default_changed:
        forget(None, None)


default_changed: list[Any] = []  # `pop` of every cache that keeps something of the default type


_PYTHON: dict[type, dtype] = {bool: bool_, int: int64, float: float64, complex: complex128}


def of_type(t: Any) -> dtype | None:
    """The dtype that Python's own type stands for where a dtype is asked for; None for others."""
    return _PYTHON.get(t) if isinstance(t, type) else None


def of_scalar(value: Any) -> dtype:
    """The dtype that a Python number stands for: bool, int64, the default dtype, or its complex."""
    t = type(value)
    if t is float:
        return _default
    if t is bool:
        return bool_
    if t is int:
        return int64
    if t is complex:
        return _default.to_complex() if _default.itemsize > 2 else complex64
    if isinstance(value, np.bool_):
        return bool_
    if isinstance(value, (int, np.integer)):
        return int64
    if isinstance(value, (float, np.floating)):
        return _default
    if isinstance(value, (complex, np.complexfloating)):
        return _default.to_complex()
    raise TypeError(f"{value!r} of type {t.__name__} is not a number")


def combine(dims: dtype | None, zeros: dtype | None, wrapped: dtype | None) -> dtype:
    """PyTorch's three priorities: tensors with dimensions, 0-d tensors, Python numbers. A lower
    priority changes the result only if its category is higher."""
    result = dims
    for other in (zeros, wrapped):
        if other is None:
            continue
        if result is None:
            result = other
        elif other.category > result.category:
            other = _width_of(result, other)
            result = promote_types(result, other) if other.category != result.category else result
    if result is None:
        raise RuntimeError("result_type() needs at least one tensor or number")
    return result


def _width_of(result: dtype, other: dtype) -> dtype:
    # A complex number beside float64 makes complex128, beside float32 complex64.
    if other.is_complex and result is float64:
        return complex128
    if other.is_complex and result.is_floating_point:
        return complex64
    return other


def category_name(d: dtype) -> str:
    return _CATEGORY_NAMES[d.category]

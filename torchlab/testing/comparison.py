"""`assert_close`: whether two values, or two nests of lists and dictionaries of them, agree.

What is compared: tensors and what converts to them, numbers, bools, None. The first pair that does
not agree is reported, with its place in the nest.

Source of the semantics: https://docs.pytorch.org/docs/2.13/testing.html
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from torchlab._core import dtype as dt
from torchlab._core.dispatch.registry import aten
from torchlab._core.tensor import Tensor

TOLERANCES: dict[str, tuple[float, float]] = {
    "float16": (1e-3, 1e-5),
    "bfloat16": (1.6e-2, 1e-5),
    "float32": (1.3e-6, 1e-5),
    "float64": (1e-7, 1e-7),
    "complex64": (1.3e-6, 1e-5),
    "quint8": (1.3e-6, 1e-5),
    "qint8": (1.3e-6, 1e-5),
    "qint32": (1.3e-6, 1e-5),
    "complex128": (1e-7, 1e-7),
}
"""(rtol, atol) by dtype; all other types must be equal."""

NUMBERS = (int, float, complex, np.number)
BOOLS = (bool, np.bool_)


@dataclass(frozen=True)
class Rules:
    """What the caller asked for."""

    allow_subclasses: bool
    rtol: float | None
    atol: float | None
    equal_nan: bool
    check_device: bool
    check_dtype: bool
    check_layout: bool
    check_stride: bool

    def tolerances(self, *dtypes: dt.dtype) -> tuple[float, float]:
        """Those asked for, or the larger ones of the types'."""
        if self.rtol is not None and self.atol is not None:
            return self.rtol, self.atol
        known = [TOLERANCES.get(d.name, (0.0, 0.0)) for d in dtypes]
        return max(r for r, _ in known), max(a for _, a in known)


def assert_close(
    actual: Any,
    expected: Any,
    *,
    allow_subclasses: bool = True,
    rtol: float | None = None,
    atol: float | None = None,
    equal_nan: bool = False,
    check_device: bool = True,
    check_dtype: bool = True,
    check_layout: bool = True,
    check_stride: bool = False,
    msg: str | Callable[[str], str] | None = None,
) -> None:
    """Raise AssertionError unless |actual − expected| ≤ atol + rtol · |expected| everywhere.

    Args:
        actual, expected: tensors, arrays, numbers, bools, None; or lists and dictionaries of such.
        allow_subclasses: whether a tensor may be compared with one of a subclass.
        rtol, atol: both or none; without them they follow from the dtypes (see `TOLERANCES`).
        equal_nan: whether NaN equals NaN.
        check_device, check_dtype, check_layout, check_stride: what must agree besides the values.
        msg: the error's text, or a function that makes it of the text there would be.

    Raises:
        AssertionError: values, types, shapes or structures differ.
        TypeError: there is no way to compare a pair.
        ValueError: only one of rtol and atol was given.
    """
    __tracebackhide__ = True  # pytest then shows the caller's line
    if (rtol is None) != (atol is None):
        missing = "rtol" if rtol is None else "atol"
        raise ValueError(
            f"Both 'rtol' and 'atol' must be either specified or omitted, but got no {missing}."
        )
    rules = Rules(
        allow_subclasses,
        rtol,
        atol,
        equal_nan,
        check_device,
        check_dtype,
        check_layout,
        check_stride,
    )
    text = next(differences(actual, expected, rules, ()), None)
    if text is not None:
        raise AssertionError(msg(text) if callable(msg) else text if msg is None else msg)


def differences(actual: Any, expected: Any, rules: Rules, place: tuple[Any, ...]) -> Iterator[str]:
    """What differs, pair by pair, each with its place."""
    if _both(actual, expected, Sequence) and not (
        isinstance(actual, str) or isinstance(expected, str)
    ):
        if len(actual) != len(expected):
            text = f"The length of the sequences mismatch: {len(actual)} != {len(expected)}"
            yield text + _at(place)
            return
        for i, (a, e) in enumerate(zip(actual, expected)):
            yield from differences(a, e, rules, (*place, i))
    elif _both(actual, expected, Mapping):
        text = _keys_differ(actual, expected)
        if text:
            yield text + _at(place)
            return
        for key in _ordered(actual):
            yield from differences(actual[key], expected[key], rules, (*place, key))
    else:
        text = _pair(actual, expected, rules, place)
        if text:
            yield text + _at(place)


def _both(actual: Any, expected: Any, kind: Any) -> bool:
    return isinstance(actual, kind) and isinstance(expected, kind)


def _at(place: tuple[Any, ...]) -> str:
    if not place:
        return ""
    return "\n\nThe failure occurred for item " + "".join(f"[{x!r}]" for x in place)


def _ordered(keys: Any) -> list[Any]:
    try:
        return sorted(keys)
    except TypeError:  # keys of several types have no order
        return list(keys)


def _keys_differ(actual: Mapping[Any, Any], expected: Mapping[Any, Any]) -> str:
    missing = _ordered(expected.keys() - actual.keys())
    additional = _ordered(actual.keys() - expected.keys())
    if not missing and not additional:
        return ""
    return (
        "The keys of the mappings do not match:\n"
        f"Missing keys in the actual mapping: {missing}\n"
        f"Additional keys in the actual mapping: {additional}"
    )


def _pair(actual: Any, expected: Any, rules: Rules, place: tuple[Any, ...]) -> str:
    """What differs in one pair; an empty string if nothing does."""
    if actual is None or expected is None:
        same = actual is expected
        return "" if same else f"None mismatch: {actual} is not {expected}"
    if _both(actual, expected, BOOLS):
        same = bool(actual) is bool(expected)
        return "" if same else f"Booleans mismatch: {actual} is not {expected}"
    if _both(actual, expected, (*NUMBERS, *BOOLS)):
        return _numbers(actual, expected, rules)
    a, e = _as_tensors(actual, expected, rules, place)
    return _attributes(a, e, rules) or _values(*_alike(a, e), rules, (a.dtype, e.dtype))


# ---- numbers ------------------------------------------------------------------------------------


def _numbers(actual: Any, expected: Any, rules: Rules) -> str:
    if rules.check_dtype and type(actual) is not type(expected):
        return f"The (d)types do not match: {type(actual)} != {type(expected)}."
    rtol, atol = rules.tolerances(*(_number_dtype(x) for x in (actual, expected)))
    difference = abs(actual - expected)
    close = actual == expected or (
        bool(np.isfinite(difference)) and difference <= atol + rtol * abs(expected)
    )
    if close or (rules.equal_nan and actual != actual and expected != expected):
        return ""
    relative = difference / abs(expected) if expected else float("inf")
    return scalar_text(actual, expected, difference, relative, rtol, atol)


def _number_dtype(x: Any) -> dt.dtype:
    if isinstance(x, np.generic):
        return dt.from_numpy(x.dtype)
    return (
        dt.float64
        if isinstance(x, float)
        else dt.complex128
        if isinstance(x, complex)
        else dt.int64
    )


def scalar_text(
    actual: Any, expected: Any, absolute: Any, relative: Any, rtol: float, atol: float
) -> str:
    """The report on two numbers."""
    equal = rtol == 0 and atol == 0
    return (
        f"Scalars are not {'equal' if equal else 'close'}!\n\n"
        f"Expected {expected} but got {actual}.\n"
        f"Absolute difference: {absolute}{_allowed(atol, equal)}\n"
        f"Relative difference: {relative}{_allowed(rtol, equal)}"
    )


def _allowed(tolerance: float, equal: bool) -> str:
    return "" if equal else f" (up to {tolerance} allowed)"


# ---- tensors ------------------------------------------------------------------------------------


def _as_tensors(
    actual: Any, expected: Any, rules: Rules, place: tuple[Any, ...]
) -> tuple[Tensor, Tensor]:
    """Both as tensors; TypeError where the types do not belong together."""
    related = (
        type(actual) is type(expected)
        or _exotic(actual, expected)
        or (
            rules.allow_subclasses
            and (isinstance(actual, type(expected)) or isinstance(expected, type(actual)))
        )
    )
    try:
        if not related:
            raise TypeError
        return tuple(x if isinstance(x, Tensor) else aten.as_tensor(x) for x in (actual, expected))  # type: ignore[return-value]
    except (TypeError, ValueError, RuntimeError):
        raise TypeError(
            f"No comparison pair was able to handle inputs of type {type(actual)} and "
            f"{type(expected)}." + _at(place)
        ) from None


def _exotic(a: Any, e: Any) -> bool:
    """Whether both are tensors, and one at least is sparse: then layouts are told apart later."""
    return isinstance(a, Tensor) and isinstance(e, Tensor) and (a._exotic or e._exotic)


def _attributes(a: Tensor, e: Tensor, rules: Rules) -> str:
    checks = [
        (True, "shape", a.shape, e.shape),
        (rules.check_layout, "layout", a.layout, e.layout),
        (True, "stride()", *(x.stride() if rules.check_stride else () for x in (a, e))),
        (rules.check_device, "device", a.device, e.device),
        (True, "is_quantized", a.is_quantized, e.is_quantized),
        (a.is_quantized, "qscheme()", *(x.is_quantized and x.qscheme() for x in (a, e))),
        (rules.check_dtype, "dtype", a.dtype, e.dtype),
    ]
    for wanted, name, x, y in checks:
        if wanted and x != y:
            return f"The values for attribute '{name}' do not match: {x} != {y}."
    return ""


def _alike(a: Tensor, e: Tensor) -> tuple[Tensor, Tensor]:
    """On one device, of one type, without history."""
    a, e = (aten.resolve_neg(aten.resolve_conj(aten.detach(x))) for x in (a, e))
    if a.device is not e.device:
        a, e = a.cpu(), e.cpu()  # type: ignore[attr-defined]
    if a.layout is not e.layout:
        a, e = a.to_dense(), e.to_dense()
    if a.dtype is not e.dtype:
        common = dt.promote_types(a.dtype, e.dtype)
        a, e = aten.to(a, common), aten.to(e, common)
    return a, e


def _values(a: Tensor, e: Tensor, rules: Rules, dtypes: tuple[dt.dtype, ...]) -> str:
    if a.is_meta or e.is_meta:  # no values
        return ""
    rtol, atol = rules.tolerances(*dtypes)
    if a.is_quantized:
        pair = aten.dequantize(a), aten.dequantize(e)
        return _strided(*pair, rtol, atol, rules.equal_nan, "Quantized tensor-likes")
    if a._exotic:
        return _sparse(a, e, rtol, atol, rules.equal_nan)
    return _strided(a, e, rtol, atol, rules.equal_nan, "Tensor-likes")


def _sparse(a: Tensor, e: Tensor, rtol: float, atol: float, equal_nan: bool) -> str:
    """The indices have to be equal, the values close."""
    title = "Sparse " + str(a.layout).removeprefix("torch.sparse_").upper()
    if a._nnz() != e._nnz():
        return (
            f"The number of specified values in {title[0].lower()}{title[1:]} tensors does not"
            f" match: {a._nnz()} != {e._nnz()}"
        )
    names = {"COO": ("_indices",), "CSR": _ROWS, "BSR": _ROWS, "CSC": _COLUMNS, "BSC": _COLUMNS}
    for name in names[title[7:]]:
        pair = getattr(a, name)(), getattr(e, name)()
        text = _strided(*pair, 0, 0, False, f"{title} {name.lstrip('_')}")
        if text:
            return text
    coo = title == "Sparse COO"
    pair = (a._values(), e._values()) if coo else (a.values(), e.values())
    return _strided(*pair, rtol, atol, equal_nan, f"{title} values")


_ROWS = ("crow_indices", "col_indices")
_COLUMNS = ("ccol_indices", "row_indices")


def _strided(a: Tensor, e: Tensor, rtol: float, atol: float, equal_nan: bool, what: str) -> str:
    matches = aten.isclose(a, e, rtol=rtol, atol=atol, equal_nan=equal_nan)
    if aten.all(matches).item():
        return ""
    if not (a.is_floating_point() or a.is_complex()):
        a, e = aten.to(a, dt.int64), aten.to(e, dt.int64)
    absolute = aten.abs(a - e)
    relative = absolute / aten.abs(e)
    if a.ndim == 0:
        return scalar_text(a.item(), e.item(), absolute.item(), relative.item(), rtol, atol)  # type: ignore[attr-defined]
    equal = rtol == 0 and atol == 0
    count, wrong = a.numel(), a.numel() - int(aten.sum(matches).item())
    lines = [
        f"{what} are not {'equal' if equal else 'close'}!\n",
        f"Mismatched elements: {wrong} / {count} ({100 * wrong / count:.1f}%)",
    ]
    for name, values, tolerance in (("absolute", absolute, atol), ("relative", relative, rtol)):
        flat = aten.reshape(aten.masked_fill(values, matches, 0), (-1,))
        worst = int(aten.argmax(flat).item())
        index = tuple(int(i) for i in np.unravel_index(worst, a._a.shape))
        lines.append(
            f"Greatest {name} difference: {flat[worst].item()} at index "
            f"{index}{_allowed(tolerance, equal)}"
        )
    return "\n".join(lines)

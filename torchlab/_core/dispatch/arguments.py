"""Arguments as PyTorch's parser takes them, and its TypeErrors for others.

Generated calls know the types that numbers, flags and names have as a rule. For any other, `taken`
looks what the schema says of each argument: it makes the number of what may stand for one, and
refuses the rest. If a call raises, whatever it raised, it looks once more (at what is in lists):
PyTorch would have begun with the TypeError. If all types are right, the first error stands.

Source: https://docs.pytorch.org/docs/2.13/torch.html
"""

from __future__ import annotations

import operator
import re
from collections.abc import Sequence
from typing import Any, NoReturn

import numpy as np

from torchlab._core import device as devices
from torchlab._core import dtype as dt
from torchlab._core.errors import no_host_memory
from torchlab._core.tensor import Tensor


class _Missing:
    """The default of a parameter that has to be given, under one name or another."""

    def __repr__(self) -> str:
        return "<required>"


MISSING: Any = _Missing()


def missing(name: str, given: dict[str, Any]) -> NoReturn:
    """Raise the TypeError for the parameters that were not given."""
    absent = [f'"{n}"' for n, v in given.items() if v is MISSING]
    raise TypeError(
        f"{name}() missing {len(absent)} required positional argument"
        f"{'s' if len(absent) > 1 else ''}: {', '.join(absent)}"
    )


REFUSED: Any = object()  # what a reader gives for a value that PyTorch's parser does not take


def _of_tensor(v: Tensor) -> Any:
    """The number in a tensor without dimensions, which may stand for one unless it wants a
    gradient."""
    return REFUSED if v._a.ndim or v.requires_grad else v.item()


def _int(v: Any) -> Any:
    """`int` in schemas."""
    if isinstance(v, (bool, np.bool_)):
        return REFUSED
    if isinstance(v, int):  # symbolic ones stay as they are
        return v
    if isinstance(v, np.integer):
        return int(v)
    if isinstance(v, Tensor) and not v._k.dtype.is_floating_point and not v._k.dtype.is_complex:
        found = _of_tensor(v)
        return REFUSED if type(found) is bool else found
    return REFUSED


def _size(v: Any) -> Any:
    """`SymInt` in schemas and an element of a list of integers: what has an `__index__`, too."""
    if isinstance(v, (bool, np.bool_)):
        return REFUSED
    if isinstance(v, int):
        return v
    if isinstance(v, Tensor):
        if v._a.size != 1 or v._k.dtype.is_floating_point or v._k.dtype.is_complex:
            return REFUSED
        return int(v.item())
    if isinstance(v, np.ndarray) and v.ndim:
        return REFUSED
    try:
        return operator.index(v)
    except TypeError:
        return REFUSED


def _scalar(v: Any) -> Any:
    """`Scalar` in schemas. NumPy's numbers that are neither integers nor Python's own (np.float64,
    np.complex128) are read as a double: a truth value, and the real part of an np.complex64."""
    if isinstance(v, np.generic) and not isinstance(v, complex):
        return int(v) if isinstance(v, np.integer) else float(v.real)
    if isinstance(v, Tensor):
        return _of_tensor(v)
    return v if isinstance(v, (int, float, complex)) else REFUSED


def _float(v: Any) -> Any:
    """`float` in schemas."""
    if isinstance(v, np.generic):
        return float(v.real)
    if isinstance(v, Tensor):
        v = _of_tensor(v)
        if isinstance(v, complex):
            if v.imag:
                raise RuntimeError("value cannot be converted to type double without overflow")
            v = v.real
    if isinstance(v, bool):
        return float(v)
    return v if isinstance(v, (int, float)) else REFUSED


def _bool(v: Any) -> Any:
    return v if isinstance(v, bool) else REFUSED


def _str(v: Any) -> Any:
    return v if isinstance(v, str) else REFUSED


def _dtype(v: Any) -> Any:
    return v if isinstance(v, dt.dtype) or dt.of_type(v) is not None else REFUSED


def _device(v: Any) -> Any:
    return v if isinstance(v, (devices.device, str, int)) else REFUSED


_KINDS: dict[str, tuple[Any, Any, str, str]] = {
    # type in schemas → (reader, reader of a list's elements, name, name of a list)
    "int": (_int, _size, "int", "tuple of ints"),
    "SymInt": (_size, _size, "int", "tuple of ints"),
    "float": (_float, _float, "float", "tuple of floats"),
    "Scalar": (_scalar, _scalar, "Number", "tuple of Scalars"),
    "bool": (_bool, _bool, "bool", "tuple of bools"),
    "str": (_str, _str, "str", "tuple of strs"),
    "ScalarType": (_dtype, _dtype, "torch.dtype", "tuple of dtypes"),
    "Device": (_device, _device, "torch.device", "tuple of devices"),
}


def taken(op: Any, args: Sequence[Any], first: int = 1) -> Sequence[Any]:
    """`args` as PyTorch's parser takes them for `op`: tensors without dimensions, NumPy's numbers
    and what has an `__index__` become Python's numbers where the schema wants these; a lone number
    a list of the length it says. TypeError as PyTorch's for the first argument that is not what the
    schema says. `args` come in the schema's order; `first` is the position of the first in the
    call, 0 for methods."""
    if any(v is MISSING for v in args):
        missing(op.name, {_shown(a): v for a, v in zip(op.schema.arguments, args, strict=False)})
    read = list(args)
    for i, (a, v) in enumerate(zip(op.schema.arguments, args, strict=False)):
        kind = _KINDS.get(a.type.base)
        if kind is None or (v is None and (a.type.optional or a.default is None)):
            continue
        if hasattr(type(v), "__torch_function__") and not isinstance(v, Tensor):
            continue  # its own affair: a node of a graph that is being traced
        if isinstance(v, Tensor) and "tensor_for_number" in op.tags:
            continue  # PyTorch has an overload for it: the body looks
        reader, of_elements, one, many = kind
        if a.type.list and (isinstance(v, (tuple, list)) or not a.type.size):
            if isinstance(v, (tuple, list)):
                read[i] = _elements(op, a, i + first, of_elements, many, v)
            elif isinstance(v, (str, float, complex)):
                wrong(op.name, a, i + first, many, v)
            continue
        found = reader(v)
        if found is not REFUSED:
            read[i] = (found,) * a.type.size if a.type.list else found
        else:
            wrong(op.name, a, i + first, many if a.type.list else one, v)
    return read


def _elements(op: Any, a: Any, i: int, reader: Any, many: str, v: Any) -> Any:
    """The list `v` for argument `a`, itself if there is nothing to change."""
    found = []
    for j, x in enumerate(v):
        y = None if x is None and a.type.elem_optional else reader(x)
        if y is REFUSED:
            where = "" if a.kwarg_only else f" (position {i})"
            raise TypeError(
                f"{op.name}(): argument '{_shown(a)}'{where} must be {many}, but found"
                f" element of type {type(x).__name__} at pos {j}"
            )
        found.append(y)
    return v if all(x is y for x, y in zip(found, v, strict=True)) else found


def failed(error: Exception, op: Any, args: Sequence[Any], first: int = 1) -> None:
    """Raise what PyTorch would have raised where a call of `op` raised `error`: for a wrong
    argument, as `taken`, or for want of memory. Nothing if `error` may stand."""
    taken(op, args, first)
    said = no_host_memory(error)
    if said is not None:
        raise said from None


def dtype_of(v: Any) -> Any:
    """The dtype for one of Python's own types, `float` say, which may be given for it; else `v`."""
    found = dt.of_type(v)
    return v if found is None else found


def value_of(name: str, argument: str, position: int, kind: str, v: Any) -> Any:
    """`v` as a "bool", "int", "float" or "str" for a function of Python's; TypeError if it cannot
    be one. A tensor that is no number is left to the function."""
    if hasattr(type(v), "__torch_function__") and not isinstance(v, Tensor):
        return v
    reader, _, one, _ = _KINDS[kind]
    found = reader(v)
    if found is not REFUSED:
        return found
    raise TypeError(
        f"{name}(): argument '{argument}' (position {position}) must be {one}, not"
        f" {type(v).__name__}"
    )


def check_tensor(name: str, argument: str, v: Any, position: int = 1) -> None:
    """TypeError if `v` is no tensor."""
    if not isinstance(v, Tensor):
        raise TypeError(
            f"{name}(): argument '{argument}' (position {position}) must be Tensor, not"
            f" {type(v).__name__}"
        )


def check_ints(name: str, argument: str, v: Any) -> None:
    """TypeError if `v` is neither an int nor a sequence of ints (None may stand for any)."""
    for x in v if isinstance(v, (tuple, list)) else (v,):
        if x is not None and type(x) is not int and _size(x) is REFUSED:
            raise TypeError(
                f"{name}(): argument '{argument}' must be tuple of ints, not {type(v).__name__}"
            )


_SAID = re.compile(r"(\w+)\(\): argument '(\w+)'( \(position \d+\))?")
_LITERALS = ("invalid literal for int()", "could not convert string to float")


def explain(error: Exception, name: str, given: dict[str, Any]) -> list[Any] | None:
    """What to call a function of Python's with that raised `error` when called with `given`:
    Python's numbers in the place of NumPy's and of tensors that hold an integer. Else raise the
    TypeError behind `error`, if there is one: an argument was used as a tensor, a dtype or a number
    that it is not. None: `error` may stand."""
    if isinstance(error, TypeError):
        said = _SAID.match(str(error))
        if said is None:
            again = [v if n in ("self", "input") else _plain(v) for n, v in given.items()]
            return (
                again
                if any(x is not y for x, y in zip(again, given.values(), strict=True))
                else None
            )
        # an operator inside said it: under the name of the call
        if said[1] != name and said[2] in given:
            where = f" (position {list(given).index(said[2]) + 1})" if said[3] else ""
            text = str(error)[said.end() :]
            raise TypeError(f"{name}(): argument '{said[2]}'{where}{text}") from None
        return None
    if isinstance(error, AttributeError):
        obj = error.obj
        if obj is None or isinstance(obj, (Tensor, dt.dtype)):
            return None
    elif not isinstance(error, ValueError) or not str(error).startswith(_LITERALS):
        said_of_memory = no_host_memory(error)
        if said_of_memory is not None:
            raise said_of_memory from None
        return None
    for i, (n, v) in enumerate(given.items(), 1):
        for x in (v, *v) if isinstance(v, (tuple, list)) else (v,):
            if x is error.obj if isinstance(error, AttributeError) else isinstance(x, str):
                wanted = "torch.dtype" if n == "dtype" else "Tensor"
                wanted = wanted if isinstance(error, AttributeError) else "number"
                raise TypeError(
                    f"{name}(): argument '{n}' (position {i}) must be {wanted}, not"
                    f" {type(v).__name__}"
                ) from None
    return None


def _plain(v: Any) -> Any:
    """`v`, or Python's number for it."""
    if isinstance(v, np.number):
        return v.item()
    if isinstance(v, Tensor):
        found = _int(v)
        return v if found is REFUSED else found
    if type(v) is tuple and any(isinstance(x, (np.number, Tensor)) for x in v):
        return tuple(map(_plain, v))
    return v


def _shown(a: Any) -> str:
    return "input" if a.name == "self" else a.name


def wrong(name: str, a: Any, i: int, wanted: str, v: Any) -> NoReturn:
    """Raise the TypeError for argument `a`, the i-th of the schema, that `v` cannot be."""
    where = "" if a.kwarg_only else f" (position {i})"
    raise TypeError(
        f"{name}(): argument '{_shown(a)}'{where} must be {wanted}, not {type(v).__name__}"
    )


__all__ = [
    "MISSING",
    "dtype_of",
    "check_ints",
    "check_tensor",
    "explain",
    "failed",
    "missing",
    "taken",
    "value_of",
    "wrong",
]

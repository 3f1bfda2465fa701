"""Wrong arguments: PyTorch's TypeErrors, worked out once a call has failed.

Generated calls do not look at the types of their numbers, flags and names: that would cost each
call what only a wrong one needs. If a call raises, whatever it raised, `check_arguments` looks what
its schema says of each argument, and raises the TypeError that PyTorch's parser would have begun
with. If all types are right, the first error stands.

Source: https://docs.pytorch.org/docs/2.13/torch.html
"""

from __future__ import annotations

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


def _is_int(v: Any) -> bool:
    if isinstance(v, Tensor):
        return v._a.ndim == 0
    if isinstance(v, (bool, np.bool_)):
        return False
    return hasattr(v, "__index__")


def _is_float(v: Any) -> bool:
    return isinstance(v, (int, Tensor)) or hasattr(v, "__float__")


def _is_number(v: Any) -> bool:
    return isinstance(v, (int, complex, Tensor)) or hasattr(v, "__float__")


def _is_bool(v: Any) -> bool:
    plain = isinstance(v, (int, float, str, Sequence)) and not isinstance(v, bool)
    return hasattr(v, "__bool__") and not plain


def _is_dtype(v: Any) -> bool:
    return isinstance(v, dt.dtype) or dt.of_type(v) is not None


def _is_device(v: Any) -> bool:
    return isinstance(v, (devices.device, str, int))


_INT = (_is_int, "int", "tuple of ints")
_KINDS: dict[str, tuple[Any, str, str]] = {  # type in schemas → (test, name, name of a list)
    "int": _INT,
    "SymInt": _INT,
    "float": (_is_float, "float", "tuple of floats"),
    "Scalar": (_is_number, "Number", "tuple of Scalars"),
    "bool": (_is_bool, "bool", "tuple of bools"),
    "str": (lambda v: isinstance(v, str), "str", "tuple of strs"),
    "ScalarType": (_is_dtype, "torch.dtype", "tuple of dtypes"),
    "Device": (_is_device, "torch.device", "tuple of devices"),
}


def check_arguments(op: Any, args: Sequence[Any], first: int = 1) -> None:
    """Raise PyTorch's TypeError for the first argument that is not what the schema of `op` says;
    nothing if all are. `args` come in the schema's order; `first` is the position of the first in
    the call, 0 for methods."""
    if any(v is MISSING for v in args):
        missing(op.name, {_shown(a): v for a, v in zip(op.schema.arguments, args, strict=False)})
    for i, (a, v) in enumerate(zip(op.schema.arguments, args, strict=False), first):
        kind = _KINDS.get(a.type.base)
        if kind is None or (v is None and (a.type.optional or a.default is None)):
            continue
        if isinstance(v, Tensor) and op.family == "composite":  # its body may take one: narrow
            continue
        test, one, many = kind
        if a.type.list and (isinstance(v, (tuple, list)) or not a.type.size):
            if not isinstance(v, (tuple, list)):
                if isinstance(v, (str, float, complex)):
                    wrong(op.name, a, i, many, v)
                continue
            for j, x in enumerate(v):
                if not test(x) and not (x is None and a.type.elem_optional):
                    where = "" if a.kwarg_only else f" (position {i})"
                    raise TypeError(
                        f"{op.name}(): argument '{_shown(a)}'{where} must be {many}, but found"
                        f" element of type {type(x).__name__} at pos {j}"
                    )
        elif not test(v):
            wrong(op.name, a, i, many if a.type.list else one, v)


def failed(error: Exception, op: Any, args: Sequence[Any], first: int = 1) -> None:
    """Raise what PyTorch would have raised where a call of `op` raised `error`: for a wrong
    argument, as `check_arguments`, or for want of memory. Nothing if `error` may stand."""
    check_arguments(op, args, first)
    said = no_host_memory(error)
    if said is not None:
        raise said from None


def dtype_of(v: Any) -> Any:
    """The dtype for one of Python's own types, `float` say, which may be given for it; else `v`."""
    found = dt.of_type(v)
    return v if found is None else found


def check_value(name: str, argument: str, position: int, kind: str, v: Any) -> None:
    """TypeError if `v` is no `kind` ("bool", "int", "float", "str") for a function of Python's."""
    test, one, _ = _KINDS[kind]
    if not test(v) and not (kind == "int" and isinstance(v, Tensor)):
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
        if x is not None and not (type(x) is int or _is_int(x)) or type(x) is object:
            raise TypeError(
                f"{name}(): argument '{argument}' must be tuple of ints, not {type(v).__name__}"
            )


_SAID = re.compile(r"(\w+)\(\): argument '(\w+)'( \(position \d+\))?")
_LITERALS = ("invalid literal for int()", "could not convert string to float")


def explain(error: Exception, name: str, given: dict[str, Any]) -> None:
    """Raise the TypeError behind the `error` of a function of Python's, if it is one: an argument
    was used as a tensor, a dtype or a number that it is not."""
    if isinstance(error, TypeError):  # an operator inside said it: under the name of the call
        said = _SAID.match(str(error))
        if said is not None and said[1] != name and said[2] in given:
            where = f" (position {list(given).index(said[2]) + 1})" if said[3] else ""
            text = str(error)[said.end() :]
            raise TypeError(f"{name}(): argument '{said[2]}'{where}{text}") from None
        return
    if isinstance(error, AttributeError):
        obj = error.obj
        if obj is None or isinstance(obj, (Tensor, dt.dtype)):
            return
    elif not isinstance(error, ValueError) or not str(error).startswith(_LITERALS):
        said_of_memory = no_host_memory(error)
        if said_of_memory is not None:
            raise said_of_memory from None
        return
    for i, (n, v) in enumerate(given.items(), 1):
        for x in (v, *v) if isinstance(v, (tuple, list)) else (v,):
            if x is error.obj if isinstance(error, AttributeError) else isinstance(x, str):
                wanted = "torch.dtype" if n == "dtype" else "Tensor"
                wanted = wanted if isinstance(error, AttributeError) else "number"
                raise TypeError(
                    f"{name}(): argument '{n}' (position {i}) must be {wanted}, not"
                    f" {type(v).__name__}"
                ) from None


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
    "check_arguments",
    "check_ints",
    "check_tensor",
    "check_value",
    "explain",
    "failed",
    "missing",
    "wrong",
]

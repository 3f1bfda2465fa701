"""Copying a list of small arrays of one shape into the rows of another, as one call: NumPy looks at
every array of a list twice before it copies, which takes longer than the copies.

The function is `fastcall`'s, for lists whose arrays are row-major and of one type. An item of
another shape makes it return the list, and the rows before it are written.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

from torchlab._core.codegen import fastcall
from torchlab._core.codegen.library import library

_SOURCE = """
using size = __INTPTR_TYPE__;

// the heads of a NumPy array and of a list
struct Array {{ size references; char object[{rest}]; char* data; int rank; const size* sizes; const size* strides; }};
struct List {{ size references; char object[{rest}]; size length; Array* const* items; }};

// as CPython's METH_FASTCALL has it: (out, list)
extern "C" void* stack_rows(void*, void* const* given, size) {{
    Array* out = (Array*)given[0];
    List* list = (List*)given[1];
    const size row = out->strides[0];
    char* to = out->data;
    for (size i = 0; i < list->length; ++i, to += row) {{
        const Array* a = list->items[i];
        bool fits = a->rank == out->rank - 1;
        for (int d = 0; fits && d < a->rank; ++d) fits = a->sizes[d] == out->sizes[d + 1];
        if (!fits) {{ ++list->references; return list; }}
        __builtin_memcpy(to, a->data, row);
    }}
    ++out->references;
    return out;
}}
"""


def stack_rows() -> Callable[[Any, list[Any]], Any] | None:
    """`f(out, arrays)` fills `out` (row-major, with elements) and returns it. None where there is
    no compiler or the interpreter's objects are laid out otherwise."""
    if not fastcall.available():
        return None
    rest = object.__basicsize__ - ctypes.sizeof(ctypes.c_ssize_t)
    made = library(_SOURCE.format(rest=rest), "stack_rows")
    return None if made is None else fastcall.function(made, "stack_rows")


__all__ = ["stack_rows"]

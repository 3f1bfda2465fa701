"""Running generated source so that debuggers and tracebacks show it.

`<eval_with_key>.N` is the file name of the N-th piece; its text is in `linecache`.
"""

from __future__ import annotations

import linecache
import traceback
from collections.abc import Callable
from itertools import count
from typing import Any

from torchlab.fx.names import _custom_builtins

_number = count().__next__


def _exec_with_source(
    src: str, globals: dict[str, Any], co_fields: dict[str, Any] | None = None
) -> None:
    """`exec`, with the source kept for tracebacks. co_fields: where the traced function stands."""
    filename = f"<eval_with_key>.{_number()}"
    if co_fields and "co_filename" in co_fields:
        filename += (
            f" from {co_fields['co_filename']}:{co_fields['co_firstlineno']} in "
            f"{co_fields['co_name']}"
        )
    linecache.cache[filename] = (len(src), None, src.splitlines(True), filename)
    exec(compile(src, filename, "exec", dont_inherit=True), globals)


def _forward_from_src(
    src: str, globals: dict[str, Any], co_fields: dict[str, Any] | None = None
) -> Callable[..., Any]:
    """The function `forward` that the source defines."""
    return _method_from_src("forward", src, globals, co_fields)


def _method_from_src(
    method_name: str, src: str, globals: dict[str, Any], co_fields: dict[str, Any] | None = None
) -> Callable[..., Any]:
    scope = globals.copy()
    _exec_with_source(src, scope, co_fields)
    fn: Callable[..., Any] = scope[method_name]
    return fn


def _format_import_block(globals: dict[str, Any]) -> str:
    """Statements that import the globals of generated code."""
    lines = {_import_statement(name, obj) for name, obj in globals.items()}
    return "\n".join(sorted(lines))


def _import_statement(name: str, obj: Any) -> str:
    if name in _custom_builtins:
        return _custom_builtins[name].import_str
    module = getattr(obj, "__module__", None)
    own = getattr(obj, "__name__", None) or getattr(obj, "_name", None)
    if module is None or own is None or "<" in own:
        raise RuntimeError(
            f"the generated code needs the object {obj!r}, which cannot be imported by a name; "
            "register it as an attribute of the module, or define it at the top level of a module"
        )
    return f"from {module} import {own} as {name}"


def shown_place(frame: traceback.FrameSummary) -> str:
    """The lines of generated source around the one that failed."""
    n = frame.lineno or 1
    lines = linecache.getlines(frame.filename)
    before = "".join(lines[max(0, n - 4) : n])
    after = "".join(lines[n : n + 2])
    return (
        f"\nCall using an FX-traced Module, line {n} of the traced Module's generated forward "
        f"function:\n{before}\n~~~ <--- HERE\n{after}"
    )

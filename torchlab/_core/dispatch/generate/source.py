"""Compile generated text in the name space that all generated functions share."""

from __future__ import annotations

import linecache
import re
from typing import Any

# Everything that generated code may name; `torchlab._core.dispatch.runtime` fills it.
NAMESPACE: dict[str, Any] = {"__name__": "torchlab._generated", "__builtins__": __builtins__}


def compile_source(title: str, source: str, env: dict[str, Any], name: str) -> Any:
    """Execute `source` with the names in `env` added to the shared ones; give back `name`."""
    filename = f"<torchlab {title}>"
    linecache.cache[filename] = (len(source), None, source.splitlines(True), filename)
    NAMESPACE.update(env)
    scope: dict[str, Any] = {}
    exec(compile(source, filename, "exec", dont_inherit=True), NAMESPACE, scope)
    return scope[name]


def ident(op: Any) -> str:
    """A Python identifier that is the operator's own: `aten_add_Tensor`."""
    return re.sub(r"\W", "_", f"{op.namespace}_{op.name}_{op.overload}")


def indent(text: str, by: int) -> str:
    pad = " " * by
    return "".join(pad + line if line.strip() else line for line in text.splitlines(True))

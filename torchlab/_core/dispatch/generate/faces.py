"""The generated entry of a Face: a Python function that chooses among overloads."""

from __future__ import annotations

import inspect
from typing import Any

from torchlab._core.dispatch.generate.source import compile_source


def face(f: Any, variant: str) -> Any:
    """A method or a function around `f.body`. As a function, `self` is called `input`, as
    PyTorch's."""
    if variant == "method":
        return f.method if callable(f.method) else f.body
    parameters = list(inspect.signature(f.body).parameters.values())
    if not parameters or parameters[0].name != "self":
        return f.body
    shown, passed = [], []
    star = False
    for i, p in enumerate(parameters):
        name = "input" if i == 0 else p.name
        if p.kind is p.VAR_POSITIONAL:
            shown.append("*" + name)
            passed.append("*" + name)
            star = True
            continue
        if p.kind is p.VAR_KEYWORD:
            shown.append("**" + name)
            passed.append("**" + name)
            continue
        if p.kind is p.KEYWORD_ONLY and not star:
            shown.append("*")
            star = True
        key = f"{f.name}_default_{p.name}"
        shown.append(name if p.default is p.empty else f"{name}=FACE_{key}")
        passed.append(f"{p.name}={name}" if p.kind is p.KEYWORD_ONLY else name)
    env = {f"FACE_{f.name}": f.body}
    env |= {
        f"FACE_{f.name}_default_{p.name}": p.default for p in parameters if p.default is not p.empty
    }
    source = f"def {f.name}({', '.join(shown)}):\n    return FACE_{f.name}({', '.join(passed)})\n"
    fn = compile_source(f"{f.name} (function)", source, env, f.name)
    fn.__doc__ = f.doc
    fn.__module__ = "torchlab"
    return fn

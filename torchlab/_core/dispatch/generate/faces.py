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
    if not f.out and (not parameters or parameters[0].name != "self"):
        return f.body
    shown, passed = [], []
    star = False
    for i, p in enumerate(parameters):
        name = "input" if i == 0 and p.name == "self" else p.name
        if p.kind is p.VAR_POSITIONAL:
            shown.append("*" + name)
            passed.append("*" + name)
            star = True
            continue
        if p.kind is p.VAR_KEYWORD:
            if f.out:
                raise TypeError(f"{f.name}: out= of a face with ** is up to the face itself")
            shown.append("**" + name)
            passed.append("**" + name)
            continue
        if p.kind is p.KEYWORD_ONLY and not star:
            shown.append("*")
            star = True
        key = f"{f.name}_default_{p.name}"
        shown.append(name if p.default is p.empty else f"{name}=FACE_{key}")
        passed.append(f"{p.name}={name}" if p.kind is p.KEYWORD_ONLY else name)
    env = {f"FACE_{f.name}": f.body, f"FACE_{f.name}_itself": f}
    env |= {
        f"FACE_{f.name}_default_{p.name}": p.default for p in parameters if p.default is not p.empty
    }
    body = f"    return FACE_{f.name}({', '.join(passed)})\n"
    if f.out:
        shown += ["out=None"] if star else ["*", "out=None"]
        inputs = "".join(x + ", " for x in passed if "=" not in x)
        named = ", ".join("'{}': {}".format(*x.split("=")) for x in passed if "=" in x)
        into = f"        return face_out(FACE_{f.name}_itself, ({inputs}), {{{named}}}, out)\n"
        body = f"    if out is not None:\n{into}{body}"
    source = f"def {f.name}({', '.join(shown)}):\n{body}"
    fn = compile_source(f"{f.name} (function)", source, env, f.name)
    fn.__doc__ = f.doc
    fn.__module__ = "torchlab"
    return fn

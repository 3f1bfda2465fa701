"""A face's body behind its autocast policy: while autocast is on, a `Caster` casts what it gets."""

from __future__ import annotations

import inspect
from typing import Any

from torchlab._core.dispatch.generate.source import compile_source


def check(f: Any, passed: list[str], key: str) -> str:
    """The lines that leave the call for the caster. passed: the arguments as a call of the body,
    which has the name `key`, writes them."""
    if f.autocast is None:
        return ""
    named = [x for x in passed if "=" in x or x[:2] == "**"]
    plain = "".join(x + ", " for x in passed if x not in named)
    packed = ", ".join(x if x[:2] == "**" else "'{}': {}".format(*x.split("=")) for x in named)
    return (
        "    if SLOW and TLS.autocast is not None:\n"
        f"        plain, named = ({plain}), {{{packed}}}\n"
        f"        return TLS.autocast.face('{f.autocast}', {key}, plain, named)\n"
    )


def guarded(f: Any, body: Any) -> Any:
    """`body` with the same parameters; itself if the face `f` has no policy."""
    if f.autocast is None:
        return body
    key = f"FACE_policy_{f.name}_{id(body)}"
    env = {key: body}
    shown, passed = [], []
    for p in inspect.signature(body).parameters.values():
        star = {p.VAR_POSITIONAL: "*", p.VAR_KEYWORD: "**"}.get(p.kind, "")
        if p.kind is p.KEYWORD_ONLY and not any(x[:1] == "*" for x in shown):
            shown.append("*")
        if p.default is not p.empty:
            env[f"{key}_{p.name}"] = p.default
            shown.append(f"{p.name}={key}_{p.name}")
        else:
            shown.append(star + p.name)
        passed.append(f"{p.name}={p.name}" if p.kind is p.KEYWORD_ONLY else star + p.name)
    source = (
        f"def {f.name}({', '.join(shown)}):\n"
        f"{check(f, passed, key)}"
        f"    return {key}({', '.join(passed)})\n"
    )
    fn = compile_source(f"{f.name} (autocast)", source, env, f.name)
    fn.__doc__, fn.__module__ = body.__doc__, body.__module__
    fn.__qualname__ = body.__qualname__
    return fn

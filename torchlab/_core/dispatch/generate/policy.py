"""A face's body behind its autocast policy: while autocast is on, a `Caster` casts what it gets."""

from __future__ import annotations

import inspect
from typing import Any

from torchlab._core.dispatch.generate.source import compile_source


def guarded(f: Any, body: Any) -> Any:
    """`body` with the same parameters; itself if the face `f` has no policy."""
    if f.autocast is None:
        return body
    key = f"FACE_policy_{f.name}_{id(body)}"
    env = {key: body}
    shown, plain, packed, named = [], [], [], []
    for p in inspect.signature(body).parameters.values():
        star = {p.VAR_POSITIONAL: "*", p.VAR_KEYWORD: "**"}.get(p.kind, "")
        if p.kind is p.KEYWORD_ONLY and not any(x[:1] == "*" for x in shown):
            shown.append("*")
        if p.default is not p.empty:
            env[f"{key}_{p.name}"] = p.default
            shown.append(f"{p.name}={key}_{p.name}")
        else:
            shown.append(star + p.name)
        if p.kind is p.KEYWORD_ONLY:
            packed.append(f"'{p.name}': {p.name}")
            named.append(f"{p.name}={p.name}")
        elif star == "**":
            packed.append(f"**{p.name}")
            named.append(f"**{p.name}")
        else:
            plain.append(star + p.name)
    source = (
        f"def {f.name}({', '.join(shown)}):\n"
        "    if SLOW and TLS.autocast is not None:\n"
        f"        plain = ({''.join(x + ', ' for x in plain)})\n"
        f"        named = {{{', '.join(packed)}}}\n"
        f"        return TLS.autocast.face('{f.autocast}', {key}, plain, named)\n"
        f"    return {key}({', '.join(plain + named)})\n"
    )
    fn = compile_source(f"{f.name} (autocast)", source, env, f.name)
    fn.__doc__, fn.__module__ = body.__doc__, body.__module__
    fn.__qualname__ = body.__qualname__
    return fn

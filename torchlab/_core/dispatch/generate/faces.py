"""The generated entry of a Face: a Python function that chooses among overloads."""

from __future__ import annotations

import inspect
from typing import Any

from torchlab._core.dispatch import exotic, registry
from torchlab._core.dispatch.generate import names
from torchlab._core.dispatch.generate.policy import check, guarded
from torchlab._core.dispatch.generate.source import compile_source


def face(f: Any, variant: str) -> Any:
    """A method or a function around `f.body`. As a function, `self` is called `input`, as
    PyTorch's."""
    if variant == "method":
        return _method(f, guarded(f, f.method if callable(f.method) else f.body))
    parameters = list(inspect.signature(f.body).parameters.values())
    others = names.takes_other_names(f.name)
    if not f.out and (not parameters or parameters[0].name != "self"):
        return _method(f, guarded(f, f.body), variant)
    if others and parameters[-1].kind is inspect.Parameter.VAR_KEYWORD:
        if parameters[-1].name == "names":  # the body sees to NumPy's names itself, as a method
            parameters.pop()
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
        key = f"{_key(f)}_default_{p.name}"
        shown.append(name if p.default is p.empty else f"{name}=FACE_{key}")
        passed.append(f"{p.name}={name}" if p.kind is p.KEYWORD_ONLY else name)
    env = {f"FACE_{_key(f)}": f.body, f"FACE_{_key(f)}_itself": f}
    env |= {
        f"FACE_{_key(f)}_default_{p.name}": p.default
        for p in parameters
        if p.default is not p.empty
    }
    body = check(f, passed, f"FACE_{_key(f)}")
    body += f"    return FACE_{_key(f)}({', '.join(passed)})\n"
    if f.out:
        shown += ["out=None"] if star else ["*", "out=None"]
        inputs = "".join(x + ", " for x in passed if "=" not in x)
        named = ", ".join("'{}': {}".format(*x.split("=")) for x in passed if "=" in x)
        into = f"        return face_out(FACE_{_key(f)}_itself, ({inputs}), {{{named}}}, out)\n"
        body = f"    if out is not None:\n{into}{body}"
    if f.name in exotic.FACES and f.out:  # Note [Exotic tensors]
        first = parameters[0]
        star = "*" if first.kind is first.VAR_POSITIONAL else ""
        plain = "".join(x + ", " for x in passed if "=" not in x)
        keyed = ", ".join("'{}': {}".format(*x.split("=")) for x in passed if "=" in x)
        env |= {"EXOTIC": exotic.Exotic, "exotic_face": exotic.exotic_face}
        body = (
            f"    if isinstance({shown[0].removeprefix('*')}{'[0]' if star else ''}, EXOTIC)"
            " and out is None:\n"
            f"        return exotic_face('{f.name}', ({plain}), {{{keyed}}})\n{body}"
        )
    if parameters and parameters[0].name == "self":
        body = _ask_handlers(f, parameters, shown[0]) + body
    body = names.explained(body, f.name, shown, _annotated(f.body))
    body = "".join(x + "\n" for x in names.pythons_types(_dtypes(parameters))) + body
    key, lines = f"FN_face_{_key(f)}", []
    if others:
        shown, lines = names.accept(shown, key, f.name)
        body = "".join(x + "\n" for x in lines) + body
    source = f"def {f.name}({', '.join(shown)}):\n{body}"
    fn = compile_source(f"{f.name} (function)", source, env, f.name)
    fn.__doc__ = f.doc
    fn.__module__ = "torchlab"
    return names.shown(fn, key) if lines else fn


def _dtypes(parameters: list[inspect.Parameter]) -> list[str]:
    return [p.name for p in parameters if p.name == "dtype"]


def _key(f: Any) -> str:
    """What the generated code calls `f`: two name spaces may have a face of the same name."""
    return f.name if registry.FACES.get(f.name) is f else f"{f.name}_{f.body.__name__}"


def _annotated(body: Any) -> Any:
    return inspect.signature(body).parameters.values()


def _method(f: Any, body: Any, variant: str = "method") -> Any:
    """`body` with NumPy's names and an eye on wrong types around it; as it is, if it has hardly any
    parameters, or hands them all to operators, which look themselves (tag "bare", for hot ones)."""
    body.__name__ = body.__qualname__ = f.name  # Python's own messages say it
    parameters = list(inspect.signature(body).parameters.values())
    key = f"{variant}_{_key(f)}"
    written = f.method if variant == "method" and callable(f.method) else f.body
    shown, passed = [], []
    for p in parameters:
        if p.kind is p.VAR_KEYWORD or p.kind is p.VAR_POSITIONAL:
            stars = "**" if p.kind is p.VAR_KEYWORD else "*"
            shown.append(stars + p.name)
            passed.append(stars + p.name)
            continue
        if p.kind is p.KEYWORD_ONLY and not any(x.startswith("*") for x in shown):
            shown.append("*")
        default = f"FACE_{key}_default_{p.name}"
        shown.append(p.name if p.default is p.empty else f"{p.name}={default}")
        passed.append(f"{p.name}={p.name}" if p.kind is p.KEYWORD_ONLY else p.name)
    lines: list[str] = []
    if names.takes_other_names(f.name):
        shown, lines = names.accept(shown, f"FN_{key}", f.name)
    starred = any(p.kind is p.VAR_POSITIONAL for p in parameters)
    many = starred and len(parameters) < 3 and variant == "function"  # of tensors, not sizes
    if "bare" in f.tags and variant == "method":
        return body
    if f.name.startswith("__"):  # an operator of Python's: hot, and never called by keyword
        return body
    if not lines and not many and (starred or len(parameters) < 2):
        return body
    env = {
        f"FACE_{key}_default_{p.name}": p.default for p in parameters if p.default is not p.empty
    }
    env[f"FACE_body_{key}"] = body
    types = names.pythons_types(_dtypes(parameters))
    head = "".join(x + "\n" for x in (f"def {f.name}({', '.join(shown)}):", *lines, *types))
    call = f"    return FACE_body_{key}({', '.join(passed)})\n"
    first = 0 if variant == "method" else 1
    source = head + names.explained(call, f.name, shown, _annotated(written), first)
    fn = compile_source(f"{f.name} ({variant})", source, env, f.name)
    fn.__doc__, fn.__module__ = f.doc, "torchlab"
    return names.shown(fn, f"FN_{key}") if lines else fn


def _ask_handlers(f: Any, parameters: list[inspect.Parameter], first: str) -> str:
    """Leave for `face_odd` if the first argument is no plain tensor."""
    plain, keyed = "", []
    for i, p in enumerate(parameters):
        name = first if i == 0 else p.name
        if p.kind is p.VAR_POSITIONAL:
            plain += f"*{name}, "
        elif p.kind is p.VAR_KEYWORD:
            keyed.append(f"**{name}")
        elif p.default is p.empty and p.kind is not p.KEYWORD_ONLY:
            plain += f"{name}, "
        else:
            default = f"FACE_{_key(f)}_default_{p.name}"
            keyed.append(f"**({{}} if {name} is {default} else {{'{p.name}': {name}}})")
    return (
        f"    if type({first}) is not T and type({first}) is not P:\n"
        f"        odd = face_odd(FACE_{_key(f)}_itself, ({plain}), {{{', '.join(keyed)}}})\n"
        "        if odd is not NotImplemented:\n"
        "            return odd\n"
    )

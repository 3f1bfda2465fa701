"""The lines of a generated call that look at its numbers, flags, words and sizes.

Of the usual types nothing is asked; any other sends all arguments to `arguments.taken`.
"""

from __future__ import annotations

from typing import Any

from torchlab._core.dispatch.generate.source import ident

_QUICK = {  # types of values that need no look at them
    "bool": ("bool",),
    "int": ("int",),
    "SymInt": ("int",),
    "float": ("float", "int"),
    "Scalar": ("float", "int"),
    "str": ("str",),
}


def check_values(op: Any, variant: str) -> list[str]:
    """The lines for `variant`, in the order of the arguments; a lone int becomes a list where the
    schema gives its length."""
    lines = []
    start = ", 0" if counted_from_self(op, variant) else ""
    every = "".join(a.name + ", " for a in op.schema.arguments)
    take = f"    {every}= taken(OP_{ident(op)}, ({every}){start})"
    for a in op.schema.arguments:
        n, t = a.name, a.type
        quick = _QUICK.get(t.base)
        if quick is None or (a.kwarg_only and variant == "dunder"):
            continue
        absent = [f"{n} is not None"] if t.optional or (a.has_default and a.default is None) else []
        if not t.list:
            tests = [*absent, *(f"type({n}) is not {x}" for x in quick)]
            lines += [f"if {' and '.join(tests)}:", take]
        elif op.varargs and a is op.schema.arguments[1] and (variant == "method" or not t.size):
            continue  # sizes one by one: a tuple by now
        else:
            if t.size and quick == ("int",):
                lines += [f"if type({n}) is int:", f"    {n} = ({n},) * {t.size}"]
                if a.has_default and a.default == ():  # PyTorch reads None as the empty list
                    lines += [f"elif {n} is None:", f"    {n} = ()"]
            word = "elif" if t.size and quick == ("int",) else "if"
            tests = [*absent, *(f"type({n}) is not {x}" for x in ("tuple", "list", "Size"))]
            lines += [f"{word} {' and '.join(tests)}:", take]
    return lines


def counted_from_self(op: Any, variant: str) -> bool:
    """Whether positions in messages leave `self` out: they do for methods."""
    return variant == "method" and bool(op.schema.arguments[0].name == "self")


__all__ = ["check_values", "counted_from_self"]

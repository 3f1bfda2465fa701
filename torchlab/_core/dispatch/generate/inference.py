"""The generated call of an operator in inference mode."""

from __future__ import annotations

from typing import Any

from torchlab._core.dispatch.generate import calls
from torchlab._core.dispatch.generate.source import compile_source, ident


def inference_call(op: Any) -> Any:
    """The inlined call in inference mode: nothing is recorded, the result is an inference tensor.
    It gives None for what it does not cover; False if the operator has no such call."""
    if op.family not in ("unary", "binary") or not calls.has_ufunc(op) or op.promote == "real":
        return op._cache.setdefault("inference", False)
    i = ident(op)
    flag = calls.kind_flag(op)
    kind = "BOOL_KIND.i" if op.promote == "bool" else "k.i"
    extra = calls.at_defaults(op)
    lines = [
        f"def {op.name}({', '.join(calls.signature(op, 'core'))}):",
        "    c = type(self)",
        "    if c is not T and c is not P:",  # `1 - x` has the number first
        "        return None",
        "    k = self._k.n",
        f"    if not k.{flag}:",
        "        return None",
    ]
    operands = "self._a"
    if op.family == "binary":
        operands += ", y"
        lines += [
            "    c = type(other)",
            f"    if (c is T or c is P) and other._k.n is k{extra}:",
            "        y = other._a",
            f"    elif ({calls.takes_number(op, flag)}){extra}:",
            "        y = SCALARS.get((other, c, k))",
            "        if y is None:",
            "            y = scalar_of(other, c, k)",
            "    else:",
            "        return None",
        ]
    lines += [
        "    try:",
        f"        r = U_{i}({operands})",
        "    except ValueError:",
        "        return None",
        "    if type(r) is not ndarray:",
        "        r = asarray(r)",
        "    result = new(T)",
        "    result._a = r",
        f"    result._k = {kind}",
        "    result._s = result._v = result._g = result._e = None",
        "    return result",
    ]
    env = {f"U_{i}": calls.ufunc(op)}
    return compile_source(f"{op.qualname} (inference)", "\n".join(lines) + "\n", env, op.name)


__all__ = ["inference_call"]

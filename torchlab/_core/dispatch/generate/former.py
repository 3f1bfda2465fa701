"""Calls as they were before the numbers had names: `x.add_(alpha, other)`,
`torch.addmm(beta, x, alpha, a, b)`. PyTorch still takes them, and says once what to write instead.

The generated calls of these operators have `*old` where they had `*`; arguments that land there
are put in order here.

Source: https://docs.pytorch.org/docs/2.13/generated/torch.add.html
"""

from __future__ import annotations

import inspect
from typing import Any

from torchlab._core import settings
from torchlab._core.dispatch import registry
from torchlab._core.dispatch.generate.source import NAMESPACE

_ONE = {"add": "alpha", "sub": "alpha", "addcmul": "value", "addcdiv": "value"}
"""Operators of tensors with one number, which stood behind the first tensor."""
_TWO = frozenset(("addmm", "addmv", "addr", "addbmm", "baddbmm", "sspaddmm"))
"""Operators with beta and alpha: beta stood before the first tensor, or behind it in methods;
alpha behind both, or it was left out."""


def admit(op: Any, name: str, variant: str, lines: list[str], at: int = 1) -> list[str]:
    """The lines of a generated function, taking the former order of arguments, too. The check goes
    before line `at`."""
    if variant not in ("method", "function") or op.namespace != "aten":
        return lines
    if op.name not in _ONE and op.name not in _TWO or "*, " not in lines[0]:
        return lines
    plain = [a.name for a in op.schema.arguments if not a.kwarg_only]
    if variant == "function":
        plain[0] = "input"
    head = lines[0].replace("*, ", "*old, ", 1)
    numbers = [a for a in op.schema.arguments if a.kwarg_only]
    twice = " or ".join(f"{a.name} != {a.default!r}" for a in numbers)
    call = f"former('{name}', '{op.name}', {variant == 'method'}, ({', '.join(plain)}, *old)"
    call += f", {twice})"
    if variant == "function" and op.out_form:
        call = call[:-1] + ", out)"
    return [head, *lines[1:at], "    if old:", f"        return {call}", *lines[at:]]


def shown(fn: Any) -> Any:
    """Let `inspect.signature` show `fn` without `*old`."""
    if fn.op.name in _ONE or fn.op.name in _TWO:
        signature = inspect.signature(fn)
        fn.__signature__ = signature.replace(
            parameters=[p for n, p in signature.parameters.items() if n != "old"]
        )
    return fn


def _former(
    name: str, op: str, method: bool, args: tuple[Any, ...], twice: bool, out: Any = None
) -> Any:
    """The call in today's order. `twice`: a number was given by name as well."""
    tensors = NAMESPACE["T"]
    numbers = [x for x in args if not isinstance(x, tensors)]
    given = [x for x in args if isinstance(x, tensors)]
    wanted = 2 if op == "add" or op == "sub" else 3
    names = (_ONE[op],) if op in _ONE else ("beta", "alpha")
    kinds = [isinstance(x, tensors) for x in args]
    orders = [[True, False] + [True] * (wanted - 1)]
    if op in _TWO:
        orders = [[True, False, False, True, True], [True, False, True, True]]
        if not method:
            orders = [[False, True, False, True, True], [False, True, True, True]]
    if twice or kinds not in orders:
        types = ", ".join(type(x).__name__ for x in args)
        raise TypeError(
            f"{name}() received an invalid combination of arguments - got ({types}), but"
            f" expected {wanted} tensors, then {' and '.join(names)} by name"
        )
    keywords = dict(zip(names, numbers, strict=False))
    tail = ", ".join(f"{n}={v!r}" for n, v in keywords.items())
    settings.warn_once(
        "former order of arguments",
        f"This overload of {name} is deprecated: the numbers go last, by name. Write"
        f" {name}(..., {tail})",
    )
    if out is not None:
        keywords["out"] = out
    call = getattr(tensors, name) if method else registry.function(name, "torch")
    return call(*given, **keywords)


NAMESPACE["former"] = _former

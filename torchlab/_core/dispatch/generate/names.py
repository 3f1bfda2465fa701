"""Other names that callers may use: NumPy's spellings of PyTorch's parameters.

`torch.sum(x, axis=0, keepdims=True)` and `torch.add(x1=a, x2=b)` work as in PyTorch, whose
functions of C++ take these names too; those of Python do not. A generated signature gets `**named`
for them (15 ns; Python looks at keywords it does not know before any code of ours runs), so that
parameters which can come under another name have MISSING for a default.
`inspect.signature` shows the signature without all that.

Source: https://docs.pytorch.org/docs/2.13/torch.html
"""

from __future__ import annotations

import inspect
import re
from typing import Any

from torchlab._core.dispatch import registry
from torchlab._core.dispatch.arguments import (
    MISSING,
    dtype_of,
    explain,
    failed,
    missing,
    taken,
    value_of,
)
from torchlab._core.dispatch.generate.source import NAMESPACE, indent
from torchlab._core.dtype import dtype

MEANING = {"x": "input", "a": "input", "x1": "input", "x2": "other", "axis": "dim"}
MEANING["keepdims"] = "keepdim"
_RENAMED = frozenset(MEANING.values())
# What PyTorch wrote in Python: its functions take no other names than their own.
PYTHON = frozenset({
    "atleast_1d", "atleast_2d", "atleast_3d", "block_diag", "broadcast_shapes", "cdist",
    "broadcast_tensors", "cartesian_prod", "chain_matmul", "einsum", "lu", "meshgrid",
    "norm", "split", "stft", "tensordot", "unique", "unique_consecutive", "unravel_index",
})  # fmt: skip
# Functions of C++ that are in torch.nn.functional alone.
FUNCTIONAL = frozenset({
    "avg_pool2d", "avg_pool3d", "elu_", "hardtanh_", "leaky_relu_", "logsigmoid", "one_hot",
    "softplus", "softshrink",
})  # fmt: skip
_NATIVE = ("torch", "linalg", "fft", "special")


def takes_other_names(name: str) -> bool:
    """Whether PyTorch has `name` as a function or method of C++."""
    if name in PYTHON:
        return False
    if name in FUNCTIONAL:
        return True
    spaces = registry.FUNCTIONS
    short = name.partition("_")[2]
    return name in registry.METHODS or any(
        name in spaces.get(s, ()) or (name.startswith(f"{s}_") and short in spaces.get(s, ()))
        for s in _NATIVE
    )


def accept(
    parts: list[str], key: str, name: str, check: bool = True
) -> tuple[list[str], list[str]]:
    """The parameters `parts` of a generated function with other names admitted, and the lines that
    see to them. Both as they were if there is nothing to admit. `key` names the function in the
    generated code; it is to be handed to `shown`. `check`: see to absent arguments, too."""
    plain = [p.partition("=")[0] for p in parts if not p.startswith("*")]
    if any(p.startswith("**") for p in parts) or not _RENAMED.intersection(plain):
        return parts, []
    required: list[str] = []
    taken = []
    for p in parts:
        if p.startswith("*"):
            taken.append(p)
        elif "=" not in p and (required or p in _RENAMED):
            required.append(p)
            taken.append(f"{p}=MISSING")
        else:
            taken.append(p)
    given = ", ".join(f"'{n}': {n}" for n in plain)
    lines = ["    if named:", f"        return by_name({key}, {{{given}}}, named)"]
    if required and check:
        every = " or ".join(f"{n} is MISSING" for n in required)
        wanted = ", ".join(f"'{n}': {n}" for n in required)
        lines += [f"    if {every}:", f"        missing('{name}', {{{wanted}}})"]
    return [*taken, "**named"], lines


def shown(fn: Any, key: str) -> Any:
    """Let `inspect.signature` show `fn` without the means of `accept`."""
    parameters = []
    for p in inspect.signature(fn).parameters.values():
        if p.kind is not p.VAR_KEYWORD:
            parameters.append(p.replace(default=p.empty) if p.default is MISSING else p)
    fn.__signature__ = inspect.Signature(parameters)
    NAMESPACE[key] = fn
    return fn


def explained(lines: str, name: str, shown: list[str], parameters: Any, first: int = 1) -> str:
    """`lines` of a generated function of Python's, with an eye on wrong types: what the annotations
    of its parameters say is seen to first, the rest if it fails. `first`: the position that
    messages give the first parameter."""
    plain = [p.partition("=")[0] for p in shown if not p.startswith("*")]
    many = [p[1:] for p in shown if re.fullmatch(r"\*\w+", p)]
    given = ", ".join(f"'{n}': {n}" for n in [*plain, *many])
    checks = ""
    for i, p in enumerate(parameters, first):
        kinds = [] if p.annotation is p.empty else str(p.annotation).split(" | ")
        kind = kinds[0] if kinds and kinds[1:] in ([], ["None"]) else ""
        if kind in ("bool", "int", "float", "str") and p.name in plain:
            tests = [f"type({p.name}) is not {kind}"]
            if kind == "float":
                tests.append(f"type({p.name}) is not int")
            if kinds[1:] or p.default is None:
                tests.insert(0, f"{p.name} is not None")
            checks += f"    if {' and '.join(tests)}:\n"
            said = f"'{name}', '{p.name.rstrip('_')}', {i}, '{kind}', {p.name}"
            checks += f"        {p.name} = value_of({said})\n"
    targets = "".join(f"{n}, " for n in [*plain, *many])
    return (
        f"{checks}    try:\n{indent(lines, 4)}    except Exception as error:\n"
        f"        again = explain(error, '{name}', {{{given}}})\n"
        "        if again is None:\n            raise\n"
        f"        {targets}= again\n        try:\n{indent(lines, 8)}"
        "        except TypeError:\n            raise error from None\n"
    )


def pythons_types(parameters: list[str]) -> list[str]:
    """The lines by which a call takes `float` for a dtype, as PyTorch does."""
    return [
        f"    if {n} is not None and type({n}) is not DTYPE: {n} = dtype_of({n})"
        for n in parameters
    ]


def by_name(fn: Any, given: dict[str, Any], named: dict[str, Any]) -> Any:
    """Call `fn` again with the arguments `named` under PyTorch's names. TypeError for names that
    mean nothing or what was given already."""
    parameters = inspect.signature(fn).parameters
    full = dict(given)
    for n, value in named.items():
        meant = MEANING.get(n, "")
        p = parameters.get(meant)
        default = p.default if p is not None else None
        if p is None or full[meant] is not (MISSING if default is p.empty else default):
            raise TypeError(f"{fn.__name__}() got an unexpected keyword argument '{n}'")
        full[meant] = value
    return fn(**{n: v for n, v in full.items() if v is not MISSING})


NAMESPACE.update(
    MISSING=MISSING,
    by_name=by_name,
    missing=missing,
    taken=taken,
    failed=failed,
    value_of=value_of,
    dtype_of=dtype_of,
    explain=explain,
    DTYPE=dtype,
)

__all__ = ["accept", "by_name", "explained", "pythons_types", "shown", "takes_other_names"]

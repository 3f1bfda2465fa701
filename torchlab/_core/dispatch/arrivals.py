"""Under which name an operator reaches `__torch_dispatch__`.

Most declarations have PyTorch's names. Where torchlab declares one operator for what PyTorch lists
as several (`eq.Tensor` and `eq.Scalar`), or calls it otherwise, the tables here say what a handler
is told, so that a program written for PyTorch's names works. `func(*args)` leads back.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from torchlab._core.dispatch import modes, registry
from torchlab._core.dispatch.overload import OpOverload, bind, trimmed
from torchlab._core.tensor import Tensor

# The same operator by PyTorch's name.
_DEFAULT = (
    "maximum", "minimum", "fmax", "fmin", "atan2", "hypot", "logaddexp", "logical_and",
    "logical_or", "logical_xor", "floor_divide",
)  # fmt: skip
_SPECIAL = (
    "bessel_j0", "bessel_j1", "bessel_y0", "bessel_y1", "modified_bessel_i0", "modified_bessel_i1",
    "modified_bessel_k0", "modified_bessel_k1", "scaled_modified_bessel_k0",
    "scaled_modified_bessel_k1", "airy_ai", "spherical_bessel_j0", "i0e", "i1", "i1e", "zeta",
    "xlog1py", "erfcx", "entr", "ndtr", "ndtri", "log_ndtr", "chebyshev_polynomial_t",
    "shifted_chebyshev_polynomial_t", "chebyshev_polynomial_u", "shifted_chebyshev_polynomial_u",
    "chebyshev_polynomial_v", "shifted_chebyshev_polynomial_v", "chebyshev_polynomial_w",
    "shifted_chebyshev_polynomial_w", "hermite_polynomial_h", "hermite_polynomial_he",
    "laguerre_polynomial_l", "legendre_polynomial_p",
)  # fmt: skip
RENAMED: dict[str, str] = {
    **{f"{n}.Tensor": f"{n}.default" for n in _DEFAULT},
    **{f"{n}.default": f"special_{n}.default" for n in _SPECIAL},
    "_fill.Scalar": "fill.Scalar",
    "_fill.Tensor": "fill.Tensor",
    "flatten.default": "flatten.using_ints",
    "unflatten.default": "unflatten.int",
}

# Overloads of PyTorch's for a number where torchlab's declaration takes either:
# declaration → (argument that may be a number, overload then, overload otherwise).
NUMBER: dict[str, tuple[str, str, str]] = {
    **{
        f"{n}.Tensor": ("other", "Scalar", "Tensor")
        for n in (
            "eq",
            "ne",
            "lt",
            "le",
            "gt",
            "ge",
            "bitwise_and",
            "bitwise_or",
            "bitwise_xor",
            "remainder",
            "fmod",
        )  # fmt: skip
    },
    "mul.Tensor": ("other", "Scalar", "Tensor"),
    "div.Tensor": ("other", "Scalar", "Tensor"),
    "clamp.Tensor": ("min", "default", "Tensor"),
    "all.dims": ("dim", "default", "dims"),
    "any.dims": ("dim", "default", "dims"),
    "lerp.default": ("weight", "Scalar", "Tensor"),
    "masked_fill.default": ("value", "Scalar", "Tensor"),
}

_NUMBER_TEXT = {
    "clamp.Tensor": "(Tensor self, Scalar? min=None, Scalar? max=None) -> Tensor",
    "all.dims": "(Tensor self) -> Tensor",
    "any.dims": "(Tensor self) -> Tensor",
}

# How PyTorch calls the out= form, where it is not `out` for the default and the Tensor overload and
# `<overload>_out` for others.
OUT: dict[str, str] = {}

Back = Callable[[Any], Any]
ADAPTED: dict[str, Callable[[Any, Any, str], Any]] = {}  # declaration → arrival of a call
VIRTUAL: dict[str, OpOverload] = {}  # "name.overload" → one that several declarations make up


def _same(result: Any) -> Any:
    return result


def arrival(
    op: Any, args: Any, form: str = "functional"
) -> tuple[OpOverload, tuple[Any, ...], dict[str, Any], Back]:
    """(overload, args, kwargs, how its result becomes the declaration's) of a call."""
    key = f"{op.name}.{op.overload}"
    adapt = ADAPTED.get(key) if form == "functional" else None
    if adapt is not None:
        found = adapt(op, args, form)
        if found is not None:
            return found
    overload = overload_of(op, form, _number_form(key, op, args))
    full = args[: len(overload.parsed.arguments)]
    if form == "out":
        full = (*full, *(None for _ in overload.parsed.out_arguments))
    told, named = trimmed(overload.parsed, full)
    return overload, told, named, _same


def _number_form(key: str, op: Any, args: Any) -> str | None:
    """The overload that stands for a call with a number, if it is one of its own."""
    choice = NUMBER.get(key)
    if choice is None:
        return None
    name, number, otherwise = choice
    i = next(i for i, a in enumerate(op.schema.arguments) if a.name == name)
    if isinstance(args[i], Tensor) or (otherwise == "dims" and args[i] is not None):
        return None
    return number if key not in _INNER or _from_within(op) else None


# Note [Numbers in formulas]
# ~~~~~~~~~~~~~~~~~~~~~~~~~~
# PyTorch's Python interface makes a 0-d tensor of the number in `x * 2`, and a handler is told
# `mul.Tensor(x, 2)`; its C++ code, gradients for instance, calls `mul.Scalar`. The gradient of such
# a product has the saved tensor in it, and is `mul.Tensor` again. So for these operators it counts
# who calls: torchlab's own core, or somebody else. Asked only while a handler listens.
_INNER = frozenset(("mul.Tensor", "div.Tensor"))
_OWN = ("MulBackward0", "DivBackward0")


def _from_within(op: Any) -> bool:
    frame: Any = sys._getframe(1)
    package = __name__.rpartition(".")[0]
    between = ("modes", "python_key", "watching", "writes")
    plumbing = (__name__, *(f"{package}.{m}" for m in between))
    while frame is not None:
        module = frame.f_globals.get("__name__", "")
        code = frame.f_code
        if module == "torchlab._generated" and code.co_name == "apply":
            return not any(n in code.co_filename for n in _OWN)
        if module not in plumbing and module != "torchlab._generated":
            if module != "torchlab._core.ops.arithmetic":  # `x / 2` of a user's comes through it
                return module.startswith("torchlab._core.")
        frame = frame.f_back
    return False


def overload_of(op: Any, form: str = "functional", which: str | None = None) -> OpOverload:
    """The OpOverload of a form of a declaration."""
    key = ("overload", form, which)
    found = op._cache.get(key)
    if found is None:
        text = text_of(op, form, which)
        found = OpOverload(text, namespace=op.namespace, op=op, form=form, tags=op.tags)
        found.run = _RUN[form](op, found)
        op._cache[key] = found
    return found


def text_of(op: Any, form: str, which: str | None = None) -> str:
    """The schema text of a form, PyTorch's names in it."""
    text = op.text
    key = f"{op.name}.{op.overload}"
    head, rest = text[: text.index("(")], text[text.index("(") :]
    name, _, overload = head.partition(".")
    if op.namespace == "aten":
        name, _, overload = RENAMED.get(key, f"{name}.{overload}").partition(".")
    choice = NUMBER.get(key) if op.namespace == "aten" else None
    if choice is not None:
        overload = which or choice[2]
        if which is not None:
            rest = _NUMBER_TEXT.get(key) or rest.replace(
                f"Tensor {choice[0]}", f"Scalar {choice[0]}", 1
            )
    if form == "inplace":
        rest = rest.replace("Tensor self", "Tensor(a!) self", 1).replace("(a) self", "(a!) self", 1)
        rest = rest[: rest.rindex("->")] + "-> Tensor(a!)"
        name += "_"
    elif form == "out":
        overload = OUT.get(key) or (
            "out" if overload in ("", "default", "Tensor", "self") else f"{overload}_out"
        )
        arguments, _, returns = rest.rpartition(") -> ")
        starred = any(a.kwarg_only for a in op.schema.arguments)
        facts = op.schema.returns
        outs, marks = [], []
        for i, r in enumerate(facts):
            mark = f"Tensor({chr(97 + i)}!)"
            outs.append(f"{mark} {r.name or ('out' if len(facts) == 1 else f'out{i}')}")
            marks.append(mark + (f" {r.name}" if r.name else ""))
        sep = "" if arguments == "(" else ", "
        inner = ", ".join(outs)
        result = marks[0] if len(marks) == 1 else f"({', '.join(marks)})"
        rest = f"{arguments}{sep}{'' if starred else '*, '}{inner}) -> {result}"
    return f"{name}.{overload or 'default'}{rest}"


def _functional(op: Any, overload: OpOverload) -> Any:
    def run(args: Any, kwargs: Any) -> Any:
        full = overload.bound(args, kwargs)
        return modes.slow(op, full) if modes.SLOW else op.core(*full)

    return run


def _inplace(op: Any, overload: OpOverload) -> Any:
    names = [a.name for a in op.schema.arguments]
    n = sum(not a.kwarg_only for a in op.schema.arguments)

    def run(args: Any, kwargs: Any) -> Any:
        full = bind(overload.parsed, args, kwargs)
        return op.inplace(*full[:n], **dict(zip(names[n:], full[n:], strict=True)))

    return run


def _out(op: Any, overload: OpOverload) -> Any:
    n = len(op.schema.arguments)

    def run(args: Any, kwargs: Any) -> Any:
        full = bind(overload.parsed, args, kwargs)
        outs = full[n:]
        out = outs[0] if len(outs) == 1 else outs
        if modes.SLOW and modes.dispatched():
            return modes.python_out[0](op, full[:n], out)
        return op.out(*full[:n], out=out)

    return run


_RUN = {"functional": _functional, "inplace": _inplace, "out": _out}


def named(qualname: str) -> OpOverload:
    """The functional overload of a declaration, by torchlab's names: "detach.default"."""
    name, _, overload = qualname.partition(".")
    return overload_of(registry.OPS[name][overload])


def virtual(text: str) -> Callable[[Any], OpOverload]:
    """Declare an overload of PyTorch's that the decorated function computes with others."""

    def declare(body: Any) -> OpOverload:
        found = OpOverload(text)

        def run(args: Any, kwargs: Any) -> Any:
            if modes.dispatched() or modes.dispatch_handlers[0]((*args, *kwargs.values())):
                return modes.python_ask[0](found, args, kwargs)
            return body(*bind(found.parsed, args, kwargs))

        found.run = run
        VIRTUAL[f"{found._opname}.{found._overloadname}"] = found
        return found

    return declare


__all__ = [
    "ADAPTED", "NUMBER", "OUT", "RENAMED", "VIRTUAL", "arrival", "named", "overload_of", "text_of",
    "virtual",
]  # fmt: skip

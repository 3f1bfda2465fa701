"""Scalar expressions as C++ text: the handler that `scalar.evaluate` is given."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from torchlab._core.codegen.scalar import INFIX, Number, Scalar, infix, unwrap
from torchlab._core.codegen.scalar_types import (
    CATEGORY,
    COMPLEX,
    FLOATING,
    HALF,
    ITEMSIZE,
    compute_type,
)

_MEMORY = {"float32": "float", "float64": "double", "float16": "uint16", "bfloat16": "uint16"}


LOGICAL = {"logical_and": "&", "logical_or": "|", "logical_xor": "!="}


class Unsupported(Exception):
    """This expression cannot be written in C++; the message says why."""


def memory_type(dtype: str) -> str:
    """The C++ type of an element in memory (the 16-bit floats as their bits)."""
    if CATEGORY[dtype] == COMPLEX:
        raise Unsupported(f"{dtype} is not generated as C++")
    return _MEMORY.get(dtype, dtype)


def value_type(dtype: str) -> str:
    """The C++ type of a value in a register."""
    return memory_type(compute_type(dtype))


def literal(value: Number, dtype: str) -> str:
    """`value` as a C++ constant of type `dtype`."""
    kind = value_type(dtype)
    if kind == "bool":
        return "true" if value else "false"
    if CATEGORY[dtype] != FLOATING:
        number = int(value)
        if kind in ("int64", "uint64"):
            number &= 0xFFFFFFFFFFFFFFFF if kind == "uint64" else -1
            if number == -(2**63):
                return "(-9223372036854775807LL - 1)"
            return f"{number}{'ULL' if kind == 'uint64' else 'LL'}"
        bits = 8 * ITEMSIZE[dtype]
        number &= (1 << bits) - 1
        if not dtype.startswith("u") and number >> (bits - 1):
            number -= 1 << bits
        return f"({kind}){number}" if bits < 32 or number < 0 else f"{number}"
    with np.errstate(over="ignore"):
        x = np.float32(value) if kind == "float" else np.float64(value)
    suffix = "f" if kind == "float" else ""
    if np.isnan(x):
        return f'__builtin_nan{suffix}("")'
    if np.isinf(x):
        return f"{'-' if x < 0 else ''}__builtin_inf{suffix}()"
    text = str(x)
    return text + ("" if any(c in text for c in ".e") else ".0") + suffix


def round_to(text: str, dtype: str) -> str:
    """`text`, computed in float32, rounded to the 16-bit float `dtype`; other types as they are."""
    return f"tl_round_{dtype}({unwrap(text)})" if dtype in HALF else text


def convert(text: str, source: str, dtype: str) -> str:
    """C++ for a conversion of a register value (to float32 for the 16-bit floats, unrounded)."""
    target = value_type(dtype)
    if value_type(source) == target:
        return text
    if target == "bool":
        return f"({text} != 0)"
    if CATEGORY[source] == FLOATING and CATEGORY[dtype] < FLOATING and ITEMSIZE[dtype] < 8:
        return (  # out-of-range values wrap, as they do in NumPy and PyTorch
            f"({target})(int64){text}"
        )
    return f"({target}){text}"


def product(x: str, times: int) -> str:
    """x·x or x·x·x: written out for a name, through a function for a longer text."""
    if x.isidentifier():
        return f"({' * '.join([x] * times)})"
    return f"tl_{('square', 'cube')[times - 2]}({unwrap(x)})"


class CppOps:
    """`load` and `index` give the C++ text of an argument and of a loop position."""

    def __init__(self, load: Callable[[str], str], index: Callable[[int], str]) -> None:
        self._load, self._index = load, index

    def const(self, value: Number, dtype: str) -> str:
        return literal(value, dtype)

    def load(self, name: str, dtype: str) -> str:
        return self._load(name)

    def index(self, dim: int) -> str:
        return self._index(dim)

    def to(self, x: str, source: str, dtype: str) -> str:
        return round_to(convert(x, source, dtype), dtype)

    def call(self, op: str, args: list[str], node: Scalar) -> str:
        inner = node.args[-1].dtype  # operands share a type
        floating = CATEGORY[inner] == FLOATING
        match op:
            case "where":
                return f"({args[0]} ? {args[1]} : {args[2]})"
            case "logical_and" | "logical_or" | "logical_xor":
                return f"({args[0]} {LOGICAL[op]} {args[1]})"
            case "logical_not":
                return f"!{args[0]}"
            case "neg" | "bitwise_not":
                return self.narrow(f"({'-' if op == 'neg' else '~'}{args[0]})", node.dtype)
            case "pow" if node.args[1].op == "const" and floating:
                special = self.power(args[0], node.args[1].value, inner)
                if special is not None:
                    return special
            case "square":
                return self.narrow(product(args[0], 2), node.dtype)
            case "reciprocal":
                return f"({literal(1, inner)} / {args[0]})"
            case "isnan":
                return f"({args[0]} != {args[0]})"
            case "isinf" | "isfinite":
                return f"tl_{'is_inf' if op == 'isinf' else 'is_finite'}({unwrap(args[0])})"
            case "signbit":
                return f"(__builtin_signbit({unwrap(args[0])}) != 0)"
            case "floor" | "ceil" | "trunc" | "round" if not floating:
                return args[0]
            case "fmax" | "fmin" if not floating:
                op = "maximum" if op == "fmax" else "minimum"
            case "fmod" if not floating:
                raise Unsupported("fmod of integers is not generated as C++")
            case "abs" if inner in ("bool", "uint8", "uint16", "uint32", "uint64"):
                return args[0]
        if op in INFIX:
            return self.narrow(infix(op, args), node.dtype)
        text = f"tl_{op}({', '.join(map(unwrap, args))})"
        if not floating and op in (
            "maximum",
            "minimum",
            "floordiv",
            "mod",
            "pow",
            "lshift",
            "rshift",
        ):
            # constants are of type int: name the type that the template should take
            return f"tl_{op}<{value_type(inner)}>({', '.join(map(unwrap, args))})"
        return text

    @staticmethod
    def narrow(text: str, dtype: str) -> str:
        """C++ computes small integers as int: cut the result back to its width."""
        small = CATEGORY[dtype] < FLOATING and ITEMSIZE[dtype] < 4
        compared = dtype == "bool" and any(
            f" {o} " in text for o in ("<", "<=", ">", ">=", "==", "!=")
        )
        return f"({dtype}){text}" if small and not compared else text

    @staticmethod
    def power(x: str, exponent: Number, dtype: str) -> str | None:
        """Products and roots for the exponents that have them."""
        one = literal(1, dtype)
        table = {
            0.5: f"tl_sqrt({unwrap(x)})", 1: x, 2: product(x, 2), 3: product(x, 3),
            -0.5: f"({one} / tl_sqrt({unwrap(x)}))", -1: f"({one} / {x})", -2: f"({one} / {product(x, 2)})",
        }  # fmt: skip
        return table.get(exponent)

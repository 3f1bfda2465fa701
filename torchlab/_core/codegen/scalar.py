"""Scalar expressions: what a loop body computes for one element, as a typed tree.

An operator declares its body in Python's notation, "self + alpha * other" or "where(self < 0, 0,
self)". `parse` reads it with `ast`, gives every node a type as PyTorch would, and makes
conversions explicit, so that whoever emits code (`evaluate` with a handler) decides nothing about
types.

Note [Logical and computed types]
A node's `dtype` is its type in PyTorch's sense. Arithmetic on
float16 and bfloat16 is done in float32 (as PyTorch's kernels do) and rounded where a step's
result is stored, or by an explicit `to(x, 'float16')`. An implicit conversion therefore names the
computed type, and a handler may treat "float16" as float32.
"""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from torchlab._core.codegen.scalar_types import (
    CATEGORY,
    FLOATING,
    compute_type,
    promote,
    weak_type,
)

Number = bool | int | float


@dataclass(frozen=True, slots=True)
class Scalar:
    """A node: `op` is "const" (value: the number), "load" (value: the argument's name), "index"
    (value:
    the dim), "to" (a conversion to `dtype`) or a key of FUNCTIONS."""

    op: str
    args: tuple[Scalar, ...]
    dtype: str
    value: Any = None

    def __str__(self) -> str:
        return evaluate(self, Printer())

    def walk(self) -> Iterator[Scalar]:
        """This node and all below it."""
        yield self
        for arg in self.args:
            yield from arg.walk()


# name: (number of arguments, rule of types, value for numbers alone or None)
# rules: same (promoted), float (promoted, integers become float32), compare (promoted, gives bool),
# test (a float predicate, gives bool), logical (every argument to bool), bitwise (integers, bool)
FUNCTIONS: dict[str, tuple[int, str, Callable[..., Number] | None]] = {
    "add": (2, "same", operator.add),
    "sub": (2, "same", operator.sub),
    "mul": (2, "same", operator.mul),
    "div": (2, "float", operator.truediv),
    "floordiv": (2, "same", operator.floordiv),
    "mod": (2, "same", operator.mod),
    "fmod": (2, "same", math.fmod),
    "pow": (2, "same", operator.pow),
    "neg": (1, "same", operator.neg),
    "abs": (1, "same", abs),
    "sign": (1, "same", None),
    "maximum": (2, "same", None),
    "minimum": (2, "same", None),
    "fmax": (2, "same", None),
    "fmin": (2, "same", None),
    "square": (1, "same", lambda x: x * x),
    "floor": (1, "same", None),
    "ceil": (1, "same", None),
    "trunc": (1, "same", None),
    "round": (1, "same", None),
    "lt": (2, "compare", operator.lt),
    "le": (2, "compare", operator.le),
    "gt": (2, "compare", operator.gt),
    "ge": (2, "compare", operator.ge),
    "eq": (2, "compare", operator.eq),
    "ne": (2, "compare", operator.ne),
    "isnan": (1, "test", None),
    "isinf": (1, "test", None),
    "isfinite": (1, "test", None),
    "signbit": (1, "test", None),
    "logical_and": (2, "logical", lambda a, b: bool(a) and bool(b)),
    "logical_or": (2, "logical", lambda a, b: bool(a) or bool(b)),
    "logical_xor": (2, "logical", lambda a, b: bool(a) != bool(b)),
    "logical_not": (1, "logical", operator.not_),
    "bitwise_and": (2, "bitwise", operator.and_),
    "bitwise_or": (2, "bitwise", operator.or_),
    "bitwise_xor": (2, "bitwise", operator.xor),
    "bitwise_not": (1, "bitwise", operator.invert),
    "lshift": (2, "bitwise", operator.lshift),
    "rshift": (2, "bitwise", operator.rshift),
    "reciprocal": (1, "float", lambda x: 1 / x),
    "sqrt": (1, "float", math.sqrt),
    "rsqrt": (1, "float", lambda x: 1 / math.sqrt(x)),
    "exp": (1, "float", math.exp),
    "exp2": (1, "float", lambda x: 2.0**x),
    "expm1": (1, "float", math.expm1),
    "log": (1, "float", math.log),
    "log2": (1, "float", math.log2),
    "log10": (1, "float", math.log10),
    "log1p": (1, "float", math.log1p),
    "sigmoid": (1, "float", None),
    "tanh": (1, "float", math.tanh),
    "erf": (1, "float", math.erf),
    "erfc": (1, "float", math.erfc),
    "lgamma": (1, "float", math.lgamma),
    **{
        name: (1, "float", getattr(math, name))
        for name in (
            "sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "asinh", "acosh", "atanh",
        )
    },
    "atan2": (2, "float", math.atan2),
    "hypot": (2, "float", math.hypot),
    "copysign": (2, "float", math.copysign),
    "where": (3, "where", None),
}  # fmt: skip

ALIASES = {"cast": "to", "remainder": "mod", "max": "maximum", "min": "minimum"}
NAMES: dict[str, float] = {"pi": math.pi, "e": math.e, "inf": math.inf, "nan": math.nan}

_BINARY: dict[type[ast.AST], str] = {
    ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.Div: "div", ast.FloorDiv: "floordiv",
    ast.Mod: "mod", ast.Pow: "pow", ast.BitAnd: "bitwise_and", ast.BitOr: "bitwise_or",
    ast.BitXor: "bitwise_xor", ast.LShift: "lshift", ast.RShift: "rshift", ast.Lt: "lt",
    ast.LtE: "le", ast.Gt: "gt", ast.GtE: "ge", ast.Eq: "eq", ast.NotEq: "ne",
}  # fmt: skip
# the expensive ones: worth a row of scratch memory rather than computing them twice
TRANSCENDENTAL = frozenset(
    name for name, (_, rule, _f) in FUNCTIONS.items() if rule == "float"
) - {"reciprocal"} | {"pow", "floordiv", "mod", "fmod", "div"}  # fmt: skip


def number(value: Number) -> Scalar:
    """A Python number, without a type of its own until it meets an operand ("weak")."""
    return Scalar("const", (), "", value)


def call(name: str, *args: Scalar) -> Scalar:
    """The typed node `name(*args)`, with its conversions; numbers alone are folded.

    Raises:
        TypeError: an unknown function, a wrong number of arguments, or types it does not take.
    """
    if name not in FUNCTIONS:
        raise TypeError(
            f"unknown function '{name}' in a scalar expression; known: {', '.join(FUNCTIONS)}"
        )
    arity, rule, fold = FUNCTIONS[name]
    if len(args) != arity:
        raise TypeError(
            f"{name}() takes {arity} argument(s) in a scalar expression, got {len(args)}"
        )
    if fold is not None and all(a.op == "const" and not a.dtype for a in args):
        try:
            return number(fold(*(a.value for a in args)))
        except (ValueError, ZeroDivisionError, OverflowError):
            pass  # leave NaN and infinity to the floating-point unit
    if rule == "where":
        common = _common(args[1:])
        return Scalar(
            name, (convert(args[0], "bool"), *(convert(a, common) for a in args[1:])), common
        )
    if rule == "logical":
        return Scalar(name, tuple(convert(a, "bool") for a in args), "bool")
    common = _common(args)
    if rule == "bitwise" and CATEGORY[common] >= FLOATING:
        raise TypeError(f'"{name}" not implemented for {common}: it takes integers and bool')
    if rule in ("float", "test") and CATEGORY[common] < FLOATING:
        common = "float32"
    typed = tuple(convert(a, common) for a in args)
    return Scalar(name, typed, "bool" if rule in ("compare", "test") else common)


def convert(x: Scalar, dtype: str) -> Scalar:
    """`x` as an operand of type `dtype`: an implicit conversion (Note [Logical and computed
    types])."""
    if x.op == "const":
        return Scalar("const", (), dtype, x.value)
    if compute_type(x.dtype) == compute_type(dtype):
        return x
    return Scalar("to", (x,), compute_type(dtype))


def cast(x: Scalar, dtype: str) -> Scalar:
    """`to(x, dtype)`: an explicit conversion, which rounds to the 16-bit floats too."""
    if x.op == "const" or x.dtype == dtype and x.op in ("load", "to"):
        return Scalar("const", (), dtype, x.value) if x.op == "const" else x
    return Scalar("to", (x,), dtype)


def _common(args: tuple[Scalar, ...]) -> str:
    common = None
    for arg in args:
        if arg.dtype:
            common = arg.dtype if common is None else promote(common, arg.dtype)
    for arg in args:
        if not arg.dtype:
            common = weak_type(arg.value, common)
    assert common is not None
    return common


def parse(
    expr: str,
    types: Mapping[str, str],
    scalars: Mapping[str, Number] | None = None,
    converted: Mapping[str, str] | None = None,
) -> Scalar:
    """Read `expr`, a Python expression over the names in `types` (inputs) and `scalars` (numbers).

    Besides operators, comparisons, `a if c else b`, `and`/`or`/`not` it may call FUNCTIONS,
    `to(x, 'dtype')`, `clamp(x, low, high)` and `index(dim)` (the element's position, int64).
    Inputs named in `converted` are converted to the type given there wherever they are read.

    >>> parse("self + alpha * other", {"self": "int32", "other": "float16"}, {"alpha": 2}).dtype
    'float16'

    Raises:
        TypeError: the expression uses something that scalar expressions do not have.
    """
    try:
        tree = ast.parse(expr.strip(), mode="eval").body
    except SyntaxError as e:
        raise TypeError(f"'{expr}' is not a scalar expression: {e.msg}") from None
    result = _Reader(expr, types, scalars or {}, converted or {}).read(tree)
    return result if result.dtype else convert(result, weak_type(result.value, None))


class _Reader:
    def __init__(
        self,
        expr: str,
        types: Mapping[str, str],
        scalars: Mapping[str, Number],
        converted: Mapping[str, str],
    ) -> None:
        self.expr, self.types, self.scalars, self.converted = expr, types, scalars, converted

    def read(self, node: ast.AST) -> Scalar:
        match node:
            case ast.Constant(value=bool() | int() | float()):
                return number(node.value)
            case ast.Name(id=name) if name in self.types:
                value = Scalar("load", (), self.types[name], name)
                return cast(value, self.converted[name]) if name in self.converted else value
            case ast.Name(id=name) if name in self.scalars:
                return number(self.scalars[name])
            case ast.Name(id=name) if name in NAMES:
                return number(NAMES[name])
            case ast.BinOp() if type(node.op) in _BINARY:
                return call(_BINARY[type(node.op)], self.read(node.left), self.read(node.right))
            case ast.UnaryOp():
                return self._unary(node)
            case ast.Compare():
                terms = [self.read(x) for x in (node.left, *node.comparators)]
                if not all(type(op) in _BINARY for op in node.ops):
                    raise self._error(node)
                tests = [
                    call(_BINARY[type(op)], a, b)
                    for op, a, b in zip(node.ops, terms, terms[1:], strict=False)
                ]
                return self._chain("logical_and", tests)
            case ast.BoolOp():
                name = "logical_and" if isinstance(node.op, ast.And) else "logical_or"
                return self._chain(name, [self.read(x) for x in node.values])
            case ast.IfExp():
                return call("where", *(self.read(x) for x in (node.test, node.body, node.orelse)))
            case ast.Call(func=ast.Name(id=name), keywords=[]):
                return self._call(ALIASES.get(name, name), node.args)
        raise self._error(node)

    def _unary(self, node: ast.UnaryOp) -> Scalar:
        x = self.read(node.operand)
        match node.op:
            case ast.USub():
                return call("neg", x)
            case ast.Not():
                return call("logical_not", x)
            case ast.Invert():
                return call("logical_not" if x.dtype == "bool" else "bitwise_not", x)
        return x

    def _call(self, name: str, args: list[ast.expr]) -> Scalar:
        match name, args:
            case "to", [x, ast.Constant(value=str() as dtype)] if dtype in CATEGORY:
                return cast(self.read(x), dtype)
            case "index", [at] if isinstance(dim := self.read(at).value, int):
                return Scalar("index", (), "int64", dim)
            case "clamp", [x, low, high]:
                return call(
                    "minimum", call("maximum", self.read(x), self.read(low)), self.read(high)
                )
        return call(name, *(self.read(x) for x in args))

    def _chain(self, name: str, terms: list[Scalar]) -> Scalar:
        result = terms[0]
        for term in terms[1:]:
            result = call(name, result, term)
        return result

    def _error(self, node: ast.AST) -> TypeError:
        known = ", ".join([*self.types, *self.scalars])
        return TypeError(
            f"cannot read '{ast.unparse(node)}' in the scalar expression '{self.expr}' (inputs:"
            f" {known})"
        )


class Handler(Protocol):
    """What gives a scalar expression a meaning: emits code, prints, computes."""

    def const(self, value: Number, dtype: str) -> Any: ...
    def load(self, name: str, dtype: str) -> Any: ...
    def index(self, dim: int) -> Any: ...
    def to(self, x: Any, source: str, dtype: str) -> Any: ...
    def call(self, op: str, args: list[Any], node: Scalar) -> Any: ...


def evaluate(node: Scalar, ops: Handler) -> Any:
    """Interpret the tree bottom-up with the handler `ops`; returns what it returns for the root."""
    match node.op:
        case "const":
            return ops.const(node.value, node.dtype)
        case "load":
            return ops.load(node.value, node.dtype)
        case "index":
            return ops.index(node.value)
        case "to":
            return ops.to(evaluate(node.args[0], ops), node.args[0].dtype, node.dtype)
    return ops.call(node.op, [evaluate(a, ops) for a in node.args], node)


INFIX = {
    "add": "+", "sub": "-", "mul": "*", "div": "/", "lt": "<", "le": "<=", "gt": ">", "ge": ">=",
    "eq": "==", "ne": "!=", "bitwise_and": "&", "bitwise_or": "|", "bitwise_xor": "^",
}  # fmt: skip


def infix(op: str, args: list[str]) -> str:
    """`(a + b)`: the notation that Python and C++ share."""
    return f"({args[0]} {INFIX[op]} {args[1]})"


def unwrap(text: str) -> str:
    """Drop one pair of parentheses that encloses the whole text."""
    if not text.startswith("("):
        return text
    depth = 0
    for i, c in enumerate(text):
        depth += (c == "(") - (c == ")")
        if depth == 0:
            return text[1:-1] if i == len(text) - 1 else text
    return text


class Printer:
    """The handler that prints: `evaluate(node, Printer())`; `names` may rename the inputs."""

    def __init__(self, names: Mapping[str, str] | None = None) -> None:
        self.names = names or {}

    def const(self, value: Number, dtype: str) -> str:
        return repr(value)

    def load(self, name: str, dtype: str) -> str:
        return self.names.get(name, name)

    def index(self, dim: int) -> str:
        return f"index({dim})"

    def to(self, x: str, source: str, dtype: str) -> str:
        return f"to({unwrap(x)}, '{dtype}')"

    def call(self, op: str, args: list[str], node: Scalar) -> str:
        return infix(op, args) if op in INFIX else f"{op}({', '.join(map(unwrap, args))})"

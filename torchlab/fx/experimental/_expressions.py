"""Expressions of sizes: sums of products of atoms, in a normal form.

An atom is a symbol, or a call (`floordiv`, `mod`, `max`, `min`, `truediv`, `pow`) of expressions
that no rule could simplify. Two expressions that the rules make equal are equal for `==`, which is
what most questions about shapes come to; the rest is decided by intervals.

Source: https://docs.pytorch.org/docs/2.13/torch.compiler_dynamic_shapes.html
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterable, Mapping
from fractions import Fraction
from typing import Any, TypeAlias

Number: TypeAlias = int | float | Fraction


class Symbol:
    """A size that is not known."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return self.name

    @property
    def key(self) -> tuple[Any, ...]:
        """What atoms are sorted by."""
        return (0, len(self.name), self.name)


class Call:
    """A function of expressions."""

    __slots__ = ("op", "args", "key", "_hash")

    def __init__(self, op: str, args: tuple[Expr, ...]) -> None:
        self.op = op
        self.args = args
        self.key = (1, 0, str(self))
        self._hash = hash((op, args))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Call) and self.op == other.op and self.args == other.args

    def __hash__(self) -> int:
        return self._hash

    def __repr__(self) -> str:
        shown = [str(a) for a in self.args]
        if self.op == "floordiv":
            return "(" + "//".join(_bracketed(a) for a in self.args) + ")"
        return f"{_SHOWN[self.op]}({', '.join(shown)})"


_SHOWN = {
    "mod": "Mod",
    "max": "Max",
    "min": "Min",
    "truediv": "IntTrueDiv",
    "pow": "Pow",
    "trunc": "TruncToInt",
    "ceil": "CeilToInt",
    "floor": "FloorToInt",
}
_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "floordiv": operator.floordiv,
    "mod": operator.mod,
    "max": max,
    "min": min,
    "truediv": operator.truediv,
    "pow": operator.pow,
    "trunc": math.trunc,
    "ceil": math.ceil,
    "floor": math.floor,
}

OPERATIONS = frozenset(_FUNCTIONS)  # what a Call may be of

Atom: TypeAlias = Symbol | Call
Monomial = tuple[tuple[Atom, int], ...]  # atoms with their powers, sorted


class Expr:
    """A sum of products: monomial → coefficient, without zeros. Never changed."""

    __slots__ = ("terms", "_hash")

    def __init__(self, terms: Mapping[Monomial, Number]) -> None:
        self.terms = {m: c for m, c in terms.items() if c != 0}
        self._hash: int | None = None

    # ---- what it is ------------------------------------------------------------------------------

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Expr) and self.terms == other.terms

    def __hash__(self) -> int:
        if self._hash is None:
            self._hash = hash(frozenset(self.terms.items()))
        return self._hash

    @property
    def constant(self) -> Number | None:
        """The number that it is; None if it is not known."""
        if not self.terms:
            return 0
        if len(self.terms) == 1 and () in self.terms:
            return self.terms[()]
        return None

    @property
    def symbol(self) -> Symbol | None:
        """The symbol that it is, or None."""
        if len(self.terms) != 1:
            return None
        ((m, c),) = self.terms.items()
        plain = c == 1 and len(m) == 1 and m[0][1] == 1 and isinstance(m[0][0], Symbol)
        return m[0][0] if plain else None  # type: ignore[return-value]

    @property
    def symbols(self) -> set[Symbol]:
        """All symbols in it."""
        found: set[Symbol] = set()
        for m in self.terms:
            for atom, _ in m:
                if isinstance(atom, Symbol):
                    found.add(atom)
                else:
                    found.update(*(a.symbols for a in atom.args))
        return found

    def __str__(self) -> str:
        if not self.terms:
            return "0"
        text = ""
        for m, c in sorted(self.terms.items(), key=_order):
            size = abs(c)
            factors = [f"{a}**{p}" if p > 1 else str(a) for a, p in m]
            if size != 1 or not factors:
                factors.insert(0, str(size))
            sign = ("-" if c < 0 else "") if not text else (" - " if c < 0 else " + ")
            text += sign + "*".join(factors)
        return _no_brackets(text)

    __repr__ = __str__

    # ---- arithmetic ------------------------------------------------------------------------------

    def __add__(self, other: Expr) -> Expr:
        terms = dict(self.terms)
        for m, c in other.terms.items():
            terms[m] = terms.get(m, 0) + c
        return Expr(terms)

    def __sub__(self, other: Expr) -> Expr:
        return self + other.times(-1)

    def times(self, number: Number) -> Expr:
        """The product with a number."""
        return Expr({m: c * number for m, c in self.terms.items()})

    def __mul__(self, other: Expr) -> Expr:
        terms: dict[Monomial, Number] = {}
        for m, c in self.terms.items():
            for n, d in other.terms.items():
                product = _product(m, n)
                terms[product] = terms.get(product, 0) + c * d
        return Expr(terms)

    # ---- values ----------------------------------------------------------------------------------

    def value(self, values: Mapping[Symbol, Any]) -> Any:
        """What it is for values of its symbols; with expressions as values, an expression's terms
        are rebuilt by `replaced`."""
        total: Any = 0
        for m, c in self.terms.items():
            product: Any = c
            for atom, power in m:
                v: Any = (
                    values[atom]
                    if isinstance(atom, Symbol)
                    else _FUNCTIONS[atom.op](*(a.value(values) for a in atom.args))
                )
                product = product * v**power
            total = total + product
        return total

    def replaced(self, by: Mapping[Symbol, Expr]) -> Expr:
        """The same with expressions in the places of symbols."""
        if not by or self.symbols.isdisjoint(by):
            return self
        total = number(0)
        for m, c in self.terms.items():
            product = number(c)
            for atom, power in m:
                if isinstance(atom, Symbol):
                    new = by.get(atom, of(atom))
                else:
                    new = call(atom.op, *(a.replaced(by) for a in atom.args))
                for _ in range(power):
                    product = product * new
            total = total + product
        return total


def _order(item: tuple[Monomial, Number]) -> tuple[Any, ...]:
    m, _ = item
    return (-sum(p for _, p in m), tuple(a.key for a, _ in m))


def _bracketed(e: Expr) -> str:
    return str(e) if len(e.terms) <= 1 else f"({e})"


def _no_brackets(text: str) -> str:
    """Without the brackets around all of it."""
    depth = 0
    for i, c in enumerate(text):
        depth += (c == "(") - (c == ")")
        if depth == 0:
            return text[1:-1] if text[:1] == "(" and i == len(text) - 1 else text
    return text


def _product(m: Monomial, n: Monomial) -> Monomial:
    if not m or not n:
        return m or n
    powers = dict(m)
    for atom, p in n:
        powers[atom] = powers.get(atom, 0) + p
    return tuple(sorted(powers.items(), key=lambda item: item[0].key))


def number(n: Number) -> Expr:
    """A number as an expression."""
    return Expr({(): n})


def of(atom: Atom) -> Expr:
    """An atom as an expression."""
    return Expr({((atom, 1),): 1})


# ---- division and its likes ----------------------------------------------------------------------


def divided(a: Expr, b: Expr) -> Expr | None:
    """`a / b` where that is a polynomial with integers; None where it is not."""
    if not b.terms:
        return None
    lead, by = min(b.terms.items(), key=_order)
    rest, quotient = a, number(0)
    for _ in range(16):
        if not rest.terms:
            return quotient
        m, c = min(rest.terms.items(), key=_order)
        left = without(m, lead)
        if left is None or type(c) is not int or type(by) is not int or c % by:
            return None
        step = Expr({left: c // by})
        quotient = quotient + step
        rest = rest - step * b
    return None


def without(m: Monomial, n: Monomial) -> Monomial | None:
    """A product over another; None if it is none."""
    powers = dict(m)
    for atom, p in n:
        left = powers.get(atom, 0) - p
        if left < 0:
            return None
        powers[atom] = left
    return tuple((a, p) for a, p in powers.items() if p)


def content(a: Expr) -> int:
    """The greatest common divisor of the coefficients; 1 unless all are integers."""
    if not all(type(c) is int for c in a.terms.values()):
        return 1
    return math.gcd(*a.terms.values()) or 1  # type: ignore[arg-type]


def _by_number(a: Expr, n: int) -> tuple[Expr, Expr]:
    """(the terms that `n` divides, over n; the others)."""
    whole: dict[Monomial, Number] = {}
    rest: dict[Monomial, Number] = {}
    for m, c in a.terms.items():
        if m == () and type(c) is int:
            whole[m], rest[m] = divmod(c, n)
        elif type(c) is int and c % n == 0:
            whole[m] = c // n
        else:
            rest[m] = c
    return Expr(whole), Expr(rest)


def floordiv(a: Expr, b: Expr) -> Expr:
    """`a // b`, rounded down."""
    x, y = a.constant, b.constant
    if y == 0:
        raise ZeroDivisionError("integer division or modulo by zero")
    if x is not None and y is not None:
        return number(x // y)
    exact = divided(a, b)
    if exact is not None:
        return exact
    if type(y) is int and y > 0:
        whole, rest = _by_number(a, y)
        common = math.gcd(content(rest), y)
        if common > 1:
            rest, y = Expr({m: c // common for m, c in rest.terms.items()}), y // common
        if y == 1:
            return whole + rest
        inner = _lone_call(rest, "floordiv")
        if inner is not None and type(inner.args[1].constant) is int:
            return whole + floordiv(inner.args[0], inner.args[1].times(y))
        if rest.constant is not None:
            return whole + number(rest.constant // y)
        return whole + of(Call("floordiv", (rest, number(y))))
    return of(Call("floordiv", (a, b)))


def lone_call(a: Expr, op: str) -> Call | None:
    """The call that an expression is, but for a factor."""
    if len(a.terms) != 1:
        return None
    ((m, c),) = a.terms.items()
    return _lone_call(a.times(Fraction(1, c)), op) if type(c) is int else None


def _lone_call(a: Expr, op: str) -> Call | None:
    if len(a.terms) == 1:
        ((m, c),) = a.terms.items()
        if c == 1 and len(m) == 1 and m[0][1] == 1:
            atom = m[0][0]
            if isinstance(atom, Call) and atom.op == op:
                return atom
    return None


def mod(a: Expr, b: Expr) -> Expr:
    """`a % b`, with the sign of `b`."""
    x, y = a.constant, b.constant
    if y == 0:
        raise ZeroDivisionError("integer division or modulo by zero")
    if x is not None and y is not None:
        return number(x % y)
    if divided(a, b) is not None:
        return number(0)
    if type(y) is int and y > 0:
        _, rest = _by_number(a, y)
        common = math.gcd(content(rest), y)
        if common > 1 and rest.constant is None:
            rest = Expr({m: c // common for m, c in rest.terms.items()})
            return mod(rest, number(y // common)).times(common)
        if rest.constant is not None:
            return number(rest.constant % y)
        return of(Call("mod", (rest, b)))
    return of(Call("mod", (a, b)))


def extreme(op: str, args: Iterable[Expr]) -> Expr:
    """`max` or `min` of expressions."""
    choose = _FUNCTIONS[op]
    flat: dict[Expr, None] = {}
    known: Number | None = None
    for a in args:
        inner = _lone_call(a, op)
        for part in inner.args if inner is not None else (a,):
            c = part.constant
            if c is None:
                flat[part] = None
            else:
                known = c if known is None else choose(known, c)
    if known is not None:
        flat[number(known)] = None
    parts = sorted(flat, key=str)
    return parts[0] if len(parts) == 1 else of(Call(op, tuple(parts)))


def truediv(a: Expr, b: Expr) -> Expr:
    """`a / b`, a float."""
    x, y = a.constant, b.constant
    if y == 0:
        raise ZeroDivisionError("division by zero")
    if x is not None and y is not None:
        return number(x / y)
    exact = a if y == 1 else divided(a, b)
    if exact is not None:
        return Expr({m: float(c) for m, c in exact.terms.items()})
    return of(Call("truediv", (a, b)))


def power(a: Expr, b: Expr) -> Expr:
    """`a ** b`."""
    x, y = a.constant, b.constant
    if x is not None and y is not None:
        return number(x**y)
    if type(y) is int and 0 <= y <= 16:
        result = number(1)
        for _ in range(y):
            result = result * a
        return result
    return of(Call("pow", (a, b)))


def rounded(op: str, a: Expr) -> Expr:
    """`trunc`, `ceil` or `floor` of a float; of what is a whole number in any case, that."""
    whole = {m: int(c) for m, c in a.terms.items() if c == int(c)}
    atoms = [atom for m in whole for atom, _ in m if isinstance(atom, Call)]
    if len(whole) == len(a.terms) and not any(x.op in ("truediv", "pow") for x in atoms):
        return Expr(whole)
    return call(op, a)


def call(op: str, *args: Expr) -> Expr:
    """A function of expressions, simplified."""
    if op in ("max", "min"):
        return extreme(op, args)
    made: Callable[..., Expr] | None = _BUILDERS.get(op)
    if made is not None:
        return made(*args)
    known = [a.constant for a in args]
    if None not in known:
        return number(_FUNCTIONS[op](*known))
    return of(Call(op, args))


_BUILDERS: dict[str, Callable[..., Expr]] = {
    "add": Expr.__add__,
    "sub": Expr.__sub__,
    "mul": Expr.__mul__,
    "floordiv": floordiv,
    "mod": mod,
    "truediv": truediv,
    "pow": power,
}

__all__ = [
    "OPERATIONS", "Atom", "Call", "Expr", "Number", "Symbol", "call", "divided",
    "extreme", "floordiv", "lone_call", "mod", "number", "of", "power", "rounded", "truediv",
]  # fmt: skip

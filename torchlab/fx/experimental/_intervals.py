"""Bounds of expressions from bounds of their symbols.

Source: https://docs.pytorch.org/docs/2.13/torch.compiler_dynamic_shapes.html
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction
from typing import TypeAlias

from torchlab.fx.experimental._expressions import (
    Atom,
    Call,
    Expr,
    Number,
    Symbol,
    number,
    without,
)

INF = math.inf

Range: TypeAlias = tuple[Number, Number]
"""(least, greatest); infinite where there is no bound."""


def _times(a: Number, b: Number) -> Number:
    return 0 if a == 0 or b == 0 else a * b  # 0 times infinity is 0 for bounds


def _range_product(a: Range, b: Range) -> Range:
    corners = [_times(x, y) for x in a for y in b]
    return min(corners), max(corners)


def _range_of_atom(atom: Atom, ranges: Mapping[Symbol, Range]) -> Range:
    if isinstance(atom, Symbol):
        return ranges.get(atom, (-INF, INF))
    inner = [range_of(a, ranges) for a in atom.args]
    if atom.op == "max":
        return max(r[0] for r in inner), max(r[1] for r in inner)
    if atom.op == "min":
        return min(r[0] for r in inner), min(r[1] for r in inner)
    if atom.op == "mod" and inner[1][0] > 0:
        high = inner[1][1] - 1
        return (0, min(high, inner[0][1]) if inner[0][0] >= 0 else high)
    if atom.op in ("ceil", "floor", "trunc"):
        low, high = inner[0]
        return (low if low == -INF else math.floor(low)), (high if high == INF else math.ceil(high))
    if atom.op in ("floordiv", "truediv") and inner[1][0] > 0:
        corners = [_quotient(x, y, atom.op) for x in inner[0] for y in inner[1]]
        return min(corners), max(corners)
    return -INF, INF


def _quotient(x: Number, y: Number, op: str) -> Number:
    if y == INF:
        return (-1 if x < 0 else 0) if abs(x) != INF else x
    if abs(x) == INF:
        return x
    return x // y if op == "floordiv" else x / y


def range_of(e: Expr, ranges: Mapping[Symbol, Range]) -> Range:
    """Bounds of an expression's value; not always the tightest."""
    low: Number = 0
    high: Number = 0
    for m, c in e.terms.items():
        r: Range = (1, 1)
        for atom, p in m:
            one = _range_of_atom(atom, ranges)
            for _ in range(p):
                r = _range_product(r, one)
            if p % 2 == 0 and one[0] < 0 < one[1]:
                r = (0, r[1])
        r = _range_product(r, (c, c))
        low, high = low + r[0], high + r[1]
    if any(isinstance(a, Call) and a.op == "floordiv" for m in e.terms for a, _ in m):
        low = max(low, _relaxed(e, ranges, False))
        high = min(high, _relaxed(e, ranges, True))
    return low, high


def _relaxed(e: Expr, ranges: Mapping[Symbol, Range], upper: bool) -> Number:
    """A bound with `x // n` replaced by what it lies between, `(x - n + 1) / n` and `x / n`: then
    terms in the same symbol cancel, as in `s - s//2`."""
    total = number(0)
    for m, c in e.terms.items():
        atom = m[0][0] if len(m) == 1 and m[0][1] == 1 else None
        if isinstance(atom, Call) and atom.op == "floordiv" and type(atom.args[1].constant) is int:
            n = atom.args[1].constant
            if n > 0 and isinstance(c, (int, Fraction)):
                x = atom.args[0] if (c > 0) == upper else atom.args[0] - number(n - 1)
                total = total + x.times(Fraction(c) / n)
                continue
        total = total + Expr({m: c})
    if any(isinstance(a, Call) and a.op == "floordiv" for m in total.terms for a, _ in m):
        return INF if upper else -INF
    low, high = range_of(total, ranges)
    bound = high if upper else low
    if abs(bound) == INF:
        return bound
    return math.floor(bound) if upper else math.ceil(bound)


def common_factor(e: Expr, ranges: Mapping[Symbol, Range]) -> Expr:
    """`e` without the atoms that all its terms share and that are positive: of the same sign."""
    if not e.terms:
        return e
    shared = set.intersection(*({a for a, _ in m} for m in e.terms))
    for atom in shared:
        if _range_of_atom(atom, ranges)[0] > 0:
            reduced = Expr(
                {without(m, ((atom, 1),)): c for m, c in e.terms.items()}  # type: ignore[misc]
            )
            return common_factor(reduced, ranges)
    return e


__all__ = ["INF", "Range", "common_factor", "range_of"]

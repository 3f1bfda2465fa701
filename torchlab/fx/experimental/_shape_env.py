"""`ShapeEnv`: the symbols of a trace, what is known of them, and what the traced program asked.

A program asks by comparing sizes. What the declared ranges, or earlier answers, decide costs
nothing; for the rest the example's sizes answer, and the answer becomes a guard: with sizes for
which it does not hold, the trace would have been another.

Source: https://docs.pytorch.org/docs/2.13/torch.compiler_dynamic_shapes.html
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from torchlab.fx.experimental import _expressions as ex
from torchlab.fx.experimental import _intervals as intervals
from torchlab.fx.experimental._expressions import Expr, Symbol
from torchlab.fx.experimental._intervals import INF, Range
from torchlab.fx.proxy import caller


@dataclass(frozen=True)
class Relation:
    """`expr` == 0, != 0, >= 0 or > 0; `kind` is "eq", "ne", "ge" or "gt"."""

    kind: str
    expr: Expr

    def negated(self) -> Relation:
        """What holds where this does not."""
        if self.kind in ("eq", "ne"):
            return Relation("ne" if self.kind == "eq" else "eq", self.expr)
        minus = self.expr.times(-1)
        if self.kind == "gt":
            return Relation("ge", minus)
        return Relation("ge", minus - ex.number(1)) if _whole(minus) else Relation("gt", minus)

    def holds(self, values: Mapping[Symbol, Any]) -> bool:
        """Whether it is true for values of the symbols."""
        v = self.expr.value(values)
        return bool(
            v == 0 if self.kind == "eq" else v != 0 if self.kind == "ne"
            else v >= 0 if self.kind == "ge" else v > 0
        )  # fmt: skip

    def __str__(self) -> str:
        left = Expr({m: c for m, c in self.expr.terms.items() if m and c > 0})
        right = Expr({m: -c for m, c in self.expr.terms.items() if m and c < 0})
        rest = self.expr.terms.get((), 0)
        sides = (left, right - ex.number(rest))
        if rest > 0 and left.terms and right.terms:
            sides = (left + ex.number(rest), right)
        flipped = not left.terms
        if flipped:
            sides = (right, ex.number(rest))
        signs = {"eq": ("==", "=="), "ne": ("!=", "!="), "ge": (">=", "<="), "gt": (">", "<")}
        return f"{sides[0]} {signs[self.kind][flipped]} {sides[1]}"


def _whole(e: Expr) -> bool:
    """Whether it is an integer for all integers."""
    return all(
        type(c) is int
        and not any(isinstance(a, ex.Call) and a.op in ("truediv", "pow") for a, _ in m)
        for m, c in e.terms.items()
    )


@dataclass(frozen=True)
class ShapeGuard:
    """What has to hold of the sizes, and the user's line that asked."""

    relation: Relation
    line: str | None

    @property
    def expr(self) -> Relation:
        """The relation."""
        return self.relation


class ShapeEnv:
    """The symbols of one trace.

    var_to_range: symbol → (least, greatest) value that the trace takes it to have. var_to_val: its
    value in the example. replacements: symbols that turned out to be an expression of others, or a
    number. guards: what was asked and neither followed from the ranges nor became a range or a
    replacement. `asked` is every answer that came from the example, in order.
    """

    def __init__(self, *, specialize_zero_one: bool = True, duck_shape: bool = True) -> None:
        self.specialize_zero_one = specialize_zero_one
        self.duck_shape = duck_shape
        self.var_to_val: dict[Symbol, int] = {}
        self.var_to_range: dict[Symbol, Range] = {}
        self.var_to_sources: dict[Symbol, list[str]] = {}
        self.replacements: dict[Symbol, Expr] = {}
        self.guards: list[ShapeGuard] = []
        self.asked: list[ShapeGuard] = []
        self.soft: set[Symbol] = set()  # those that may be anything: `Dim.AUTO`
        self.specialized_at: dict[Symbol, str | None] = {}
        self.divided: dict[Symbol, tuple[Symbol, int]] = {}  # a part → (the whole, how many)
        self._facts: dict[Relation, bool] = {}
        self._ducks: dict[int, Symbol] = {}

    # ---- symbols ---------------------------------------------------------------------------------

    def create_symbol(
        self, val: int, source: str = "", low: ex.Number = 0, high: ex.Number = INF
    ) -> Symbol:
        """A new symbol with an example value and a range. Sizes 0 and 1 are special to broadcasting
        and contiguity, so a trace takes a size that varies to be at least 2."""
        symbol = Symbol(f"s{len(self.var_to_val)}")
        self.var_to_val[symbol] = val
        floor = 2 if self.specialize_zero_one else 0
        self.var_to_range[symbol] = (max(low, floor), high)
        self.var_to_sources[symbol] = [source] if source else []
        return symbol

    def duck_symbol(self, val: int, source: str = "") -> Symbol:
        """The symbol of all sizes with this example value, where equal sizes are taken for one."""
        found = self._ducks.get(val) if self.duck_shape else None
        if found is None:
            found = self._ducks[val] = self.create_symbol(val, source)
        return found

    # ---- questions -------------------------------------------------------------------------------

    def simplify(self, e: Expr) -> Expr:
        """The expression with all that is known put in."""
        while self.replacements and not e.symbols.isdisjoint(self.replacements):
            e = e.replaced(self.replacements)
        return e

    def hint(self, e: Expr) -> Any:
        """The value for the example's sizes."""
        return e.value(self.var_to_val)

    def static(self, relation: Relation) -> bool | None:
        """Whether it follows from what is known; None if that says nothing."""
        e = self.simplify(relation.expr)
        known = e.constant
        if known is not None:
            return Relation(relation.kind, ex.number(known)).holds({})
        kind = relation.kind
        if kind == "ge" and e.terms.get(()) == -1 and _whole(e):
            e, kind = e + ex.number(1), "gt"  # of whole numbers the same, and factors may cancel
        e = intervals.common_factor(e, self.var_to_range)
        low, high = intervals.range_of(e, self.var_to_range)
        found: bool | None = None
        if kind in ("eq", "ne"):
            if low > 0 or high < 0 or self._misses_zero(e):
                found = kind == "ne"
        elif low > 0 or (low == 0 and kind == "ge"):
            found = True
        elif high < 0 or (high == 0 and kind == "gt"):
            found = False
        if found is None:
            found = self._facts.get(_canonical(Relation(kind, e)))
        return found

    @staticmethod
    def _misses_zero(e: Expr) -> bool:
        """Whether divisibility forbids 0: `2*s + 1`."""
        constant = e.terms.get((), 0)
        rest = [c for m, c in e.terms.items() if m]
        if not _whole(e) or not rest or type(constant) is not int:
            return False
        divisor = ex.content(Expr({m: c for m, c in e.terms.items() if m}))
        return constant % divisor != 0

    def evaluate(self, relation: Relation) -> bool:
        """The answer; a guard, if the example has to give it."""
        found = self.static(relation)
        if found is not None:
            return found
        e = intervals.common_factor(self.simplify(relation.expr), self.var_to_range)
        asked = _canonical(Relation(relation.kind, e))
        truth = asked.holds(self.var_to_val)
        self._learn(asked if truth else asked.negated())
        return truth

    def _learn(self, r: Relation) -> None:
        guard = ShapeGuard(r, caller())
        self.asked.append(guard)
        self._facts[_canonical(r)] = True
        self._facts[_canonical(r.negated())] = False
        solved = (
            self._solve(r, guard) if r.kind == "eq"
            else self._narrow(r) if r.kind == "ge"
            else self._exclude(r) if r.kind == "ne"
            else False
        )  # fmt: skip
        if not solved:
            self.guards.append(guard)

    def _solve(self, r: Relation, guard: ShapeGuard) -> bool:
        """Replace a symbol by what the equation says it is."""
        e = r.expr
        if self._divide(e, guard):
            return True
        for m, c in sorted(e.terms.items(), key=self._willing, reverse=True):
            if len(m) != 1 or m[0][1] != 1 or not isinstance(m[0][0], Symbol):
                continue
            symbol = m[0][0]
            rest = Expr({n: d for n, d in e.terms.items() if n != m})
            if symbol in rest.symbols:
                continue
            value = rest.times(-1) if c == 1 else rest if c == -1 else None
            if value is None and rest.constant is not None and rest.constant % c == 0:
                value = ex.number(-rest.constant // c)
            if value is None:
                continue
            self._replace(symbol, value, guard)
            return True
        return False

    def _willing(self, term: tuple[Any, Any]) -> tuple[Any, ...]:
        """Which symbol is rather replaced: one that nobody declared, a later one."""
        m, _ = term
        return bool(m) and all(a in self.soft for a, _ in m), [a.key for a, _ in m]

    def _divide(self, e: Expr, guard: ShapeGuard) -> bool:
        """`s % n == 0`: `s` is n times a new symbol, and all that follows from it is known."""
        found = ex.lone_call(e, "mod")
        if found is None:
            return False
        symbol, n = found.args[0].symbol, found.args[1].constant
        if symbol is None or type(n) is not int or n < 2:
            return False
        low, high = self.var_to_range[symbol]
        part = Symbol(f"s{len(self.var_to_val)}")
        self.var_to_val[part] = self.var_to_val[symbol] // n
        self.var_to_range[part] = (-(-low // n), high if high == INF else high // n)
        self.var_to_sources[part] = []
        self.divided[part] = (symbol, n)
        self.replacements[symbol] = ex.of(part).times(n)
        self.specialized_at[symbol] = guard.line
        return True

    def _replace(self, symbol: Symbol, value: Expr, guard: ShapeGuard) -> None:
        low, high = self.var_to_range[symbol]
        self.replacements[symbol] = value
        self.specialized_at[symbol] = guard.line
        other = value.symbol
        if other is not None:
            a, b = self.var_to_range[other]
            self.var_to_range[other] = (max(a, low), min(b, high))
        elif value.constant is None:
            for bound in (
                Relation("ge", value - ex.number(low)),
                Relation("ge", ex.number(high) - value) if high != INF else None,
            ):
                if bound is not None and self.static(bound) is None:
                    self._learn(bound)

    def _narrow(self, r: Relation) -> bool:
        """A bound of one symbol becomes its range."""
        found = _linear(r.expr)
        if found is None:
            return False
        symbol, a, b = found  # a·symbol + b >= 0
        low, high = self.var_to_range[symbol]
        if a > 0:
            low = max(low, -(b // a))
        else:
            high = min(high, b // -a)
        self.var_to_range[symbol] = (low, high)
        return True

    def _exclude(self, r: Relation) -> bool:
        """A value at the end of a range is taken off it."""
        found = _linear(r.expr)
        if found is None:
            return False
        symbol, a, b = found
        low, high = self.var_to_range[symbol]
        if a * low + b == 0:
            low += 1
        elif high != INF and a * high + b == 0:
            high -= 1
        else:
            return False
        self.var_to_range[symbol] = (low, high)
        return True

    def guards_hold(self, values: Mapping[Symbol, Any]) -> ShapeGuard | None:
        """The first guard that does not hold for these sizes; None if all do."""
        for g in self.guards:
            if not Relation(g.relation.kind, self.simplify(g.relation.expr)).holds(values):
                return g
        return None


def _canonical(r: Relation) -> Relation:
    """One form for what is the same: `a > 0` of whole numbers is `a - 1 >= 0`."""
    if r.kind == "gt" and _whole(r.expr):
        return Relation("ge", r.expr - ex.number(1))
    if r.kind in ("eq", "ne") and r.expr.terms and str(r.expr).startswith("-"):
        return Relation(r.kind, r.expr.times(-1))
    return r


def _linear(e: Expr) -> tuple[Symbol, Any, Any] | None:
    """(symbol, a, b) of `a·symbol + b`."""
    b = e.terms.get((), 0)
    rest = [(m, c) for m, c in e.terms.items() if m]
    if len(rest) != 1 or len(rest[0][0]) != 1 or rest[0][0][0][1] != 1:
        return None
    atom = rest[0][0][0][0]
    a = rest[0][1]
    if not isinstance(atom, Symbol) or type(a) is not int or type(b) is not int:
        return None
    return atom, a, b


__all__ = ["Relation", "ShapeEnv", "ShapeGuard"]

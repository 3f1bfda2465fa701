"""Whether what the program asked of its sizes fits what was declared of them.

Source: https://docs.pytorch.org/docs/2.13/export.html#expressing-dynamism
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from torchlab._dynamo.exc import UserError, UserErrorType
from torchlab.export.dynamic_shapes import Dim, Symbols
from torchlab.fx.experimental import _expressions as ex
from torchlab.fx.experimental._expressions import Expr, Symbol
from torchlab.fx.experimental._intervals import INF
from torchlab.fx.experimental._shape_env import ShapeGuard
from torchlab.fx.experimental.symbolic_shapes import ConstraintViolationError


@dataclass(frozen=True)
class ValueRanges:
    """The least and the greatest value of a size; `inf` where there is none."""

    lower: Any
    upper: Any

    def __repr__(self) -> str:
        return f"VR[{self.lower}, {'int_oo' if self.upper == INF else self.upper}]"


def check(symbols: Symbols) -> None:
    """Raise UserError where the program asks more than was declared."""
    env = symbols.env
    problems: list[str] = []
    fixes: list[str] = []
    names: dict[str, None] = {}
    ranges = {}
    for symbol, (name, d) in symbols.declared.items():
        if getattr(d, "kind", "") == "AUTO":
            continue
        ranges[symbol] = d
        value = env.simplify(ex.of(symbol))
        line = _at(env.specialized_at.get(symbol))
        if value.constant is not None:
            n = value.constant
            problems.append(
                f"You marked {name} as dynamic but your code specialized it to be a constant ({n})"
                f"{line}. If you're using mark_dynamic, either remove it or use maybe_mark_dynamic."
                " If you're using Dim.DYNAMIC, replace it with either Dim.STATIC or Dim.AUTO."
            )
            if isinstance(d, Dim):
                fixes.append(f"{name} = {n}")
            names[name] = None
        elif isinstance(d, Dim) and value != ex.of(symbol):
            other = _said(value, symbols)
            if value.symbol is not None:
                problems.append(
                    f"The values of {name} = {symbols.sources[symbol][0]} and {other} ="
                    f" {_source(value.symbol, symbols)} must always be equal{line}."
                )
            else:
                given = _range(name, d.min, d.max)
                problems.append(
                    f"Not all values of {name} = {symbols.sources[symbol][0]} in the specified"
                    f" range {given} satisfy the generated guard {name} == {other}{line}."
                )
                fixes += [
                    _as_dim(symbols.name_of(s), *env.var_to_range[s])
                    for s in value.symbols
                    if s in env.divided
                ]
            fixes.append(f"{name} = {other}")
            names[name] = None
        elif value == ex.of(symbol):
            _check_range(symbol, name, d, symbols, problems, fixes, names)
    for g in env.guards:
        asked = g.relation.expr
        left = env.simplify(asked)
        if env.static(g.relation) is not None and left.constant is not None:
            continue
        concerned = [s for s in sorted(left.symbols, key=lambda s: s.key) if s in ranges]
        if not concerned:
            continue
        shown = [symbols.name_of(s) for s in concerned]
        text = str(type(g.relation)(g.relation.kind, left))
        for s in sorted(left.symbols, key=lambda s: s.key, reverse=True):
            text = text.replace(str(s), symbols.name_of(s))
        of = ", ".join(
            f"{n} = {_source(s, symbols)}" for n, s in zip(shown, concerned, strict=True)
        )
        problems.append(
            f"Not all values of {of} in the specified range satisfy the generated guard"
            f" {text}{_at(g.line)}."
        )
        names.update(dict.fromkeys(shown))
    if problems:
        text = (
            f"Constraints violated ({', '.join(names)})! For more information, run with"
            ' TORCH_LOGS="+dynamic".\n  - ' + "\n  - ".join(problems)
        )
        if fixes:
            text += "\nSuggested fixes:\n  " + "\n  ".join(dict.fromkeys(fixes))
        violation = ConstraintViolationError(text)
        raise UserError(UserErrorType.CONSTRAINT_VIOLATION, text) from violation


def _check_range(
    symbol: Symbol, name: str, d: Any, symbols: Symbols, problems: list[str], fixes: list[str],
    names: dict[str, None],
) -> None:  # fmt: skip
    env = symbols.env
    low, high = env.var_to_range[symbol]
    declared_low = d.min or 0
    declared_high = INF if d.max is None else d.max
    narrowed_low = low > max(declared_low, 2)
    narrowed_high = high < declared_high
    if not narrowed_low and not narrowed_high:
        return
    if not isinstance(d, Dim) and d.min is None and d.max is None:
        return  # Dim.DYNAMIC without bounds takes those that the program asks for
    source = symbols.sources[symbol][0]
    least = low if narrowed_low else declared_low
    guard = f"{least} <= {source}"
    if high != INF:
        guard += f" and {source} <= {high}"
    lines = [_at(g.line) for g in env.asked if g.relation.expr.symbols == {symbol} and g.line]
    given = f" in the specified range {_range(name, declared_low, declared_high)}".rstrip()
    problems.append(
        f"Not all values of {name} = {source}{given} satisfy the generated guard"
        f" {guard}{lines[0] if lines else ''}"
    )
    if isinstance(d, Dim):
        fixes.append(_as_dim(name, least, high))
    names[name] = None


def _as_dim(name: str, low: Any, high: Any) -> str:
    bounds = f", min={low}" if low else ""
    bounds += "" if high == INF else f", max={high}"
    return f"{name} = Dim('{name}'{bounds})"


def _range(name: str, low: Any, high: Any) -> str:
    if high == INF:
        return f"{name} >= {low}" if low else ""
    return f"{low} <= {name} <= {high}" if low > 1 else f"{name} <= {high}"


def _at(line: str | None) -> str:
    return f" ({line})" if line else ""


def _source(symbol: Symbol, symbols: Symbols) -> str:
    found = symbols.sources.get(symbol)
    return found[0] if found else str(symbol)


def _said(e: Expr, symbols: Symbols) -> str:
    text = str(e)
    for s in sorted(e.symbols, key=lambda s: s.key, reverse=True):
        text = text.replace(str(s), symbols.name_of(s))
    return text


def ranges_of(symbols: Symbols) -> dict[Expr, ValueRanges]:
    """The bounds of the sizes that vary, and of those that follow from them."""
    env = symbols.env
    found: dict[Expr, ValueRanges] = {}
    for e, d in symbols.derived.items():
        if env.simplify(e).constant is None:
            found[env.simplify(e)] = ValueRanges(d.min, d.max)
    for symbol, (_, d) in symbols.declared.items():
        if env.simplify(ex.of(symbol)) != ex.of(symbol):
            continue
        low, high = env.var_to_range[symbol]
        declared = getattr(d, "min", None)
        if isinstance(d, Dim) and low <= 2:
            low = min(low, d.min)
        elif declared is not None and low <= 2:
            low = declared
        found[ex.of(symbol)] = ValueRanges(low, high)
    for part, (whole, _) in env.divided.items():
        if env.simplify(ex.of(part)) == ex.of(part) and whole in env.replacements:
            found[ex.of(part)] = ValueRanges(*env.var_to_range[part])
    return found


def remaining(symbols: Symbols) -> list[ShapeGuard]:
    """The guards that a call has to check."""
    env = symbols.env
    return [g for g in env.guards if env.simplify(g.relation.expr).constant is None]


__all__ = ["ValueRanges", "check", "ranges_of", "remaining"]

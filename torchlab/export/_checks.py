"""What a call of an exported program checks of its arguments.

Source: https://docs.pytorch.org/docs/2.13/export.html
"""

from __future__ import annotations

from typing import Any

from torchlab._core.tensor import Tensor
from torchlab.export._constraints import ValueRanges
from torchlab.fx.experimental._expressions import Expr, Symbol
from torchlab.fx.experimental._shape_env import Relation
from torchlab.utils import _pytree as pytree


class Checks:
    """The arguments of a call, flat, after a look at their structure, sizes and constants.

    inputs: (name, sizes as expressions or ints; a constant's value for what is no tensor).
    """

    def __init__(
        self,
        in_spec: Any,
        inputs: list[tuple[str, Any]],
        ranges: dict[Expr, ValueRanges],
        guards: list[Relation],
    ) -> None:
        self.in_spec = in_spec
        self.inputs = inputs
        self.ranges = ranges
        self.guards = guards

    def __call__(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Any]:
        wanted = list(self.in_spec.children_specs[1].context)
        if set(kwargs) != set(wanted):
            raise told(
                ValueError(
                    "Ran into a kwarg keyword mismatch: Got the following keywords"
                    f" {list(kwargs)} but expected {wanted}"
                )
            )
        flat, spec = pytree.tree_flatten((args, {k: kwargs[k] for k in wanted}))
        if spec != self.in_spec:
            raise told(
                ValueError(
                    "Trying to flatten user inputs with exported input tree spec: \n"
                    f"{self.in_spec}\nbut actually got inputs with tree spec of: \n{spec}.\nPlease"
                    " check that the inputs have the same number and type of args and kwargs as the"
                    " ones you used when tracing."
                )
            )
        self.check(flat)
        return flat

    def check(self, flat: list[Any]) -> None:
        """AssertionError for the first size or value with which the program does not hold."""
        values: dict[Symbol, int] = {}
        first: dict[Symbol, str] = {}
        later: list[tuple[Expr, int, str]] = []
        for (name, known), value in zip(self.inputs, flat, strict=True):
            if not isinstance(known, tuple):
                self._check_constant(name, known, value, values, first)
                continue
            if not isinstance(value, Tensor):
                _fail(f"isinstance({name}, torch.Tensor)", f"{name} is a {type(value).__name__}")
            shape = list(value.shape)
            if len(shape) != len(known):
                _fail(f"{name}.dim() == {len(known)}", f"{name} has shape {shape}")
            for i, (wanted, n) in enumerate(zip(known, shape, strict=True)):
                where = f"{name}.size()[{i}]"
                if isinstance(wanted, int):
                    if n != wanted:
                        _fail(f"{where} == {wanted}", f"{name} has shape {shape}")
                    continue
                symbol = wanted.symbol
                if symbol is not None and symbol not in values:
                    values[symbol], first[symbol] = n, where
                else:
                    later.append((wanted, n, where))
        for e, n, where in later:
            self._derived(e, n, where, values, first)
        self._check_ranges(values, first)
        for g in self.guards:
            if not g.holds(values):
                _fail(_named(str(g), g.expr, first), _sizes(g.expr, values, first))

    def _check_constant(
        self, name: str, known: Any, value: Any, values: dict[Symbol, int], first: dict[Symbol, str]
    ) -> None:
        if isinstance(known, Expr) and known.symbol is not None:
            values[known.symbol], first[known.symbol] = value, name
        elif type(value) is not type(known) or value != known:
            _fail(f"{name} == {known!r}", f"it was exported for this value, not {value!r}")

    @staticmethod
    def _derived(
        e: Expr, n: int, where: str, values: dict[Symbol, int], first: dict[Symbol, str]
    ) -> None:
        unknown = [s for s in e.symbols if s not in values]
        if unknown:  # a·symbol + b
            a = next(c for m, c in e.terms.items() if m)
            b = e.terms.get((), 0)
            if (n - b) % a:
                _fail(f"({where} - {b}) % {a} == 0" if b else f"{where} % {a} == 0", f"it is {n}")
            values[unknown[0]] = int((n - b) // a)
            first[unknown[0]] = f"({where} - {b})//{a}" if b else f"{where}//{a}"
        elif e.value(values) != n:
            _fail(f"{where} == {_named(str(e), e, first)}", f"{n} is not {e.value(values)}")

    def _check_ranges(self, values: dict[Symbol, int], first: dict[Symbol, str]) -> None:
        for e, r in self.ranges.items():
            if any(s not in values for s in e.symbols):
                continue
            n = e.value(values)
            shown = _named(str(e), e, first)
            given = ", ".join(f"{first[s]} is {values[s]}" for s in e.symbols)
            if n > r.upper:
                _fail(f"{shown} <= {r.upper}", given)
            low = 0 if r.lower == 2 else r.lower  # sizes 0 and 1 are the trace's only assumption
            if n < low:
                _fail(f"{shown} >= {low}", given)


def _named(text: str, e: Expr, first: dict[Symbol, str]) -> str:
    for s in sorted(e.symbols, key=lambda s: s.key, reverse=True):
        text = text.replace(str(s), first.get(s, str(s)))
    return text


def _sizes(e: Expr, values: dict[Symbol, int], first: dict[Symbol, str]) -> str:
    return ", ".join(f"{first[s]} is {values[s]}" for s in sorted(e.symbols, key=lambda s: s.key))


def _fail(guard: str, why: str) -> None:
    raise told(AssertionError(f"Guard failed: {guard} ({why})"))


def told(error: Exception) -> Exception:
    """The error, which says all there is: the line of generated code would say less."""
    error._told = True  # type: ignore[attr-defined]
    return error


__all__ = ["Checks"]

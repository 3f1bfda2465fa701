"""Symbolic numbers as nodes of a graph: their expressions, computed from the inputs' sizes.

Source: https://docs.pytorch.org/docs/2.13/fx.experimental.html
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

from torchlab._core.tensor import Tensor
from torchlab.fx.experimental import _expressions as ex
from torchlab.fx.experimental._expressions import Call, Expr, Symbol
from torchlab.fx.experimental._symbolic_numbers import (
    SymBool,
    SymFloat,
    SymInt,
    of_expr,
    sym_max,
    sym_min,
)
from torchlab.fx.graph import Graph
from torchlab.fx.node import Node
from torchlab.fx.sizes import SYM_SIZE

_TARGETS: dict[str, Callable[..., Any]] = {
    "floordiv": operator.floordiv,
    "mod": operator.mod,
    "truediv": operator.truediv,
    "pow": operator.pow,
    "max": sym_max,
    "min": sym_min,
    "trunc": math.trunc,
    "ceil": math.ceil,
    "floor": math.floor,
}


class SizeNodes:
    """The nodes that compute symbolic numbers in a graph; each expression has one."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.inputs: list[tuple[Any, Node, int | None]] = []
        self.sources: dict[Expr, tuple[Node, int | None]] = {}
        self.known = -1  # how many symbols were replaced when `sources` was written
        self.nodes: dict[Expr, Node] = {}
        self.last_input: Node | None = None

    def input(self, value: Any, node: Node) -> None:
        """`node` is an input: its sizes can be read from it."""
        self.last_input = node
        sizes: list[tuple[int | None, Any]] = [(None, value)]
        if isinstance(value, Tensor):
            sizes = list(enumerate(value.shape))
        self.inputs += [(n, node, dim) for dim, n in sizes if type(n) is SymInt]
        self.known = -1

    def _refresh(self, env: Any) -> None:
        """Which expression is which size, as far as the trace knows by now."""
        if self.known == len(env.replacements):
            return
        self.known = len(env.replacements)
        self.sources = {}
        for n, node, dim in self.inputs:
            self.sources.setdefault(env.simplify(n.node.expr), (node, dim))

    def number(self, x: Any) -> Any:
        """A symbolic number as an argument of a node: the node that computes it, or the number that
        it turned out to be."""
        if type(x) is SymBool:
            return bool(x)
        env = x.node.shape_env
        e = env.simplify(x.node.expr)
        constant = e.constant
        if constant is not None:
            return x.node.pytype(constant)
        return self._of(e, env, float if type(x) is SymFloat else int)

    def _of(self, e: Expr, env: Any, pytype: type) -> Any:
        found = self.nodes.get(e)
        if found is not None:
            return found
        self._refresh(env)
        symbol = e.symbol
        if e in self.sources:
            made = self._read(e, env)
        elif symbol is not None:
            made = self._of_symbol(symbol, env)
        else:
            made = self._of_sum(e, env, pytype)
        self.nodes[e] = made
        return made

    def _of_symbol(self, symbol: Symbol, env: Any) -> Node:
        """The node of a symbol that is no size itself: a size is `a·symbol + b`."""
        e = next((x for x in self.sources if x.symbols == {symbol}), None)
        if e is None:
            raise RuntimeError(f"the size {symbol} is none of an input's: the graph cannot know it")
        made = self._of(e, env, int)
        a = next(c for m, c in e.terms.items() if m)
        b = e.terms.get((), 0)
        if b:
            with self.graph.inserting_after(made):
                made = self._call(operator.sub, (made, b), e - ex.number(b), env)
            self.nodes[_LAST] = made
        if a != 1:
            with self.graph.inserting_after(made):
                made = self._call(operator.floordiv, (made, a), ex.of(symbol), env)
            self.nodes[_LAST] = made
        return made

    def _read(self, e: Expr, env: Any) -> Node:
        """The node that reads a size of an input."""
        node, dim = self.sources[e]
        if dim is None:
            return node
        assert self.last_input is not None
        after = self.nodes.get(_LAST, self.last_input)
        with self.graph.inserting_after(after):
            made = self.graph.call_function(SYM_SIZE, (node, dim), name="sym_size_int")
        made.meta["val"] = of_expr(e, env)
        self.nodes[_LAST] = made
        return made

    def _call(self, fn: Any, args: Any, e: Expr, env: Any, pytype: type = int) -> Node:
        node = self.graph.call_function(fn, args)
        node.meta["val"] = of_expr(e, env, pytype)
        return node

    def _of_sum(self, e: Expr, env: Any, pytype: type) -> Any:
        total: Any = None
        so_far = ex.number(0)
        for m, c in sorted(e.terms.items(), key=lambda t: (not t[0], t[1] < 0)):
            term: Any = None
            product = ex.number(1)
            for atom, power in m:
                for _ in range(power):
                    factor = self._of_atom(atom, env)
                    product = product * ex.of(atom)
                    term = (
                        factor
                        if term is None
                        else self._call(operator.mul, (term, factor), product, env, pytype)
                    )
            size: Any = abs(c) if total is not None else c
            if term is None:
                term = size
            elif size != 1:
                product = product.times(size)
                term = self._call(operator.mul, (term, size), product, env, pytype)
            so_far = so_far + Expr({m: c})
            if total is None:
                total = term
            else:
                fn = operator.sub if c < 0 else operator.add
                total = self._call(fn, (total, term), so_far, env, pytype)
        return total

    def _of_atom(self, atom: Any, env: Any) -> Any:
        e = ex.of(atom)
        if isinstance(atom, Symbol):
            return self._of(e, env, int)
        found = self.nodes.get(e)
        if found is None:
            found = self.nodes[e] = self._of_call(atom, e, env)
        return found

    def _of_call(self, atom: Call, e: Expr, env: Any) -> Node:
        pytype = float if atom.op == "truediv" else int
        args = [self._argument(a, env) for a in atom.args]
        fn = _TARGETS[atom.op]
        if len(args) > 2:
            made = args[0]
            done = atom.args[0]
            for arg, part in zip(args[1:], atom.args[1:], strict=True):
                done = ex.call(atom.op, done, part)
                made = self._call(fn, (made, arg), done, env)
            return made  # type: ignore[no-any-return]
        return self._call(fn, tuple(args), e, env, pytype)

    def _argument(self, e: Expr, env: Any) -> Any:
        constant = e.constant
        return constant if constant is not None else self._of(e, env, int)


_LAST = ex.of(Symbol("<the last node that reads a size>"))

__all__ = ["SizeNodes"]

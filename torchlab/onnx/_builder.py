"""An ONNX graph in the making: values by name, nodes, constants, casts.

Source: https://onnx.ai/onnx/repo-docs/IR.html
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from torchlab._core import dtype as dt
from torchlab._core.lazy import lazy
from torchlab._core.tensor import Tensor
from torchlab.fx.experimental import _expressions as ex
from torchlab.fx.experimental._expressions import Call, Expr
from torchlab.fx.experimental._symbolic_numbers import SymFloat, SymInt
from torchlab.fx.node import Node
from torchlab.onnx.errors import Untranslatable

onnx = lazy("onnx", "pip install torchlab[onnx]")

ELEMENT = {  # dtype → number in TensorProto.DataType
    dt.float32: 1, dt.uint8: 2, dt.int8: 3, dt.uint16: 4, dt.int16: 5, dt.int32: 6, dt.int64: 7,
    dt.bool_: 9, dt.float16: 10, dt.float64: 11, dt.uint32: 12, dt.uint64: 13, dt.bfloat16: 16,
}  # fmt: skip


def element(d: dt.dtype) -> int:
    """The ONNX type of a dtype."""
    found = ELEMENT.get(d)
    if found is None:
        raise Untranslatable(f"ONNX operators do not take {d}")
    return found


class Builder:
    """The nodes and constants of a graph. Values are names; symbolic sizes have two forms, a vector
    of one and a scalar."""

    def __init__(self, opset: int, names: dict[Any, str]) -> None:
        self.opset = opset
        self.names = names  # symbol → how its dims are called
        self.nodes: list[Any] = []
        self.initializers: dict[str, Any] = {}
        self.values: dict[Node, Any] = {}  # node → name, or names of several results
        self.vectors: dict[Node, str] = {}
        self.inputs: list[tuple[str, int, Expr]] = []  # (input, dim, what its size is)
        self.sizes: dict[Expr, str] = {}
        self._env: Any = None
        self.origin: Node | None = None
        self.live: set[Node] = set()  # the nodes that the result needs
        self._used: set[str] = set()
        self._constants: dict[tuple[Any, ...], str] = {}
        self._casts: dict[tuple[str, int], str] = {}

    # ---- names, nodes, constants -----------------------------------------------------------------

    def fresh(self, name: str) -> str:
        """A name that nothing has yet."""
        made, i = name, 0
        while made in self._used:
            i += 1
            made = f"{name}_{i}"
        self._used.add(made)
        return made

    def op(self, kind: str, *inputs: str | None, **attributes: Any) -> str:
        """A node; the name of its result."""
        return self.several(kind, *inputs, outputs=1, **attributes)[0]

    def several(self, kind: str, *inputs: str | None, outputs: int, **attributes: Any) -> list[str]:
        """A node; the names of its results."""
        origin = self.origin
        base = origin.name if origin is not None else kind.lower()
        made = [self.fresh(f"{base}_{kind.lower()}") for _ in range(outputs)]
        given = ["" if x is None else x for x in inputs]
        while given and not given[-1]:
            given.pop()
        kept = {k: v for k, v in attributes.items() if v is not None}
        node = onnx.helper.make_node(kind, given, made, self.fresh(f"node_{kind}"), **kept)
        if origin is not None:
            _describe(node, origin)
        self.nodes.append(node)
        return made

    def const(self, value: Any, d: dt.dtype | None = None) -> str:
        """A constant: numbers, nested lists or an array, as `d`."""
        a = np.asarray(value, (d or dt.int64).np if not isinstance(value, np.ndarray) else None)
        if d is not None and a.dtype != d.np:
            a = a.astype(d.np)
        key = (a.dtype.str, a.dtype.name, a.shape, a.tobytes()) if a.size <= 64 else (id(a),)
        found = self._constants.get(key)
        if found is None:
            found = self.fresh("val")
            self.initializers[found] = array_proto(a, found)
            self._constants[key] = found
        return found

    def cast(self, name: str, before: dt.dtype, d: dt.dtype) -> str:
        """The value in another type."""
        if before is d:
            return name
        key = (name, element(d))
        if key not in self._casts:
            self._casts[key] = self.op("Cast", name, to=element(d))
        return self._casts[key]

    # ---- arguments of the program's nodes --------------------------------------------------------

    def of(self, x: Any, d: dt.dtype | None = None) -> str:
        """The value of an argument, as `d` if given: a tensor's, a size's or number's as a
        scalar."""
        if not isinstance(x, Node):
            if isinstance(x, (bool, int, float)):
                return self.const(np.asarray(x, (d or dt.of_scalar(x)).np))
            raise Untranslatable(f"an argument is {x!r}")
        val = x.meta.get("val")
        if type(val) in (SymInt, SymFloat) or x in self.vectors:
            name = self.op("Squeeze", self.vector(x))
            before = dt.float64 if type(val) is SymFloat else dt.int64
            return self.cast(name, before, d or before)
        found = self.values[x]
        if not isinstance(found, str):
            raise Untranslatable("several results are used as one")
        return found if d is None else self.cast(found, self.dtype(x), d)

    def vector(self, x: Any) -> str:
        """A size as a vector of one int64 (of one float64 for a quotient)."""
        if not isinstance(x, Node):
            return self.const([int(x)])
        return self.vectors[x]

    def ints(self, sizes: Sequence[Any]) -> str:
        """Sizes as a vector."""
        if all(not isinstance(n, Node) for n in sizes):
            return self.const([int(n) for n in sizes])
        parts: list[str] = []
        run: list[int] = []
        for n in sizes:
            if isinstance(n, Node):
                if run:
                    parts.append(self.const(run))
                    run = []
                parts.append(self.vector(n))
            else:
                run.append(int(n))
        if run:
            parts.append(self.const(run))
        return parts[0] if len(parts) == 1 else self.op("Concat", *parts, axis=0)

    def shape_of(self, x: Node) -> str:
        """The shape of a value, as a vector: a constant if it is known."""
        sizes = self.shape(x)
        if all(isinstance(n, int) and type(n) is not SymInt for n in sizes):
            return self.const([int(n) for n in sizes])
        return self.op("Shape", self.of(x))

    # ---- sizes that no node of the program computes ----------------------------------------------

    def size(self, n: Any) -> str:
        """A size, known or not, as a vector of one."""
        if type(n) is not SymInt:
            return self.const([int(n)])
        e: Expr = n.node.shape_env.simplify(n.node.expr)
        return self._expression(e, n.node.shape_env)

    def dims(self, sizes: Sequence[Any]) -> str:
        """Sizes, known or not, as a vector."""
        if all(type(n) is not SymInt for n in sizes):
            return self.const([int(n) for n in sizes])
        return self.op("Concat", *(self.size(n) for n in sizes), axis=0)

    def _expression(self, e: Expr, env: Any) -> str:
        self._env = env
        found = self.sizes.get(e)
        if found is None:
            found = self.sizes[e] = self._computed(e, env)
        return found

    def _computed(self, e: Expr, env: Any) -> str:
        if e.constant is not None:
            return self.const([int(e.constant)])
        for name, rank_dim, known in self.inputs:
            if env.simplify(known) == e:
                return self.op("Shape", name, start=rank_dim, end=rank_dim + 1)
        symbol = e.symbol
        if symbol is not None:
            return self._from_derived(symbol, env)
        total: str | None = None
        for m, c in e.terms.items():
            term: str | None = None
            for atom, power in m:
                factor = self._atom(atom, env)
                for _ in range(power):
                    term = factor if term is None else self.op("Mul", term, factor)
            if term is None:
                term = self.const([int(c)])
            elif c != 1:
                term = self.op("Mul", term, self.const([int(c)]))
            total = term if total is None else self.op("Add", total, term)
        assert total is not None
        return total

    def _from_derived(self, symbol: Any, env: Any) -> str:
        """A symbol that is in a size `a·symbol + b` only."""
        for name, dim, known in self.inputs:
            e = env.simplify(known)
            if e.symbols == {symbol} and e.symbol is None:
                a = next(c for m, c in e.terms.items() if m)
                whole = self.op("Shape", name, start=dim, end=dim + 1)
                rest = self.op("Sub", whole, self.const([int(e.terms.get((), 0))]))
                return self.op("Div", rest, self.const([int(a)]))
        raise Untranslatable(f"the size {self.names.get(symbol, symbol)} is none of an input's")

    def _atom(self, atom: Any, env: Any) -> str:
        if not isinstance(atom, Call):
            return self._expression(ex.of(atom), env)
        if atom.op in ("floor", "ceil", "trunc"):
            return self._rounded(atom)
        kind = {"floordiv": "Div", "mod": "Mod", "max": "Max", "min": "Min"}.get(atom.op)
        if kind is None:
            raise Untranslatable(f"a size is {atom}")
        return self.op(kind, *(self._expression(a, env) for a in atom.args))

    def _rounded(self, atom: Any) -> str:
        """A size times a factor, rounded: of `coefficient · size` only."""
        (inner,) = atom.args
        terms = list(inner.terms.items())
        if len(terms) != 1 or len(terms[0][0]) != 1 or terms[0][0][0][1] != 1:
            raise Untranslatable(f"a size is {atom}")
        ((m, c),) = terms
        n = self.cast(self._expression(ex.of(m[0][0]), self._env), dt.int64, dt.float64)
        product = self.op("Mul", n, self.const([float(c)], dt.float64))
        if atom.op != "trunc":
            product = self.op(atom.op.capitalize(), product)
        return self.cast(product, dt.float64, dt.int64)

    # ---- facts -----------------------------------------------------------------------------------

    def uses(self, node: Node, i: int) -> bool:
        """Whether somebody reads the i-th of a node's results."""
        return any(u.args[1] == i and u in self.live for u in node.users)

    @staticmethod
    def fake(x: Any) -> Tensor:
        """What is known of a tensor argument."""
        val = x.meta["val"]
        if not isinstance(val, Tensor):
            raise Untranslatable(f"an argument is {type(val).__name__}, not a tensor")
        return val

    def dtype(self, x: Any) -> Any:
        """The dtype of a tensor argument."""
        return self.fake(x).dtype

    def shape(self, x: Node) -> list[Any]:
        """The shape of a tensor argument: ints, SymInts where a size varies."""
        return [simplified(n) for n in self.fake(x).shape]

    def rank(self, x: Node) -> int:
        """The number of dims of a tensor argument."""
        return self.fake(x).dim()

    def known(self, x: Node, dim: int, what: str = "the size") -> int:
        """A size that has to be known."""
        shape = self.shape(x)
        if dim >= len(shape):
            raise Untranslatable(f"{what} of dim {dim}: the tensor has {len(shape)} dims")
        n = shape[dim]
        if type(n) is SymInt:
            raise Untranslatable(f"{what} of dim {dim} varies ({self.said(n)})")
        return int(n)

    def said(self, n: Any) -> Any:
        """A size as a dim of ONNX: a number, or its name."""
        if type(n) is not SymInt:
            return int(n)
        e: Expr = n.node.shape_env.simplify(n.node.expr)
        if e.constant is not None:
            return int(e.constant)
        text = str(e)
        for s in sorted(e.symbols, key=lambda s: s.key, reverse=True):
            text = text.replace(str(s), self.names.get(s, str(s)))
        return text


def simplified(n: Any) -> Any:
    """A size as an int where it is known."""
    if type(n) is not SymInt:
        return int(n)
    constant = n.node.shape_env.simplify(n.node.expr).constant
    return n if constant is None else int(constant)


def array_proto(a: np.ndarray, name: str) -> Any:
    """A constant of the model."""
    return onnx.numpy_helper.from_array(np.ascontiguousarray(a).reshape(a.shape), name)


def class_name(t: Any) -> str:
    """The full name of a module's class; a loaded program has the name alone."""
    return t if isinstance(t, str) else f"{t.__module__}.{t.__qualname__}"


def _describe(made: Any, origin: Node) -> None:
    """Where a node comes from, under PyTorch's keys."""
    stack = list((origin.meta.get("nn_module_stack") or {}).values())
    facts = {
        "namespace": "/".join([*(f"{p}: {class_name(t)}" for p, t in stack),
                               f"{origin.name}: {origin.target}"]),
        "pkg.torch.onnx.fx_node": origin.format_node() or "",
        "pkg.torch.onnx.stack_trace": origin.stack_trace or origin.meta.get("origin", ""),
    }  # fmt: skip
    for key, value in facts.items():
        entry = made.metadata_props.add()
        entry.key, entry.value = key, str(value)


__all__ = ["ELEMENT", "Builder", "array_proto", "class_name", "element", "onnx", "simplified"]

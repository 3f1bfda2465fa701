"""Exported programs as data: what JSON can hold, and back, without running anything.

Every kind of value has a form of its own; what has none is refused when it is written. Reading
looks names up in fixed tables (operators, functions of numbers, dtypes) and makes nothing else.

Source: https://docs.pytorch.org/docs/2.13/export.html#torch.export.save
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

from torchlab._core import dtype as dt
from torchlab._core import formats
from torchlab._core.backends.meta import MetaArray
from torchlab._core.device import device
from torchlab._core.dispatch.overload import OpOverload
from torchlab._core.tensor import strides_of
from torchlab._ops import ops
from torchlab._subclasses.fake_tensor import FakeTensor, FakeTensorMode, plain
from torchlab.fx.experimental import _expressions as ex
from torchlab.fx.experimental._expressions import Call, Expr, Symbol
from torchlab.fx.experimental._symbolic_numbers import (
    SymFloat,
    SymInt,
    of_expr,
    sym_max,
    sym_min,
)
from torchlab.fx.node import Node
from torchlab.utils._pytree import TreeSpec

FUNCTIONS: dict[str, Callable[..., Any]] = {
    "getitem": operator.getitem, "add": operator.add, "sub": operator.sub, "mul": operator.mul,
    "floordiv": operator.floordiv, "mod": operator.mod, "truediv": operator.truediv,
    "pow": operator.pow, "sym_max": sym_max, "sym_min": sym_min, "trunc": math.trunc,
    "ceil": math.ceil, "floor": math.floor,
}  # fmt: skip
_NAMES = {id(fn): name for name, fn in FUNCTIONS.items()}
_CONTAINERS: dict[str, Any] = {"list": list, "tuple": tuple, "dict": dict}


class Unsaved(ValueError):
    """A value that the format has no form for."""


# ---- expressions ---------------------------------------------------------------------------------


def write_expr(e: Expr) -> Any:
    """[[coefficient, [[atom, power], …]], …]; an atom is a symbol's name or a call."""

    def atom(a: Any) -> Any:
        if isinstance(a, Symbol):
            return a.name
        return {"op": a.op, "args": [write_expr(x) for x in a.args]}

    return [[c, [[atom(a), p] for a, p in m]] for m, c in e.terms.items()]


class Reader:
    """Reads what is written; symbols are those of one environment."""

    def __init__(self, symbols: dict[str, Symbol], mode: FakeTensorMode) -> None:
        self.symbols = symbols
        self.mode = mode
        self.nodes: dict[str, Node] = {}

    def expr(self, data: Any) -> Expr:
        """An expression."""
        return Expr(
            {
                tuple((self._atom(a), int(p)) for a, p in m): c
                for c, m in data
                if isinstance(c, (int, float))
            }
        )

    def _atom(self, data: Any) -> Any:
        if isinstance(data, str):
            return self.symbols[data]
        op = data["op"]
        if op not in ex.OPERATIONS:
            raise ValueError(f"torch.export.load: '{op}' is no operation on sizes")
        return Call(op, tuple(self.expr(a) for a in data["args"]))

    def size(self, data: Any) -> Any:
        """A size: an int or an expression."""
        return int(data) if isinstance(data, int) else self.expr(data)

    def number(self, data: Any, pytype: type = int) -> Any:
        """A size as a number: an int or a SymInt."""
        if isinstance(data, int):
            return data
        return of_expr(self.expr(data), self.mode.shape_env, pytype)

    def value(self, data: Any) -> Any:
        """An argument of a node."""
        if not isinstance(data, dict):
            if isinstance(data, list):
                return [self.value(x) for x in data]
            return data
        ((kind, x),) = data.items()
        if kind == "node":
            return self.nodes[x]
        if kind == "tuple":
            return tuple(self.value(v) for v in x)
        if kind == "float":
            return float(x)
        if kind == "dtype":
            return dtypes()[x]
        if kind == "device":
            return device(x)
        if kind == "named":
            return formats.named(x)
        if kind == "complex":
            return complex(*x)
        raise ValueError(f"torch.export.load: a value of the kind '{kind}'")

    def known(self, data: Any) -> Any:
        """What is known of a node's value: a fake tensor, a symbolic number, a list of them."""
        if isinstance(data, list):
            return [self.known(x) for x in data]
        if not isinstance(data, dict):
            return data
        ((kind, x),) = data.items()
        if kind in ("int", "float"):
            return self.number(x, int if kind == "int" else float)
        d = dtypes()[x["dtype"]]
        a = MetaArray(
            tuple(self.number(n) for n in x["size"]), d.np,
            tuple(self.number(n) for n in x["stride"]), self.number(x["offset"]),
        )  # fmt: skip
        made = self.mode.wrap(plain(a, d), device(x["device"]))
        return made.requires_grad_() if x["requires_grad"] else made

    def target(self, data: str) -> Any:
        """What a node calls: an operator by its full name, or a function of numbers."""
        if "::" not in data:
            return FUNCTIONS[data]
        namespace, _, rest = data.partition("::")
        name, _, overload = rest.partition(".")
        found = getattr(getattr(getattr(ops, namespace), name), overload or "default", None)
        if not isinstance(found, OpOverload):
            raise ValueError(f"torch.export.load: torchlab has no operator '{data}'")
        return found

    def spec(self, data: Any) -> TreeSpec:
        """A structure of containers."""
        if data is None:
            return TreeSpec(None, None, [])
        kind, context, children = data
        made = _CONTAINERS[kind]
        parts = [self.spec(c) for c in children]
        return TreeSpec(made, context if made is dict else None, parts)


def dtypes() -> dict[str, Any]:
    """Every dtype by its name."""
    return {d.name: d for d in dt.public_names().values() if isinstance(d, dt.dtype)}


# ---- writing -------------------------------------------------------------------------------------


def write_size(n: Any) -> Any:
    """A size: an int, an expression, or a SymInt."""
    if type(n) in (SymInt, SymFloat):
        n = n.node.shape_env.simplify(n.node.expr)
    if isinstance(n, Expr):
        return int(n.constant) if n.constant is not None else write_expr(n)
    return int(n)


def write_value(x: Any) -> Any:
    """An argument of a node."""
    if x is None or isinstance(x, (bool, int, str)):
        return x
    if isinstance(x, Node):
        return {"node": x.name}
    if isinstance(x, float):
        return {"float": repr(x)}
    if isinstance(x, complex):
        return {"complex": [x.real, x.imag]}
    if isinstance(x, tuple):
        return {"tuple": [write_value(v) for v in x]}
    if isinstance(x, list):
        return [write_value(v) for v in x]
    if isinstance(x, dt.dtype):
        return {"dtype": x.name}
    if isinstance(x, device):
        return {"device": str(x)}
    if isinstance(x, (formats.layout, formats.memory_format)):
        return {"named": str(x)}
    raise Unsaved(f"an argument of type {type(x).__name__}")


def write_known(val: Any) -> Any:
    """What is known of a node's value."""
    if type(val) is SymInt or type(val) is SymFloat:
        return {"int" if type(val) is SymInt else "float": write_size(val)}
    if isinstance(val, FakeTensor):
        return {
            "tensor": {
                "size": [write_size(n) for n in val.shape],
                "stride": [write_size(n) for n in strides_of(val)],
                "offset": write_size(val.storage_offset()),
                "dtype": val.dtype.name,
                "device": str(val.device),
                "requires_grad": val.requires_grad,
            }
        }
    if isinstance(val, (list, tuple)):
        return [write_known(v) for v in val]
    if val is None or isinstance(val, (bool, int, str)):
        return val
    raise Unsaved(f"a node's value is {type(val).__name__}")


def write_target(target: Any) -> str:
    """What a node calls."""
    if isinstance(target, OpOverload):
        return f"{target.namespace}::{target._opname}.{target._overloadname}"
    found = _NAMES.get(id(target))
    if found is None:
        raise Unsaved(f"a call of {target}")
    return found


def write_spec(spec: TreeSpec) -> Any:
    """A structure of lists, tuples and dicts."""
    if spec.is_leaf():
        return None
    name = next((n for n, c in _CONTAINERS.items() if c is spec.type), None)
    if name is None:
        raise Unsaved(
            f"the arguments or results contain a {spec.type.__name__}; lists, tuples and dicts can"
            " be saved"
        )
    context = spec.context
    if context is not None and not all(isinstance(k, (str, int)) for k in context):
        raise Unsaved("a dict of the arguments or results has keys that are no strings or ints")
    return [name, context, [write_spec(c) for c in spec.children_specs]]


__all__ = [
    "FUNCTIONS", "Reader", "Unsaved", "dtypes", "write_expr", "write_known", "write_size",
    "write_spec", "write_target", "write_value",
]  # fmt: skip

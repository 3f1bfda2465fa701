"""A graph as Python source."""

from __future__ import annotations

import math
import operator
import sys
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from torchlab._core import dtype as dt
from torchlab._core.device import device
from torchlab._core.dispatch import registry
from torchlab._core.dispatch.generate.source import ident
from torchlab.fx.names import Names
from torchlab.fx.node import Node, callable_name, type_text

if TYPE_CHECKING:
    from torchlab.fx.graph import Graph

_BINARY = {
    operator.add: "+",
    operator.sub: "-",
    operator.mul: "*",
    operator.floordiv: "//",
    operator.truediv: "/",
    operator.mod: "%",
    operator.lshift: "<<",
    operator.rshift: ">>",
    operator.and_: "&",
    operator.or_: "|",
    operator.xor: "^",
    operator.matmul: "@",
    operator.pow: "**",
    operator.eq: "==",
    operator.ne: "!=",
    operator.lt: "<",
    operator.gt: ">",
    operator.le: "<=",
    operator.ge: ">=",
}
_UNARY = {operator.neg: "-", operator.pos: "+", operator.invert: "~"}


@dataclass
class PythonCode:
    """`src`: the source; `globals`: the names it needs; `lines`: node name → its line in `src`
    (from 1).
    """

    src: str
    globals: dict[str, Any]
    lines: dict[str, int] = field(default_factory=dict)


def python_code(graph: Graph, root: str = "self", verbose: bool = False) -> PythonCode:
    """Write `def forward(self, …)`. A value's last reader also drops it, so that memory is
    freed early.
    """
    return _Writer(graph, root, verbose).write()


class _Writer:
    def __init__(self, graph: Graph, root: str, verbose: bool) -> None:
        self.graph, self.root, self.verbose = graph, root, verbose
        self.globals: dict[str, Any] = {}
        self.names = Names()
        for n in graph.nodes:
            self.names._used.add(n.name)

    def write(self) -> PythonCode:
        last: dict[Node, list[Node]] = {}
        seen: set[Node] = set()
        for node in reversed(self.graph.nodes):
            for n in node.all_input_nodes:
                if n not in seen:
                    seen.add(n)
                    last.setdefault(node, []).append(n)
        parameters, body, result = [], [], ""
        where: dict[str, int] = {}
        for node in self.graph.nodes:
            if node.op == "placeholder":
                parameters.append(self.parameter(node))
                raw = node.target.lstrip("*")
                if raw != node.name:
                    body.append(f"{node.name} = {raw}")
                if not node.users:
                    continue
            elif node.op == "output":
                result = f" -> {type_text(node.type)}" if node.type is not None else ""
                body.append(f"return {self.value(node.args[0])}")
            else:
                kind = f" : {self.annotation(node.type)}" if node.type is not None else ""
                text = f"{node.name}{kind} = {self.call(node)}"
                drop = [n.name for n in last.get(node, [])]
                if not node.users:
                    drop.append(node.name)
                if drop:
                    text += f";  {' = '.join(drop)} = None"
                if self.verbose and "origin" in node.meta:
                    text += f"  # {node.meta['origin']}"
                body.append(text)
            where[node.name] = len(body) + 3
        head = f"def forward({', '.join([self.root, *parameters])}){result}:"
        lines = body or ["pass"]
        src = "\n\n\n" + head + "\n" + "".join(f"    {line}\n" for line in lines)
        return PythonCode(src, self.globals, {k: v + 1 for k, v in where.items()})

    def parameter(self, node: Node) -> str:
        kind = f" : {self.annotation(node.type)}" if node.type is not None else ""
        default = f" = {self.value(node.args[0])}" if node.args else ""
        return f"{node.target}{kind}{default}"

    def annotation(self, t: Any) -> str:
        if isinstance(t, type) and t.__module__ == "builtins":
            return t.__name__
        return self.bind(getattr(t, "__name__", "annotation"), t)

    def call(self, node: Node) -> str:
        args, kwargs = node.args, node.kwargs
        if node.op == "get_attr":
            return path(self.root, node.target)
        if node.op == "call_module":
            return f"{path(self.root, node.target)}({self.arguments(args, kwargs)})"
        if node.op == "call_method":
            return f"{self.operand(args[0])}.{node.target}({self.arguments(args[1:], kwargs)})"
        fn = node.target
        if not kwargs:
            if fn in _BINARY and len(args) == 2:
                return f"{self.operand(args[0])} {_BINARY[fn]} {self.operand(args[1])}"
            if fn in _UNARY and len(args) == 1:
                return f"{_UNARY[fn]}{self.operand(args[0])}"
            if fn is operator.getitem and len(args) == 2:
                return f"{self.operand(args[0])}[{self.index(args[1])}]"
            if (
                fn is getattr
                and len(args) == 2
                and isinstance(args[1], str)
                and args[1].isidentifier()
            ):
                return f"{self.operand(args[0])}.{args[1]}"
        return f"{self.function(fn)}({self.arguments(args, kwargs)})"

    def arguments(self, args: Any, kwargs: Any) -> str:
        return ", ".join(
            [*map(self.value, args), *(f"{k} = {self.value(v)}" for k, v in kwargs.items())]
        )

    def operand(self, value: Any) -> str:
        text = self.value(value)
        return text if isinstance(value, Node) else f"({text})" if text.startswith("-") else text

    def index(self, value: Any) -> str:
        if isinstance(value, tuple) and value and not hasattr(value, "_fields"):
            return f"({', '.join(map(self.value, value))}{',' if len(value) == 1 else ''})"
        return self.value(value)

    def value(self, v: Any) -> str:
        """An argument as source."""
        if isinstance(v, Node):
            return v.name
        if isinstance(v, tuple):
            inner = ", ".join(map(self.value, v))
            if hasattr(v, "_fields"):
                return f"{self.bind(type(v).__name__, type(v))}({inner})"
            return f"({inner},)" if len(v) == 1 else f"({inner})"
        if isinstance(v, list):
            return f"[{', '.join(map(self.value, v))}]"
        if isinstance(v, dict):
            return "{" + ", ".join(f"{k!r}: {self.value(x)}" for k, x in v.items()) + "}"
        if isinstance(v, slice):
            return f"slice({self.value(v.start)}, {self.value(v.stop)}, {self.value(v.step)})"
        if isinstance(v, float) and not math.isfinite(v):
            self.globals.setdefault("inf", math.inf)
            self.globals.setdefault("nan", math.nan)
            return repr(v)
        if (
            v is None
            or isinstance(v, (bool, int, float, complex, str, bytes))
            and type(v).__module__ == "builtins"
        ):
            return repr(v)
        if v is Ellipsis:
            return "..."
        if isinstance(v, dt.dtype):
            return self.torch(repr(v)[6:], v) or self.bind("dtype", v)
        if isinstance(v, device):
            self.globals.setdefault("device", device)
            return f"device({str(v)!r})"
        if callable(v):
            return self.function(v)
        return self.bind(type(v).__name__.lower(), v)

    def function(self, fn: Any) -> str:
        """A name for a callable: as users write it where there is such a name, else a global."""
        name = callable_name(fn)
        if hasattr(fn, "schema"):  # an operator of the registry itself
            return self.torch(f"ops.{fn}", fn) or self.bind(ident(fn), fn)
        module = getattr(fn, "__module__", "") or ""
        if module == "builtins" and getattr(sys.modules["builtins"], name, None) is fn:
            return name
        if module == "_operator":
            return self.bind(f"operator_{name}", fn)
        op = getattr(fn, "op", None)
        for space, names in registry.FUNCTIONS.items():
            if name in names and registry.function(name, space) is fn:
                text = self.torch(name if space == "torch" else f"{space}.{name}", fn)
                if text is not None:
                    return text
        if op is not None and hasattr(op, "namespace"):
            return self.bind(ident(op), fn)
        if module.startswith("torchlab."):
            text = self.torch(f"{module[9:]}.{name}", fn)
            if text is not None:
                return text
        return self.bind(
            f"{module}_{name}".replace(".", "_") if module and module != "__main__" else name, fn
        )

    def torch(self, dotted: str, value: Any) -> str | None:
        """`torch.<dotted>` if that is `value` in the imported package."""
        package = at = sys.modules.get("torchlab")
        if package is None:
            return None
        try:
            for part in dotted.split("."):
                at = getattr(at, part)
        except AttributeError:
            return None
        if at is not value:
            return None
        self.globals["torch"] = package
        return f"torch.{dotted}"

    def bind(self, name: str, value: Any) -> str:
        """A global name for any object."""
        for known, other in self.globals.items():
            if other is value:
                return known
        chosen = self.names.create(name)
        self.globals[chosen] = value
        return chosen


def path(root: str, target: str) -> str:
    """`self.layers.0.weight` as Python: parts that are no identifiers go through getattr."""
    text = root
    for part in target.split("."):
        text = f"{text}.{part}" if part.isidentifier() else f'getattr({text}, "{part}")'
    return text

"""A recorded program: its graph, and how it runs.

Source: https://docs.pytorch.org/docs/2.13/generated/torch.jit.trace.html
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable
from typing import Any

from torchlab._core.tensor import Tensor
from torchlab.fx.graph import Graph
from torchlab.fx.node import Node
from torchlab.jit._types import told
from torchlab.jit.tracing_leaves import Leaf
from torchlab.jit.tracing_recorder import PURE, UnderAutocast
from torchlab.jit.tracing_tensors import mapped
from torchlab.overrides import resolve_name


class _Slot:
    """The place of a value while the program runs."""

    __slots__ = ("index",)

    def __init__(self, index: int) -> None:
        self.index = index


class Program:
    """name: what it is called; owner: the class of its module, or ""; inputs: (name, example's
    structure); constants: the tensors that it holds; place: of a node, the user's line."""

    def __init__(
        self,
        name: str,
        owner: str,
        inputs: list[tuple[str, Any]],
        graph: Graph,
        constants: list[Tensor],
    ) -> None:
        self.name, self.owner, self.inputs = name, owner, inputs
        self.graph = graph
        self.constants = constants
        for node in reversed(list(graph.nodes)):
            if node.op == "call_function" and node.target in PURE and not node.users:
                graph.erase_node(node)
        self._compile()

    def _compile(self) -> None:
        slots = {node: _Slot(i) for i, node in enumerate(self.graph.nodes)}

        def slot(x: Any) -> Any:
            return slots[x] if isinstance(x, Node) else x

        last: dict[Node, Node] = {}
        for node in self.graph.nodes:
            for used in node.all_input_nodes:
                last[used] = node
        self._steps: list[tuple[Any, ...]] = []
        for node in self.graph.nodes:
            ended = [slots[n].index for n, at in last.items() if at is node]
            args, kwargs = mapped(node.args, slot), mapped(dict(node.kwargs), slot)
            self._steps.append((node.op, node.target, args, kwargs, ended, node.meta.get("place")))

    def leaves(self) -> list[Leaf]:
        """The modules whose forwards are calls of this program."""
        found = [s[1].fn if isinstance(s[1], UnderAutocast) else s[1] for s in self._steps]
        return [t for t in found if isinstance(t, Leaf)]

    # ---- the declaration -------------------------------------------------------------------------

    @property
    def schema(self) -> str:
        """Parameters and the result with their types."""
        shown = [f"{_kind(example)} {name}" for name, example in self.inputs]
        if self.owner:
            shown.insert(0, f"__torch__.{self.owner} self")
        return f"{self.name}({', '.join(shown)}) -> {_kind(self._result())}"

    def _result(self) -> Any:
        return next(n for n in self.graph.nodes if n.op == "output").args[0]

    def bind(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Any]:
        """The arguments of a call in order; RuntimeError as PyTorch's for what does not fit."""
        offset = 1 if self.owner else 0
        n = len(args) + len(kwargs)
        if n > len(self.inputs):
            raise RuntimeError(
                f"{self.name}() expected at most {len(self.inputs) + offset} argument(s) but"
                f" received {n + offset} argument(s). Declaration: {self.schema}"
            )
        names = [name for name, _ in self.inputs]
        given = dict(zip(names, args, strict=False))
        for key, value in kwargs.items():
            if key not in names or key in given:
                fault = "Unknown keyword argument" if key not in names else "Two values for"
                raise RuntimeError(
                    f"{fault} '{key}' for operator '{self.name}'. Schema: {self.schema}"
                )
            given[key] = value
        for i, (name, example) in enumerate(self.inputs):
            if name not in given:
                raise RuntimeError(
                    f"{self.name}() is missing value for argument '{name}'. Declaration:"
                    f" {self.schema}"
                )
            if not _fits(given[name], example):
                raise RuntimeError(
                    f"{self.name}() Expected a value of type '{_kind(example)}' for argument"
                    f" '{name}' but instead found type '{told(given[name])}'.\nPosition:"
                    f" {i + offset}\nValue: {given[name]!r}\nDeclaration: {self.schema}\nCast error"
                    f" details: Unable to cast {given[name]!r} to {_kind(example)}"
                )
        return [given[name] for name in names]

    # ---- running ---------------------------------------------------------------------------------

    def __call__(self, root: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Run with the tensors of `root`."""
        inputs = iter(self.bind(args, kwargs))
        values: list[Any] = []

        def value(x: Any) -> Any:
            return values[x.index] if type(x) is _Slot else x

        for op, target, args_, kwargs_, ended, place in self._steps:
            if op == "call_function":
                try:
                    values.append(target(*mapped(args_, value), **mapped(kwargs_, value)))
                except Exception as e:
                    if place is not None:
                        e.add_note(f"in the traced program, recorded at {place[0]}:{place[1]}")
                    raise
            elif op == "placeholder":
                values.append(next(inputs))
            elif op == "get_attr":
                values.append(self._attribute(root, target))
            else:
                return mapped(args_[0], value)
            for i in ended:
                values[i] = None
        raise AssertionError("a program without an output")

    def _attribute(self, root: Any, path: str) -> Any:
        if path.startswith("_constant") and path[9:].isdigit():
            return self.constants[int(path[9:])]
        *modules, name = path.split(".")
        for m in modules:
            root = root._modules[m]
        found = root._parameters.get(name)
        return root._buffers[name] if found is None else found

    def copied(self, copy: Callable[[Any], Any]) -> Program:
        """The program with copies of what it holds, for a copy of its module."""
        made = object.__new__(Program)
        made.__dict__.update(self.__dict__)
        made.constants = [copy(t) for t in self.constants]
        made._steps = [(s[0], _copied(s[1]), *s[2:]) for s in self._steps]
        return made

    # ---- text ------------------------------------------------------------------------------------

    def code(self) -> str:
        """The program as one would write it."""
        own = ["self", *(f"{n}: {_kind(e)}" for n, e in self.inputs)]
        lines = [f"def {self.name}({', '.join(own if self.owner else own[1:])}):"]
        for node in self.graph.nodes:
            if node.op == "get_attr":
                constant = node.target.startswith("_constant")
                source = f"CONSTANTS.c{node.target[9:]}" if constant else f"self.{node.target}"
                lines.append(f"  {node.name} = {source}")
            elif node.op == "call_function":
                given = [_text(a) for a in node.args]
                given += [f"{k}={_text(v)}" for k, v in node.kwargs.items()]
                lines.append(f"  {node.name} = {_callee(node.target)}({', '.join(given)})")
            elif node.op == "output":
                lines.append(f"  return {_text(node.args[0])}")
        return "\n".join(lines) + "\n"


def _copied(target: Any) -> Any:
    if isinstance(target, UnderAutocast):
        return UnderAutocast(_copied(target.fn), target.kind, target.dtype)
    return target.copied() if isinstance(target, Leaf) else target


def _callee(target: Any) -> str:
    if isinstance(target, UnderAutocast):
        return f"autocast({target.kind!r}, {target.dtype}, {_callee(target.fn)})"
    if isinstance(target, Leaf):
        return f"self.{target.path}.forward" if target.path else "self.forward"
    if target is operator.getitem:
        return "operator.getitem"
    return resolve_name(target) or getattr(target, "__qualname__", None) or repr(target)


def _text(x: Any) -> str:
    if isinstance(x, Node):
        return x.target if x.op == "placeholder" else x.name
    if isinstance(x, tuple):
        inner = ", ".join(_text(v) for v in x)
        return f"({inner},)" if len(x) == 1 else f"({inner})"
    if isinstance(x, list):
        return f"[{', '.join(_text(v) for v in x)}]"
    if isinstance(x, dict):
        return "{" + ", ".join(f"{k!r}: {_text(v)}" for k, v in x.items()) + "}"
    if isinstance(x, slice):
        return f"slice({_text(x.start)}, {_text(x.stop)}, {_text(x.step)})"
    return re.sub(r" at 0x[0-9a-f]+", "", repr(x))


def _kind(example: Any) -> str:
    """A structure of tensors as a type."""
    if isinstance(example, dict):
        key = next(iter(example), "")
        inner = _kind(example[key]) if example else "Tensor"
        return f"Dict({'int' if isinstance(key, int) else 'str'}, {inner})"
    if isinstance(example, tuple):
        return f"({', '.join(_kind(x) for x in example)})"
    if isinstance(example, list):
        return f"{_kind(example[0]) if example else 'Tensor'}[]"
    return "Tensor"


def _fits(value: Any, example: Any) -> bool:
    if isinstance(example, dict):
        return isinstance(value, dict) and all(
            k in value and _fits(value[k], v) for k, v in example.items()
        )
    if isinstance(example, tuple):
        return (
            isinstance(value, tuple)
            and len(value) == len(example)
            and all(_fits(v, e) for v, e in zip(value, example, strict=True))
        )
    if isinstance(example, list):
        fits = isinstance(value, (list, tuple)) and len(value) >= len(example)
        return fits and all(_fits(v, e) for v, e in zip(value, example, strict=False))
    return isinstance(value, Tensor)


__all__ = ["Program"]

"""The tape's nodes from the vjp formulas of the declarations."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from typing import Any

from torchlab._core.dispatch import registry
from torchlab._core.dispatch.generate.source import NAMESPACE, compile_source
from torchlab._core.tape import MultiNode, Node

_FACTS = {
    "shape": "{0}._a.shape",
    "dtype": "{0}._k.dtype",
    "device": "{0}._k.device",
    "ndim": "{0}._a.ndim",
    "strides": "strides_of({0})",
    "shapes": "[y._a.shape for y in {0}]",  # of a list of tensors
    "dtypes": "[y._k.dtype for y in {0}]",
}


@dataclass
class Formula:
    """One formula: the arguments it differentiates, its text, and what it needs from the
    forward."""

    targets: tuple[str, ...]
    text: str
    tensors: list[str] = field(default_factory=list)
    results: list[str] = field(default_factory=list)
    values: list[str] = field(default_factory=list)


@dataclass
class Plan:
    """What the call must record and what the node must keep."""

    targets: list[str]  # differentiable arguments in schema order: the node's `next`
    lists: set[str]  # those that are lists of tensors
    formulas: list[Formula]
    outputs: int
    class_name: str
    saved: dict[str, list[str]]  # tensor argument or result → targets whose formula uses it
    values: dict[str, str]  # value slot → expression at the call


class _Facts(ast.NodeTransformer):
    """`self.shape` in a formula saves the shape, not the tensor."""

    def __init__(self, tensors: set[str]) -> None:
        self.tensors = tensors
        self.found: dict[str, str] = {}

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        self.generic_visit(node)
        v = node.value
        if isinstance(v, ast.Name) and v.id in self.tensors and node.attr in _FACTS:
            name = f"{v.id}_{node.attr}"
            self.found[name] = _FACTS[node.attr].format(v.id)
            return ast.copy_location(ast.Name(name, ast.Load()), node)
        return node


def node_name(op: Any) -> str:
    if op.grad_name:
        name = op.grad_name.split("|")[0].partition(":")[0]
        return name if "Backward" in name or name == "NotImplemented" else name + "Backward0"
    base = op.name.rstrip("_")
    return "".join(p[:1].upper() + p[1:] for p in base.split("_") if p) + "Backward0"


class _AtDefaults(ast.NodeTransformer):
    """`a if alpha == 1 else b` where alpha is known to have its default: a."""

    def __init__(self, defaults: dict[str, Any]) -> None:
        self.defaults = defaults

    def visit_IfExp(self, node: ast.IfExp) -> ast.AST:
        test = node.test
        if (
            isinstance(test, ast.Compare)
            and isinstance(test.left, ast.Name)
            and test.left.id in self.defaults
            and isinstance(test.ops[0], ast.Eq)
        ):
            same = ast.literal_eval(test.comparators[0]) == self.defaults[test.left.id]
            return self.visit(node.body if same else node.orelse)
        return self.generic_visit(node)


def plan_at_defaults(op: Any) -> Plan:
    """The plan of calls whose numbers all have their defaults (add and sub with alpha=1)."""
    found = op._cache.get("plan_at_defaults")
    if found is None:
        fold = _AtDefaults({a.name: a.default for a in op.schema.arguments if a.has_default})
        vjp = {
            key: ast.unparse(fold.visit(ast.parse(text, mode="eval")))
            for key, text in op.vjp.items()
        }
        found = op._cache["plan_at_defaults"] = _read(op, vjp)
    return found


def plan(op: Any) -> Plan:
    """Read the formulas of `op` once."""
    found = op._cache.get("plan")
    if found is None:
        found = op._cache["plan"] = _read(op, op.vjp or op.write_vjp)
    return found


def _read(op: Any, vjp: dict[str, str]) -> Plan:
    arguments = op.schema.arguments
    kinds = {a.name: a.type for a in arguments}
    tensors = {a.name for a in arguments if a.type.base == "Tensor"}
    outputs = len(op.schema.returns)
    result_names = {"result"} if outputs == 1 else {f"result{i}" for i in range(outputs)}
    keyed = {t.strip(): key for key in vjp for t in key.split(",")}
    targets = [a.name for a in arguments if a.name in keyed]
    saved: dict[str, list[str]] = {}
    values: dict[str, str] = {}
    formulas = []
    for key, text in vjp.items():
        names = tuple(t.strip() for t in key.split(","))
        facts = _Facts(tensors)
        tree = ast.fix_missing_locations(facts.visit(ast.parse(text, mode="eval")))
        f = Formula(names, ast.unparse(tree))
        values.update(facts.found)
        used = {n.id for n in ast.walk(tree) if isinstance(n, ast.Name)}
        for name in sorted(used):
            if name in tensors:
                f.tensors.append(name)
                saved.setdefault(name, []).extend(names)
            elif name in result_names:
                f.results.append(name)
                saved.setdefault(name, []).extend(names)
            elif name in kinds:
                values[name] = name
            elif (
                name in facts.found
                or name in ("g", "grads", "needs", "node")
                or _grad_number(name) is not None
            ):
                pass
            elif name not in NAMESPACE:
                NAMESPACE[name] = _resolve(name, op)
        formulas.append(f)
    formulas.sort(key=lambda f: f.targets)  # PyTorch's nodes run them in this order
    lists = {t for t in targets if kinds[t].list}
    return Plan(targets, lists, formulas, outputs, node_name(op), saved, values)


def _grad_number(name: str) -> int | None:
    return int(name[1:]) if name[:1] == "g" and name[1:].isdigit() else None


class _Late:
    """An operator named in a formula: resolved when backward first calls it."""

    __slots__ = ("name", "call")

    def __init__(self, name: str) -> None:
        self.name = name
        self.call: Any = None

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self.call is None:
            self.call = registry.vjp_helpers.get(self.name) or getattr(registry.aten, self.name)
        return self.call(*args, **kwargs)


def _resolve(name: str, op: Any) -> Any:
    if name in registry.vjp_helpers or name in registry.FACES or name in registry.OPS:
        return _Late(name)  # also where Python has a function of that name: sum, slice, complex
    if name in __builtins__ if isinstance(__builtins__, dict) else hasattr(__builtins__, name):
        return __builtins__[name] if isinstance(__builtins__, dict) else getattr(__builtins__, name)
    return _Late(name)


def node_class(op: Any, p: Plan | None = None) -> type:
    """Generate the class of the tape node of `op`, as a rule from `plan(op)`."""
    p = p or plan(op)
    slots = [f"s_{n}" for n in p.saved]
    extra = [f"v_{n}" for n in p.values] + [f"n_{n}" for n in p.lists]
    parent = "Node" if p.outputs == 1 and not _list_return(op) else "MultiNode"
    lines = [
        f"class {p.class_name}({parent}):",
        f'    """The gradient of {op.text.split(" -> ")[0]}"""',
        f"    __slots__ = {tuple(slots + extra)!r}",
        f"    saves = {tuple(slots)!r}",
        "",
        "    def apply(node, g):",
    ]
    if any(not (f.text == "g" or f.text.startswith("g if ") and not f.tensors) for f in p.formulas):
        lines.append("        nx = node.next")
    numbered = sorted(
        {n for f in p.formulas for n in _names(f.text) if _grad_number(n) is not None}
    )
    for n in numbered:
        lines.append(f"        {n} = g[{n[1:]}]")
    if any("grads" in _names(f.text) for f in p.formulas):
        lines.append("        grads = g")
    for n in p.values:
        lines.append(f"        {n} = node.v_{n}")
    position = _positions(p)
    # PyTorch's nodes unpack all that they saved, in this order, before they compute.
    for n in sorted(p.saved, key=lambda n: (n.startswith("result"), n)):
        get = "unpack_spare" if n in op.spare else "unpack"
        lines.append(f"        {n} = {get}(node.s_{n}, node) if node.s_{n} is not None else None")
    free = {
        f.targets[0] for f in p.formulas if f.text == "g"
    }  # costs nothing: not asked for, not computed
    for t in p.targets:
        if t not in free and not any(
            f.targets == (t,) and f.text.startswith("g if ") for f in p.formulas
        ):
            lines.append(f"        g_{t} = None")
    for f in p.formulas:
        if f.text == "g":
            continue
        if (
            f.text.startswith("g if ") and not f.tensors and not f.results
        ):  # as a rule g itself: do not ask
            lines.append(f"        g_{f.targets[0]} = {f.text}")
            continue
        need = " or ".join(_needed(t, p, position) for t in f.targets)
        lines.append(f"        if {need}:")
        if "needs" in _names(f.text):
            lines.append(
                f"            needs = ({', '.join(_needed(t, p, position) for t in f.targets)},)"
            )
        goal = ", ".join(f"g_{t}" for t in f.targets)
        lines.append(f"            {goal} = {f.text}")
    if not p.lists:
        lines.append(
            f"        return ({', '.join('g' if t in free else f'g_{t}' for t in p.targets)},)"
        )
    else:
        parts = [
            (
                f"*(g_{t} if g_{t} is not None else (None,) * node.n_{t})"
                if t in p.lists
                else "g"
                if t in free
                else f"g_{t}"
            )
            for t in p.targets
        ]
        lines.append(f"        return ({', '.join(parts)},)")
    if not slots:
        lines.append("    spend = apply")
    env = {"Node": Node, "MultiNode": MultiNode}
    cls = compile_source(
        f"{p.class_name} of {op.qualname}", "\n".join(lines) + "\n", env, p.class_name
    )
    cls.op = op
    cls.refuses = all("no_derivative" in f.text for f in p.formulas)
    if p.class_name == "NotImplemented":  # refuses whatever it is asked for
        cls.refuses = True
        cls.apply = cls.spend = _refuses  # type: ignore[attr-defined]
    cls.of_lists = bool(p.lists)
    # "XBackward0|XBackward1": PyTorch has another overload, with a node of its own, where the last
    # operand is a tensor and not a number; a third name: where the first one is a number. A number
    # has no edge; "X:01-" says of which edges the node is made, "-" of one that leads nowhere.
    cls.of_tensor = cls.of_number = cls
    names = (op.grad_name or "").split("|")
    count = len(p.targets)
    tensors = [a.name for a in op.schema.arguments if a.type.base == "Tensor"]
    every = cls.saves
    if len(names) > 1:
        cls.places = _places(names[0], range(count - 1))
        cls.saves = tuple(s for s in every if s != f"s_{tensors[-1]}")  # a number stays for good
    for kind, told in zip(("tensor", "number"), names[1:], strict=False):
        facts: dict[str, Any] = {"__slots__": (), "saves": every}
        if kind == "number":
            facts["saves"] = tuple(s for s in every if s != f"s_{tensors[0]}")
        facts["places"] = _places(told, range(1, count) if kind == "number" else None)
        name = told.partition(":")[0]
        if name == "NotImplemented":
            facts["apply"] = facts["spend"] = _refuses
        made = type(name, (cls,), facts)
        made.__module__ = "torchlab.autograd"
        setattr(cls, f"of_{kind}", made)
    if p.outputs > 1 and not any({"g", "grads"} & _names(f.text) for f in p.formulas):
        cls.used = frozenset(int(n[1:]) for n in numbered)
    cls.__module__ = "torchlab.autograd"
    return cls


def _places(told: str, usual: range | None) -> tuple[int | None, ...] | None:
    """`Node.places` from what follows the name of a node."""
    found = told.partition(":")[2]
    if not found:
        return None if usual is None else tuple(usual)
    return tuple(None if c == "-" else int(c) for c in found)


def _refuses(node: Any, g: Any) -> Any:
    raise RuntimeError(f"derivative for aten::{node.op.name} is not implemented")


def _list_return(op: Any) -> bool:
    r = op.schema.returns
    return len(r) == 1 and r[0].type.list


def _names(text: str) -> set[str]:
    return {n.id for n in ast.walk(ast.parse(text, mode="eval")) if isinstance(n, ast.Name)}


def _positions(p: Plan) -> dict[str, str]:
    at, offset, where = 0, "", {}
    for t in p.targets:
        where[t] = f"{at}{offset}"
        if t in p.lists:
            offset += f" + node.n_{t}"
        else:
            at += 1
    return where


def _needed(t: str, p: Plan, position: dict[str, str]) -> str:
    if t in p.lists:
        start = position[t]
        return f"any(e is not None for e in nx[{start}:{start} + node.n_{t}])"
    return f"nx[{position[t]}] is not None"


def nowhere_lines(p: Plan) -> list[str]:
    """An input whose edge leads nowhere (see `tape.NOWHERE`) is one without an edge to the node."""
    lines = []
    for t in p.targets:
        if t in p.lists:
            lines.append(f"if NOWHERE in e_{t}:")
            lines.append(f"    e_{t} = [None if e is NOWHERE else e for e in e_{t}]")
        else:
            lines += [f"if e_{t} is NOWHERE:", f"    e_{t} = None"]
    return lines


def record_lines(
    op: Any, result: str, *, original: str | None = None, p: Plan | None = None
) -> list[str]:
    """The lines of a call that put a node on the tape. Edges are in `e_<argument>`; the result is
    the tensor named `result` (or `result0` …). `original` replaces `self` where its old value is
    saved by an in-place call."""
    p = p or plan(op)
    mixed = {
        a.name
        for a in op.schema.arguments
        if a.type.base == "Tensor" and op.family in ("binary", "pointwise")
    }
    chosen = "NODE_"
    if (op.grad_name or "").count("|") == 2:
        chosen = (
            "(NODE_.of_number if not isinstance(self, T) else NODE_.of_tensor if"
            " isinstance(other, T) else NODE_)"
        ).replace("other", op.schema.arguments[1].name)
    elif "|" in (op.grad_name or ""):
        last = [a.name for a in op.schema.arguments if a.type.base == "Tensor"][-1]
        chosen = f"(NODE_.of_tensor if isinstance({last}, T) else NODE_)"
    lines = [f"node_ = new({chosen})", "node_._hooks = None", "node_._seq = seq()"]
    edges = ", ".join(f"*e_{t}" if t in p.lists else f"e_{t}" for t in p.targets)
    lines.append(f"node_.next = ({edges},)")
    for t in p.lists:
        lines.append(f"node_.n_{t} = len(e_{t})")
    for name, expression in p.values.items():
        tensor = expression.split("._")[0]
        if tensor != expression and tensor in mixed:
            fallback = {"shape": "()", "dtype": "None", "device": "None", "ndim": "0"}[
                name.rsplit("_", 1)[1]
            ]
            expression = f"{expression} if isinstance({tensor}, T) else {fallback}"
        lines.append(f"node_.v_{name} = {expression}")
    kinds = {a.name: a.type for a in op.schema.arguments}
    for name, targets in p.saved.items():
        wanted = list(dict.fromkeys(targets))
        every = set(wanted) >= set(p.targets)
        need = " or ".join(
            f"any_edge(e_{t})" if t in p.lists else f"e_{t} is not None" for t in wanted
        )
        if name.startswith("result"):
            nr = name[6:] or "0"
            value = f"save_output(node_, {name}, {nr})"
        elif kinds[name].list:
            value = f"[save(x) if x is not None else None for x in {name}]"
        else:
            source = original if name == "self" and original else name
            value = f"save({source})"
            if name in mixed:
                value = f"(save({source}) if isinstance({source}, T) else {source})"
            elif kinds[name].optional:
                value = f"(save({name}) if {name} is not None else None)"
        lines.append(f"node_.s_{name} = {value}" + ("" if every else f" if {need} else None"))
    return lines

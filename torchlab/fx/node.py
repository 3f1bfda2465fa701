"""The node of a graph: one call, with the nodes it reads and those that read it."""

from __future__ import annotations

import builtins
import types
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torchlab.fx.graph import Graph

OPCODES = frozenset(
    ("placeholder", "get_attr", "call_function", "call_method", "call_module", "output")
)

_side_effects: set[Any] = {builtins.print}


def has_side_effect(fn: Any) -> Any:
    """Let dead-code elimination keep the calls of `fn`; usable as a decorator."""
    _side_effects.add(fn)
    return fn


def map_arg(value: Any, fn: Callable[[Node], Any]) -> Any:
    """`value` with every Node in it (in tuples, lists, dicts and slices too) replaced by
    `fn(node)`.
    """
    return map_aggregate(value, lambda x: fn(x) if isinstance(x, Node) else x)


def map_aggregate(value: Any, fn: Callable[[Any], Any]) -> Any:
    """`fn` on every leaf of tuples, lists, dicts and slices; named tuples keep their type."""
    if isinstance(value, tuple):
        parts = [map_aggregate(x, fn) for x in value]
        return type(value)(*parts) if hasattr(value, "_fields") else tuple(parts)
    if isinstance(value, list):
        return [map_aggregate(x, fn) for x in value]
    if isinstance(value, dict):
        return {k: map_aggregate(x, fn) for k, x in value.items()}
    if isinstance(value, slice):
        return slice(*(map_aggregate(x, fn) for x in (value.start, value.stop, value.step)))
    return fn(value)


class Node:
    """One step of a graph.

    op: "placeholder" (target: the parameter's name), "get_attr" (target: a path in the module),
    "call_function" (target: a callable), "call_method" (target: a name; args[0] is `self`),
    "call_module" (target: a path), "output" (args[0]: what is returned).
    meta: free for passes; it survives copies ("origin" holds the source line).
    """

    def __init__(
        self,
        graph: Graph,
        name: str,
        op: str,
        target: Any,
        args: Any,
        kwargs: Any,
        type_expr: Any = None,
    ) -> None:
        if op not in OPCODES:
            raise ValueError(f"op must be one of {sorted(OPCODES)}, got {op!r}")
        if op == "call_function":
            if not callable(target):
                raise ValueError(
                    f"Node [graph = {graph}, name = '{name}'] target {target} has type "
                    f"{type(target)} but a Callable is expected"
                )
        elif not isinstance(target, str):
            raise ValueError(
                f"Node [graph = {graph}, name = '{name}'] target {target} has type "
                f"{type(target)} but a str is expected"
            )
        self.graph = graph
        self.name = name
        self.op = op
        self.target = target
        self.type = type_expr
        self.users: dict[Node, None] = {}
        self._input_nodes: dict[Node, None] = {}
        self.meta: dict[str, Any] = {}
        self._prev = self._next = self
        self._erased = False
        self._args: tuple[Any, ...] = ()
        self._kwargs: dict[str, Any] = {}
        self._update(args, kwargs)

    # ---- what it reads ---------------------------------------------------------------------------

    def _update(self, args: Any, kwargs: Any) -> None:
        for n in self._input_nodes:
            n.users.pop(self, None)
        found: dict[Node, None] = {}
        map_arg((args, kwargs), lambda n: found.setdefault(n))
        self._args, self._kwargs, self._input_nodes = tuple(args), dict(kwargs), found
        for n in found:
            n.users[self] = None

    @property
    def args(self) -> tuple[Any, ...]:
        """The positional arguments; assign a new tuple to change them."""
        return self._args

    @args.setter
    def args(self, value: Any) -> None:
        self._update(value, self._kwargs)

    @property
    def kwargs(self) -> dict[str, Any]:
        """The keyword arguments; assign a new dict to change them."""
        return self._kwargs

    @kwargs.setter
    def kwargs(self, value: Any) -> None:
        self._update(self._args, value)

    @property
    def all_input_nodes(self) -> list[Node]:
        """The nodes that this one reads, each once."""
        return list(self._input_nodes)

    def update_arg(self, idx: int, arg: Any) -> None:
        """Replace positional argument number `idx`."""
        args = list(self._args)
        args[idx] = arg
        self.args = tuple(args)

    def insert_arg(self, idx: int, arg: Any) -> None:
        """Insert a positional argument before number `idx`."""
        if not 0 <= idx <= len(self._args):
            raise AssertionError("insert_args index must be between 0 and len(self.args)")
        self.args = (*self._args[:idx], arg, *self._args[idx:])

    def update_kwarg(self, key: str, arg: Any) -> None:
        """Set one keyword argument."""
        self.kwargs = {**self._kwargs, key: arg}

    def replace_input_with(self, old_input: Node, new_input: Node) -> None:
        """Read `new_input` wherever this node read `old_input`."""
        args, kwargs = map_arg(
            (self._args, self._kwargs), lambda n: new_input if n is old_input else n
        )
        self._update(args, kwargs)

    def replace_all_uses_with(
        self, replace_with: Node, delete_user_cb: Callable[[Node], bool] = lambda user: True,
        *, propagate_meta: bool = False,
    ) -> list[Node]:  # fmt: skip
        """Let every user of this node (that `delete_user_cb` accepts) read `replace_with`;
        those users.
        """
        if propagate_meta:
            for key, value in self.meta.items():
                replace_with.meta.setdefault(key, value)
        changed = [u for u in self.users if delete_user_cb(u)]
        for user in changed:
            user.replace_input_with(self, replace_with)
        return changed

    # ---- where it stands -------------------------------------------------------------------------

    @property
    def next(self) -> Node:
        return self._next

    @property
    def prev(self) -> Node:
        return self._prev

    def _unlink(self) -> None:
        self._prev._next, self._next._prev = self._next, self._prev

    def prepend(self, x: Node) -> None:
        """Put (or move) `x` before this node."""
        if x.graph is not self.graph:
            raise AssertionError("Attempting to move a Node into a different Graph")
        if x is self:
            return
        x._unlink()
        p = self._prev
        p._next, x._prev, x._next, self._prev = x, p, self, x

    def append(self, x: Node) -> None:
        """Put (or move) `x` after this node."""
        self._next.prepend(x)

    def is_impure(self) -> bool:
        """Whether dead-code elimination must keep the node: it is an end, or does more than
        compute.
        """
        if self.op in ("placeholder", "output"):
            return True
        if self.op == "call_function":
            return self.target in _side_effects or _writes(callable_name(self.target))
        if self.op == "call_method":
            return _writes(self.target)
        if self.op == "call_module":
            root = self.graph.owning_module
            if root is None:
                return True
            module = root.get_submodule(self.target)
            return bool(getattr(module, "_is_impure", False)) or (
                module.training and bool(list(module.buffers(recurse=False)))
            )
        return False

    # ---- text ------------------------------------------------------------------------------------

    def __repr__(self) -> str:
        return self.name

    def _pretty_print_target(self, target: Any) -> str:
        return target_name(target) if not isinstance(target, str) else target

    def format_node(self) -> str | None:
        """The node as a line of `str(graph)`."""
        kind = f" : {type_text(self.type)}" if self.type is not None else ""
        if self.op == "placeholder":
            default = f"(default={self._args[0]})" if self._args else ""
            return (
                f"%{self.name}{kind} : [num_users={len(self.users)}] = "
                f"placeholder[target={self.target}]{default}"
            )
        if self.op == "output":
            return f"return {format_arg(self._args[0])}"
        head = (
            f"%{self.name}{kind} : [num_users={len(self.users)}] = "
            f"{self.op}[target={self._pretty_print_target(self.target)}]"
        )
        if self.op == "get_attr":
            return head
        return head + f"(args = {format_arg(self._args)}, kwargs = {format_arg(self._kwargs)})"


def _writes(name: str) -> bool:
    return (
        name.endswith("_") and not name.endswith("__") or name == "__setitem__" or name == "setitem"
    )


def type_text(t: Any) -> str:
    """A type annotation as Python would write it."""
    return t.__name__ if isinstance(t, type) else str(t).replace("typing.", "")


def format_arg(arg: Any) -> str:
    """An argument as `str(graph)` shows it: nodes with a percent sign."""
    if isinstance(arg, list):
        return "[" + ", ".join(map(format_arg, arg)) + "]"
    if isinstance(arg, tuple):
        items = ", ".join(map(format_arg, arg))
        return f"({items},)" if len(arg) == 1 else f"({items})"
    if isinstance(arg, dict):
        return "{" + ", ".join(f"{k}: {format_arg(v)}" for k, v in arg.items()) + "}"
    return (
        f"%{arg.name}" if isinstance(arg, Node) else repr(arg) if isinstance(arg, str) else str(arg)
    )


def callable_name(fn: Any) -> str:
    """The short name of a callable; operators of the registry have theirs in `name`."""
    return getattr(fn, "__name__", None) or (
        fn.name if hasattr(fn, "schema") else type(fn).__name__
    )


def target_name(target: Any) -> str:
    """The dotted name of a callable, for people."""
    name = callable_name(target)
    op = target if hasattr(target, "schema") else getattr(target, "op", None)
    if op is not None and hasattr(op, "namespace"):
        return f"torch.ops.{op}" if op is target or not op.public else f"torch.{name}"
    module = getattr(target, "__module__", "") or ""
    if module == "_operator":
        module = "operator"
    if module == "builtins" or isinstance(target, types.BuiltinFunctionType) and not module:
        return name
    if module == "torchlab":
        module = "torch"
    return f"{module}.{name}"

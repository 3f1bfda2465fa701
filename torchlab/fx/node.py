"""The node of a graph: one call, with the nodes it reads and those that read it.

Source: https://docs.pytorch.org/docs/2.13/fx.html#torch.fx.Node
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from torchlab._core.device import device
from torchlab._core.dispatch.tags import Tag
from torchlab._core.dtype import dtype
from torchlab._core.formats import layout, memory_format
from torchlab._core.tensor import Tensor
from torchlab.fx._naming import (
    _get_qualified_name,
    _type_repr,
    callable_name,
    pretty_target,
)
from torchlab.fx.immutable_collections import immutable_dict, immutable_list
from torchlab.fx.operator_schemas import ArgsKwargsPair, normalize_function, normalize_module

if TYPE_CHECKING:
    from torchlab.fx.graph import Graph

__all__ = ["Node", "map_arg", "map_aggregate", "has_side_effect"]

Target = Callable[..., Any] | str
Argument = Any
BaseArgumentTypes = (str, int, float, bool, complex, dtype, Tensor, device, memory_format, layout)
base_types = BaseArgumentTypes

_PACKAGE = __name__.partition(".")[0]
_legal_ops = dict.fromkeys(
    ("placeholder", "call_method", "call_module", "call_function", "get_attr", "output", "root")
)
_side_effectful_functions: set[Any] = {operator.setitem}
_side_effectful_need_to_be_preserved_pre_dispatch: list[Any] = []


def has_side_effect(fn: Any) -> Any:
    """Let dead-code elimination keep the calls of `fn`; usable as a decorator."""
    _side_effectful_functions.add(fn)
    return fn


def map_arg(a: Any, fn: Callable[[Node], Any]) -> Any:
    """`a` with every Node in it (in tuples, lists, dicts and slices too) replaced by `fn(node)`."""
    if not callable(fn):
        raise AssertionError("torch.fx.map_arg(a, fn): fn must be a callable")
    return map_aggregate(a, lambda x: fn(x) if isinstance(x, Node) else x)


def map_aggregate(a: Any, fn: Callable[[Any], Any]) -> Any:
    """`fn` on every leaf of tuples, lists, dicts and slices; named tuples keep their type, lists
    and dicts become immutable ones."""
    if isinstance(a, tuple):
        parts = [map_aggregate(x, fn) for x in a]
        return type(a)(*parts) if hasattr(a, "_fields") else tuple(parts)
    if isinstance(a, list):
        return immutable_list([map_aggregate(x, fn) for x in a])
    if isinstance(a, dict):
        return immutable_dict((k, map_aggregate(x, fn)) for k, x in a.items())
    if isinstance(a, slice):
        return slice(*(map_aggregate(x, fn) for x in (a.start, a.stop, a.step)))
    return fn(a)


class _NodeBase:
    """What a node consists of."""

    __slots__ = (
        "graph", "name", "op", "target", "type", "users", "meta", "_args", "_kwargs",
        "_input_nodes", "_prev", "_next", "_erased", "_index", "_repr_fn",
    )  # fmt: skip
    graph: Graph
    name: str
    op: str
    target: Any
    type: Any
    users: dict[Node, None]
    meta: dict[str, Any]
    _args: tuple[Any, ...]
    _kwargs: dict[str, Any]
    _input_nodes: dict[Node, None]
    _prev: Node
    _next: Node
    _erased: bool
    _index: int
    _repr_fn: Callable[[Node], str] | None


class Node(_NodeBase):
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
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        return_type: Any = None,
    ) -> None:
        if op not in _legal_ops:
            raise AssertionError(f"op '{op}' is not in _legal_ops")
        if op == "call_function":
            if not callable(target):
                raise ValueError(
                    f"Node [graph = {graph}, name = '{name}'] target {target} has type "
                    f"{type(target).__name__} but a Callable is expected"
                )
        elif not isinstance(target, str):
            raise ValueError(
                f"Node [graph = {graph}, name = '{name}'] target {target} has type "
                f"{type(target).__name__} but a str is expected"
            )
        self.graph = graph
        self.name = name
        self.op = op
        self.target = target
        self.type = return_type
        self.users = {}
        self._input_nodes = {}
        self.meta = {}
        self._prev = self._next = self
        self._erased = False
        self._index = 0  # its place in the graph, while `graph._numbered` says so
        self._repr_fn = None
        self._update(args, kwargs)

    # ---- what it reads ---------------------------------------------------------------------------

    def _update(self, args: Any, kwargs: Any) -> None:
        for n in self._input_nodes:
            n.users.pop(self, None)
        found: dict[Node, None] = {}

        def note(n: Node) -> Node:
            found.setdefault(n)
            return n

        self._args, self._kwargs = map_arg(args, note), map_arg(kwargs, note)
        self._input_nodes = found
        for n in found:
            n.users[self] = None

    @property
    def args(self) -> tuple[Any, ...]:
        """The positional arguments; assign a new tuple to change them."""
        return self._args

    @args.setter
    def args(self, a: tuple[Any, ...]) -> None:
        self._update(a, self._kwargs)

    @property
    def kwargs(self) -> dict[str, Any]:
        """The keyword arguments; assign a new dict to change them."""
        return self._kwargs

    @kwargs.setter
    def kwargs(self, k: dict[str, Any]) -> None:
        self._update(self._args, k)

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
            raise AssertionError(
                f"insert_args index must be between 0 and len(self.args), got {idx}"
            )
        self.args = (*self._args[:idx], arg, *self._args[idx:])

    def update_kwarg(self, key: str, arg: Any) -> None:
        """Set one keyword argument."""
        self.kwargs = {**self._kwargs, key: arg}

    def replace_input_with(self, old_input: Node, new_input: Node) -> None:
        """Read `new_input` wherever this node read `old_input`."""
        for hook in getattr(self.graph.owning_module, "_replace_hooks", ()):
            hook(old=old_input, new=new_input.name, user=self)
        args, kwargs = map_arg(
            (self._args, self._kwargs), lambda n: new_input if n is old_input else n
        )
        self._update(args, kwargs)

    def replace_all_uses_with(
        self,
        replace_with: Node,
        delete_user_cb: Callable[[Node], bool] | None = None,
        *,
        propagate_meta: bool = False,
    ) -> list[Node]:
        """Let every user of this node (that `delete_user_cb` accepts) read `replace_with`; those
        users. `propagate_meta`: hand this node's `meta` on, to a node that has none."""
        if propagate_meta:
            if replace_with.meta:
                raise AssertionError(
                    "Called node.replace_all_uses_with(replace_with, propagate_meta=True), "
                    "but replace_with already has .meta keys"
                )
            replace_with.meta.update(self.meta)
        changed = [u for u in self.users if delete_user_cb is None or delete_user_cb(u)]
        for user in changed:
            user.replace_input_with(self, replace_with)
        return changed

    def normalized_arguments(
        self,
        root: Any,
        arg_types: tuple[Any, ...] | None = None,
        kwarg_types: dict[str, Any] | None = None,
        normalize_to_only_use_kwargs: bool = False,
    ) -> ArgsKwargsPair | None:
        """The arguments with their defaults filled in, in the order of the target's signature;
        None where that is not known."""
        if self.op == "call_function":
            return normalize_function(
                self.target,
                self.args,
                self.kwargs,
                arg_types,
                kwarg_types,
                normalize_to_only_use_kwargs,
            )
        if self.op == "call_module":
            return normalize_module(
                root, self.target, self.args, self.kwargs, normalize_to_only_use_kwargs
            )
        return None

    # ---- where it stands -------------------------------------------------------------------------

    @property
    def next(self) -> Node:
        """The node after this one; the graph's root at the end."""
        return self._next

    @property
    def prev(self) -> Node:
        """The node before this one; the graph's root at the start."""
        return self._prev

    def _remove_from_list(self) -> None:
        self._prev._next, self._next._prev = self._next, self._prev

    def prepend(self, x: Node) -> None:
        """Put (or move) `x` before this node."""
        if x.graph is not self.graph:
            raise AssertionError("Attempting to move a Node into a different Graph")
        if x is self:
            return
        x._remove_from_list()
        p = self._prev
        p._next, x._prev, x._next, self._prev = x, p, self, x
        self.graph._numbered = False

    def append(self, x: Node) -> None:
        """Put (or move) `x` after this node."""
        self._next.prepend(x)

    def _place(self) -> int:
        self.graph._number()
        return self._index

    def __lt__(self, other: Node) -> bool:
        return self._place() < other._place()

    def __gt__(self, other: Node) -> bool:
        return self._place() > other._place()

    def __le__(self, other: Node) -> bool:
        return self is other or self < other

    def __ge__(self, other: Node) -> bool:
        return self is other or self > other

    def is_impure(self, impure_random: bool = True) -> bool:
        """Whether dead-code elimination must keep the node. Operators that write (by their schema)
        and, with `impure_random`, that draw random numbers are; methods are not, whatever their
        name, as in PyTorch."""
        if self.op in ("placeholder", "output"):
            return True
        if self.op == "call_function":
            target = self.target
            if target in _side_effectful_functions or _is_assertion(target) or _draws(target):
                return True
            if impure_random and _random(target):
                return True
            parsed = getattr(target, "parsed", None)
            return bool(getattr(parsed, "is_mutable", False))
        if self.op == "call_module":
            root = self.graph.owning_module
            if root is None:
                raise AssertionError("self.graph.owning_module not set for purity check")
            module = root.get_submodule(self.target)
            return bool(getattr(module, "_is_impure", False))
        return False

    # ---- text ------------------------------------------------------------------------------------

    @property
    def stack_trace(self) -> str | None:
        """The user's stack when the node was made, if the tracer recorded it."""
        return self.meta.get("stack_trace", None)

    @stack_trace.setter
    def stack_trace(self, trace: str | None) -> None:
        self.meta["stack_trace"] = trace

    def __repr__(self) -> str:
        return self._repr_fn(self) if self._repr_fn is not None else self.name

    @staticmethod
    def _pretty_print_target(target: object) -> str:
        return pretty_target(target)

    def format_node(
        self,
        placeholder_names: list[str] | None = None,
        maybe_return_typename: list[str] | None = None,
        *,
        include_tensor_metadata: bool = False,
    ) -> str | None:
        """The node as a line of `str(graph)`.

        placeholder_names: the names of placeholders go into this list, and the result is None;
        maybe_return_typename: [""], whose entry becomes the return annotation at the output.
        """
        kind = f"{_type_repr(self.type)} " if self.type else ""
        if include_tensor_metadata and "tensor_meta" in self.meta:
            kind += f"{_metadata_text(self.meta['tensor_meta'])} "
        head = f"%{self.name} : {kind}[num_users={len(self.users)}] = "
        if self.op == "placeholder":
            if placeholder_names is not None:
                name = self.target.replace(".", "_")
                shown = f"{name} : {_type_repr(self.type)}" if self.type else name
                placeholder_names.append(shown)
                return None
            default = f"(default={self._args[0]})" if self._args else ""
            return f"{head}{self.op}[target={self.target}]{default}"
        if self.op == "get_attr":
            return f"{head}{self.op}[target={self._pretty_print_target(self.target)}]"
        if self.op == "output":
            if self.type and maybe_return_typename:
                maybe_return_typename[0] = f" -> {_type_repr(self.type)}"
            return f"return {self._args[0]}"
        return (
            f"{head}{self.op}[target={self._pretty_print_target(self.target)}]"
            f"(args = {_format_arg(self._args)}, kwargs = {_format_arg(self._kwargs)})"
        )

    def _rename(self, candidate: str) -> None:
        if candidate == self.name:
            return
        self.name = self.graph._graph_namespace.create_name(candidate, None)
        self.graph._graph_namespace._rename_object(self, self.name)


def _is_assertion(target: Any) -> bool:
    return getattr(target, "__name__", "") in ("_assert", "_assert_async")


_RANDOM = frozenset(
    """
    bernoulli binomial cauchy exponential geometric log_normal multinomial native_dropout normal
    poisson rand rand_like randint randint_like randn randn_like random randperm rrelu_with_noise
    uniform _standard_gamma _sample_dirichlet _fused_dropout
    """.split()
)
_RANDOM_FUNCTIONS = frozenset(
    """
    bernoulli multinomial normal poisson rand rand_like randint randint_like randn randn_like
    randperm
    """.split()
)


def _random(target: Any) -> bool:
    """Whether an operator draws random numbers."""
    name = getattr(target, "_opname", None)  # an overload
    if name is None and hasattr(target, "_qualified_op_name"):  # all overloads
        name = target.__name__
    if name is None and hasattr(target, "schema"):  # a declaration
        name = target.name
    return name in _RANDOM or Tag.nondeterministic_seeded in getattr(target, "tags", ())


def _draws(target: Any) -> bool:
    """Whether it is a function of torch's that draws random numbers, as users call it."""
    name = getattr(target, "__name__", "")
    return getattr(target, "__module__", "") == _PACKAGE and name in _RANDOM_FUNCTIONS


def _metadata_text(meta: Any) -> str:
    return f"{meta}"


def _format_arg(arg: object, max_list_len: float = float("inf")) -> str:
    """An argument as `str(graph)` shows it: nodes with a percent sign."""
    if hasattr(arg, "_custom_fx_repr_fn"):
        return str(arg._custom_fx_repr_fn())
    if isinstance(arg, (list, tuple)):
        if isinstance(arg, tuple) and hasattr(arg, "_fields"):
            return str(arg)
        shown = [_format_arg(x) for i, x in enumerate(arg) if i < max_list_len]
        if len(arg) > max_list_len:
            shown.append(f"...[total_len={len(arg)}]")
        text = ", ".join(shown)
        if isinstance(arg, list):
            return f"[{text}]"
        return f"({text},)" if len(arg) == 1 else f"({text})"
    if isinstance(arg, dict):
        return "{" + ", ".join(f"{k}: {_format_arg(v)}" for k, v in arg.items()) + "}"
    return f"%{arg.name}" if isinstance(arg, Node) else str(arg)


__all__ += [
    "Argument", "BaseArgumentTypes", "Target", "_format_arg", "_get_qualified_name",
    "_side_effectful_functions", "_type_repr", "base_types", "callable_name",
]  # fmt: skip

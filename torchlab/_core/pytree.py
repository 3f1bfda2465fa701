"""Nested containers as a list of leaves and a structure.

    leaves, spec = tree_flatten({"a": [1, 2]})        # [1, 2], TreeSpec(dict, ['a'], …)
    tree_unflatten([x + 1 for x in leaves], spec)     # {"a": [2, 3]}

Nodes are instances of exactly a registered type: list, tuple, dict, named tuples, OrderedDict,
defaultdict, deque, and what `register_pytree_node` adds. Everything else is a leaf, None too.

Source of the interface: https://docs.pytorch.org/docs/2.13/pytree.html
"""

from __future__ import annotations

import dataclasses
from collections import OrderedDict, defaultdict, deque, namedtuple
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

FlattenFunc = Callable[[Any], tuple[Iterable[Any], Any]]
UnflattenFunc = Callable[[Iterable[Any], Any], Any]


class NodeDef(NamedTuple):
    """How a type of nodes is taken apart and put together again."""

    type: type
    flatten_fn: FlattenFunc
    unflatten_fn: UnflattenFunc
    flatten_with_keys_fn: Callable[[Any], tuple[list[Any], Any]] | None
    serialized_type_name: str | None = None
    to_dumpable_context: Callable[[Any], Any] | None = None
    from_dumpable_context: Callable[[Any], Any] | None = None


@dataclasses.dataclass(frozen=True)
class SequenceKey:
    """The step to an element of a list, tuple or deque."""

    idx: int

    def __str__(self) -> str:
        return f"[{self.idx!r}]"

    def get(self, sequence: Any) -> Any:
        return sequence[self.idx]


@dataclasses.dataclass(frozen=True)
class MappingKey:
    """The step to a value of a dictionary."""

    key: Any

    def __str__(self) -> str:
        return f"[{self.key!r}]"

    def get(self, mapping: Any) -> Any:
        return mapping[self.key]


@dataclasses.dataclass(frozen=True)
class GetAttrKey:
    """The step to an attribute."""

    name: str

    def __str__(self) -> str:
        return f".{self.name}"

    def get(self, obj: Any) -> Any:
        return getattr(obj, self.name)


SUPPORTED_NODES: dict[Any, NodeDef] = {}


def register_pytree_node(
    cls: type,
    flatten_fn: FlattenFunc,
    unflatten_fn: UnflattenFunc,
    *,
    serialized_type_name: str | None = None,
    to_dumpable_context: Any = None,
    from_dumpable_context: Any = None,
    flatten_with_keys_fn: Callable[[Any], tuple[list[Any], Any]] | None = None,
) -> None:
    """Let instances of `cls` be nodes. `flatten_fn(node)` gives (children, context);
    `unflatten_fn(children, context)` makes the node again. ValueError if there is one already."""
    if cls in SUPPORTED_NODES:
        raise ValueError(f"{cls} is already registered as pytree node.")
    if (to_dumpable_context is None) != (from_dumpable_context is None):
        raise ValueError(
            f"Both to_dumpable_context and from_dumpable_context for {cls} must be None or"
            " registered."
        )
    SUPPORTED_NODES[cls] = NodeDef(
        cls,
        flatten_fn,
        unflatten_fn,
        flatten_with_keys_fn,
        serialized_type_name,
        to_dumpable_context,
        from_dumpable_context,
    )


@dataclasses.dataclass(frozen=True)
class ConstantNode:
    """What a node without leaves was: the context in its structure."""

    value: Any


_CONSTANTS: set[type] = set()


def register_constant(cls: type) -> None:
    """Let instances of `cls` be nodes without leaves; they live in the structure. TypeError if
    they have no `__eq__` or no `__hash__` of their own."""
    if cls.__eq__ is object.__eq__:
        raise TypeError(
            "register_constant(cls) expects `cls` to have a non-default `__eq__` implementation."
        )
    if cls.__hash__ is None:
        raise TypeError(
            "register_constant(cls) expects `cls` to have a non-default `__hash__` implementation."
        )

    def flatten(node: Any) -> tuple[list[Any], Any]:
        return [], ConstantNode(node)

    register_pytree_node(cls, flatten, lambda _, c: c.value, flatten_with_keys_fn=flatten)
    _CONSTANTS.add(cls)


def is_constant_class(cls: type) -> bool:
    """Whether it was given to `register_constant`."""
    return isinstance(cls, type) and cls in _CONSTANTS


def deregister_pytree_node(cls: type) -> None:
    """Take a registration back. ValueError if there is none."""
    if cls not in SUPPORTED_NODES:
        raise ValueError(f"{cls} is not registered as pytree node.")
    del SUPPORTED_NODES[cls]


def register_dataclass(
    cls: type, *, field_names: list[str] | None = None, drop_field_names: list[str] | None = None,
    serialized_type_name: str | None = None,
) -> None:  # fmt: skip
    """Let instances of a dataclass be nodes: their fields are the children, in order."""
    if not dataclasses.is_dataclass(cls):
        raise ValueError(f"register_dataclass expects a dataclass, got {cls}")
    names = list(field_names or (f.name for f in dataclasses.fields(cls) if f.init))
    names = [n for n in names if n not in (drop_field_names or ())]

    def flatten(node: Any) -> tuple[list[Any], Any]:
        present = [n for n in names if getattr(node, n) is not None]
        missing = [n for n in names if getattr(node, n) is None]
        return [getattr(node, n) for n in present], [present, missing]

    def unflatten(children: Iterable[Any], context: Any) -> Any:
        present, missing = context
        return cls(**dict(zip(present, children, strict=True)), **dict.fromkeys(missing))

    def with_keys(node: Any) -> tuple[list[Any], Any]:
        children, context = flatten(node)
        return [(GetAttrKey(n), c) for n, c in zip(context[0], children, strict=True)], context

    register_pytree_node(
        cls, flatten, unflatten, serialized_type_name=serialized_type_name,
        flatten_with_keys_fn=with_keys,
    )  # fmt: skip


def keyed_sequence(node: Any) -> list[Any]:
    return [(SequenceKey(i), x) for i, x in enumerate(node)]


def _keyed_mapping(node: Any) -> list[Any]:
    return [(MappingKey(k), x) for k, x in node.items()]


register_pytree_node(
    list,
    lambda n: (n, None),
    lambda c, _: list(c),
    serialized_type_name="builtins.list",
    flatten_with_keys_fn=lambda n: (keyed_sequence(n), None),
)
register_pytree_node(
    tuple,
    lambda n: (list(n), None),
    lambda c, _: tuple(c),
    serialized_type_name="builtins.tuple",
    flatten_with_keys_fn=lambda n: (keyed_sequence(n), None),
)
register_pytree_node(
    dict,
    lambda n: (list(n.values()), list(n)),
    lambda c, keys: dict(zip(keys, c, strict=True)),
    serialized_type_name="builtins.dict",
    flatten_with_keys_fn=lambda n: (_keyed_mapping(n), list(n)),
)
_NAMED = NodeDef(
    tuple,
    lambda n: (list(n), type(n)),
    lambda c, cls: cls(*c),
    lambda n: ([(GetAttrKey(f), x) for f, x in zip(n._fields, n, strict=True)], type(n)),
    "collections.namedtuple",
)
# The function stands for all named tuples in structures; their class is the context.
SUPPORTED_NODES[namedtuple] = _NAMED
register_pytree_node(
    OrderedDict,
    lambda n: (list(n.values()), list(n)),
    lambda c, keys: OrderedDict(zip(keys, c, strict=True)),
    serialized_type_name="collections.OrderedDict",
    flatten_with_keys_fn=lambda n: (_keyed_mapping(n), list(n)),
)
register_pytree_node(
    defaultdict,
    lambda n: (list(n.values()), [n.default_factory, list(n)]),
    lambda c, context: defaultdict(context[0], zip(context[1], c, strict=True)),
    serialized_type_name="collections.defaultdict",
    flatten_with_keys_fn=lambda n: (_keyed_mapping(n), [n.default_factory, list(n)]),
)
register_pytree_node(
    deque,
    lambda n: (list(n), n.maxlen),
    lambda c, maxlen: deque(c, maxlen=maxlen),
    serialized_type_name="collections.deque",
    flatten_with_keys_fn=lambda n: (keyed_sequence(n), n.maxlen),
)


def is_namedtuple_class(cls: Any) -> bool:
    """Whether it is a class made by `namedtuple`, or one below it."""
    return (
        isinstance(cls, type)
        and issubclass(cls, tuple)
        and isinstance(getattr(cls, "_fields", None), tuple)
        and all(isinstance(field, str) for field in getattr(cls, "_fields", ()))
        and callable(getattr(cls, "_make", None))
        and callable(getattr(cls, "_asdict", None))
    )


def is_namedtuple_instance(x: Any) -> bool:
    """Whether it is an instance of a class made by `namedtuple`."""
    return is_namedtuple_class(type(x))


def is_structseq_class(cls: Any) -> bool:
    """Whether a class is one of named tuples written in C, such as `torch.return_types.max`."""
    counts = ("n_fields", "n_sequence_fields", "n_unnamed_fields")
    return (
        isinstance(cls, type)
        and issubclass(cls, tuple)
        and all(isinstance(getattr(cls, n, None), int) for n in counts)
    )


def is_structseq_instance(x: Any) -> bool:
    """Whether an object is of such a class."""
    return is_structseq_class(type(x))


def _definition(x: Any) -> NodeDef | None:
    found = SUPPORTED_NODES.get(type(x))
    if found is None and is_namedtuple_instance(x):
        return _NAMED
    return found


def is_namedtuple(x: Any) -> bool:
    """Whether it is a class made by `namedtuple`, or an instance of one."""
    return is_namedtuple_class(x if isinstance(x, type) else type(x))


def tree_is_leaf(tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> bool:
    """Whether nothing in it counts as a child."""
    return (is_leaf is not None and is_leaf(tree)) or _definition(tree) is None


class TreeSpec:
    """The structure of a tree: the type of its root, what else the type needs, the children's
    structures."""

    def __init__(self, type: Any, context: Any, children_specs: list[TreeSpec]) -> None:
        self.type = type
        self.context = context
        self.children_specs = children_specs
        leaf = type is None
        self.num_nodes: int = 1 + sum(c.num_nodes for c in children_specs)
        self.num_leaves: int = 1 if leaf else sum(c.num_leaves for c in children_specs)
        self.num_children = len(children_specs)

    def is_leaf(self) -> bool:
        """Whether it stands for a single leaf."""
        return self.type is None

    def children(self) -> list[TreeSpec]:
        """The children's structures."""
        return list(self.children_specs)

    def child(self, index: int) -> TreeSpec:
        """The structure of one child."""
        return self.children_specs[index]

    def unflatten(self, leaves: Iterable[Any]) -> Any:
        """The tree with these leaves. ValueError if there are too few or too many."""
        values = list(leaves)
        if len(values) != self.num_leaves:
            raise ValueError(
                f"treespec.unflatten(leaves): `leaves` has length {len(values)} but the spec refers"
                f" to a pytree that holds {self.num_leaves} items ({self})."
            )
        return self._build(iter(values))

    def _build(self, leaves: Iterator[Any]) -> Any:
        if self.type is None:
            return next(leaves)
        children = [c._build(leaves) for c in self.children_specs]
        definition = SUPPORTED_NODES.get(self.type, _NAMED)
        return definition.unflatten_fn(children, self.context)

    def flatten_up_to(self, tree: Any) -> list[Any]:
        """The subtrees of `tree` in the places of this structure's leaves. ValueError if it has
        another shape above them."""
        if self.type is None:
            return [tree]
        definition = _definition(tree)
        if definition is None or _node_type(tree) is not self.type:
            raise ValueError(f"Type mismatch; expected {self.type!r}, but got {type(tree)!r}.")
        children, context = definition.flatten_fn(tree)
        children = list(children)
        if len(children) != self.num_children:
            raise ValueError(
                f"Node arity mismatch; expected {self.num_children}, but got {len(children)}."
            )
        if self.type in (dict, OrderedDict, defaultdict):
            want = self.context[1] if self.type is defaultdict else self.context
            if set(want) != set(tree):
                raise ValueError(
                    f"Node keys mismatch; missing key(s): {sorted(set(want) - set(tree))!r},"
                    f" unexpected key(s): {sorted(set(tree) - set(want))!r}."
                )
            children = [tree[k] for k in want]
        elif context != self.context:
            raise ValueError(
                f"Node context mismatch for custom node type {self.type!r}; expected"
                f" {self.context!r}, but got {context!r}."
            )
        found: list[Any] = []
        for spec, child in zip(self.children_specs, children, strict=True):
            found += spec.flatten_up_to(child)
        return found

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, TreeSpec)
            and self.type is other.type
            and self.context == other.context
            and self.children_specs == other.children_specs
        )

    def __hash__(self) -> int:
        return hash((self.type, self.num_leaves, self.num_nodes))

    def _text(self, indent: int) -> str:
        if self.type is None:
            return "*"
        indent += 2
        children = f",\n{' ' * indent}".join(c._text(indent) for c in self.children_specs)
        return f"TreeSpec({self.type.__name__}, {self.context}, [{children}])"

    def __repr__(self) -> str:
        return self._text(0)


class LeafSpec(TreeSpec):
    """The structure of a leaf."""

    def __init__(self) -> None:
        super().__init__(None, None, [])


_LEAF = LeafSpec()


def _node_type(tree: Any) -> Any:
    known = type(tree) in SUPPORTED_NODES
    return namedtuple if not known and is_namedtuple_instance(tree) else type(tree)


def tree_flatten(
    tree: Any, is_leaf: Callable[[Any], bool] | None = None
) -> tuple[list[Any], TreeSpec]:
    """(leaves, structure) of a tree. `is_leaf` may stop above what would be a node."""
    leaves: list[Any] = []
    return leaves, _flatten(tree, leaves, is_leaf)


def _flatten(tree: Any, leaves: list[Any], stop: Callable[[Any], bool] | None) -> TreeSpec:
    definition = None if stop is not None and stop(tree) else _definition(tree)
    if definition is None:
        leaves.append(tree)
        return _LEAF
    children, context = definition.flatten_fn(tree)
    return TreeSpec(_node_type(tree), context, [_flatten(c, leaves, stop) for c in children])


def tree_unflatten(leaves: Iterable[Any], treespec: TreeSpec) -> Any:
    """The tree of this structure with these leaves."""
    if not isinstance(treespec, TreeSpec):
        raise TypeError(
            f"tree_unflatten(leaves, treespec): Expected `treespec` to be instance of TreeSpec but"
            f" got item of type {type(treespec)}."
        )
    return treespec.unflatten(leaves)


def tree_iter(tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> Iterator[Any]:
    """The leaves one after the other."""
    yield from tree_flatten(tree, is_leaf)[0]


def tree_leaves(tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> list[Any]:
    """The leaves."""
    return tree_flatten(tree, is_leaf)[0]


def broadcast_to_and_flatten(
    tree: Any, treespec: TreeSpec, is_leaf: Callable[[Any], bool] | None = None
) -> list[Any] | None:
    """The leaves of `tree`, each as often as `treespec` has leaves below its place; None if
    `treespec` has another shape above them."""
    leaves, above = tree_flatten(tree, is_leaf)
    full = treespec.unflatten([0] * treespec.num_leaves)
    try:
        below = above.flatten_up_to(full)
    except ValueError:
        return None
    return [
        x
        for x, part in zip(leaves, below, strict=True)
        for _ in range(tree_structure(part, is_leaf).num_leaves)
    ]


def arg_tree_leaves(*args: Any, **kwargs: Any) -> list[Any]:
    """The leaves of a call's arguments, in order."""
    return tree_leaves((args, kwargs))


def tree_structure(tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> TreeSpec:
    """The structure."""
    return tree_flatten(tree, is_leaf)[1]


def tree_map(
    func: Callable[..., Any], tree: Any, *rests: Any, is_leaf: Callable[[Any], bool] | None = None
) -> Any:
    """The tree with `func(leaf, …)` in each leaf's place; `rests` have at least that structure."""
    leaves, spec = tree_flatten(tree, is_leaf)
    others = [spec.flatten_up_to(r) for r in rests]
    return spec.unflatten(map(func, leaves, *others))


def tree_map_(
    func: Callable[..., Any], tree: Any, *rests: Any, is_leaf: Callable[[Any], bool] | None = None
) -> Any:
    """Call `func` on each leaf and give the tree as it was."""
    leaves, spec = tree_flatten(tree, is_leaf)
    others = [spec.flatten_up_to(r) for r in rests]
    for values in zip(leaves, *others, strict=True):
        func(*values)
    return tree


Wanted = Any  # a type, a tuple of types, or a predicate


def _matches(wanted: Wanted) -> Callable[[Any], bool]:
    if isinstance(wanted, (type, tuple)):
        return lambda x: isinstance(x, wanted)
    if callable(wanted):
        return wanted
    try:
        isinstance(None, wanted)  # a union of types
    except TypeError:
        raise TypeError("Argument must be a type, a tuple of types, or a callable.") from None
    return lambda x: isinstance(x, wanted)


def map_only(wanted: Wanted) -> Callable[[Callable[[Any], Any]], Callable[[Any], Any]]:
    """A decorator: the function runs on what `wanted` matches; other values stay."""
    matches = _matches(wanted)

    def decorate(func: Callable[[Any], Any]) -> Callable[[Any], Any]:
        return lambda x: func(x) if matches(x) else x

    return decorate


def tree_map_only(
    type_or_types_or_pred: Wanted, func: Callable[[Any], Any], tree: Any,
    is_leaf: Callable[[Any], bool] | None = None,
) -> Any:  # fmt: skip
    """As `tree_map`, on the leaves of these types (or that a predicate takes) only."""
    return tree_map(map_only(type_or_types_or_pred)(func), tree, is_leaf=is_leaf)


def tree_map_only_(
    type_or_types_or_pred: Wanted, func: Callable[[Any], Any], tree: Any,
    is_leaf: Callable[[Any], bool] | None = None,
) -> Any:  # fmt: skip
    """As `tree_map_`, on some leaves only."""
    return tree_map_(map_only(type_or_types_or_pred)(func), tree, is_leaf=is_leaf)


def tree_all(
    pred: Callable[[Any], bool], tree: Any, is_leaf: Callable[[Any], bool] | None = None
) -> bool:
    """Whether `pred` holds for all leaves."""
    return all(map(pred, tree_leaves(tree, is_leaf)))


def tree_any(
    pred: Callable[[Any], bool], tree: Any, is_leaf: Callable[[Any], bool] | None = None
) -> bool:
    """Whether `pred` holds for a leaf."""
    return any(map(pred, tree_leaves(tree, is_leaf)))


def tree_all_only(
    type_or_types: Wanted, pred: Callable[[Any], bool], tree: Any,
    is_leaf: Callable[[Any], bool] | None = None,
) -> bool:  # fmt: skip
    """Whether `pred` holds for all leaves of these types."""
    matches = _matches(type_or_types)
    return all(pred(x) for x in tree_leaves(tree, is_leaf) if matches(x))


def tree_any_only(
    type_or_types: Wanted, pred: Callable[[Any], bool], tree: Any,
    is_leaf: Callable[[Any], bool] | None = None,
) -> bool:  # fmt: skip
    """Whether `pred` holds for a leaf of these types."""
    matches = _matches(type_or_types)
    return any(pred(x) for x in tree_leaves(tree, is_leaf) if matches(x))


# ---- paths --------------------------------------------------------------------------------------

KeyPath = tuple[Any, ...]


def _walk(
    path: KeyPath, tree: Any, stop: Callable[[Any], bool] | None
) -> Iterator[tuple[KeyPath, Any]]:
    definition = None if stop is not None and stop(tree) else _definition(tree)
    if definition is None:
        yield path, tree
        return
    if definition.flatten_with_keys_fn is None:
        raise ValueError(
            f"Did not find a flatten_with_keys_fn for type: {type(tree)}. Please pass a"
            " flatten_with_keys_fn argument to register_pytree_node."
        )
    for key, child in definition.flatten_with_keys_fn(tree)[0]:
        yield from _walk((*path, key), child, stop)


def tree_flatten_with_path(
    tree: Any, is_leaf: Callable[[Any], bool] | None = None
) -> tuple[list[tuple[KeyPath, Any]], TreeSpec]:
    """([(path, leaf), …], structure); a path is a tuple of steps from the root."""
    return list(_walk((), tree, is_leaf)), tree_structure(tree, is_leaf)


def tree_leaves_with_path(
    tree: Any, is_leaf: Callable[[Any], bool] | None = None
) -> list[tuple[KeyPath, Any]]:
    """[(path, leaf), …]."""
    return list(_walk((), tree, is_leaf))


def tree_map_with_path(
    func: Callable[..., Any], tree: Any, *rests: Any, is_leaf: Callable[[Any], bool] | None = None
) -> Any:
    """As `tree_map`, with `func(path, leaf, …)`."""
    pairs, spec = tree_flatten_with_path(tree, is_leaf)
    others = [spec.flatten_up_to(r) for r in rests]
    return spec.unflatten(
        func(path, leaf, *more) for (path, leaf), *more in zip(pairs, *others, strict=True)
    )


def keystr(kp: KeyPath) -> str:
    """A path as one would write it: "['a'][0].x"."""
    return "".join(str(k) for k in kp)


def key_get(obj: Any, kp: KeyPath) -> Any:
    """What lies at the end of a path."""
    for k in kp:
        obj = k.get(obj)
    return obj

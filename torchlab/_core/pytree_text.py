"""Structures of trees as text: `treespec_dumps` and `treespec_loads`.

The text is JSON: [1, {"type": …, "context": …, "children_spec": […]}], where a type goes by the
`serialized_type_name` it was registered with. Reading it imports nothing and calls nothing of
what it names: only registered types, enumerations of modules that are loaded, and built-in types
as a defaultdict's factory are found.

Source of the interface: https://docs.pytorch.org/docs/2.13/pytree.html
"""

from __future__ import annotations

import builtins
import collections
import enum
import json
import sys
from collections.abc import Iterable, Mapping
from typing import Any

from torchlab._core.pytree import (
    SUPPORTED_NODES,
    LeafSpec,
    NodeDef,
    TreeSpec,
    is_namedtuple_class,
    tree_unflatten,
)

_PROTOCOL = 1
_NAMED_TUPLES: dict[type, str] = {}


def register_namedtuple(cls: type, *, serialized_type_name: str) -> None:
    """Let structures with named tuples of this class be written, under that name."""
    if not is_namedtuple_class(cls):
        raise ValueError(f"{cls} is not a class made by namedtuple.")
    _NAMED_TUPLES[cls] = serialized_type_name


class _Encoder(json.JSONEncoder):
    def default(self, o: object) -> Any:
        if isinstance(o, enum.Enum):
            kind = type(o)
            fqn = f"{kind.__module__}:{kind.__qualname__}"
            return {"__enum__": True, "fqn": fqn, "name": o.name}
        return super().default(o)


def _member(written: dict[str, Any]) -> Any:
    """The enumeration's member for what `_Encoder` made of it; other dictionaries stay."""
    if "__enum__" not in written:
        return written
    module, _, name = written["fqn"].partition(":")
    found: Any = sys.modules.get(module)
    for step in name.split("."):
        found = getattr(found, step, None)
    if not (isinstance(found, type) and issubclass(found, enum.Enum)):
        raise TypeError(f"treespec_loads: {written['fqn']} is not an enumeration that is loaded")
    return found[written["name"]]


def _factory(context: Mapping[str, Any]) -> Any:
    home = {"builtins": builtins, "collections": collections}.get(context["default_factory_module"])
    found = getattr(home, context["default_factory_name"], None)
    if not isinstance(found, type):
        raise TypeError(
            "treespec_loads: a defaultdict's factory can be a built-in type, got"
            f" {context['default_factory_module']}.{context['default_factory_name']}"
        )
    return found


def _named_name(cls: type) -> str:
    if cls in _NAMED_TUPLES:
        return _NAMED_TUPLES[cls]
    raise NotImplementedError(
        f"Can't serialize TreeSpec of namedtuple class {cls} because we didn't register a"
        " serializated_type_name. Please register using `_register_namedtuple`."
    )


def _named_class(name: str) -> type:
    for cls, known in _NAMED_TUPLES.items():
        if known == name:
            return cls
    raise NotImplementedError(
        f"Can't deserialize TreeSpec of namedtuple class {name} because we couldn't find a"
        " serializated name."
    )


def _written_context(spec: TreeSpec, definition: NodeDef) -> Any:
    if spec.type is collections.defaultdict:
        factory, keys = spec.context
        return {
            "default_factory_module": factory.__module__,
            "default_factory_name": factory.__qualname__,
            "dict_context": keys,
        }
    if definition.to_dumpable_context is not None:
        return definition.to_dumpable_context(spec.context)
    try:
        return json.dumps(spec.context, cls=_Encoder)
    except TypeError as error:
        raise TypeError(
            "Unable to serialize context. Please make the context json dump-able, or register a"
            " custom serializer using _register_pytree_node."
        ) from error


def _written(spec: TreeSpec) -> dict[str, Any]:
    if spec.is_leaf():
        return {"type": None, "context": None, "children_spec": []}
    name: str | None = "collections.namedtuple"
    if spec.type is collections.namedtuple:
        context: Any = _named_name(spec.context)
    else:
        definition = SUPPORTED_NODES.get(spec.type)
        if definition is None:
            raise NotImplementedError(f"Serializing {spec.type} in pytree is not registered.")
        name = definition.serialized_type_name
        if name is None:
            raise NotImplementedError(
                f"No registered serialization name for {spec.type} found. Please update your"
                " _register_pytree_node call with a `serialized_type_name` kwarg."
            )
        context = _written_context(spec, definition)
    children = [_written(c) for c in spec.children_specs]
    return {"type": name, "context": context, "children_spec": children}


def _read(written: Mapping[str, Any]) -> TreeSpec:
    name, context, below = written["type"], written["context"], written["children_spec"]
    if name is None and context is None and not below:
        return LeafSpec()
    kind: Any = None
    if name == "collections.namedtuple":
        kind, context = collections.namedtuple, _named_class(context)
    else:
        for cls, definition in SUPPORTED_NODES.items():
            if definition.serialized_type_name == name:
                kind = cls
                if cls is collections.defaultdict:
                    context = [_factory(context), context["dict_context"]]
                elif definition.from_dumpable_context is not None:
                    context = definition.from_dumpable_context(context)
                else:
                    context = json.loads(context, object_hook=_member)
                break
        else:
            raise NotImplementedError(f"Deserializing {name} in pytree is not registered.")
    return TreeSpec(kind, context, [_read(c) for c in below])


def _known(protocol: Any) -> None:
    if protocol != _PROTOCOL:
        raise ValueError(f"Unknown protocol {protocol}. Available protocols: {[_PROTOCOL]}")


def treespec_dumps(treespec: TreeSpec, protocol: int | None = None) -> str:
    """The structure as text. NotImplementedError for types registered without a
    `serialized_type_name`, TypeError for a context that JSON cannot hold."""
    if not isinstance(treespec, TreeSpec):
        raise TypeError(
            "Expected `treespec` to be an instance of PyTreeSpec but got item of type"
            f" {type(treespec)}."
        )
    protocol = _PROTOCOL if protocol is None else protocol
    _known(protocol)
    return json.dumps([protocol, _written(treespec)], cls=_Encoder)


def treespec_loads(serialized: str) -> TreeSpec:
    """The structure that `treespec_dumps` wrote."""
    protocol, written = json.loads(serialized)
    _known(protocol)
    return _read(written)


class _Star:
    def __repr__(self) -> str:
        return "*"


def treespec_pprint(treespec: TreeSpec) -> str:
    """The structure as one would write the tree, with * for its leaves."""
    return repr(tree_unflatten([_Star()] * treespec.num_leaves, treespec))


def treespec_leaf() -> LeafSpec:
    """The structure of a leaf."""
    return LeafSpec()


def treespec_tuple(iterable: Iterable[TreeSpec] = (), /) -> TreeSpec:
    """The structure of a tuple of these."""
    children = list(iterable)
    if not all(isinstance(c, TreeSpec) for c in children):
        raise ValueError(f"Expected a tuple of TreeSpec values, got: {children!r}.")
    return TreeSpec(tuple, None, children)


def treespec_dict(
    mapping: Mapping[Any, TreeSpec] | Iterable[tuple[Any, TreeSpec]] = (), /, **kwargs: TreeSpec
) -> TreeSpec:
    """The structure of a dictionary of these."""
    children = dict(mapping, **kwargs)
    if not all(isinstance(c, TreeSpec) for c in children.values()):
        raise ValueError(f"Expected a dictionary of TreeSpec values, got: {children!r}.")
    return TreeSpec(dict, list(children), list(children.values()))

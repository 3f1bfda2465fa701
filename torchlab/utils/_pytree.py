"""`torch.utils._pytree`: nested containers as a list of leaves and a structure.

Source: https://docs.pytorch.org/docs/2.13/pytree.html
"""

from __future__ import annotations

from collections import OrderedDict, defaultdict, deque
from typing import Any

from torchlab._core.pytree import (
    _NAMED,
    SUPPORTED_NODES,
    FlattenFunc,
    GetAttrKey,
    KeyPath,
    LeafSpec,
    MappingKey,
    NodeDef,
    SequenceKey,
    TreeSpec,
    UnflattenFunc,
    arg_tree_leaves,
    is_constant_class,
    is_namedtuple,
    is_namedtuple_class,
    is_namedtuple_instance,
    is_structseq_class,
    is_structseq_instance,
    key_get,
    keystr,
    map_only,
    register_constant,
    register_dataclass,
    register_pytree_node,
    tree_all,
    tree_all_only,
    tree_any,
    tree_any_only,
    tree_flatten,
    tree_flatten_with_path,
    tree_is_leaf,
    tree_iter,
    tree_leaves,
    tree_leaves_with_path,
    tree_map,
    tree_map_,
    tree_map_only,
    tree_map_only_,
    tree_map_with_path,
    tree_structure,
    tree_unflatten,
)
from torchlab._core.pytree import _node_type as _get_node_type
from torchlab._core.pytree import broadcast_to_and_flatten as _broadcast_to_and_flatten
from torchlab._core.pytree import deregister_pytree_node as _deregister_pytree_node
from torchlab._core.pytree import register_pytree_node as _register_pytree_node
from torchlab._core.pytree_text import register_namedtuple as _register_namedtuple
from torchlab._core.pytree_text import (
    treespec_dict,
    treespec_dumps,
    treespec_leaf,
    treespec_loads,
    treespec_pprint,
    treespec_tuple,
)

Context = Any
PyTree = Any

# How the types that are nodes from the start are taken apart, for types of one's own to lean on.
_list_flatten, _list_unflatten, _list_flatten_with_keys = SUPPORTED_NODES[list][1:4]
_tuple_flatten, _tuple_unflatten, _tuple_flatten_with_keys = SUPPORTED_NODES[tuple][1:4]
_dict_flatten, _dict_unflatten, _dict_flatten_with_keys = SUPPORTED_NODES[dict][1:4]
_namedtuple_flatten, _namedtuple_unflatten, _namedtuple_flatten_with_keys = _NAMED[1:4]
_ordereddict_flatten, _ordereddict_unflatten, _ordereddict_flatten_with_keys = SUPPORTED_NODES[
    OrderedDict
][1:4]
_defaultdict_flatten, _defaultdict_unflatten, _defaultdict_flatten_with_keys = SUPPORTED_NODES[
    defaultdict
][1:4]
_deque_flatten, _deque_unflatten, _deque_flatten_with_keys = SUPPORTED_NODES[deque][1:4]

__all__ = [
    "Context",
    "FlattenFunc",
    "GetAttrKey",
    "KeyPath",
    "LeafSpec",
    "MappingKey",
    "NodeDef",
    "SUPPORTED_NODES",
    "PyTree",
    "SequenceKey",
    "TreeSpec",
    "UnflattenFunc",
    "_broadcast_to_and_flatten",
    "_defaultdict_flatten",
    "_defaultdict_flatten_with_keys",
    "_defaultdict_unflatten",
    "_deque_flatten",
    "_deque_flatten_with_keys",
    "_deque_unflatten",
    "_deregister_pytree_node",
    "_dict_flatten",
    "_dict_flatten_with_keys",
    "_dict_unflatten",
    "_get_node_type",
    "_list_flatten",
    "_list_flatten_with_keys",
    "_list_unflatten",
    "_namedtuple_flatten",
    "_namedtuple_flatten_with_keys",
    "_namedtuple_unflatten",
    "_ordereddict_flatten",
    "_ordereddict_flatten_with_keys",
    "_ordereddict_unflatten",
    "_register_namedtuple",
    "_register_pytree_node",
    "_tuple_flatten",
    "_tuple_flatten_with_keys",
    "_tuple_unflatten",
    "arg_tree_leaves",
    "is_constant_class",
    "is_namedtuple",
    "is_namedtuple_class",
    "is_namedtuple_instance",
    "is_structseq_class",
    "is_structseq_instance",
    "key_get",
    "keystr",
    "map_only",
    "register_constant",
    "register_dataclass",
    "register_pytree_node",
    "tree_all",
    "tree_all_only",
    "tree_any",
    "tree_any_only",
    "tree_flatten",
    "tree_flatten_with_path",
    "tree_is_leaf",
    "tree_iter",
    "tree_leaves",
    "tree_leaves_with_path",
    "tree_map",
    "tree_map_",
    "tree_map_only",
    "tree_map_only_",
    "tree_map_with_path",
    "tree_structure",
    "tree_unflatten",
    "treespec_dict",
    "treespec_dumps",
    "treespec_leaf",
    "treespec_loads",
    "treespec_pprint",
    "treespec_tuple",
]

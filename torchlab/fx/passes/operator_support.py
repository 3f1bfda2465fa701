"""Which nodes a backend takes.

Source: https://docs.pytorch.org/docs/2.13/fx.html
"""

from __future__ import annotations

import abc
from collections.abc import Callable, Mapping
from typing import Any

from torchlab._core.dtype import dtype
from torchlab.fx.node import Node
from torchlab.fx.passes.shape_prop import TensorMetadata
from torchlab.fx.passes.tools_common import CALLABLE_NODE_OPS, get_node_target
from torchlab.nn.module import Module

__all__ = [
    "OperatorSupportBase",
    "OperatorSupport",
    "create_op_support",
    "chain",
    "OpSupports",
    "any_chain",
]

SupportedArgumentDTypes = Any
SupportDict = Mapping[str, SupportedArgumentDTypes]
IsNodeSupported = Callable[[Mapping[str, Module], Node], bool]


class OperatorSupportBase(abc.ABC):
    """Says of a node whether it is supported."""

    @abc.abstractmethod
    def is_node_supported(self, submodules: Mapping[str, Module], node: Node) -> bool:
        """Whether the node may go to the backend. submodules: path → module."""
        raise NotImplementedError


class OperatorSupport(OperatorSupportBase):
    """Supports the targets in a dict: name → None (any arguments), or (dtypes allowed of each
    positional argument, {keyword: dtypes allowed}); the dtypes are those of `meta["tensor_meta"]`.
    Nodes that call nothing are supported."""

    _support_dict: SupportDict = {}

    def __init__(self, support_dict: SupportDict | None = None) -> None:
        self._support_dict = support_dict or {}

    def is_node_supported(self, submodules: Mapping[str, Module], node: Node) -> bool:
        """Whether the node's target is in the dict and its arguments' dtypes are allowed."""
        if node.op not in CALLABLE_NODE_OPS:
            return True
        target = get_node_target(submodules, node)
        if target not in self._support_dict:
            return False
        allowed = self._support_dict[target]
        if allowed is None:
            return True
        by_place, by_name = allowed
        for i, dtypes in enumerate(by_place):
            if len(node.args) <= i:
                break
            arg = node.args[i]
            if isinstance(arg, Node) and _get_arg_dtype(arg) not in dtypes:
                return False
        for name, dtypes in by_name.items():
            arg = node.kwargs.get(name)
            if isinstance(arg, Node) and _get_arg_dtype(arg) not in dtypes:
                return False
        return True


def create_op_support(is_node_supported: IsNodeSupported) -> OperatorSupportBase:
    """A support that asks a function."""

    class FunctionalOperatorSupport(OperatorSupportBase):
        def is_node_supported(self, submodules: Mapping[str, Module], node: Node) -> bool:
            return is_node_supported(submodules, node)

    return FunctionalOperatorSupport()


def chain(*op_support: OperatorSupportBase) -> OperatorSupportBase:
    """Supported if all say so."""
    return create_op_support(
        lambda sub, node: all(x.is_node_supported(sub, node) for x in op_support)
    )


def any_chain(*op_support: OperatorSupportBase) -> OperatorSupportBase:
    """Supported if one of them says so."""
    return create_op_support(
        lambda sub, node: any(x.is_node_supported(sub, node) for x in op_support)
    )


class OpSupports:
    """Supports that are often wanted."""

    @classmethod
    def decline_if_input_dtype(cls, dtype: dtype) -> OperatorSupportBase:
        """No node that reads a tensor of this dtype."""

        def ask(submodules: Mapping[str, Module], node: Node) -> bool:
            return all(_get_arg_dtype(arg) != dtype for arg in node.all_input_nodes)

        return create_op_support(ask)

    @classmethod
    def decline_if_node_in_names(cls, disallow_set: set[str]) -> OperatorSupportBase:
        """No node with one of these names."""
        return create_op_support(lambda submodules, node: node.name not in disallow_set)


def _get_arg_dtype(arg: Node) -> Any:
    meta = arg.meta.get("tensor_meta")
    return meta.dtype if isinstance(meta, TensorMetadata) else arg.meta["type"]

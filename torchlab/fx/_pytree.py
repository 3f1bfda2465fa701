"""Taking nested arguments apart along a structure that is known beforehand: what the code of
graphs traced with nested `concrete_args` calls.

Source: https://docs.pytorch.org/docs/2.13/fx.html#torch.fx.symbolic_trace
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

from torchlab._core.pytree import LeafSpec, TreeSpec, _definition, is_namedtuple_instance

__all__ = ["SUPPORTED_NODES", "register_pytree_flatten_spec", "tree_flatten_spec"]

FlattenFuncSpec = Callable[[Any, TreeSpec], list[Any]]
SUPPORTED_NODES: dict[type, FlattenFuncSpec] = {}


def register_pytree_flatten_spec(
    cls: type,
    flatten_fn_spec: FlattenFuncSpec,
    flatten_fn_exact_match_spec: Any = None,
) -> None:
    """How instances of `cls` are taken apart along a TreeSpec."""
    SUPPORTED_NODES[cls] = flatten_fn_spec


def tree_flatten_spec(
    pytree: Any, spec: TreeSpec, exact_structural_match: bool = False
) -> list[Any]:
    """The leaves of `pytree` in the places that `spec` names. A structure with more entries than
    `spec` gives the first ones; with fewer is an error, as is another key."""
    if isinstance(spec, LeafSpec) or not spec.children_specs:
        return [pytree] if isinstance(spec, LeafSpec) else []
    own = SUPPORTED_NODES.get(spec.type)
    if own is not None:
        children = own(pytree, spec)
    elif isinstance(pytree, dict):
        children = [pytree[k] for k in spec.context]
    elif isinstance(pytree, (list, tuple, deque)) or is_namedtuple_instance(pytree):
        children = list(pytree)[: len(spec.children_specs)]
    else:
        definition = _definition(pytree)
        if definition is None:
            raise RuntimeError(
                f"{type(pytree)} does not have a flatten_fn_spec associated with it. Please "
                "register one with torch.fx._pytree.register_pytree_flatten_spec. If you have "
                "serialized your model, make sure that any custom pytrees have been registered "
                "before loading it."
            )
        children = list(definition.flatten_fn(pytree)[0])
    if exact_structural_match and len(children) != len(spec.children_specs):
        raise ValueError(f"Cannot flatten {type(pytree).__name__}: it has another size than {spec}")
    leaves: list[Any] = []
    for child, inner in zip(children, spec.children_specs, strict=False):
        leaves += tree_flatten_spec(child, inner, exact_structural_match)
    return leaves

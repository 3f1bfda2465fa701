"""Which modules of a model would lie in pieces of their own: functions that `fully_shard`'s callers
choose among.

Each is asked (module, recurse, nonwrapped_numel): with `recurse`, whether to look at the module's
children; else whether it is one.

Source: https://docs.pytorch.org/docs/2.13/fsdp.html
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from torchlab.nn.containers import ModuleDict, ModuleList
from torchlab.nn.module import Module
from torchlab.nn.multihead_attention import MultiheadAttention

__all__ = ["always_wrap_policy", "size_based_auto_wrap_policy", "transformer_auto_wrap_policy"]


def always_wrap_policy(*args: Any, **kwargs: Any) -> bool:
    """All of them."""
    return True


def transformer_auto_wrap_policy(
    module: Module, recurse: bool, nonwrapped_numel: int, transformer_layer_cls: Collection[type]
) -> bool:
    """Those of the classes given."""
    return recurse or isinstance(module, tuple(transformer_layer_cls))


def size_based_auto_wrap_policy(
    module: Module, recurse: bool, nonwrapped_numel: int, min_num_params: int = 100_000_000,
    force_leaf_modules: set[type] | None = None, exclude_wrap_modules: set[type] | None = None,
) -> bool:  # fmt: skip
    """Those that have at least `min_num_params` parameters left. Not what is in
    `force_leaf_modules` (attention), nor `exclude_wrap_modules` themselves (lists of modules)."""
    leaves = {MultiheadAttention} if force_leaf_modules is None else force_leaf_modules
    never = {ModuleList, ModuleDict} if exclude_wrap_modules is None else exclude_wrap_modules
    large = nonwrapped_numel >= min_num_params
    if recurse:
        return large and not isinstance(module, tuple(leaves))
    return large and not isinstance(module, tuple(never))

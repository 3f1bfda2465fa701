"""What leaf modules are made of, noted at the nodes that call them.

Source: https://docs.pytorch.org/docs/2.13/fx.html
"""

from __future__ import annotations

from typing import Any

from torchlab import nn
from torchlab.fx.graph_module import GraphModule
from torchlab.nn.module import Module

__all__ = ["default_matching", "extract_attrs_for_lowering", "lift_lowering_attrs_to_nodes"]


def default_matching(name: str, target_version: int) -> str:
    """A parameter's name in another version of its module; here always the same."""
    return name


# class → (version, the attributes that say what it computes)
module_fetch_book: dict[type, tuple[int, list[str], Any]] = {
    nn.Linear: (1, ["weight", "bias"], default_matching),
    nn.Conv2d: (
        1,
        ["weight", "bias", "kernel_size", "stride", "padding", "dilation", "groups",
         "padding_mode"],
        default_matching,
    ),
    nn.BatchNorm2d: (2, ["weight", "bias", "running_mean", "running_var", "eps"], default_matching),
    nn.AdaptiveAvgPool2d: (1, [], default_matching),
    nn.MaxPool2d: (
        1,
        ["kernel_size", "stride", "padding", "dilation", "return_indices", "ceil_mode"],
        default_matching,
    ),
    nn.ReLU: (1, ["inplace"], default_matching),
}  # fmt: skip


def extract_attrs_for_lowering(mod: Module) -> dict[str, Any]:
    """The attributes of a module that a backend needs, and its class's name. RuntimeError if the
    module is newer than what is known of it, or unknown."""
    attrs: dict[str, Any] = {"name": f"torch.nn.modules.{_home(mod)}.{type(mod).__name__}"}
    if type(mod) not in module_fetch_book:
        return attrs
    version, names, matching = module_fetch_book[type(mod)]
    if version < getattr(mod, "_version", 1):
        raise RuntimeError(
            f"Fetcher version {version} try to fetch {type(mod)} version {mod._version}, please "
            "upgrade the module_fetch_book, open an issue and @842974287 or report a bug to AIACC "
            "team directly."
        )
    for name in names:
        attrs[name] = getattr(mod, matching(name, mod._version))
    return attrs


def _home(mod: Module) -> str:
    return type(mod).__module__.rpartition(".")[2]


def lift_lowering_attrs_to_nodes(fx_module: GraphModule) -> None:
    """`node.attrs_for_lowering` of every node that calls a leaf module; modules inside that are
    graphs are gone through, too."""
    modules = dict(fx_module.named_modules())
    for node in fx_module.graph.nodes:
        if node.op != "call_module":
            continue
        inner = modules[node.target]
        if isinstance(inner, GraphModule):
            lift_lowering_attrs_to_nodes(inner)
        else:
            found = extract_attrs_for_lowering(inner)
            node.attrs_for_lowering = found  # type: ignore[attr-defined]

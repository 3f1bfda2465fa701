"""Arithmetic and parts that several models share."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

from torchlab import nn


def _make_divisible(v: float, divisor: int, min_value: int | None = None) -> int:
    """`v` rounded to a multiple of `divisor`, at least `min_value` and at least 0.9 v."""
    floor = divisor if min_value is None else min_value
    made = max(floor, int(v + divisor / 2) // divisor * divisor)
    return made + divisor if made < 0.9 * v else made


class IntermediateLayerGetter(nn.ModuleDict):
    """The outputs of some direct children of a model: {its name in the result: output}.

    `return_layers` maps children to those names. ValueError for a name that is no child.
    """

    def __init__(self, model: nn.Module, return_layers: dict[str, str]) -> None:
        names = [n for n, _ in model.named_children()]
        if not set(return_layers).issubset(names):
            raise ValueError("return_layers are not present in model")
        missing = {str(k) for k in return_layers}
        layers: OrderedDict[str, nn.Module] = OrderedDict()
        for name, module in model.named_children():
            layers[name] = module
            missing.discard(name)
            if not missing:
                break
        super().__init__(layers)
        self.return_layers = {str(k): str(v) for k, v in return_layers.items()}

    def forward(self, x: Any) -> OrderedDict[str, Any]:
        out: OrderedDict[str, Any] = OrderedDict()
        for name, module in self.items():
            x = module(x)
            if name in self.return_layers:
                out[self.return_layers[name]] = x
        return out


__all__ = ["IntermediateLayerGetter"]

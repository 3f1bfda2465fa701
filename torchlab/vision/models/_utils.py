"""Arithmetic and parts that several models share, and torchvision's older ways to ask for weights.

Source: https://docs.pytorch.org/vision/0.28/models.html
"""

from __future__ import annotations

import functools
import inspect
import warnings
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Any

from torchlab import nn
from torchlab.vision.models._api import WeightsEnum


def _make_divisible(v: float, divisor: int, min_value: int | None = None) -> int:
    """`v` rounded to a multiple of `divisor`, at least `min_value` and at least 0.9 v."""
    floor = divisor if min_value is None else min_value
    made = max(floor, int(v + divisor / 2) // divisor * divisor)
    return made + divisor if made < 0.9 * v else made


class IntermediateLayerGetter(nn.ModuleDict):
    """The outputs of some direct children of a model: {its name in the result: output}.

    `return_layers` maps children to those names. ValueError for a name that is no child.
    """

    _version = 2

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
        self.return_layers = return_layers

    def forward(self, x: Any) -> OrderedDict[str, Any]:
        out: OrderedDict[str, Any] = OrderedDict()
        for name, module in self.items():
            x = module(x)
            if name in self.return_layers:
                out[self.return_layers[name]] = x
        return out


# ---- arguments ----------------------------------------------------------------------------------


def _listed(names: Sequence[str]) -> str:
    """'a', 'b', and 'c'."""
    *rest, last = (f"'{n}'" for n in names)
    if not rest:
        return last
    return ", ".join(rest) + (" and " if len(rest) == 1 else ", and ") + last


def kwonly_to_pos_or_kw(fn: Callable[..., Any]) -> Callable[..., Any]:
    """`fn` with its keyword-only parameters also by position, which warns.

    TypeError if it has no such parameter.
    """
    names = list(inspect.signature(fn).parameters)
    kinds = [p.kind for p in inspect.signature(fn).parameters.values()]
    if inspect.Parameter.KEYWORD_ONLY not in kinds:
        raise TypeError(f"Found no keyword-only parameter on function '{fn.__name__}'")
    start = kinds.index(inspect.Parameter.KEYWORD_ONLY)

    @functools.wraps(fn)
    def call(*args: Any, **kwargs: Any) -> Any:
        if len(args) > start:
            named = dict(zip(names[start:], args[start:], strict=False))
            warnings.warn(
                f"Using {_listed(list(named))} as positional parameter(s) is deprecated since 0.13"
                " and may be removed in the future. Please use keyword parameter(s) instead.",
                stacklevel=2,
            )
            kwargs.update(named)
        return fn(*args[:start], **kwargs)

    return call


def handle_legacy_interface(
    **weights: tuple[str, Any],
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Let a model's function take what torchvision took before its version 0.13, with warnings:
    arguments by position, and `pretrained=True` for weights.

    Each keyword is a parameter for weights, with its former name and the weights that True meant,
    or a function that gives them for the dictionary of keyword arguments.
    """

    def wrap(builder: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(builder)
        def call(*args: Any, **kwargs: Any) -> Any:
            for name, (former, default) in weights.items():
                given = kwargs.get(name)
                by_name = name not in kwargs
                if by_name and former not in kwargs:
                    continue
                if not by_name and (
                    given is None
                    or isinstance(given, WeightsEnum)
                    or (isinstance(given, str) and given != "legacy")
                ):
                    continue
                if not by_name:  # by position, and so under the new name
                    kwargs[former] = kwargs.pop(name)
                kwargs[name] = _chosen(builder.__name__, name, former, default, kwargs, by_name)
                del kwargs[former]
            return builder(*args, **kwargs)

        return kwonly_to_pos_or_kw(call)

    return wrap


def _chosen(
    model: str, name: str, former: str, default: Any, kwargs: dict[str, Any], by_name: bool
) -> WeightsEnum | None:
    """The weights that the former argument means."""
    chosen = None
    if kwargs[former]:
        chosen = default(kwargs) if callable(default) else default
        if not isinstance(chosen, WeightsEnum):
            raise ValueError(f"No weights available for model {model}")
    if by_name:
        warnings.warn(
            f"The parameter '{former}' is deprecated since 0.13 and may be removed in the future,"
            f" please use '{name}' instead.",
            stacklevel=4,
        )
    text = (
        f"Arguments other than a weight enum or `None` for '{name}' are deprecated since 0.13 and"
        " may be removed in the future. The current behavior is equivalent to passing"
        f" `{name}={chosen}`."
    )
    if chosen is not None:
        text += (
            f" You can also use `{name}={type(chosen).__name__}.DEFAULT` to get the most up-to-date"
            " weights."
        )
    warnings.warn(text, stacklevel=4)
    return chosen


# The names, with their slip, are torchvision's: libraries import them.


def _ovewrite_named_param(kwargs: dict[str, Any], param: str, new_value: Any) -> None:
    """Set an argument that weights fix. ValueError if another value is given."""
    if kwargs.setdefault(param, new_value) != new_value:
        _refuse(param, new_value, kwargs[param])


def _ovewrite_value_param(param: str, actual: Any, expected: Any) -> Any:
    """The value that weights fix. ValueError if another is given."""
    if actual is not None and actual != expected:
        _refuse(param, expected, actual)
    return expected


def _refuse(param: str, expected: Any, actual: Any) -> None:
    raise ValueError(f"The parameter '{param}' expected value {expected} but got {actual} instead.")


class _ModelURLs(dict[str, str]):
    """Addresses of weights by the models' names; reading one warns."""

    def __getitem__(self, item: str) -> str:
        warnings.warn(
            "Accessing the model URLs via the internal dictionary of the module is deprecated since"
            " 0.13 and may be removed in the future. Please access them via the appropriate Weights"
            " Enum instead.",
            stacklevel=2,
        )
        return super().__getitem__(item)


__all__ = ["IntermediateLayerGetter"]

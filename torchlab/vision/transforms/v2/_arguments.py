"""How the arguments of the transforms' constructors are checked and completed."""

from __future__ import annotations

import numbers
from collections.abc import Sequence
from typing import Any


def check_probability(p: float) -> float:
    if not 0.0 <= p <= 1.0:
        raise ValueError("`p` should be a floating point value in the interval [0.0, 1.0].")
    return p


def fills_of(fill: Any) -> dict[Any, Any]:
    """The fill for each type of input, by type; under "others" what the rest gets.

    TypeError for what is no number, sequence of numbers or None.
    """
    by_type = fill if isinstance(fill, dict) else {"others": fill}
    return {kind: _one_fill(value) for kind, value in by_type.items()}


def _one_fill(fill: Any) -> Any:
    if not (fill is None or isinstance(fill, (numbers.Number, tuple, list))):
        raise TypeError(
            "Got inappropriate fill arg, only Numbers, tuples, lists and dicts are allowed."
        )
    return [float(value) for value in fill] if isinstance(fill, (tuple, list)) else fill


def fill_for(fills: dict[Any, Any], inpt: Any) -> Any:
    """The fill for `inpt`: 0 where nothing was said about its type."""
    kind = type(inpt)
    return fills[kind] if kind in fills else fills.get("others", 0)


def pair_of_numbers(given: Any, name: str) -> list[float]:
    """[x, y] from one number or a sequence of one or two."""
    if not isinstance(given, (int, float, Sequence)):
        raise TypeError(f"{name} should be a number or a sequence of numbers. Got {type(given)}")
    if isinstance(given, (int, float)):
        return [float(given), float(given)]
    if len(given) not in (1, 2):
        raise ValueError(f"If {name} is a sequence its length should be 1 or 2. Got {len(given)}")
    for value in given:
        if not isinstance(value, (int, float)):
            raise ValueError(f"{name} should be a sequence of numbers. Got {type(value)}")
    return [float(given[0]), float(given[-1])]


def check_padding(padding: Any) -> None:
    fits = isinstance(padding, int)
    if isinstance(padding, (tuple, list)):
        fits = len(padding) in (1, 2, 4) and all(isinstance(p, int) for p in padding)
    if not fits:
        raise ValueError(
            f"Padding must be an int or a 1, 2, or 4 element of tuple or list, got {padding}."
        )


def check_padding_mode(mode: str) -> None:
    if mode not in ("constant", "edge", "reflect", "symmetric"):
        raise ValueError("Padding mode should be either constant, edge, reflect or symmetric")

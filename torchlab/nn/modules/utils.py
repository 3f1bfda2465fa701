"""`torch.nn.modules.utils`: sizes for one, two, three dimensions, and names in state dicts.

Source: https://docs.pytorch.org/docs/2.13/nn.html#utilities
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from torchlab.nn._sizes import each_of


def _ntuple(n: int, name: str = "parse") -> Callable[[Any], tuple[Any, ...]]:
    def parse(x: Any) -> tuple[Any, ...]:
        return each_of(x, n)

    parse.__name__ = name
    return parse


_single = _ntuple(1, "_single")
_pair = _ntuple(2, "_pair")
_triple = _ntuple(3, "_triple")
_quadruple = _ntuple(4, "_quadruple")


def _reverse_repeat_tuple(t: Sequence[Any], n: int) -> tuple[Any, ...]:
    """From the last to the first, each n times: what `F.pad` takes of one padding per dimension."""
    return tuple(x for x in reversed(t) for _ in range(n))


def consume_prefix_in_state_dict_if_present(state_dict: dict[str, Any], prefix: str) -> None:
    """Take `prefix` off the names in `state_dict` and its metadata, in place: what DataParallel put
    in front."""
    for key in list(state_dict):
        if key.startswith(prefix):
            state_dict[key[len(prefix) :]] = state_dict.pop(key)
    metadata = getattr(state_dict, "_metadata", None)
    if metadata is None:
        return
    for key in list(metadata):
        if key == "":
            continue
        if key.startswith(prefix) or key == prefix.rstrip("."):
            metadata[key[len(prefix) :]] = metadata.pop(key)


__all__ = ["consume_prefix_in_state_dict_if_present"]

"""`torch.jit.annotations`: names for the annotations of scripts.

    from torch.jit.annotations import BroadcastingList2, List

    @torch.jit.script
    def pooled(x, size: BroadcastingList2[int]):  # pooled(x, 3) is pooled(x, [3, 3])
        return torch.nn.functional.max_pool2d(x, size)

The others are those of `typing`.

Source: https://docs.pytorch.org/docs/2.13/jit_language_reference.html#types
"""

from typing import Any, Dict, List, Optional, Tuple, Union  # noqa: UP035

from torchlab.jit._types import Broadcast
from torchlab.jit.forking import Future


class _BroadcastingList:
    def __init__(self, length: int) -> None:
        self._length = length

    def __getitem__(self, of: Any) -> Broadcast:
        return Broadcast(of, self._length)

    def __repr__(self) -> str:
        return f"BroadcastingList{self._length}"


BroadcastingList1 = _BroadcastingList(1)
BroadcastingList2 = _BroadcastingList(2)
BroadcastingList3 = _BroadcastingList(3)

__all__ = [
    "Any",
    "BroadcastingList1",
    "BroadcastingList2",
    "BroadcastingList3",
    "Dict",
    "Future",
    "List",
    "Optional",
    "Tuple",
    "Union",
]

"""What `all_reduce` and `reduce` do with the processes' values.

Source: https://docs.pytorch.org/docs/2.13/distributed.html#torch.distributed.ReduceOp
"""

from __future__ import annotations

from enum import IntEnum


class ReduceOp:
    """`ReduceOp.SUM` and its like."""

    class RedOpType(IntEnum):
        """The kinds; of one process's value each gives the value itself."""

        SUM = 0
        AVG = 1
        PRODUCT = 2
        MIN = 3
        MAX = 4
        BAND = 5
        BOR = 6
        BXOR = 7

        def __repr__(self) -> str:
            return f"<RedOpType.{self.name}: {int(self)}>"

        def __str__(self) -> str:
            return f"RedOpType.{self.name}"

    SUM, AVG, PRODUCT, MIN, MAX, BAND, BOR, BXOR = RedOpType

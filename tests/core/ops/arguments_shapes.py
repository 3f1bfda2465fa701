"""Example arguments of splitting, membership, histograms and segments, for the generated tests."""

from __future__ import annotations

from typing import Any

from tests.core.ops.values import F, I

SEGMENTS = I([2, 0, 3])
ROWS = I([[1, 2], [3, 0]])

ARGUMENTS: dict[str, list[tuple[Any, ...]]] = {
    "unsafe_split.Tensor": [(F((2, 5)), 2, 1)],
    "unsafe_split_with_sizes": [(F((2, 5)), (1, 4), 1)],
    "isin.Tensor_Tensor": [(I([[1, 2], [3, 4]]), I([2, 4, 6]), False, True)],
    "hash_tensor": [(F(),), (F((2, 3)), (1,), True)],
    "_histogramdd_from_bin_tensors": [
        (F((4, 2)), [F((3,), 0.1, 0.9), F((4,), 0.1, 0.9)], F((4,)), False)
    ],
    "_segmented": [
        (F((5, 2)), "sum", SEGMENTS, None, 0, None),
        (F((5, 2)), "mean", SEGMENTS, None, 0, 0.5),
        (F((5, 2)), "max", SEGMENTS, None, 0, 0.1),
        (F((5,)), "min", None, I([0, 2, 5]), 0, 0.97),
        (F((5, 2)), "prod", SEGMENTS, None, 0, 1.5),
        (F((2, 3)), "prod", ROWS, None, 1, None),
    ],
}

FLAT = frozenset({"hash_tensor", "_histogramdd_from_bin_tensors"})

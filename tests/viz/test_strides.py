"""Why a tensor is not contiguous and why a view fails: examples worked out by hand."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from torchlab.viz.snapshots.strides import (
    cell_of,
    explain_contiguity,
    explain_view,
    indices,
    row_major,
)


@pytest.mark.parametrize(
    ("shape", "stride", "dims", "words"),
    [
        ([4, 3], [1, 4], [0, 1], "exchanged order"),  # arange(12).view(3, 4).t()
        ([3, 3], [4, 1], [0, 1], "would have to be 3 × 1 = 3, but is 4"),  # x[:, :3]
        ([6], [2], [0], "moves 2 cells at a step"),  # x[::2]
        ([3, 4], [1, 0], [1], "expanded"),  # x.expand
        ([2, 4, 3], [12, 1, 4], [1, 2], "exchanged order"),
        ([2, 3, 4, 5], [60, 20, 5, 2], [3], "moves 2 cells"),
        ([3, 2, 4], [4, 12, 1], [1, 2], "would have to be 4 × 1 = 4, but is 12"),
    ],
)
def test_not_contiguous(shape: list[int], stride: list[int], dims: list[int], words: str) -> None:
    answer = explain_contiguity(shape, stride)
    assert not answer["contiguous"]
    assert answer["dims"] == dims
    assert words in answer["reason"]


@pytest.mark.parametrize(
    ("shape", "stride"),
    [([], []), ([3], [1]), ([1], [7]), ([2, 1, 3], [3, 99, 1]), ([0, 5], [1, 1]), ([1, 4], [0, 1])],
)
def test_contiguous(shape: list[int], stride: list[int]) -> None:
    assert explain_contiguity(shape, stride)["contiguous"]


def test_expanded_tensors_overlap() -> None:
    assert explain_contiguity([3, 4], [1, 0])["overlapping"]
    assert not explain_contiguity([4, 3], [1, 4])["overlapping"]


@pytest.mark.parametrize(
    ("shape", "stride", "asked", "dims", "cost"),
    [
        ([4, 3], [1, 4], [12], [0, 1], 96),
        ([3, 4, 3], [20, 5, 1], [3, 12], [1, 2], 288),
        ([2, 3, 4], [12, 1, 3], [2, 12], [1, 2], 192),
        ([2, 3, 4], [12, 1, 3], [6, 4], [0, 1], 192),
        ([4, 3], [1, 4], [2, 6], [0, 1], 96),
    ],
)
def test_view_fails(
    shape: list[int], stride: list[int], asked: list[int], dims: list[int], cost: int
) -> None:
    answer = explain_view(shape, stride, asked, 8)
    assert not answer["ok"]
    assert answer["dims"] == dims
    assert answer["copy_bytes"] == cost


@pytest.mark.parametrize(
    ("shape", "stride", "asked", "result"),
    [
        ([3, 4], [4, 1], [12], [1]),
        ([3, 4], [4, 1], [2, -1, 3], [6, 3, 1]),
        ([4, 3], [1, 4], [2, 2, 3], [2, 1, 4]),  # a dim may be split
        ([3, 4], [8, 1], [3, 2, 2], [8, 2, 1]),
        ([3, 1, 4], [4, 77, 1], [12], [1]),
        ([1, 1], [5, 9], [1], [1]),
        ([6], [0], [2, 3], [0, 0]),
        ([0, 3], [3, 1], [3, 0], [1, 1]),
    ],
)
def test_view_works(
    shape: list[int], stride: list[int], asked: list[int], result: list[int]
) -> None:
    answer = explain_view(shape, stride, asked, 4)
    assert answer["ok"], answer["reason"]
    assert answer["stride"] == result
    assert answer["copy_bytes"] == 0


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ([5, 2], "has 10 elements"),
        ([-1, 5], "do not fill"),
        ([-1, -1], "only one dimension"),
        ([-2], "only one"),
    ],
)
def test_impossible_shapes_are_told_apart_from_layout(asked: list[int], words: str) -> None:
    answer = explain_view([3, 4], [4, 1], asked, 4)
    assert not answer["ok"] and words in answer["reason"]
    assert answer["dims"] == [] and answer["copy_bytes"] == 0


@st.composite
def strided(draw: st.DrawFn) -> tuple[np.ndarray, list[int]]:
    shape = draw(st.lists(st.integers(1, 4), min_size=1, max_size=4))
    order = draw(st.permutations(range(len(shape))))
    array = np.arange(np.prod(shape), dtype=np.int64).reshape([shape[d] for d in order])
    array = array.transpose(np.argsort(order))
    if draw(st.booleans()):
        array = array[..., :: draw(st.integers(1, 2))]
    numel = array.size
    divisors = [d for d in range(1, numel + 1) if numel % d == 0]
    first = draw(st.sampled_from(divisors))
    return array, [first, numel // first]


@given(strided())
def test_against_numpy(case: tuple[np.ndarray, list[int]]) -> None:
    """NumPy's flags and its `reshape(copy=False)` are an independent judge."""
    array, asked = case
    shape, stride = list(array.shape), [s // 8 for s in array.strides]
    assert explain_contiguity(shape, stride)["contiguous"] == array.flags.c_contiguous
    answer = explain_view(shape, stride, asked, 8)
    try:
        viewed = array.reshape(asked, copy=False)
    except ValueError:
        assert not answer["ok"] and answer["copy_bytes"] == array.nbytes
    else:
        assert answer["ok"]
        assert [s for s, n in zip(answer["stride"] or [], asked, strict=True) if n > 1] == [
            s // 8 for s, n in zip(viewed.strides, asked, strict=True) if n > 1
        ]


def test_cells() -> None:
    assert cell_of((2, 1), [1, 4], 3) == 9
    assert list(indices([2, 2])) == [(0, 0), (0, 1), (1, 0), (1, 1)]
    assert list(indices([])) == [()] and list(indices([0, 2])) == []
    assert list(indices([100, 100], 2)) == [(0, 0), (0, 1)]
    assert row_major([2, 3, 4]) == [12, 4, 1]

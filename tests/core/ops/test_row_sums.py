"""Rows added to places that an index names, few and many: as NumPy's `add.at` adds them."""

from __future__ import annotations

import numpy as np
import pytest

import torchlab as torch
from torchlab._core.ops._row_sums import MANY

FEW, LOTS = 12, MANY // 8 + 3  # of 8 columns each


def _given(count: int, kind: str = "float32", n: int = 50) -> tuple[np.ndarray, np.ndarray]:
    draw = np.random.default_rng(count)
    rows = draw.integers(-9, 9, (count, 8)).astype(kind)
    if kind.startswith("complex"):
        rows += 1j * draw.integers(-9, 9, (count, 8)).astype(kind)
    return draw.integers(0, n, count), rows


def _summed(base: np.ndarray, where: np.ndarray, rows: np.ndarray) -> np.ndarray:
    r = base.copy()
    np.add.at(r, where, rows)
    return r


@pytest.mark.parametrize("count", [0, FEW, LOTS])
@pytest.mark.parametrize("kind", ["float32", "float64", "complex64", "int32", "int64", "int8"])
def test_index_add_and_its_relatives(count: int, kind: str) -> None:
    where, rows = _given(count, kind)
    base = np.arange(400).reshape(50, 8).astype(kind)
    wanted = _summed(base, where, rows)
    a, i, src = torch.tensor(base), torch.tensor(where), torch.tensor(rows)
    assert np.array_equal(a.index_add(0, i, src).numpy(), wanted)
    assert np.array_equal(a.scatter_add(0, i[:, None].expand(count, 8), src).numpy(), wanted)
    put = a.index_put((i - 50,), src, accumulate=True)  # counted from the end
    assert np.array_equal(put.numpy(), wanted)
    last = torch.tensor(base.copy())
    last.index_add_(0, i, src)
    assert np.array_equal(last.numpy(), wanted)
    assert np.array_equal(a.numpy(), base)


def test_rows_of_three_dimensions_and_a_broadcast_row() -> None:
    where, rows = _given(LOTS)
    base = np.zeros((50, 2, 4), np.float32)
    a, i = torch.tensor(base), torch.tensor(where)
    wanted = _summed(base, where, rows.reshape(-1, 2, 4))
    assert np.array_equal(a.index_add(0, i, torch.tensor(rows.reshape(-1, 2, 4))).numpy(), wanted)
    ones = a.index_put((i,), torch.ones(()), accumulate=True)
    counts = np.bincount(where, minlength=50).astype(np.float32)
    assert np.array_equal(ones.numpy(), np.broadcast_to(counts[:, None, None], (50, 2, 4)))


def test_infinite_complex_rows_stay_infinite() -> None:
    where, rows = _given(LOTS, "complex64")
    rows[:] = complex(np.inf, 0)
    got = torch.zeros(50, 8, dtype=torch.complex64).index_add(
        0, torch.tensor(where), torch.tensor(rows)
    )
    assert np.isinf(got.real.numpy()).all() and not np.isnan(got.imag.numpy()).any()


@pytest.mark.parametrize("count", [FEW, LOTS])
def test_the_gradient_of_an_embedding(count: int) -> None:
    where, rows = _given(count)
    table = torch.zeros(50, 8, requires_grad=True)
    torch.nn.functional.embedding(torch.tensor(where), table, padding_idx=3).backward(
        torch.tensor(rows)
    )
    wanted = _summed(np.zeros((50, 8), np.float32), where, rows)
    wanted[3] = 0
    assert np.array_equal(table.grad.numpy(), wanted)


@pytest.mark.parametrize("count", [FEW, LOTS])
@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
@pytest.mark.parametrize("kind", ["float32", "float64", "float16", "bfloat16"])
def test_bags(count: int, mode: str, kind: str) -> None:
    where, _ = _given(count)
    table = np.random.default_rng(1).integers(-4, 5, (50, 8)).astype(np.float64)
    cuts = np.sort(np.append(np.random.default_rng(2).integers(0, count, 20), 0))
    cuts[5] = cuts[4]  # an empty bag
    ends = np.append(cuts[1:], count)
    fold = {"sum": np.sum, "mean": np.mean, "max": np.max}[mode]
    wanted = np.stack(
        [
            fold(table[where[a:b]], axis=0) if b > a else np.zeros(8)
            for a, b in zip(cuts, ends, strict=True)
        ]
    )
    got = torch.nn.functional.embedding_bag(
        torch.tensor(where), torch.tensor(table, dtype=getattr(torch, kind)), torch.tensor(cuts),
        mode=mode,
    )  # fmt: skip
    eps = {"float64": 1e-15, "float32": 1e-6, "float16": 2e-3, "bfloat16": 2e-2}[kind]
    np.testing.assert_allclose(got.double().numpy(), wanted, rtol=eps, atol=eps)


def test_weighted_bags() -> None:
    where, _ = _given(LOTS)
    table = np.random.default_rng(1).integers(-4, 5, (50, 8)).astype(np.float32)
    weights = np.random.default_rng(3).integers(-2, 3, LOTS).astype(np.float32)
    rows = table[where] * weights[:, None]
    wanted = np.stack([rows[:1000].sum(0), rows[1000:].sum(0)])
    given = torch.tensor(weights, requires_grad=True)
    got = torch.nn.functional.embedding_bag(
        torch.tensor(where), torch.tensor(table), torch.tensor([0, 1000]), mode="sum",
        per_sample_weights=given,
    )  # fmt: skip
    assert np.array_equal(got.detach().numpy(), wanted)
    got.sum().backward()
    assert np.array_equal(given.grad.numpy(), table[where].sum(1))

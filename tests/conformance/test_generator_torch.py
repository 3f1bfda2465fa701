"""The random stream against PyTorch's: the numbers, and the words that each call consumes."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from torchlab._core.generator import Generator

torch = pytest.importorskip("torch")
ml_dtypes = pytest.importorskip("ml_dtypes")

SIZES = (0, 1, 7, 15, 16, 17, 31, 1000, 2**20)
SEEDS = (0, 1234, 2**32 + 5, 2**64 - 1)
FLOATS = {
    "float32": (np.dtype(np.float32), torch.float32),
    "float64": (np.dtype(np.float64), torch.float64),
    "float16": (np.dtype(np.float16), torch.float16),
    "bfloat16": (np.dtype(ml_dtypes.bfloat16), torch.bfloat16),
}


def numbers(tensor: Any) -> np.ndarray:
    return tensor.double().numpy() if tensor.is_floating_point() else tensor.numpy()


class Pair:
    """The two generators; every comparison ends with a comparison of their whole states."""

    def __init__(self, seed: int) -> None:
        self.ours = Generator().manual_seed(seed)
        self.theirs = torch.Generator().manual_seed(seed)

    def same(self, ours: np.ndarray, theirs: Any, ulp: int = 0) -> None:
        expected = numbers(theirs)
        mine = ours.astype(np.float64) if theirs.is_floating_point() else ours
        if ulp:
            unit = np.spacing(np.abs(ours[np.nonzero(ours)])).astype(np.float64)
            assert (np.abs(mine - expected)[np.nonzero(ours)] <= ulp * unit).all()
        else:
            np.testing.assert_array_equal(mine, expected)
        assert self.ours.get_state().tobytes() == self.theirs.get_state().numpy().tobytes()


@pytest.fixture(params=SEEDS)
def pair(request: pytest.FixtureRequest) -> Pair:
    return Pair(request.param)


@pytest.mark.parametrize("name", FLOATS)
@pytest.mark.parametrize("n", SIZES)
def test_uniform(pair: Pair, n: int, name: str) -> None:
    mine, other = FLOATS[name]
    pair.same(pair.ours.uniform(n, mine), torch.rand(n, dtype=other, generator=pair.theirs))
    for low, high in ((-2.3, 5.7), (0.0, 0.1), (3.0, 3.0)):
        expected = torch.empty(n, dtype=other).uniform_(low, high, generator=pair.theirs)
        pair.same(pair.ours.uniform(n, mine, low, high), expected)


@pytest.mark.parametrize("name", FLOATS)
@pytest.mark.parametrize("n", SIZES)
def test_normal(pair: Pair, n: int, name: str) -> None:
    mine, other = FLOATS[name]
    pair.same(pair.ours.normal(n, dtype=mine), torch.randn(n, dtype=other, generator=pair.theirs))
    expected = torch.empty(n, dtype=other).normal_(-0.7, 2.5, generator=pair.theirs)
    pair.same(pair.ours.normal(n, -0.7, 2.5, mine), expected)


@pytest.mark.parametrize("name", FLOATS)
@pytest.mark.parametrize("n", (0, 1, 7, 16, 17, 1000))
def test_normal_of_a_strided_tensor(pair: Pair, n: int, name: str) -> None:
    mine, other = FLOATS[name]
    for _ in range(3):
        out = np.zeros((n, 2), mine)[:, 1]
        pair.ours.normal_into(out, 0.5, 2)
        expected = torch.zeros(n, 2, dtype=other)[:, 1].normal_(0.5, 2, generator=pair.theirs)
        pair.same(out, expected)


@pytest.mark.parametrize("dtype", ("bool", "uint8", "int8", "int16", "int32", "int64", "float32",
                                   "float64", "float16"))  # fmt: skip
@pytest.mark.parametrize("n", (0, 7, 1000, 10**5))
def test_random(pair: Pair, n: int, dtype: str) -> None:
    expected = torch.empty(n, dtype=getattr(torch, dtype)).random_(generator=pair.theirs)
    pair.same(pair.ours.random(n, np.dtype(dtype)), expected)


@pytest.mark.parametrize("n", (0, 1, 17, 1000, 2**20))
@pytest.mark.parametrize(
    ("low", "high"),
    [(0, 2), (-5, 6), (0, 2**28 - 1), (7, 2**28 + 7), (0, 2**32), (-(2**40), 3),
     (-(2**63), 2**63 - 1), (0, 2**63 - 1)],
)  # fmt: skip
def test_randint(pair: Pair, n: int, low: int, high: int) -> None:
    expected = torch.randint(low, high, (n,), generator=pair.theirs)
    pair.same(pair.ours.randint(n, low, high), expected)


def test_randint_of_all_64_bits(pair: Pair) -> None:
    expected = torch.empty(100, dtype=torch.int64).random_(-(2**63), None, generator=pair.theirs)
    pair.same(pair.ours.randint(100, -(2**63), 2**63), expected)


@pytest.mark.parametrize("n", SIZES)
def test_randperm(pair: Pair, n: int) -> None:
    pair.same(pair.ours.randperm(n), torch.randperm(n, generator=pair.theirs))


@pytest.mark.parametrize("name", FLOATS)
@pytest.mark.parametrize("n", SIZES)
def test_exponential(pair: Pair, n: int, name: str) -> None:
    mine, other = FLOATS[name]
    for rate in (1.0, 2.5):
        expected = torch.empty(n, dtype=other).exponential_(rate, generator=pair.theirs)
        pair.same(pair.ours.exponential(n, rate, mine), expected, ulp=1)


@pytest.mark.parametrize("n", SIZES)
def test_bernoulli(pair: Pair, n: int) -> None:
    for p in (0.0, 0.3, 1.0):
        expected = torch.empty(n, dtype=torch.bool).bernoulli_(p, generator=pair.theirs)
        pair.same(pair.ours.bernoulli_p(n, p), expected)
    for mine, other in FLOATS.values():
        p = torch.linspace(0, 1, n).to(other)
        expected = torch.bernoulli(p, generator=pair.theirs).bool()
        pair.same(pair.ours.bernoulli_tensor(numbers(p).astype(mine)), expected)


@pytest.mark.parametrize("n", (0, 1, 17, 1000, 10**5))
def test_dropout_mask(n: int) -> None:
    torch.manual_seed(11)
    expected = torch.nn.functional.dropout(torch.ones(n), 0.3)
    mask = Generator().manual_seed(11).bernoulli_p(n, 1 - 0.3).astype(np.float32)
    np.testing.assert_array_equal(mask / np.float32(1 - 0.3), expected.numpy())


@pytest.mark.parametrize("name", FLOATS)
@pytest.mark.parametrize("n", (0, 1, 7, 17, 1000, 10**5))
def test_others(pair: Pair, n: int, name: str) -> None:
    mine, other = FLOATS[name]
    empty: Callable[[], Any] = lambda: torch.empty(n, dtype=other)
    expected = empty().log_normal_(0.5, 0.7, generator=pair.theirs)
    pair.same(pair.ours.log_normal(n, 0.5, 0.7, mine), expected)
    pair.same(pair.ours.cauchy(n, 1, 2, mine), empty().cauchy_(1, 2, generator=pair.theirs))
    pair.same(pair.ours.geometric(n, 0.3, mine), empty().geometric_(0.3, generator=pair.theirs))


@pytest.mark.parametrize("name", FLOATS)
@pytest.mark.parametrize("shape", ((3,), (10,), (1000,), (4, 50)))
def test_multinomial(pair: Pair, shape: tuple[int, ...], name: str) -> None:
    mine, other = FLOATS[name]
    p = torch.rand(shape, generator=torch.Generator().manual_seed(3)).add(0.01).to(other)
    weights = numbers(p).astype(mine)
    for k, replacement in ((1, False), (2, False), (3, False), (1, True), (20, True)):
        expected = torch.multinomial(p, k, replacement, generator=pair.theirs)
        pair.same(pair.ours.multinomial(weights, k, replacement), expected)


@pytest.mark.parametrize("rate", (0.0, 0.3, 4.0, 9.99, 10.0, 55.5, 3e4))
def test_poisson(pair: Pair, rate: float) -> None:
    rates = np.full((40, 5), rate)
    expected = torch.poisson(torch.from_numpy(rates), generator=pair.theirs)
    pair.same(pair.ours.poisson(rates), expected)


@pytest.mark.parametrize("seed", range(20))
def test_interleaved_calls(seed: int) -> None:
    pair = Pair(seed)
    ours, g = pair.ours, pair.theirs
    choose = np.random.default_rng(seed)
    for _ in range(60):
        n = int(choose.integers(0, 40))
        which = choose.integers(0, 8)
        if which == 0:
            pair.same(ours.normal(n), torch.randn(n, generator=g))
        elif which == 1:
            expected = torch.randn(n, dtype=torch.float64, generator=g)
            pair.same(ours.normal(n, dtype=np.float64), expected)
        elif which == 2:
            pair.same(ours.uniform(n), torch.rand(n, generator=g))
        elif which == 3:
            pair.same(ours.randint(n, 0, 10), torch.randint(10, (n,), generator=g))
        elif which == 4:
            pair.same(ours.randperm(n), torch.randperm(n, generator=g))
        elif which == 5:
            pair.same(ours.log_normal(n), torch.empty(n).log_normal_(generator=g))
        elif which == 6:
            mask = torch.empty(n, dtype=torch.bool).bernoulli_(0.4, generator=g)
            pair.same(ours.bernoulli_p(n, 0.4), mask)
        else:
            g.set_state(torch.from_numpy(ours.get_state()))
            other = Generator()
            other.set_state(g.get_state().numpy())
            pair.ours = ours = other


@pytest.mark.parametrize("seed", (-1, -(2**63), 0, 2**63, 2**64 - 1))
def test_seeds(seed: int) -> None:
    theirs = torch.Generator().manual_seed(seed)
    assert Generator().manual_seed(seed).initial_seed() == theirs.initial_seed()
    assert Generator().initial_seed() == torch.Generator().initial_seed()


@pytest.mark.parametrize("seed", (1.5, True, "a", 2**64, -(2**63) - 1))
def test_bad_seeds(seed: Any) -> None:
    with pytest.raises((RuntimeError, ValueError)) as theirs:
        torch.Generator().manual_seed(seed)
    with pytest.raises(theirs.type):
        Generator().manual_seed(seed)


def test_little_endian_state() -> None:
    assert sys.byteorder == "little" or len(Generator().get_state()) == 5056

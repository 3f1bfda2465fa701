"""`torchlab.quasirandom`: Sobol points; the values are PyTorch's."""

from __future__ import annotations

import copy

import pytest

import torchlab as tl
from torchlab.quasirandom import SobolEngine


def test_points() -> None:
    engine = SobolEngine(3)
    assert engine.draw(4).tolist() == [[0, 0, 0], [0.5] * 3, [0.75, 0.25, 0.25], [0.25, 0.75, 0.75]]
    assert engine.num_generated == 4
    twin = copy.deepcopy(engine)
    assert engine.draw(2).tolist() == [[0.375, 0.375, 0.625], [0.875, 0.875, 0.125]]
    assert twin.draw(1).tolist() == [[0.375, 0.375, 0.625]]
    assert engine.reset() is engine
    assert engine.draw(2, dtype=tl.float64).tolist() == [[0, 0, 0], [0.5] * 3]


def test_many_dimensions() -> None:
    engine = SobolEngine(SobolEngine.MAXDIM)
    assert engine.sobolstate.sum().item() == 341565579072477
    last = SobolEngine(40).sobolstate.sum(1)[-3:]
    assert last.tolist() == [19135512271, 19389548693, 15776441517]


@pytest.mark.parametrize("skipped", [0, 1, 2, 5, 64, 1000])
def test_fast_forward(skipped: int) -> None:
    drawn, jumped = SobolEngine(5, scramble=True, seed=1), SobolEngine(5, scramble=True, seed=1)
    if skipped:
        drawn.draw(skipped)
    jumped.fast_forward(skipped)
    assert tl.equal(drawn.draw(3), jumped.draw(3))
    assert tl.equal(drawn.fast_forward(7).draw(3), jumped.fast_forward(7).draw(3))


def test_scrambled() -> None:
    engine = SobolEngine(2, scramble=True, seed=0)
    assert engine.shift.tolist() == [510142454, 636217781]
    drawn = engine.draw(3, dtype=tl.float64) * 2**30  # the first point was rounded to float32
    assert drawn[0].tolist() == [510142464, 636217792]
    assert drawn[1:].tolist() == [[621442404, 39859380], [1020774014, 925934870]]
    tl.manual_seed(0)
    other = SobolEngine(2, True)
    assert tl.equal(other.draw(4), engine.reset().draw(4))
    assert repr(engine) == "SobolEngine(dimension=2, scramble=True, seed=0)"
    assert repr(SobolEngine(2)) == "SobolEngine(dimension=2)"


def test_powers_of_two() -> None:
    engine = SobolEngine(2)
    assert engine.draw_base2(2).shape == (4, 2)
    engine.draw_base2(2)
    with pytest.raises(ValueError, match=r"8 points have been previously generated, then: n=8\+2"):
        engine.draw_base2(2)


def test_out() -> None:
    out = tl.empty(0, dtype=tl.float64)
    assert SobolEngine(2).draw(2, out=out) is out
    assert out.tolist() == [[0, 0], [0.5, 0.5]]


def test_errors() -> None:
    for dimension in (0, 21202):
        with pytest.raises(ValueError, match=r"is \[1, 21201\]"):
            SobolEngine(dimension)
    with pytest.raises(NotImplementedError, match="not implemented for 'Half'"):
        SobolEngine(2).draw(2, dtype=tl.half)
    with pytest.raises(RuntimeError, match=r"negative dimension -2: \[-2, 3\]"):
        SobolEngine(3).draw(-1)

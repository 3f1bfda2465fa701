"""Loss curves and progress bars."""

from __future__ import annotations

import io
import math
import random

import pytest

from torchlab.viz.curves import LossCurve, Series
from torchlab.viz.progress_bar import Progress, progress


def test_a_series_is_bounded_and_keeps_its_extremes() -> None:
    rng = random.Random(0)
    series = Series(most=64)
    values = [rng.random() for _ in range(10_000)]
    values[3777] = 50.0
    values[9001] = -50.0
    for i, value in enumerate(values):
        series.add(i, value)
    points = series.points()
    assert len(points) <= 66 and series.count == 10_000
    assert max(p[3] for p in points) == 50.0 and min(p[2] for p in points) == -50.0
    assert points[-1][0] == 9999
    assert [p[0] for p in points] == sorted(p[0] for p in points)
    assert series.every >= 128


def test_a_series_by_hand() -> None:
    series = Series(most=2)
    for step, value in enumerate([1.0, 3.0, 5.0, 9.0, 4.0]):
        series.add(step, value)
    # four buckets of one became two of two; the fifth value waits for its neighbour
    assert series.every == 2
    assert series.points() == [(1, 2.0, 1.0, 3.0), (3, 7.0, 5.0, 9.0), (4, 4.0, 4.0, 4.0)]


def test_a_series_needs_room() -> None:
    with pytest.raises(ValueError, match="at least 2"):
        Series(1)


def test_the_figure_is_reused() -> None:
    curve = LossCurve("training")
    for step in range(20):
        curve.add(train=1 / (step + 1), test=0.5)
    first = curve.figure()
    assert curve.figure() is first
    assert len(first.axes) == 1 and len(first.axes[0].lines) == 2
    line = first.axes[0].lines[0]
    assert list(line.get_xdata())[-1] == 20 and list(line.get_ydata())[0] == 1.0
    assert curve.png().startswith(b"\x89PNG")
    assert repr(curve) == "<LossCurve: train (20), test (20)>"


def test_outside_a_notebook_nothing_is_drawn() -> None:
    with LossCurve() as curve:
        for _ in range(100):
            curve.add(loss=1.0)
    assert curve.drawn == 0


def test_values_that_are_no_numbers_fail_before_they_are_kept() -> None:
    curve = LossCurve()
    with pytest.raises(ValueError):
        curve.add(loss="much")  # type: ignore[arg-type]
    assert curve.series["loss"].count == 0
    curve.add(loss=math.nan)
    assert curve.figure() is not None


def test_text_progress_prints_about_ten_lines() -> None:
    out = io.StringIO()
    with Progress(200, "epoch 1", file=out) as bar:
        for step in range(200):
            bar.update(note=f"loss {step}")
    lines = out.getvalue().splitlines()
    assert 10 <= len(lines) <= 12
    assert lines[-1].startswith("epoch 1: 200/200 (100%)") and lines[-1].endswith("loss 199")


def test_progress_of_a_loop(capsys: pytest.CaptureFixture[str]) -> None:
    assert list(progress([1, 2, 3], "batches")) == [1, 2, 3]
    assert "batches: 3/3 (100%)" in capsys.readouterr().out


def test_progress_without_a_length(capsys: pytest.CaptureFixture[str]) -> None:
    assert sum(progress((i for i in range(100)), "items")) == 4950
    assert len(capsys.readouterr().out.splitlines()) == 7  # at 1, 2, 4 … 64

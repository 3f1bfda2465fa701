"""The picture of data loading: lanes to scale, folding, the queue, colours to tell apart."""

from __future__ import annotations

import itertools
import json
import re
import xml.etree.ElementTree as ET
from typing import Any

import numpy as np
import pytest

from tests.viz import samples
from torchlab.viz import palette
from torchlab.viz.loading import Loading
from torchlab.viz.pictures import picture
from torchlab.viz.views import lanes
from torchlab.viz.views.loader import BAR, LABEL, WIDTH, Axis, bars, nice, tick_text

SVG = "{http://www.w3.org/2000/svg}"


def state(snapshot: Any) -> Any:
    return picture(snapshot).drawing("css").state("loader")["lanes"]


def areas(text: str) -> dict[str, float]:
    """The area in each colour of what `bars` drew."""
    found: dict[str, float] = {}
    for d, fill in re.findall(r'<path d="(.+?)" fill="(.+?)"', text):
        for width, height in re.findall(r"h([\d.]+)v([\d.]+)", d):
            found[fill] = found.get(fill, 0.0) + float(width) * float(height)
    return found


def test_bars_are_to_scale() -> None:
    c = palette.ink("light")
    axis = Axis(0.0, 1.0)
    room = (WIDTH - LABEL) * BAR
    drawn = areas(bars([(0.0, 0.25, "fetch", 0), (0.25, 0.5, "collate", 0)], axis, 0, c))
    assert drawn[c["p-fetch"]] == pytest.approx(room / 4, rel=0.01)
    assert drawn[c["p-collate"]] == pytest.approx(room / 4, rel=0.01)


def test_narrow_bars_are_folded_and_keep_their_share() -> None:
    c = palette.ink("light")
    axis = Axis(0.0, 1.0)
    room = (WIDTH - LABEL) * BAR
    spans = []
    for k in range(5000):
        t = k / 5000
        spans += [(t, t + 1.2e-4, "fetch", k), (t + 1.2e-4, t + 1.6e-4, "hand-over", k)]
    text = bars(spans, axis, 0, c)
    assert text.count("<path") == 2
    assert len(text) < 30_000
    drawn = areas(text)
    assert drawn[c["p-fetch"]] == pytest.approx(0.6 * room, rel=0.03)
    assert drawn[c["p-hand-over"]] == pytest.approx(0.2 * room, rel=0.03)


def test_a_thousand_batches_are_a_small_picture() -> None:
    shown = picture(samples.loader(4, 2, 500))
    assert len(shown.svg) < 200_000
    assert len(json.dumps(state(shown.snapshot))) < 700_000


def test_what_the_page_gets() -> None:
    snapshot = samples.loader()
    data = state(snapshot)
    assert [r["label"] for r in data["rows"]] == ["loop", *(f"worker {w}" for w in range(5))]
    assert data["capacity"] == 10 and data["passes"][1][2] == "epoch 2"
    assert data["notes"] == ["Worker 0 failed in batch 10: ValueError: no such picture"]
    (verdict,) = data["verdicts"]
    assert verdict["cause"] == "reading samples" and not verdict["good"]
    assert verdict["settings"] == "num_workers=16"
    batch = data["batches"][3]
    assert batch["indices"] == "cat/6.png, 7" and batch["seed"] == str(2**62 + 3)
    assert batch["holds"] == "2 samples, 2 KiB, 48 B of it not in tensors"
    assert dict(zip(data["times"], batch["t"], strict=True))["read"] == 40_000
    held = data["batches"][8]["held"]
    assert held == [118_000, 7]
    spans = np.array(data["rows"][1]["spans"]).reshape(-1, 4)
    assert (spans[:, 1] >= spans[:, 0]).all() and spans[:, 1].max() <= data["end"]
    assert {data["phases"][p] for p in spans[:, 2]} == {
        "start", "idle", "fetch", "collate", "hand-over",
    }  # fmt: skip
    json.dumps(data, allow_nan=False)


def test_details_of_the_lanes() -> None:
    details = picture(samples.loader()).details
    loop = dict(details["loop"]["rows"])
    assert loop["loader"] == "batch_size=2, num_workers=5, prefetch_factor=2, start method fork"
    assert loop["line"] == "train.py:31" and loop["waited"].endswith("%")
    worker = dict(details["w0.0"]["rows"])
    assert worker["batches"] == "6"
    assert worker["seeds"] == f"{2**62}, {2**62 + 1}" and worker["usual batch"] == "43 ms"


def test_the_static_picture_says_it_all() -> None:
    text = picture(samples.loader()).svg
    words = " ".join("".join(t.itertext()) for t in ET.fromstring(text).iter(f"{SVG}text"))
    for expected in (
        "Reading samples", "num_workers=16", "epoch 1", "epoch 2", "worker 4", "batches ready",
        "10 at most", "no such picture", "read samples", "2 passes · 24 batches · 48 samples",
    ):  # fmt: skip
        assert expected in words


def test_without_workers_there_is_one_lane_and_no_queue() -> None:
    snapshot = samples.loader(1, 1, 6)
    snapshot["loaders"][0]["num_workers"] = 0
    snapshot["blocked"] = []
    for batch in snapshot["batches"]:
        batch |= {"worker": None, "seed": None}
        batch["spans"] = {k: batch["spans"][k] for k in ("fetch", "collate")}
    text = picture(snapshot).svg
    assert "batches ready" not in text and "worker 0" not in text and "lies ready" not in text
    data = state(snapshot)
    assert [r["id"] for r in data["rows"]] == ["loop"] and data["depth"] == []


def test_many_workers_are_cut_in_the_static_picture() -> None:
    shown = picture(samples.loader(64, 1, 64))
    assert "25 more workers" in shown.svg
    assert len(state(shown.snapshot)["rows"]) == 65


def test_several_loaders_have_names() -> None:
    snapshot, other = samples.loader(2, 1, 4), samples.loader(2, 1, 4)
    snapshot["loaders"] += other["loaders"]
    for run in other["passes"]:
        snapshot["passes"].append({**run, "loader": 1})
    for batch in other["batches"]:
        snapshot["batches"].append({**batch, "run": 1})
    loading = Loading(snapshot)
    labels = [row.label for row in lanes.lanes_of(loading)]
    assert labels == ["loop", "Pictures #0 0", "Pictures #0 1", "Pictures #1 0", "Pictures #1 1"]
    assert lanes.pass_label(loading, 1) == "Pictures #1: epoch 1"
    assert "2 loaders" in picture(snapshot).svg


@pytest.mark.parametrize(
    "step, rounded", [(0.7, 1), (1.0, 1), (1.2, 2), (2.1, 5), (6, 10), (0.0031, 0.005)]
)
def test_nice_steps(step: float, rounded: float) -> None:
    assert nice(step) == pytest.approx(rounded)


def test_ticks() -> None:
    assert [tick_text(t, 0.2) for t in (0, 0.2, 1.0)] == ["0", "0.2 s", "1.0 s"]
    assert tick_text(0.05, 0.01) == "50 ms" and tick_text(5e-5, 1e-5) == "50 µs"


# Machado, Oliveira and Fernandes (2009), severity 1: https://doi.org/10.1109/TVCG.2009.113
SIGHT = {
    "usual": [[1, 0, 0], [0, 1, 0], [0, 0, 1]],
    "deuteranopia": [[0.367, 0.861, -0.228], [0.280, 0.673, 0.047], [-0.012, 0.043, 0.969]],
    "protanopia": [[0.152, 1.053, -0.205], [0.115, 0.786, 0.099], [-0.004, -0.048, 1.052]],
    "tritanopia": [[1.256, -0.077, -0.179], [-0.078, 0.931, 0.148], [0.005, 0.691, 0.304]],
}


def lab(colour: str, sight: Any) -> Any:
    """CIE L*a*b* of what a reader sees."""
    rgb = np.array([int(colour[k : k + 2], 16) for k in (1, 3, 5)]) / 255
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    linear = np.clip(np.array(sight) @ linear, 0, 1)
    to_xyz = [[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]]
    xyz = np.array(to_xyz) @ linear / np.array([0.9505, 1.0, 1.089])
    f = np.where(xyz > 0.008856, np.cbrt(xyz), 7.787 * xyz + 16 / 116)
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


@pytest.mark.parametrize("sight", SIGHT)
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_phases_can_be_told_apart(theme: str, sight: str) -> None:
    colours = palette.ink(theme)
    names = sorted(set(lanes.COLOURS.values()))
    seen = {name: lab(colours[name], SIGHT[sight]) for name in names}
    for one, other in itertools.combinations(names, 2):
        assert np.linalg.norm(seen[one] - seen[other]) > 19, (one, other)

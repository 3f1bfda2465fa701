"""Event files: torchlab's writer writes the messages that PyTorch's writes."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import torchlab

torch = pytest.importorskip("torch")
theirs = pytest.importorskip("torch.utils.tensorboard")
from tensorboard.backend.event_processing.event_file_loader import RawEventFileLoader  # noqa: E402
from tensorboard.compat.proto.event_pb2 import Event  # noqa: E402
from tensorboard.plugins.hparams.plugin_data_pb2 import HParamsPluginData  # noqa: E402

from torchlab.utils import tensorboard as ours  # noqa: E402


def picture(m: Any) -> Any:
    return m.linspace(0, 1, 3 * 8 * 10).reshape(3, 8, 10)


def figure() -> Any:
    import matplotlib

    matplotlib.use("agg")
    from matplotlib import pyplot

    made = pyplot.figure(figsize=(1, 1))
    pyplot.plot([1, 2])
    return made


RANDOM = np.random.default_rng(0)
NORMAL, TRUTH, GUESS = RANDOM.normal(size=1000), RANDOM.integers(0, 2, 100), RANDOM.random(100)
CORNERS = [[[1.0, 1, 1], [-1, -1, 1], [1, -1, -1], [-1, 1, -1]]]
FACES = [[[0, 2, 3], [0, 3, 1], [0, 1, 2], [1, 3, 2]]]
CALLS: dict[str, Callable[[Any, Any], Any]] = {
    "scalar": lambda w, m: w.add_scalar("a/b", 3, 1),
    "scalar of a tensor": lambda w, m: w.add_scalar("t", m.tensor([2.5]), m.tensor(2)),
    "scalar with history": lambda w, m: w.add_scalar("t", m.ones((), requires_grad=True)),
    "bfloat16": lambda w, m: w.add_scalar("t", m.tensor(1.5, dtype=m.bfloat16)),
    "new style": lambda w, m: w.add_scalar("n", np.float64(1 / 3), 3, new_style=True),
    "double": lambda w, m: w.add_scalar("n", 1 / 3, 3, new_style=True, double_precision=True),
    "scalars": lambda w, m: w.add_scalars("ma/in", {"x": 1, "y": m.tensor(2.0)}, 5),
    "tensor": lambda w, m: w.add_tensor("t", m.arange(6.0).reshape(2, 3), 1),
    "integers": lambda w, m: w.add_tensor("t", m.arange(6), 1),
    "complex": lambda w, m: w.add_tensor("t", m.tensor([1 + 2j]), 1),
    "booleans": lambda w, m: w.add_tensor("t", m.tensor([True, False]), 1),
    "histogram": lambda w, m: w.add_histogram("h", m.from_numpy(NORMAL), 1),
    "float32": lambda w, m: w.add_histogram("h", m.from_numpy(NORMAL).float(), 1),
    "numpy's bins": lambda w, m: w.add_histogram("h", np.arange(10), 1, bins="auto"),
    "joined bins": lambda w, m: w.add_histogram("h", NORMAL, 1, bins="auto", max_bins=5),
    "one value": lambda w, m: w.add_histogram("h", m.zeros(3), 1),
    "raw": lambda w, m: w.add_histogram_raw("h", 0, 1, 3, 2, 2, [0, 0.5, 1], [1, 1, 1], 1),
    "image": lambda w, m: w.add_image("i", picture(m), 1),
    "bytes": lambda w, m: w.add_image("i", (picture(m) * 255).to(m.uint8), 1),
    "hw": lambda w, m: w.add_image("i", picture(m)[0], 1, dataformats="HW"),
    "hwc": lambda w, m: w.add_image("i", picture(m).permute(1, 2, 0), 1, dataformats="HWC"),
    "gray": lambda w, m: w.add_image("i", picture(m)[:1], 1),
    "grid": lambda w, m: w.add_images("i", m.stack([picture(m), 1 - picture(m)] * 5), 1),
    "gray grid": lambda w, m: w.add_images("i", m.stack([picture(m)] * 3)[:, :1], 1),
    "boxes": lambda w, m: w.add_image_with_boxes(
        "b", picture(m), m.tensor([[1.0, 1, 5, 5], [2, 2, 8, 7]]), 1, rescale=2, labels=["a", "b"]
    ),
    "figure": lambda w, m: w.add_figure("f", figure(), 1),
    "figures": lambda w, m: w.add_figure("f", [figure(), figure()], 1),
    "audio": lambda w, m: w.add_audio("s", m.sin(m.arange(0, 1, 0.01)), 1, sample_rate=100),
    "text": lambda w, m: w.add_text("t", "hello *world*", 1),
    "curve": lambda w, m: w.add_pr_curve("p", TRUTH, GUESS, 0),
    "weighted curve": lambda w, m: w.add_pr_curve(
        "p", m.tensor([0, 1, 1]), m.tensor([0.1, 0.2, 0.9]), 0, 5, np.array([1.0, 2.0, 3.0])
    ),
    "raw curve": lambda w, m: w.add_pr_curve_raw("p", [1], [2], [3], [4], [0.5], [0.6], 1, 1),
    "multiline": lambda w, m: w.add_custom_scalars_multilinechart(["a", "b"], "c", "t"),
    "margin": lambda w, m: w.add_custom_scalars_marginchart(["a", "b", "c"]),
    "layout": lambda w, m: w.add_custom_scalars(
        {"T": {"x": ["Multiline", ["a", "b"]], "y": ["Margin", ["a", "b", "c"]]}}
    ),
    "mesh": lambda w, m: w.add_mesh(
        "m", m.tensor(CORNERS), m.tensor(FACES), m.tensor(FACES), {"camera": {"cls": "x"}}, 1
    ),
    "vertices": lambda w, m: w.add_mesh("m", m.tensor(CORNERS), global_step=1),
    "hparams": lambda w, m: w.add_hparams(
        {"lr": 0.1, "n": 3, "s": "x", "b": True, "t": m.tensor([2.0]), "none": None},
        {"acc": 0.5, "loss": m.tensor(2.0)}, {"lr": [0.1, 0.2], "s": ["x", "y"]}, "run", 7,
    ),
    "embedding": lambda w, m: w.add_embedding(
        m.arange(12.0).reshape(4, 3), [["a", 1], ["b", 2], ["c", 3], ["d", 4]],
        m.linspace(0, 1, 4 * 3 * 25).reshape(4, 3, 5, 5), 3, "a/b", ["n", "k"],
    ),
    "labels": lambda w, m: w.add_embedding(m.eye(2), ["a", "b"]),
}  # fmt: skip


def written(module: Any, m: Any, call: Callable[[Any, Any], Any], folder: Any) -> Any:
    with module.SummaryWriter(folder) as w:
        call(w, m)
    found = []
    for path, _, names in sorted(os.walk(folder)):
        for name in sorted(names):
            where = os.path.relpath(path, folder)
            if "tfevents" not in name:
                with open(os.path.join(path, name), "rb") as file:
                    found.append((where, name, file.read()))
                continue
            for raw in RawEventFileLoader(os.path.join(path, name)).Load():
                event = Event.FromString(raw)
                event.wall_time = 0
                found.append((where, str(event), _parameters(event)))
    return found


def _parameters(event: Any) -> Any:
    """The order of a map in a message says nothing."""
    made = []
    for value in event.summary.value:
        if value.metadata.plugin_data.plugin_name == "hparams":
            made.append(str(HParamsPluginData.FromString(value.metadata.plugin_data.content)))
    return made


@pytest.mark.parametrize("name", CALLS)
def test_writes_what_pytorch_writes(name: str, tmp_path: Any) -> None:
    mine = written(ours, torchlab, CALLS[name], tmp_path / "ours")
    real = written(theirs, torch, CALLS[name], tmp_path / "theirs")
    if name == "hparams":
        mine, real = ([x[2] or x for x in part] for part in (mine, real))
    assert mine == real and len(mine) > 1


def test_purge_step(tmp_path: Any) -> None:
    events = []
    for i, module in enumerate((ours, theirs)):
        w = module.SummaryWriter(tmp_path / str(i), purge_step=4, filename_suffix=".x")
        w.add_scalar("a", 1, 5)
        w.close()
        w.add_scalar("a", 2, 6)  # a new file
        w.close()
        names = sorted(os.listdir(tmp_path / str(i)))
        assert all(n.endswith(".x") for n in names)
        for n in names:
            for raw in RawEventFileLoader(str(tmp_path / str(i) / n)).Load():
                event = Event.FromString(raw)
                event.wall_time = 0
                events.append((i, str(event)))
    assert [e for i, e in events if i == 0] == [e for i, e in events if i == 1]


@pytest.mark.parametrize("bad", [
    lambda w, m: w.add_scalar("x", m.ones(2)), lambda w, m: w.add_scalar("x", None),
    lambda w, m: w.add_scalar("x", "a"), lambda w, m: w.add_scalar("x", [1]),
    lambda w, m: w.add_image("x", m.ones(2, 2)), lambda w, m: w.add_histogram("x", m.tensor([])),
    lambda w, m: w.add_histogram("x", m.ones(2), bins="zz"), lambda w, m: w.add_hparams(1, 2),
    lambda w, m: w.add_hparams({"a": [1]}, {}), lambda w, m: w.add_audio("x", m.ones(2, 2)),
    lambda w, m: w.add_embedding(m.ones(2, 2), ["a"]), lambda w, m: w.add_text("x", 1),
    lambda w, m: w.add_pr_curve("x", [1], [2.0]), lambda w, m: w.add_mesh("x", m.ones(2, 2)),
    lambda w, m: w.add_images("x", m.ones(2, 2, 2)),
    lambda w, m: w.add_histogram("x", m.tensor([float("nan")])),
    lambda w, m: w.add_custom_scalars_marginchart(["a"]),
    lambda w, m: w.add_histogram_raw("h", 0, 1, 3, 2, 2, [0], [1, 1], 1),
])  # fmt: skip
def test_refuses_what_pytorch_refuses(bad: Callable[[Any, Any], Any], tmp_path: Any) -> None:
    kinds = []
    for module, m in ((ours, torchlab), (theirs, torch)):
        with module.SummaryWriter(tmp_path) as w, pytest.raises(Exception) as error:
            bad(w, m)
        kinds.append(error.type)
    assert kinds[0] is kinds[1]

"""`torch.utils.tensorboard`: what is in the files, and the graph of a module."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from typing import Any

import pytest
from PIL import Image
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from tensorboard.util.tensor_util import make_ndarray

import torchlab as tl
from torchlab.utils.tensorboard import FileWriter, RecordWriter, SummaryWriter


def read(folder: Any) -> EventAccumulator:
    found = EventAccumulator(str(folder))
    found.Reload()
    return found


def test_scalars_come_back(tmp_path):
    with SummaryWriter(tmp_path) as w:
        for i in range(3):
            w.add_scalar("loss", tl.tensor(1.0) / 2**i, i, walltime=10 + i)
        assert w.get_logdir() == tmp_path
    events = read(tmp_path).Scalars("loss")
    found = [(e.step, e.value, e.wall_time) for e in events]
    assert found == [(0, 1, 10), (1, 0.5, 11), (2, 0.25, 12)]


def test_tensors_of_16_bits_come_back(tmp_path):
    """PyTorch 2.13 writes the bits of float32 there, which TensorBoard cannot read."""
    with SummaryWriter(tmp_path) as w:
        w.add_tensor("h", tl.tensor([1.5, -2.0], dtype=tl.float16))
        w.add_tensor("b", tl.tensor([1.5, -2.0], dtype=tl.bfloat16))
    half, brain = (read(tmp_path).Tensors(tag)[0].tensor_proto for tag in "hb")
    assert make_ndarray(half).tolist() == [1.5, -2]
    assert list(brain.half_val) == [0x3FC0, 0xC000]


def test_films(tmp_path):
    films = tl.zeros(3, 2, 3, 4, 5)  # three, of two pictures each
    films[1, 0, 0], films[2, 1] = 1.0, 1.0
    with SummaryWriter(tmp_path) as w:
        w.add_video("v", films, 7, fps=5)
    (event,) = read(tmp_path).Images("v")
    gif = Image.open(io.BytesIO(event.encoded_image_string))
    # A grid of 2 x 2: a red film at the right of the first row, a white one below it on the left.
    assert (gif.n_frames, gif.size, gif.info["duration"], event.step) == (2, (10, 8), 200, 7)
    frames = []
    for i in range(2):
        gif.seek(i)
        frames.append([gif.convert("RGB").getpixel(at) for at in ((0, 0), (5, 0), (0, 4), (5, 4))])
    black, red, white = (0, 0, 0), (255, 0, 0), (255, 255, 255)
    assert frames == [[black, red, black, black], [black, black, white, black]]


def test_default_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    SummaryWriter(comment="_c").close()
    (name,) = os.listdir(tmp_path / "runs")
    assert name.endswith("_c")


class Net(tl.nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = tl.nn.Conv2d(1, 2, 3)
        self.head = tl.nn.Sequential(tl.nn.Flatten(), tl.nn.Dropout(0.5), tl.nn.Linear(8, 3))
        self.register_buffer("shift", tl.ones(3))

    def forward(self, x):
        if x.sum() > 1e9:
            return x
        return self.head(self.conv(x).relu()) + self.shift


def test_graph(tmp_path):
    net = Net()
    net.conv.eval()
    with SummaryWriter(tmp_path) as w:
        w.add_graph(net, tl.ones(1, 1, 4, 4))
    nodes = {n.name: n for n in read(tmp_path).Graph().node}
    assert net.training and not net.conv.training  # as before
    assert not net._forward_hooks and not net.conv._forward_pre_hooks
    linear = next(n for n in nodes.values() if n.op == "aten::linear")
    assert linear.name.startswith("Net/Sequential[head]/Linear[2]/")
    assert list(linear.input)[1:] == [
        "Net/Sequential[head]/Linear[2]/weight", "Net/Sequential[head]/Linear[2]/bias",
    ]  # fmt: skip
    assert [d.size for d in linear.attr["_output_shapes"].list.shape[0].dim] == [1, 3]
    (end,) = nodes["output/output.1"].input
    assert nodes[end].op == "aten::add" and "Net/shift" in nodes[end].input
    conv = next(n for n in nodes.values() if n.op == "aten::convolution")
    assert conv.input[0] == "input/x" and conv.name.startswith("Net/Conv2d[conv]/")
    assert {i for n in nodes.values() for i in n.input} <= set(nodes)


def test_a_graph_that_fails_leaves_the_module_as_it_was(tmp_path, capsys):
    net = Net()
    with SummaryWriter(tmp_path) as w, pytest.raises(RuntimeError):
        w.add_graph(net, tl.ones(1, 2, 4, 4))
    assert "No graph saved" in capsys.readouterr().out
    assert net.training and not net.conv._forward_pre_hooks
    assert net(tl.ones(1, 1, 4, 4)).shape == (1, 3)


def test_file_writers(tmp_path):
    w = FileWriter(tmp_path)
    assert w.get_logdir() == str(tmp_path) and RecordWriter is not None
    w.close()
    w.reopen()
    w.close()
    with pytest.raises(NotImplementedError, match="add_graph"):
        SummaryWriter(tmp_path).add_onnx_graph("x")


def test_a_folder_of_an_embedding_cannot_leave_the_log(tmp_path):
    with SummaryWriter(tmp_path / "log") as w:
        w.add_embedding(tl.eye(2), tag="../../x")
    assert os.listdir(tmp_path) == ["log"]
    assert os.listdir(tmp_path / "log" / "00000") == ["..%2f..%2fx"]


def test_without_tensorboard():
    code = (
        "import sys; sys.modules['tensorboard'] = None\n"
        "try:\n    import torchlab.utils.tensorboard\n"
        "except ImportError as e:\n    print(e.name)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout.startswith("tensorboard"), done.stderr

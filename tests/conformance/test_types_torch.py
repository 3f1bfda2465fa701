"""Which types the operators of networks take, refuse, and answer with, as PyTorch."""

from __future__ import annotations

import warnings
from typing import Any

import pytest

import torchlab

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.filterwarnings("ignore")

TYPES = ["bool", "uint8", "int32", "int64", "bfloat16", "float32", "complex64"]

# Of x, (4, 4, 4, 4); i, places in a row.
CALLS = [
    "F.max_pool1d(x[0], 2)",
    "F.max_pool1d(x[0], 2, return_indices=True)",
    "F.max_pool2d(x, 2)",
    "F.max_pool3d(x, 2)",
    "F.adaptive_max_pool1d(x[0], 2)",
    "F.adaptive_max_pool2d(x, 2)",
    "F.adaptive_max_pool3d(x, 2)",
    "F.avg_pool1d(x[0], 2)",
    "F.avg_pool2d(x, 2)",
    "F.adaptive_avg_pool1d(x[0], 2)",
    "F.adaptive_avg_pool2d(x, 2)",
    "F.adaptive_avg_pool3d(x, 2)",
    "F.max_unpool2d(x, torch.zeros(4, 4, 4, 4).long(), 2)",
    "F.layer_norm(x, (4,))",
    "F.rms_norm(x, (4,))",
    "F.group_norm(x, 2)",
    "F.batch_norm(x, None, None, training=True)",
    "F.batch_norm(x, torch.ones(4), torch.ones(4))",
    "F.instance_norm(x)",
    "F.threshold(x, 0.0, 1.0)",
    "F.prelu(x, x[0, 0, 0, :1])",
    "F.unfold(x, 2)",
    "F.fold(x[0, 0].reshape(1, 4, 4)[:, :, :1], (2, 2), 2)",
    "F.interpolate(x, scale_factor=2)",
    "F.interpolate(x[0], scale_factor=2)",
    "F.grid_sample(x, torch.zeros(4, 1, 1, 2).to(x.dtype))",
    "F.scaled_dot_product_attention(x, x, x)",
    "F.embedding_bag(i[None], x[0, 0])",
    "F.embedding(i, x[0, 0].clone(), max_norm=1.0)",
    "F.mse_loss(x, x)",
    "F.smooth_l1_loss(x, x)",
    "F.huber_loss(x, x)",
    "F.kl_div(x, x)",
    "F.binary_cross_entropy(x, x)",
    "F.nll_loss(x[0, 0], i)",
    "F.dropout(x)",
    "x.clone().bernoulli_(0.5)",
    "x.clone().geometric_(0.5)",
    "torch.dist(x, x)",
    "torch.cross(x[0, 0, :, :3], x[0, 0, :, :3], dim=1)",
    "torch.cross(x[0, 0, :, :3], x[0, 0, :, :3].double(), dim=1)",
    "torch.polar(x, x)",
    "torch.clamp(x, x, x)",
    "x << 1",
    "x >> x",
    "x.scatter_reduce(0, torch.zeros(4, 4, 4, 4).long(), x, 'amax')",
    "x.scatter_reduce(0, torch.zeros(4, 4, 4, 4).long(), x, 'mean')",
    "float(x[0, 0, 0, 0])",
    "int(x[0, 0, 0, 0])",
]


def outcome(lib: Any, call: str, dtype: str) -> Any:
    kind = getattr(lib, dtype)
    x = (lib.arange(256).reshape(4, 4, 4, 4) % 7).to(lib.float32)
    x = (x if not (kind.is_floating_point or kind.is_complex) else x / 10 + 0.1).to(kind)
    names = {"torch": lib, "F": lib.nn.functional, "x": x, "i": lib.zeros(4).long()}
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            r = eval(call, names)
    except Exception as error:
        return type(error).__name__  # the texts are torchlab's own
    made = r if isinstance(r, tuple) else (r,)
    return [
        (tuple(t.shape), str(t.dtype).partition(".")[2]) if isinstance(t, lib.Tensor) else t
        for t in made
    ]


@pytest.mark.parametrize("call", CALLS)
def test_types(call: str) -> None:
    for dtype in TYPES:
        assert outcome(torchlab, call, dtype) == outcome(torch, call, dtype), dtype

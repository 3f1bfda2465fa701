"""Programs that are traced with either framework: `T` is torchlab or PyTorch."""

from __future__ import annotations

import math
from typing import Any


def modules(T: Any) -> dict[str, Any]:
    """Name → module."""
    nn = T.nn

    class Residual(nn.Module):
        def __init__(self):
            super().__init__()
            self.body = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 4))
            self.scale = nn.Parameter(T.ones(4))
            self.register_buffer("shift", T.zeros(4))

        def forward(self, x, factor=2.0, flag: bool = True):
            return self.body(x) * self.scale + self.shift + x * factor

    class Attention(nn.Module):
        def __init__(self):
            super().__init__()
            self.qkv = nn.Linear(4, 12)
            self.out = nn.Linear(4, 4)

        def forward(self, x):
            q, k, v = self.qkv(x).chunk(3, dim=-1)
            w = T.softmax(q @ k.transpose(-2, -1) / math.sqrt(4), dim=-1)
            return self.out(w @ v)

    class Convolutions(nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = nn.ModuleList([nn.Conv2d(1, 2, 3), nn.Conv2d(2, 2, 1)])
            self.norm = nn.BatchNorm2d(2)

        def forward(self, x):
            for layer in self.layers:
                x = layer(x)
            x = nn.functional.relu(self.norm(x))
            return T.flatten(x, 1), {"mean": x.mean(dim=[2, 3], keepdim=True)}

    class Constants(nn.Module):
        def __init__(self):
            super().__init__()
            self.table = {"a": T.ones(2), "b": 3}

        def forward(self, x, *rest, key=None, **more):
            return x * self.table["b"] + T.ones(2) + rest[0], more["z"]

    return {
        "residual": Residual(),
        "attention": Attention(),
        "convolutions": Convolutions(),
        "constants": Constants(),
    }


def functions(T: Any) -> dict[str, Any]:
    """Name → function of proxies."""
    F = T.nn.functional

    def indexing(x, y):
        return x[0], x[..., None], x[:, 1:2], x[y], x[1, y, ::2], y[-1]

    def operators(x, y):
        return (
            (x + y) * 2 - 3 / x,
            -x,
            +x,
            ~y,
            x // 2,
            2 % x,
            x**2,
            2**x,
            x & y,
            y ^ x,
            x << 1,
            abs(x),
        )

    def comparisons(x):
        return x == 1, x != x, x < 2, 3 > x, x >= x, x <= 0

    def methods(x):
        return x.view(-1, 2).t().contiguous().sum(0, keepdim=True).to(T.float64), x.size(0), x.T

    def literals(x):
        return [x, (x, None, True), {"k": x.add(1.5), "i": float("inf"), "s": slice(x, None, 2)}]

    def lists(x, y):
        return T.cat([x, y], dim=0), T.stack((x, y), 1), T.where(x > 0, x, y), T.add(x, y, alpha=2)

    def functionals(x, w):
        h = F.relu(x)
        h = F.dropout(h, 0.2, training=False)
        h = F.linear(h, w) + F.softmax(h, dim=1) + F.gelu(h, approximate="tanh")
        h = F.layer_norm(h, (2,)) + F.normalize(h) + F.leaky_relu(h, 0.2)
        return F.mse_loss(h, x), F.pad(h, (1, 1)), F.embedding(x, w), F.log_softmax(h, -1)

    def shared_names(x):
        pooled, where = F.max_pool2d(x, 2, return_indices=True)
        return (
            pooled, where, F.max_pool2d(x, 2), T.max_pool2d(x, 2), F.selu(x), F.celu(x, 2.0),
            F.rms_norm(x, (4,)), F.group_norm(x, 2), F.sigmoid(x), F.logsigmoid(x), T.arctan(x),
            T.concat([x, x]), T.linalg.norm(x), T.fft.fft(x).real, F.avg_pool2d(x, 2), F.glu(x),
        )  # fmt: skip

    def python_functions(x, y):
        return (
            T.einsum("ij,jk->ik", x, y),
            T.split(x, 2),
            T.norm(x),
            T.meshgrid(x, y, indexing="ij"),
        )

    def makers(x):
        return (
            T.ones((2, 2), dtype=x.dtype),
            T.arange(x.shape[0]),
            T.zeros_like(x),
            T.full((2, 2), 1.0) + x,
        )

    def unused(x, y):
        x.exp()
        return y

    def names(float, max, x_1, x):
        return float + max + x_1 + x + x.max()

    def dtypes(x):
        return x.to(dtype=T.int64, device=T.device("cpu")), x.type(T.bool) if False else x.half()

    return {
        k: v
        for k, v in locals().items()
        if callable(v) and getattr(v, "__module__", "") == __name__
    }

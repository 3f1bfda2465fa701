"""Networks trained under autocast have PyTorch's losses, within what the lower type resolves."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import torchlab

torch = pytest.importorskip("torch")

STEPS = 10


def _mlp(nn: Any) -> tuple[Any, tuple[int, ...]]:
    net = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.LayerNorm(32), nn.Linear(32, 4))
    return net, (16, 8)


def _cnn(nn: Any) -> tuple[Any, tuple[int, ...]]:
    first = (nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2))
    net = nn.Sequential(*first, nn.Conv2d(8, 8, 3), nn.GELU(), nn.Flatten(), nn.Linear(32, 4))
    return net, (16, 3, 8, 8)


def _block(nn: Any) -> tuple[Any, tuple[int, ...]]:
    class Block(nn.Module):  # type: ignore[misc,name-defined]
        def __init__(self, width: int = 16, heads: int = 4) -> None:
            super().__init__()
            self.heads = heads
            self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
            self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
            self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
            self.head = nn.Linear(width, 4)

        def forward(self, x: Any) -> Any:
            n, t, width = x.shape
            parts = self.qkv(self.norm1(x)).chunk(3, -1)
            q, k, v = (p.view(n, t, self.heads, width // self.heads).transpose(1, 2) for p in parts)
            y = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
            x = x + self.out(y.transpose(1, 2).reshape(n, t, width))
            x = x + self.down(nn.functional.gelu(self.up(self.norm2(x))))
            return self.head(x).mean(1)

    return Block(), (4, 6, 16)


def _losses(lib: Any, make: Any, dtype: str) -> list[float]:
    lib.manual_seed(0)
    net, shape = make(lib.nn)
    rng = np.random.default_rng(0)
    x = lib.tensor(rng.standard_normal(shape).astype(np.float32))
    y = lib.tensor(rng.integers(0, 4, shape[0]))
    optimizer = lib.optim.AdamW(net.parameters(), lr=1e-2)
    scaler = lib.amp.GradScaler("cpu", enabled=dtype == "float16")
    losses = []
    for _ in range(STEPS):
        optimizer.zero_grad()
        with lib.autocast("cpu", dtype=getattr(lib, dtype)):
            out = net(x)
            loss = lib.nn.functional.cross_entropy(out, y)
        assert str(out.dtype) == f"torch.{dtype}"
        assert loss.dtype is lib.float32
        scaler.scale(loss).backward()
        assert all(p.grad.dtype is lib.float32 for p in net.parameters())
        scaler.step(optimizer)
        scaler.update()
        losses.append(loss.item())
    return losses


@pytest.mark.parametrize(("dtype", "rtol"), [("bfloat16", 1.5e-2), ("float16", 3e-3)])
@pytest.mark.parametrize("make", [_mlp, _cnn, _block])
def test_losses(make: Any, dtype: str, rtol: float) -> None:
    found, expected = (_losses(lib, make, dtype) for lib in (torchlab, torch))
    assert found[-1] < 0.75 * found[0]
    np.testing.assert_allclose(found, expected, rtol=rtol)

"""Small models for export, with their inputs by batch size and what may vary of them.

They are written against a module `torch` (torchlab or PyTorch): `models(torch)`.
"""

from __future__ import annotations

from typing import Any


def models(torch: Any) -> dict[str, tuple[Any, Any, Any]]:
    """Name → (module in eval mode, batch size → arguments, dynamic_shapes)."""
    nn, F = torch.nn, torch.nn.functional
    b = torch.export.Dim("b", min=1, max=64)

    class Residual(nn.Module):
        def __init__(self):
            super().__init__()
            self.c1, self.b1 = nn.Conv2d(3, 3, 3, padding=1), nn.BatchNorm2d(3)
            self.c2, self.b2 = nn.Conv2d(3, 3, 3, padding=1, bias=False), nn.BatchNorm2d(3)

        def forward(self, x):
            y = F.relu(self.b1(self.c1(x)))
            return F.relu(self.b2(self.c2(y)) + x)

    class CNN(nn.Module):
        def __init__(self):
            super().__init__()
            self.f = nn.Sequential(
                nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2),
                nn.Conv2d(4, 8, 3, stride=2, groups=2), nn.GELU(), nn.AdaptiveAvgPool2d(1),
            )  # fmt: skip
            self.h = nn.Linear(8, 10)

        def forward(self, x):
            return self.h(self.f(x).flatten(1)).log_softmax(-1)

    class Attention(nn.Module):
        def __init__(self):
            super().__init__()
            self.e, self.p = nn.Embedding(20, 8), nn.Parameter(torch.randn(16, 8))
            self.q, self.o, self.n = nn.Linear(8, 24), nn.Linear(8, 8), nn.LayerNorm(8)

        def forward(self, i):
            n, t = i.shape
            x = self.e(i) + self.p[:t]
            q, k, v = (y.view(n, t, 2, 4).transpose(1, 2) for y in self.q(x).chunk(3, -1))
            a = (q @ k.transpose(-2, -1)) / 2
            m = torch.ones(t, t, dtype=torch.bool).tril()
            a = a.masked_fill(~m, float("-inf")).softmax(-1)
            return self.n(x + self.o((a @ v).transpose(1, 2).reshape(n, t, 8)))

    class Causal(nn.Module):
        def forward(self, q, k, v):
            return F.scaled_dot_product_attention(q, k, v, is_causal=True)

    class Counting(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("n", torch.zeros(()))
            self.register_buffer("last", torch.zeros(3), persistent=False)
            self.c = torch.arange(3.0)

        def forward(self, x):
            self.n.add_(1)
            self.last = self.last + self.c
            return x * self.n + self.last + torch.tensor([1.0, 2.0, 3.0])

    class Nested(nn.Module):
        def forward(self, d, t):
            a, c = t
            return {
                "sum": d["x"] + a,
                "cat": torch.cat([d["x"], c], 1),
                "n": (a.shape[0] * 2, c.mean()),
            }

    class VAE(nn.Module):
        def __init__(self):
            super().__init__()
            self.e, self.d = nn.Linear(6, 4), nn.Linear(2, 6)

        def forward(self, x):
            m, s = self.e(x).chunk(2, 1)
            return torch.sigmoid(self.d(m + torch.exp(0.5 * s))), m

    class UNet(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b = nn.Conv2d(1, 2, 3, padding=1), nn.Conv2d(2, 4, 3, padding=1)
            self.u, self.o = nn.ConvTranspose2d(4, 2, 2, stride=2), nn.Conv2d(4, 1, 1)

        def forward(self, x):
            a = F.relu(self.a(x))
            c = F.relu(self.b(F.max_pool2d(a, 2)))
            return self.o(torch.cat([self.u(c), a], 1))

    class Recurrent(nn.Module):
        def __init__(self, kind):
            super().__init__()
            self.r, self.head = kind(3, 4, batch_first=True), nn.Linear(4, 2)

        def forward(self, x):
            return self.head(self.r(x)[0][:, -1])

    class Positions(nn.Module):
        def forward(self, x):
            n, t, c = x.shape
            p = torch.arange(t).unsqueeze(1) * 0.1
            return x + torch.sin(p).expand(t, c) + torch.zeros(n, 1, c)

    class Mixed(nn.Module):
        def forward(self, x, y):
            return (
                torch.where(x > y, x, y).clamp(min=0).sum(-1, keepdim=True).squeeze(-1),
                x.gather(1, y.long().clamp(0, 2)),
                torch.stack([x, y], 1)[:, :, ::2],
                x.repeat(1, 2),
                torch.einsum("bi,bj->bij", x, y),
                x / x.shape[0],
            )

    mlp = nn.Sequential(
        nn.Linear(6, 8), nn.ReLU(), nn.Dropout(0.2), nn.Linear(8, 3), nn.Softmax(-1)
    )
    encoder = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
    r = torch.randn
    found = {
        "mlp": (mlp, lambda n: (r(n, 6),), ({0: b},)),
        "cnn": (CNN(), lambda n: (r(n, 1, 12, 12),), ({0: b},)),
        "residual": (Residual(), lambda n: (r(n, 3, 5, 5),), ({0: b},)),
        "attention": (
            Attention(),
            lambda n: (torch.randint(0, 20, (n, n + 2)),),
            ({0: b, 1: torch.export.Dim("t", max=16)},),
        ),
        "causal": (Causal(), lambda n: tuple(r(n, 2, 5, 4) for _ in range(3)), ({0: b},) * 3),
        "counting": (Counting(), lambda n: (r(n, 3),), ({0: b},)),
        "nested": (
            Nested(),
            lambda n: ({"x": r(n, 2)}, [r(n, 2), r(n, 3)]),
            ({"x": {0: b}}, [{0: b}, {0: b}]),
        ),
        "vae": (VAE(), lambda n: (r(n, 6),), ({0: b},)),
        "unet": (UNet(), lambda n: (r(n, 1, 8, 8),), ({0: b},)),
        "lstm": (Recurrent(nn.LSTM), lambda n: (r(n, 5, 3),), ({0: b},)),
        "gru": (Recurrent(nn.GRU), lambda n: (r(n, 5, 3),), ({0: b},)),
        "rnn": (Recurrent(nn.RNN), lambda n: (r(n, 5, 3),), ({0: b},)),
        "positions": (Positions(), lambda n: (r(n, 5, 3),), ({0: b},)),
        "mixed": (Mixed(), lambda n: (r(n, 3), r(n, 3)), ({0: b}, {0: b})),
        "heads": (
            nn.MultiheadAttention(8, 2, batch_first=True),
            lambda n: (r(n, 5, 8),) * 3,
            ({0: b},) * 3,
        ),
        "encoder": (nn.TransformerEncoder(encoder, 2), lambda n: (r(n, 5, 8),), ({0: b},)),
        "decoder": (
            nn.TransformerDecoderLayer(8, 2, 16, batch_first=True),
            lambda n: (r(n, 5, 8), r(n, 4, 8)),
            ({0: b}, {0: b}),
        ),
    }
    for m, _, _ in found.values():
        m.eval()
    return found

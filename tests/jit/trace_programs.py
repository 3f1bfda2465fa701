"""Programs for `torch.jit.trace`: {name: (make, shapes of the example, shapes of another call)}.

`make(torch)` gives a function or module; torch is torchlab or PyTorch.
"""

from __future__ import annotations

import math
from typing import Any

Shapes = tuple[tuple[int, ...], ...]
PROGRAMS: dict[str, tuple[Any, Shapes, Shapes]] = {}


def program(example: Shapes, other: Shapes) -> Any:
    def keep(make: Any) -> Any:
        PROGRAMS[make.__name__] = (make, example, other)
        return make

    return keep


def _functions(table: dict[str, Any], example: Shapes, other: Shapes) -> None:
    for name, fn in table.items():
        PROGRAMS[name] = (lambda torch, fn=fn: fn(torch), example, other)


_functions(
    {
        "flatten_by_size": lambda torch: lambda x: x.view(x.size(0), -1) * 2,
        "reshape_half": lambda torch: lambda x: x.reshape(x.shape[0] * x.shape[1], -1),
        "unpacked_shape": lambda torch: lambda x: (lambda a, b: x.reshape(b, a) + a)(*x.shape),
        "zeros_of_size": lambda torch: lambda x: torch.zeros(x.size(0), 3) + x.sum(),
        "ones_like_shape": lambda torch: lambda x: torch.ones(x.shape) + x,
        "arange_of_size": lambda torch: lambda x: torch.arange(x.size(1)) * x,
        "full_of_size": lambda torch: lambda x: torch.full((x.shape[0],), 2.5) + x[:, 0],
        "slice_by_size": lambda torch: lambda x: x[:, : x.size(1) // 2],
        "last_row": lambda torch: lambda x: x[x.size(0) - 1],
        "divide_by_size": lambda torch: lambda x: x.sum(0) / x.size(0),
        "scale_by_power": lambda torch: lambda x: x / x.size(-1) ** 0.5,
        "scale_by_sqrt": lambda torch: lambda x: x / math.sqrt(x.size(-1)),
        "numel": lambda torch: lambda x: x.sum() / x.numel(),
        "expand": lambda torch: lambda x: x.sum(0).expand(x.size(0), -1),
        "repeat": lambda torch: lambda x: x[:1].repeat(x.shape[0], 1),
        "shape_result": lambda torch: lambda x: (x * 2, x.shape[0]),
        "tuples": lambda torch: lambda x: (x, (x * 2, x.max(1)[0])),
        "listed": lambda torch: lambda x: [x, x + 1],
        "named": lambda torch: lambda x: torch.max(x, 1),
        "einsum": lambda torch: lambda x: torch.einsum("ij,kj->ik", x, x + 1),
        "pad": lambda torch: lambda x: torch.nn.functional.pad(x, (1, 2)),
        "cat": lambda torch: lambda x: torch.cat([x, x.new_zeros(x.size(0), 1)], 1),
        "stack": lambda torch: lambda x: torch.stack([x, x * 2]).sum(0),
        "attention": lambda torch: (
            lambda x: torch.nn.functional.scaled_dot_product_attention(x, x, x)
        ),
        "softmax": lambda torch: lambda x: (x @ x.T).softmax(-1).log(),
        "interpolate": lambda torch: (
            lambda x: torch.nn.functional.interpolate(x[None], size=x.shape[-1] * 2)
        ),
        "branch_on_data": lambda torch: lambda x: x * 2 if x.sum() > -1e9 else x,
        "branch_on_size": lambda torch: lambda x: x * 2 if x.size(0) > 1 else x,
        "item": lambda torch: lambda x: x * x.detach().sum().item(),
        "to_float": lambda torch: lambda x: x * float(x.detach().sum()),
        "to_int": lambda torch: lambda x: x * int(x.detach().sum()),
        "length": lambda torch: lambda x: x * len(x),
        "constant": lambda torch: lambda x: x + torch.tensor([1.0]),
        "as_constant": lambda torch: lambda x: x + torch.as_tensor([1.0]),
        "to_list": lambda torch: lambda x: x * x.sum(1).tolist()[0],
        "masked": lambda torch: lambda x: x.masked_fill(x > 0, x.size(0)),
        "where": lambda torch: lambda x: torch.where(x > 0, x, x.size(1)),
        "types": lambda torch: lambda x: (x.double() * x.size(0)).to(torch.int32) * x.size(1),
    },
    ((3, 4),),
    ((5, 6),),
)
_functions(
    {
        "loop_over_rows": lambda torch: lambda x: sum(x[i] * i for i in range(x.size(0))),
        "split": lambda torch: lambda x: x.split(2, 0)[0] + x.chunk(2, 1)[0].sum(),
        "iterate": lambda torch: lambda x: sum(row for row in x),
    },
    ((3, 4),),
    ((3, 6),),
)


@program(((3, 4),), ((5, 4),))
def writes(torch: Any) -> Any:
    def fn(x: Any) -> Any:
        y = torch.zeros(x.size(0), x.size(1))
        y[0] = x[0]
        y[:, 1] = 2
        y[1:].mul_(3).add_(x[1:])
        y += 1
        return y

    return fn


@program(((3, 4),), ((5, 4),))
def writes_to_input(torch: Any) -> Any:
    def fn(x: Any) -> Any:
        x.add_(1)
        return x * 2

    return fn


@program(((3, 4), (3, 4)), ((5, 2), (5, 2)))
def two_inputs(torch: Any) -> Any:
    return lambda x, y: x.mm(y.t()) + x.size(0)


@program(((3, 4),), ((7, 4),))
def mlp(torch: Any) -> Any:
    nn = torch.nn
    return nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Dropout(0.0), nn.Linear(8, 2), nn.Tanh())


@program(((2, 3, 8, 8),), ((5, 3, 8, 8),))
def cnn(torch: Any) -> Any:
    nn = torch.nn

    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv = nn.Conv2d(3, 4, 3, padding=1)
            self.norm = nn.BatchNorm2d(4)
            self.fc = nn.Linear(64, 5)

        def forward(self, x: Any) -> Any:
            x = torch.relu(self.norm(self.conv(x)))
            x = nn.functional.max_pool2d(x, 2)
            return self.fc(x.view(x.size(0), -1))

    return Net().eval()


@program(((3, 2, 4),), ((6, 5, 4),))
def lstm(torch: Any) -> Any:
    return torch.nn.LSTM(4, 5, num_layers=2, bidirectional=True)


@program(((3, 2, 4),), ((6, 5, 4),))
def gru(torch: Any) -> Any:
    return torch.nn.GRU(4, 5, batch_first=True)


@program(((3, 2, 4), (3, 2, 4)), ((6, 5, 4), (7, 5, 4)))
def attention_module(torch: Any) -> Any:
    nn = torch.nn

    class Cross(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = nn.MultiheadAttention(4, 2)

        def forward(self, q: Any, k: Any) -> Any:
            return self.inner(q, k, k, need_weights=False)[0]

    return Cross().eval()


@program(((2, 3, 4),), ((5, 6, 4),))
def own_attention(torch: Any) -> Any:
    nn = torch.nn

    class Own(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.qkv = nn.Linear(4, 12)
            self.out = nn.Linear(4, 4)

        def forward(self, x: Any) -> Any:
            b, t, c = x.shape
            q, k, v = (y.view(b, t, 2, c // 2).transpose(1, 2) for y in self.qkv(x).chunk(3, -1))
            weights = (q @ k.transpose(-2, -1)) * (c // 2) ** -0.5
            mask = torch.tril(torch.ones(t, t)).view(1, 1, t, t)
            weights = weights.masked_fill(mask == 0, float("-inf")).softmax(-1)
            return self.out((weights @ v).transpose(1, 2).reshape(b, t, c))

    return Own()


@program(((3, 2, 4),), ((3, 5, 4),))
def encoder_layer(torch: Any) -> Any:
    return torch.nn.TransformerEncoderLayer(4, 2, 8, dropout=0.0).eval()


@program(((3, 4),), ((5, 4),))
def dict_of_layers(torch: Any) -> Any:
    nn = torch.nn

    class Layers(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layers = nn.ModuleList([nn.Linear(4, 4) for _ in range(3)])
            self.scale = nn.Parameter(torch.ones(4))
            self.register_buffer("shift", torch.zeros(4))

        def forward(self, x: Any) -> Any:
            for layer in self.layers:
                x = layer(x) * self.scale + self.shift
            return x @ self.layers[0].weight.t()

    return Layers()


@program(((3, 4),), ((5, 4),))
def weight_norm(torch: Any) -> Any:
    return torch.nn.Sequential(torch.nn.utils.weight_norm(torch.nn.Linear(4, 3)))


@program(((3, 4),), ((5, 4),))
def own_function(torch: Any) -> Any:
    class Doubled(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 2

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g * 2

    return lambda x: Doubled.apply(x) + x.size(0)


@program(((3, 4),), ((5, 4),))
def nested_script(torch: Any) -> Any:
    scripted = torch.jit.script(_branch)
    return lambda x: scripted(x) * 2


@program(((3, 4),), ((5, 4),))
def script_if_tracing(torch: Any) -> Any:
    scripted = torch.jit.script_if_tracing(_branch)
    return lambda x: scripted(-x) * 2


@program(((3, 4),), ((5, 4),))
def nested_trace(torch: Any) -> Any:
    inner = torch.jit.trace(lambda x: x.view(-1, x.size(0)) * 3, torch.ones(2, 2))
    return lambda x: inner(x) + 1


@program(((3, 2, 4),), ((3, 7, 4),))
def cell_loop(torch: Any) -> Any:
    nn = torch.nn

    class Cells(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.cell = nn.LSTMCell(4, 5)

        def forward(self, x: Any) -> Any:
            h, c = torch.zeros(x.size(1), 5), torch.zeros(x.size(1), 5)
            for i in range(x.size(0)):
                h, c = self.cell(x[i], (h, c))
            return h

    return Cells()


@program(((1, 3, 6, 6),), ((4, 3, 9, 9),))
def group_norm(torch: Any) -> Any:
    nn = torch.nn
    return nn.Sequential(
        nn.Conv2d(3, 4, 3), nn.GroupNorm(2, 4), nn.AdaptiveAvgPool2d(2), nn.Flatten(),
        nn.Linear(16, 2), nn.Softmax(1),
    )  # fmt: skip


_functions(
    {
        "narrow": lambda torch: lambda x: x.narrow(0, 0, x.size(0) - 1),
        "least_size": lambda torch: lambda x: x[: min(x.size(0), 2)],
        "odd_size": lambda torch: lambda x: x * 2 if x.size(0) % 2 == 1 else x,
        "step_range": lambda torch: lambda x: torch.arange(0, x.size(0), 2),
        "linspace": lambda torch: lambda x: torch.linspace(0, 1, steps=x.size(0)),
        "causal_mask": lambda torch: lambda x: torch.ones(1, x.size(0), x.size(0)).tril(),
        "rows": lambda torch: lambda x: x[torch.arange(x.size(0)), 0],
        "layer_norm": lambda torch: lambda x: torch.nn.functional.layer_norm(x, x.shape[1:]),
        "pool_all": lambda torch: lambda x: torch.nn.functional.avg_pool2d(x[None], x.size()),
        "eye": lambda torch: lambda x: torch.eye(x.size(0), x.size(1)),
        "pad_by_size": lambda torch: lambda x: torch.nn.functional.pad(x, (0, x.size(0))),
        "complex": lambda torch: lambda x: torch.complex(x, x).real + x.size(0),
    },
    ((3, 4),),
    ((5, 6),),
)


def _branch(x):  # type: ignore[no-untyped-def]
    if x.size(0) > 4:
        return x + 1
    else:
        return x - 1

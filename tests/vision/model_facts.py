"""What a model that was built after `torch.manual_seed(0)` is and does, in a few numbers."""

from __future__ import annotations

import hashlib
from typing import Any

import pytest

import torchlab as torch


def wave(*shape: int) -> Any:
    """Made data between -1 and 1, float64."""
    n = torch.arange(torch.tensor(shape).prod().item(), dtype=torch.float64)
    return torch.sin(n * 0.37 + torch.cos(n * 1.3)).reshape(shape)


def brief(text: str) -> str:
    return hashlib.md5(text.encode(), usedforsecurity=False).hexdigest()[:8]


def weights(model: Any) -> list[Any]:
    """The text of the model, the names of its state, how many learn, and the state's sums."""
    state = model.state_dict()
    return [
        brief(str(model)),
        brief(",".join(state)),
        sum(p.numel() for p in model.parameters() if p.requires_grad),
        sum(v.double().sum().item() for v in state.values()),
        sum(v.double().abs().sum().item() for v in state.values()),
    ]


def numbers(out: Any) -> list[float]:
    """The sum and the norm of each tensor in an output."""
    if isinstance(out, torch.Tensor):
        wide = out.detach().double()
        return [wide.sum().item(), wide.square().sum().sqrt().item()]
    parts = out.values() if isinstance(out, dict) else out
    return [n for part in parts for n in numbers(part)]


def facts(build: Any, *args: Any, train: bool = False) -> list[Any]:
    """`weights`, then the output in eval or training mode, in float64."""
    torch.manual_seed(0)
    model = build()
    made = weights(model)
    model.double().train(train)
    torch.manual_seed(1)
    with torch.no_grad():
        return made + numbers(model(*args))


def same(made: list[Any], expected: list[Any], rel: float = 1e-6) -> None:
    """Assert that the numbers agree, and what is no measurement exactly."""
    assert made[:3] == expected[:3]
    assert made[3:] == pytest.approx(expected[3:], rel=rel, abs=1e-9)

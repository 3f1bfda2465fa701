"""Regions with a memory budget: what the forward keeps for backward."""

from __future__ import annotations

from typing import Any

import pytest

import torchlab
from torchlab.autograd.graph import region_activation_memory_budget as region
from torchlab.compiler.aot import partition
from torchlab.compiler.inductor import compile as inductor


def model() -> tuple[Any, list[Any]]:
    torchlab.manual_seed(0)
    weights = [torchlab.randn(*s, requires_grad=True) for s in ((8, 16), (16, 16), (16, 1))]

    def body(x: Any) -> Any:
        h = (x @ weights[0]).tanh()
        h = (h @ weights[1]).sigmoid() * h.exp()
        return (h @ weights[2]).sin().sum()

    return body, weights


def test_less_is_kept_and_the_gradients_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    body, weights = model()
    x = torchlab.randn(32, 8)
    expected = torchlab.autograd.grad(body(x), weights)
    kept: list[int] = []

    def counted(graph: Any, j: Any, budget: Any = None) -> Any:
        parts = partition(graph, j, budget)
        kept.append(parts.values)
        return parts

    monkeypatch.setattr(inductor, "partition", counted)
    for budget in (1.0, 0.5, 0.0):

        @torchlab.compile
        def f(x: Any, budget: float = budget) -> Any:
            with region(budget):
                return body(x)

        for g, e in zip(torchlab.autograd.grad(f(x), weights), expected, strict=True):
            assert torchlab.allclose(g, e, rtol=1e-4, atol=1e-4)
    everything, half, nothing = kept
    assert everything > half > nothing == 0


def test_a_graph_has_one_budget() -> None:
    body, weights = model()
    x = torchlab.randn(4, 8)

    def partly(x: Any) -> Any:
        with region(0.5):
            h = x @ weights[0]
        return h.sum()

    def differently(x: Any) -> Any:
        with region(0.5):
            h = x @ weights[0]
        with region(0.2):
            return h.sum()

    with pytest.raises(RuntimeError, match="around some of them"):
        torchlab.compile(partly)(x)
    with pytest.raises(RuntimeError, match=r"not \[0.2, 0.5\]"):
        torchlab.compile(differently)(x)


def test_where_it_cannot_be() -> None:
    with pytest.raises(RuntimeError, match="no effect in eager mode"):
        region(0.5)
    with pytest.raises(ValueError, match="must be in"):
        region(2)
    with pytest.raises(TypeError, match="expects a float"):
        region("a")  # type: ignore[arg-type]

"""Random autograd programs in torchlab and in PyTorch, a fixed set of seeds and a few more that
hypothesis chooses and shrinks (see `dag_programs.py`; `python -m tests.conformance.dag_programs`
runs any number)."""

from __future__ import annotations

import random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import torchlab
from tests.conformance.dag_programs import Difference, play, replay, shrink

torch = pytest.importorskip("torch")

SEEDS = range(120)
PARTS = 5


def _check(steps: list[str], difference: Difference | None) -> None:
    if difference is not None:
        steps, difference = shrink(torchlab, torch, steps, difference)
        pytest.fail("\n".join([str(difference), *(f">>> {s}" for s in steps)]))


@pytest.mark.parametrize("part", range(PARTS))
def test_fixed_programs(part: int) -> None:
    for seed in SEEDS[part::PARTS]:
        _check(*play(torchlab, torch, random.Random(seed).randint))


@settings(max_examples=8, derandomize=True, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_programs_that_shrink(data: st.DataObject) -> None:
    _check(*play(torchlab, torch, lambda low, high: data.draw(st.integers(low, high))))


LEAF = "t1 = torch.tensor([2.0, 3.0], dtype=torch.float64, requires_grad=True)"
PROGRAMS = {
    "a leaf that is gone still has its hooks": [
        LEAF,
        "kept['k'] = t1.register_hook(hook('h', 'double'))",
        "t1 = t1 * 2",
        "t1.backward(torch.ones_like(t1), retain_graph=True)",
        "t1.backward(torch.ones_like(t1))",
    ],
    "leaves of one node run in the order of PyTorch's heap": [
        LEAF,
        *(
            f"t{i} = t1.detach().clone().requires_grad_(); kept['k{i}'] ="
            f" t{i}.register_hook(hook('h{i}', 'none'))"
            for i in range(2, 9)
        ),
        "t9 = torch.cat([t1, t2, t3, t4, t5, t6, t7, t8])",
        "t9.backward(torch.ones_like(t9))",
    ],
    "a leaf gets back the node it had": [
        LEAF,
        "kept['k'] = t1.register_hook(hook('h', 'none'))",
        "t2 = t1 * 3",
        "t1.requires_grad_(False)",
        "t2.backward(torch.ones_like(t2), retain_graph=True)",
        "t1.requires_grad_()",
        "t2.backward(torch.ones_like(t2))",
    ],
    "what was captured and is needed has not been through the hooks": [
        LEAF,
        "t2 = t1 * 2",
        "t3 = t2 * 3",
        "kept['k'] = t2.register_hook(hook('h', 'double'))",
        "t4, t5 = torch.autograd.grad(t3.sum(), [t2, t1], retain_graph=True)",
        "t6, = torch.autograd.grad(t3.sum(), [t2])",
    ],
    "a function's backward runs although nothing came": [
        LEAF,
        "t2 = Twice.apply(t1)",
        "t3 = Nothing.apply(t2, t1)",
        "t3.backward(torch.ones_like(t3))",
    ],
    "an error leaves the graph as it was": [
        LEAF,
        "t2 = t1.exp()",
        "kept['k'] = t2.register_hook(hook('h', 'boom'))",
        "t3 = t2 * t1",
        "t3.backward(torch.ones_like(t3))",
        "t2.backward(torch.ones_like(t2), retain_graph=True)",
        "kept['k'].remove()",
        "t2.backward(torch.ones_like(t2))",
        "t3.backward(torch.ones_like(t3))",
    ],
    "a backward inside a backward": [
        LEAF,
        "t2 = Inner.apply(t1)",
        "t3 = Inner.apply(t1 * t2)",
        "(t2 + t3).backward()",
    ],
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_by_hand(name: str) -> None:
    difference = replay(torchlab, torch, PROGRAMS[name])
    assert difference is None, str(difference)

"""Random programs of ten steps in torchlab and in PyTorch, a fixed set of seeds and a few more that
hypothesis chooses and shrinks (see `programs.py`; `python -m tests.conformance.programs` runs any
number)."""

from __future__ import annotations

import random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import torchlab
from tests.conformance.program_steps import Step
from tests.conformance.programs import Difference, Run, play, shrink

torch = pytest.importorskip("torch")

SEEDS = range(300)
PARTS = 10


def _check(steps: list[Step], difference: Difference | None) -> None:
    if difference is not None:
        steps, difference = shrink(torchlab, torch, steps, difference)
        pytest.fail("\n".join([str(difference), *(f">>> {s.code}" for s in steps)]))


@pytest.mark.parametrize("part", range(PARTS))
def test_fixed_programs(part: int) -> None:
    for seed in SEEDS[part::PARTS]:
        _check(*play(torchlab, torch, random.Random(seed).randint))


@settings(max_examples=15, derandomize=True, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_programs_that_shrink(data: st.DataObject) -> None:
    _check(*play(torchlab, torch, lambda low, high: data.draw(st.integers(low, high))))


@pytest.mark.parametrize("poked", [False, True])
def test_bits_of_nan_are_nobodys(poked: bool) -> None:
    run = Run(torchlab, torch)
    for line in ("t1 = torch.tensor([[-1, 2], [3, 4]])", "t2 = t1.view(torch.bfloat16)"):
        assert run.take(Step(line)) is None
    if poked:
        run.envs[0]["t1"][1, 0] = 7
    difference = run.take(Step("t2.mul_(1)"))
    assert (difference is not None) == poked

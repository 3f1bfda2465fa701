"""cond and while_loop: one branch, a loop, their gradients and their demands."""

from __future__ import annotations

import pytest

import torchlab as torch


def test_one_branch_runs_and_is_differentiated() -> None:
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    for pred, factor in ((x.sum() > 1, 3.0), (False, 5.0)):
        x.grad = None
        torch.cond(pred, lambda a: a * 3, lambda a: a * 5, (x,)).sum().backward()
        assert x.grad.tolist() == [factor] * 2
    assert torch.cond(True, lambda: 1, lambda: 2) == 1


def test_a_loop_carries_tensors() -> None:
    x = torch.ones(2, requires_grad=True)
    i, y = torch.while_loop(lambda i, a: i < 3, lambda i, a: (i + 1, a * 2), (torch.tensor(0), x))
    assert i.item() == 3
    y.sum().backward()
    assert x.grad.tolist() == [8, 8]


def test_demands() -> None:
    x = torch.ones(2)
    same = (lambda a: a, lambda a: a)
    for call in (
        lambda: torch.cond(x, *same, (x,)),
        lambda: torch.cond("a", *same, (x,)),
        lambda: torch.cond(True, 3, same[0], (x,)),
        lambda: torch.cond(True, *same, x),
        lambda: torch.cond(True, *same, ("a",)),
        lambda: torch.while_loop(3, lambda a: (a,), (x,)),
        lambda: torch.while_loop(lambda a: True, lambda a: (a.double(),), (x,)),
        lambda: torch.while_loop(lambda a: True, lambda a: (a, a), (x,)),
    ):
        with pytest.raises(RuntimeError):
            call()

"""Hooks of tensors and nodes."""

from __future__ import annotations

import pytest

import torchlab


def leaf(*values: float) -> torchlab.Tensor:
    return torchlab.tensor(list(values), requires_grad=True)


def test_tensor_hooks_run_in_order_and_replace() -> None:
    x = leaf(1.0)
    y = x * 2
    seen = []
    y.register_hook(lambda g: seen.append(("first", g.item())))
    y.register_hook(lambda g: g * 10)
    y.register_hook(lambda g: seen.append(("third", g.item())))
    y.sum().backward()
    assert seen == [("first", 1.0), ("third", 10.0)]
    assert x.grad.item() == 20.0


def test_removal() -> None:
    x = leaf(1.0)
    handle = x.register_hook(lambda g: g * 5)
    (x * 1).backward()
    handle.remove()
    (x * 1).backward()
    assert x.grad.item() == 6.0


def test_retain_grad_sees_what_the_hooks_made() -> None:
    x = leaf(1.0)
    y = x * 2
    y.retain_grad()
    assert y.retains_grad
    y.register_hook(lambda g: g * 3)
    (y * 4).backward()
    assert y.grad.item() == 12.0 and x.grad.item() == 24.0


def test_node_hooks() -> None:
    x = leaf(1.0)
    y = x * 2
    seen = []
    y.grad_fn.register_prehook(lambda grads: (grads[0] * 10,))
    y.grad_fn.register_hook(
        lambda inputs, outputs: seen.append((inputs[0].item(), outputs[0].item()))
    )
    y.backward()
    assert seen == [(20.0, 10.0)] and x.grad.item() == 20.0


def test_after_accumulation() -> None:
    x = leaf(1.0)
    seen = []
    x.register_post_accumulate_grad_hook(lambda t: seen.append(t.grad.item()))
    (x * 2).backward()
    (x * 3).backward()
    assert seen == [2.0, 5.0]
    with pytest.raises(RuntimeError, match="leaf"):
        (x * 2).register_post_accumulate_grad_hook(lambda t: None)


def test_no_hooks_without_gradient() -> None:
    with pytest.raises(RuntimeError, match="doesn't require gradient"):
        torchlab.ones(1).register_hook(lambda g: g)

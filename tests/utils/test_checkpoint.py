"""Checkpointing: what stays in memory, what debug mode tells. Values and counts are compared
with PyTorch in tests/conformance/test_checkpoint_torch.py."""

from __future__ import annotations

import gc
import threading
import weakref

import pytest

import torchlab as torch
from torchlab.utils.checkpoint import (
    CheckpointError,
    checkpoint,
    checkpoint_sequential,
    get_device_states,
    set_checkpoint_debug_enabled,
    set_device_states,
)


def watched(alive):
    """sin → cos → exp, noting which intermediate tensors live on."""

    def f(x):
        for step in (torch.sin, torch.cos, torch.exp):
            x = step(x)
            alive.append(weakref.ref(x))
        return x

    return f


@pytest.mark.parametrize("reentrant", [True, False])
def test_nothing_but_input_and_output_stays(reentrant):
    x = torch.ones(3, requires_grad=True)
    alive = []
    y = checkpoint(watched(alive), x, use_reentrant=reentrant)
    gc.collect()
    assert [ref() is not None for ref in alive[:2]] == [False, False]
    y.sum().backward()
    del y
    gc.collect()
    assert not any(ref() is not None for ref in alive)


def test_inner_regions_keep_no_inputs():
    x = torch.ones(3, requires_grad=True)
    inputs = []

    def inner(a):
        inputs.append(weakref.ref(a))
        return a.sin().cos()

    def outer(a):
        for _ in range(3):
            a = checkpoint(inner, a.tanh(), use_reentrant=False)
        return a

    y = checkpoint(outer, x, use_reentrant=False)
    gc.collect()
    assert not any(ref() is not None for ref in inputs)
    y.sum().backward()
    assert x.grad is not None
    # Forward, the outer region's second run (which stops where it saves the third input), and one
    # run of each inner region.
    assert len(inputs) == 8


def test_values_leave_with_their_use():
    """What is computed again is freed as backward goes through it, not at its end."""
    x = torch.ones(3, requires_grad=True)
    counts = []

    def f(a):
        for _ in range(5):
            a = a.sin()
        return a

    y = checkpoint(f, x, use_reentrant=False)
    node = y.grad_fn
    while node is not None and hasattr(node, "_saved_self"):

        def before(_, node=node):
            gc.collect()
            counts.append(
                sum(len(slot.values) for slot in gc.get_objects() if type(slot).__name__ == "_Slot")
            )

        node.register_prehook(before)
        node = node.next_functions[0][0]
    y.sum().backward()
    assert counts == [0, 4, 3, 2, 1]


def test_a_failed_run_can_be_repeated():
    x = torch.ones(3, requires_grad=True)
    fail = [False]

    def f(a):
        if fail[0]:
            raise OSError("no disk")
        return a.sin().cos()

    y = checkpoint(f, x, use_reentrant=False).sum()
    fail[0] = True
    state = torch.get_rng_state()
    with pytest.raises(OSError, match="no disk"):
        y.backward(retain_graph=True)
    assert torch.equal(torch.get_rng_state(), state)
    assert torch.is_grad_enabled()
    assert x.grad is None
    fail[0] = False
    y.backward()
    assert torch.allclose(x.grad, -x.sin().sin() * x.cos())


def test_debug_mode_lists_the_operators_of_both_runs():
    x = torch.ones(3, requires_grad=True)
    runs = []

    def different(a):
        runs.append(1)
        return a.sin().cos() if len(runs) == 1 else a.mul(2)

    with set_checkpoint_debug_enabled(True):
        y = checkpoint(different, x, use_reentrant=False)
    with pytest.raises(CheckpointError) as found:
        y.sum().backward()
    text = str(found.value)
    first, again = text.split("Operations executed during recomputation:")
    assert "$1: f32[3] = torch._ops.aten.sin.default($0)\n$2: f32[3] = torch._ops.aten.cos" in first
    assert "$1: f32[3] = torch._ops.aten.mul.Tensor($0, 2)" in again
    assert f"{__file__}:" in first
    assert "different number of tensors" in str(found.value.__cause__)


def test_threads_do_not_see_each_other():
    found = {}

    def work(n):
        x = torch.full((4,), float(n), requires_grad=True)
        for _ in range(20):
            x.grad = None
            checkpoint(lambda a: a.sin().exp().cos(), x, use_reentrant=False).sum().backward()
        found[n] = x.grad

    threads = [threading.Thread(target=work, args=(n,)) for n in range(3)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    for n, g in found.items():
        x = torch.full((4,), float(n), requires_grad=True)
        x.sin().exp().cos().sum().backward()
        assert torch.equal(g, x.grad)


def test_modules_and_their_parameters():
    torch.manual_seed(0)
    net = torch.nn.Sequential(
        torch.nn.Linear(8, 16), torch.nn.GELU(), torch.nn.Dropout(0.5), torch.nn.Linear(16, 4)
    )
    x = torch.randn(3, 8)
    grads = []
    for run in (
        net,
        lambda t: checkpoint(net, t, use_reentrant=False),
        lambda t: checkpoint_sequential(net, 2, t, use_reentrant=False),
    ):
        net.zero_grad()
        torch.manual_seed(5)
        run(x).sum().backward()
        grads.append([p.grad.clone() for p in net.parameters()])
    for other in grads[1:]:
        assert all(torch.equal(a, b) for a, b in zip(grads[0], other, strict=True))


def test_states_of_an_accelerator():
    x = torch.ones(2, device="sim")
    devices, states = get_device_states(x, {"k": x}, 3)
    assert devices == [x.get_device()]
    drawn = torch.rand(3, device="sim")
    set_device_states(devices, states, device_type="sim")
    assert torch.equal(torch.rand(3, device="sim"), drawn)


def test_dropout_on_an_accelerator():
    x = torch.ones(50, device="sim", requires_grad=True)
    y = checkpoint(lambda a: torch.nn.functional.dropout(a * 2).sin(), x, use_reentrant=False)
    y.sum().backward()
    assert torch.equal(x.grad != 0, y != 0)


def test_the_second_run_stops_where_a_gradient_in_the_first_asked() -> None:
    """What comes after the values that it needs is not run again, as in PyTorch."""
    runs = []

    def gradient(x):
        runs.append("begin")
        (g,) = torch.autograd.grad(x.tanh().sum(), x, create_graph=True)
        runs.append("end")
        return g

    x = torch.tensor([1.0, 2.0], requires_grad=True)
    checkpoint(gradient, x, use_reentrant=False)
    assert runs == ["begin", "begin", "end"]

"""backward and grad: accumulation, retained graphs, second derivatives, deep graphs, threads."""

from __future__ import annotations

import threading

import numpy as np
import pytest

import torchlab
from torchlab._core import events
from torchlab.autograd import detect_anomaly, grad, gradcheck, gradgradcheck, graph
from torchlab.autograd.gradcheck import GradcheckError


def leaf(*values: float) -> torchlab.Tensor:
    return torchlab.tensor(list(values), dtype=torchlab.float64, requires_grad=True)


def test_gradients_add_up() -> None:
    x = leaf(1.0, 2.0)
    (x * x).sum().backward()
    assert x.grad.tolist() == [2.0, 4.0]
    (3 * x).sum().backward()
    assert x.grad.tolist() == [5.0, 7.0]
    first = x.grad
    (x + x + x * 2).backward(torchlab.tensor([1.0, 10.0], dtype=torchlab.float64))
    assert x.grad.tolist() == [9.0, 47.0] and x.grad is first


def test_retain_graph() -> None:
    x = leaf(3.0)
    y = (x * x).sum()
    y.backward(retain_graph=True)
    y.backward()
    assert x.grad.item() == 12.0
    with pytest.raises(RuntimeError, match="second time"):
        y.backward()
    s = x.sum()  # saves nothing: may be run again
    s.backward()
    s.backward()
    assert x.grad.item() == 14.0


def test_second_and_third_derivative() -> None:
    x = leaf(2.0)
    (d1,) = grad((x**4).sum(), x, create_graph=True)
    (d2,) = grad(d1.sum(), x, create_graph=True)
    (d3,) = grad(d2.sum(), x)
    assert (d1.item(), d2.item(), d3.item()) == (32.0, 48.0, 48.0)
    assert x.grad is None and not d3.requires_grad


def test_unused_and_materialized() -> None:
    x, y = leaf(1.0), leaf(1.0, 2.0)
    with pytest.raises(RuntimeError, match="allow_unused"):
        grad(x.sum(), [x, y], retain_graph=True)
    assert grad(x.sum(), [x, y], allow_unused=True)[1] is None
    assert grad(x.sum(), [x, y], materialize_grads=True)[1].tolist() == [0.0, 0.0]


def test_refusals() -> None:
    x = leaf(1.0, 2.0)
    with pytest.raises(RuntimeError, match="implicitly created only for scalar outputs"):
        (x * 2).backward()
    with pytest.raises(RuntimeError, match="does not require grad and does not have a grad_fn"):
        torchlab.ones(1).backward()
    with pytest.raises(RuntimeError, match="Mismatch in shape"):
        (x * 2).backward(torchlab.ones(3, dtype=torchlab.float64))
    with pytest.raises(RuntimeError, match="cannot be empty"):
        x.sum().backward(inputs=[])
    assert x.grad is None


def test_only_the_inputs_asked_for() -> None:
    x, y = leaf(2.0), leaf(5.0)
    (x * y).sum().backward(inputs=[x])
    assert x.grad.item() == 5.0 and y.grad is None


def test_no_gradient_is_computed_for_what_is_not_asked_for() -> None:
    x, w = torchlab.ones(2, 3, requires_grad=True), torchlab.ones(3, 4, requires_grad=True)
    calls: list[str] = []
    y = (x @ w).sum()
    with events.op_call.subscribe(lambda op, **payload: calls.append(op.name)):
        grad(y, x, retain_graph=True)
        assert calls.count("mm") == 1
        y.backward(inputs=[w], retain_graph=True)
        assert calls.count("mm") == 2
        y.backward()
    assert calls.count("mm") == 4 and w.grad.tolist() == [[4.0] * 4] * 3


def test_the_first_gradient_has_the_leafs_layout_unless_told_otherwise() -> None:
    for enforce, strides in ((True, (1, 4)), (False, (3, 1))):
        p = torchlab.ones(3, 4).t().requires_grad_()
        with torchlab.autograd.enforce_grad_layout_policy(enforce):
            (p.contiguous() * torchlab.ones(4, 3)).sum().backward()
        assert p.grad.stride() == strides  # as PyTorch 2.13
    p = torchlab.ones(2, 3, 4).permute(2, 0, 1).requires_grad_()
    p.sum().backward()
    assert p.grad.stride() == p.stride() and p.grad.add_(1).sum() == 48
    p.grad = None
    (p.permute(1, 0, 2).contiguous() * torchlab.ones(2, 4, 3)).sum().backward()
    assert p.grad.stride() == p.stride()


def test_several_outputs_and_views() -> None:
    x = leaf(1.0, 2.0, 3.0)
    a, b = x.split([1, 2])
    (a.sum() + 10 * b.sum()).backward()
    assert x.grad.tolist() == [1.0, 10.0, 10.0]
    x.grad = None
    values, _ = x.view(3, 1).expand(3, 2).max(1)
    values.sum().backward()
    assert x.grad.tolist() == [1.0, 1.0, 1.0]


def test_a_chain_of_100_000_nodes() -> None:
    x = leaf(1.0)
    y = x
    for _ in range(100_000):
        y = y + 1
    y.sum().backward()
    assert x.grad.item() == 1.0
    del y  # and it is freed without recursion


def test_a_leaf_shared_by_threads() -> None:
    x = leaf(1.0, 1.0)

    def work() -> None:
        for _ in range(20):
            grad((x * 2).sum(), x)

    threads = [threading.Thread(target=work) for _ in range(3)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert grad((x * 2).sum(), x)[0].tolist() == [2.0, 2.0]


def test_anomaly_names_the_function() -> None:
    x = leaf(0.0)
    with (
        pytest.warns(UserWarning, match="Anomaly Detection has been enabled"),
        detect_anomaly(),
        pytest.warns(UserWarning, match="Error detected in SqrtBackward0"),
    ):
        y = (torchlab.sqrt(x) * 0).sum()
        with pytest.raises(RuntimeError, match="'SqrtBackward0' returned nan values in its 0th"):
            y.backward()
    assert not torchlab.autograd.is_anomaly_enabled()


def test_gradcheck_catches_a_wrong_gradient() -> None:
    class Wrong(torchlab.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, g):
            return g * 3

    x = leaf(1.0, 2.0)
    with pytest.raises(
        GradcheckError, match="Jacobian mismatch for output 0 with respect to input 0"
    ):
        gradcheck(Wrong.apply, x)
    assert not gradcheck(Wrong.apply, x, raise_exception=False)
    assert gradcheck(torchlab.sin, x) and gradgradcheck(torchlab.sin, x)


def test_saved_tensors_hooks() -> None:
    x = leaf(3.0)
    packed = []

    def pack(t: torchlab.Tensor) -> float:
        packed.append(t.item())
        return t.item()

    with graph.saved_tensors_hooks(
        pack, lambda v: torchlab.tensor([v + 1], dtype=torchlab.float64)
    ):
        y = x * x
    assert packed == [3.0, 3.0]
    y.backward()
    assert x.grad.item() == 8.0  # both factors came back one larger


def test_a_backward_that_creates_a_graph_is_told() -> None:
    torchlab.set_warn_always(True)
    try:
        x = torchlab.ones(1, requires_grad=True)
        with pytest.warns(UserWarning, match="reference cycle"):
            (x**2).backward(create_graph=True)
    finally:
        torchlab.set_warn_always(False)


def test_gradients_of_leaves_that_are_gone_are_summed_too() -> None:
    x = torchlab.tensor([[0.5, -1.0], [2.0, 0.25]], dtype=torchlab.float64, requires_grad=True)
    w = np.arange(6.0).reshape(3, 2) / 4 - 0.5
    bias = np.array([0.25, -0.5, 1.0])

    def slopes() -> torchlab.Tensor:  # its parameters die with it
        layer = torchlab.nn.Linear(2, 3, dtype=torchlab.float64)
        with torchlab.no_grad():
            layer.weight.copy_(torchlab.from_numpy(w))
            layer.bias.copy_(torchlab.from_numpy(bias))
        (g,) = grad(layer(x).sin().sum(), x, create_graph=True)
        (g2,) = grad(g[:, 0].sum(), x, create_graph=True)
        return g2[:, 0]

    slopes().sum().backward()
    z = x.detach().numpy() @ w.T + bias
    np.testing.assert_allclose(x.grad.numpy(), -(np.cos(z) * w[:, 0] ** 2) @ w)


def test_gradients_of_outputs_that_no_input_is_behind_are_checked_too() -> None:
    x, y = leaf(1.0, 2.0), leaf(1.0, 2.0)
    z = y.abs()
    with pytest.raises(RuntimeError, match="shape"):
        grad([z, x * 2], [x], [torchlab.ones(3), torchlab.ones(2)], allow_unused=True)
    w = torchlab.ones(2, 3, requires_grad=True).abs()
    with torchlab.no_grad():
        w.t_()
    with pytest.raises(RuntimeError, match="invalid gradient"):
        grad([w, w], [x], [torchlab.ones(3, 2)] * 2, allow_unused=True)


def test_a_graph_of_a_part_leads_through_the_nodes_themselves() -> None:
    """What the backward of a part of the inputs saves of a node's result leads to that node."""
    x, y = leaf(0.5), leaf(0.25)
    z = (x * 2 + y).tanh()
    (g,) = grad(z, x, create_graph=True)
    (h,) = grad(g, x)
    t = z.item()
    assert abs(g.item() - 2 * (1 - t * t)) < 1e-6
    assert abs(h.item() + 8 * t * (1 - t * t)) < 1e-6

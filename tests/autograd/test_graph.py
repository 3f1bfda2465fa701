"""`autograd.graph`: hooks on saved tensors, hooks of several tensors, edges, saved tensors."""

from __future__ import annotations

import pytest

import torchlab
from torchlab.autograd import graph


def leaf(*values: float) -> torchlab.Tensor:
    return torchlab.tensor(list(values), dtype=torchlab.float64, requires_grad=True)


def test_hooks_of_several_tensors() -> None:
    x = leaf(1.0, 1.0)
    a, b = x * 2, x * 3
    seen = []
    handle = graph.register_multi_grad_hook(
        (a, b, x), lambda gs: seen.append([None if g is None else g.tolist() for g in gs])
    )
    (a * b).sum().backward(retain_graph=True)
    (a * 1).sum().backward(retain_graph=True)
    (a * b).sum().backward(inputs=[a], retain_graph=True)
    assert seen == [
        [[3.0, 3.0], [2.0, 2.0], [12.0, 12.0]],
        [[1.0, 1.0], None, [2.0, 2.0]],
        [[3.0, 3.0], None, None],
    ]
    handle.remove()
    (a * b).sum().backward(retain_graph=True)
    assert len(seen) == 3
    first = []
    with graph.register_multi_grad_hook((a, b), first.append, mode="any"):
        (a * b).sum().backward(retain_graph=True)
        assert len(first) == 1
    with pytest.raises(ValueError, match="mode"):
        graph.register_multi_grad_hook((a,), print, mode="some")
    with pytest.raises(AssertionError, match="gradient function"):
        graph.register_multi_grad_hook((torchlab.ones(1),), print)


def test_leaves_of_several_do_not_go_with_grad() -> None:
    x = leaf(1.0)
    a = x * 2
    graph.register_multi_grad_hook((a, x), lambda gs: None)
    with pytest.raises(RuntimeError, match="leaf node was passed"):
        torchlab.autograd.grad(a.sum(), x)


def test_mutation_of_saved_tensors() -> None:
    with graph.allow_mutation_on_saved_tensors():
        a = torchlab.ones(2, 3, dtype=torchlab.float64, requires_grad=True)
        b = a.clone()
        out = (b**2).sum()
        view = b[0]
        b.sin_()
        view.mul_(7)
        out.backward()
        assert a.grad.tolist() == [[2.0] * 3] * 2
        with pytest.raises(RuntimeError, match="cannot be nested"):
            with graph.allow_mutation_on_saved_tensors():
                pass
        out = (b**2).sum()
    with pytest.raises(AssertionError, match="outside of the 'allow_mutation"):
        out.backward()


def test_saved_tensor_hooks_may_be_refused() -> None:
    with graph.disable_saved_tensors_hooks("not here"):
        with pytest.raises(RuntimeError, match="not here"), graph.save_on_cpu():
            pass
        with graph.disable_saved_tensors_hooks("nor here"), pytest.raises(RuntimeError):
            with graph.save_on_cpu():
                pass
    with graph.save_on_cpu(), pytest.raises(RuntimeError, match="late"):
        with graph.disable_saved_tensors_hooks("late"):
            pass
    x = leaf(3.0)
    with graph.save_on_cpu(pin_memory=True):
        y = x * x.exp()
    y.backward()
    assert x.grad.item() == pytest.approx(4 * 20.085536923187668)


def test_packing_is_not_recorded_and_must_not_write() -> None:
    x = leaf(1.0)
    seen = []

    def pack(t: torchlab.Tensor) -> torchlab.Tensor:
        seen.append((t.requires_grad, t.is_leaf, (t * 2).requires_grad))
        return t.detach()

    with graph.saved_tensors_hooks(pack, lambda t: t):
        y = x.exp()
    assert seen == [(True, False, False)] and y.requires_grad
    with graph.saved_tensors_hooks(lambda t: t.add_(1), lambda t: t):
        with pytest.raises(RuntimeError, match="modifying its input in place"):
            (x * 2).detach().requires_grad_(False).mul(x)


def test_raw_saved_tensors() -> None:
    x = leaf(1.0)
    y = x.exp()
    z = y * x
    raw = z.grad_fn._raw_saved_self
    assert raw.data.item() == y.item() and raw.unpack().grad_fn is y.grad_fn
    raw.register_hooks(lambda t: t * 2, lambda t: t)
    with pytest.raises(RuntimeError, match="already been set"):
        raw.register_hooks(lambda t: t, lambda t: t)
    assert z.grad_fn._saved_self.item() == 2 * y.item()
    z.backward()
    assert x.grad.item() == pytest.approx(3 * y.item())  # the other factor came back doubled
    with pytest.raises(RuntimeError, match="after it has been freed"):
        raw.register_hooks(lambda t: t, lambda t: t)


def test_edges_stand_for_tensors() -> None:
    x = leaf(2.0)
    y = x * x
    edge = graph.get_gradient_edge(y)
    assert edge.node is y.grad_fn and edge.output_nr == 0
    assert (
        torchlab.autograd.grad(edge, graph.get_gradient_edge(x), retain_graph=True)[0].item() == 4
    )
    torchlab.autograd.backward(edge)
    assert x.grad.item() == 4.0
    assert torchlab.autograd.grad((x * 3).sum(), {"x": x})["x"].item() == 3.0
    with pytest.raises(RuntimeError, match="does not require gradients"):
        graph.get_gradient_edge(torchlab.ones(1))


def test_versions_can_be_counted_by_hand() -> None:
    x = torchlab.ones(1)
    graph.increment_version(x)
    graph.increment_version([x, x])
    assert x._version == 3


def test_metadata_and_numbers() -> None:
    x = leaf(1.0)
    y = x * 2
    y.grad_fn.metadata["note"] = 1
    assert y.grad_fn.metadata == {"note": 1}
    z = y * 2
    assert z.grad_fn._sequence_nr() > y.grad_fn._sequence_nr()
    ((node, nr), _) = y.grad_fn.next_functions
    assert node.variable is x and nr == 0 and node.name() == "torch::autograd::AccumulateGrad"
    assert isinstance(y.grad_fn, graph.Node) and node._sequence_nr() == 2**64 - 1


def test_gradients_in_batches() -> None:
    x = leaf(1.0, 2.0)
    y = x * x
    rows = torchlab.eye(2, dtype=torchlab.float64)
    (j,) = torchlab.autograd.grad(y, x, rows, is_grads_batched=True)
    assert j.tolist() == [[2.0, 0.0], [0.0, 4.0]]
    with pytest.raises(RuntimeError, match="first dimension of each grad_output as the batch"):
        torchlab.autograd.grad(x * x, x, torchlab.ones(3, 3), is_grads_batched=True)

"""The tape's record: versions, edges, saved values, lifetimes."""

from __future__ import annotations

import gc
import weakref

import pytest

import torchlab
from torchlab._core.tape import AccumulateGrad, edge_of


def leaf(*values: float) -> torchlab.Tensor:
    return torchlab.tensor(list(values), requires_grad=True)


def test_versions_count_writes_and_are_shared_by_views() -> None:
    x = torchlab.zeros(4)
    v = x[1:3]
    assert (x._version, v._version) == (0, 0)
    v.add_(1)
    x.mul_(2)
    assert (x._version, v._version) == (2, 2)
    assert x.detach()._version == 2
    assert x.clone()._version == 0


def test_edges() -> None:
    x = leaf(1.0)
    assert type(edge_of(x)) is AccumulateGrad and x.is_leaf and x.grad_fn is None
    y = x * 2
    assert edge_of(y) is y.grad_fn and y.grad_fn.name() == "MulBackward0"
    ((node, number),) = [f for f in y.grad_fn.next_functions if f[0] is not None]
    assert node.variable is x and number == 0
    assert edge_of(y.detach()) is None
    values, indices = leaf(1.0, 3.0).max(0)
    assert values.requires_grad and not indices.requires_grad


def test_the_error_names_the_tensor_and_the_line() -> None:
    x = leaf(1.0, 2.0)
    y = x * 1
    z = y * y
    y.add_(1)  # the culprit
    with pytest.raises(RuntimeError) as caught:
        z.sum().backward()
    text = str(caught.value)
    assert "modified by an inplace operation" in text and "[torch.FloatTensor [2]]" in text
    assert "is at version 1; expected version 0" in text
    assert "test_tape.py" in text and "y.add_(1)  # the culprit" in text


def test_a_released_graph_says_so() -> None:
    y = (leaf(2.0) ** 2).sum()
    y.backward()
    with pytest.raises(RuntimeError, match="backward through the graph a second time"):
        y.backward()


def test_saved_values_are_readable() -> None:
    x = leaf(3.0)
    y = x.exp()
    assert y.grad_fn._saved_result is not None and y.grad_fn._saved_result.item() == y.item()
    with pytest.raises(AttributeError, match="has no attribute '_saved_nothing'"):
        _ = y.grad_fn._saved_nothing


def test_graphs_die_without_the_collector() -> None:
    gc.disable()
    try:
        x = leaf(1.0, 2.0)
        y = x * x + 1
        y[0] = y[1] * 2
        z = y.view(2, 1).sum()
        z.backward(create_graph=True)
        dead = [weakref.ref(t) for t in (y, z, y.grad_fn, z.grad_fn, x.grad)]
        x.grad = None
        del y, z
        assert [r() for r in dead] == [None] * 5
        gone = weakref.ref(x)
        del x
        assert gone() is None
    finally:
        gc.enable()

"""Views after writes, leaves that change: what PyTorch's documentation says of in-place operations,
case by case. (`tests/conformance/test_view_faults_torch.py` holds more of them against PyTorch.)"""

from __future__ import annotations

import pytest

import torchlab as torch
from torchlab._core.memory.storage import origin_of


def _leaf(*values: float) -> torch.Tensor:
    return torch.tensor(values, requires_grad=True)


def test_a_view_is_made_anew_after_a_write_that_nobody_recorded() -> None:
    x = _leaf(1.0, 2.0, 3.0)
    v = x[1:]
    assert type(v.grad_fn).__name__ == "SliceBackward0"
    with torch.no_grad():
        x.add_(1)
    assert type(v.grad_fn).__name__ == "AsStridedBackward0"
    (v * v).sum().backward()
    assert x.grad.tolist() == [0, 6, 8]


def test_the_storage_of_a_parameter_without_views_stays_on_the_short_way() -> None:
    x = _leaf(1.0, 2.0)
    (x.view(2) * 2).sum().backward()
    with torch.no_grad():
        x.sub_(x.grad)
    assert not x._s.stale and x._version == 1
    (x.view(2) * 2).sum().backward()
    with torch.no_grad():
        x.add_(x.grad, alpha=-0.5)
        x.neg_()
    assert not x._s.stale and x._version == 3


@pytest.mark.parametrize("take", [lambda x: x.unbind(), lambda x: x.split(1), lambda x: x.chunk(2)])
def test_one_of_several_views_refuses_after_a_write(take) -> None:
    x = _leaf(1.0, 2.0) * 1
    a, b = take(x)
    with torch.no_grad():
        x.add_(1)
    assert b.requires_grad
    for use in (lambda: b.grad_fn, lambda: b.is_leaf, lambda: b * 2):
        with pytest.raises(RuntimeError, match="Output 1 of .* is a view and its base or another"):
            use()
    with pytest.raises(RuntimeError, match="is being modified inplace. This view is the output of"):
        a.mul_(2)
    with torch.no_grad():
        b.mul_(2)  # nobody records: nobody asks
    assert x[1].item() == 6


def test_a_view_of_no_grad_refuses_after_a_write() -> None:
    x = _leaf(1.0, 2.0)
    with torch.no_grad():
        v = x[:1]
        assert (v * 2).tolist() == [2]
        x.zero_()
    assert v.requires_grad
    with pytest.raises(RuntimeError, match="created in no_grad mode and its base or another view"):
        v.sin()
    with torch.inference_mode():
        w = x[:1]
    with pytest.raises(RuntimeError, match="created in inference mode and is being modified"):
        w.mul_(2)


def test_views_ask_their_base_whether_they_want_gradients() -> None:
    x = torch.zeros(3)
    v = x[:2]
    x.requires_grad_()
    assert v.requires_grad and v.is_leaf and (v * 2).requires_grad
    x.requires_grad_(False)
    assert not v.requires_grad
    y = _leaf(1.0) * 1
    w = y.view(1)
    y.detach_()
    assert w.requires_grad and type(w.grad_fn).__name__ == "ViewBackward0"


def test_what_a_view_that_leads_nowhere_does_not_need_is_not_saved() -> None:
    x = _leaf(1.0, 2.0)
    with torch.no_grad():
        v = x[:]
    w = torch.ones(2)
    y = v * w
    w.add_(1)  # v gets no gradient, so w was not saved
    y.sum().backward()
    assert x.grad is None and y.grad_fn.next_functions[0] == (None, 0)


def test_a_leaf_of_another_shape_keeps_the_node_of_its_living_graphs() -> None:
    x = torch.ones(3, requires_grad=True)
    y = (x * 2).sum()
    x.data = torch.ones(2, 3)
    y.backward()
    assert x.grad.tolist() == [[2, 2, 2]] * 2
    x = torch.ones(2, 1, requires_grad=True)
    y = (x * 2).sum()
    with torch.no_grad():
        x.squeeze_()
    y = (x * 2).sum()  # ends in the node of before, which a graph of the old shape had
    with pytest.raises(RuntimeError, match="invalid gradient"):
        y.backward()
    del y
    (x * 2).sum().backward()
    assert x.grad.tolist() == [2, 2]


def test_data_has_a_version_of_its_own_and_the_same_memory() -> None:
    x = torch.ones(3)
    x.add_(1)
    d = x.data
    d.mul_(2)
    assert (x._version, d._version) == (1, 1) and x.detach()._version == 1
    assert x.untyped_storage() is d.untyped_storage() and origin_of(d._s) is x._s
    view = x[:2]
    d.resize_(8)
    d.fill_(7)
    assert x.tolist() == [7, 7, 7] and view.tolist() == [7, 7]
    x.data = torch.zeros(2)
    x.add_(1)
    assert view._version == x._version == 2 and view.tolist() == [7, 7]


def test_what_was_detached_in_place_cannot_be_unpacked() -> None:
    y = _leaf(1.0) * 2
    z = y.abs()
    y.detach_()
    with pytest.raises(RuntimeError, match="detached in-place"):
        z.backward(torch.ones(1))


def test_an_operator_without_a_formula_leaves_a_history_that_refuses() -> None:
    out = _leaf(1.0) * 1
    torch.lcm(torch.tensor([4]), torch.tensor([6]), out=out)
    assert out.grad_fn.name() == "torch::autograd::NotImplemented"
    with pytest.raises(RuntimeError, match="derivative for aten::lcm is not implemented"):
        out.backward()
    with pytest.raises(RuntimeError, match="don't support automatic differentiation"):
        torch.lcm(torch.tensor([4]), torch.tensor([6]), out=_leaf(1.0))

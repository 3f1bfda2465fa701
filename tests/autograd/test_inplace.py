"""Writes in place, through views too, and what may not be written."""

from __future__ import annotations

import pytest

import torchlab


def leaf(*values: float) -> torchlab.Tensor:
    return torchlab.tensor(list(values), requires_grad=True)


def test_a_chain_of_writes_through_views() -> None:
    x = leaf(1.0, 2.0, 3.0, 4.0)
    y = x * 1
    v = y.view(2, 2)
    row = v[1]
    row.mul_(10)  # y = [1, 2, 30, 40]
    v[:, 0].add_(row)  # column 0 plus [30, 40]: y = [31, 2, 70, 40]
    assert y.tolist() == [31.0, 2.0, 70.0, 40.0]
    assert y.grad_fn.name() == "torch::autograd::CopySlices"
    (y * torchlab.tensor([1.0, 10.0, 100.0, 1000.0])).sum().backward()
    # y0 = x0 + 10 x2; y1 = x1; y2 = 10 x2 + 10 x3; y3 = 10 x3
    assert x.grad.tolist() == [1.0, 10.0, 10.0 + 1000.0, 1000.0 + 10000.0]


def test_a_view_sees_the_base_written_later() -> None:
    x = leaf(2.0, 3.0)
    y = x * 1
    v = y[0]
    y.mul_(x.detach())
    assert v.item() == 4.0 and v.requires_grad
    v.backward()
    assert x.grad.tolist() == [2.0, 0.0]


def test_assignment_takes_the_gradient_away() -> None:
    x, z = leaf(1.0, 2.0), leaf(5.0)
    y = x * 3
    y[0] = z[0] * 2
    y.sum().backward()
    assert x.grad.tolist() == [0.0, 3.0] and z.grad.item() == 2.0


def test_a_plain_tensor_gets_history() -> None:
    x = leaf(4.0)
    buffer = torchlab.zeros(2)
    buffer[1:].copy_(x)
    assert buffer.requires_grad and not buffer.is_leaf
    (buffer * 3).sum().backward()
    assert x.grad.item() == 3.0


def test_leaves_and_their_views_are_safe() -> None:
    x = leaf(1.0, 2.0)
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad"):
        x.add_(1)
    with pytest.raises(RuntimeError, match="a view of a leaf Variable that requires grad"):
        x[0].add_(1)
    with torchlab.no_grad():
        x.add_(1)
    assert x.tolist() == [2.0, 3.0] and x.is_leaf


def test_views_of_several_outputs_must_not_be_written() -> None:
    y = leaf(1.0, 2.0) * 1
    a, _ = y.unbind()
    with pytest.raises(RuntimeError, match="returns multiple views"):
        a.add_(1)
    assert y.tolist() == [1.0, 2.0]


def test_detach_shares_memory_and_version() -> None:
    x = leaf(1.0, 2.0)
    y = x * 1
    z = y * y
    d = y.detach()
    assert not d.requires_grad
    d.add_(1)
    assert y.tolist() == [2.0, 3.0] and y._version == 1
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        z.sum().backward()
    w = x * 1
    w.detach_()
    assert w.is_leaf and not w.requires_grad


def test_the_old_value_is_kept_where_the_formula_needs_it() -> None:
    x = leaf(2.0, 3.0)
    y = x * 1
    y.pow_(2)  # the gradient needs what was there before
    y.exp_()  # and here the result
    y.sum().backward()
    expected = [2 * v * torchlab.tensor(v * v).exp().item() for v in (2.0, 3.0)]
    assert x.grad.tolist() == pytest.approx(expected)


def test_writes_that_do_not_disturb() -> None:
    x = leaf(1.0, 2.0)
    y = x + 1  # saves nothing
    y.mul_(2)
    y.sum().backward()
    assert x.grad.tolist() == [2.0, 2.0]


def _retained(write):
    """The gradients of (y·y).sum() at y = 2x and at x = 1, with y retained before the write."""
    x = torchlab.ones(4, requires_grad=True)
    y = x * 2
    v = y[:2]
    y.retain_grad()
    v.retain_grad()
    write(y, v)
    (y * y).sum().backward()
    return y.grad.tolist(), x.grad.tolist()


def test_a_retained_gradient_is_that_of_what_was_written():
    # PyTorch 2.13 gives these: the gradient of the value after the write, 2·y.
    assert _retained(lambda y, v: y.mul_(5)) == ([20.0] * 4, [200.0] * 4)
    assert _retained(lambda y, v: v.mul_(5)) == ([20.0, 20.0, 4.0, 4.0], [200.0, 200.0, 8.0, 8.0])


def test_a_retained_view_follows_a_write_to_its_base():
    x = torchlab.ones(4, requires_grad=True)
    y = x * 2
    v = y[:2]
    v.retain_grad()
    y.mul_(5)
    (v * v).sum().backward()
    assert v.grad.tolist() == [20.0, 20.0]


@pytest.mark.parametrize("join", [torchlab.cat, torchlab.stack])
def test_joined_tensors_may_be_written_afterwards(join):
    """Only their shapes are kept, as in PyTorch."""
    p = torchlab.ones(3, requires_grad=True)
    a = p * 2
    joined = join([a, a])
    a.add_(1)
    joined.sum().backward()
    assert p.grad.tolist() == [4.0, 4.0, 4.0]


def test_gradients_that_are_views_are_written_as_views():
    """A gradient through a view made anew is one of PyTorch's views of cells; a part of a stacked
    gradient is a view of it alone."""
    x = torchlab.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
    v = x[:1]
    with torchlab.no_grad():
        v.mul_(2)
    (g,) = torchlab.autograd.grad(v, x, torchlab.ones_like(v), create_graph=True)
    assert g._base is not None
    g.sub_(x)
    assert g.grad_fn.name() == "AsStridedBackward0"
    (h,) = torchlab.autograd.grad(v, x, torchlab.ones_like(v))
    with pytest.raises(RuntimeError, match="no_grad mode"):
        h.sub_(x)
    y = torchlab.stack([x, torchlab.ones(2, 2)])
    (g,) = torchlab.autograd.grad(y, x, torchlab.ones_like(y), create_graph=True)
    g.sub_(x)
    assert g.tolist() == [[-1.0, -3.0], [-2.0, -3.0]]


def test_the_source_of_set_is_in_its_history():
    x, y = torchlab.ones(2), torchlab.ones(3, requires_grad=True)
    x.set_(y)
    assert x.requires_grad and x.grad_fn.name() == "torch::autograd::NotImplemented"
    assert [n is None for n, _ in x.grad_fn.next_functions] == [True, False]


@pytest.mark.parametrize(
    "write",
    [
        lambda x, i, y: x.index_copy_(0, i, y),
        lambda x, i, y: x.index_add_(0, i, y),
        lambda x, i, y: x.scatter_(0, i, y),
        lambda x, i, y: x.scatter_add_(0, i, y),
        lambda x, i, y: x.put_(i, y),
    ],
)
def test_writes_that_take_nothing_of_the_target_itself(write):
    x = torchlab.tensor([1.0])
    with pytest.raises(RuntimeError, match="single memory location"):
        write(x, torchlab.tensor([0]), x[:1])


def test_writes_that_have_read_before():
    x = torchlab.tensor([1.0, 2.0, 3.0])
    assert x.masked_fill_(x > 1, x[0]).tolist() == [1.0, 1.0, 1.0]
    x = torchlab.tensor([1.0, 2.0, 3.0])
    assert x.index_fill_(0, torchlab.tensor([0]), x[1]).tolist() == [2.0, 2.0, 3.0]


def test_the_gradient_of_a_leaf_that_has_another_shape_now():
    """PyTorch 2.13 keeps the gradient as it comes if its steps are the leaf's."""
    x = torchlab.tensor([-2.5, 0.25, -2.125], requires_grad=True)
    y = torchlab.where(torchlab.tensor([False, True, True]), x.reshape(-1)[0], torchlab.ones(3))
    with torchlab.no_grad():
        x.unsqueeze_(-1)
    y.sum().backward()
    assert x.shape == (3, 1) and x.grad.tolist() == [2.0, 0.0, 0.0]

    z = torchlab.arange(6.0).view(3, 2)[:, :1].detach().requires_grad_()  # not dense
    y = z.mm(torchlab.tensor([[-1.5, -2.5]]))
    with torchlab.no_grad():
        z.squeeze_()
    y.sum().backward()
    assert z.shape == (3,) and z.grad.tolist() == [[-4.0], [-4.0], [-4.0]]

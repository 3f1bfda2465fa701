"""autograd.Function in both styles."""

from __future__ import annotations

import pytest

import torchlab
from torchlab.autograd import Function, grad, gradcheck
from torchlab.autograd.function import once_differentiable


class Cube(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x**3

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * 3 * x * x


class Scaled(Function):
    @staticmethod
    def forward(x, factor):
        return x * factor, x + 1

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.factor = inputs[1]

    @staticmethod
    def backward(ctx, g, h):
        return g * ctx.factor + h, None


def leaf(*values: float) -> torchlab.Tensor:
    return torchlab.tensor(list(values), dtype=torchlab.float64, requires_grad=True)


def test_with_ctx() -> None:
    x = leaf(2.0)
    y = Cube.apply(x)
    assert y.grad_fn.name() == "CubeBackward"
    (d,) = grad(y, x, create_graph=True)
    assert d.item() == 12.0
    assert grad(d, x)[0].item() == 12.0
    assert gradcheck(Cube.apply, x)


def test_with_setup_context_and_missing_gradients() -> None:
    x = leaf(2.0)
    a, b = Scaled.apply(x, 5.0)
    (a + b).sum().backward()
    assert x.grad.item() == 6.0
    x.grad = None
    Scaled.apply(x, 5.0)[1].sum().backward()  # the other gradient arrives as zeros
    assert x.grad.item() == 1.0


def test_needs_input_grad_and_non_differentiable() -> None:
    seen = []

    class Pick(Function):
        @staticmethod
        def forward(ctx, x, y):
            r, mask = x * y, x > 0
            ctx.mark_non_differentiable(mask)
            return r, mask

        @staticmethod
        def backward(ctx, g, unused):
            seen.append(ctx.needs_input_grad)
            return g, None

    x = leaf(1.0)
    r, mask = Pick.apply(x, torchlab.ones(1, dtype=torchlab.float64))
    assert r.requires_grad and not mask.requires_grad
    r.backward()
    assert seen == [(True, False)]


def test_mark_dirty() -> None:
    class Double(Function):
        @staticmethod
        def forward(ctx, x):
            x.mul_(2)
            ctx.mark_dirty(x)
            return x

        @staticmethod
        def backward(ctx, g):
            return g * 2

    x = leaf(1.0, 2.0)
    y = x * 1
    z = Double.apply(y)
    assert z is y and y.tolist() == [2.0, 4.0] and y._version == 2
    (z * torchlab.tensor([1.0, 10.0])).sum().backward()
    assert x.grad.tolist() == [2.0, 20.0]
    with pytest.raises(RuntimeError, match="leaf Variable that requires grad"):
        Double.apply(leaf(1.0))


def test_once_differentiable() -> None:
    class Once(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        @once_differentiable
        def backward(ctx, g):
            return g * 2 * ctx.saved_tensors[0]

    x = leaf(3.0)
    assert grad(Once.apply(x), x)[0].item() == 6.0
    (d,) = grad(Once.apply(x), x, torchlab.ones(1, dtype=torchlab.float64, requires_grad=True),
                create_graph=True)  # fmt: skip
    with pytest.raises(RuntimeError, match="marked with @once_differentiable"):
        d.sum().backward()


def test_refusals() -> None:
    class Short(Function):
        @staticmethod
        def forward(ctx, x, y):
            return x + y

        @staticmethod
        def backward(ctx, g):
            return g

    x = leaf(1.0)
    with pytest.raises(RuntimeError, match=r"incorrect number of gradients \(expected 2, got 1\)"):
        Short.apply(x, x).backward()
    with pytest.warns(DeprecationWarning, match="should not be instantiated"):
        short = Short()
    with pytest.raises(RuntimeError, match="Legacy autograd function"):
        short(x, x)
    with pytest.raises(TypeError, match="save_for_backward can only save variables"):

        class Bad(Function):
            @staticmethod
            def forward(ctx, x):
                ctx.save_for_backward(1)
                return x * 1

        Bad.apply(x)


def test_saved_input_is_checked() -> None:
    x = leaf(1.0)
    y = x * 1
    z = Cube.apply(y)
    y.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation.*CubeBackward"):
        z.backward()


class Written(Function):
    @staticmethod
    def forward(ctx, *tensors):
        for t in tensors:
            t.mul_(2)
        ctx.mark_dirty(*tensors)
        return tensors if len(tensors) > 1 else tensors[0]

    @staticmethod
    def backward(ctx, *grads):
        return tuple(g * 2 for g in grads)


class Still(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.mark_non_differentiable(x)
        return x

    @staticmethod
    def backward(ctx, g):
        raise AssertionError


def test_every_mark_of_dirty_counts_also_if_a_write_is_refused() -> None:
    x = torchlab.tensor([1.0])
    Written.apply(x, x)
    assert x._version == 4  # two writes, two marks
    leaf, other = torchlab.tensor([1.0], requires_grad=True), torchlab.tensor([1.0])
    with pytest.raises(RuntimeError, match="leaf Variable"):
        Written.apply(leaf, other)
    assert (leaf._version, other._version) == (2, 2)


def test_a_refused_write_to_a_leafs_view_has_dropped_its_gradient() -> None:
    x = torchlab.tensor([1.0, 2.0], requires_grad=True)
    v = x.view(-1)
    v.sum().backward(inputs=[v])
    assert v.grad.tolist() == [1.0, 1.0]
    with pytest.raises(RuntimeError, match="a view of a leaf Variable"):
        Written.apply(v)
    assert v.grad is None


def test_an_input_that_is_returned_without_gradient() -> None:
    x = torchlab.tensor([1.0], requires_grad=True)
    y = Still.apply(x)
    assert not y.requires_grad and y.grad_fn is None and x.requires_grad
    plain = torchlab.tensor([1.0])
    assert Still.apply(plain)._base is plain


def test_an_unrecorded_view_that_was_saved_wants_gradients() -> None:
    seen = []

    class Saves(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * 2

        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            seen.append((x.requires_grad, x.grad_fn, x._base is not None))
            return g

    x = torchlab.tensor([1.0, 2.0], requires_grad=True) * 1
    with torchlab.no_grad():
        v = x[1:]
    Saves.apply(v).sum().backward()
    with torchlab.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t):
        y = Saves.apply(v)
    y.sum().backward()
    assert seen == [(True, None, True), (True, None, False)]


def test_a_wrong_gradient_is_refused_also_where_nobody_gets_it() -> None:
    class Wrong(Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, g):
            return torchlab.ones(5, 7)

    y = Wrong.apply(torchlab.tensor([1.0, 2.0, 3.0], requires_grad=True))
    with pytest.raises(RuntimeError, match="invalid gradient"):
        y.sum().backward(inputs=[y], create_graph=True)


def test_what_a_function_saved_may_be_detached_in_place_afterwards():
    """PyTorch 2.13 refuses that for its own operators only."""

    class Square(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            assert x.grad_fn is None and not x.requires_grad
            return 2 * x * g

    x = torchlab.tensor([1.0, 2.0], requires_grad=True)
    for function, fails in ((Square.apply, False), (lambda t: t * t, True)):
        between = x * 3
        y = function(between)
        between.detach_()
        if fails:
            with pytest.raises(RuntimeError, match="has been detached in-place"):
                y.sum().backward()
        else:
            (g,) = torchlab.autograd.grad(y.sum(), x)
            assert g.tolist() == [18.0, 36.0]


def test_once_differentiable_marks_nothing_where_nobody_records():
    class Once(Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        @once_differentiable
        def backward(ctx, g):
            return g * 2

    x = torchlab.ones(2, requires_grad=True)
    for create in (False, True):
        y = Once.apply(x)
        seen = []
        y.grad_fn.register_hook(lambda inputs, outputs, seen=seen: seen.append(inputs[0]))
        grad(y, x, torchlab.ones(2, requires_grad=True), create_graph=create)
        assert seen[0].requires_grad is create


def test_what_was_a_leaf_gets_no_gradient_once_a_function_has_written_to_it():
    class Write(Function):
        @staticmethod
        def forward(ctx, x, y):
            x.add_(1)
            ctx.mark_dirty(x)
            return x

        @staticmethod
        def backward(ctx, g):
            return g, g

    x = torchlab.ones(2, requires_grad=True)
    y = x * 2
    x.requires_grad_(False)
    z = Write.apply(x, y)
    assert z is x
    node = y.grad_fn.next_functions[0][0]
    assert node.name() == "torch::autograd::AccumulateGrad"
    assert node.variable is None

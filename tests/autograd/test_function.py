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

"""Backward from several threads, inside itself, after errors; anomaly mode; inference mode."""

from __future__ import annotations

import threading
import warnings

import pytest

import torchlab
from torchlab.autograd import Function, Variable, detect_anomaly, grad


def leaf(*values: float) -> torchlab.Tensor:
    return torchlab.tensor(list(values), dtype=torchlab.float64, requires_grad=True)


def _in_threads(work, n: int = 4) -> None:
    errors: list[BaseException] = []

    def run(i: int) -> None:
        try:
            work(i)
        except BaseException as e:
            errors.append(e)

    threads = [threading.Thread(target=run, args=(i,)) for i in range(n)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    if errors:
        raise errors[0]


def test_threads_lose_no_gradient() -> None:
    x = torchlab.zeros(200_000, dtype=torchlab.float64, requires_grad=True)

    def work(i: int) -> None:
        for _ in range(20):
            (x * (i + 1)).sum().backward()

    _in_threads(work)
    assert x.grad.unique().tolist() == [20.0 * 10]


def test_threads_share_a_graph() -> None:
    x = leaf(1.0, 2.0)
    y = (x.exp() * x).tanh()
    expected = grad(y.sum(), x, retain_graph=True)[0].tolist()

    def work(i: int) -> None:
        for _ in range(20):
            assert grad(y.sum(), x, retain_graph=True)[0].tolist() == expected
            y.sum().backward(retain_graph=True)

    _in_threads(work)
    assert x.grad.tolist() == pytest.approx([80 * g for g in expected])


def test_threads_have_their_own_hooks_for_saved_tensors_and_modes() -> None:
    x = leaf(1.0)
    seen = []
    with torchlab.autograd.graph.saved_tensors_hooks(
        lambda t: seen.append(1) or t.detach(), lambda t: t
    ):
        _in_threads(lambda i: x.exp().backward(), 2)
    assert seen == []


def test_a_backward_inside_a_backward() -> None:
    order = []

    class Inner(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.depth = int(x.item())
            return x * 1

        @staticmethod
        def backward(ctx, g):
            order.append(ctx.depth)
            if ctx.depth:
                with torchlab.enable_grad():
                    y = leaf(ctx.depth - 1.0)
                    Inner.apply(y).sum().backward()
                assert not torchlab.is_grad_enabled()
                return g * y.grad
            return g * 2

    x = leaf(50.0)
    Inner.apply(x).sum().backward()
    assert order == list(range(50, -1, -1)) and x.grad.item() == 2.0


def test_callbacks_at_the_end() -> None:
    x = leaf(1.0)
    order = []
    queue = Variable._execution_engine.queue_callback

    def hook(g: torchlab.Tensor) -> None:
        order.append("hook")
        queue(lambda: order.append(("end", x.grad.item())))

    y = x * 2
    y.register_hook(hook)
    y.backward()
    assert order == ["hook", ("end", 2.0)]
    with pytest.raises(RuntimeError, match="during backward pass"):
        queue(lambda: None)


def test_an_error_leaves_the_graph_usable() -> None:
    x = leaf(1.0, 2.0)
    y = x.exp()
    z = y * x
    handle = y.register_hook(lambda g: g[0])
    with pytest.raises(RuntimeError, match="has changed the size of value"):
        z.sum().backward()
    handle.remove()
    assert x.grad is None  # it waited for the exponential
    assert torchlab.is_grad_enabled()
    with pytest.raises(RuntimeError, match="second time"):
        z.sum().backward()  # the product had already been through
    y.sum().backward()  # the exponential had not


def test_leaves_in_the_interior() -> None:
    x = leaf(1.0)
    y = x * 2
    x.requires_grad_(False)
    x.mul_(leaf(3.0))
    with pytest.raises(RuntimeError, match="moved into the graph interior"):
        y.backward()


def test_the_users_attributes_of_ctx_are_the_users() -> None:
    class Scale(Function):
        @staticmethod
        def forward(ctx, x, k):
            ctx.k, ctx.shape, ctx.seq, ctx.outs, ctx.hooks, ctx.used = k, x.shape, 1, 2, 3, 4
            ctx.function = "f"
            return x * k

        @staticmethod
        def backward(ctx, g):
            assert (ctx.shape, ctx.seq, ctx.outs, ctx.hooks) == ((2,), 1, 2, 3)
            assert (ctx.used, ctx.function) == (4, "f")
            return g * ctx.k, None

    x = leaf(1.0, 2.0)
    y = Scale.apply(x, k=5)
    assert type(y.grad_fn).__name__ == "ScaleBackward" and y.grad_fn.k == 5
    y.sum().backward()
    assert x.grad.tolist() == [5.0, 5.0]


def _warned(run) -> str:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        run()
    return "\n".join(str(w.message) for w in caught)


def test_anomaly_mode_tells_of_errors_functions_and_second_derivatives() -> None:
    class Broken(Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1

        @staticmethod
        def backward(ctx, g):
            raise ValueError("broken")

    def of_function() -> None:
        with detect_anomaly():
            y = Broken.apply(leaf(1.0))
            assert "of_function" in "".join(y.grad_fn.metadata["traceback_"])
            with pytest.raises(ValueError, match="broken"):
                y.backward()

    text = _warned(of_function)
    assert "Error detected in BrokenBackward" in text and "y = Broken.apply(leaf(1.0))" in text

    def of_second() -> None:
        with detect_anomaly():
            x = leaf(0.0)
            (g,) = grad((x**1.5).sum(), x, create_graph=True)
            with pytest.raises(RuntimeError, match="returned nan values"):
                grad(g, x, torchlab.zeros(1, dtype=torchlab.float64))

    text = _warned(of_second)
    assert "Previous calculation was induced by PowBackward0" in text

    def without_forward() -> None:
        y = torchlab.sqrt(leaf(-1.0))
        with detect_anomaly(), pytest.raises(RuntimeError, match="nan"):
            y.backward()
        with detect_anomaly(check_nan=False):
            torchlab.sqrt(leaf(-1.0)).backward()

    assert "No forward pass information" in _warned(without_forward)


def test_inference_mode_corners() -> None:
    x = leaf(1.0, 2.0)
    with torchlab.inference_mode():
        y = x * 2
        assert y.is_inference() and not y.requires_grad
        v = x[0]  # a view of a normal tensor is a normal tensor
        assert not v.is_inference()
        with pytest.raises(RuntimeError, match="do not track version counter"):
            _ = y._version
        y.add_(1)
        with torchlab.inference_mode(False):
            assert (x * 2).requires_grad and not torchlab.ones(1).is_inference()
    with pytest.raises(RuntimeError, match="Setting requires_grad=True on inference tensor"):
        y.requires_grad_()
    with pytest.raises(RuntimeError, match="cannot be saved for backward"):
        x * y
    assert not (y + 1).is_inference()
    assert (x + y).requires_grad  # nothing is saved
    with pytest.raises(RuntimeError, match="Inplace update to inference tensor"):
        y.mul_(2)

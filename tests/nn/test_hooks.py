"""torchlab.nn._calls and _backward_hooks."""

from __future__ import annotations

import pytest

import torchlab as torch
from torchlab import nn
from torchlab.nn.modules import module as modules


class Affine(nn.Module):
    """2x + 1."""

    def forward(self, x, *, shift=1.0):
        return 2 * x + shift


X = 3.0


def x():
    return torch.tensor([X], requires_grad=True)


def test_forward_hooks_may_replace_input_and_output():
    m = Affine()
    first = m.register_forward_pre_hook(lambda module, args: args[0] + 1)
    second = m.register_forward_hook(lambda module, args, out: out * 10)
    assert m(x()).item() == (2 * 4 + 1) * 10
    first.remove()
    assert m(x()).item() == 70
    second.remove()
    second.remove()
    assert m(x()).item() == 7


def test_hooks_with_keyword_arguments():
    m = Affine()
    m.register_forward_pre_hook(
        lambda module, args, kwargs: (args, {"shift": kwargs["shift"] + 1}), with_kwargs=True
    )
    seen = []
    m.register_forward_hook(lambda module, a, kw, out: seen.append(kw), with_kwargs=True)
    assert m(x(), shift=5.0).item() == 12
    assert seen == [{"shift": 6.0}]
    m.register_forward_pre_hook(lambda module, args, kwargs: 3, with_kwargs=True)
    with pytest.raises(
        RuntimeError, match=r"must return None or a tuple of \(new_args, new_kwargs\)"
    ):
        m(x(), shift=1.0)


def test_order_and_prepend():
    m = Affine()
    order = []
    m.register_forward_hook(lambda *a: order.append("a"))
    m.register_forward_hook(lambda *a: order.append("b"))
    m.register_forward_hook(lambda *a: order.append("first"), prepend=True)
    m(x())
    assert order == ["first", "a", "b"]


def test_always_called_also_after_an_error():
    m = nn.Linear(2, 2)
    calls = []
    m.register_forward_hook(lambda *a: calls.append("usual"))
    m.register_forward_hook(lambda *a: calls.append("always"), always_call=True)
    with pytest.raises(RuntimeError):
        m(torch.ones(1, 3))
    assert calls == ["always"]


def test_global_hooks():
    seen = []
    with modules.register_module_forward_hook(lambda m, a, o: seen.append(type(m).__name__)):
        nn.Sequential(Affine())(x())
    Affine()(x())
    assert seen == ["Affine", "Sequential"]
    with modules.register_module_parameter_registration_hook(lambda m, n, p: seen.append(n)):
        nn.Linear(1, 1)
    assert seen[2:] == ["weight", "bias"]


def test_backward_hooks_see_and_replace_gradients():
    m = Affine()
    seen = {}

    def pre(module, grad_output):
        seen["pre"] = grad_output[0].item()
        return (grad_output[0] * 3,)

    def full(module, grad_input, grad_output):
        seen["full"] = grad_input[0].item(), grad_output[0].item()
        return (grad_input[0] + 1,)

    m.register_full_backward_pre_hook(pre)
    m.register_full_backward_hook(full)
    leaf = x()
    (m(leaf) * 5).sum().backward()
    assert seen == {"pre": 5.0, "full": (30.0, 15.0)}
    assert leaf.grad.item() == 31.0


def test_backward_hook_where_no_input_wants_a_gradient():
    m = nn.Linear(2, 1)
    seen = []
    handle = m.register_full_backward_hook(lambda mod, gi, go: seen.append((gi, go[0].item())))
    with pytest.warns(UserWarning, match="since no inputs require gradients"):
        m(torch.ones(1, 2)).sum().backward()
    assert seen == [((None,), 1.0)]
    handle.remove()
    m.register_full_backward_hook(lambda mod, gi, go: (torch.ones(1, 2),))
    with (
        pytest.warns(UserWarning),
        pytest.raises(RuntimeError, match="where no input requires gradient"),
    ):
        m(torch.ones(1, 2)).sum().backward()


def test_backward_hook_of_the_wrong_length():
    m = Affine()
    m.register_full_backward_hook(lambda mod, gi, go: (None, None))
    with pytest.raises(RuntimeError, match="invalid number of grad_input, got 2, but expected 1"):
        m(x()).sum().backward()


def test_without_recording_the_backward_hooks_do_nothing():
    m = Affine()
    m.register_full_backward_hook(lambda *a: 1 / 0)
    with torch.no_grad():
        assert m(x()).item() == 7


def test_outputs_that_backward_hooks_do_not_see_are_told() -> None:
    class Both(nn.Module):
        def forward(self, x: torch.Tensor) -> dict[str, torch.Tensor]:
            return {"twice": x * 2}

    m = Both()
    m.register_full_backward_hook(lambda *_: None)
    with pytest.warns(UserWarning, match="should be a Tensor or a tuple of Tensors but received"):
        m(torch.ones(1, requires_grad=True))

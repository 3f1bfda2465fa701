"""Hooks of tensors and nodes."""

from __future__ import annotations

import pytest

import torchlab


def leaf(*values: float) -> torchlab.Tensor:
    return torchlab.tensor(list(values), requires_grad=True)


def test_tensor_hooks_run_in_order_and_replace() -> None:
    x = leaf(1.0)
    y = x * 2
    seen = []
    y.register_hook(lambda g: seen.append(("first", g.item())))
    y.register_hook(lambda g: g * 10)
    y.register_hook(lambda g: seen.append(("third", g.item())))
    y.sum().backward()
    assert seen == [("first", 1.0), ("third", 10.0)]
    assert x.grad.item() == 20.0


def test_removal() -> None:
    x = leaf(1.0)
    handle = x.register_hook(lambda g: g * 5)
    (x * 1).backward()
    handle.remove()
    (x * 1).backward()
    assert x.grad.item() == 6.0


def test_retain_grad_sees_what_the_hooks_made() -> None:
    x = leaf(1.0)
    y = x * 2
    y.retain_grad()
    assert y.retains_grad
    y.register_hook(lambda g: g * 3)
    (y * 4).backward()
    assert y.grad.item() == 12.0 and x.grad.item() == 24.0


def test_node_hooks() -> None:
    x = leaf(1.0)
    y = x * 2
    seen = []
    y.grad_fn.register_prehook(lambda grads: (grads[0] * 10,))
    y.grad_fn.register_hook(
        lambda inputs, outputs: seen.append((inputs[0].item(), outputs[0].item()))
    )
    y.backward()
    assert seen == [(20.0, 10.0)] and x.grad.item() == 20.0


def test_after_accumulation() -> None:
    x = leaf(1.0)
    seen = []
    x.register_post_accumulate_grad_hook(lambda t: seen.append(t.grad.item()))
    (x * 2).backward()
    (x * 3).backward()
    assert seen == [2.0, 5.0]
    with pytest.raises(RuntimeError, match="leaf"):
        (x * 2).register_post_accumulate_grad_hook(lambda t: None)


def test_no_hooks_without_gradient() -> None:
    with pytest.raises(RuntimeError, match="doesn't require gradient"):
        torchlab.ones(1).register_hook(lambda g: g)


def _edges(t):
    return [None if node is None else node.name() for node, _ in t.grad_fn.next_functions]


@pytest.mark.parametrize(
    ("operate", "edges"),
    [
        (lambda x: x.lerp(x, 0.5), ["MulBackward0", "MulBackward0"]),
        (lambda x: x.lerp(x, x), ["MulBackward0", "MulBackward0", "MulBackward0"]),
        (lambda x: x.clamp(0, 1), ["MulBackward0"]),
        (lambda x: x.clamp(min=x), ["MulBackward0", "MulBackward0", None]),
        (lambda x: x.clamp(max=x), ["MulBackward0", None, "MulBackward0"]),
        (lambda x: x.masked_fill(x > 0, 2), ["MulBackward0"]),
        (lambda x: 2**x, ["MulBackward0"]),
        (lambda x: x * 2, ["MulBackward0", None]),
        (lambda x: x.lt_(1), ["MulBackward0"]),
    ],
)
def test_numbers_have_no_edge_where_pytorchs_node_takes_none(operate, edges) -> None:
    """As many edges and gradients as PyTorch's node of that name has."""
    y = operate(torchlab.tensor([0.5, 2.0], requires_grad=True) * 1)
    assert _edges(y) == edges
    got = []
    y.grad_fn.register_hook(lambda inputs, outputs: got.append([g is None for g in inputs]))
    y.sum().backward()
    assert got == [[e is None for e in edges]]


def test_a_node_hook_replaces_the_gradient_beside_a_number() -> None:
    x = torchlab.tensor([1.0, 2.0], requires_grad=True)
    y = 2**x
    y.grad_fn.register_hook(lambda inputs, outputs: (inputs[0] * 0 + 7,))
    y.sum().backward()
    assert x.grad.tolist() == [7.0, 7.0]


def test_a_write_into_a_view_has_the_edges_of_what_wrote() -> None:
    x = torchlab.tensor([[1.0, 2.0]], requires_grad=True).cos()
    x.t().masked_fill_(torchlab.tensor(True), 3)
    assert _edges(x) == ["CosBackward0"]


@pytest.mark.parametrize("join", [torchlab.cat, torchlab.stack])
def test_hooks_see_the_gradients_of_joined_truth_values(join) -> None:
    """PyTorch gives every tensor of the list its part, in the gradient's type."""
    x = torchlab.tensor([1.0, 2.0], dtype=torchlab.float64, requires_grad=True)
    y = join([x, x > 1])
    seen = []
    y.grad_fn.register_hook(lambda inputs, outputs: seen.extend(g.dtype for g in inputs))
    y.sum().backward()
    assert seen == [torchlab.float64, torchlab.float64]


def test_a_number_that_was_saved_is_a_tensor() -> None:
    x = torchlab.tensor([1.0, 2.0], requires_grad=True)
    saved = (x * 2).grad_fn._saved_other
    assert saved.dtype == torchlab.int64 and saved.item() == 2
    assert (x**2).grad_fn._saved_exponent == 2
    y = x / 4
    pack, unpack = (lambda t: t.tolist()), (lambda n: torchlab.tensor(n / 2))
    y.grad_fn._raw_saved_other.register_hooks(pack, unpack)
    y.sum().backward()
    assert x.grad.tolist() == [0.5, 0.5]


def test_a_node_hook_sees_the_gradients_of_differentiable_results_alone() -> None:
    values, places = torchlab.tensor([2.0, 1.0], requires_grad=True).sort()
    counts = []
    values.grad_fn.register_prehook(lambda outputs: counts.append(len(outputs)))
    values.grad_fn.register_hook(lambda inputs, outputs: counts.append(len(outputs)))
    values.sum().backward()
    assert counts == [1, 1] and not places.requires_grad

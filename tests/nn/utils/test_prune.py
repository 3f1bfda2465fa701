"""Masks of parameters: what is pruned, what the module keeps, what is refused."""

from __future__ import annotations

import copy

import pytest

import torchlab as torch
from torchlab import nn
from torchlab.nn.utils import prune


def linear(*rows: list[float]) -> nn.Linear:
    layer = nn.Linear(len(rows[0]), len(rows), bias=False)
    with torch.no_grad():
        layer.weight.copy_(torch.tensor(rows))
    return layer


def test_l1_keeps_the_largest_and_trains_the_original() -> None:
    layer = prune.l1_unstructured(linear([3.0, -0.5], [0.1, -2.0]), "weight", amount=0.5)
    assert layer.weight_mask.tolist() == [[1, 0], [0, 1]]
    assert [n for n, _ in layer.named_parameters()] == ["weight_orig"]
    layer(torch.ones(1, 2)).sum().backward()
    assert layer.weight_orig.grad.tolist() == [[1, 0], [0, 1]]
    assert sorted(layer.state_dict()) == ["weight_mask", "weight_orig"]
    copied = copy.deepcopy(linear([1.0]))
    assert not prune.is_pruned(copied) and prune.is_pruned(nn.Sequential(layer))


def test_structured_norms_and_a_second_pruning() -> None:
    layer = linear([3.0, 1.0, 1.0], [0.1, 0.2, 0.1], [2.0, 5.0, 0.5])
    prune.ln_structured(layer, "weight", amount=1, n=2, dim=0)
    assert layer.weight.abs().sum(1).tolist() == [5.0, 0.0, 7.5]
    prune.l1_unstructured(layer, "weight", amount=2)  # of the six that are left
    assert int(layer.weight_mask.sum()) == 4
    (hook,) = layer._forward_pre_hooks.values()
    assert isinstance(hook, prune.PruningContainer) and len(hook) == 2
    prune.remove(layer, "weight")
    assert [n for n, _ in layer.named_parameters()] == ["weight"] and not layer._forward_pre_hooks
    assert int((layer.weight == 0).sum()) == 5


def test_global_pruning_compares_all_parameters() -> None:
    a, b = linear([1.0, 2.0]), linear([0.1, 3.0])
    prune.global_unstructured(
        [(a, "weight"), (b, "weight")], pruning_method=prune.L1Unstructured, amount=2
    )
    assert a.weight.tolist() == [[0, 2]] and b.weight.tolist() == [[0, 3]]


def test_a_method_of_ones_own_and_a_mask() -> None:
    class EveryOther(prune.BasePruningMethod):
        PRUNING_TYPE = "unstructured"

        def compute_mask(self, t: torch.Tensor, default_mask: torch.Tensor) -> torch.Tensor:
            mask = default_mask.clone()
            mask.view(-1)[::2] = 0
            return mask

    layer = linear([1.0, 2.0, 3.0])
    EveryOther.apply(layer, "weight")
    assert layer.weight.tolist() == [[0, 2, 0]]
    other = prune.custom_from_mask(linear([1.0, 2.0]), "weight", torch.tensor([[0, 1]]))
    assert other.weight.tolist() == [[0, 2]]
    assert prune.identity(linear([1.0]), "weight").weight_mask.tolist() == [[1]]
    scored = prune.l1_unstructured(
        linear([1.0, 2.0]), "weight", 1, importance_scores=torch.tensor([[2.0, 1.0]])
    )
    assert scored.weight.tolist() == [[1, 0]]


@pytest.mark.parametrize(
    ("error", "call"),
    [
        (ValueError, lambda m: prune.l1_unstructured(m, "weight", amount=1.5)),
        (ValueError, lambda m: prune.l1_unstructured(m, "weight", amount=9)),
        (TypeError, lambda m: prune.l1_unstructured(m, "weight", amount="a")),
        (IndexError, lambda m: prune.ln_structured(m, "weight", amount=0.5, n=2, dim=5)),
        (AttributeError, lambda m: prune.l1_unstructured(m, "foo", amount=1)),
        (ValueError, lambda m: prune.remove(m, "weight")),
    ],
)
def test_refusals_change_nothing(error: type[Exception], call: object) -> None:
    layer = linear([1.0, 2.0])
    with pytest.raises(error):
        call(layer)  # type: ignore[operator]
    assert [n for n, _ in layer.named_parameters()] == ["weight"]
    assert not list(layer.buffers()) and not layer._forward_pre_hooks


def test_random_pruning_draws_as_pytorch() -> None:
    layer, rows = linear([1.0] * 8), linear(*[[1.0, 1.0]] * 4)
    torch.manual_seed(0)
    prune.random_unstructured(layer, "weight", amount=3)
    torch.manual_seed(0)
    prune.random_structured(rows, "weight", amount=2, dim=0)
    # What PyTorch 2.13 prunes after the same seed.
    assert layer.weight_mask.tolist() == [[1, 0, 1, 1, 1, 0, 1, 0]]
    assert rows.weight_mask[:, 0].tolist() == [1, 1, 0, 0]

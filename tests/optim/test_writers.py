"""What other libraries' optimizers take from torch.optim.optimizer."""

import pytest

import torchlab as torch
from torchlab.optim import optimizer
from torchlab.utils import _foreach_utils

group = optimizer.Optimizer._group_tensors_by_device_and_dtype


def _tensors():
    return [torch.ones(2), torch.ones(3, dtype=torch.float64), torch.ones(1)]


def test_groups():
    p, steps = _tensors(), [torch.tensor(0.0)] * 3
    found = group([p, [None, p[1], None], steps, []], with_indices=True)
    cpu = torch.device("cpu")
    assert set(found) == {(cpu, torch.float32), (cpu, torch.float64)}
    lists, positions = found[cpu, torch.float32]
    assert lists[0][0] is p[0] and lists[0][1] is p[2] and positions == [0, 2]
    assert lists[1] == [None, None] and len(lists[2]) == 2 and lists[3] == []
    assert found[cpu, torch.float64][1] == [1] and group([p])[cpu, torch.float64][1] == []
    assert _foreach_utils._group_tensors_by_device_and_dtype([p]).keys() == found.keys()


@pytest.mark.parametrize("lists", [[], [[], []], [_tensors(), _tensors()[:2]], [[None]]])
def test_what_cannot_be_grouped(lists):
    with pytest.raises(RuntimeError):
        group(lists)


def test_the_choice():
    choose = optimizer._default_to_fused_or_foreach
    p = torch.nn.Parameter(torch.ones(2))
    assert choose([p], False) == (False, False)  # on the CPU, for PyTorch too
    assert choose([p, None], False, use_fused=True) == (True, False)
    assert choose([p], True, use_fused=True) == (False, False)
    assert choose([torch.ones(2, dtype=torch.int32)], False, True) == (False, False)
    assert choose([torch.nn.Parameter(torch.ones(2, device="sim"))], False) == (False, True)
    assert "cuda" in optimizer._get_capturable_supported_devices()
    assert "xla" not in optimizer._get_capturable_supported_devices(supports_xla=False)
    assert _foreach_utils._has_foreach_support([torch.ones(1)], torch.device("cpu"))
    assert optimizer._device_dtype_check_for_fused(p) is None
    with pytest.raises(RuntimeError, match=r"requires all the params.* torch.int32 and cpu"):
        optimizer._device_dtype_check_for_fused(torch.ones(1, dtype=torch.int32))


@pytest.mark.parametrize("differentiable", [False, True])
@pytest.mark.parametrize("before", [False, True])
def test_a_step_is_recorded_if_it_says_so(differentiable, before):
    class Own(torch.optim.Optimizer):
        @optimizer._use_grad_for_differentiable
        def step(self, closure=None):
            return torch.is_grad_enabled()

    own = Own([torch.ones(1)], {"differentiable": differentiable})
    with torch.set_grad_enabled(before):
        assert own.step() is differentiable and torch.is_grad_enabled() is before


def test_numbers_and_pairs():
    assert optimizer._get_value(torch.tensor(2.5)) == 2.5 and optimizer._get_value(3) == 3
    assert optimizer._to_scalar(torch.ones(1, 1)).shape == () and optimizer._to_scalar(2.0) == 2.0
    assert optimizer._get_scalar_dtype() is torch.float32
    pairs, others = [torch.ones(2, dtype=torch.complex64), torch.ones(1)], [torch.ones(2) + 1j, 0]
    optimizer._view_as_real(pairs, others)
    assert pairs[0].shape == others[0].shape == (2, 2) and pairs[1].shape == (1,)

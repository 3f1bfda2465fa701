"""FLOP counts of products, convolutions and attention, by module, with backward."""

from __future__ import annotations

from typing import Any

import pytest

import torchlab as torch
from torchlab.utils.flop_counter import FlopCounterMode, register_flop_formula

aten = torch.ops.aten


def test_modules_and_backward() -> None:
    model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 2))
    with FlopCounterMode(display=False) as counter:
        model(torch.ones(3, 4)).sum().backward()
    first, second = 2 * 3 * 4 * 8, 2 * 3 * 8 * 2
    # Backward: the weight's gradient of both, the input's of the second alone.
    assert counter.get_total_flops() == 2 * first + 3 * second
    counts = counter.get_flop_counts()
    assert counts["Sequential.0"] == {aten.addmm: first, aten.mm: first}
    assert counts["Sequential.2"] == {aten.addmm: second, aten.mm: 2 * second}
    assert counts["Global"] == {aten.addmm: first + second, aten.mm: first + 2 * second}
    assert "Sequential.2" in counter.get_table() and "100.00%" in counter.get_table()


def test_convolution_batches_and_attention() -> None:
    conv = torch.nn.Conv2d(2, 3, 3, padding=1)
    forward = 2 * 25 * 3 * 2 * 9
    with FlopCounterMode(display=False) as counter:
        conv(torch.ones(1, 2, 5, 5, requires_grad=True)).sum().backward()
    assert counter.get_total_flops() == 3 * forward
    with FlopCounterMode(display=False) as counter:
        torch.bmm(torch.ones(2, 3, 4), torch.ones(2, 4, 5))
    assert counter.get_total_flops() == 2 * 2 * 3 * 4 * 5
    q = torch.ones(1, 2, 4, 8)
    with FlopCounterMode(display=False) as counter:
        torch.nn.functional.scaled_dot_product_attention(q, q, q)
    assert counter.get_total_flops() == 2 * (2 * 2 * 4 * 4 * 8)


def test_formulas_of_ones_own(capsys: Any) -> None:
    with FlopCounterMode(custom_mapping={aten.add: lambda a, b, out_val: out_val.numel()}) as c:
        torch.ones(3) + torch.ones(3)
    assert c.get_total_flops() == 3 and "aten.add" in capsys.readouterr().out
    with pytest.raises(RuntimeError, match="duplicate registrations"):
        register_flop_formula(aten.mm)(lambda *a, **k: 0)
    with pytest.raises(ValueError, match="expected each target to be OpOverloadPacket"):
        register_flop_formula(torch.mm)(lambda *a, **k: 0)

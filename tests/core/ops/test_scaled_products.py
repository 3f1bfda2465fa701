"""Products of matrices of 8-bit floats with scales; the values are NumPy's in float64."""

import numpy as np
import pytest

import torchlab as torch
from torchlab.nn import functional as F

A = torch.tensor([[1.0, -2.0, 0.5], [4.0, 0.25, -1.5]]).to(torch.float8_e4m3fn)
B = torch.tensor([[2.0, 1.0], [0.5, -1.0], [3.0, 8.0]]).to(torch.float8_e5m2)
PRODUCT = np.array([[2.5, 7.0], [3.625, -8.25]])
ONE, ROWS, COLUMNS = torch.tensor(0.5), torch.tensor([[0.5], [2.0]]), torch.tensor([[1.0, 4.0]])


def test_scales_of_a_whole_and_of_rows():
    by_tensor, by_row = F.ScalingType.TensorWise, F.ScalingType.RowWise
    r = F.scaled_mm(A, B, ONE, by_tensor, ONE, by_tensor, output_dtype=torch.float32)
    np.testing.assert_array_equal(r.numpy(), PRODUCT * 0.25)
    r = F.scaled_mm(
        A, B, ROWS, by_row, COLUMNS, by_row, bias=torch.ones(2), output_dtype=torch.float32
    )
    np.testing.assert_array_equal(r.numpy(), PRODUCT * [[0.5], [2.0]] * [1.0, 4.0] + 1)
    assert F.scaled_mm(A, B, ONE, by_tensor, ONE, by_tensor).dtype is torch.bfloat16
    assert torch._scaled_mm(A, B, ONE, ONE).dtype is torch.float8_e4m3fn


@pytest.mark.parametrize(
    ("error", "scales", "recipe"),
    [
        (ValueError, (ROWS, COLUMNS), "TensorWise"),
        (ValueError, (ONE.double(), ONE), "TensorWise"),
        (ValueError, (ROWS, COLUMNS), "BlockWise1x16"),
        (ValueError, (torch.ones(1), torch.ones(1)), "RowWise"),
        (IndexError, (ONE, ONE), "RowWise"),
    ],
)
def test_scales_that_do_not_fit(error, scales, recipe):
    r = F.ScalingType[recipe]
    with pytest.raises(error):
        F.scaled_mm(A, B, scales[0], r, scales[1], r)


def test_shapes_and_types_that_do_not_fit():
    with pytest.raises(ValueError, match="cannot be multiplied"):
        torch._scaled_mm(A, B[:2], ONE, ONE)
    with pytest.raises(ValueError, match="Invalid scaling configuration"):
        torch._scaled_mm(A.float(), B.float(), ONE, ONE)
    with pytest.raises(RuntimeError, match="Bias must be size 2 but got 3"):
        torch._scaled_mm(A, B, ONE, ONE, torch.ones(3))

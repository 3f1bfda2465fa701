"""Which types of parameters a normalization takes beside its input's."""

from __future__ import annotations

from collections.abc import Callable

import pytest

import torchlab as torch
import torchlab.nn.functional as F

HALF, BFLOAT, FLOAT, DOUBLE = torch.float16, torch.bfloat16, torch.float32, torch.float64
NORMS: dict[str, Callable[[torch.Tensor, torch.Tensor], torch.Tensor]] = {
    "batch": lambda x, w: F.batch_norm(x, w * 0, w, w, w, True),
    "batch, evaluation": lambda x, w: F.batch_norm(x, w * 0, w, None, None, False),
    "layer": lambda x, w: F.layer_norm(x, (4,), w, w),
    "group": lambda x, w: F.group_norm(x, 2, w),
    "instance": lambda x, w: F.instance_norm(x[..., None], weight=w, bias=w),
}


@pytest.mark.parametrize("norm", NORMS.values(), ids=NORMS)
def test_types_that_fit(norm: Callable[[torch.Tensor, torch.Tensor], torch.Tensor]) -> None:
    x = torch.tensor([[1.0, 2.0, 3.0, 5.0], [2.0, 1.0, 1.0, 4.0]])
    if norm is NORMS["instance"]:
        x = torch.stack([x, x + 1, x * x]).permute(1, 2, 0)[..., None]
    for own, given in ((HALF, FLOAT), (BFLOAT, FLOAT), (HALF, HALF), (DOUBLE, DOUBLE)):
        assert norm(x.to(own), torch.ones(4, dtype=given)).dtype is own
    for own, given in ((FLOAT, DOUBLE), (FLOAT, HALF), (HALF, BFLOAT), (DOUBLE, BFLOAT)):
        with pytest.raises(RuntimeError, match="expect parameter to have scalar type of Float"):
            norm(x.to(own), torch.ones(4, dtype=given))
    with pytest.raises(RuntimeError, match="all inputs must share same datatype"):
        norm(x.to(DOUBLE), torch.ones(4))

"""Example arguments of the fake quantization. Its gradient is an estimate except where the codes
are cut off, so that is where finite differences look; test_quantized.py looks elsewhere."""

from __future__ import annotations

from typing import Any

from tests.core.ops.values import F, I

_CALL = (F((2, 3), 5.0, 9.0), F((1,), 0.1, 0.2), I([1]), -1, -8, 7)
_ROWS = (F((2, 3), 5.0, 9.0), F((2,), 0.1, 0.2), I([1, -2]), 0, -8, 7)
ARGUMENTS: dict[str, list[tuple[Any, ...]]] = {
    "_fake_quantize_mask": [_CALL, _ROWS],
    "_fake_quantize_per_tensor": [_CALL],
    "_fake_quantize_per_tensor_qparams": [_CALL],
    "_fake_quantize_per_channel": [_ROWS],
}

"""Functions of quantized tensors that are public under their own names: quantized_max_pool1d …
quantized_batch_norm.

Source: https://docs.pytorch.org/docs/2.13/generated/torch.quantized_batch_norm.html
"""

from __future__ import annotations

from typing import Any

import numpy as np

from torchlab._core.dispatch.op import face
from torchlab._core.dispatch.registry import aten
from torchlab._core.formats import channels_last, channels_last_3d
from torchlab._core.ops._quantized import (
    affine,
    around,
    codes_of,
    in_format,
    need_per_tensor,
    need_quantized,
    values_of,
)


def _max_pool(n: int) -> None:
    name = f"quantized_max_pool{n}d"

    def pool(
        self: Any,
        kernel_size: Any,
        stride: Any = (),
        padding: Any = 0,
        dilation: Any = 1,
        ceil_mode: bool = False,
    ) -> Any:
        need_per_tensor(need_quantized(self, f"aten::{name}"), name)
        run = getattr(aten, f"max_pool{n}d")
        return run(self, kernel_size, stride or None, padding, dilation, ceil_mode)

    pool.__doc__ = f"The {n}-d maximum of each window, in the input's codes."
    face(name, method=False)(pool)


for _n in (1, 2, 3):
    _max_pool(_n)


@face("quantized_batch_norm", method=False)
def quantized_batch_norm(
    self: Any,
    weight: Any,
    bias: Any,
    mean: Any,
    var: Any,
    eps: float,
    output_scale: float,
    output_zero_point: int,
) -> Any:
    """(x - mean) / sqrt(var + eps) · weight + bias by channel (dim 1), to the given quantizer."""
    need_per_tensor(need_quantized(self, "aten::quantized_batch_norm"), "quantized_batch_norm")
    n = self._a.shape[1]
    for name, t in (("weight", weight), ("bias", bias), ("mean", mean), ("var", var)):
        if t is not None and t._a.size != n:
            raise RuntimeError(
                f"quantized_batch_norm: Expect {name} size to match C, but they are {t._a.size} and"
                f" {n}"
            )
    gain = np.float32(1) / np.sqrt(var._a.astype(np.float32) + np.float32(eps))
    gain = gain if weight is None else gain * weight._a
    offset = -mean._a * gain if bias is None else bias._a - mean._a * gain
    shape = (1, n) + (1,) * (self._a.ndim - 2)
    r = values_of(self) * gain.reshape(shape) + offset.reshape(shape)
    q = affine(float(output_scale), int(output_zero_point))
    codes = codes_of(r.astype(np.float32), q, self._k.dtype)
    memory_format = {4: channels_last, 5: channels_last_3d}.get(self._a.ndim)
    return around(in_format(codes, memory_format), q)

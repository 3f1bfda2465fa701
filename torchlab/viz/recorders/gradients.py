"""A gradient in numbers: its shape, its norm, and over which dims it was summed."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from torchlab.viz.recorders.common import array_of, norm
from torchlab.viz.snapshots.autograd import TensorInfo
from torchlab.viz.snapshots.backward import Gradient, Size


def summed_dims(small: list[int], big: list[int]) -> list[int]:
    """The dims of shape `big` over which a gradient is summed to fit `small`; [] if none."""
    lead = len(big) - len(small)
    if lead < 0:
        return []
    return [
        d for d, n in enumerate(big) if d < lead or (small[d - lead] == 1 and n != 1)
    ]  # fmt: skip


def nbytes(infos: list[TensorInfo], nr: int) -> int:
    """The bytes of a gradient for output `nr` of a node."""
    if nr >= len(infos):
        return 0
    info = infos[nr]
    size = {"bool": 1, "uint8": 1, "int8": 1, "float64": 8, "complex64": 8, "complex128": 16}
    half = 2 if info["dtype"] in ("float16", "bfloat16", "int16") else 4
    return math.prod(info["shape"]) * size.get(info["dtype"], half)


def gradient(g: Any, to: str = "", wanted: list[int] | None = None) -> Gradient | None:
    """A gradient in numbers; with `wanted`, as it is delivered: summed to that shape."""
    if g is None:
        return None
    shape = [int(n) for n in g.shape]
    if wanted is None or wanted == shape:
        return Gradient(to=to, shape=shape, norm=norm(g), summed=[])
    dims = summed_dims(wanted, shape)
    size: Size = norm(g)
    array = array_of(g) if dims and not (g._exotic and not g.strided) else None
    if isinstance(array, np.ndarray):
        total = array.astype("complex128" if g._k.dtype.is_complex else "float64")
        value = float(np.linalg.norm(total.sum(tuple(dims)).ravel()))
        size = value if math.isfinite(value) else str(value)
    return Gradient(to=to, shape=wanted, norm=size, summed=dims)

"""The kind of a tensor: an interned object for (dtype, device, contiguous, inference).

The hot path of every generated call asks one question, `a._k is b._k and a._k.fast`, and so learns
that both operands have the same dtype, lie contiguously in host memory and have no special wishes.
Contiguity belongs to the kind because NumPy's own choice of result strides equals PyTorch's for
contiguous operands, and only for those in general.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from torchlab._core import dtype as dt
from torchlab._core.device import cpu, device


class Kind:
    """Facts that many tensors share. Twins differ in one fact: `c`/`v` contiguous or strided,
    `i`/`n` inference tensor or normal."""

    cls: Any = None  # the class of the tape's saved values: Tensor, which says so itself

    __slots__ = (
        "dtype",
        "device",
        "np",
        "contiguous",
        "inference",
        "plain",
        "direct",
        "fast",
        "fp",
        "arith",
        "ordered",
        "differentiable",
        "itemsize",
        "c",
        "v",
        "i",
        "n",
        "__weakref__",
    )

    def __init__(self, dtype: dt.dtype, dev: device, contiguous: bool, inference: bool) -> None:
        self.dtype = dtype
        self.device = dev
        self.np: np.dtype = dt.CODES.get(dtype) or dtype.np
        self.itemsize = dtype.itemsize
        self.contiguous = contiguous
        self.inference = inference
        # plain: host memory reached by NumPy, any strides. fast: also contiguous and NumPy's own
        # type.
        self.plain = dev is cpu and not inference
        # direct: general kernels may take the array as it is (16-bit floats accumulate in float32).
        self.direct = self.plain and not (dtype.is_floating_point and dtype.itemsize <= 2)
        self.fast = self.plain and contiguous and dtype in dt.NATIVE
        self.fp = self.fast and dtype.is_floating_point
        self.arith = self.fast and dtype is not dt.bool_
        self.ordered = self.arith and not dtype.is_complex
        self.differentiable = dtype.is_floating_point or dtype.is_complex
        self.c = self.v = self.i = self.n = self

    def __repr__(self) -> str:
        tail = ("" if self.contiguous else ", strided") + (", inference" if self.inference else "")
        return f"Kind({self.dtype}, {self.device}{tail})"


_kinds: dict[tuple[dt.dtype, device], Kind] = {}


def kind(dtype: dt.dtype, dev: device = cpu) -> Kind:
    """The normal, contiguous kind; `.v` and `.i` lead to its twins."""
    found = _kinds.get((dtype, dev))
    if found is None:
        dtype.np  # noqa: B018 – RuntimeError for types of quantized tensors
        c, v, ci, vi = (Kind(dtype, dev, x, y) for y in (False, True) for x in (True, False))
        for k in (c, v):
            k.c, k.v = c, v
        for k in (ci, vi):
            k.c, k.v = ci, vi
        for normal, inference in ((c, ci), (v, vi)):
            normal.i, normal.n = inference, normal
            inference.i, inference.n = inference, normal
        found = _kinds.setdefault((dtype, dev), c)
    return found


# The kinds of host tensors by NumPy dtype: one look-up from a result array to its kind.
CPU_KINDS: dict[np.dtype, Kind] = {d.np: kind(d) for d in dt.NATIVE}


def cpu_kind(array: np.ndarray) -> Kind:
    """The kind of a host array, its contiguity included."""
    k = CPU_KINDS.get(array.dtype)
    if k is None:
        k = kind(dt.from_numpy(array.dtype))
        CPU_KINDS[array.dtype] = k
    return k if array.flags.c_contiguous else k.v


_exotic: dict[tuple[dt.dtype, device], Kind] = {}


def exotic_kind(dtype: dt.dtype, dev: device = cpu) -> Kind:
    """The kind of tensors that are no strided arrays (Note [Exotic tensors] in dispatch.exotic):
    never plain, direct or fast."""
    found = _exotic.get((dtype, dev))
    if found is None:
        normal, inference = Kind(dtype, dev, False, False), Kind(dtype, dev, False, True)
        for k in (normal, inference):
            k.plain = k.direct = k.fast = k.fp = k.arith = False
            k.i, k.n = inference, normal
        found = _exotic.setdefault((dtype, dev), normal)
    return found

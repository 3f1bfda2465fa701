"""The stride explorer: a tensor's geometry, the storage below it and the views that led to it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from torchlab._core.tape import base_of, storage_of
from torchlab._core.tensor import Tensor
from torchlab.viz.pictures import StridePicture
from torchlab.viz.recorders.common import dtype_name, user_frame
from torchlab.viz.snapshots.common import VERSION
from torchlab.viz.snapshots.strides import StrideSnapshot, ViewStep

MAX_VALUES = 512


def _name_of(tensor: Tensor, fallback: str) -> str:
    """The variable that holds the tensor in the user's frame."""
    frame = user_frame()
    for scope in (frame.f_locals, frame.f_globals) if frame is not None else ():
        for name, value in scope.items():
            if value is tensor and not name.startswith("_"):
                return name
    return fallback


def _step(tensor: Tensor, op: str) -> ViewStep:
    return {
        "op": op,
        "shape": [int(n) for n in tensor.shape],
        "stride": [int(n) for n in tensor.stride()],
        "offset": int(tensor.storage_offset()),
    }


def _text(value: Any) -> str:
    if isinstance(value, (bool, np.bool_)):
        return str(bool(value))
    if isinstance(value, (complex, np.complexfloating)):
        return f"{complex(value):.2g}"
    return str(value) if isinstance(value, (int, np.integer)) else f"{float(value):.3g}"


def _values(tensor: Tensor, memory: Any) -> list[str] | None:
    """The first cells as texts; None where the host cannot read them."""
    if not isinstance(memory, np.ndarray) or tensor.device.type not in ("cpu", "sim"):
        return None
    size = tensor.element_size()
    cells = memory[: min(len(memory) // size, MAX_VALUES) * size].view(tensor._k.np)
    return [_text(v) for v in cells.tolist()]


def stride_explorer(
    tensor: Tensor,
    view: Sequence[int] | None = None,
    *,
    name: str | None = None,
    chain: Sequence[Tensor | tuple[str, Tensor]] = (),
) -> StridePicture:
    """How `tensor` lies in its storage, and why it is not contiguous.

    Args:
        tensor: any strided tensor.
        view: a shape; the picture then says whether `tensor.view(*shape)` works and, if not, which
            dimensions are in the way and what a copy would cost.
        name: what to call it (default: the variable that holds it).
        chain: the tensors it came from, first to last, for instance `[x, x.view(3, 4)]`, with
            labels as pairs if wanted; default: the tensor it is a view of.

    Raises:
        ValueError: a tensor of `chain` has another storage.
    """
    storage = storage_of(tensor)
    before: list[tuple[str, Tensor]] = []
    for item in chain:
        label, other = item if isinstance(item, tuple) else ("", item)
        if storage_of(other) is not storage:
            raise ValueError(
                f"stride_explorer: a tensor of the chain (shape {list(other.shape)}) has another "
                "storage, so "
                f"the tensor of shape {list(tensor.shape)} is no view of it"
            )
        if other is not tensor:
            before.append((label or _name_of(other, "tensor"), other))
    base = base_of(tensor)
    if not before and base is not None and storage_of(base) is storage:
        before = [(_name_of(base, "base"), base)]
    own = name or _name_of(tensor, "tensor")
    memory = storage.bytes
    size = tensor.element_size()
    snapshot = StrideSnapshot(
        kind="strides",
        version=VERSION,
        name=own,
        dtype=dtype_name(tensor.dtype),
        itemsize=size,
        device=str(tensor.device),
        storage={
            "id": "s0",
            "numel": storage.nbytes // size,
            "bytes": storage.nbytes,
            "address": storage.address,
            "values": _values(tensor, memory),
        },
        chain=[*(_step(t, label) for label, t in before), _step(tensor, own)],
        asked_view=None if view is None else [int(n) for n in view],
    )
    return StridePicture(snapshot)

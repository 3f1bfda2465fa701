"""Sequences of different lengths, packed one time after the other or padded to one length.

Source: https://docs.pytorch.org/docs/2.13/generated/torch.nn.utils.rnn.PackedSequence.html
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from torchlab._core.dispatch.registry import aten
from torchlab._core.dtype import float16, float32, float64, int8, int16, int32, int64, uint8
from torchlab._core.tensor import Tensor, contiguous_format


class PackedSequence_(NamedTuple):
    """The four fields."""

    data: Any
    batch_sizes: Any
    sorted_indices: Any
    unsorted_indices: Any


class PackedSequence(PackedSequence_):
    """Sequences as one tensor: data (total, *), the elements of time 0 first, longest sequence
    first; batch_sizes (T,) is the number of sequences that are alive at each time.

    sorted_indices and unsorted_indices lead from the user's order to this one and back.
    """

    def __new__(
        cls,
        data: Any,
        batch_sizes: Any = None,
        sorted_indices: Any = None,
        unsorted_indices: Any = None,
    ) -> PackedSequence:
        if batch_sizes is None:
            if not isinstance(data, (list, tuple)) or len(data) != 2:
                raise AssertionError(
                    "Expected data to be a list or tuple of length 2, (data, batch_sizes), but "
                    f"got {type(data).__name__}"
                )
            data, batch_sizes = data
        elif batch_sizes.device.type != "cpu":
            raise ValueError(
                "batch_sizes should always be on CPU. Instances of PackedSequence should never be "
                "created manually. They should be instantiated by functions like "
                "pack_sequence and pack_padded_sequence in nn.utils.rnn. "
                "https://pytorch.org/docs/stable/nn.html#torch.nn.utils.rnn.pack_sequence"
            )
        if unsorted_indices is None:
            unsorted_indices = invert_permutation(sorted_indices)
        return super().__new__(cls, data, batch_sizes, sorted_indices, unsorted_indices)

    def pin_memory(self) -> PackedSequence:
        """With data in page-locked memory."""
        return self._each(self.data.pin_memory(), lambda t: t.pin_memory())

    def to(self, *args: Any, **kwargs: Any) -> PackedSequence:
        """With data converted as `Tensor.to` does; `self` if that changes nothing."""
        data = self.data.to(*args, **kwargs)
        if data is self.data:
            return self
        kwargs = {k: v for k, v in kwargs.items() if k not in ("device", "dtype")}
        return self._each(data, lambda t: t.to(data.device, **kwargs))

    def _each(self, data: Any, move: Callable[[Any], Any]) -> PackedSequence:
        order, back = (
            None if t is None else move(t) for t in (self.sorted_indices, self.unsorted_indices)
        )
        return type(self)(data, self.batch_sizes, order, back)

    def cuda(self, *args: Any, **kwargs: Any) -> PackedSequence:
        """On the accelerator."""
        kwargs.setdefault("device", "cuda")
        return self.to(*args, **kwargs)

    def cpu(self, *args: Any, **kwargs: Any) -> PackedSequence:
        """On the processor."""
        kwargs.setdefault("device", "cpu")
        return self.to(*args, **kwargs)

    def double(self) -> PackedSequence:
        """With data of float64."""
        return self.to(dtype=float64)

    def float(self) -> PackedSequence:
        """With data of float32."""
        return self.to(dtype=float32)

    def half(self) -> PackedSequence:
        """With data of float16."""
        return self.to(dtype=float16)

    def long(self) -> PackedSequence:
        """With data of int64."""
        return self.to(dtype=int64)

    def int(self) -> PackedSequence:
        """With data of int32."""
        return self.to(dtype=int32)

    def short(self) -> PackedSequence:
        """With data of int16."""
        return self.to(dtype=int16)

    def char(self) -> PackedSequence:
        """With data of int8."""
        return self.to(dtype=int8)

    def byte(self) -> PackedSequence:
        """With data of uint8."""
        return self.to(dtype=uint8)

    @property
    def is_cuda(self) -> bool:
        """Whether data is on the accelerator."""
        return bool(self.data.is_cuda)

    def is_pinned(self) -> bool:
        """Whether data is in page-locked memory."""
        return bool(self.data.is_pinned())


def invert_permutation(permutation: Any) -> Any:
    """The permutation that undoes `permutation` (n,); None of None."""
    if permutation is None:
        return None
    n = permutation.numel()
    places = aten.arange(n, dtype=permutation.dtype, device=permutation.device)
    return aten.scatter(aten.empty_like(permutation), 0, permutation, places)


# ---- packed and padded --------------------------------------------------------------------------


def _places(lengths: Any, device: Any) -> tuple[Any, Any, Any]:
    """Time and sequence of each packed element, and how many sequences live at each time, from
    lengths that fall."""
    alive = np.arange(int(lengths[0]))[:, None] < np.asarray(lengths)[None, :]
    times, sequences = np.nonzero(alive)
    found = (aten.tensor(i, device=device) for i in (times, sequences))
    return (*found, aten.tensor(alive.sum(1)))  # type: ignore[return-value]


def pack_padded_sequence(
    input: Any, lengths: Any, batch_first: bool = False, enforce_sorted: bool = True
) -> PackedSequence:
    """Pack input (T, B, *), or (B, T, *) with batch_first, whose sequence i has lengths[i]
    elements.

    enforce_sorted: the lengths must fall; False sorts them first. Raises RuntimeError for lengths
    that do not fit.
    """
    if isinstance(lengths, Tensor):
        if lengths.device.type != "cpu":  # type: ignore[attr-defined]
            raise RuntimeError(
                "'lengths' argument should be a 1D CPU int64 tensor, but got "
                f"{lengths.ndim}D {lengths.device.type} tensor"  # type: ignore[attr-defined]
            )
    else:
        lengths = aten.as_tensor(lengths, dtype=int64, device="cpu")
    order = None
    if not enforce_sorted:
        lengths, order = aten.sort(lengths, descending=True)
        order = order.to(input.device)
        input = aten.index_select(input, 0 if batch_first else 1, order)
    if input.numel() == 0:
        raise RuntimeError("Cannot pack empty tensors.")
    x = aten.transpose(input, 0, 1) if batch_first else input
    if lengths.ndim != 1:
        raise RuntimeError(
            "'lengths' argument should be a 1D CPU int64 tensor, but got "
            f"{lengths.ndim}D cpu {lengths.dtype} tensor"
        )
    if len(lengths) != x.shape[1]:
        raise RuntimeError(
            f"Expected `len(lengths)` to be equal to batch_size, but got {lengths.numel()} "
            f"(batch_size={x.shape[1]})"
        )
    own = [int(n) for n in lengths.tolist()]
    if own[-1] <= 0:
        raise RuntimeError(
            "Length of all samples has to be greater than 0, but found an element in 'lengths' "
            "that is <= 0"
        )
    if any(a < b for a, b in zip(own, own[1:], strict=False)):
        raise RuntimeError(
            "`lengths` array must be sorted in decreasing order when `enforce_sorted` is True. "
            "You can pass `enforce_sorted=False` to pack_padded_sequence and/or pack_sequence to "
            "sidestep this requirement if you do not need ONNX exportability."
        )
    if own[0] > x.shape[0]:
        raise RuntimeError(
            f"Expected `lengths` of at most {x.shape[0]}, the input's number of times, but got "
            f"{own[0]}"
        )
    times, sequences, sizes = _places(own, input.device)
    return PackedSequence(x[times, sequences], sizes, order, None)


def pad_packed_sequence(
    sequence: PackedSequence,
    batch_first: bool = False,
    padding_value: float = 0.0,
    total_length: int | None = None,
) -> tuple[Any, Any]:
    """The padded tensor (T, B, *), or (B, T, *) with batch_first, and the lengths (B,), in the
    order in which the sequences were packed.

    total_length: T, where it shall be more than the longest sequence. Raises ValueError if it is
    less.
    """
    data, sizes, _, back = sequence
    alive = np.asarray(sizes.tolist(), dtype=np.int64)
    longest = len(alive)
    if total_length is not None and total_length < longest:
        raise ValueError(
            "Expected total_length to be at least the length of the longest sequence in input, "
            f"but got total_length={total_length} and max sequence length being {longest}"
        )
    own = (alive[:, None] > np.arange(alive[0])[None, :]).sum(0)
    times, sequences, _ = _places(own, data.device)
    shape = (total_length or longest, int(alive[0]), *data.shape[1:])
    padded = aten.full(shape, padding_value, dtype=data.dtype, device=data.device)
    padded = aten.index_put(padded, (times, sequences), data)
    lengths = aten.tensor(own)
    if batch_first:
        padded = aten.transpose(padded, 0, 1)
    if back is not None:
        padded = aten.index_select(padded, 0 if batch_first else 1, back)
        lengths = lengths[back.cpu()]
    return padded, lengths


def pad_sequence(
    sequences: Any,
    batch_first: bool = False,
    padding_value: float = 0.0,
    padding_side: str = "right",
) -> Any:
    """The sequences (Lᵢ, *) as one tensor (T, B, *), or (B, T, *) with batch_first, filled up with
    `padding_value` at the end or, with padding_side "left", at the front."""
    if isinstance(sequences, Tensor):
        sequences = aten.unbind(sequences, 0)
    elif not isinstance(sequences, (list, tuple)):
        raise RuntimeError(
            "pad_sequence: Expected iterable for input sequences, but got arg of type: "
            f"{type(sequences)}"
        )
    sequences = tuple(sequences)
    if not sequences:
        raise RuntimeError("received an empty list of sequences")
    if padding_side not in ("left", "right"):
        raise RuntimeError(
            f"Expected padding_side to be one of left or right, but got {padding_side}."
        )
    longest = max(s.shape[0] for s in sequences)
    filled = []
    for s in sequences:
        border = [0, 0] * (s.ndim - 1)
        missing = longest - s.shape[0]
        border += [missing, 0] if padding_side == "left" else [0, missing]
        filled.append(aten.constant_pad_nd(s, border, padding_value) if missing else s)
    return aten.stack(filled, 0 if batch_first else 1)


def unpad_sequence(padded_sequences: Any, lengths: Any, batch_first: bool = False) -> list[Any]:
    """The sequences of a padded tensor without their padding: what `pad_sequence` undoes."""
    if not batch_first:
        padded_sequences = aten.transpose(padded_sequences, 0, 1)
    own = lengths.tolist()
    pairs = zip(aten.unbind(padded_sequences, 0), own, strict=False)
    return [aten.clone(s[:n], memory_format=contiguous_format) for s, n in pairs]


def pack_sequence(sequences: list[Any], enforce_sorted: bool = True) -> PackedSequence:
    """Pack sequences (Lᵢ, *); enforce_sorted: the lengths must fall."""
    lengths = aten.tensor([s.shape[0] for s in sequences], dtype=int64)
    return pack_padded_sequence(pad_sequence(sequences), lengths, enforce_sorted=enforce_sorted)


def unpack_sequence(packed_sequences: PackedSequence) -> list[Any]:
    """The sequences again, in the order in which they were packed."""
    padded, lengths = pad_packed_sequence(packed_sequences, batch_first=True)
    return unpad_sequence(padded, lengths, batch_first=True)


__all__ = [
    "PackedSequence", "invert_permutation", "pack_padded_sequence", "pack_sequence",
    "pad_packed_sequence", "pad_sequence", "unpack_sequence", "unpad_sequence",
]  # fmt: skip

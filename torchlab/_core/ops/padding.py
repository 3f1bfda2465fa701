"""Padding: constant, reflecting, replicating and circular.

Source of the semantics: https://docs.pytorch.org/docs/2.13/generated/torch.nn.functional.pad.html
"""

from __future__ import annotations

from typing import Any

import numpy as np

from torchlab._core.backends.meta import MetaArray
from torchlab._core.dispatch.factories import fresh
from torchlab._core.dispatch.op import Op, face, op
from torchlab._core.dispatch.registry import aten, vjp_helper
from torchlab._core.formats import contiguous_format
from torchlab._core.ops._places import format_strides, in_order
from torchlab._core.ops.kernels import number


def _pairs(pad: Any, ndim: int) -> list[tuple[int, int]]:
    """(before, after) for each dimension; `pad` begins with the last one."""
    pairs = [(0, 0)] * ndim
    for i in range(len(pad) // 2):
        pairs[ndim - 1 - i] = (pad[2 * i], pad[2 * i + 1])
    return pairs


def _padded_shape(shape: Any, pad: Any) -> tuple[int, ...]:
    if len(pad) % 2:
        raise RuntimeError(f"Length of pad must be even but instead it equals {len(pad)}")
    if len(pad) > 2 * len(shape):
        raise RuntimeError(
            "Length of pad should be no more than twice the number of dimensions of the input. "
            "Pad length is "
            f"{len(pad)} while the input has {len(shape)} dimensions."
        )
    out = []
    for d, (n, (i, j)) in enumerate(zip(shape, _pairs(pad, len(shape)), strict=True)):
        if n + i + j < 0:
            raise RuntimeError(
                f"The input size {n}, plus negative padding {i} and {j} resulted in a negative "
                "output size, which is "
                f"invalid. Check dimension {d} of your input."
            )
        out.append(n + i + j)
    return tuple(out)


@op(
    "constant_pad_nd(Tensor self, SymInt[] pad, Scalar value=0) -> Tensor",
    method=False,
    half=False,
    vjp={"self": "unpad(g, pad)"},
    meta=lambda a, pad, value=0: MetaArray(_padded_shape(a.shape, pad), a.dtype),
)
def constant_pad_nd(xp: Any, a: Any, pad: Any, value: Any) -> Any:
    """A value around the tensor: `pad` gives (before, after) from the last dimension on; negative
    numbers cut off."""
    shape = _padded_shape(a.shape, pad)
    r = xp.full(shape, number(value, a.dtype), a.dtype)
    pairs = _pairs(pad, a.ndim)
    inner = tuple(slice(max(i, 0), m - max(j, 0)) for m, (i, j) in zip(shape, pairs, strict=True))
    source = tuple(
        slice(max(-i, 0), n - max(-j, 0)) for n, (i, j) in zip(a.shape, pairs, strict=True)
    )
    if r[inner].size:
        r[inner] = a[source]
    strides = format_strides(a, shape)
    return r if strides is None else in_order(xp, r, strides)


@vjp_helper
def unpad(g: Any, pad: Any) -> Any:
    return aten.constant_pad_nd(g, tuple(-p for p in pad), 0)


# ---- by positions -------------------------------------------------------------------------------


def _reflected(n: int, before: int, after: int) -> Any:
    i = np.abs(np.arange(-before, n + after))
    return np.where(i >= n, 2 * (n - 1) - i, i)


def _replicated(n: int, before: int, after: int) -> Any:
    return np.clip(np.arange(-before, n + after), 0, max(n - 1, 0))


def _check(a: Any, pad: Any, dims: int, name: str) -> None:
    if a.ndim not in (dims + 1, dims + 2):
        raise RuntimeError(
            f"{name}: Expected {dims + 1}D or {dims + 2}D (batch mode) tensor with possibly 0 "
            "batch size and other "
            f"non-zero dimensions for input, but got: {list(a.shape)}"
        )
    if any(n == 0 for n in a.shape[-dims - 1 :]):
        raise RuntimeError(
            f"{name}: Expected {dims + 1}D or {dims + 2}D (batch mode) tensor with possibly 0 "
            "batch size and other "
            f"non-zero dimensions for input, but got: {list(a.shape)}"
        )
    for d, (n, (i, j)) in enumerate(zip(a.shape, _pairs(pad, a.ndim), strict=True)):
        if d >= a.ndim - dims and name.startswith("reflection") and (i >= n or j >= n):
            raise RuntimeError(
                f"{name}: Argument #4: Padding size should be less than the corresponding input "
                "dimension, but got: "
                f"padding ({i}, {j}) at dimension {d} of input {list(a.shape)}"
            )
        if n + i + j < 1 and d >= a.ndim - dims:
            raise RuntimeError(
                f"{name}: input (size {n} at dimension {d}) is too small. Calculated output size "
                f"{n + i + j}"
            )


def _position_pad(name: str, dims: int, places: Any) -> None:
    full = f"{name}_pad{dims}d"
    grad_name = "".join(p.capitalize() for p in name.split("_")) + f"Pad{dims}DBackward0"

    def kernel(xp: Any, a: Any, padding: Any) -> Any:
        _check(a, padding, dims, full)
        r = a
        for d, (i, j) in enumerate(_pairs(padding, a.ndim)):
            if i or j:
                r = r.take(xp.asarray(places(r.shape[d], i, j)), axis=d)
        strides = format_strides(a, r.shape)
        r = r.copy(order="C") if r is a else r
        return r if strides is None else in_order(xp, r, strides)

    def backward(xp: Any, g: Any, shape: Any, padding: Any) -> Any:
        for d, (i, j) in reversed(list(enumerate(_pairs(padding, len(shape))))):
            if i or j:
                g = _folded(xp, g, d, shape[d], i, places(shape[d], i, j))
        return g

    kernel.__doc__ = f"{name.capitalize()} padding of the last {dims} dimension(s)."
    backward.__doc__ = f"The gradient of {full}: every place adds up what was copied from it."
    Op(
        f"{full}(Tensor self, SymInt[{2 * dims}] padding) -> Tensor",
        family="general",
        kernel=kernel,
        public=False,
        half=False,
        grad_name=grad_name,
        autocast=None if full == "reflection_pad3d" else "float32:cpu",
        vjp={"self": f"{full}_backward(g, self.shape, padding)"},
        meta=lambda a, padding: MetaArray(_padded_shape(a.shape, padding), a.dtype),
    )
    Op(
        f"{full}_backward(Tensor grad_output, SymInt[] sizes, SymInt[] padding) -> Tensor",
        family="general",
        kernel=backward,
        public=False,
        vjp={"grad_output": f"{full}(g, padding)"},
        meta=lambda g, sizes, padding: MetaArray(sizes, g.dtype),
    )


def _folded(xp: Any, g: Any, dim: int, n: int, before: int, places: Any) -> Any:
    """The inside of g along `dim`, with the outside added to the places it came from."""
    lead = (slice(None),) * dim
    r = xp.zeros((*g.shape[:dim], n, *g.shape[dim + 1 :]), g.dtype)
    m = g.shape[dim]
    first, last = max(before, 0), min(before + n, m)
    if last > first:
        r[(*lead, slice(first - before, last - before))] = g[(*lead, slice(first, last))]
    for j in (*range(min(first, m)), *range(max(last, first), m)):
        r[(*lead, int(places[j]))] += g[(*lead, j)]
    return r


for _name, _places in (("reflection", _reflected), ("replication", _replicated)):
    for _dims in (1, 2, 3):
        _position_pad(_name, _dims, _places)


def _circular(x: Any, pad: Any) -> Any:
    """Copies of the other side around the tensor."""
    n = x._a.ndim
    for d, (i, j) in enumerate(_pairs(pad, n)):
        size = x._a.shape[d]
        if i > size or j > size:
            raise RuntimeError("Padding value causes wrapping around more than once.")
        if size + i + j < 0:
            raise RuntimeError("Negative padding value is resulting in an empty dimension")
        if (i or j) and type(size) is not int:  # a symbolic size: which places is not known
            ends = ((-i, None) if i > 0 else None, (0, j) if j > 0 else None)
            middle = aten.slice(x, d, max(-i, 0), size - max(-j, 0))
            parts = [None if e is None else aten.slice(middle, d, *e) for e in ends]
            x = aten.cat([p for p in (parts[0], middle, parts[1]) if p is not None], d)
        elif i or j:
            inner = np.arange(max(-i, 0), size - max(-j, 0))
            places = np.concatenate([inner[inner.size - max(i, 0) :], inner, inner[: max(j, 0)]])
            where = aten.to(fresh(aten.from_numpy(places)), device=x._k.device)
            x = aten.index(x, [None] * d + [where])
    return aten.clone(x, memory_format=contiguous_format) if not x._k.contiguous else x


_SUPPORTED = {1: (2, 3), 2: (3, 4), 3: (4, 5)}
_BY_MODE = {"reflect": "reflection", "replicate": "replication"}


@face("pad", method=False, spaces=("nn.functional",))
def pad(input: Any, pad: Any, mode: str = "constant", value: float | None = None) -> Any:
    """Pad the last len(pad)/2 dimensions: (before, after) of the last one first. Modes: constant
    (with `value`), reflect, replicate, circular."""
    pad = tuple(int(p) for p in pad)
    if mode == "constant":
        return aten.constant_pad_nd(input, pad, float(value or 0))  # as PyTorch: a float
    if value is not None and value != 0:
        raise ValueError(f"Padding mode '{mode}' doesn't take in value argument")
    if mode not in ("reflect", "replicate", "circular"):
        raise NotImplementedError(f"Unrecognised padding mode {mode}")
    _padded_shape(input._a.shape, pad)
    dims = len(pad) // 2
    if input._a.ndim not in _SUPPORTED.get(dims, ()):
        raise NotImplementedError(
            f"Padding size {len(pad)} is not supported for {input._a.ndim}D input tensor. "
            "Supported combinations for "
            "non-constant padding: 2 for 2D or 3D, 4 for 3D or 4D, 6 for 4D or 5D input."
        )
    if mode == "circular":
        return _circular(input, pad)
    return getattr(aten, f"{_BY_MODE[mode]}_pad{dims}d")(input, pad)

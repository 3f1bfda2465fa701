"""The same elements in another order or several times: flip, roll, rot90, repeat, tile,
repeat_interleave, one_hot.

Source of the semantics: https://docs.pytorch.org/docs/2.13/torch.html#other-operations
"""

from __future__ import annotations

from typing import Any

import numpy as np

from torchlab._core import dtype as dt
from torchlab._core import layout
from torchlab._core.backends.meta import MetaArray
from torchlab._core.dispatch.factories import transformed
from torchlab._core.dispatch.modes import SLOW
from torchlab._core.dispatch.op import composite, face, op
from torchlab._core.dispatch.registry import aten, vjp_helper
from torchlab._core.formats import contiguous_format
from torchlab._core.ops._places import copied, elements
from torchlab._core.tensor import Tensor


def _like(a: Any, *rest: Any) -> Any:
    return MetaArray(a.shape, a.dtype, layout.empty_like_strides(a.shape, elements(a)))


def _flipped(xp: Any, a: Any, dims: Any) -> Any:
    """In the memory format that `clone` keeps, strides positive."""
    key = tuple(slice(None, None, -1) if d in dims else slice(None) for d in range(a.ndim))
    return copied(xp, a[key] if a.ndim else a, layout.empty_like_strides(a.shape, elements(a)))


@op(
    "flip(Tensor self, int[] dims) -> Tensor",
    public=False,
    half=False,
    vjp={"self": "flip(g, dims)"},
    meta=_like,
)
def flip(xp: Any, a: Any, dims: Any) -> Any:
    """The order of the elements reversed along `dims`; a copy."""
    return _flipped(xp, a, layout.wrap_dims(dims, a.ndim))


def _sizes(first: Any, more: Any) -> tuple[int, ...]:
    """`f(1, 2)`, `f((1, 2))` and `f(dims=(1, 2))`."""
    if more or not isinstance(first, (tuple, list)):
        return (first, *more)
    return tuple(first)


def _flip_method(self: Any, dims: Any, *more: int) -> Any:
    """The order of the elements reversed along `dims`; a copy."""
    return flip.call(self, _sizes(dims, more))


@face("flip", method=_flip_method)
def flip_face(self: Any, dims: Any) -> Any:
    """The order of the elements reversed along `dims`; a copy."""
    return flip.call(self, (dims,) if isinstance(dims, int) else tuple(dims))


@composite("fliplr(Tensor self) -> Tensor")
def fliplr(self: Any) -> Any:
    """Left and right exchanged: flips dimension 1."""
    if self._a.ndim < 2:
        raise RuntimeError("Input must be >= 2-d.")
    return flip.call(self, (1,))


@composite("flipud(Tensor self) -> Tensor")
def flipud(self: Any) -> Any:
    """Top and bottom exchanged: flips dimension 0."""
    if self._a.ndim < 1:
        raise RuntimeError("Input must be >= 1-d.")
    return flip.call(self, (0,))


def _rolled_strides(a: Any, shifts: Any, axes: Any) -> Any:
    """PyTorch rolls one dimension after the other, each time by `cat` of the two parts of which
    either may be empty: channels last stays only where both parts are."""
    shape, stride = a.shape, elements(a)
    for by, d in zip(shifts, axes, strict=True):
        if 0 in shape:  # nothing to join: a clone
            stride = layout.empty_like_strides(shape, stride)
            continue
        at = -by % shape[d]
        parts = [(*shape[:d], n, *shape[d + 1 :]) for n in (shape[d] - at, at)]
        if all(layout.suggest_memory_format(s, stride).startswith("channels") for s in parts):
            stride = layout.channels_last_strides(shape)
        else:
            stride = layout.contiguous_strides(shape)
    return stride


def _roll_meta(a: Any, shifts: Any, dims: Any = ()) -> Any:
    if len(dims) == 0 or len(shifts) != len(dims) or a.ndim not in (4, 5):
        return MetaArray(a.shape, a.dtype)
    axes = [layout.wrap_dim(d, a.ndim) for d in dims]
    return MetaArray(a.shape, a.dtype, _rolled_strides(a, shifts, axes))


@op(
    "roll(Tensor self, SymInt[1] shifts, int[1] dims=[]) -> Tensor",
    half=False,
    vjp={"self": "unroll(g, shifts, dims)"},
    meta=_roll_meta,
)
def roll(xp: Any, a: Any, shifts: Any, dims: Any) -> Any:
    """Elements moved by `shifts` along `dims`, those pushed out coming in on the other side;
    without
    `dims` along the flattened tensor."""
    if len(shifts) == 0:
        raise RuntimeError("`shifts` required")
    if len(dims) == 0 and len(shifts) == 1:
        return xp.roll(a, shifts[0])
    if len(shifts) != len(dims):
        raise RuntimeError(
            f"shifts and dimensions must align. shifts: {len(shifts)}, dims:{len(dims)}"
        )
    if a.ndim == 0:
        raise IndexError(f"roll: Dimension specified as {dims[0]} but tensor has no dimensions")
    axes = [layout.wrap_dim(d, a.ndim) for d in dims]
    strides = _rolled_strides(a, shifts, axes) if a.ndim in (4, 5) else None
    return copied(xp, xp.roll(a, tuple(shifts), tuple(axes)), strides)


@vjp_helper
def unroll(g: Any, shifts: Any, dims: Any) -> Any:
    return aten.roll(g, tuple(-s for s in shifts), dims)


def _rot90_meta(a: Any, k: int = 1, dims: Any = (0, 1)) -> Any:
    shape = list(a.shape)
    i, j = layout.wrap_dims(dims, a.ndim)
    if k % 2:
        before = tuple(x // a.itemsize for x in a.strides)
        strides = list(layout.empty_like_strides(a.shape, before))  # a flipped copy, transposed
        shape[i], shape[j] = shape[j], shape[i]
        strides[i], strides[j] = strides[j], strides[i]
        return MetaArray(shape, a.dtype, strides)
    return MetaArray(shape, a.dtype)


@op(
    "rot90(Tensor self, int k=1, int[] dims=[0,1]) -> Tensor",
    half=False,
    vjp={"self": "rot90(g, -k, dims)"},
    meta=_rot90_meta,
)
def rot90(xp: Any, a: Any, k: int, dims: Any) -> Any:
    """Turned k times by 90°, from the first towards the second of `dims`."""
    if len(dims) != 2:
        raise RuntimeError(f"expected total rotation dims == 2, but got dims = {len(dims)}")
    if a.ndim < 2:
        raise RuntimeError(f"expected total dims >= 2, but got total dims = {a.ndim}")
    i, j = (layout.wrap_dim(d, a.ndim) for d in dims)
    if i == j:
        raise RuntimeError(
            f"expected rotation dims to be different, but got dim0 = {dims[0]} and dim1 = {dims[1]}"
        )
    k %= 4
    if k == 0:
        return a.copy(order="C")
    if k == 2:
        return _flipped(xp, a, (i, j))
    return _flipped(xp, a, (j if k == 1 else i,)).swapaxes(i, j)


# ---- repeats ------------------------------------------------------------------------------------


def _repeat_shape(a: Any, repeats: Any) -> tuple[int, ...]:
    if len(repeats) < a.ndim:
        raise RuntimeError(
            "repeat: Number of dimensions of repeat dims can not be smaller than number of "
            "dimensions of tensor: "
            f"{len(repeats)} repeats for shape {list(a.shape)}"
        )
    padded = (1,) * (len(repeats) - a.ndim) + tuple(a.shape)
    shape = tuple(n * r for n, r in zip(padded, repeats, strict=True))
    if any(r < 0 for r in repeats):
        raise RuntimeError(
            f"repeat: Trying to create tensor with negative dimension: {list(shape)}"
        )
    return shape


@op(
    "repeat(Tensor self, SymInt[] repeats) -> Tensor",
    public=False,
    half=False,
    vjp={"self": "repeat_backward(g, self.shape, repeats)"},
    meta=lambda a, repeats: MetaArray(_repeat_shape(a, repeats), a.dtype),
)
def repeat(xp: Any, a: Any, repeats: Any) -> Any:
    """The tensor repeated along each dimension; more repeats than dimensions add dimensions in
    front.
    """
    _repeat_shape(a, repeats)
    return xp.tile(a, tuple(repeats)) if len(repeats) else a.copy()


@face("repeat", spaces=())
def repeat_face(self: Any, repeats: Any, *more: int) -> Any:
    """The tensor repeated along each dimension; more repeats than dimensions add dimensions in
    front.
    """
    return repeat.call(self, _sizes(repeats, more))


@vjp_helper
def repeat_backward(g: Any, shape: Any, repeats: Any) -> Any:
    """The copies' gradients added up."""
    padded = (1,) * (len(repeats) - len(shape)) + tuple(shape)
    if 0 in repeats:
        return aten.new_zeros(g, tuple(shape))
    split = tuple(v for n, r in zip(padded, repeats, strict=True) for v in (r, n))
    if not split:
        return g
    return aten.reshape(
        aten.sum(aten.reshape(g, split), tuple(range(0, len(split), 2))), tuple(shape)
    )


def _tile_method(self: Any, dims: Any, *more: int) -> Any:
    """As `repeat`, missing repeats counting as 1."""
    return tile.body(self, _sizes(dims, more))


@face("tile", method=_tile_method)
def tile(self: Any, dims: Any) -> Any:
    """As `repeat`, missing repeats counting as 1."""
    dims = (dims,) if isinstance(dims, int) else tuple(dims)
    return repeat.call(self, (1,) * (self._a.ndim - len(dims)) + dims)


def _repeat_interleave_method(
    self: Any, repeats: Any, dim: Any = None, *, output_size: int | None = None
) -> Any:
    """Each element (or slice of `dim`) repeated in its place."""
    return repeat_interleave.body(self, repeats, dim, output_size=output_size)


@face("repeat_interleave", method=_repeat_interleave_method)
def repeat_interleave(
    self: Any, repeats: Any = None, dim: Any = None, *, output_size: int | None = None
) -> Any:
    """Each element (or slice of `dim`) repeated in its place, `repeats` times or as often as its
    entry
    in a tensor says. With one argument, a tensor of counts: the indices 0, 1 … repeated that
    often.
    """
    if SLOW:
        seen = transformed(repeat_interleave.body, locals(), "repeats")
        if seen is not NotImplemented:
            return seen
    if repeats is None:
        return _counted(self, output_size)
    flat = dim is None
    if flat:
        self, dim = aten.flatten(self), 0
    n = self._a.ndim
    if n == 0:
        layout.wrap_dim(dim, 0)
        self, dim = aten.reshape(self, (1,)), 0
        n = 1
    dim = layout.wrap_dim(dim, n)
    if not isinstance(repeats, Tensor):
        if repeats < 0:
            raise RuntimeError("Repeats must be non-negative")
        shape = self._a.shape
        wide = aten.expand(
            aten.unsqueeze(self, dim + 1), (*shape[: dim + 1], repeats, *shape[dim + 1 :])
        )
        copy = aten.clone(wide, memory_format=contiguous_format)
        return aten.view(copy, (*shape[:dim], shape[dim] * repeats, *shape[dim + 1 :]))
    if repeats._a.ndim == 0 or repeats._a.size == 1:
        repeats = aten.expand(aten.reshape(repeats, (1,)), (self._a.shape[dim],))
    elif repeats._a.shape[0] != self._a.shape[dim]:
        raise RuntimeError(
            "repeats must have the same size as input along dim, but got repeats.size(0) = "
            f"{repeats._a.shape[0]} and "
            f"input.size({dim}) = {self._a.shape[dim]}"
        )
    return aten.index_select(self, dim, _counted(repeats, output_size))


def _counted(repeats: Any, output_size: Any) -> Any:
    """The indices 0, 1 …, each as often as `repeats` says."""
    if repeats._a.ndim != 1:
        raise RuntimeError("repeat_interleave only accept 1D vector as repeat")
    if repeats._k.dtype not in (dt.int32, dt.int64):
        raise RuntimeError("repeats has to be Long or Int tensor")
    counts = aten.detach(repeats).cpu().numpy()
    if counts.size and counts.min() < 0:
        raise RuntimeError("repeats can not be negative")
    if output_size is not None and int(counts.sum()) != output_size:
        raise RuntimeError(
            f"allocated size does not match required size: {output_size} and {int(counts.sum())}"
        )
    r = np.repeat(np.arange(counts.size, dtype=counts.dtype), counts)
    return aten.to(aten.from_numpy(r), device=repeats._k.device)


@face("one_hot", method=False, spaces=("nn.functional",))
def one_hot(self: Any, num_classes: int = -1) -> Any:
    """Class numbers (int64) as rows of zeros with a one, in a new last dimension."""
    if self._k.dtype is not dt.int64:
        raise RuntimeError(
            "one_hot is only applicable to index tensor of type LongTensor, but got "
            f"{self._k.dtype}"
        )
    a = self._a
    if a.size == 0:
        if num_classes <= 0:
            raise RuntimeError("Can not infer total number of classes from empty tensor.")
        return aten.new_zeros(self, (*a.shape, num_classes))
    if type(a) is not MetaArray:
        low, high = int(a.min()), int(a.max())
        if low < 0:
            raise RuntimeError("Class values must be non-negative.")
        if num_classes == -1:
            num_classes = high + 1
        elif num_classes < 1:
            raise RuntimeError("num_classes should be positive")
        elif high >= num_classes:
            raise RuntimeError(
                f"Class values must be smaller than num_classes: {high} with {num_classes} classes."
            )
    elif num_classes == -1:
        num_classes = int(aten.max(self)) + 1  # which says that there are no data
    r = aten.new_zeros(self, (*a.shape, num_classes))
    return r.scatter_(-1, aten.unsqueeze(self, -1), 1)

"""Elements along one dimension named by an index tensor of the result's (or source's) shape:
gather,
scatter, scatter_add, scatter_reduce, take_along_dim.

Source of the semantics: https://docs.pytorch.org/docs/2.13/generated/torch.Tensor.scatter_.html
"""

from __future__ import annotations

from typing import Any

import numpy as np

from torchlab._core import dtype as dt
from torchlab._core import layout
from torchlab._core.backends.meta import MetaArray
from torchlab._core.dispatch import compute, writes
from torchlab._core.dispatch.op import face, op
from torchlab._core.dispatch.registry import aten, vjp_helper
from torchlab._core.ops._kinds import REAL, need
from torchlab._core.ops._places import Places, add_at, scalar_name, written_row_major
from torchlab._core.ops._scatter import REDUCES, half_in_float32, reduce_at
from torchlab._core.ops.kernels import number


def _checked(a: Any, dim: int, index: Any, name: str, like: str, source: Any = None) -> int:
    """The wrapped dim, after PyTorch's checks of shapes, types and bounds."""
    dim = layout.wrap_dim(dim, a.ndim)
    if index.size and (index.dtype.kind != "i" or index.dtype.itemsize < 4):
        raise RuntimeError(
            f"{name}(): Expected dtype int32/int64 for index, but got {scalar_name(index)}"
        )
    if source is not None and source.dtype != a.dtype:
        raise RuntimeError(
            f"{name}(): Expected self.dtype to be equal to src.dtype, but got {scalar_name(a)} "
            f"and {scalar_name(source)}"
        )
    if index.size == 0:
        return dim
    if max(index.ndim, 1) != max(a.ndim, 1):
        raise RuntimeError(
            f"{name}: Index tensor must have the same number of dimensions as {like} tensor: "
            "index has shape "
            f"{list(index.shape)}, {like} {list(a.shape)}"
        )
    if source is not None and max(index.ndim, 1) != max(source.ndim, 1):
        raise RuntimeError(
            f"{name}: Index tensor must have the same number of dimensions as src tensor: index "
            "has shape "
            f"{list(index.shape)}, src {list(source.shape)}"
        )
    sizes, wanted = a.shape or (1,), index.shape or (1,)
    fits = all(i == dim or n <= m for i, (n, m) in enumerate(zip(wanted, sizes, strict=True)))
    if source is None and not fits:
        raise RuntimeError(
            f"{name}: Size does not match at dimension expected index {list(index.shape)} to be "
            "no larger than self "
            f"{list(a.shape)} apart from dimension {dim}"
        )
    if source is not None and (
        not fits or any(n > m for n, m in zip(wanted, source.shape or (1,), strict=True))
    ):
        raise RuntimeError(
            f"{name}: Expected index {list(index.shape)} to be no larger than self "
            f"{list(a.shape)} apart from dimension "
            f"{dim} and to be no larger size than src {list(source.shape)}"
        )
    size = sizes[dim]
    if index.size and (int(index.min()) < 0 or int(index.max()) >= size):
        bad = index[(index < 0) | (index >= size)].ravel()[0]
        raise RuntimeError(
            f"{name}: index {int(bad)} is out of bounds for dimension {dim} with size {size}"
        )
    return dim


def _grid(xp: Any, index: Any, dim: int) -> tuple[Any, ...]:
    """The key of the elements: `index` in one dimension, all positions up to its size in the
    others.
    """
    n = index.ndim
    return tuple(
        index if d == dim else xp.arange(index.shape[d]).reshape((-1,) + (1,) * (n - d - 1))
        for d in range(n)
    )


def _positions(xp: Any, a: Any, index: Any, dim: int) -> Any:
    steps = layout.contiguous_strides(a.shape)
    where = xp.zeros((), np.int64)
    for x, step in zip(_grid(xp, index, dim), steps, strict=True):
        where = where + x.astype(np.int64) * step
    return xp.broadcast_to(where, index.shape)


def _one(*arrays: Any) -> Any:
    """Arrays without dimensions as vectors (views)."""
    return [x if x is None or x.ndim else x.reshape(1) for x in arrays]


def _corner(source: Any, index: Any) -> Any:
    """The part of the source that the index reads."""
    if source.shape == index.shape:
        return source
    return source[tuple(slice(0, n) for n in index.shape)]


@op(
    "gather(Tensor self, int dim, Tensor index, *, bool sparse_grad=False) -> Tensor",
    half=False,
    out=True,
    tags=("out_apart", "out_same_dtype"),
    meta=lambda a, dim, index, sparse_grad=False: MetaArray(index.shape, a.dtype),
    vjp={"self": "kept(gather_backward(g, self.shape, dim, index), self)"},
)
def gather(xp: Any, a: Any, dim: int, index: Any, sparse_grad: bool = False) -> Any:
    """result[…, i, …] = self[…, index[…, i, …], …] along `dim`."""
    dim = _checked(a, dim, index, "gather", "input")
    if index.size == 0:
        return xp.empty(index.shape, a.dtype)
    flat, where = _one(a, index)
    return xp.ascontiguousarray(flat[_grid(xp, where, dim)]).reshape(index.shape)


@vjp_helper
def gather_backward(g: Any, shape: Any, dim: int, index: Any) -> Any:
    return aten.scatter_add(aten.new_zeros(g, tuple(shape)), dim, index, g)


def _like(a: Any, *rest: Any) -> Any:
    return MetaArray(a.shape, a.dtype)


@vjp_helper
def scatter_source(g: Any, dim: int, index: Any, shape: Any) -> Any:
    """The gradient of a scatter's source: what its places got; unread parts of the source got
    none.
    """
    r = aten.gather(g, dim, index)
    if r._a.shape == tuple(shape):
        return r
    missing = [
        x for n, m in zip(reversed(shape), reversed(r._a.shape), strict=True) for x in (0, n - m)
    ]
    return aten.constant_pad_nd(r, tuple(missing), 0)


@op(
    "scatter.src(Tensor self, int dim, Tensor index, Tensor src) -> Tensor",
    half=False,
    inplace=True,
    public=False,
    out=True,
    meta=_like,
    vjp={"self": "scatter(g, dim, index, 0)", "src": "scatter_source(g, dim, index, src.shape)"},
    tags=("out_same_dtype",),
)
@written_row_major
def scatter_src(xp: Any, a: Any, dim: int, index: Any, src: Any) -> None:
    """self[…, index[…, i, …], …] = src[…, i, …] along `dim`."""
    dim = _checked(a, dim, index, "scatter", "self", src)
    if index.size:
        a, index, src = _one(a, index, src)
        a[_grid(xp, index, dim)] = _corner(src, index)


@op(
    "scatter.value(Tensor self, int dim, Tensor index, Scalar value) -> Tensor",
    half=False,
    inplace=True,
    public=False,
    out=True,
    meta=_like,
    vjp={"self": "scatter(g, dim, index, 0)"},
    grad_name="ScatterBackward1",
    tags=("out_same_dtype",),
)
@written_row_major
def scatter_value(xp: Any, a: Any, dim: int, index: Any, value: Any) -> None:
    """self[…, index[…, i, …], …] = value along `dim`."""
    dim = _checked(a, dim, index, "scatter", "self")
    if index.size:
        a, index = _one(a, index)
        a[_grid(xp, index, dim)] = number(value, a.dtype)


@op(
    "scatter.reduce(Tensor self, int dim, Tensor index, Tensor src, str reduce) -> Tensor",
    grad_name="NotImplemented",
    vjp={"self": "no_derivative_of('scatter_')", "src": "no_derivative_of('scatter_')"},
    half=False,
    inplace=True,
    public=False,
    out=True,
    meta=_like,
    tags=("out_same_dtype",),
)
@written_row_major
def scatter_combined(xp: Any, a: Any, dim: int, index: Any, src: Any, reduce: str) -> None:
    """self[…, index[…, i, …], …] += (or *=) src[…, i, …] along `dim`. Not differentiable, as in
    PyTorch.
    """
    dim = _checked(a, dim, index, "scatter", "self", src)
    if reduce not in ("add", "multiply"):
        raise RuntimeError(
            f"scatter: reduce argument must be either add or multiply, but got '{reduce}'."
        )
    if index.size:
        a, index, src = _one(a, index, src)
        add_at(
            xp,
            a,
            _positions(xp, a, index, dim),
            _corner(src, index),
            xp.add if reduce == "add" else xp.multiply,
        )


def _scatter_op(
    self: Any, dim: int, index: Any, src: Any, value: Any, reduce: Any
) -> tuple[Any, tuple[Any, ...]]:
    given = src if src is not None else value
    tensor = hasattr(given, "_k")
    if reduce is not None:
        if not tensor:
            layout.wrap_dim(dim, self._a.ndim)
            if not index._a.size:  # nobody looks at the number
                given = 0
            compute.scalar_array(given, self._k.dtype)  # refuses what does not fit
            given = aten.scalar_tensor(given, dtype=self._k.dtype, device=self._k.device)
            given = aten.expand(given, index._a.shape)
        return scatter_combined, (given, reduce)
    return (scatter_src if tensor else scatter_value), (given,)


@face("scatter")
def scatter(
    self: Any,
    dim: int,
    index: Any,
    src: Any = None,
    *,
    value: Any = None,
    reduce: Any = None,
    out: Any = None,
) -> Any:
    """self with values of `src` (a tensor or a number) at the places `index` names along `dim`;
    `reduce` "add" or "multiply" combines them with what is there."""
    chosen, rest = _scatter_op(self, dim, index, src, value, reduce)
    if out is not None:
        return chosen.out(self, dim, index, *rest, out=out)
    return chosen.call(self, dim, index, *rest)


@face("scatter_", spaces=())
def scatter_(
    self: Any, dim: int, index: Any, src: Any = None, *, value: Any = None, reduce: Any = None
) -> Any:
    """In-place version of `scatter`."""
    if reduce is not None:
        writes.prepare_write(scatter_combined, self, ())
    chosen, rest = _scatter_op(self, dim, index, src, value, reduce)
    return chosen.inplace(self, dim, index, *rest)


@op(
    "scatter_add(Tensor self, int dim, Tensor index, Tensor src) -> Tensor",
    half=False,
    inplace=True,
    out=True,
    meta=_like,
    vjp={"self": "g", "src": "scatter_source(g, dim, index, src.shape)"},
    autocast="promote:accelerator",
    tags=("out_same_dtype",),
)
@written_row_major
def scatter_add(xp: Any, a: Any, dim: int, index: Any, src: Any) -> None:
    """self[…, index[…, i, …], …] += src[…, i, …] along `dim`; repeated places add up."""
    dim = _checked(a, dim, index, "scatter_add", "self", src)
    if index.size:
        a, index, src = _one(a, index, src)
        src = _corner(src, index)
        if (
            dim == 0
            and a.ndim > 1
            and not any(index.strides[1:])
            and index.shape[1:] == a.shape[1:]
        ):
            where = index[(slice(None),) + (0,) * (a.ndim - 1)]  # an expanded index: whole rows
            Places(a.shape, [where] + [None] * (a.ndim - 1)).add(xp, a, src)
        else:
            add_at(xp, a, _positions(xp, a, index, dim), src)


@op(
    "scatter_reduce.two(Tensor self, int dim, Tensor index, Tensor src, str reduce, *, bool "
    "include_self=True) -> Tensor",
    inplace=True,
    half=False,
    out=True,
    meta=_like,
    vjp={
        "self, src": (
            "scatter_reduce_backward(g, self, dim, index, src, reduce, include_self, result, needs)"
        )
    },
    tags=("out_same_dtype", "real_gradient"),
)
@half_in_float32
def scatter_reduce(
    xp: Any, a: Any, dim: int, index: Any, src: Any, reduce: str, include_self: bool = True
) -> Any:
    """self combined with `src` at the places `index` names: sum, prod, mean, amax or amin."""
    dim = _checked(a, dim, index, "scatter_reduce", "self", src)
    if reduce not in REDUCES:
        raise RuntimeError(
            "scatter_reduce(): reduce argument must be either sum, prod, mean, amax or amin, got "
            f"{reduce}."
        )
    r = a.copy(order="C")
    if reduce == "mean" or index.size and reduce in ("amax", "amin"):
        kinds = "fcViu" if reduce == "mean" else REAL
        need(kinds, f"scatter_gather_tensor_cpu_reduce_{reduce}", a)
    if index.size:
        flat, index, src = _one(r, index, src)
        reduce_at(
            xp, flat, _positions(xp, flat, index, dim), _corner(src, index), reduce, include_self
        )
    return r


def _part(src: Any, index: Any) -> Any:
    for d, n in enumerate(index._a.shape):
        if src._a.shape[d] != n:
            src = aten.narrow(src, d, 0, n)
    return src


@vjp_helper
def scatter_reduce_backward(
    g: Any,
    x: Any,
    dim: int,
    index: Any,
    whole: Any,
    reduce: str,
    include_self: bool,
    result: Any,
    needs: Any,
) -> Any:
    """(gradient of self, gradient of src). A product's gradient divides by the factor, so a single
    zero among the factors is taken out first; extremes share among ties."""
    src = _part(whole, index)
    if reduce == "sum":
        own, other = g, aten.gather(g, dim, index)
    elif reduce == "mean":
        counts = aten.ones_like(x) if include_self else aten.zeros_like(x)
        counts = aten.scatter_add(counts, dim, index, aten.ones_like(src))
        own = g / aten.where(counts == 0, 1, counts)
        other = aten.gather(own, dim, index)
    elif reduce == "prod":
        safe = aten.where(x == 0, 1, x)
        own = (
            g * aten.scatter_reduce(safe, dim, index, src, "prod", include_self=include_self) / safe
        )
        zero = src == 0
        zeros = aten.gather(
            aten.scatter_add(aten.zeros_like(x), dim, index, aten.to(zero, dtype=x._k.dtype)),
            dim,
            index,
        )
        single = zero & (zeros == 1)
        without = aten.scatter_reduce(
            x, dim, index, aten.where(single, 1, src), "prod", include_self=include_self
        )
        plain = aten.gather(g * result, dim, index) / aten.where(zero, 1, src)
        other = aten.where(single, aten.gather(g * without, dim, index), plain)
    else:
        best = aten.to(aten.gather(result, dim, index) == src, dtype=x._k.dtype)
        mine = aten.to(x == result, dtype=x._k.dtype)
        share = g / aten.scatter_add(mine, dim, index, best)
        own, other = mine * share, best * aten.gather(share, dim, index)
    if not include_self:
        own = aten.scatter(own, dim, index, 0)
    if other._a.shape != whole._a.shape:
        sizes = zip(reversed(whole._a.shape), reversed(other._a.shape), strict=True)
        other = aten.constant_pad_nd(other, tuple(v for n, m in sizes for v in (0, n - m)), 0)
    return (own if needs[0] else None), (other if needs[1] else None)


@vjp_helper
def index_reduce_backward(
    g: Any,
    x: Any,
    dim: int,
    index: Any,
    source: Any,
    reduce: str,
    include_self: bool,
    result: Any,
    needs: Any,
) -> Any:
    """Through scatter_reduce with the index repeated over the other dimensions."""
    flat = x._a.ndim == 0
    if flat:
        x, g, result, source = (aten.reshape(t, (-1,)) for t in (x, g, result, source))
    shape = [1] * source._a.ndim
    shape[dim] = -1
    wide = aten.expand(aten.reshape(aten.to(index, dtype=dt.int64), tuple(shape)), source._a.shape)
    return tuple(
        None if r is None else aten.reshape(r, ()) if flat else r
        for r in scatter_reduce_backward(
            g, x, dim, wide, source, reduce, include_self, result, needs
        )
    )


@face("take_along_dim")
def take_along_dim(self: Any, indices: Any, dim: Any = None, *, out: Any = None) -> Any:
    """As `gather`, with the other dimensions broadcast; without `dim` on the flattened tensor."""
    if indices._k.dtype is not dt.int64:
        raise RuntimeError(
            "take_along_dim(): dtype of indices should be Long but got "
            f"{indices._k.dtype.scalar_name}"
        )
    if dim is None:
        return _gathered(aten.reshape(self, (-1,)), 0, aten.reshape(indices, (-1,)), out)
    n = self._a.ndim
    if n != indices._a.ndim:
        raise RuntimeError(
            "torch.take_along_dim(): input and indices should have the same number of "
            f"dimensions, but got {n} "
            f"dimensions for input, and {indices._a.ndim} dimensions for indices"
        )
    dim = layout.wrap_dim(dim, n)
    own, other = list(self._a.shape), list(indices._a.shape)
    own[dim] = other[dim] = 1
    shape = layout.broadcast_shapes(tuple(own), tuple(other), op="take_along_dim")
    own, other = list(shape), list(shape)
    own[dim], other[dim] = self._a.shape[dim], indices._a.shape[dim]
    return _gathered(aten.expand(self, tuple(own)), dim, aten.expand(indices, tuple(other)), out)


def _gathered(t: Any, dim: int, indices: Any, out: Any) -> Any:
    """`gather` that counts negative indices from the end."""
    indices = aten.where(indices < 0, indices + t._a.shape[dim], indices)
    return aten.gather(t, dim, indices) if out is None else aten.gather(t, dim, indices, out=out)

"""Sums and means over dimensions, counts, and truth over dimensions. (_reduce.py makes the sums.)

Source of the semantics: https://docs.pytorch.org/docs/2.13/torch.html#reduction-ops
"""

from __future__ import annotations

from typing import Any

import numpy as np

from torchlab._core import dtype as dt
from torchlab._core.backends.meta import MetaArray
from torchlab._core.dispatch.arguments import check_ints
from torchlab._core.dispatch.op import composite, face, op
from torchlab._core.dispatch.registry import aten, vjp_helper
from torchlab._core.ops._reduce import (
    FLOAT32,
    INT64,
    ONES32,
    accurate_sum,
    expand_reduced,
    integers_to_int64,
    is_float,
    is_half,
    numpy_names,
    reduced_count,
    reduced_dims,
    reduced_shape,
    reduction_meta,
    row_major,
    scalar_name,
)

# ---- sum ----------------------------------------------------------------------------------------


@op(
    "sum(Tensor self, *, ScalarType? dtype=None) -> Tensor",
    public=False,
    tags=("reduction",),
    half=False,
    vjp={"self": "cast_back(expand(g, self.shape), self.dtype, self.device)"},
    grad_name="SumBackward0",
    meta=lambda a, dtype=None: MetaArray((), integers_to_int64(a, dtype)),
    autocast="float32:accelerator",
)
def sum_all(xp: Any, a: Any, dtype: Any) -> Any:
    """The sum of all elements."""
    if (
        a.dtype is FLOAT32
        and dtype is None
        and a.ndim == 1
        and xp is np
        and (one := ONES32.get(a.size)) is not None
    ):
        return a.dot(one)  # Note [Sums] in _reduce.py
    return accurate_sum(xp, a, tuple(range(a.ndim)), False, integers_to_int64(a, dtype))


@op(
    "sum.dim_IntList(Tensor self, int[1]? dim, bool keepdim=False, *, ScalarType? dtype=None) -> "
    "Tensor",
    public=False,
    vjp={"self": "cast_back(expand_reduced(g, self.shape, dim, keepdim), self.dtype, self.device)"},
    half=False,
    grad_name="SumBackward1",
    tags=("reduction",),
    meta=reduction_meta(integers_to_int64),
    autocast="float32:accelerator",
)
def sum_dim(xp: Any, a: Any, dim: Any, keepdim: bool, dtype: Any) -> Any:
    """The sum over dimensions."""
    return accurate_sum(xp, a, reduced_dims(dim, a.ndim), keepdim, integers_to_int64(a, dtype))


def _sum_all(self: Any) -> Any:
    """`sum_all.call` as a plain global: the generated call takes this one's place when needed."""
    global _sum_all
    _sum_all = sum_all.call
    return _sum_all(self)


@face("sum", tags=("bare",))
def sum(
    self: Any,
    dim: Any = None,
    keepdim: bool = False,
    *,
    dtype: Any = None,
    out: Any = None,
    **names: Any,
) -> Any:
    """The sum of all elements, or over `dim`; integers and bools are summed in int64."""
    if dim is None and dtype is None and out is None and not keepdim and not names:
        return _sum_all(self)
    if names:
        dim, keepdim = numpy_names("sum", dim, keepdim, names)
    if out is not None:
        return sum_dim.out(self, dim, keepdim, dtype, out=out)
    if dim is None and not keepdim:
        return sum_all.call(self, dtype=dtype)
    return sum_dim.call(self, dim, keepdim, dtype=dtype)


@face("sum_to_size", spaces=())
def sum_to_size(self: Any, size: Any, *more: Any) -> Any:
    """Summed over what broadcasting from `size` to this shape repeats: the gradient of `expand`."""
    for n in (size, *more):
        check_ints("sum_to_size", "size", n)
    alone = isinstance(size, (tuple, list)) and not more
    target = tuple(size) if alone else (size, *more)
    shape = self._a.shape
    lead = len(shape) - len(target)
    if lead < 0 or any(n not in (1, m) for n, m in zip(target, shape[lead:], strict=True)):
        raise RuntimeError(f"size {{{list(target)}}} is not expandable to size {{{list(shape)}}}.")
    if target == tuple(shape) and target:
        return self
    dims = [*range(lead), *(lead + i for i, n in enumerate(target) if n != shape[lead + i])]
    return aten.view(sum_dim.call(self, dims, True), target) if dims else sum_all.call(self)


# ---- mean ---------------------------------------------------------------------------------------


@vjp_helper
def mean_backward(g: Any, shape: Any, dim: Any, keepdim: bool, dtype: Any) -> Any:
    """The gradient of a mean: shared equally."""
    n = reduced_count(shape, dim)
    return aten.to(expand_reduced(g, shape, dim, keepdim) / n, dtype=dtype)


def _mean_dtype(a: Any, dtype: Any) -> Any:
    made = a.dtype if dtype is None else dtype.np
    if not is_float(made):
        what = (
            "could not infer output dtype. Input dtype" if dtype is None else "the optional dtype"
        )
        raise RuntimeError(
            f"mean(): {what} must be either a floating point or complex dtype. Got: "
            f"{scalar_name(a) if dtype is None else dtype.scalar_name}"
        )
    return made


def _mean(xp: Any, a: Any, dim: Any, keepdim: bool, dtype: Any) -> Any:
    made = _mean_dtype(a, dtype)
    wide = FLOAT32 if is_half(made) else made
    r = accurate_sum(xp, a, reduced_dims(dim, a.ndim), keepdim, wide)
    r = r / wide.type(reduced_count(a.shape, dim))
    return r if wide is made else r.astype(made)


@op(
    "mean(Tensor self, *, ScalarType? dtype=None) -> Tensor",
    public=False,
    tags=("reduction",),
    half=False,
    vjp={"self": "mean_backward(g, self.shape, None, False, self.dtype)"},
    grad_name="MeanBackward0",
    meta=lambda a, dtype=None: MetaArray((), _mean_dtype(a, dtype)),
)
def mean_all(xp: Any, a: Any, dtype: Any) -> Any:
    """The mean of all elements."""
    if (
        a.dtype is FLOAT32
        and dtype is None
        and a.ndim == 1
        and xp is np
        and (one := ONES32.get(a.size)) is not None
    ):
        return a.dot(one) / FLOAT32.type(a.size)
    return _mean(xp, a, None, False, dtype)


@op(
    "mean.dim(Tensor self, int[1]? dim, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor",
    public=False,
    half=False,
    vjp={"self": "mean_backward(g, self.shape, dim, keepdim, self.dtype)"},
    grad_name="MeanBackward1",
    tags=("reduction",),
    meta=reduction_meta(_mean_dtype),
)
def mean_dim(xp: Any, a: Any, dim: Any, keepdim: bool, dtype: Any) -> Any:
    """The mean over dimensions."""
    return _mean(xp, a, dim, keepdim, dtype)


def _mean_all(self: Any) -> Any:
    """As `_sum_all`."""
    global _mean_all
    _mean_all = mean_all.call
    return _mean_all(self)


@face("mean")
def mean(
    self: Any,
    dim: Any = None,
    keepdim: bool = False,
    *,
    dtype: Any = None,
    out: Any = None,
    **names: Any,
) -> Any:
    """The mean of all elements, or over `dim`; integers need `dtype=`."""
    if dim is None and dtype is None and out is None and not keepdim and not names:
        return _mean_all(self)
    if names:
        dim, keepdim = numpy_names("mean", dim, keepdim, names)
    if out is not None:
        return mean_dim.out(self, dim, keepdim, dtype, out=out)
    if dim is None and not keepdim:
        return mean_all.call(self, dtype=dtype)
    return mean_dim.call(self, dim, keepdim, dtype=dtype)


# ---- without NaN --------------------------------------------------------------------------------


@op(
    "nansum(Tensor self, int[1]? dim=None, bool keepdim=False, *, ScalarType? dtype=None) -> "
    "Tensor",
    tags=("reduction",),
    vjp={
        "self": (
            "cast_back(expand_reduced(g, self.shape, dim, keepdim) * ~isnan(self), "
            "self.dtype, self.device)"
        )
    },
    half=False,
    out=True,
    meta=reduction_meta(integers_to_int64),
)
def nansum(xp: Any, a: Any, dim: Any, keepdim: bool, dtype: Any) -> Any:
    """The sum over dimensions with NaN taken for 0."""
    dims = reduced_dims(dim, a.ndim)
    if a.dtype.kind == "c":
        raise RuntimeError("nansum on CPU does not support complex inputs")
    made = integers_to_int64(a, dtype)
    if is_float(a.dtype):
        if made.kind == "c" and 0 not in reduced_shape(a, dim, keepdim):
            kind = dt.from_numpy(made).scalar_name
            raise NotImplementedError(f"\"nansum_cpu\" not implemented for '{kind}'")
        a = xp.where(xp.isnan(a), a.dtype.type(0), a)
    return accurate_sum(xp, a, dims, keepdim, made)


@composite(
    "nanmean(Tensor self, int[1]? dim=None, bool keepdim=False, *, ScalarType? dtype=None) -> "
    "Tensor",
    out=True,
)
def nanmean(self: Any, dim: Any, keepdim: bool, dtype: Any) -> Any:
    """The mean over dimensions of what is not NaN."""
    if not self._k.differentiable:
        raise RuntimeError(
            "nanmean(): expected input to have floating point or complex dtype but got "
            f"{self._k.dtype.scalar_name}"
        )
    count = sum_dim.call(~aten.isnan(aten.detach(self)), dim, keepdim)
    return nansum.call(self, dim, keepdim, dtype=dtype) / count


# ---- counts and truth ---------------------------------------------------------------------------


@op(
    "count_nonzero(Tensor self, int[1]? dim=None) -> Tensor",
    varargs=True,
    tags=("reduction",),
    meta=lambda a, dim=None: MetaArray(reduced_shape(a, dim, False), INT64),
)
def count_nonzero(xp: Any, a: Any, dim: Any) -> Any:
    """How many elements are not 0, in all or over dimensions; int64."""
    dims = reduced_dims(dim, a.ndim)
    if a.ndim == len(dims) or a.ndim == 0:
        return xp.asarray(xp.count_nonzero(a), dtype=INT64)
    return row_major(xp.add.reduce(a != 0, axis=dims, dtype=INT64))


def _truth_dtype(a: Any, _: Any = None) -> np.dtype:
    return a.dtype if a.dtype == np.uint8 else np.dtype(np.bool_)


def _truth(xp: Any, a: Any, name: str, dim: Any, keepdim: bool) -> Any:
    dims = (
        ()
        if type(dim) is not int and dim is not None and len(dim) == 0
        else reduced_dims(dim, a.ndim)
    )
    true = a if a.dtype.kind == "b" else a != 0
    ufunc = xp.logical_and if name == "all" else xp.logical_or
    made = _truth_dtype(a)
    if not dims or not a.ndim:
        return row_major(xp.array(true, dtype=made))
    return row_major(xp.asarray(ufunc.reduce(true, axis=dims, keepdims=keepdim), dtype=made))


def _truth_meta(a: Any, dim: Any = None, keepdim: bool = False) -> Any:
    if type(dim) is not int and dim is not None and len(dim) == 0:
        return MetaArray(a.shape, _truth_dtype(a))
    return MetaArray(reduced_shape(a, dim, keepdim), _truth_dtype(a))


def _truth_op(name: str, doc: str) -> Any:
    text = f"{name}.dims(Tensor self, int[1]? dim=None, bool keepdim=False) -> Tensor"
    declared = op(text, public=False, tags=("reduction",), meta=_truth_meta, doc=doc)(
        lambda xp, a, dim, keepdim: _truth(xp, a, name, dim, keepdim)
    )

    def body(
        self: Any, dim: Any = None, keepdim: bool = False, *, out: Any = None, **names: Any
    ) -> Any:
        if names:
            dim, keepdim = numpy_names(name, dim, keepdim, names)
        if out is not None:
            if out.dtype not in (dt.bool_, dt.uint8):
                raise RuntimeError(
                    f"{name} only supports bool tensor for result, got: {out.dtype.scalar_name}"
                )
            if out.dtype is dt.bool_ and self.dtype is dt.uint8:
                self = aten.ne(self, 0)
            return declared.out(self, dim, keepdim, out=out)
        return declared.call(self, dim, keepdim)

    body.__doc__ = doc
    face(name)(body)
    return declared


all_dims = _truth_op(
    "all", "Whether all elements are true, in all or over dimensions. uint8 gives uint8."
)
any_dims = _truth_op(
    "any", "Whether any element is true, in all or over dimensions. uint8 gives uint8."
)


# ---- the diagonal -------------------------------------------------------------------------------


@op(
    "trace(Tensor self) -> Tensor",
    meta=lambda a: MetaArray((), integers_to_int64(a, None)),
    tags=("reduction",),
    vjp={"self": "trace_backward(g, self.shape)"},
    autocast="float32:cpu",
)
def trace(xp: Any, a: Any) -> Any:
    """The sum of a matrix's diagonal."""
    if a.dtype.kind == "b":
        raise NotImplementedError("\"trace\" not implemented for 'Bool'")
    if a.ndim != 2:
        raise RuntimeError(f"trace: expected a matrix, but got tensor with dim {a.ndim}")
    return accurate_sum(xp, a.diagonal(), (0,), False, integers_to_int64(a, None))


@vjp_helper
def trace_backward(g: Any, shape: Any) -> Any:
    """g on the diagonal."""
    return aten.diagonal_backward(aten.expand(g, (min(shape),)), tuple(shape), 0, 0, 1)

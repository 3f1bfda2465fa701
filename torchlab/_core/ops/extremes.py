"""Maxima and minima over dimensions, and where they are. NaN wins; the first of equals is the one.

Source of the semantics: https://docs.pytorch.org/docs/2.13/generated/torch.max.html
"""

from __future__ import annotations

from typing import Any

import numpy as np

from torchlab._core import dtype as dt
from torchlab._core import layout
from torchlab._core.backends.meta import MetaArray
from torchlab._core.dispatch.op import face, op
from torchlab._core.dispatch.registry import aten
from torchlab._core.ops._reduce import (
    INT64,
    check_out,
    lanes,
    no_identity,
    numpy_names,
    reduced_dims,
    reduced_shape,
    reduction_meta,
    row_major,
    scalar_name,
    squeeze,
)
from torchlab._core.ops.kernels import exact
from torchlab._core.tensor import Tensor

_SPECIFY = "Specify the reduction dim with the 'dim' argument."


def _extreme(name: str, doc: str) -> Any:
    """Declare max or min, amax or amin, argmax or argmin."""
    ufunc = getattr(np, name + "imum")

    @op(
        f"{name}(Tensor self) -> Tensor",
        public=False,
        tags=("reduction",),
        grad_name=f"{name.title()}Backward1",
        vjp={"self": "evenly_backward(g, self, result)"},
        meta=lambda a: MetaArray((), a.dtype),
    )
    def full(xp: Any, a: Any) -> Any:
        """The extreme of all elements."""
        no_identity(name, a.shape, None, full=_SPECIFY)
        if a.dtype.kind == "c":
            raise NotImplementedError(f"\"{name}_all\" not implemented for '{scalar_name(a)}'")
        return getattr(xp, ufunc.__name__).reduce(a, axis=None)

    @op(
        f"{name}.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)",
        public=False,
        tags=("reduction",),
        grad_name=f"{name.title()}Backward0",
        vjp={"self": "selected_backward(g0, dim, result1, self.shape, keepdim)"},
        meta=lambda a, dim, keepdim=False: (
            MetaArray(reduced_shape(a, dim, keepdim), a.dtype),
            MetaArray(reduced_shape(a, dim, keepdim), INT64),
        ),
    )
    def along(xp: Any, a: Any, dim: int, keepdim: bool) -> Any:
        """The extreme along a dimension and where it is first."""
        lane, d = lanes(a, dim)
        no_identity(name, lane.shape, d)
        if a.dtype.kind == "c":
            raise RuntimeError(f"{name}(): does not support complex input")
        where = getattr(xp, "arg" + name)(lane, axis=d, keepdims=True)
        values = xp.take_along_axis(lane, where, d)
        return squeeze(row_major(values), d, keepdim, a.ndim), squeeze(
            row_major(where), d, keepdim, a.ndim
        )

    @op(
        f"a{name}(Tensor self, int[1] dim=[], bool keepdim=False) -> Tensor",
        out=True,
        tags=("reduction", "out_same_dtype", "out_type_first", "real_gradient"),
        meta=reduction_meta(),
        vjp={"self": "shared_backward(g, self, result, dim, keepdim)"},
        public=False,
    )
    def over(xp: Any, a: Any, dim: Any, keepdim: bool) -> Any:
        """The extreme over dimensions."""
        dims = reduced_dims(dim, a.ndim)
        no_identity("a" + name, a.shape, dim, full=_SPECIFY)
        if a.dtype.kind == "c":
            kept = [n for i, n in enumerate(a.shape) if i not in dims]
            if 0 in kept:  # nothing to compare
                return xp.empty(layout.reduction_shape(a.shape, dims, keepdim), a.dtype)
            raise NotImplementedError(
                f"\"{name}_values_cpu\" not implemented for '{scalar_name(a)}'"
            )
        if a.ndim == 0:
            return a.copy()
        return row_major(
            xp.asarray(getattr(xp, ufunc.__name__).reduce(a, axis=dims, keepdims=keepdim))
        )

    @op(
        f"arg{name}(Tensor self, int? dim=None, bool keepdim=False) -> Tensor",
        out=True,
        tags=("reduction", "out_same_dtype"),
        public=False,
        meta=lambda a, dim=None, keepdim=False: MetaArray(reduced_shape(a, dim, keepdim), INT64),
    )
    def position(xp: Any, a: Any, dim: Any, keepdim: bool) -> Any:
        """Where the extreme is first."""
        if a.dtype.kind in "cb":
            raise RuntimeError(
                f"arg{name}(): does not support {'bool' if a.dtype.kind == 'b' else 'complex'} "
                "input"
            )
        if dim is None:
            if a.size == 0:
                raise IndexError(
                    f"arg{name}(): Expected reduction dim to be specified for input.numel() == 0."
                )
            return xp.asarray(getattr(xp, "arg" + name)(a)).reshape(
                (1,) * a.ndim if keepdim else ()
            )
        lane, d = lanes(a, dim)
        no_identity("arg" + name, lane.shape, d)
        return squeeze(
            row_major(getattr(xp, "arg" + name)(lane, axis=d, keepdims=True)), d, keepdim, a.ndim
        )

    for kernel in (full.kernel, along.kernel, over.kernel, position.kernel):
        exact(kernel)

    def choose(
        self: Any,
        dim: Any = None,
        keepdim: bool = False,
        *,
        other: Any = None,
        out: Any = None,
        **names: Any,
    ) -> Any:
        if names:
            dim, keepdim = numpy_names(name, dim, keepdim, names)
        if isinstance(dim, Tensor):
            dim, other = None, dim
        if not isinstance(self, Tensor):
            raise TypeError(
                f"{name}(): argument 'input' (position 1) must be Tensor, not {type(self).__name__}"
            )
        if other is not None:
            two = getattr(aten, name + "imum")
            return two(self, other, out=out) if out is not None else two(self, other)
        if dim is None:
            return full.out(self, out=out) if out is not None else full.call(self)
        if type(dim) is not int:
            dim = _index(dim, name)
        if out is not None:
            layout.wrap_dim(dim, self._a.ndim)
            check_out(out, self.dtype, dt.int64)
            return along.out(self, dim, keepdim, out=out)
        return along.call(self, dim, keepdim)

    choose.__doc__ = (
        f"{doc} of all elements; over `dim`: (values, indices); with a tensor: element by element."
    )
    face(name)(choose)

    def over_dims(
        self: Any, dim: Any = (), keepdim: bool = False, *, out: Any = None, **names: Any
    ) -> Any:
        if names:
            dim, keepdim = numpy_names("a" + name, dim, keepdim, names)
        return (
            over.out(self, dim, keepdim, out=out)
            if out is not None
            else over.call(self, dim, keepdim)
        )

    over_dims.__doc__ = f"{doc} over dimensions; equal elements share the gradient."
    face("a" + name)(over_dims)

    def first_position(
        self: Any, dim: Any = None, keepdim: bool = False, *, out: Any = None, **names: Any
    ) -> Any:
        if names:
            dim, keepdim = numpy_names("arg" + name, dim, keepdim, names)
        return (
            position.out(self, dim, keepdim, out=out)
            if out is not None
            else position.call(self, dim, keepdim)
        )

    first_position.__doc__ = (
        f"Where the {name}imum is: the first place, int64; without `dim` in the flattened tensor."
    )
    face("arg" + name)(first_position)
    return full, along, over, position


def _index(dim: Any, name: str) -> int:
    try:
        return dim.__index__()
    except AttributeError:
        raise TypeError(
            f"{name}() received an invalid combination of arguments - got ({type(dim).__name__}), "
            "but expected one of: "
            "(), (Tensor other), (int dim, bool keepdim = False)"
        ) from None


max_full, max_along, amax, argmax = _extreme("max", "The maximum")
min_full, min_along, amin, argmin = _extreme("min", "The minimum")


def _pair_meta(a: Any, dim: Any = None, keepdim: bool = False) -> Any:
    shape = reduced_shape(a, dim, keepdim)
    return MetaArray(shape, a.dtype), MetaArray(shape, a.dtype)


@op(
    "aminmax(Tensor self, *, int? dim=None, bool keepdim=False) -> (Tensor min, Tensor max)",
    public=False,
    tags=("reduction",),
    meta=_pair_meta,
    vjp={"self": "aminmax_backward(g0, g1, self, result0, result1, dim, keepdim)"},
)
def aminmax_(xp: Any, a: Any, dim: Any, keepdim: bool) -> Any:
    """Minimum and maximum, of all elements or along a dimension."""
    if dim is None and a.size == 0:
        raise RuntimeError(
            "aminmax(): cannot compute aminmax over an empty dimension as the operation has no "
            "identity."
        )
    if dim is not None:
        d = layout.wrap_dim(dim, a.ndim)
        if a.ndim and a.shape[d] == 0:
            raise IndexError(f"aminmax: Expected reduction dim {d} to have non-zero size.")
    if a.dtype.kind == "c":
        if not a.ndim and dim is not None:
            raise RuntimeError(f"aminmax not implemented for {scalar_name(a)}")
        raise NotImplementedError(f"\"aminmax_cpu\" not implemented for '{scalar_name(a)}'")
    if a.ndim == 0:
        return a.copy(), a.copy()
    dims = reduced_dims(dim, a.ndim)
    both = (f.reduce(a, axis=dims, keepdims=keepdim) for f in (xp.minimum, xp.maximum))
    return tuple(row_major(xp.asarray(r)) for r in both)


@face("aminmax")
def aminmax(self: Any, *, dim: Any = None, keepdim: bool = False, out: Any = None) -> Any:
    """(min, max) of all elements or along `dim`."""
    if out is not None:
        if dim is not None:
            layout.wrap_dim(dim, self._a.ndim)
        check_out(out, self.dtype, self.dtype)
        return aminmax_.out(self, dim, keepdim, out=out)
    return aminmax_.call(self, dim=dim, keepdim=keepdim)

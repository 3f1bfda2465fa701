"""Complex numbers: parts, conjugates, angles.

Conjugates are computed at once: the lazy bit of PyTorch is not there yet, `is_conj()` is False.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from torchlab._core import dtype as dt
from torchlab._core.backends.meta import MetaArray
from torchlab._core.dispatch.compute import alias
from torchlab._core.dispatch.op import composite, face, op, unary, view
from torchlab._core.dispatch.registry import aten, vjp_helper
from torchlab._core.kind import kind
from torchlab._core.ops.kernels import into

_conj = unary(
    "_conj_physical",
    lambda xp, a, out=None: xp.conjugate(a, out=out),
    public=False,
    vjp={"self": "conj_of(g)"},
    grad_name="ConjBackward0",
)


@face("conj")
def conj(self: Any) -> Any:
    """The complex conjugate; real tensors are given back as they are."""
    return _conj.call(self) if self._k.dtype.is_complex else self


def _conjugate(xp: Any, a: Any, out: Any = None) -> Any:
    if a.dtype.kind == "c":
        return xp.conjugate(a, out=out)
    return into(a, out) if out is not None else a.copy()


_conj_physical = unary(
    "conj_physical",
    _conjugate,
    public=False,
    vjp={"self": "conj_of(g)"},
)


@face("conj_physical")
def conj_physical(self: Any, *, out: Any = None) -> Any:
    """The complex conjugate in memory of its own; real tensors are given back as they are."""
    if out is not None:
        return _conj_physical.out(self, out=out)
    return _conj_physical.call(self) if self._k.dtype.is_complex else self


@face("conj_physical_")
def conj_physical_(self: Any) -> Any:
    """In-place `conj_physical`."""
    return _conj_physical.inplace(self) if self._k.dtype.is_complex else self


@face("resolve_conj")
def resolve_conj(self: Any) -> Any:
    """Itself: conjugates are never pending."""
    return self


@face("resolve_neg")
def resolve_neg(self: Any) -> Any:
    """Itself: negations are never pending."""
    return self


def _part(self: Any, name: str, op_: Any) -> Any:
    r = op_.call(self)
    k = kind(self._k.dtype.to_real(), self._k.device)
    r._k = k if r._a.flags.c_contiguous else k.v
    if r._e is not None:
        r._e.k = r._k
    return r


_real = view(
    "_real(Tensor(a) self) -> Tensor(a)",
    public=False,
    vjp={"self": "complex(g, zeros_like(g))"},
    grad_name="RealBackward0",
)(lambda xp, a: a.real)
_imag = view(
    "_imag(Tensor(a) self) -> Tensor(a)",
    public=False,
    vjp={"self": "complex(zeros_like(g), g)"},
    grad_name="ImagBackward0",
)(lambda xp, a: a.imag)


@face("real", method=False)
def real(self: Any) -> Any:
    """The real part, as a view; real tensors are given back as they are."""
    return _part(self, "real", _real) if self._k.dtype.is_complex else self


@face("imag", method=False)
def imag(self: Any) -> Any:
    """The imaginary part, as a view."""
    if not self._k.dtype.is_complex:
        raise RuntimeError("imag is not implemented for tensors with non-complex dtypes.")
    return _part(self, "imag", _imag)


@vjp_helper
def real_of(g: Any) -> Any:
    return aten.real(g)


@vjp_helper
def imag_of(g: Any) -> Any:
    return aten.imag(g)


@op(
    "complex(Tensor real, Tensor imag) -> Tensor",
    method=False,
    public=False,
    out=True,
    half=False,
    meta=lambda re, im: MetaArray(
        np.broadcast_shapes(re.shape, im.shape), np.result_type(re.dtype, np.complex64)
    ),
    vjp={"real": "real_of(g)", "imag": "imag_of(g)"},
)
def complex_(xp: Any, re: Any, im: Any) -> Any:
    """A complex tensor from two real ones of one type."""
    if re.dtype != im.dtype:
        raise RuntimeError(
            f"Expected object of scalar type {dt.from_numpy(re.dtype).scalar_name} but got scalar"
            f" type {dt.from_numpy(im.dtype).scalar_name} for second argument"
        )
    if re.dtype.kind != "f":
        raise RuntimeError("Expected both inputs to be Half, Float or Double tensors")
    r = xp.empty(np.broadcast_shapes(re.shape, im.shape), np.result_type(re.dtype, np.complex64))
    r.real, r.imag = re, im
    return r


@face("complex", method=False)
def complex(real: Any, imag: Any, *, out: Any = None) -> Any:
    """A complex tensor from two real ones of one type."""
    if out is None:
        return complex_.function(real, imag)
    _check_out(complex_.function(aten.detach(real), aten.detach(imag)), out, "argument 'out'")
    return complex_.out(real, imag, out=out)


def _check_out(made: Any, out: Any, what: str) -> None:
    if out._k.dtype is not made._k.dtype:
        raise RuntimeError(
            f"Expected object of scalar type {made._k.dtype.scalar_name} but got scalar type"
            f" {out._k.dtype.scalar_name} for {what}"
        )


@composite("polar(Tensor abs, Tensor angle) -> Tensor", method=False, out=True)
def polar(abs: Any, angle: Any) -> Any:
    """A complex tensor from absolute values and angles."""
    a, b = abs._k.dtype, angle._k.dtype
    if not (a.is_floating_point and b.is_floating_point):
        raise RuntimeError(
            "polar: Expected both inputs to be Half, Float or Double tensors but got"
            f" {a.scalar_name} and {b.scalar_name}"
        )
    if a is not b:
        raise RuntimeError(
            f"polar: Expected object of scalar type {a.scalar_name} but got scalar type"
            f" {b.scalar_name} for second argument"
        )
    return complex_.function(abs * aten.cos(angle), abs * aten.sin(angle))


def _angle(xp: Any, a: Any, out: Any = None) -> Any:
    r = (
        xp.angle(a)
        if a.dtype.kind == "c"
        else xp.where(xp.isnan(a), a, xp.where(a < 0, np.pi, 0)).astype(a.dtype)
    )
    if out is None:
        return r
    out[...] = r
    return out


angle = unary(
    "angle",
    _angle,
    inplace=False,
    promote=lambda op, d: _angle_types(d),
    vjp={"self": "angle_backward(g, self)"},
)


def _angle_types(d: dt.dtype) -> tuple[dt.dtype, dt.dtype]:
    if d.category < dt.FLOAT:
        d = dt.get_default_dtype()
    return d, d.to_real()


@composite("angle_backward(Tensor g, Tensor self) -> Tensor", public=False)
def angle_backward(g: Any, self: Any) -> Any:
    """The gradient of the angle: i·z / |z|², 0 at 0 and for real tensors."""
    if not self._k.dtype.is_complex:
        return aten.zeros_like(self)
    r = aten.complex(aten.zeros_like(g), g) * self / (aten.abs(self) ** 2)
    return aten.where(self == 0, 0, r)


@face("view_as_real")
def view_as_real(self: Any) -> Any:
    """A view with a last dimension of (real, imaginary)."""
    if not self._k.dtype.is_complex:
        raise RuntimeError("view_as_real is only supported for complex tensors")
    if self._e is not None:
        return aten.stack([real.body(self), imag.body(self)], -1)
    r = alias(self)
    r._a = self._a[..., None].view(self._a.real.dtype)
    k = kind(self._k.dtype.to_real(), self._k.device)
    r._k = k if r._a.flags.c_contiguous else k.v
    return r


@face("view_as_complex")
def view_as_complex(self: Any) -> Any:
    """A complex view of a tensor whose last dimension is (real, imaginary)."""
    if self._a.ndim == 0 or self._a.shape[-1] != 2:
        raise RuntimeError("Tensor must have a last dimension of size 2")
    if self._e is not None:
        return complex_.function(aten.select(self, -1, 0), aten.select(self, -1, 1))
    r = alias(self)
    r._a = self._a.view(np.result_type(self._a.dtype, np.complex64))[..., 0]
    k = kind(self._k.dtype.to_complex(), self._k.device)
    r._k = k if r._a.flags.c_contiguous else k.v
    return r

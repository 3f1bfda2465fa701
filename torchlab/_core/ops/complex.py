"""Complex numbers: parts, conjugates, angles.

Conjugates are views with a bit: Note [Pending tensors] in `_bits`, which also says what becomes of
negatives.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from torchlab._core import dtype as dt
from torchlab._core import layout
from torchlab._core.backends.base import empty_strided
from torchlab._core.backends.meta import MetaArray
from torchlab._core.dispatch.exotic import exotic, record
from torchlab._core.dispatch.op import composite, face, op, unary, view
from torchlab._core.dispatch.registry import aten, vjp_helper
from torchlab._core.kind import kind
from torchlab._core.ops._bits import KEY, Pending, bare, based, flipped, pending, resolved
from torchlab._core.ops._places import elements
from torchlab._core.ops._view_histories import changed
from torchlab._core.ops.kernels import into
from torchlab._core.tape import TLS, edge_of, geometry


def _conjugate(xp: Any, a: Any, out: Any = None) -> Any:
    if a.dtype.kind == "c":
        return xp.conjugate(a, out=out)
    return into(a, out) if out is not None else a.copy()


_conj_physical = unary(
    "_conj_physical",
    _conjugate,
    inplace=False,
    vjp={"self": "conj_of(g)"},
    grad_name="ConjPhysicalBackward0",
)
_conj_physical_op = unary(
    "conj_physical",
    _conjugate,
    public=False,
    vjp={"self": "conj_of(g)"},
    grad_name="ConjPhysicalBackward1",
    tags=("pointwise", "out_unrecorded"),
)


@op(
    "_conj(Tensor(a) self) -> Tensor(a)",
    family="tensorwise",
    vjp={"self": "conj(g)"},
    grad_name="ConjBackward0",
)
def _conj(self: Any) -> Any:
    """The complex conjugate, as a view."""
    if not self._k.dtype.is_complex:
        raise RuntimeError(
            f"_conj: only complex tensors can have the conjugate bit, not one of type {self.dtype}"
        )
    return flipped(self, conj=True)


@op(
    "_neg_view(Tensor(a) self) -> Tensor(a)",
    family="tensorwise",
    vjp={"self": "neg(g)"},
    grad_name="NegViewBackward0",
)
def _neg_view(self: Any) -> Any:
    """The negative, as a view."""
    if self._k.dtype is dt.bool_:
        raise NotImplementedError("_neg_view: there is no negative for tensors of type torch.bool")
    return flipped(self, neg=True)


@exotic(KEY, "_conj")
def _conj_pending(self: Any) -> Any:
    return record("ConjBackward0", _conj.kernel(self), (self,), lambda g: (aten.conj(g),))


@exotic(KEY, "_neg_view")
def _neg_view_pending(self: Any) -> Any:
    return record("NegViewBackward0", _neg_view.kernel(self), (self,), lambda g: (aten.neg(g),))


@face("conj")
def conj(self: Any) -> Any:
    """The complex conjugate, as a view with the conjugate bit; real tensors are given back as they
    are."""
    if not self._k.dtype.is_complex:
        return self
    # A graph that is being captured has no tensors with bits.
    return _conj_physical.call(self) if TLS.dispatch_modes else _conj.call(self)


@face("conj_physical")
def conj_physical(self: Any, *, out: Any = None) -> Any:
    """The complex conjugate in memory of its own; real tensors are given back as they are."""
    if out is not None:
        return _conj_physical_op.out(self, out=out)
    return _conj_physical.call(self) if self._k.dtype.is_complex else self


@face("conj_physical_")
def conj_physical_(self: Any) -> Any:
    """In-place `conj_physical`."""
    return _conj_physical_op.inplace(self)  # counts as a write to real tensors, too


@face("resolve_conj")
def resolve_conj(self: Any) -> Any:
    """A copy without the conjugate bit; tensors without it are given back as they are."""
    return resolved(self) if self.is_conj() else self


@face("resolve_neg")
def resolve_neg(self: Any) -> Any:
    """A copy without the negative bit; tensors without it are given back as they are."""
    return resolved(self) if self.is_neg() else self


# ---- parts --------------------------------------------------------------------------------------


def _retyped(r: Any, dtype: dt.dtype) -> Any:
    """The fresh view `r` as one of `dtype`; on the meta device its strides are right already."""
    if r._level:  # Note [Levels]
        return r.each(lambda x: _retyped(x, dtype))
    k = kind(dtype, r._k.device)
    k = k.i if r._k.inference else k
    if isinstance(r._a, MetaArray):
        size, offset = r._a.itemsize, r._a.offset
        r._a = MetaArray(r._a.shape, k.np, tuple(x // size for x in r._a.strides), offset)
    r._k = k if r._a.flags.c_contiguous else k.v
    if r._e is not None:
        r._e.k = r._k
    return r


def _doubled(shape: Any, strides: Any, offset: int) -> Any:
    return (*shape, 2), (*(2 * x for x in strides), 1), 2 * offset


def _part_rule(which: int) -> Any:
    return lambda shape, strides, offset: (shape, tuple(2 * x for x in strides), 2 * offset + which)


_real = view(
    "_real(Tensor(a) self) -> Tensor(a)",
    public=False,
    vjp={"self": "complex(g, zeros_like(g))"},
    grad_name="RealBackward0",
    meta=_part_rule(0),
)(lambda xp, a: a.real)
_imag = view(
    "_imag(Tensor(a) self) -> Tensor(a)",
    public=False,
    vjp={"self": "complex(zeros_like(g), g)"},
    grad_name="ImagBackward0",
    meta=_part_rule(1),
)(lambda xp, a: a.imag)


def _part(self: Any, which: int) -> Any:
    """A part of a complex tensor as a view: as PyTorch makes it where one could see how, else in
    one step."""
    if type(self) is not Pending and (edge_of(self) is None or TLS.dispatch_modes):
        r = _retyped((_imag if which else _real).call(self), self._k.dtype.to_real())
        return changed(self, r, "view_as_real", geometry(r))
    turned = self.is_conj()
    pairs = view_as_real.body(_conj.call(self) if turned else self)
    return aten.select(_neg_view.call(pairs) if turned and which else pairs, -1, which)


@face("real", method=False)
def real(self: Any) -> Any:
    """The real part, as a view; real tensors are given back as they are."""
    return _part(self, 0) if self._k.dtype.is_complex else self


@face("imag", method=False)
def imag(self: Any) -> Any:
    """The imaginary part, as a view."""
    if not self._k.dtype.is_complex:
        raise RuntimeError("imag is not implemented for tensors with non-complex dtypes.")
    return _part(self, 1)


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
        layout.broadcast_shapes(re.shape, im.shape),
        np.result_type(re.dtype, np.complex64),
        _joint_strides(re, im),
    ),
    vjp={"real": "kept(real_of(g), real)", "imag": "kept(imag_of(g), imag)"},
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
    shape = np.broadcast_shapes(re.shape, im.shape)
    both = np.result_type(re.dtype, np.complex64)
    r = empty_strided(shape, both, _joint_strides(re, im), xp)
    r.real, r.imag = re, im
    return r


def _joint_strides(re: Any, im: Any) -> Any:
    """The strides of a pointwise result of two arrays."""
    shape = layout.broadcast_shapes(re.shape, im.shape)
    return layout.ti_output_strides(shape, [re.shape, im.shape], [elements(re), elements(im)])


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


@composite(
    "polar(Tensor abs, Tensor angle) -> Tensor", method=False, out=True, autocast="float32:cpu"
)
def polar(abs: Any, angle: Any) -> Any:
    """A complex tensor from absolute values and angles."""
    a, b = abs._k.dtype, angle._k.dtype
    if any(not d.is_floating_point or d.name == "bfloat16" for d in (a, b)):
        raise RuntimeError(
            "polar: Expected both inputs to be Half, Float or Double tensors but got"
            f" {a.scalar_name} and {b.scalar_name}"
        )
    if a is not b:
        raise RuntimeError(
            f"polar: Expected object of scalar type {a.scalar_name} but got scalar type"
            f" {b.scalar_name} for second argument"
        )
    if a.itemsize < 4:
        raise NotImplementedError(f"\"polar_cpu\" not implemented for '{a.scalar_name}'")
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


_view_as_real = view(
    "_view_as_real(Tensor(a) self) -> Tensor(a)",
    public=False,
    vjp={"self": "complex(select(g, -1, 0), select(g, -1, 1))"},
    grad_name="ViewAsRealBackward0",
    meta=_doubled,
)(lambda xp, a: a[..., None].view(a.real.dtype))


def _complex_over(xp: Any, a: Any) -> Any:
    dtype = np.result_type(a.dtype, np.complex64)
    return a.view(dtype)[..., 0] if a.size else xp.empty(a.shape[:-1], dtype)


_view_as_complex = view(
    "_view_as_complex(Tensor(a) self) -> Tensor(a)",
    public=False,
    vjp={"self": "stack([real_of(g), imag_of(g)], -1)"},
    grad_name="ViewAsComplexBackward0",
    meta=lambda shape, strides, offset: (
        shape[:-1],
        tuple(x // 2 for x in strides[:-1]),
        offset // 2,
    ),
)(_complex_over)


def _negatives_kept(self: Any, call: Any) -> Any:
    """A view of what lies in memory, with the negative bit of `self`."""
    if type(self) is not Pending:
        return call(self)
    b = bare(self)
    return based(pending(call(b), False, self.is_neg()), b, self)


@face("view_as_real", method=False)
def view_as_real(self: Any) -> Any:
    """A view with a last dimension of (real, imaginary)."""
    if not self._k.dtype.is_complex:
        raise RuntimeError("view_as_real is only supported for complex tensors")
    if self.is_conj():
        raise RuntimeError(
            "view_as_real doesn't work on unresolved conjugated tensors.  To resolve the conjugate"
            " tensor so you can view it as real, use self.resolve_conj(); however, be warned that"
            " the resulting tensor will NOT alias the original."
        )
    dtype = self._k.dtype.to_real()
    r = _negatives_kept(self, lambda t: _retyped(_view_as_real.call(t), dtype))
    return changed(self, r, "view_as_real")


@face("view_as_complex", method=False, autocast="float32:cpu")
def view_as_complex(self: Any) -> Any:
    """A complex view of a tensor whose last dimension is (real, imaginary)."""
    if self._a.ndim == 0 or self._a.shape[-1] != 2:
        raise RuntimeError("Tensor must have a last dimension of size 2")
    if self._k.dtype not in (dt.float32, dt.float64):
        raise RuntimeError(
            "view_as_complex is only supported for float and double tensors (there is no complex"
            f" type of two halves), but got a tensor of scalar type: {self._k.dtype.scalar_name};"
            " convert it with .float()"
        )
    shape, strides, offset = geometry(self)
    odd = any(x % 2 for x, n in zip(strides[:-1], shape, strict=False) if n > 1)
    if self._a.size and (strides[-1] != 1 or offset % 2 or odd):
        raise RuntimeError(
            "Tensor must have a last dimension with stride 1, all other strides divisible by 2 and"
            f" a storage_offset divisible by 2, but got {list(strides)} and {offset}; call"
            " contiguous() first"
        )
    dtype = self._k.dtype.to_complex()
    r = _negatives_kept(self, lambda t: _retyped(_view_as_complex.call(t), dtype))
    return changed(self, r, "view_as_complex")

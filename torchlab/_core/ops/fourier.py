"""`torchlab.fft`: the public transforms, which bring type, size and norm in order and call the
kernels of `spectral`.

Source of the semantics: https://docs.pytorch.org/docs/2.13/fft.html
"""

from __future__ import annotations

from typing import Any

from torchlab._core import dtype as dt
from torchlab._core import layout
from torchlab._core.dispatch.arguments import check_ints
from torchlab._core.dispatch.op import face
from torchlab._core.dispatch.registry import aten
from torchlab._core.ops._makers import maker
from torchlab._core.ops._making import How

_PLACE = ("fft",)
_SUPPORTED = (dt.float32, dt.float64, dt.complex64, dt.complex128)


# ---- the arguments ------------------------------------------------------------------------------


def _promoted(x: Any, *, to_complex: bool = False) -> Any:
    """Integers become the default type; 16-bit types have no transform on the host."""
    d = x._k.dtype
    if d.category < dt.FLOAT:
        d = dt.get_default_dtype()
    if d not in _SUPPORTED:
        raise RuntimeError(
            f"Unsupported dtype {d.scalar_name}: convert with .float() or .to(torch.complex64)"
        )
    return aten.to(x, d.to_complex() if to_complex else d)


def _normalization(norm: str | None, forward: bool) -> int:
    """0: none, 1: by the square root of the number of points, 2: by the number."""
    if norm is None or norm == "backward":
        return 0 if forward else 2
    if norm == "forward":
        return 2 if forward else 0
    if norm == "ortho":
        return 1
    raise RuntimeError(
        f'Invalid normalization mode: "{norm}" (choose "forward", "backward" or "ortho")'
    )


def _check_real(x: Any, name: str, kind: str = "real") -> None:
    if x._k.dtype.is_complex:
        raise RuntimeError(
            f"{name} expects a {kind} input tensor, but got {x._k.dtype.scalar_name}"
        )


def _fitted(x: Any, sizes: Any, dims: Any) -> Any:
    """Cut or filled up with zeros to `sizes` along `dims`; −1 keeps a size."""
    pad = [0] * (2 * x._a.ndim)
    for n, d in zip(sizes, dims, strict=True):
        if n == -1:
            continue
        if n < 1:
            raise RuntimeError(f"Invalid number of data points ({n}) specified")
        size = x._a.shape[d]
        if n < size:
            x = aten.slice(x, d, 0, n)
        elif n > size:
            pad[2 * (x._a.ndim - 1 - d) + 1] = n - size
    return aten.constant_pad_nd(x, tuple(pad), 0) if any(pad) else x


def _fit_one(x: Any, n: int | None, dim: int) -> tuple[Any, int]:
    dim = layout.wrap_dim(dim, x._a.ndim) if x._a.ndim else _no_dims(dim)
    if n is None:
        return x, dim
    if n < 1:
        raise RuntimeError(f"Invalid number of data points ({n}) specified")
    return _fitted(x, (n,), (dim,)), dim


def _no_dims(dim: int) -> int:
    raise IndexError(f"Dimension specified as {dim} but tensor has no dimensions")


def _many(values: Any) -> tuple[int, ...] | None:
    return (values,) if isinstance(values, int) else None if values is None else tuple(values)


def _plan(x: Any, s: Any, dim: Any) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """(sizes, dims) of a transform along several dimensions; a size of −1 is the tensor's own."""
    check_ints("fft", "s", s)
    check_ints("fft", "dim", dim)
    shape, n = x._a.shape, x._a.ndim
    s, dim = _many(s), _many(dim)
    if dim is not None:
        dims = tuple(layout.wrap_dim(d, n) if n else _no_dims(d) for d in dim)
        if len(set(dims)) != len(dims):
            raise RuntimeError(f"FFT dims must be unique, but got dim={list(dim)}")
    if s is None:
        dims = tuple(range(n)) if dim is None else dims
        return tuple(shape[d] for d in dims), dims
    if dim is not None and len(dim) != len(s):
        raise RuntimeError(
            "When given, dim and shape arguments must have the same length, but got"
            f" dim={list(dim)} and s={list(s)}"
        )
    if len(s) > n:
        raise RuntimeError(
            f"Got shape with {len(s)} values but input tensor only has {n} dimensions."
        )
    if dim is None:
        dims = tuple(range(n - len(s), n))
    for size in s:
        if size != -1 and size < 1:
            raise RuntimeError(f"Invalid number of data points ({size}) specified")
    return tuple(shape[d] if size == -1 else size for size, d in zip(s, dims, strict=True)), dims


def _half_plan(x: Any, s: Any, dim: Any, name: str) -> tuple[tuple[int, ...], tuple[int, ...], int]:
    """(sizes of the half spectrum, dims, points of the real signal's last dimension)."""
    sizes, dims = _plan(x, s, dim)
    if not dims:
        raise RuntimeError(f"{name} must transform at least one axis")
    given = _many(s)
    n = sizes[-1] if given is not None and given[-1] != -1 else 2 * (x._a.shape[dims[-1]] - 1)
    if n < 1:
        raise RuntimeError(f"Invalid number of data points ({n}) specified")
    return (*sizes[:-1], n // 2 + 1), dims, n


# ---- one dimension ------------------------------------------------------------------------------


def _one(x: Any, n: int | None, dim: int, norm: str | None, forward: bool) -> Any:
    x = _promoted(x)
    code = _normalization(norm, forward)
    x, dim = _fit_one(x, n, dim)
    if x._k.dtype.is_complex:
        return aten._fft_c2c(x, (dim,), code, forward)
    r = aten._fft_r2c(x, (dim,), code, False)
    return r if forward else aten.conj(r)


@face("fft", method=False, spaces=_PLACE, out=True, autocast="float32:cpu")
def fft(self: Any, n: int | None = None, dim: int = -1, norm: str | None = None) -> Any:
    """The transform of n points along one dimension, (…, n) → (…, n), complex."""
    return _one(self, n, dim, norm, True)


@face("ifft", method=False, spaces=_PLACE, out=True, autocast="float32:cpu")
def ifft(self: Any, n: int | None = None, dim: int = -1, norm: str | None = None) -> Any:
    """The inverse of `fft`."""
    return _one(self, n, dim, norm, False)


@face("rfft", method=False, spaces=_PLACE, out=True, autocast="float32:cpu")
def rfft(self: Any, n: int | None = None, dim: int = -1, norm: str | None = None) -> Any:
    """The transform of a real signal, (…, n) → (…, n // 2 + 1): the half that is not redundant."""
    _check_real(self, "rfft")
    x, dim = _fit_one(_promoted(self), n, dim)
    return aten._fft_r2c(x, (dim,), _normalization(norm, True), True)


@face("ihfft", method=False, spaces=_PLACE, out=True, autocast="float32:cpu")
def ihfft(self: Any, n: int | None = None, dim: int = -1, norm: str | None = None) -> Any:
    """The inverse of `hfft`: the half spectrum of a real signal, conjugate."""
    _check_real(self, "ihfft")
    x, dim = _fit_one(_promoted(self), n, dim)
    return aten.conj(aten._fft_r2c(x, (dim,), _normalization(norm, False), True))


def _to_real(x: Any, n: int | None, dim: int, norm: str | None, forward: bool) -> Any:
    x = _promoted(x, to_complex=True)
    dim = layout.wrap_dim(dim, x._a.ndim) if x._a.ndim else _no_dims(dim)
    n = 2 * (x._a.shape[dim] - 1) if n is None else n
    if n < 1:
        raise RuntimeError(f"Invalid number of data points ({n}) specified")
    x = _fitted(x, (n // 2 + 1,), (dim,))
    x = aten.conj(x) if forward else x
    return aten._fft_c2r(x, (dim,), _normalization(norm, forward), n)


@face("irfft", method=False, spaces=_PLACE, out=True, autocast="float32:cpu")
def irfft(self: Any, n: int | None = None, dim: int = -1, norm: str | None = None) -> Any:
    """The real signal of n points (default: an even number) whose `rfft` this is."""
    return _to_real(self, n, dim, norm, False)


@face("hfft", method=False, spaces=_PLACE, out=True, autocast="float32:cpu")
def hfft(self: Any, n: int | None = None, dim: int = -1, norm: str | None = None) -> Any:
    """The real spectrum of n points of a signal of which one half is given, the other being its
    conjugate mirror image."""
    return _to_real(self, n, dim, norm, True)


# ---- several dimensions -------------------------------------------------------------------------


def _several(x: Any, s: Any, dim: Any, norm: str | None, forward: bool) -> Any:
    sizes, dims = _plan(x, s, dim)
    code = _normalization(norm, forward)
    return aten._fft_c2c(_fitted(_promoted(x, to_complex=True), sizes, dims), dims, code, forward)


@face("fftn", method=False, spaces=_PLACE, out=True, autocast="float32:cpu")
def fftn(self: Any, s: Any = None, dim: Any = None, norm: str | None = None) -> Any:
    """The transform along `dim` (default: all, or the last len(s)) with `s` points."""
    return _several(self, s, dim, norm, True)


@face("ifftn", method=False, spaces=_PLACE, out=True, autocast="float32:cpu")
def ifftn(self: Any, s: Any = None, dim: Any = None, norm: str | None = None) -> Any:
    """The inverse of `fftn`."""
    return _several(self, s, dim, norm, False)


@face("rfftn", method=False, spaces=_PLACE, out=True, autocast="float32:cpu")
def rfftn(self: Any, s: Any = None, dim: Any = None, norm: str | None = None) -> Any:
    """`fftn` of a real signal: the half of the last of `dim` that is not redundant."""
    _check_real(self, "rfftn", "real-valued")
    sizes, dims = _plan(self, s, dim)
    if not dims:
        raise RuntimeError("rfftn must transform at least one axis")
    return aten._fft_r2c(
        _fitted(_promoted(self), sizes, dims), dims, _normalization(norm, True), True
    )


@face("irfftn", method=False, spaces=_PLACE, out=True, autocast="float32:cpu")
def irfftn(self: Any, s: Any = None, dim: Any = None, norm: str | None = None) -> Any:
    """The inverse of `rfftn`: real."""
    sizes, dims, n = _half_plan(self, s, dim, "irfftn")
    x = _fitted(_promoted(self, to_complex=True), sizes, dims)
    return aten._fft_c2r(x, dims, _normalization(norm, False), n)


@face("hfftn", method=False, spaces=_PLACE, out=True)
def hfftn(self: Any, s: Any = None, dim: Any = None, norm: str | None = None) -> Any:
    """The real spectrum of a signal that equals its conjugate mirror image, of whose last dimension
    one half is given."""
    sizes, dims, n = _half_plan(self, s, dim, "hfftn")
    code = _normalization(norm, True)
    x = _fitted(_promoted(self, to_complex=True), sizes, dims)
    if len(dims) > 1:
        x = aten._fft_c2c(x, dims[:-1], code, True)
    return aten._fft_c2r(aten.conj(x), dims[-1:], code, n)


@face("ihfftn", method=False, spaces=_PLACE, out=True)
def ihfftn(self: Any, s: Any = None, dim: Any = None, norm: str | None = None) -> Any:
    """The inverse of `hfftn`, of a real spectrum."""
    sizes, dims = _plan(self, s, dim)
    if not dims:
        raise RuntimeError("ihfftn must transform at least one axis")
    if self._k.dtype.is_complex:
        raise RuntimeError(
            f"Only supports floating-point dtypes, but found: {self._k.dtype.scalar_name}"
        )
    code = _normalization(norm, False)
    r = aten._fft_r2c(_fitted(_promoted(self), sizes, dims), dims[-1:], code, True)
    r = aten.conj_physical(r)
    return r if len(dims) == 1 else aten._fft_c2c(r, dims[:-1], code, False)


def _two(name: str, of: Any) -> None:
    body = of.body

    def transform(self: Any, s: Any = None, dim: Any = (-2, -1), norm: str | None = None) -> Any:
        return body(self, s, dim, norm)

    transform.__doc__ = f"`{of.name}` along two dimensions, by default the last."
    face(name, method=False, spaces=_PLACE, out=True, autocast=of.autocast)(transform)


for _name, _of in (
    ("fft2", fftn),
    ("ifft2", ifftn),
    ("rfft2", rfftn),
    ("irfft2", irfftn),
    ("hfft2", hfftn),
    ("ihfft2", ihfftn),
):
    _two(_name, _of)


# ---- frequencies and their order ----------------------------------------------------------------


def _frequencies(how: How, n: int, count: int, d: float) -> Any:
    """0, 1 … in units of 1 / (n d); past the middle of n the negative ones."""
    if how.kind.category < dt.FLOAT:
        raise RuntimeError(f"{how.name} requires a floating point or complex dtype, not {how.kind}")
    if count < 0:
        raise RuntimeError(f"Trying to create tensor with negative dimension {count}: [{count}]")
    if how.layout is not None:
        return how.unlike((0,), "arange.start_out")
    at = aten.arange(count, dtype=how.kind, device=how.device)
    if count == n:
        at = aten.where(aten.arange(count, device=how.device) < (n + 1) // 2, at, at - n)
    step = n * d
    return how.done(at * (1.0 / step) if step else at * float("inf"))


@maker("fftfreq", out=True, spaces=_PLACE)
def fftfreq(how: How, n: int, d: float = 1.0) -> Any:
    """The n frequencies of `fft`, for samples `d` apart: 0 … up, then the negative ones."""
    return _frequencies(how, n, n, d)


@maker("rfftfreq", out=True, spaces=_PLACE)
def rfftfreq(how: How, n: int, d: float = 1.0) -> Any:
    """The n // 2 + 1 frequencies of `rfft`, for samples `d` apart."""
    return _frequencies(how, n, int(n / 2) + 1, d)


def _shifted(x: Any, dim: Any, by: Any) -> Any:
    dims = tuple(range(x._a.ndim)) if dim is None else _many(dim) or ()
    dims = tuple(layout.wrap_dim(d, x._a.ndim) for d in dims)
    return aten.roll(x, tuple(by(x._a.shape[d]) for d in dims), dims)


@face("fftshift", method=False, spaces=_PLACE)
def fftshift(self: Any, dim: Any = None) -> Any:
    """The frequency 0 moved to the middle of `dim` (default: all dimensions)."""
    return _shifted(self, dim, lambda n: n // 2)


@face("ifftshift", method=False, spaces=_PLACE)
def ifftshift(self: Any, dim: Any = None) -> Any:
    """The inverse of `fftshift`."""
    return _shifted(self, dim, lambda n: (n + 1) // 2)

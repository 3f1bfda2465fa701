"""Discrete Fourier transforms of one dimension.

Source of the semantics: https://docs.pytorch.org/docs/2.13/fft.html
"""

from __future__ import annotations

from typing import Any

import numpy as np

from torchlab._core.backends.meta import MetaArray
from torchlab._core.dispatch.op import face, op
from torchlab._core.dispatch.registry import aten, vjp_helper


def _complex(d: np.dtype) -> np.dtype:
    return np.dtype(np.complex128 if d.itemsize >= (16 if d.kind == "c" else 8) else np.complex64)


def _norms(norm: str | None, forward: bool) -> str:
    if norm not in (None, "backward", "forward", "ortho"):
        raise RuntimeError(f'Invalid normalization mode: "{norm}"')
    return norm or "backward"


_OPPOSITE = {"backward": "forward", "forward": "backward", "ortho": "ortho"}


def _sized(shape: Any, dim: int, n: int) -> Any:
    s = list(shape)
    s[dim] = n
    return tuple(s)


@op(
    "fft_c2c(Tensor self, int dim, str norm, bool forward) -> Tensor",
    public=False,
    half=False,
    vjp={"self": "fft_c2c(g, dim, opposite_norm(norm), not forward)"},
    grad_name="FftC2CBackward0",
    meta=lambda a, dim, norm, forward: MetaArray(a.shape, a.dtype),
)
def fft_c2c(xp: Any, a: Any, dim: int, norm: str, forward: bool) -> Any:
    """Complex to complex along one dimension."""
    if a.shape[dim] == 0:
        raise RuntimeError(f"Invalid number of data points ({a.shape[dim]}) specified")
    f = xp.fft.fft if forward else xp.fft.ifft
    r = f(a, axis=dim, norm=norm).astype(_complex(a.dtype), copy=False)
    return xp.ascontiguousarray(r)


@vjp_helper
def opposite_norm(norm: str) -> str:
    return _OPPOSITE[norm]


def _fitted(x: Any, n: int | None, dim: int) -> Any:
    """Cut or pad with zeros to n points."""
    size = x._a.shape[dim]
    if n is None or n == size:
        return x
    if n < 1:
        raise RuntimeError(f"Invalid number of data points ({n}) specified")
    if n < size:
        return aten.narrow(x, dim, 0, n)
    pad = aten.new_zeros(x, _sized(x._a.shape, dim % x._a.ndim, n - size))
    return aten.cat([x, pad], dim)


def _as_complex(x: Any) -> Any:
    d = x._k.dtype
    if d.is_complex:
        return x
    if not d.is_floating_point:
        x = aten.to(x, aten.empty(0).dtype)
    return aten.to(x, x._k.dtype.to_complex())


@face("fft", method=False, spaces=("fft",))
def fft(
    self: Any, n: int | None = None, dim: int = -1, norm: str | None = None, *, out: Any = None
) -> Any:
    """The transform of a complex (or real) signal of n points."""
    return fft_c2c.function(_fitted(_as_complex(self), n, dim), dim, _norms(norm, True), True)


@face("ifft", method=False, spaces=("fft",))
def ifft(
    self: Any, n: int | None = None, dim: int = -1, norm: str | None = None, *, out: Any = None
) -> Any:
    """The inverse of `fft`."""
    return fft_c2c.function(_fitted(_as_complex(self), n, dim), dim, _norms(norm, False), False)


@face("rfft", method=False, spaces=("fft",))
def rfft(
    self: Any, n: int | None = None, dim: int = -1, norm: str | None = None, *, out: Any = None
) -> Any:
    """The transform of a real signal: the half that is not redundant."""
    if self._k.dtype.is_complex:
        raise RuntimeError("rfft expects a real input tensor, but got " + self._k.dtype.scalar_name)
    full = fft.body(self, n, dim, norm)
    return aten.narrow(full, dim, 0, full._a.shape[dim] // 2 + 1)


@face("irfft", method=False, spaces=("fft",))
def irfft(
    self: Any, n: int | None = None, dim: int = -1, norm: str | None = None, *, out: Any = None
) -> Any:
    """The real signal of n points whose `rfft` this is."""
    x = _as_complex(self)
    n = 2 * (x._a.shape[dim] - 1) if n is None else n
    if n < 1:
        raise RuntimeError(f"Invalid number of data points ({n}) specified")
    half = _fitted(x, n // 2 + 1, dim)
    ends = [
        aten.complex(
            aten.real(aten.narrow(half, dim, 0, 1)),
            aten.zeros_like(aten.real(aten.narrow(half, dim, 0, 1))),
        )
    ]
    middle = aten.narrow(half, dim, 1, (n - 1) // 2) if (n - 1) // 2 else None
    parts = [*ends] + ([middle] if middle is not None else [])
    if n % 2 == 0:
        last = aten.real(aten.narrow(half, dim, n // 2, 1))
        parts.append(aten.complex(last, aten.zeros_like(last)))
    if middle is not None:
        parts.append(aten.conj(aten.flip(middle, (dim,))))
    return aten.real(fft_c2c.function(aten.cat(parts, dim), dim, _norms(norm, False), False))

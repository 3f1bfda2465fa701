"""Integrals by the trapezoidal rule, and derivatives by finite differences.

Source of the semantics: https://docs.pytorch.org/docs/2.13/generated/torch.gradient.html
"""

from __future__ import annotations

from typing import Any

from torchlab._core import dtype as dt
from torchlab._core import layout
from torchlab._core.dispatch.op import face
from torchlab._core.dispatch.registry import aten


def _neighbours(t: Any, dim: int) -> tuple[Any, Any]:
    n = t._a.shape[dim]
    return aten.narrow(t, dim, 0, n - 1), aten.narrow(t, dim, 1, n - 1)


def _check(name: str, y: Any, x: Any, dx: Any) -> None:
    if y._k.dtype is dt.bool_:
        raise RuntimeError(f"{name}: received a bool input for `y`, but bool is not supported")
    if x is not None:
        if dx is not None:
            raise TypeError(f"{name}() takes either x or dx, not both")
        if x._k.dtype is dt.bool_:
            raise RuntimeError(f"{name}: received a bool input for `x`, but bool is not supported")
    elif dx is not None and not isinstance(dx, (int, float, complex)):
        raise TypeError(
            f"{name}() received an invalid combination of arguments - got (Tensor, "
            f"dx={type(dx).__name__}), but expected one of: (Tensor y, Tensor x, *, int dim = -1), "
            "(Tensor y, *, Number dx = 1, int dim = -1)"
        )
    elif isinstance(dx, complex):
        raise RuntimeError(f"{name}: Currently, we only support dx as a real number.")


def _widths(name: str, y: Any, x: Any, dim: int) -> Any:
    """The distances of the sample points x, in y's dimensions."""
    n = y._a.ndim
    if x._a.ndim == 1:
        if x._a.shape[0] != y._a.shape[dim]:
            raise RuntimeError(
                f"{name}: There must be one `x` value for each sample point; got "
                f"{x._a.shape[0]} and {y._a.shape[dim]}"
            )
        x = aten.view(x, tuple(-1 if d == dim else 1 for d in range(n)))
    elif x._a.ndim < n:
        x = aten.reshape(x, (1,) * (n - x._a.ndim) + x._a.shape)
    left, right = _neighbours(x, dim - n)
    return right - left


@face("trapezoid", method=False)
def trapezoid(y: Any, x: Any = None, *, dx: Any = None, dim: int = -1) -> Any:
    """∫ y along `dim` by the trapezoidal rule: over the points x, or in steps of dx (1)."""
    _check("trapezoid", y, x, dx)
    if not y._a.ndim:
        raise IndexError(f"Dimension specified as {dim} but tensor has no dimensions")
    d = layout.wrap_dim(dim, y._a.ndim)
    if not y._a.shape[d]:
        shape = tuple(n for i, n in enumerate(y._a.shape) if i != d)
        return aten.zeros(shape, dtype=y.dtype, device=y.device)
    left, right = _neighbours(y, d)
    if x is None:
        return aten.sum(left + right, d) * ((1 if dx is None else dx) / 2)
    return aten.sum((left + right) * _widths("trapezoid", y, x, d), d) / 2.0


@face("trapz", method=False)
def trapz(y: Any, x: Any = None, *, dx: Any = None, dim: int = -1) -> Any:
    """The older name of `trapezoid`."""
    return trapezoid.body(y, x, dx=dx, dim=dim)


@face("cumulative_trapezoid", method=False)
def cumulative_trapezoid(y: Any, x: Any = None, *, dx: Any = None, dim: int = -1) -> Any:
    """The integrals of y along `dim` up to each sample point after the first."""
    _check("cumulative_trapezoid", y, x, dx)
    if not y._a.ndim:
        raise IndexError(f"Dimension specified as {dim} but tensor has no dimensions")
    d = layout.wrap_dim(dim, y._a.ndim)
    left, right = _neighbours(y, d)
    if x is None:
        return aten.cumsum((1 if dx is None else dx) / 2 * (left + right), d)
    widths = _widths("cumulative_trapezoid", y, x, d)
    return aten.cumsum((left + right) * widths, d) / 2.0


# ---- finite differences -------------------------------------------------------------------------


def _spacings(self: Any, spacing: Any, dim: Any) -> tuple[list[int], list[Any]]:
    """(the dimensions, a number or coordinates for each)."""
    n = self._a.ndim
    given = list(range(n)) if dim is None else [dim] if isinstance(dim, int) else list(dim)
    dims = [layout.wrap_dim(d, n) for d in given]
    for d in dims:
        if dims.count(d) > 1:
            raise RuntimeError(f"dim {d} appears multiple times in the list of dims")
    if isinstance(spacing, (list, tuple)):
        if len(spacing) != len(dims):
            raise RuntimeError(
                "torch.gradient expected spacing to be unspecified, a scalar, or a list of length "
                + (
                    f"equal to 'self.dim() = {n}', since dim argument was not given"
                    if dim is None
                    else f"{len(dims)}, that of dim"
                )
                + f", but got a list of length {len(spacing)}"
            )
        return dims, list(spacing)
    return dims, [1 if spacing is None else spacing] * len(dims)


def _check_coordinates(c: Any) -> None:
    if c._a.ndim != 1:
        raise RuntimeError(
            "torch.gradient expected each element of spacing to have one dimension, but got an "
            f"element with {c._a.ndim} dimensions!"
        )


@face("gradient", method=False)
def gradient(self: Any, *, spacing: Any = 1, dim: Any = None, edge_order: int = 1) -> Any:
    """The partial derivatives of samples by second-order differences inside and differences of
    order `edge_order` at the edges, one tensor for each dimension."""
    if edge_order not in (1, 2):
        raise RuntimeError("torch.gradient only supports edge_order=1 and edge_order=2.")
    if self._k.dtype is dt.uint8:
        raise RuntimeError("torch.gradient does not support uint8 input.")
    dims, steps = _spacings(self, spacing, dim)
    for d, h in zip(dims, steps, strict=True):
        if self._a.shape[d] < edge_order + 1:
            raise RuntimeError(
                "torch.gradient expected each dimension size to be at least edge_order+1; got "
                f"{self._a.shape[d]} in dimension {d} with edge_order={edge_order}"
            )
        if hasattr(h, "_a"):
            _check_coordinates(h)
    return tuple(
        (_uneven if hasattr(h, "_a") else _even)(self, h, d, edge_order)
        for d, h in zip(dims, steps, strict=True)
    )


def _at(f: Any, dim: int, i: int) -> Any:
    return aten.narrow(f, dim, i if i >= 0 else f._a.shape[dim] + i, 1)


def _even(f: Any, h: Any, dim: int, edge_order: int) -> Any:
    n = f._a.shape[dim]
    inside = (aten.narrow(f, dim, 2, n - 2) - aten.narrow(f, dim, 0, n - 2)) / (2 * h)
    if edge_order == 1:
        first = (_at(f, dim, 1) - _at(f, dim, 0)) / h
        last = (_at(f, dim, -1) - _at(f, dim, -2)) / h
    else:
        first = (-3 * _at(f, dim, 0) + 4 * _at(f, dim, 1) - _at(f, dim, 2)) / (2 * h)
        last = (3 * _at(f, dim, -1) - 4 * _at(f, dim, -2) + _at(f, dim, -3)) / (2 * h)
    return aten.cat([first, inside, last], dim)


def _uneven(f: Any, x: Any, dim: int, edge_order: int) -> Any:
    """Through three neighbouring points runs one parabola: its slope at the middle, at the ends."""
    if x._a.shape[0] != f._a.shape[dim]:
        raise RuntimeError(
            f"torch.gradient expected {f._a.shape[dim]} coordinates for dimension {dim}, but got "
            f"{x._a.shape[0]}"
        )
    n = f._a.shape[dim]
    h = aten.view(aten.diff(x), tuple(-1 if d == dim else 1 for d in range(f._a.ndim)))
    a, b = aten.narrow(h, dim, 0, n - 2), aten.narrow(h, dim, 1, n - 2)
    left, middle, right = (aten.narrow(f, dim, i, n - 2) for i in range(3))
    inside = -b / (a * (a + b)) * left + (b - a) / (a * b) * middle + a / (b * (a + b)) * right
    if edge_order == 1:
        first = (_at(f, dim, 1) - _at(f, dim, 0)) / _at(h, dim, 0)
        last = (_at(f, dim, -1) - _at(f, dim, -2)) / _at(h, dim, -1)
    else:
        a, b = _at(h, dim, 0), _at(h, dim, 1)
        f0, f1, f2 = (_at(f, dim, i) for i in (0, 1, 2))
        first = -(2 * a + b) / (a * (a + b)) * f0 + (a + b) / (a * b) * f1 - a / (b * (a + b)) * f2
        a, b = _at(h, dim, -2), _at(h, dim, -1)
        f0, f1, f2 = (_at(f, dim, i) for i in (-3, -2, -1))
        last = b / (a * (a + b)) * f0 - (a + b) / (a * b) * f1 + (2 * b + a) / (b * (a + b)) * f2
    return aten.cat([first, inside, last], dim)

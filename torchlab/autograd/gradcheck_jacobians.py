"""Jacobians for gradcheck: by finite differences, by the tape, by forward mode.

All are real arrays of four dimensions, (n, p, m, q): the derivative of part q of element m of an
output with respect to part p of element n of an input. A real tensor has one part, a complex one
two. Of a sparse input all elements count; with `masked` those that it does not store are constants.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from torchlab._core.dispatch import batches
from torchlab._core.dispatch.registry import aten
from torchlab._core.tensor import Tensor
from torchlab.autograd import api, forward_ad

_SPARSE_ROWS = ("torch.sparse_csr", "torch.sparse_bsr")


def is_strided(t: Tensor) -> bool:
    """Whether a tensor has an array of its own."""
    return str(t.layout).endswith("strided")


def parts_of(t: Tensor) -> int:
    """How many real numbers an element is."""
    return 2 if t.dtype.is_complex else 1


def dense_array(t: Tensor) -> np.ndarray:
    """The elements, those that a sparse tensor does not store included, in a row."""
    if not is_strided(t):
        t = aten.to_dense(aten.detach(t))
    return np.array(aten.detach(t)._a).reshape(-1)


def _real(values: np.ndarray, parts: int) -> np.ndarray:
    """Complex numbers as pairs of real ones in a last dimension."""
    if parts == 1:
        return np.asarray(values.real)[..., None]
    return np.stack([values.real, values.imag], -1)


# ---- inputs that change a little ----------------------------------------------------------------


class Input:
    """An input that can be moved along a direction and back. Writes go to its array: the tape must
    not take them for writes."""

    def __init__(self, x: Tensor, masked: bool) -> None:
        self.x, self.masked = x, masked
        self.parts = parts_of(x)
        self.size = x.numel()
        self.dtype = x._k.dtype.np if is_strided(x) else aten.to_dense(aten.detach(x))._a.dtype
        self.stored = None if is_strided(x) else self._stored_places()

    def _stored_places(self) -> np.ndarray:
        ones = self._with_values(aten.ones_like(_values(self.x)))
        return np.asarray(aten.to_dense(ones)._a).reshape(-1) != 0

    def _with_values(self, values: Any) -> Any:
        """A sparse tensor with the same places and other values."""
        x = self.x
        kind = {"size": tuple(x.shape), "dtype": values.dtype}
        if str(x.layout).endswith("sparse_coo"):
            c = aten.coalesce(aten.detach(x))
            return aten.sparse_coo_tensor(c.indices(), values, is_coalesced=True, **kind)
        x = aten.detach(x)
        by_rows = str(x.layout).endswith(("sparse_csr", "sparse_bsr"))
        outer, inner = (
            (x.crow_indices(), x.col_indices()) if by_rows else (x.ccol_indices(), x.row_indices())
        )
        return aten.sparse_compressed_tensor(outer, inner, values, layout=x.layout, **kind)

    def constant(self, n: int) -> bool:
        """Whether an element cannot be moved."""
        return self.masked and self.stored is not None and not self.stored[n]

    def moved(self, inputs: Sequence[Any], i: int, step: np.ndarray) -> Iterator[list[Any]]:
        """The inputs with this one, the i-th, a step further; then as they were."""
        if self.stored is None:
            array = self.x._a
            keep = array.copy()
            array[...] = keep + step.reshape(array.shape)
            try:
                yield list(inputs)
            finally:
                array[...] = keep
            return
        changed = list(inputs)
        changed[i] = self._sparse_moved(step)
        yield changed

    def _sparse_moved(self, step: np.ndarray) -> Any:
        x = aten.detach(self.x)
        dense = aten.to_dense(x)
        further = aten.add(dense, aten.tensor(step.reshape(dense._a.shape).astype(self.dtype)))
        layout = str(x.layout).rpartition(".")[2]
        if not self.masked:  # all elements are stored
            return _as_layout(further, x, layout).requires_grad_(self.x.requires_grad)
        return self._with_values(_values_at(further, x, layout)).requires_grad_(
            self.x.requires_grad
        )

    def directions(self, part: int | None = None) -> Iterator[tuple[int, int, np.ndarray]]:
        """(element, part, unit vector) of all elements that can be moved."""
        for n in range(self.size):
            if self.constant(n):
                continue
            for p in range(self.parts):
                if part is None or p == part:
                    u = np.zeros(self.size, self.dtype)
                    u[n] = 1j if p else 1
                    yield n, p, u


def _values(x: Any) -> Any:
    x = aten.detach(x)
    return aten.coalesce(x).values() if str(x.layout).endswith("sparse_coo") else x.values()


def _as_layout(dense: Any, like: Any, layout: str) -> Any:
    if layout == "sparse_coo":
        return dense.to_sparse(like.sparse_dim())
    if layout in ("sparse_bsr", "sparse_bsc"):
        block = tuple(like.values().shape[-2:])
        return dense.to_sparse(layout=like.layout, blocksize=block)
    return dense.to_sparse(layout=like.layout, dense_dim=like.dense_dim() or None)


def _values_at(dense: Any, like: Any, layout: str) -> Any:
    """The elements of a dense tensor at the places that a sparse one stores."""
    return _values(aten.detach(dense).sparse_mask(like))


# ---- finite differences -------------------------------------------------------------------------


def _difference(
    func: Callable[..., list[Tensor]], inputs: Sequence[Any], i: int, source: Input,
    u: np.ndarray, eps: float,
) -> list[np.ndarray]:  # fmt: skip
    """Of all outputs how much they change along `u`, per unit."""
    found = []
    for sign in (eps, -eps):
        for changed in source.moved(inputs, i, sign * u):
            found.append([dense_array(o).copy() for o in func(*changed)])
    return [(a - b) / (2 * eps) for a, b in zip(*found, strict=True)]


def numerical(
    func: Callable[..., list[Tensor]], inputs: Sequence[Any], i: int, outputs: Sequence[Tensor],
    eps: float, masked: bool,
) -> list[np.ndarray]:  # fmt: skip
    """The Jacobians of all outputs with respect to input i."""
    source = Input(inputs[i], masked)
    found = [np.zeros((source.size, source.parts, o.numel(), parts_of(o))) for o in outputs]
    for n, p, u in source.directions():
        for j, d in zip(found, _difference(func, inputs, i, source, u, eps), strict=True):
            j[n, p] = _real(d, j.shape[-1])
    return found


# ---- by the tape --------------------------------------------------------------------------------


def _seed(o: Tensor, values: np.ndarray) -> Tensor:
    shape = tuple(o.shape)
    made = aten.tensor(values.reshape(shape).astype(np.dtype(o.dtype.np)))
    return made if is_strided(o) else made.to_sparse(layout=o.layout)


def backward(output: Tensor, xs: Sequence[Tensor], v: np.ndarray) -> list[Any]:
    """The gradients of `xs` from the gradient `v` of an output."""
    return list(api.grad(output, xs, _seed(output, v), retain_graph=True, allow_unused=True))


def analytical(output: Tensor, x: Tensor) -> np.ndarray:
    """The Jacobian of an output with respect to an input, a backward for each element."""
    n, p, m, q = x.numel(), parts_of(x), output.numel(), parts_of(output)
    found = np.zeros((n, p, m, q))
    if not output.requires_grad:
        return found
    for k in range(m):
        for part in range(q):
            v = np.zeros(m, complex if q == 2 else float)
            v[k] = 1j if part else 1
            (g,) = backward(output, [x], v)
            if g is not None:
                found[:, :, k, part] = _real(dense_array(g), p)
    return found


# ---- by forward mode ----------------------------------------------------------------------------


def _tangent_like(x: Tensor, u: np.ndarray) -> Tensor:
    t = aten.tensor(u.reshape(tuple(x.shape)))
    return t if is_strided(x) else t.to_sparse(layout=x.layout)


def push(
    func: Callable[..., list[Tensor]], inputs: Sequence[Any], i: int, tangent: Any
) -> list[Any]:
    """(value, tangent) of all outputs where input i has a tangent."""
    with forward_ad.dual_level():
        args = [aten.detach(y) if isinstance(y, Tensor) else y for y in inputs]
        args[i] = forward_ad.make_dual(args[i], tangent)
        return [forward_ad.unpack_dual(o) for o in func(*args)]


def forward(
    func: Callable[..., list[Tensor]], inputs: Sequence[Any], i: int, outputs: Sequence[Tensor],
    masked: bool,
) -> list[np.ndarray]:  # fmt: skip
    """The Jacobians of all outputs with respect to input i, a column at a time."""
    source = Input(inputs[i], masked)
    found = [np.zeros((source.size, source.parts, o.numel(), parts_of(o))) for o in outputs]
    for n, p, u in source.directions():
        duals = push(func, inputs, i, _tangent_like(inputs[i], u))
        for j, (_, t) in zip(found, duals, strict=True):
            if t is not None:
                j[n, p] = _real(dense_array(t), j.shape[-1])
    return found


def forward_batched(
    func: Callable[..., list[Tensor]], inputs: Sequence[Any], i: int, rows: int
) -> tuple[list[Any], list[list[Any]]]:
    """Tangents of all outputs for a few random tangents of input i: under vmap, and one by one."""
    x = inputs[i]
    rng = np.random.default_rng(0)
    made = rng.standard_normal((rows, *x.shape))
    if x.dtype.is_complex:
        made = made + 1j * rng.standard_normal((rows, *x.shape))
    tangents = aten.tensor(made.astype(np.dtype(x.dtype.np)))
    one_by_one = [[t for _, t in push(func, inputs, i, tangents[r])] for r in range(rows)]
    level = batches.enter(rows, "error")
    try:
        duals = push(func, inputs, i, batches.batched(tangents, 0, level))
        together = [
            None if t is None else aten.detach(batches.whole(t, rows, level)) for _, t in duals
        ]
    finally:
        batches.leave()
    return together, one_by_one


# ---- one number for a Jacobian ------------------------------------------------------------------


class Directions:
    """Random directions, the same in each run: one for an input, one for each output."""

    def __init__(self) -> None:
        self.rng = np.random.default_rng(0)

    def of(self, size: int, parts: int) -> np.ndarray:
        """A vector of length 1, (size, parts)."""
        u = self.rng.random((size, parts))
        return u / (np.linalg.norm(u) or 1.0)


def as_numbers(u: np.ndarray, dtype: Any) -> np.ndarray:
    """(size, parts) as real or complex numbers."""
    return (u[:, 0] + 1j * u[:, 1] if u.shape[1] == 2 else u[:, 0]).astype(dtype)


def fast_numerical(
    func: Callable[..., list[Tensor]], inputs: Sequence[Any], i: int, source: Input,
    u: np.ndarray, eps: float,
) -> list[np.ndarray]:  # fmt: skip
    """Of all outputs the derivative along `u`, (elements, parts)."""
    found = _difference(func, inputs, i, source, as_numbers(u, source.dtype), eps)
    return [_real(d, 2 if np.iscomplexobj(d) else 1) for d in found]


__all__ = [
    "Directions", "Input", "analytical", "as_numbers", "backward", "dense_array", "fast_numerical",
    "forward", "forward_batched", "is_strided", "numerical", "parts_of", "push",
]  # fmt: skip

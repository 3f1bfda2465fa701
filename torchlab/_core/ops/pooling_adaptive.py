"""Adaptive pooling: the number of windows is given, not their size.

Source: https://docs.pytorch.org/docs/2.13/nn.functional.html#pooling-functions
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from torchlab._core import layout
from torchlab._core.backends.meta import MetaArray
from torchlab._core.dispatch.arguments import check_ints
from torchlab._core.dispatch.op import face, op
from torchlab._core.dispatch.registry import aten
from torchlab._core.ops._kinds import FLOATS, need
from torchlab._core.ops.kernels import as_format_of


def _bins(n: int, m: int) -> list[tuple[int, int]]:
    """The m windows [⌊i·n/m⌋, ⌈(i+1)·n/m⌉) over n elements."""
    return [(i * n // m, -(-(i + 1) * n // m)) for i in range(m)]


def _mean_matrix(n: int, m: int, dtype: Any) -> Any:
    r = np.zeros((m, n), dtype)
    for i, (a, b) in enumerate(_bins(n, m)):
        r[i, a:b] = 1 / (b - a)
    return r


def _along(xp: Any, x: Any, axis: int, matrix: Any) -> Any:
    """`matrix` (new, old) applied along an axis."""
    return xp.moveaxis(xp.tensordot(x, xp.asarray(matrix), axes=(axis, 1)), -1, axis)


def _adaptive_check(name: str, x: Any, k: int, size: Any) -> None:
    if x.ndim not in (k + 1, k + 2):
        raise RuntimeError(f"{name}: Expected {k + 1}D or {k + 2}D tensor, but got {list(x.shape)}")
    if any(n == 0 for n in x.shape[-k:]):
        raise RuntimeError(
            f"{name}: Expected input to have non-zero size for non-batch dimensions, but input "
            "has sizes "
            f"{list(x.shape)}"
        )
    if any(s < 0 for s in size):
        raise RuntimeError(
            f"{name}: elements of output_size must be greater than or equal to 0 but received "
            f"{list(size)}"
        )


def _declare_adaptive_avg(n: int) -> None:
    name = f"adaptive_avg_pool{n}d"

    def meta(x: Any, size: Any) -> Any:
        _adaptive_check(name, x, n, size)
        return MetaArray((*x.shape[:-n], *size), x.dtype)

    def forward(xp: Any, x: Any, size: Any) -> Any:
        """Means over a grid of `size` windows."""
        _adaptive_check(name, x, n, size)
        r = x
        for axis in range(-n, 0):
            r = _along(xp, r, r.ndim + axis, _mean_matrix(r.shape[axis], size[axis], r.dtype))
        return as_format_of(xp, xp.ascontiguousarray(r), x)

    def backward(xp: Any, g: Any, size: Any) -> Any:
        """The gradient of the input, whose spatial dimensions are `size`."""
        for axis in range(-n, 0):
            g = _along(xp, g, g.ndim + axis, _mean_matrix(size[axis], g.shape[axis], g.dtype).T)
        return xp.ascontiguousarray(g)

    op(
        f"_{name}(Tensor self, int[] output_size) -> Tensor",
        public=False,
        meta=meta,
        grad_name=f"AdaptiveAvgPool{n}DBackward0",
        vjp={"self": f"_{name}_backward(g, self.shape[-{n}:])"},
    )(forward)
    op(
        f"_{name}_backward(Tensor grad_output, int[] size) -> Tensor",
        public=False,
        meta=lambda g, size: MetaArray((*g.shape[:-n], *size), g.dtype),
        vjp={"grad_output": f"_{name}(g, grad_output.shape[-{n}:])"},
    )(backward)


def _declare_adaptive_max(n: int) -> None:
    name = f"adaptive_max_pool{n}d"

    def meta(x: Any, size: Any) -> Any:
        _adaptive_check(name, x, n, size)
        shape = (*x.shape[:-n], *size)
        return MetaArray(shape, x.dtype), MetaArray(shape, np.dtype(np.int64))

    def forward(xp: Any, x: Any, size: Any) -> Any:
        """Maxima over a grid of `size` windows, and where they are in the flattened spatial
        dimensions."""
        _adaptive_check(name, x, n, size)
        spatial = x.shape[-n:]
        lead = x.shape[:-n]
        values = xp.empty((*lead, *size), x.dtype)
        indices = xp.empty((*lead, *size), np.int64)
        flat = xp.arange(layout.numel(spatial)).reshape(spatial)
        for at in itertools.product(*(range(s) for s in size)):
            box = tuple(slice(*_bins(m, s)[i]) for i, m, s in zip(at, spatial, size, strict=True))
            window = x[(..., *box)].reshape(*lead, -1)
            best = window.argmax(-1)
            indices[(..., *at)] = flat[box].reshape(-1)[best]
            values[(..., *at)] = xp.take_along_axis(window, best[..., None], -1)[..., 0]
        return as_format_of(xp, values, x), as_format_of(xp, indices, x)

    op(
        f"_{name}(Tensor self, int[] output_size) -> (Tensor, Tensor)",
        public=False,
        meta=meta,
        grad_name=f"AdaptiveMaxPool{n}DBackward0",
        vjp={"self": f"_max_unpool(g0, result1, self.shape[-{n}:])"},
    )(forward)


for _n in (2, 3):
    _declare_adaptive_avg(_n)
    _declare_adaptive_max(_n)


def _output_size(x: Any, size: Any, n: int) -> tuple[int, ...]:
    check_ints(f"adaptive_pool{n}d", "output_size", size)
    sizes = (size,) * n if isinstance(size, int) or size is None else tuple(size)
    if x._a.ndim <= n and n > 1:
        raise ValueError(f"Input dimension should be at least {n + 1}")
    if len(sizes) != n:
        raise RuntimeError(
            f"adaptive_pool{n}d: output_size must be {n} integers, got {list(sizes)}"
        )
    return tuple(x._a.shape[i - n] if s is None else int(s) for i, s in enumerate(sizes))


def _adaptive_avg(n: int, x: Any, output_size: Any) -> Any:
    size = _output_size(x, output_size, n)
    if n == 1:
        _adaptive_check("adaptive_avg_pool1d", x._a, 1, size)
        return aten.squeeze(_adaptive_avg(2, aten.unsqueeze(x, -2), (1, *size)), -2)
    if all(s == 1 for s in size) and x._a.size:
        _adaptive_check(f"adaptive_avg_pool{n}d", x._a, n, size)
        return aten.mean(x, tuple(range(-n, 0)), True)
    need(FLOATS, f"adaptive_avg_pool{n}d" + ("_cpu" if n == 3 else ""), x._a)
    return getattr(aten, f"_adaptive_avg_pool{n}d")(x, size)


def _adaptive_max(n: int, x: Any, output_size: Any) -> tuple[Any, Any]:
    size = _output_size(x, output_size, n)
    if n == 1:
        _adaptive_check("adaptive_max_pool1d", x._a, 1, size)
        r, i = _adaptive_max(2, aten.unsqueeze(x, -2), (1, *size))
        return aten.squeeze(r, -2), aten.squeeze(i, -2)
    need(FLOATS, f"adaptive_max_pool{n}d" + ("_cpu" if n == 3 else ""), x._a)
    return tuple(getattr(aten, f"_adaptive_max_pool{n}d")(x, size))


def _declare_faces(n: int) -> None:
    def adaptive_avg(self: Any, output_size: Any) -> Any:
        return _adaptive_avg(n, self, output_size)

    def adaptive_max(self: Any, output_size: Any, return_indices: bool = False) -> Any:
        r = _adaptive_max(n, self, output_size)
        return r if return_indices else r[0]

    for kind, body, what in (("avg", adaptive_avg, "Means"), ("max", adaptive_max, "Maxima")):
        body.__name__ = body.__qualname__ = name = f"adaptive_{kind}_pool{n}d"
        body.__doc__ = f"{what} over a grid of `output_size` windows, whatever the input's size."
        face(
            name,
            method=False,
            spaces=("torch", "nn.functional") if n == 1 else ("nn.functional",),
            autocast="float32:cpu" if n == 3 else None,
        )(body)


for _n in (1, 2, 3):
    _declare_faces(_n)

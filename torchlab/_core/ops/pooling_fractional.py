"""Fractional max pooling: windows at random, nearly even distances (arXiv:1412.6071).

Source: https://docs.pytorch.org/docs/2.13/generated/torch.nn.functional.fractional_max_pool2d.html
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from torchlab._core import dtype as dt
from torchlab._core import layout
from torchlab._core.backends.meta import MetaArray
from torchlab._core.dispatch.op import Op, face, op
from torchlab._core.dispatch.registry import aten

_F = ("nn.functional",)


def _check(n: int, x: Any, kernel: Any, size: Any, samples: Any) -> None:
    name = f"fractional_max_pool{n}d"
    if x.dtype.kind in "iubc":
        kind = dt.from_numpy(x.dtype).scalar_name
        raise NotImplementedError(f"\"{name}_out_frame\" not implemented for '{kind}'")
    if x.ndim not in (n + 1, n + 2) or 0 in x.shape[-n - 1 :]:
        raise RuntimeError(
            f"{name}(): Expected {n + 1}D or {n + 2}D tensor with non-empty channels and spatial "
            f"dimensions, but got: {list(x.shape)}"
        )
    if len(kernel) != n or len(size) != n:
        raise RuntimeError(
            f"{name}: kernel_size and output_size must be {n} ints or one int, but got "
            f"{list(kernel)} and {list(size)}"
        )
    for i, (m, k, o) in enumerate(zip(x.shape[-n:], kernel, size, strict=True)):
        if o < 1 or k < 1 or o + k - 1 > m:
            raise RuntimeError(
                f"{name}(): kernel size {k} and output size {o} in dimension {i} do not fit into "
                f"input size {m}: output + kernel − 1 may be at most the input's size, and both at "
                "least 1"
            )
    if samples.dtype != x.dtype:
        raise RuntimeError(
            "Expect _random_samples to have the same dtype as input, but got "
            f"{samples.dtype.name} and {x.dtype.name}"
        )
    lead = (1, x.shape[0]) if x.ndim == n + 1 else x.shape[:2]
    if samples.ndim != 3 or samples.shape[0] < lead[0] or samples.shape[1:] != (lead[1], n):
        raise RuntimeError(
            f"Expect _random_samples to have the shape {[*lead, n]}, one number for each plane and "
            f"dimension, but got {list(samples.shape)}"
        )


def _starts(xp: Any, sample: Any, n: int, out: int, kernel: int) -> Any:
    """Where the windows of each plane begin along one dimension: (planes, out)."""
    kind = sample.dtype.type
    if out == 1:
        return xp.full((sample.size, 1), n - kernel, xp.int64)
    alpha = kind(n - kernel) / kind(out - 1)
    u = sample.reshape(-1, 1)
    steps = xp.arange(out).astype(sample.dtype)
    r = ((steps + u) * alpha).astype(xp.int64) - (u * alpha).astype(xp.int64)
    r[:, -1] = n - kernel
    return r


def _declare(n: int) -> Op:
    name = f"fractional_max_pool{n}d"

    def meta(x: Any, kernel: Any, size: Any, samples: Any) -> Any:
        _check(n, x, kernel, size, samples)
        shape = (*x.shape[:-n], *size)
        return MetaArray(shape, x.dtype), MetaArray(shape, np.dtype(np.int64))

    def forward(xp: Any, x: Any, kernel: Any, size: Any, samples: Any) -> Any:
        """The largest element of each window, and where it is in the flattened spatial dimensions;
        random_samples (N, C, dimensions) in 0 … 1."""
        _check(n, x, kernel, size, samples)
        spatial = x.shape[-n:]
        planes = layout.numel(x.shape[:-n])
        draws = samples.reshape(-1, n)[:planes]
        if n == 2:  # PyTorch's order: width first in two dimensions, depth first in three
            draws = draws[:, ::-1]
        base = xp.zeros((planes, *(1,) * n), xp.int64)
        for d in range(n):
            starts = _starts(xp, draws[:, d], spatial[d], size[d], kernel[d])
            shape = [planes] + [1] * n
            shape[d + 1] = size[d]
            base = base * spatial[d] + starts.reshape(shape)
        rows = x.reshape(planes, layout.numel(spatial))
        base = base.reshape(planes, layout.numel(size))
        best = places = None
        for tap in itertools.product(*(range(k) for k in kernel)):
            shift = 0
            for t, m in zip(tap, spatial, strict=True):
                shift = shift * m + t
            at = base + shift
            v = xp.take_along_axis(rows, at, axis=1)
            if best is None:
                best, places = v, at
                continue
            better = (v > best) | (v != v)
            best, places = xp.where(better, v, best), xp.where(better, at, places)
        shape = (*x.shape[:-n], *size)
        return best.reshape(shape), places.reshape(shape)

    return op(
        f"{name}(Tensor self, int[{n}] kernel_size, int[{n}] output_size, Tensor random_samples) "
        "-> (Tensor output, Tensor indices)",
        public=False,
        half=False,
        meta=meta,
        autocast="float32:cpu",
        grad_name=f"FractionalMaxPool{n}DBackward0",
        vjp={"self": f"_max_unpool(g0, result1, self.shape[-{n}:])"},
    )(forward)


_POOLS = {n: _declare(n) for n in (2, 3)}


def _pool(
    n: int,
    x: Any,
    kernel_size: Any,
    output_size: Any,
    output_ratio: Any,
    return_indices: bool,
    samples: Any,
) -> Any:
    name = f"fractional_max_pool{n}d"
    if output_size is None and output_ratio is None:
        raise ValueError(f"{name} requires specifying either an output_size or an output_ratio")
    kernel = (kernel_size,) * n if isinstance(kernel_size, int) else tuple(kernel_size)
    if output_size is None:
        ratio = (output_ratio,) * n if isinstance(output_ratio, float) else tuple(output_ratio)
        if len(ratio) != n:
            raise ValueError(f"{name} requires output_ratio to be a float or a tuple of {n}")
        output_size = tuple(int(m * r) for m, r in zip(x._a.shape[-n:], ratio, strict=True))
    size = (output_size,) * n if isinstance(output_size, int) else tuple(output_size)
    if samples is None:
        lead = (1, x._a.shape[0]) if x._a.ndim == n + 1 else x._a.shape[:2]
        samples = aten.rand(*lead, n, dtype=x._k.dtype, device=x._k.device)
    result, places = _POOLS[n].call(x, kernel, size, samples)
    return (result, places) if return_indices else result


def _declare_faces(n: int) -> None:
    name = f"fractional_max_pool{n}d"

    def pool(
        self: Any,
        kernel_size: Any,
        output_size: Any = None,
        output_ratio: Any = None,
        return_indices: bool = False,
        _random_samples: Any = None,
    ) -> Any:
        return _pool(
            n, self, kernel_size, output_size, output_ratio, return_indices, _random_samples
        )

    def with_indices(
        self: Any,
        kernel_size: Any,
        output_size: Any = None,
        output_ratio: Any = None,
        return_indices: bool = False,
        _random_samples: Any = None,
    ) -> Any:
        return _pool(n, self, kernel_size, output_size, output_ratio, True, _random_samples)

    pool.__doc__ = (
        f"The largest element of each of `output_size` (or `output_ratio` times the input's size) "
        f"{n}-d windows at random distances; also where it is, with return_indices."
    )
    with_indices.__doc__ = f"`{name}` with the places of the maxima."
    for shown, body in ((name, pool), (f"{name}_with_indices", with_indices)):
        body.__name__ = body.__qualname__ = shown
        face(shown, method=False, spaces=_F)(body)


for _n in (2, 3):
    _declare_faces(_n)

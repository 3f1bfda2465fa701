"""`associative_scan`: what a function of two makes of the first one, two, three … elements.

In a tree (G. Blelloch, "Prefix sums and their applications", CMU-CS-90-190, 1990): neighbours are
combined, the half as many are scanned, and what lies between is combined with the one before. So
n elements take about 2 log2(n) calls, each of many elements at once.

Source: https://docs.pytorch.org/docs/2.13/higher_order_ops/associative_scan.html
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torchlab._core.dispatch.registry import aten
from torchlab._core.pytree import tree_flatten, tree_leaves
from torchlab.func import vmap

__all__ = ["associative_scan"]

Leaves = list[Any]


def associative_scan(
    combine_fn: Callable[[Any, Any], Any],
    xs: Any,
    dim: int,
    reverse: bool = False,
    combine_mode: str = "pointwise",
) -> Any:
    """The running results of `combine_fn` along `dim` of `xs`: of a sum, the cumulative sum.

    combine_fn: takes two trees shaped like `xs`, without `dim`, and gives a third; associative.
    xs: a tree of tensors that are equally long in `dim`. reverse: from the end. combine_mode:
        "generic", or "pointwise", which only GPUs have.

    Raises:
        ValueError: an argument of another kind, or "pointwise" on the CPU.
    """
    if not callable(combine_fn):
        raise ValueError(f"Combine_fn must be a callable, but got {combine_fn}")
    if not isinstance(dim, int):
        raise ValueError(f"Dim must be an int, but got {type(dim)}")
    if not isinstance(reverse, bool):
        raise RuntimeError(f"Reverse must be a bool, but got {type(reverse)}")
    if combine_mode not in ("pointwise", "generic"):
        raise ValueError(
            f"Combine_mode must either 'pointwise' or 'generic', but got {combine_mode}"
        )
    leaves, spec = tree_flatten(xs)
    if combine_mode == "pointwise" and not all(x.device.type in ("cuda", "xpu") for x in leaves):
        raise ValueError(
            "For combine_mode='pointwise', all input tensors need to be on CUDA or XPU"
        )
    ndim = leaves[0].ndim
    if not -ndim <= dim < ndim:
        raise IndexError(
            f"Dimension out of range (expected to be in range of [{-ndim}, {ndim - 1}], but got"
            f" {dim})"
        )
    dim %= ndim
    if any(x.ndim <= dim or not x.shape[dim] for x in leaves):
        raise ValueError(
            "All xs leaves must at least have 'dim' number of dimensions and scan dimension > 0"
        )

    def of_leaves(*both: Any) -> Leaves:
        n = len(leaves)
        made = tree_leaves(combine_fn(spec.unflatten(both[:n]), spec.unflatten(both[n:])))
        if len(made) != n:
            raise AssertionError(
                f"Combine_fn received wrong number of arguments, expected {2 * n}, but got"
                f" {2 * len(made)}"
            )
        return made

    rows = [aten.movedim(x, dim, 0) for x in leaves]
    if reverse:
        rows = [aten.flip(x, [0]) for x in rows]
    rows = _scanned(vmap(of_leaves), rows)
    if reverse:
        rows = [aten.flip(x, [0]) for x in rows]
    return spec.unflatten([aten.movedim(x, 0, dim) for x in rows])


def _scanned(combine: Callable[..., Leaves], rows: Leaves) -> Leaves:
    n = rows[0].shape[0]
    if n < 2:
        return rows
    firsts = [aten.slice(x, 0, 0, n - 1, 2) for x in rows]
    odd = _scanned(combine, combine(*firsts, *[aten.slice(x, 0, 1, n, 2) for x in rows]))
    before = odd if n % 2 else [aten.slice(x, 0, 0, -1) for x in odd]
    even = [aten.slice(x, 0, 0, 1) for x in rows]
    if before[0].shape[0]:
        later = combine(*before, *[aten.slice(x, 0, 2, n, 2) for x in rows])
        even = [aten.cat([x, y], 0) for x, y in zip(even, later, strict=True)]
    return [_interleaved(a, b) for a, b in zip(even, odd, strict=True)]


def _interleaved(even: Any, odd: Any) -> Any:
    """Rows of `even` and `odd` in turn; `even` may have one more."""
    n = odd.shape[0]
    pairs = aten.flatten(aten.stack([aten.slice(even, 0, 0, n), odd], 1), 0, 1)
    return pairs if even.shape[0] == n else aten.cat([pairs, aten.slice(even, 0, n)], 0)

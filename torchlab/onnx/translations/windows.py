"""Convolutions, pooling, resizing.

Source: https://onnx.ai/onnx/operators/onnx__Conv.html
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from torchlab.fx.experimental._symbolic_numbers import SymInt
from torchlab.fx.node import Node
from torchlab.onnx._builder import Builder
from torchlab.onnx.errors import Untranslatable
from torchlab.onnx.translations._registry import translates


def _each(value: Any, n: int) -> list[int]:
    if isinstance(value, int):
        return [value] * n
    found = [int(v) for v in value]
    return found * n if len(found) == 1 else found


def batched(g: Builder, x: Node, dims: int) -> tuple[str, bool]:
    """The value with a batch in front, and whether it had none."""
    if g.rank(x) == dims + 2:
        return g.of(x), False
    return g.op("Unsqueeze", g.of(x), g.const([0])), True


@translates("convolution", "_convolution")
def convolution(
    g: Builder, node: Node, x: Node, weight: Node, bias: Node | None, stride: Any, padding: Any,
    dilation: Any, transposed: bool, output_padding: Any, groups: int, *rest: Any,
) -> str:  # fmt: skip
    n = g.rank(weight) - 2
    a, alone = batched(g, x, n)
    pads = _each(padding, n)
    facts: dict[str, Any] = {
        "strides": _each(stride, n), "pads": pads + pads, "dilations": _each(dilation, n),
        "group": groups, "kernel_shape": [g.known(weight, i + 2) for i in range(n)],
    }  # fmt: skip
    b = None if bias is None else g.of(bias)
    if transposed:
        extra = _each(output_padding, n)
        if any(extra):
            facts["output_padding"] = extra
        r = g.op("ConvTranspose", a, g.of(weight), b, **facts)
    else:
        r = g.op("Conv", a, g.of(weight), b, **facts)
    return g.op("Squeeze", r, g.const([0])) if alone else r


def _conv(n: int) -> None:
    @translates(f"conv{n}d.default")
    def translate(
        g: Builder, node: Node, x: Node, weight: Node, bias: Node | None = None, stride: Any = 1,
        padding: Any = 0, dilation: Any = 1, groups: int = 1,
    ) -> str:  # fmt: skip
        return convolution(g, node, x, weight, bias, stride, padding, dilation, False, 0, groups)


for _n in (1, 2, 3):
    _conv(_n)


# ---- pooling -------------------------------------------------------------------------------------


def _ints(kernel: Any, stride: Any, n: int) -> tuple[list[int], list[int]]:
    for value in (kernel, stride):
        if any(isinstance(k, Node) for k in (value if isinstance(value, (list, tuple)) else ())):
            raise Untranslatable("the size of a pooling's window varies")
    window = _each(kernel, n)
    return window, _each(stride, n) if stride else window


def _max_pool(n: int) -> None:
    @translates(f"_max_pool{n}d", f"max_pool{n}d")
    def plain(
        g: Builder, node: Node, x: Node, kernel: Any, stride: Any = (), padding: Any = 0,
        dilation: Any = 1, ceil_mode: bool = False,
    ) -> str:  # fmt: skip
        a, alone = batched(g, x, n)
        window, step = _ints(kernel, stride, n)
        r = g.op(
            "MaxPool", a, kernel_shape=window, strides=step, pads=_each(padding, n) * 2,
            dilations=_each(dilation, n), ceil_mode=int(ceil_mode),
        )  # fmt: skip
        return g.op("Squeeze", r, g.const([0])) if alone else r

    @translates(f"max_pool{n}d_with_indices")
    def with_indices(g: Builder, node: Node, x: Node, *rest: Any) -> list[str]:
        if g.uses(node, 1):
            raise Untranslatable("the indices of a max pooling")
        r = plain(g, node, x, *rest)
        return [r, r]

    @translates(f"avg_pool{n}d")
    def average(
        g: Builder, node: Node, x: Node, kernel: Any, stride: Any = (), padding: Any = 0,
        ceil_mode: bool = False, count_include_pad: bool = True, divisor: Any = None,
    ) -> str:  # fmt: skip
        if divisor is not None:
            raise Untranslatable("AveragePool has no divisor_override")
        sizes = list(kernel) if isinstance(kernel, (list, tuple)) else [kernel]
        if any(isinstance(k, Node) for k in sizes):
            return _whole_average(g, x, sizes, n)
        a, alone = batched(g, x, n)
        window, step = _ints(kernel, stride, n)
        pads = _each(padding, n)
        if not any(pads):
            count_include_pad = False  # the same, and then no doubt where the last window ends
        elif ceil_mode and count_include_pad and not _fits(g.shape(x)[-n:], window, step, pads):
            raise Untranslatable("AveragePool counts a last window that is cut off otherwise")
        r = g.op(
            "AveragePool", a, kernel_shape=window, strides=step, pads=_each(padding, n) * 2,
            ceil_mode=int(ceil_mode), count_include_pad=int(count_include_pad),
        )  # fmt: skip
        return g.op("Squeeze", r, g.const([0])) if alone else r


def _fits(shape: Any, window: list[int], step: list[int], pads: list[int]) -> bool:
    """Whether the windows end where the padded input does."""
    return all(
        type(n) is not SymInt and (int(n) + 2 * p - w) % s == 0
        for n, w, s, p in zip(shape, window, step, pads, strict=True)
    )


def _whole_average(g: Builder, x: Node, kernel: Sequence[Any], n: int) -> str:
    """A window as large as a dim that varies: its mean."""
    shape = g.shape(x)[-n:]
    dims = []
    for i, (k, size) in enumerate(zip(kernel, shape, strict=True)):
        said = k.meta["val"] if isinstance(k, Node) else k
        if g.said(said) == g.said(size):
            dims.append(i - n)
        elif k != 1:
            raise Untranslatable("the size of a pooling's window varies")
    return g.op("ReduceMean", g.of(x), g.const(dims), keepdims=1)


for _n in (1, 2, 3):
    _max_pool(_n)


def _adaptive(n: int, name: str, kind: str, reduction: str) -> None:
    keys = [f"adaptive_{name}_pool{n}d", f"_adaptive_{name}_pool{n}d"]

    @translates(*keys)
    def translate(g: Builder, node: Node, x: Node, size: Any) -> Any:
        wanted = _each(size, n)
        shape = g.shape(x)[-n:]
        indices = name == "max" and isinstance(node.meta["val"], (list, tuple))
        if indices and g.uses(node, 1):
            raise Untranslatable("the indices of an adaptive pooling")
        if all(w == 1 for w in wanted):
            r = g.op(reduction, g.of(x), g.const(list(range(-n, 0))), keepdims=1)
            return [r, r] if indices else r
        if name == "avg" and not any(type(s) is SymInt for s in shape):
            if any(s % w for s, w in zip(shape, wanted, strict=True)):
                return _averaged(g, x, [int(s) for s in shape], wanted)
        if any(type(s) is SymInt and w != 1 or w and type(s) is not SymInt and s % w
               for s, w in zip(shape, wanted, strict=True)):  # fmt: skip
            raise Untranslatable(
                f"adaptive pooling of {[g.said(s) for s in shape]} to {wanted}: not a multiple"
            )
        if any(type(s) is SymInt for s in shape):
            raise Untranslatable(f"adaptive pooling of {[g.said(s) for s in shape]} to {wanted}")
        a, alone = batched(g, x, n)
        window = [s // w for s, w in zip(shape, wanted, strict=True)]
        r = g.op(kind, a, kernel_shape=window, strides=window)
        r = g.op("Squeeze", r, g.const([0])) if alone else r
        return [r, r] if indices else r


def _averaged(g: Builder, x: Node, shape: list[int], wanted: list[int]) -> str:
    """Averages over windows of different sizes: a product with a matrix for each dim."""
    rank, n = g.rank(x), len(shape)
    d = g.dtype(x)
    a = g.of(x)
    for i, (size, w) in enumerate(zip(shape, wanted, strict=True)):
        if size == w:
            continue
        matrix = np.zeros((size, w))
        for j in range(w):
            low, high = j * size // w, -(-(j + 1) * size // w)
            matrix[low:high, j] = 1 / (high - low)
        perm = list(range(rank))
        at = rank - n + i
        perm[at], perm[-1] = perm[-1], perm[at]
        turned = a if at == rank - 1 else g.op("Transpose", a, perm=perm)
        a = g.op("MatMul", turned, g.const(matrix.astype(d.np)))
        a = a if at == rank - 1 else g.op("Transpose", a, perm=perm)
    return a


for _n in (1, 2, 3):
    _adaptive(_n, "avg", "AveragePool", "ReduceMean")
    _adaptive(_n, "max", "MaxPool", "ReduceMax")


# ---- resizing ------------------------------------------------------------------------------------


def _upsample(name: str, n: int, mode: str) -> None:
    keys = (f"upsample_{name}{n}d", f"upsample_{name}{n}d.vec")
    if "exact" in name:
        keys = (f"_upsample_{name}{n}d", f"_upsample_{name}{n}d.vec")

    @translates(*keys)
    def translate(g: Builder, node: Node, x: Node, size: Any, *rest: Any) -> str:
        corners = False
        if mode != "nearest":
            corners = next((bool(r) for r in rest if isinstance(r, bool)), False)
        target = node.meta["val"].shape
        whole = g.op("Concat", g.op("Shape", g.of(x), start=0, end=2),
                     g.dims(list(target[2:])), axis=0)  # fmt: skip
        where = "align_corners" if corners else "half_pixel"
        if mode == "nearest":
            where = "half_pixel" if name == "nearest_exact" else "asymmetric"
        facts: dict[str, Any] = {"mode": mode, "coordinate_transformation_mode": where}
        if mode == "nearest":
            facts["nearest_mode"] = "round_prefer_ceil" if "exact" in name else "floor"
        if mode == "cubic":
            facts["cubic_coeff_a"] = -0.75
        return g.op("Resize", g.of(x), None, None, whole, **facts)


for _n in (1, 2, 3):
    _upsample("nearest", _n, "nearest")
    _upsample("nearest_exact", _n, "nearest")
_upsample("linear", 1, "linear")
_upsample("bilinear", 2, "linear")
_upsample("trilinear", 3, "linear")
_upsample("bicubic", 2, "cubic")


@translates("grid_sampler_2d", "grid_sampler_3d", "grid_sampler")
def grid_sampler(
    g: Builder, node: Node, x: Node, grid: Node, mode: int, padding: int, align_corners: bool
) -> str:
    names = ("linear", "nearest", "cubic") if g.opset >= 20 else ("bilinear", "nearest", "bicubic")
    return g.op(
        "GridSample", g.of(x), g.of(grid), mode=names[mode],
        padding_mode=("zeros", "border", "reflection")[padding], align_corners=int(align_corners),
    )  # fmt: skip


@translates("pixel_shuffle")
def pixel_shuffle(g: Builder, node: Node, x: Node, factor: int) -> str:
    return g.op("DepthToSpace", g.of(x), blocksize=factor, mode="CRD")


@translates("pixel_unshuffle")
def pixel_unshuffle(g: Builder, node: Node, x: Node, factor: int) -> str:
    """SpaceToDepth has the other order of channels."""
    c, h, w = (g.known(x, i) for i in (1, 2, 3))
    f = factor
    a = g.op("Reshape", g.of(x), g.const([-1, c, h // f, f, w // f, f]))
    a = g.op("Transpose", a, perm=[0, 1, 3, 5, 2, 4])
    return g.op("Reshape", a, g.const([-1, c * f * f, h // f, w // f]))


__all__ = ["batched", "convolution"]

"""Sizes under a sliding window: convolution, pooling, transposed convolution.

All arguments are per spatial dim: tuples of one length, without batch and channels.
Formulas: the "Shape" sections of Conv2d, MaxPool2d and ConvTranspose2d in PyTorch's documentation.
"""

from __future__ import annotations

from collections.abc import Sequence

from torchlab._core.layout.shape import Shape, prefix


def _times(sizes: Sequence[int]) -> str:
    return "(" + " x ".join([str(s) for s in sizes]) + ")"


def _check_window(
    kernel: Sequence[int],
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    op: str,
) -> None:
    if min(padding, default=0) < 0:
        raise RuntimeError(f"{prefix(op)}negative padding is not supported: {list(padding)}")
    if min(stride, default=1) <= 0:
        raise RuntimeError(f"{prefix(op)}non-positive stride is not supported: {list(stride)}")
    for name, values in (("kernel size", kernel), ("dilation", dilation)):
        if min(values, default=1) <= 0:
            raise RuntimeError(
                f"{prefix(op)}{name} should be greater than zero, but got {list(values)}"
            )


def conv_output_shape(
    size: Sequence[int],
    kernel: Sequence[int],
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    op: str = "",
) -> Shape:
    """Spatial sizes after a convolution: floor((n + 2p - d(k - 1) - 1) / s) + 1.

    Raises RuntimeError for a negative padding, a kernel, stride or dilation below 1, or a dilated
    kernel larger than the padded input.
    """
    _check_window(kernel, stride, padding, dilation, op)
    out = []
    for n, k, s, p, d in zip(size, kernel, stride, padding, dilation, strict=True):
        room = n + 2 * p - d * (k - 1) - 1
        if room < 0:
            padded = [n + 2 * p for n, p in zip(size, padding, strict=True)]
            spans = [d * (k - 1) + 1 for k, d in zip(kernel, dilation, strict=True)]
            raise RuntimeError(
                f"{prefix(op)}Calculated padded input size per channel: {_times(padded)}. Kernel"
                f" size: {_times(spans)}. Kernel size can't be greater than actual input size"
            )
        out.append(room // s + 1)
    return tuple(out)


def pool_output_shape(
    size: Sequence[int],
    kernel: Sequence[int],
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    ceil_mode: bool = False,
    planes: int | None = None,
    op: str = "",
) -> Shape:
    """Spatial sizes after pooling. With `ceil_mode` a last window may hang over the end, but it
    must start inside the input or its left padding.

    `planes` (the number of channels) only makes the error's text complete. Raises RuntimeError for
    a kernel, stride or dilation below 1, a padding that is negative or more than half the kernel,
    or an empty result.
    """
    for k, s, p, d in zip(kernel, stride, padding, dilation, strict=True):
        if s == 0:
            raise RuntimeError(f"{prefix(op)}stride should not be zero, but got {list(stride)}")
        if p < 0:
            raise RuntimeError(f"{prefix(op)}pad must be non-negative, but got pad: {p}")
        if p > (d * (k - 1) + 1) // 2:
            raise RuntimeError(
                f"{prefix(op)}pad should be at most half of effective kernel size, but got"
                f" pad={p}, kernel_size={k} and dilation={d}"
            )
    for name, values in (("kernel size", kernel), ("stride", stride), ("dilation", dilation)):
        if min(values) <= 0:
            raise RuntimeError(
                f"{prefix(op)}{name} should be greater than zero, but got {list(values)}"
            )
    for k, p in zip(kernel, padding, strict=True):
        if p > k // 2:
            raise RuntimeError(
                f"{prefix(op)}pad should be smaller than or equal to half of kernel size, but got"
                f" pad {list(padding)}, kernel {list(kernel)}"
            )
    out = []
    for n, k, s, p, d in zip(size, kernel, stride, padding, dilation, strict=True):
        room = n + 2 * p - d * (k - 1) - 1
        count = (room + (s - 1 if ceil_mode else 0)) // s + 1
        if ceil_mode and (count - 1) * s >= n + p:
            count -= 1
        out.append(count)
    if min(out) < 1:
        head = () if planes is None else (planes,)
        given = "x".join([str(n) for n in (*head, *size)])
        result = "x".join([str(n) for n in (*head, *out)])
        raise RuntimeError(
            f"{prefix(op)}Given input size: ({given}). Calculated output size: ({result})."
            " Output size is too small"
        )
    return tuple(out)


def conv_transpose_output_shape(
    size: Sequence[int],
    kernel: Sequence[int],
    stride: Sequence[int],
    padding: Sequence[int],
    output_padding: Sequence[int],
    dilation: Sequence[int],
    op: str = "",
) -> Shape:
    """Spatial sizes after a transposed convolution: (n - 1)s - 2p + d(k - 1) + output_padding + 1.

    Raises RuntimeError for the arguments that `conv_output_shape` refuses, an output padding that
    is negative or not below stride or dilation, or an empty result.
    """
    _check_window(kernel, stride, padding, dilation, op)
    if min(output_padding, default=0) < 0:
        raise RuntimeError(
            f"{prefix(op)}negative output_padding is not supported: {list(output_padding)}"
        )
    out = []
    for n, k, s, p, extra, d in zip(
        size, kernel, stride, padding, output_padding, dilation, strict=True
    ):
        if extra >= s and extra >= d:
            raise RuntimeError(
                f"{prefix(op)}output padding must be smaller than either stride or dilation, but"
                f" got output_padding: {list(output_padding)} stride: {list(stride)}"
                f" dilation: {list(dilation)}"
            )
        out.append((n - 1) * s - 2 * p + d * (k - 1) + extra + 1)
    if min(out, default=1) < 1:
        raise RuntimeError(
            f"{prefix(op)}Given input size per channel: {_times(size)}. Calculated output size per"
            f" channel: {_times(out)}. Output size is too small"
        )
    return tuple(out)

"""Patches and pixels: unfold and fold (im2col, col2im), pixel and channel shuffles.

Source: https://docs.pytorch.org/docs/2.13/nn.functional.html#vision-functions;
pixel shuffle: Shi and others, arXiv:1609.05158.
"""

from __future__ import annotations

from typing import Any

from torchlab._core import layout
from torchlab._core.backends.meta import MetaArray
from torchlab._core.dispatch.arguments import check_ints, check_tensor
from torchlab._core.dispatch.op import face, op
from torchlab._core.dispatch.registry import aten
from torchlab._core.ops._kinds import need
from torchlab._core.ops._windows import window_taps, window_tuple
from torchlab._core.ops.kernels import as_format_of

_BOTH = ("torch", "nn.functional")


def _positions(
    spatial: Any, kernel: Any, dilation: Any, padding: Any, stride: Any
) -> tuple[int, ...]:
    return tuple(
        (n + 2 * p - d * (k - 1) - 1) // s + 1
        for n, k, d, p, s in zip(spatial, kernel, dilation, padding, stride, strict=True)
    )


def _check_unfold(x: Any, kernel: Any, dilation: Any, padding: Any, stride: Any) -> tuple[int, ...]:
    if x.ndim != 4 or any(n == 0 for n in x.shape[1:]):
        raise RuntimeError(
            "Expected 3D or 4D (batch mode) tensor with possibly 0 batch size and other non-zero "
            "dimensions for input, but "
            f"got: {list(x.shape)}"
        )
    need("fcVb", "im2col_out_cpu", x)
    out = _positions(x.shape[2:], kernel, dilation, padding, stride)
    if any(m < 1 for m in out):
        raise RuntimeError(
            f"Given input with spatial size {x.shape[2:]}, kernel_size={kernel}, "
            f"dilation={dilation}, padding={padding}, "
            f"calculated shape of the array of sliding blocks as {out}, but its components must "
            "be at least one."
        )
    return out


_GEOMETRY = "int[] kernel_size, int[] dilation, int[] padding, int[] stride"


def _im2col_meta(x: Any, kernel: Any, dilation: Any, padding: Any, stride: Any) -> Any:
    out = _check_unfold(x, kernel, dilation, padding, stride)
    return MetaArray((x.shape[0], x.shape[1] * layout.numel(kernel), layout.numel(out)), x.dtype)


@op(
    f"im2col(Tensor self, {_GEOMETRY}) -> Tensor",
    public=False,
    meta=_im2col_meta,
    grad_name="Im2ColBackward0",
    vjp={"self": "col2im(g, self.shape[2:], kernel_size, dilation, padding, stride)"},
)
def im2col(xp: Any, x: Any, kernel: Any, dilation: Any, padding: Any, stride: Any) -> Any:
    """(N, C, H, W) → (N, C·taps, positions): each column is one patch."""
    out = _check_unfold(x, kernel, dilation, padding, stride)
    n, c = x.shape[:2]
    if any(padding):
        x = xp.pad(x, ((0, 0), (0, 0), *((p, p) for p in padding)))
    r = xp.empty((n, c, layout.numel(kernel), *out), x.dtype)
    for i, tap in enumerate(window_taps(kernel, out, stride, dilation)):
        r[:, :, i] = x[tap]
    return r.reshape(n, c * r.shape[2], layout.numel(out))


def _check_fold(
    x: Any, size: Any, kernel: Any, dilation: Any, padding: Any, stride: Any
) -> tuple[int, ...]:
    taps = layout.numel(kernel)
    need("fcVb", "col2im_out_cpu", x)
    if x.ndim != 3 or x.shape[1] == 0 or x.shape[2] == 0:
        raise RuntimeError(
            "Expected 2D or 3D (batch mode) tensor for input with possibly 0 batch size and "
            "non-zero dimensions for input, "
            f"but got: {list(x.shape)}"
        )
    if x.shape[1] % taps:
        raise RuntimeError(
            "Expected size of input's dimension 1 to be divisible by the product of kernel_size, "
            "but got "
            f"input.size(1)={x.shape[1]} and kernel_size={tuple(kernel)}."
        )
    out = _positions(size, kernel, dilation, padding, stride)
    if layout.numel(out) != x.shape[2]:
        raise RuntimeError(
            f"Given output_size={tuple(size)}, kernel_size={tuple(kernel)}, "
            f"dilation={tuple(dilation)}, "
            f"padding={tuple(padding)}, stride={tuple(stride)}, expected size of input's "
            "dimension 2 to match the "
            f"calculated number of sliding blocks {' * '.join(map(str, out))} = "
            f"{layout.numel(out)}, but got "
            f"input.size(2)={x.shape[2]}."
        )
    return out


def _col2im_meta(x: Any, size: Any, kernel: Any, dilation: Any, padding: Any, stride: Any) -> Any:
    _check_fold(x, size, kernel, dilation, padding, stride)
    return MetaArray((x.shape[0], x.shape[1] // layout.numel(kernel), *size), x.dtype)


@op(
    f"col2im(Tensor self, int[] output_size, {_GEOMETRY}) -> Tensor",
    public=False,
    meta=_col2im_meta,
    grad_name="Col2ImBackward0",
    vjp={"self": "im2col(g, kernel_size, dilation, padding, stride)"},
)
def col2im(
    xp: Any, x: Any, size: Any, kernel: Any, dilation: Any, padding: Any, stride: Any
) -> Any:
    """Puts patches back, adding where they overlap."""
    out = _check_fold(x, size, kernel, dilation, padding, stride)
    n, c = x.shape[0], x.shape[1] // layout.numel(kernel)
    columns = x.reshape(n, c, layout.numel(kernel), *out)
    r = xp.zeros((n, c, *(s + 2 * p for s, p in zip(size, padding, strict=True))), x.dtype)
    for i, tap in enumerate(window_taps(kernel, out, stride, dilation)):
        part = r[tap]
        part += columns[:, :, i]
    return xp.ascontiguousarray(
        r[(..., *(slice(p, p + s) for s, p in zip(size, padding, strict=True)))]
    )


def _geometry(
    kernel_size: Any, dilation: Any, padding: Any, stride: Any
) -> tuple[tuple[int, ...], ...]:
    named = (
        ("kernel_size", kernel_size),
        ("dilation", dilation),
        ("padding", padding),
        ("stride", stride),
    )
    return tuple(window_tuple(v, 2, k) for k, v in named)


def unfold(x: Any, kernel_size: Any, dilation: Any, padding: Any, stride: Any) -> Any:
    """nn.functional.unfold (the tensor's method `unfold` is something else: a view of windows)."""
    check_tensor("unfold", "input", x)
    sizes = {"kernel_size": kernel_size, "dilation": dilation, "padding": padding}
    for name, v in {**sizes, "stride": stride}.items():
        check_ints("unfold", name, v)
    geometry = _geometry(kernel_size, dilation, padding, stride)
    if x._a.ndim == 3:
        return aten.squeeze(im2col.call(aten.unsqueeze(x, 0), *geometry), 0)
    return im2col.call(x, *geometry)


def fold(
    x: Any, output_size: Any, kernel_size: Any, dilation: Any, padding: Any, stride: Any
) -> Any:
    """nn.functional.fold."""
    size = window_tuple(output_size, 2, "output_size")
    geometry = _geometry(kernel_size, dilation, padding, stride)
    if x._a.ndim == 2:
        return aten.squeeze(col2im.call(aten.unsqueeze(x, 0), size, *geometry), 0)
    return col2im.call(x, size, *geometry)


# ---- shuffles -----------------------------------------------------------------------------------


def _shuffle_shape(x: Any, r: int) -> tuple[int, ...]:
    if x.ndim < 3:
        raise RuntimeError(
            "pixel_shuffle expects input to have at least 3 dimensions, but got input with "
            f"{x.ndim} dimension(s)"
        )
    if r <= 0:
        raise RuntimeError(f"pixel_shuffle expects a positive upscale_factor, but got {r}")
    *lead, c, h, w = x.shape
    if c % (r * r):
        raise RuntimeError(
            "pixel_shuffle expects its input's 'channel' dimension to be divisible by the square "
            "of upscale_factor, but "
            f"input.size(-3)={c} is not divisible by {r * r}"
        )
    return (*lead, c // (r * r), h * r, w * r)


@op(
    "pixel_shuffle(Tensor self, int upscale_factor) -> Tensor",
    spaces=_BOTH,
    method=False,
    half=False,
    meta=lambda x, r: MetaArray(_shuffle_shape(x, r), x.dtype),
    vjp={"self": "pixel_unshuffle(g, upscale_factor)"},
)
def pixel_shuffle(xp: Any, x: Any, r: int) -> Any:
    """(…, C·r², H, W) → (…, C, H·r, W·r)."""
    shape = _shuffle_shape(x, r)
    *lead, c, h, w = x.shape
    n = len(lead)
    parts = x.reshape(*lead, c // (r * r), r, r, h, w)
    order = (*range(n), n, n + 3, n + 1, n + 4, n + 2)
    return as_format_of(xp, xp.array(parts.transpose(order), order="C").reshape(shape), x)


def _unshuffle_shape(x: Any, r: int) -> tuple[int, ...]:
    if x.ndim < 3:
        raise RuntimeError(
            "pixel_unshuffle expects input to have at least 3 dimensions, but got input with "
            f"{x.ndim} dimension(s)"
        )
    if r <= 0:
        raise RuntimeError(f"pixel_unshuffle expects a positive downscale_factor, but got {r}")
    *lead, c, h, w = x.shape
    for what, n, i in (("height", h, -2), ("width", w, -1)):
        if n % r:
            raise RuntimeError(
                f"pixel_unshuffle expects {what} to be divisible by downscale_factor, but "
                f"input.size({i})={n} is not "
                f"divisible by {r}"
            )
    return (*lead, c * r * r, h // r, w // r)


@op(
    "pixel_unshuffle(Tensor self, int downscale_factor) -> Tensor",
    spaces=_BOTH,
    method=False,
    half=False,
    meta=lambda x, r: MetaArray(_unshuffle_shape(x, r), x.dtype),
    vjp={"self": "pixel_shuffle(g, downscale_factor)"},
)
def pixel_unshuffle(xp: Any, x: Any, r: int) -> Any:
    """(…, C, H·r, W·r) → (…, C·r², H, W)."""
    shape = _unshuffle_shape(x, r)
    *lead, c, h, w = x.shape
    n = len(lead)
    parts = x.reshape(*lead, c, h // r, r, w // r, r)
    order = (*range(n), n, n + 2, n + 4, n + 1, n + 3)
    return xp.array(parts.transpose(order), order="C").reshape(shape)


@op(
    "channel_shuffle(Tensor self, SymInt groups) -> Tensor",
    spaces=_BOTH,
    method=False,
    half=False,
    meta=lambda x, groups: MetaArray(x.shape, x.dtype),
    vjp={"self": "channel_shuffle(g, self.shape[1] // groups)"},
)
def channel_shuffle(xp: Any, x: Any, groups: int) -> Any:
    """Channels of (N, C, …) dealt out: as a (groups, C / groups) table read by columns
    (arXiv:1707.01083)."""
    if x.ndim < 3:
        raise RuntimeError(
            f"channel_shuffle expects input with > 2 dims, but got input with sizes {list(x.shape)}"
        )
    if groups <= 0 or x.shape[1] % groups:
        raise RuntimeError(
            f"Number of channels must be divisible by groups. Got {x.shape[1]} channels and "
            f"{groups} groups."
        )
    table = x.reshape(x.shape[0], groups, x.shape[1] // groups, *x.shape[2:])
    return xp.array(table.swapaxes(1, 2), order="C").reshape(x.shape)


@face("native_channel_shuffle", method=False, spaces=_BOTH)
def native_channel_shuffle(self: Any, groups: int) -> Any:
    """`channel_shuffle`."""
    return channel_shuffle.call(self, groups)

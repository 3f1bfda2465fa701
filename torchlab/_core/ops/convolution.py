"""Convolution in one, two or three dimensions, and its transpose.

Note: three operators that are closed under differentiation
    A convolution is linear in the input x and in the weight w. With
        y  = conv(x, w)             (N, I, …), (O, I/groups, …) → (N, O, …)
        gx = input_grad(g, w)       the gradient of x; as a forward operation, the transposed
        convolution
        gw = weight_grad(g, x)      the gradient of w
    each of the three has the other two as its gradients, so that derivatives of any order are made
    of them. `convolution` is PyTorch's operator with the flag `transposed`.

Note: how it is computed
    oneDNN does it where it is installed (`backends.onednn`, the extra `fast`). Without it,
    for each sample the patches are copied into a matrix of (I·k, positions) that stays in the
    cache,
    and BLAS multiplies it with the weight (O, I·k) straight into the result: on one core this is
    faster than one large product, for which the matrix of all patches would go through memory.
Source: https://docs.pytorch.org/docs/2.13/nn.functional.html#convolution-functions
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from torchlab._core import dtype as dt
from torchlab._core import layout
from torchlab._core.backends import onednn
from torchlab._core.backends.meta import MetaArray
from torchlab._core.dispatch import composed, modes
from torchlab._core.dispatch.op import face, op
from torchlab._core.dispatch.registry import aten, vjp_helper
from torchlab._core.ops.kernels import as_format_of

# ---- shapes -------------------------------------------------------------------------------------


def _out_size(n: int, k: int, stride: int, padding: int, dilation: int) -> int:
    return (n + 2 * padding - dilation * (k - 1) - 1) // stride + 1


def _forward_shape(x: Any, w: Any, stride: Any, padding: Any, dilation: Any) -> tuple[int, ...]:
    sizes = zip(x[2:], w[2:], stride, padding, dilation, strict=True)
    return (x[0], w[0], *(_out_size(*s) for s in sizes))


def _transposed_shape(
    x: Any, w: Any, stride: Any, padding: Any, dilation: Any, output_padding: Any, groups: int
) -> Any:
    sizes = zip(x[2:], w[2:], stride, padding, dilation, output_padding, strict=True)
    return (
        x[0],
        w[1] * groups,
        *((n - 1) * s - 2 * p + d * (k - 1) + o + 1 for n, k, s, p, d, o in sizes),
    )


def _check_channels(x: Any, w: Any, bias: Any, transposed: bool, groups: int) -> None:
    """What does not depend on stride, padding and dilation."""
    if groups <= 0:
        raise RuntimeError("non-positive groups is not supported")
    xs, ws = list(x.shape), list(w.shape)
    if x.dtype != w.dtype:
        names = [dt.from_numpy(t.dtype).scalar_name for t in (x, w)]
        raise RuntimeError(
            f"Input type ({names[0]}) and weight type ({names[1]}) should be the same"
        )
    if bias is not None and bias.dtype != x.dtype:
        names = [dt.from_numpy(t.dtype).scalar_name for t in (x, bias)]
        raise RuntimeError(f"Input type ({names[0]}) and bias type ({names[1]}) should be the same")
    if x.ndim != w.ndim:
        raise RuntimeError(
            f"Expected {w.ndim}-dimensional input for {w.ndim}-dimensional weight{ws}, but got "
            f"{x.ndim}-dimensional "
            f"input of size {xs} instead"
        )
    what = "transposed=1, " if transposed else ""
    if ws[0] < groups:
        raise RuntimeError(
            f"Given groups={groups}, expected weight to be at least {groups} at dimension 0, but "
            "got weight of size "
            f"{ws} instead"
        )
    if ws[0] % groups:
        raise RuntimeError(
            f"Given groups={groups}, expected weight to be divisible by {groups} at dimension 0, "
            "but got weight of size "
            f"{ws} instead"
        )
    channels = ws[0] if transposed else ws[1] * groups
    if xs[1] != channels:
        raise RuntimeError(
            f"Given {what}groups={groups}, weight of size {ws}, expected input{xs} to have "
            f"{channels} channels, but got "
            f"{xs[1]} channels instead"
        )
    out = ws[1] * groups if transposed else ws[0]
    if bias is not None and bias.shape != (out,):
        raise RuntimeError(
            f"Given {what}weight of size {ws}, expected bias to be 1-dimensional with {out} "
            "elements, but got bias of "
            f"size {list(bias.shape)} instead"
        )


def _check(
    x: Any,
    w: Any,
    bias: Any,
    stride: Any,
    padding: Any,
    dilation: Any,
    transposed: bool,
    output_padding: Any,
    groups: int,
) -> None:
    """Raise PyTorch's errors for shapes that do not fit."""
    if any(v < 0 for v in padding):
        raise RuntimeError("negative padding is not supported")
    if any(v <= 0 for v in stride):
        raise RuntimeError("non-positive stride is not supported")
    if any(v <= 0 for v in dilation):
        raise RuntimeError("dilation should be greater than zero")
    _check_channels(x, w, bias, transposed, groups)
    if transposed:
        for o, s, d in zip(output_padding, stride, dilation, strict=True):
            if o >= s and o >= d:
                raise RuntimeError(
                    "output padding must be smaller than either stride or dilation, but got "
                    "output_padding "
                    f"{list(output_padding)}, stride {list(stride)}, dilation {list(dilation)}"
                )
        return
    padded = [n + 2 * p for n, p in zip(x.shape[2:], padding, strict=True)]
    kernel = [d * (k - 1) + 1 for k, d in zip(w.shape[2:], dilation, strict=True)]
    if any(k > n for k, n in zip(kernel, padded, strict=True)):
        raise RuntimeError(
            f"Calculated padded input size per channel: ({' x '.join(map(str, padded))}). Kernel "
            "size: "
            f"({' x '.join(map(str, kernel))}). Kernel size can't be greater than actual input size"
        )


# ---- kernels ------------------------------------------------------------------------------------


def _pad(xp: Any, x: Any, padding: Any) -> Any:
    if not any(padding):
        return x
    inner = tuple(slice(p, p + n) for n, p in zip(x.shape[2:], padding, strict=True))
    r = xp.zeros(
        (*x.shape[:2], *(n + 2 * p for n, p in zip(x.shape[2:], padding, strict=True))), x.dtype
    )
    r[(..., *inner)] = x
    return r


def _patches(xp: Any, x: Any, kernel: Any, out: Any, stride: Any, dilation: Any) -> Any:
    """A view (N, C, *kernel, *out) of a padded input: the elements under each tap of the kernel."""
    s = x.strides[2:]
    taps = tuple(a * d for a, d in zip(s, dilation, strict=True))
    steps = tuple(a * d for a, d in zip(s, stride, strict=True))
    shape = (*x.shape[:2], *kernel, *out)
    return xp.lib.stride_tricks.as_strided(x, shape, (*x.strides[:2], *taps, *steps))


def _exact(n: Any, k: Any, stride: Any, padding: Any, dilation: Any, out: Any) -> bool:
    """Whether a convolution of an input of this size gives just `out` (a transposed one with an
    output padding beyond its stride leaves some of its positions out)."""
    return tuple(map(_out_size, n, k, stride, padding, dilation)) == tuple(out)


def _pointwise(kernel: Any, stride: Any) -> bool:
    """A 1×1 kernel that leaves no gaps: the input itself is the matrix of patches."""
    return all(k == 1 for k in kernel) and all(s == 1 for s in stride)


def conv_forward(
    xp: Any, x: Any, w: Any, stride: Any, padding: Any, dilation: Any, groups: int
) -> Any:
    """(N, I, …), (O, I / groups, …) → (N, O, …)."""
    shape = _forward_shape(x.shape, w.shape, stride, padding, dilation)
    n, o, spatial = shape[0], shape[1], shape[2:]
    kernel = w.shape[2:]
    positions = layout.numel(spatial)
    if xp is np and onednn.fits(x, w) and positions and n:
        out = onednn.empty_like_format(shape, x)
        return onednn.forward(x, w, out, stride, padding, dilation, groups)
    result = xp.empty((n, groups, o // groups, positions), x.dtype)
    if not result.size or not w.size:
        result[...] = 0
        return result.reshape(shape)
    x = _pad(xp, x, padding)
    weight = w.reshape(groups, o // groups, -1)
    if _pointwise(kernel, stride):
        rows = xp.ascontiguousarray(x).reshape(n, groups, -1, positions)
        return xp.matmul(weight, rows, out=result).reshape(shape)
    view = _patches(xp, x, kernel, spatial, stride, dilation)
    patches = xp.empty(view.shape[1:], x.dtype)
    matrix = patches.reshape(groups, -1, positions)
    if groups == 1:
        weight, matrix, result = weight[0], matrix[0], result.reshape(n, o, positions)
    for i in range(n):
        patches[...] = view[i]
        xp.matmul(weight, matrix, out=result[i])
    return result.reshape(shape)


def conv_input_grad(
    xp: Any, g: Any, w: Any, shape: Any, stride: Any, padding: Any, dilation: Any, groups: int
) -> Any:
    """The transposed convolution: (N, O, …), (O, I / groups, …) → `shape` = (N, I, …)."""
    n, o = g.shape[:2]
    kernel, spatial = w.shape[2:], g.shape[2:]
    sizes = shape[2:], w.shape[2:], stride, padding, dilation
    if (
        xp is np
        and w.shape[1] >= 4
        and _exact(*sizes, g.shape[2:])
        and layout.numel(shape)
        and onednn.fits(g, w)
    ):
        out = onednn.empty_like_format(shape, g)
        return onednn.input_grad(g, w, out, stride, padding, dilation, groups)
    padded = tuple(m + 2 * p for m, p in zip(shape[2:], padding, strict=True))
    result = xp.zeros((*shape[:2], *padded), g.dtype)
    if g.size and w.size and result.size:
        positions = layout.numel(spatial)
        weight = xp.ascontiguousarray(w.reshape(groups, o // groups, -1).transpose(0, 2, 1))
        rows = xp.ascontiguousarray(g).reshape(n, groups, o // groups, positions)
        if _pointwise(kernel, stride):
            xp.matmul(weight, rows, out=result.reshape(n, groups, -1, positions))
        else:
            taps = list(itertools.product(*(range(k) for k in kernel)))
            places = [
                tuple(
                    slice(t * d, t * d + (m - 1) * s + 1, s)
                    for t, d, m, s in zip(tap, dilation, spatial, stride)
                )
                for tap in taps
            ]
            patches = xp.empty((groups, weight.shape[1], positions), g.dtype)
            columns = patches.reshape(shape[1], len(taps), *spatial)
            for i in range(n):
                xp.matmul(weight, rows[i], out=patches)
                target = result[i]
                for j, place in enumerate(places):
                    part = target[(slice(None), *place)]
                    part += columns[:, j]
    if any(padding):
        inner = tuple(slice(p, p + m) for m, p in zip(shape[2:], padding, strict=True))
        result = xp.ascontiguousarray(result[(..., *inner)])
    return result


def conv_weight_grad(
    xp: Any, g: Any, x: Any, shape: Any, stride: Any, padding: Any, dilation: Any, groups: int
) -> Any:
    """(N, O, …), (N, I, …) → `shape` = (O, I / groups, …)."""
    sizes = x.shape[2:], shape[2:], stride, padding, dilation
    if xp is np and _exact(*sizes, g.shape[2:]) and layout.numel(shape) and onednn.fits(g, x):
        out = np.empty(shape, g.dtype)
        return onednn.weight_grad(g, x, out, stride, padding, dilation, groups)
    n, o = g.shape[:2]
    kernel, spatial = shape[2:], g.shape[2:]
    result = xp.zeros((groups, o // groups, layout.numel(shape[1:])), g.dtype)
    if g.size and x.size and result.size:
        positions = layout.numel(spatial)
        rows = xp.ascontiguousarray(g).reshape(n, groups, o // groups, positions)
        view = _patches(xp, _pad(xp, x, padding), kernel, spatial, stride, dilation)
        patches = xp.empty(view.shape[1:], g.dtype)
        matrix = patches.reshape(groups, -1, positions).transpose(0, 2, 1)
        for i in range(n):
            patches[...] = view[i]
            result += xp.matmul(rows[i], matrix)
    return result.reshape(shape)


# ---- operators ----------------------------------------------------------------------------------


def _result_shape(
    x: Any,
    w: Any,
    stride: Any,
    padding: Any,
    dilation: Any,
    transposed: bool,
    output_padding: Any,
    groups: int,
) -> tuple[int, ...]:
    if transposed:
        return _transposed_shape(
            x.shape, w.shape, stride, padding, dilation, output_padding, groups
        )
    return _forward_shape(x.shape, w.shape, stride, padding, dilation)


def _convolution_meta(x: Any, w: Any, bias: Any, *geometry: Any) -> Any:
    _check(x, w, bias, *geometry)
    return MetaArray(_result_shape(x, w, *geometry), x.dtype)


@op(
    "convolution(Tensor input, Tensor weight, Tensor? bias, SymInt[] stride, SymInt[] padding, "
    "SymInt[] dilation, "
    "bool transposed, SymInt[] output_padding, SymInt groups) -> Tensor",
    method=False,
    meta=_convolution_meta,
    autocast="lower:accelerator",
    vjp={
        "input, weight, bias": (
            "convolution_vjp(g, input, weight, stride, padding, dilation, "
            "transposed, groups, needs)"
        )
    },
)
def convolution(
    xp: Any,
    x: Any,
    w: Any,
    bias: Any,
    stride: Any,
    padding: Any,
    dilation: Any,
    transposed: bool,
    output_padding: Any,
    groups: int,
) -> Any:
    """Cross-correlation of (N, I, …) with (O, I / groups, …); `transposed`: weight (I, O / groups,
    …)."""
    _check(x, w, bias, stride, padding, dilation, transposed, output_padding, groups)
    if transposed:
        shape = _transposed_shape(
            x.shape, w.shape, stride, padding, dilation, output_padding, groups
        )
        r = conv_input_grad(xp, x, w, shape, stride, padding, dilation, groups)
    else:
        r = conv_forward(xp, x, w, stride, padding, dilation, groups)
    if bias is not None:
        r += bias.reshape(-1, *(1,) * (x.ndim - 2))
    return as_format_of(xp, r, x, w)


def conj_of(x: Any) -> Any:
    """The conjugate of complex tensors: a convolution is linear in each of its operands."""
    return aten.conj(x) if x._k.dtype.is_complex else x


@vjp_helper
def convolution_vjp(
    g: Any,
    x: Any,
    w: Any,
    stride: Any,
    padding: Any,
    dilation: Any,
    transposed: bool,
    groups: int,
    needs: Any,
) -> Any:
    """The gradients of input, weight and bias that are needed."""
    if modes.SLOW and modes.dispatched() and not modes.grad_enabled():
        bias_sizes = [g._a.shape[1]] if needs[2] else None
        return composed.convolution_backward(
            g, x, w, bias_sizes, list(stride), list(padding), list(dilation), transposed,
            [0] * len(stride), groups, list(needs),
        )  # fmt: skip
    geometry = (stride, padding, dilation)
    gx = gw = gb = None
    if transposed:
        if needs[0]:
            gx = _conv_to(x._a.shape, g, conj_of(w), *geometry, groups)
        if needs[1]:
            gw = _convolution_weight_grad.call(conj_of(x), g, w._a.shape, *geometry, groups)
    else:
        with onednn.first_argument_stays():
            if needs[0]:
                gx = _convolution_input_grad.call(g, conj_of(w), x._a.shape, *geometry, groups)
            if needs[1]:
                gw = _convolution_weight_grad.call(g, conj_of(x), w._a.shape, *geometry, groups)
    if needs[2]:
        gb = aten.sum(g, (0, *range(2, g._a.ndim)))
    return gx, gw, gb


def _conv_to(
    shape: Any, x: Any, w: Any, stride: Any, padding: Any, dilation: Any, groups: int
) -> Any:
    """conv(x, w) of a known shape. The transpose's output padding may have made room for more."""
    r = convolution.call(x, w, None, stride, padding, dilation, False, (0,) * len(stride), groups)
    for d in range(2, len(shape)):
        if r._a.shape[d] != shape[d]:
            r = aten.narrow(r, d, 0, shape[d])
    return r


@op(
    "_convolution_input_grad(Tensor grad_output, Tensor weight, SymInt[] input_size, SymInt[] "
    "stride, SymInt[] padding, "
    "SymInt[] dilation, SymInt groups) -> Tensor",
    public=False,
    meta=lambda g, w, shape, *rest: MetaArray(shape, g.dtype),
    vjp={
        "grad_output, weight": (
            "conv_input_grad_vjp(g, grad_output, weight, stride, padding, dilation, groups, needs)"
        )
    },
)
def _convolution_input_grad(
    xp: Any, g: Any, w: Any, input_size: Any, stride: Any, padding: Any, dilation: Any, groups: int
) -> Any:
    """The gradient of convolution's input."""
    return as_format_of(
        xp, conv_input_grad(xp, g, w, tuple(input_size), stride, padding, dilation, groups), g
    )


@op(
    "_convolution_weight_grad(Tensor grad_output, Tensor input, SymInt[] weight_size, SymInt[] "
    "stride, SymInt[] padding, "
    "SymInt[] dilation, SymInt groups) -> Tensor",
    public=False,
    meta=lambda g, x, shape, *rest: MetaArray(shape, g.dtype),
    vjp={
        "grad_output, input": (
            "conv_weight_grad_vjp(g, grad_output, input, stride, padding, dilation, groups, needs)"
        )
    },
)
def _convolution_weight_grad(
    xp: Any, g: Any, x: Any, weight_size: Any, stride: Any, padding: Any, dilation: Any, groups: int
) -> Any:
    """The gradient of convolution's weight."""
    return conv_weight_grad(xp, g, x, tuple(weight_size), stride, padding, dilation, groups)


@vjp_helper
def conv_input_grad_vjp(
    v: Any, g: Any, w: Any, stride: Any, padding: Any, dilation: Any, groups: int, needs: Any
) -> Any:
    """v is shaped like the input."""
    geometry = (stride, padding, dilation)
    return (
        _conv_to(g._a.shape, v, conj_of(w), *geometry, groups) if needs[0] else None,
        _convolution_weight_grad.call(conj_of(g), v, w._a.shape, *geometry, groups)
        if needs[1]
        else None,
    )


@vjp_helper
def conv_weight_grad_vjp(
    v: Any, g: Any, x: Any, stride: Any, padding: Any, dilation: Any, groups: int, needs: Any
) -> Any:
    """v is shaped like the weight."""
    geometry = (stride, padding, dilation)
    return (
        _conv_to(g._a.shape, conj_of(x), v, *geometry, groups) if needs[0] else None,
        _convolution_input_grad.call(conj_of(g), v, x._a.shape, *geometry, groups)
        if needs[1]
        else None,
    )


# ---- public -------------------------------------------------------------------------------------


def _tuple(value: Any, n: int, name: str) -> tuple[int, ...]:
    if isinstance(value, int):
        return (value,) * n
    r = tuple(int(v) for v in value)
    if len(r) == 1:
        return r * n
    if len(r) != n:
        raise RuntimeError(
            f"expected {name} to be a single integer value or a list of {n} values to match the "
            f"convolution dimensions, but got {name}={list(r)}"
        )
    return r


def _batched(name: str, x: Any, n: int) -> tuple[Any, bool]:
    """A sample without batch dimension becomes a batch of one."""
    if x._a.ndim == n + 2:
        return x, False
    if x._a.ndim == n + 1:
        return aten.unsqueeze(x, 0), True
    raise RuntimeError(
        f"Expected {n + 1}D (unbatched) or {n + 2}D (batched) input to {name}, but got input of "
        f"size: {list(x._a.shape)}"
    )


def _conv(
    n: int, x: Any, w: Any, bias: Any, stride: Any, padding: Any, dilation: Any, groups: int
) -> Any:
    name = f"conv{n}d"
    x, alone = _batched(name, x, n)
    stride, dilation = _tuple(stride, n, "stride"), _tuple(dilation, n, "dilation")
    if isinstance(padding, str):
        _check_channels(x._a, w._a, None if bias is None else bias._a, False, groups)
        x, padding = _named_padding(padding, x, w, stride, dilation)
    else:
        padding = _tuple(padding, n, "padding")
    r = convolution.call(x, w, bias, stride, padding, dilation, False, (0,) * n, groups)
    return aten.squeeze(r, 0) if alone else r


def _named_padding(
    padding: str, x: Any, w: Any, stride: Any, dilation: Any
) -> tuple[Any, tuple[int, ...]]:
    """'valid' or 'same'. An odd total puts one element more at the end: the input is padded
    first."""
    if padding == "valid":
        return x, (0,) * len(stride)
    if padding != "same":
        raise RuntimeError(f"Invalid padding string: '{padding}'; it must be 'valid' or 'same'")
    if any(s != 1 for s in stride):
        raise RuntimeError("padding='same' is not supported for strided convolutions")
    totals = [d * (k - 1) for k, d in zip(w._a.shape[2:], dilation, strict=True)]
    if any(t % 2 for t in totals):
        extra = [v for t in reversed(totals) for v in (0, t % 2)]
        x = aten.constant_pad_nd(x, extra, 0)
    return x, tuple(t // 2 for t in totals)


def _conv_transpose(
    n: int,
    x: Any,
    w: Any,
    bias: Any,
    stride: Any,
    padding: Any,
    output_padding: Any,
    groups: int,
    dilation: Any,
) -> Any:
    x, alone = _batched(f"conv_transpose{n}d", x, n)
    geometry = [
        _tuple(v, n, k)
        for v, k in ((stride, "stride"), (padding, "padding"), (dilation, "dilation"))
    ]
    r = convolution.call(
        x, w, bias, *geometry, True, _tuple(output_padding, n, "output_padding"), groups
    )
    return aten.squeeze(r, 0) if alone else r


def _declare(n: int) -> None:
    where = {1: "(N, C, L)", 2: "(N, C, H, W)", 3: "(N, C, D, H, W)"}[n]

    def conv(
        self: Any,
        weight: Any,
        bias: Any = None,
        stride: Any = 1,
        padding: Any = 0,
        dilation: Any = 1,
        groups: int = 1,
    ) -> Any:
        return _conv(n, self, weight, bias, stride, padding, dilation, groups)

    def conv_transpose(
        self: Any,
        weight: Any,
        bias: Any = None,
        stride: Any = 1,
        padding: Any = 0,
        output_padding: Any = 0,
        groups: int = 1,
        dilation: Any = 1,
    ) -> Any:
        return _conv_transpose(
            n, self, weight, bias, stride, padding, output_padding, groups, dilation
        )

    conv.__doc__ = (
        f"Convolution of {where} with (O, C / groups, …); padding: numbers, 'same' or 'valid'."
    )
    conv_transpose.__doc__ = (
        f"The transpose (gradient) of a convolution: {where}, weight (C, O / groups, …)."
    )
    for name, body in ((f"conv{n}d", conv), (f"conv_transpose{n}d", conv_transpose)):
        body.__name__ = body.__qualname__ = name
        face(name, method=False, spaces=("torch", "nn.functional"), autocast="lower")(body)


for _n in (1, 2, 3):
    _declare(_n)


@face("conv_tbc", method=False, spaces=("torch", "nn.functional"), autocast="lower")
def conv_tbc(self: Any, weight: Any, bias: Any, pad: int = 0) -> Any:
    """Convolution of sequences (T, N, C) with (taps, C, O) and bias (O) → (T', N, O)."""
    if self._a.ndim != 3 or weight._a.ndim != 3 or bias._a.ndim != 1:
        raise RuntimeError(
            "conv_tbc: Input must have 3 dims: time, batch, in_channel; weight 3 dims: "
            "kernel_width, in_channels, out_channels; bias 1 dim. Got "
            f"{list(self._a.shape)}, {list(weight._a.shape)} and {list(bias._a.shape)}"
        )
    x, w = aten.permute(self, (1, 2, 0)), aten.permute(weight, (2, 1, 0))
    r = convolution.call(x, w, bias, (1,), (pad,), (1,), False, (0,), 1)
    return aten.contiguous(aten.permute(r, (2, 0, 1)))

"""One layer of a simple recurrent network in one direction, as one operator.

    h' = tanh(W x + b + U h + b'), or relu

Source: https://docs.pytorch.org/docs/2.13/generated/torch.nn.RNN.html
"""

from __future__ import annotations

from typing import Any

from torchlab._core.dispatch.op import op
from torchlab._core.dispatch.registry import vjp_helper
from torchlab._core.ops import _recurrent as shared
from torchlab._core.ops.kernels import limit


def _meta(
    x: Any, h: Any, w_ih: Any, w_hh: Any, b_ih: Any, b_hh: Any, relu: bool, sizes: Any,
    backwards: bool, keep: bool,
) -> Any:  # fmt: skip
    return shared.line_meta(x, (h,), sizes, keep, ((1, h.shape[1]),))


@op(
    "_rnn_line(Tensor input, Tensor hx, Tensor w_ih, Tensor w_hh, Tensor? b_ih, Tensor? b_hh, "
    "bool relu, int[] batch_sizes, bool reverse, bool keep) -> (Tensor, Tensor, Tensor)",
    public=False,
    meta=_meta,
    vjp={
        "input, hx, w_ih, w_hh, b_ih, b_hh": (
            "rnn_line_backward(g0, g1, input, hx, w_ih, w_hh, b_ih, b_hh, result2, relu, "
            "batch_sizes, reverse, needs)"
        )
    },
)
def rnn_line(
    xp: Any, x: Any, h: Any, w_ih: Any, w_hh: Any, b_ih: Any, b_hh: Any, relu: bool, sizes: Any,
    backwards: bool, keep: bool,
) -> Any:  # fmt: skip
    """(T, N, in), or packed (total, in), → the outputs and the last h; and with `keep` the outputs
    once more, for backward: the user may write to the others."""
    hidden = w_hh.shape[1]
    total, batch = x.size // x.shape[-1], h.shape[0]
    last, products = xp.empty(h.shape, x.dtype), xp.empty(h.shape, x.dtype)
    biases = [b for b in (b_ih, b_hh) if b is not None]
    start, zero = h, x.dtype.type(0)
    if total == batch:
        sums = shared.once(xp, 1, x.reshape(batch, -1), w_ih)[0]
        sums += shared.once(xp, 1, h, w_hh)[0]
        out = xp.empty((total, hidden), x.dtype)
        xp.add(sums, sum(biases) if biases else zero, out=out)
        h = limit(xp.maximum, out, zero, out) if relu else xp.tanh(out, out=out)
    else:
        rows = shared.with_ones(xp, x, bool(biases))
        out = xp.matmul(rows, shared.columns(xp, w_ih, (0,), 0, biases)[0])
        w = xp.ascontiguousarray(w_hh.T)
        for row, n in shared.spans(total, batch, sizes, backwards):
            if n != h.shape[0]:
                h = shared.passed(xp, h, start, last, n)
            y = out[row : row + n]
            y += xp.matmul(h, w, out=products[:n])
            h = limit(xp.maximum, y, zero, y) if relu else xp.tanh(y, out=y)
    last[: h.shape[0]] = h
    shape = (*x.shape[:-1], hidden)
    if keep:
        return out.reshape(shape).copy(), last, out
    return out.reshape(shape), last, xp.empty((0, hidden), x.dtype)


@vjp_helper
def rnn_line_backward(
    g: Any, gh: Any, x: Any, h: Any, w_ih: Any, w_hh: Any, b_ih: Any, b_hh: Any, states: Any,
    relu: bool, sizes: Any, backwards: bool, needs: Any,
) -> Any:  # fmt: skip
    """The gradients that are needed."""

    def kernel(mask: list[bool]) -> Any:
        return _rnn_line_backward.call(
            g, gh, x, h, w_ih, w_hh, states, relu, sizes, backwards, mask
        )

    kind, args = "rnn_relu" if relu else "rnn_tanh", (x, h, w_ih, w_hh, b_ih, b_hh)
    return shared.line_gradients(kind, kernel, (g, gh), args, sizes, backwards, needs)


def _backward_meta(
    g: Any, gh: Any, x: Any, h: Any, w_ih: Any, w_hh: Any, states: Any, relu: bool, sizes: Any,
    backwards: bool, mask: Any,
) -> Any:  # fmt: skip
    return shared.gradients_meta(x, (h,), w_ih, w_hh, mask)


@op(
    "_rnn_line_backward(Tensor? grad_output, Tensor? grad_hx, Tensor input, Tensor hx, Tensor "
    "w_ih, Tensor w_hh, Tensor states, bool relu, int[] batch_sizes, bool reverse, bool[6] "
    "output_mask) -> (Tensor, Tensor, Tensor, Tensor, Tensor, Tensor)",
    public=False,
    meta=_backward_meta,
)
def _rnn_line_backward(
    xp: Any, g: Any, gh: Any, x: Any, h: Any, w_ih: Any, w_hh: Any, states: Any, relu: bool,
    sizes: Any, backwards: bool, mask: Any,
) -> Any:  # fmt: skip
    """The gradients of input, hx, w_ih, w_hh, b_ih, b_hh; an empty array where the mask says
    no."""
    total, hidden = states.shape
    w = xp.ascontiguousarray(w_hh)
    walk = shared.spans(total, h.shape[0], sizes, backwards)
    d = xp.empty((total, hidden), x.dtype)
    start, g_h = shared.start_or_zeros(xp, gh, h), xp.empty(h.shape, x.dtype)
    rows = None if g is None else g.reshape(total, hidden)
    spare = xp.empty(h.shape, x.dtype)
    one, zero = x.dtype.type(1), x.dtype.type(0)
    dh = start[: walk[-1][1]].copy()
    for row, n in reversed(walk):
        if n != dh.shape[0]:  # what ends here, as time runs back, began there
            dh = shared.passed(xp, dh, start, g_h, n)
        end = row + n
        if rows is not None:
            dh += rows[row:end]
        y, part = states[row:end], d[row:end]
        if relu:
            part[...] = dh
            xp.copyto(part, zero, where=y <= zero)
        else:
            u = xp.multiply(y, y, out=spare[:n])
            xp.subtract(one, u, out=u)
            xp.multiply(u, dh, out=part)
        dh = xp.matmul(part, w, out=dh)
    g_h[: dh.shape[0]] = dh
    none = xp.empty(0, x.dtype)
    d = d[None]
    sums = shared.bias_gradient(xp, d) if mask[4] or mask[5] else none
    g_hh = none
    if mask[3]:
        before = shared.in_rows(xp, shared.before(xp, states, h, walk), backwards)
        g_hh = shared.weight_gradient(xp, d, before)
    return (
        shared.input_gradient(xp, d, w_ih, x.shape) if mask[0] else none,
        g_h if mask[1] else none,
        shared.weight_gradient(xp, d, x.reshape(total, -1)) if mask[2] else none,
        g_hh,
        sums if mask[4] else none,
        sums.copy() if mask[5] else none,
    )

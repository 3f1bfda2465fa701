"""One layer of gated recurrent units in one direction, as one operator.

    r, z = σ(W x + b + U h + b')      n = tanh(W_n x + b_n + r (U_n h + b'_n))
    h' = n + z (h - n)

r and z come with the other sign, σ(x) = 1 / (1 + exp(-x)), which the matrices bring along.
Source: arXiv:1406.1078; https://docs.pytorch.org/docs/2.13/generated/torch.nn.GRU.html
"""

from __future__ import annotations

from typing import Any

from torchlab._core.dispatch.op import op
from torchlab._core.dispatch.registry import vjp_helper
from torchlab._core.ops import _recurrent as shared

_SAVED = 4  # r, z, n and U_n h + b'_n


def _meta(
    x: Any, h: Any, w_ih: Any, w_hh: Any, b_ih: Any, b_hh: Any, sizes: Any, backwards: bool,
    keep: bool,
) -> Any:  # fmt: skip
    hidden = h.shape[1]
    return shared.line_meta(x, (h,), sizes, keep, ((_SAVED, hidden), (1, hidden)))


@op(
    "_gru_line(Tensor input, Tensor hx, Tensor w_ih, Tensor w_hh, Tensor? b_ih, Tensor? b_hh, "
    "int[] batch_sizes, bool reverse, bool keep) -> (Tensor, Tensor, Tensor, Tensor)",
    public=False,
    meta=_meta,
    vjp={
        "input, hx, w_ih, w_hh, b_ih, b_hh": (
            "gru_line_backward(g0, g1, input, hx, w_ih, w_hh, b_ih, b_hh, result2, result3, "
            "batch_sizes, reverse, needs)"
        )
    },
)
def gru_line(
    xp: Any, x: Any, h: Any, w_ih: Any, w_hh: Any, b_ih: Any, b_hh: Any, sizes: Any,
    backwards: bool, keep: bool,
) -> Any:  # fmt: skip
    """(T, N, in), or packed (total, in), → the outputs and the last h; and with `keep` what
    backward needs: the gates of each time, (4, n, hidden), and h' of all times."""
    hidden = w_hh.shape[1]
    total, batch = x.size // x.shape[-1], h.shape[0]
    out, last = xp.empty((total, hidden), x.dtype), xp.empty(h.shape, x.dtype)
    gates = xp.empty((_SAVED * total if keep else 0, hidden), x.dtype)
    bias = None if b_hh is None else b_hh[2 * hidden :]  # of n: not added to the input's part
    biases = [b for b in (b_ih, b_hh) if b is not None]
    if b_hh is not None:
        biases[-1] = b_hh.copy()
        biases[-1][2 * hidden :] = 0
    if total == batch:
        a = (
            gates.reshape(_SAVED, -1, hidden)
            if keep
            else xp.empty((_SAVED, batch, hidden), x.dtype)
        )
        inputs = shared.once(xp, 3, x.reshape(batch, -1), w_ih)
        products = shared.once(xp, 3, h, w_hh)
        if biases:
            inputs += sum(biases[1:], biases[0]).reshape(3, 1, -1)
        inputs[:2] += products[:2]
        xp.negative(inputs[:2], out=a[:2])
        _cell(xp, a, inputs[2], products[2], bias, h, out)
        last[...] = out
        return _results(xp, x, out, last, gates, keep)
    rows = shared.with_ones(xp, x, bool(biases))
    inputs = xp.matmul(rows, shared.columns(xp, w_ih, (0, 1, 2), 2, biases))
    w = shared.columns(xp, w_hh, (0, 1, 2), 2)
    products = xp.empty((3, batch, hidden), x.dtype)
    room = None if keep else xp.empty((_SAVED, batch, hidden), x.dtype)
    start = h
    for row, n in shared.spans(total, batch, sizes, backwards):
        if n != h.shape[0]:
            h = shared.passed(xp, h, start, last, n)
        end = row + n
        p = products if n == batch else products[:, :n]
        if room is None:
            a = gates[_SAVED * row : _SAVED * end].reshape(_SAVED, n, hidden)
        else:
            a = room if n == batch else room[:, :n]
        xp.matmul(h, w, out=p)
        part, y = inputs[:, row:end], out[row:end]
        xp.add(part[:2], p[:2], out=a[:2])
        _cell(xp, a, part[2], p[2], bias, h, y)
        h = y
    last[: h.shape[0]] = h
    return _results(xp, x, out, last, gates, keep)


def _cell(xp: Any, a: Any, x: Any, p: Any, bias: Any, h: Any, y: Any) -> None:
    """a (4, n, hidden): what goes into r and z, and room; it becomes the gates and U_n h + b'_n.
    x, p: the parts of input and state of n. y becomes h'."""
    s = a[:2]
    xp.exp(s, out=s)
    xp.add(s, s.dtype.type(1), out=s)
    xp.reciprocal(s, out=s)
    r, z, new, of_h = a
    if bias is None:
        of_h[...] = p
    else:
        xp.add(p, bias, out=of_h)
    xp.multiply(r, of_h, out=new)
    xp.add(new, x, out=new)
    xp.tanh(new, out=new)
    xp.subtract(h, new, out=y)
    y *= z
    y += new


def _results(xp: Any, x: Any, out: Any, last: Any, gates: Any, keep: bool) -> Any:
    result = out.reshape(*x.shape[:-1], out.shape[1])
    if keep:  # the user may write to the results
        return result.copy(), last, gates, out
    return result, last, gates, xp.empty((0, out.shape[1]), x.dtype)


@vjp_helper
def gru_line_backward(
    g: Any, gh: Any, x: Any, h: Any, w_ih: Any, w_hh: Any, b_ih: Any, b_hh: Any, gates: Any,
    states: Any, sizes: Any, backwards: bool, needs: Any,
) -> Any:  # fmt: skip
    """The gradients that are needed."""

    def kernel(mask: list[bool]) -> Any:
        return _gru_line_backward.call(
            g, gh, x, h, w_ih, w_hh, gates, states, sizes, backwards, mask
        )

    args = (x, h, w_ih, w_hh, b_ih, b_hh)
    return shared.line_gradients("gru", kernel, (g, gh), args, sizes, backwards, needs)


def _backward_meta(
    g: Any, gh: Any, x: Any, h: Any, w_ih: Any, w_hh: Any, gates: Any, states: Any, sizes: Any,
    backwards: bool, mask: Any,
) -> Any:  # fmt: skip
    return shared.gradients_meta(x, (h,), w_ih, w_hh, mask)


@op(
    "_gru_line_backward(Tensor? grad_output, Tensor? grad_hx, Tensor input, Tensor hx, Tensor "
    "w_ih, Tensor w_hh, Tensor gates, Tensor states, int[] batch_sizes, bool reverse, bool[6] "
    "output_mask) -> (Tensor, Tensor, Tensor, Tensor, Tensor, Tensor)",
    public=False,
    meta=_backward_meta,
)
def _gru_line_backward(
    xp: Any, g: Any, gh: Any, x: Any, h: Any, w_ih: Any, w_hh: Any, gates: Any, states: Any,
    sizes: Any, backwards: bool, mask: Any,
) -> Any:  # fmt: skip
    """The gradients of input, hx, w_ih, w_hh, b_ih, b_hh; an empty array where the mask says
    no."""
    hidden, total, batch = w_hh.shape[1], states.shape[0], h.shape[0]
    w = xp.ascontiguousarray(w_hh).reshape(3, hidden, hidden)
    walk = shared.spans(total, batch, sizes, backwards)
    starts = shared.before(xp, states, h, walk)
    # n, r, z, U_n h + b'_n: the first three are the input's part, the last three that of h
    d = xp.empty((4, total, hidden), x.dtype)
    start, g_h = shared.start_or_zeros(xp, gh, h), xp.empty(h.shape, x.dtype)
    products = xp.empty((3, batch, hidden), x.dtype)
    slopes, room = xp.empty((2, batch, hidden), x.dtype), xp.empty((2, batch, hidden), x.dtype)
    rows = None if g is None else g.reshape(total, hidden)
    one = x.dtype.type(1)
    dh = start[: walk[-1][1]].copy()
    for (row, n), before in zip(reversed(walk), reversed(starts), strict=True):
        if n != dh.shape[0]:  # what ends here, as time runs back, began there
            dh = shared.passed(xp, dh, start, g_h, n)
        end = row + n
        p, q, (u, v) = (
            (products, slopes, room)
            if n == batch
            else (products[:, :n], slopes[:, :n], room[:, :n])
        )
        if rows is not None:
            dh += rows[row:end]
        r, z, new, of_h = a = gates[_SAVED * row : _SAVED * end].reshape(_SAVED, n, hidden)
        d_new, d_r, d_z, d_h = part = d[:, row:end]
        s = a[:2]
        xp.multiply(s, s, out=q)  # σ' = σ - σ²
        xp.subtract(s, q, out=q)
        q_r, q_z = q
        xp.subtract(before, new, out=u)
        u *= q_z
        xp.multiply(u, dh, out=d_z)
        xp.multiply(dh, z, out=v)  # what goes straight on to h
        dh -= v
        xp.multiply(new, new, out=u)
        xp.subtract(one, u, out=u)
        xp.multiply(u, dh, out=d_new)
        q_r *= of_h
        xp.multiply(q_r, d_new, out=d_r)
        xp.multiply(d_new, r, out=d_h)
        xp.matmul(part[1:], w, out=p)
        dh = xp.add.reduce(p, axis=0, out=dh)
        dh += v
    g_h[: dh.shape[0]] = dh
    none = xp.empty(0, x.dtype)
    sums = shared.bias_gradient(xp, d) if mask[4] or mask[5] else none
    g_hh = none
    if mask[3]:
        g_hh = shared.weight_gradient(xp, d[1:], shared.in_rows(xp, starts, backwards))
    return (
        shared.input_gradient(xp, d[:3], _last_first(xp, w_ih), x.shape) if mask[0] else none,
        g_h if mask[1] else none,
        _first_last(xp, shared.weight_gradient(xp, d[:3], x.reshape(total, -1)))
        if mask[2]
        else none,
        g_hh,
        _first_last(xp, sums[: 3 * hidden]) if mask[4] else none,
        sums[hidden:].copy() if mask[5] else none,
    )


def _last_first(xp: Any, w: Any) -> Any:
    """Gates r, z, n as n, r, z."""
    k = w.shape[0] // 3
    return xp.concatenate([w[2 * k :], w[: 2 * k]])


def _first_last(xp: Any, w: Any) -> Any:
    """And back."""
    k = w.shape[0] // 3
    return xp.concatenate([w[k:], w[:k]])

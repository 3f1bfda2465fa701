"""One layer of a long short-term memory in one direction, as one operator.

    i, f, o = σ(…), g = tanh(…)      each of W x + b + U h + b'
    c' = f c + i g                    h' = o tanh(c'), of a projected network W_hr o tanh(c')

Note: the order of the gates
    Parameters have i, f, g, o. The kernel keeps o, i, f, g: what goes through the sigmoid lies
    together, and what the cell's gradient multiplies, too. Those three come with the other sign,
    σ(x) = 1 / (1 + exp(-x)), which the matrices bring along.
Source: Hochreiter and Schmidhuber 1997; https://docs.pytorch.org/docs/2.13/generated/torch.nn.LSTM.html
"""

from __future__ import annotations

from typing import Any

from torchlab._core.dispatch.op import op
from torchlab._core.dispatch.registry import vjp_helper
from torchlab._core.ops import _recurrent as shared

_ORDER = (3, 0, 1, 2)
_SAVED = 5  # o, i, f, g and tanh(c')


def _meta(
    x: Any, h: Any, c: Any, w_ih: Any, w_hh: Any, b_ih: Any, b_hh: Any, w_hr: Any, sizes: Any,
    backwards: bool, keep: bool,
) -> Any:  # fmt: skip
    hidden = w_hh.shape[0] // 4
    return shared.line_meta(x, (h, c), sizes, keep, ((_SAVED, hidden), (1, hidden)))


@op(
    "_lstm_line(Tensor input, Tensor hx, Tensor cx, Tensor w_ih, Tensor w_hh, Tensor? b_ih, "
    "Tensor? b_hh, Tensor? w_hr, int[] batch_sizes, bool reverse, bool keep) -> "
    "(Tensor, Tensor, Tensor, Tensor, Tensor)",
    public=False,
    meta=_meta,
    grad_name="MkldnnRnnLayerBackward0",
    vjp={
        "input, hx, cx, w_ih, w_hh, b_ih, b_hh, w_hr": (
            "lstm_line_backward(g0, g1, g2, input, hx, cx, w_ih, w_hh, b_ih, b_hh, w_hr, result3, "
            "result4, batch_sizes, reverse, needs)"
        )
    },
)
def lstm_line(
    xp: Any, x: Any, h: Any, c: Any, w_ih: Any, w_hh: Any, b_ih: Any, b_hh: Any, w_hr: Any,
    sizes: Any, backwards: bool, keep: bool,
) -> Any:  # fmt: skip
    """(T, N, in), or packed (total, in), → the outputs, the last h and c; and with `keep` what
    backward needs: at each time the gates and tanh(c'), (5, n, hidden); c' of all times."""
    hidden, size = w_hh.shape[0] // 4, w_hh.shape[1]
    total, batch = x.size // x.shape[-1], h.shape[0]
    out = xp.empty((total, size), x.dtype)
    last_h, last_c = xp.empty(h.shape, x.dtype), xp.empty(c.shape, x.dtype)
    gates = xp.empty((_SAVED * total if keep else 0, hidden), x.dtype)
    cells = xp.empty((total if keep else 0, hidden), x.dtype)
    biases = [b for b in (b_ih, b_hh) if b is not None]
    spare = xp.empty((batch, hidden), x.dtype)
    if total == batch:
        a = (
            gates.reshape(_SAVED, -1, hidden)
            if keep
            else xp.empty((_SAVED, batch, hidden), x.dtype)
        )
        sums = shared.once(xp, 4, x.reshape(batch, -1), w_ih)
        sums += shared.once(xp, 4, h, w_hh)
        _once(xp, sums, biases, a)
        _cell(xp, a, c, last_c, w_hr, out, spare)
        if keep:
            cells[...] = last_c
        last_h[...] = out
        return out.reshape(*x.shape[:-1], size), last_h, last_c, gates, cells
    rows = shared.with_ones(xp, x, bool(biases))
    inputs = xp.matmul(rows, shared.columns(xp, w_ih, _ORDER, 3, biases))
    w = shared.columns(xp, w_hh, _ORDER, 3)
    products = xp.empty((4, batch, hidden), x.dtype)
    room = None if keep else xp.empty((_SAVED, batch, hidden), x.dtype)
    start_h, start_c, c = h, c, c if keep else c.copy()
    for row, n in shared.spans(total, batch, sizes, backwards):
        if n != h.shape[0]:
            h = shared.passed(xp, h, start_h, last_h, n)
            c = shared.passed(xp, c, start_c, last_c, n)
        end = row + n
        p = products if n == batch else products[:, :n]
        if room is None:
            a = gates[_SAVED * row : _SAVED * end].reshape(_SAVED, n, hidden)
            new = cells[row:end]
        else:
            a = room if n == batch else room[:, :n]
            new = c
        xp.matmul(h, w, out=p)
        xp.add(inputs[:, row:end], p, out=a[:4])
        h = out[row:end]
        _cell(xp, a, c, new, w_hr, h, spare)
        c = new
    last_h[: h.shape[0]] = h
    last_c[: c.shape[0]] = c
    return out.reshape(*x.shape[:-1], size), last_h, last_c, gates, cells


def _cell(xp: Any, a: Any, c: Any, new: Any, w_hr: Any, h: Any, spare: Any) -> None:
    """a (5, n, hidden): what goes into the gates, and room; it becomes the gates and tanh(c').
    `new` becomes c' and may be c; h becomes h'."""
    s = a[:3]
    xp.exp(s, out=s)
    xp.add(s, s.dtype.type(1), out=s)
    xp.reciprocal(s, out=s)
    o, i, f, g, t = a
    xp.tanh(g, out=g)
    xp.multiply(i, g, out=t)
    xp.multiply(f, c, out=new)
    xp.add(new, t, out=new)
    xp.tanh(new, out=t)
    if w_hr is None:
        xp.multiply(o, t, out=h)
    else:
        xp.matmul(xp.multiply(o, t, out=spare[: len(t)]), w_hr.T, out=h)


def _once(xp: Any, sums: Any, biases: Any, a: Any) -> None:
    """What goes into the gates, from W x + U h (4, n, hidden): the order and the signs."""
    if biases:
        bias = sum(biases[1:], biases[0]).reshape(4, 1, -1)
        xp.add(sums[3], bias[3], out=a[0])
        xp.add(sums[:3], bias[:3], out=a[1:4])
    else:
        a[0], a[1:4] = sums[3], sums[:3]
    xp.negative(a[:3], out=a[:3])


@vjp_helper
def lstm_line_backward(
    g: Any, gh: Any, gc: Any, x: Any, h: Any, c: Any, w_ih: Any, w_hh: Any, b_ih: Any, b_hh: Any,
    w_hr: Any, gates: Any, cells: Any, sizes: Any, backwards: bool, needs: Any,
) -> Any:  # fmt: skip
    """The gradients that are needed."""

    def kernel(mask: list[bool]) -> Any:
        return _lstm_line_backward.call(
            g, gh, gc, x, h, c, w_ih, w_hh, w_hr, gates, cells, sizes, backwards, mask
        )

    args = (x, h, c, w_ih, w_hh, b_ih, b_hh, w_hr)
    return shared.line_gradients("lstm", kernel, (g, gh, gc), args, sizes, backwards, needs)


def _backward_meta(
    g: Any, gh: Any, gc: Any, x: Any, h: Any, c: Any, w_ih: Any, w_hh: Any, w_hr: Any, gates: Any,
    cells: Any, sizes: Any, backwards: bool, mask: Any,
) -> Any:  # fmt: skip
    projection = (0,) if w_hr is None else w_hr.shape
    return shared.gradients_meta(x, (h, c), w_ih, w_hh, mask, projection)


@op(
    "_lstm_line_backward(Tensor? grad_output, Tensor? grad_hx, Tensor? grad_cx, Tensor input, "
    "Tensor hx, Tensor cx, Tensor w_ih, Tensor w_hh, Tensor? w_hr, Tensor gates, Tensor cells, "
    "int[] batch_sizes, bool reverse, bool[8] output_mask) -> "
    "(Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor)",
    public=False,
    meta=_backward_meta,
)
def _lstm_line_backward(
    xp: Any, g: Any, gh: Any, gc: Any, x: Any, h: Any, c: Any, w_ih: Any, w_hh: Any, w_hr: Any,
    gates: Any, cells: Any, sizes: Any, backwards: bool, mask: Any,
) -> Any:  # fmt: skip
    """The gradients of input, hx, cx, w_ih, w_hh, b_ih, b_hh, w_hr; an empty array where the mask
    says no."""
    hidden, size = w_hh.shape[0] // 4, w_hh.shape[1]
    total, batch = cells.shape[0], h.shape[0]
    w = xp.ascontiguousarray(w_hh).reshape(4, hidden, size)
    walk = shared.spans(total, batch, sizes, backwards)
    starts = shared.before(xp, cells, c, walk)
    d = xp.empty((4, total, hidden), x.dtype)  # i, f, g, o
    results = xp.empty((total, hidden), x.dtype)  # o tanh(c')
    ends = None if w_hr is None else xp.empty((total, size), x.dtype)  # gradients of h'
    start_h, start_c = shared.start_or_zeros(xp, gh, h), shared.start_or_zeros(xp, gc, c)
    g_h, g_c = xp.empty(h.shape, x.dtype), xp.empty(c.shape, x.dtype)
    products = xp.empty((4, batch, size), x.dtype)
    slopes, spare = xp.empty((3, batch, hidden), x.dtype), xp.empty((batch, hidden), x.dtype)
    rows = None if g is None else g.reshape(total, size)
    m = walk[-1][1]
    dh, dc = start_h[:m].copy(), start_c[:m].copy()
    for (row, n), before in zip(reversed(walk), reversed(starts), strict=True):
        if n != dh.shape[0]:  # what ends here, as time runs back, began there
            dh = shared.passed(xp, dh, start_h, g_h, n)
            dc = shared.passed(xp, dc, start_c, g_c, n)
        end = row + n
        p, q, u = (
            (products, slopes, spare) if n == batch else (products[:, :n], slopes[:, :n], spare[:n])
        )
        if rows is not None:
            dh += rows[row:end]
        a = gates[_SAVED * row : _SAVED * end].reshape(_SAVED, n, hidden)
        o, i, f, new, t = a
        r = xp.multiply(o, t, out=results[row:end])
        if ends is None:
            dr = dh
        else:
            ends[row:end] = dh
            dr = xp.matmul(dh, w_hr)
        xp.multiply(t, r, out=u)  # dc += dr o (1 - tanh²) = dr (o - tanh · o tanh)
        xp.subtract(o, u, out=u)
        u *= dr
        dc += u
        s = a[:3]
        xp.multiply(s, s, out=q)  # σ' = σ - σ²
        xp.subtract(s, q, out=q)
        q_o, q_i, q_f = q
        q_o *= t
        part = d[:, row:end]
        xp.multiply(q_o, dr, out=part[3])
        q_i *= new
        q_f *= before
        xp.multiply(q[1:], dc, out=part[:2])
        xp.multiply(i, new, out=u)  # i (1 - g²)
        u *= new
        xp.subtract(i, u, out=u)
        xp.multiply(u, dc, out=part[2])
        dc *= f
        xp.matmul(part, w, out=p)
        dh = xp.add.reduce(p, axis=0, out=dh)
    g_h[: dh.shape[0]] = dh
    g_c[: dc.shape[0]] = dc
    none = xp.empty(0, x.dtype)
    bias = shared.bias_gradient(xp, d) if mask[5] or mask[6] else none
    g_hh = none
    if mask[4]:
        states = results if ends is None else xp.matmul(results, w_hr.T)
        states = shared.in_rows(xp, shared.before(xp, states, h, walk), backwards)
        g_hh = shared.weight_gradient(xp, d, states)
    return (
        shared.input_gradient(xp, d, w_ih, x.shape) if mask[0] else none,
        g_h if mask[1] else none,
        g_c if mask[2] else none,
        shared.weight_gradient(xp, d, x.reshape(total, -1)) if mask[3] else none,
        g_hh,
        bias if mask[5] else none,
        bias.copy() if mask[6] else none,
        none if ends is None or not mask[7] else xp.matmul(ends.T, results),
    )

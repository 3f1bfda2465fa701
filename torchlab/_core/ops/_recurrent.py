"""What the recurrent networks share: their steps in operators, and the walk over a sequence.

Note: two ways to run a line (one layer in one direction)
    In operators, step by step (`line`): for every type and every transform, derivatives of any
    order follow. As one kernel (the families `recurrent_*`): matrices that lie right for BLAS, no
    tensor per step, and a backward that is one kernel, too. The formula of a kernel that is
    differentiated again is the gradient of the first way.

Note: rows
    Kernels see a sequence as rows (total, n), time after time. `spans` tells which rows belong to
    each time, in the order in which they run; packed sequences have fewer sequences at later times.
Source: https://docs.pytorch.org/docs/2.13/nn.html#recurrent-layers
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from torchlab._core.backends.meta import MetaArray
from torchlab._core.dispatch.derived import gradients
from torchlab._core.dispatch.modes import dispatched, grad_enabled
from torchlab._core.dispatch.registry import aten
from torchlab._core.tape import TLS

State = tuple[Any, ...]  # (h,) or, of an LSTM, (h, c)


# ---- one step in operators ----------------------------------------------------------------------


def _rnn_step(name: str) -> Callable[..., State]:
    def step(x: Any, state: State, w_hh: Any, b_hh: Any, w_hr: Any) -> State:
        """x: the input's part, bias included."""
        return (getattr(aten, name)(x + aten.linear(state[0], w_hh, b_hh)),)

    return step


def _lstm_step(x: Any, state: State, w_hh: Any, b_hh: Any, w_hr: Any) -> State:
    h, c = state
    i, f, g, o = aten.chunk(x + aten.linear(h, w_hh, b_hh), 4, -1)
    c = aten.sigmoid(f) * c + aten.sigmoid(i) * aten.tanh(g)
    h = aten.sigmoid(o) * aten.tanh(c)
    return (h if w_hr is None else aten.linear(h, w_hr)), c


def _gru_step(x: Any, state: State, w_hh: Any, b_hh: Any, w_hr: Any) -> State:
    h = state[0]
    xr, xz, xn = aten.chunk(x, 3, -1)
    hr, hz, hn = aten.chunk(aten.linear(h, w_hh, b_hh), 3, -1)
    reset, update = aten.sigmoid(xr + hr), aten.sigmoid(xz + hz)
    new = aten.tanh(xn + reset * hn)
    return (new + update * (h - new),)


STEPS: dict[str, Any] = {
    "rnn_tanh": _rnn_step("tanh"),
    "rnn_relu": _rnn_step("relu"),
    "lstm": _lstm_step,
    "gru": _gru_step,
}
GATES = {"rnn_tanh": 1, "rnn_relu": 1, "lstm": 4, "gru": 3}


# ---- one line in operators ----------------------------------------------------------------------


def line(
    kind: str, x: Any, sizes: Sequence[int], state: State, weights: Any, backwards: bool
) -> tuple[Any, State]:
    """x (T, N, in) → (T, N, hidden) and the last state; of packed sequences (total, in), with
    `sizes` the number of sequences alive at each time, longest first."""
    if sizes:
        return _packed_line(kind, x, list(sizes), state, weights, backwards)
    w_ih, w_hh, b_ih, b_hh, w_hr = weights
    steps = aten.unbind(aten.linear(x, w_ih, b_ih), 0)
    results = []
    for part in reversed(steps) if backwards else steps:
        state = STEPS[kind](part, state, w_hh, b_hh, w_hr)
        results.append(state[0])
    if backwards:
        results.reverse()
    return aten.stack(results, 0), state


def _packed_line(
    kind: str, x: Any, sizes: list[int], state: State, weights: Any, backwards: bool
) -> tuple[Any, State]:
    w_ih, w_hh, b_ih, b_hh, w_hr = weights
    steps = aten.split_with_sizes(aten.linear(x, w_ih, b_ih), sizes, 0)
    results = []
    if backwards:  # sequences join as time goes back
        whole, now = state, tuple(aten.narrow(s, 0, 0, sizes[-1]) for s in state)
        alive = sizes[-1]
        for part, n in zip(reversed(steps), reversed(sizes), strict=True):
            if n > alive:
                now = tuple(
                    aten.cat([a, aten.narrow(s, 0, alive, n - alive)], 0)
                    for a, s in zip(now, whole, strict=True)
                )
                alive = n
            now = STEPS[kind](part, now, w_hh, b_hh, w_hr)
            results.append(now[0])
        results.reverse()
        return aten.cat(results, 0), now
    ended: list[State] = []
    now, alive = state, sizes[0]
    for part, n in zip(steps, sizes, strict=True):
        if n < alive:
            ended.append(tuple(aten.narrow(s, 0, n, alive - n) for s in now))
            now = tuple(aten.narrow(s, 0, 0, n) for s in now)
            alive = n
        now = STEPS[kind](part, now, w_hh, b_hh, w_hr)
        results.append(now[0])
    ended.append(now)
    last = tuple(aten.cat(list(parts), 0) for parts in zip(*reversed(ended), strict=True))
    return aten.cat(results, 0), last


def again(
    kind: str, given: Any, args: Sequence[Any], sizes: Any, backwards: bool, needs: Any
) -> tuple[Any, ...]:
    """The gradients of a line's arguments (x, state, w_ih, w_hh, b_ih, b_hh, and an LSTM's w_hr),
    where they will be differentiated again."""
    states = 2 if kind == "lstm" else 1

    def run(x: Any, *rest: Any) -> Any:
        weights = rest[states:] if kind == "lstm" else (*rest[states:], None)
        y, last = line(kind, x, sizes, rest[:states], weights, backwards)
        return y, *last

    return tuple(gradients(run, args, needs, given))


# ---- what the operators of a whole line have in common -------------------------------------------


def line_meta(
    x: Any, states: Sequence[Any], sizes: Any, keep: bool, kept: Sequence[tuple[int, int]]
) -> tuple[MetaArray, ...]:
    """What a line gives: the outputs, the last states, and with `keep` arrays of which `kept` tells
    (rows for each row of the input, width); without it they have no rows."""
    total = (x.shape[0] if sizes else x.shape[0] * x.shape[1]) if keep else 0
    shapes = [(*x.shape[:-1], states[0].shape[1]), *(s.shape for s in states)]
    shapes += [(rows * total, width) for rows, width in kept]
    return tuple(MetaArray(s, x.dtype) for s in shapes)


def gradients_meta(
    x: Any, states: Sequence[Any], w_ih: Any, w_hh: Any, mask: Sequence[bool], *more: Any
) -> tuple[MetaArray, ...]:
    """The gradients of a line's arguments as its backward's kernel gives them: an empty array where
    the mask says no. more: the shapes of arguments behind the biases."""
    bias = w_ih.shape[:1]
    shapes = [x.shape, *(s.shape for s in states), w_ih.shape, w_hh.shape, bias, bias, *more]
    return tuple(MetaArray(s if k else (0,), x.dtype) for s, k in zip(shapes, mask, strict=True))


def line_gradients(
    kind: str, kernel: Callable[[list[bool]], Any], given: Sequence[Any], args: Sequence[Any],
    sizes: Any, backwards: bool, needs: Sequence[bool],
) -> tuple[Any, ...]:  # fmt: skip
    """The gradients of a line's arguments, None where `needs` says no: `kernel(mask)`, or steps in
    operators where they will be differentiated again. given: the gradients of the results."""
    if all(g is None for g in given):
        return (None,) * len(args)
    if differentiated_again():
        return again(kind, given, args, sizes, backwards, needs)
    return tuple(v if n else None for v, n in zip(kernel(list(needs)), needs, strict=True))


# ---- the walk of the kernels over rows ----------------------------------------------------------


def spans(total: int, batch: int, sizes: Sequence[int], backwards: bool) -> list[tuple[int, int]]:
    """(first row, rows) of each time, in the order in which they run."""
    if not sizes:
        found = [(row, batch) for row in range(0, total, batch)]
    else:
        found, row = [], 0
        for n in sizes:
            found.append((row, n))
            row += n
    return found[::-1] if backwards else found


def passed(xp: Any, state: Any, start: Any, last: Any, n: int) -> Any:
    """The state (rows, …) for a time with `n` sequences: those that end leave theirs in `last`,
    those that begin bring theirs from `start`."""
    m = state.shape[0]
    if n < m:
        last[n:m] = state[n:]
        return state[:n]
    return xp.concatenate([state, start[m:n]])


def before(xp: Any, rows: Any, start: Any, walk: list[tuple[int, int]]) -> list[Any]:
    """The state that each time of `walk` started from, where it ended in `rows`."""
    found, state = [], start
    for row, n in walk:
        m = state.shape[0]
        if n != m:
            state = state[:n] if n < m else xp.concatenate([state, start[m:n]])
        found.append(state)
        state = rows[row : row + n]
    return found


def in_rows(xp: Any, parts: list[Any], backwards: bool) -> Any:
    """Parts for each time of a walk as rows."""
    return xp.concatenate(parts[::-1] if backwards else parts)


def columns(xp: Any, w: Any, order: Sequence[int], negated: int, biases: Sequence[Any] = ()) -> Any:
    """A weight (gates·hidden, n) as (gates, n, hidden), gates in `order`, the first `negated` with
    the other sign; each of `biases` (gates·hidden,) is added to one more row.

    This way each gate has its own contiguous results, and the product needs no transposition.
    """
    gates = len(order)
    n = w.shape[1]
    blocks = w.reshape(gates, -1, n)
    out = xp.empty((gates, n + bool(biases), blocks.shape[1]), w.dtype)
    for k, gate in enumerate(order):
        out[k, :n] = blocks[gate].T
        if biases:
            out[k, n] = sum(b.reshape(gates, -1)[gate] for b in biases)
    if negated:
        xp.negative(out[:negated], out=out[:negated])
    return out


def once(xp: Any, gates: int, x: Any, w: Any) -> Any:
    """x (n, k) times w (gates·hidden, k), as (gates, n, hidden): for a single time, where it would
    not pay to turn the weight first."""
    r = xp.matmul(w.reshape(gates, -1, w.shape[1]), xp.ascontiguousarray(x.T))
    return r.transpose(0, 2, 1)


def with_ones(xp: Any, x: Any, more: bool) -> Any:
    """x as rows, contiguous; with a column of ones, if there is a bias to add."""
    n = x.shape[-1]
    rows = x.reshape(-1, n)
    if not more:
        return rows
    out = xp.empty((rows.shape[0], n + 1), x.dtype)
    out[:, :n] = rows
    out[:, n] = 1
    return out


def input_gradient(xp: Any, d: Any, w: Any, shape: Any) -> Any:
    """The gradient of the input from those of the gates (gates, total, hidden)."""
    blocks = w.reshape(d.shape[0], -1, w.shape[1])
    out = xp.matmul(d[0], blocks[0])
    if d.shape[0] > 1:
        part = xp.empty_like(out)
        for k in range(1, d.shape[0]):
            out += xp.matmul(d[k], blocks[k], out=part)
    return out.reshape(shape)


def weight_gradient(xp: Any, d: Any, rows: Any) -> Any:
    """(gates, total, hidden), (total, n) → (gates·hidden, n)."""
    return xp.matmul(d.transpose(0, 2, 1), rows).reshape(-1, rows.shape[1])


def bias_gradient(xp: Any, d: Any) -> Any:
    """(gates, total, hidden) → (gates·hidden,): as a product with ones, which BLAS sums in
    blocks."""
    return xp.matmul(xp.ones(d.shape[1], d.dtype), d).reshape(-1)


def start_or_zeros(xp: Any, g: Any, like: Any) -> Any:
    return xp.zeros(like.shape, like.dtype) if g is None else g


def differentiated_again() -> bool:
    """Whether a formula must be written in operators that have derivatives. The compiler's, which
    records, too, takes the kernel: nothing fuses with a step."""
    return grad_enabled() and (not TLS.dispatch_modes or dispatched())


def recorded(tensors: Sequence[Any]) -> bool:
    """Whether the tape will want what the forward computed."""
    return grad_enabled() and any(t is not None and t.requires_grad for t in tensors)

"""Recurrent networks as functions: the simple RNN, LSTM and GRU, and one step of each.

The products with the inputs of all times are one matrix product; only what depends on the last
state goes step by step. Derivatives of any order follow from the operators used.

Source: https://docs.pytorch.org/docs/2.13/nn.html#recurrent-layers; LSTM: Hochreiter and
Schmidhuber 1997; GRU: arXiv:1406.1078.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torchlab._core.dispatch.arguments import MISSING
from torchlab._core.dispatch.op import face
from torchlab._core.dispatch.registry import aten

State = tuple[Any, ...]  # (h,) or, of an LSTM, (h, c)


# ---- one step -----------------------------------------------------------------------------------


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


_STEPS: dict[str, Any] = {
    "rnn_tanh": _rnn_step("tanh"),
    "rnn_relu": _rnn_step("relu"),
    "lstm": _lstm_step,
    "gru": _gru_step,
}
_GATES = {"rnn_tanh": 1, "rnn_relu": 1, "lstm": 4, "gru": 3}


# ---- one layer, one direction -------------------------------------------------------------------


def _line(kind: str, x: Any, state: State, weights: Any, backwards: bool) -> tuple[Any, State]:
    """x (T, N, in) → (T, N, hidden) and the last state."""
    w_ih, w_hh, b_ih, b_hh, w_hr = weights
    steps = aten.unbind(aten.linear(x, w_ih, b_ih), 0)
    results = []
    for part in reversed(steps) if backwards else steps:
        state = _STEPS[kind](part, state, w_hh, b_hh, w_hr)
        results.append(state[0])
    if backwards:
        results.reverse()
    return aten.stack(results, 0), state


def _packed_line(
    kind: str, x: Any, sizes: list[int], state: State, weights: Any, backwards: bool
) -> tuple[Any, State]:
    """The same for packed sequences: x (total, in), `sizes` the number of sequences alive at each
    time, longest first."""
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
            now = _STEPS[kind](part, now, w_hh, b_hh, w_hr)
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
        now = _STEPS[kind](part, now, w_hh, b_hh, w_hr)
        results.append(now[0])
    ended.append(now)
    last = tuple(aten.cat(list(parts), 0) for parts in zip(*reversed(ended), strict=True))
    return aten.cat(results, 0), last


# ---- all layers ---------------------------------------------------------------------------------


def _grouped(
    name: str, params: Any, biases: bool, lines: int, projected: bool
) -> list[tuple[Any, ...]]:
    """(w_ih, w_hh, b_ih, b_hh, w_hr) of each line; what it has not got is None."""
    per = 2 + 2 * biases + projected
    if len(params) != per * lines:
        raise RuntimeError(
            f"{name}: got an incorrect number of RNN parameters: {len(params)}, expected "
            f"{per * lines} ({lines} layers and directions, {per} each)"
        )
    found = []
    for i in range(0, per * lines, per):
        own = list(params[i : i + per])
        w_hr = own.pop() if projected else None
        found.append((*own, *(() if biases else (None, None)), w_hr))
    return found


def _check_state(name: str, states: Any, lines: int, batch: int) -> None:
    for s in states:
        if s._a.ndim != 3 or s._a.shape[0] != lines or s._a.shape[1] < batch:
            raise RuntimeError(
                f"{name}: Expected hidden state of shape ({lines}, {batch}, hidden size), got "
                f"{list(s._a.shape)}"
            )


def _run(
    kind: str,
    x: Any,
    sizes: list[int] | None,
    hx: State,
    params: Any,
    has_biases: bool,
    num_layers: int,
    dropout: float,
    train: bool,
    bidirectional: bool,
) -> tuple[Any, State]:
    """The last layer's results and every line's last state, stacked."""
    directions = 2 if bidirectional else 1
    lines = num_layers * directions
    projected = kind == "lstm" and hx[0]._a.shape[-1] != hx[1]._a.shape[-1]
    groups = _grouped(kind, params, has_biases, lines, projected)
    _check_state(kind, hx, lines, x._a.shape[1] if sizes is None else sizes[0])
    last: list[State] = []
    for layer in range(num_layers):
        results = []
        for d in range(directions):
            k = layer * directions + d
            state = tuple(aten.select(s, 0, k) for s in hx)
            if sizes is None:
                r, state = _line(kind, x, state, groups[k], d == 1)
            else:
                r, state = _packed_line(kind, x, sizes, state, groups[k], d == 1)
            results.append(r)
            last.append(state)
        x = results[0] if directions == 1 else aten.cat(results, -1)
        if dropout and train and layer < num_layers - 1:
            x = aten.dropout(x, dropout, True)
    return x, tuple(aten.stack(list(parts), 0) for parts in zip(*last, strict=True))


# What PyTorch leaves to oneDNN has one autocast rule for the whole, and hidden states of its type.
whole_lstm = face("_whole_lstm", method=False, spaces=(), autocast="lower:cpu")(_run)


def _call(kind: str, args: tuple[Any, ...], named: dict[str, Any]) -> tuple[Any, ...]:
    """Both overloads: (input, hx, params, …, batch_first), and for packed sequences (data,
    batch_sizes, hx, params, …)."""
    common = ("params", "has_biases", "num_layers", "dropout", "train", "bidirectional")
    packed = "data" in named or "batch_sizes" in named
    if not packed and len(args) > 2:  # the third: parameters, or the state after batch_sizes
        third = args[2]
        tensors = isinstance(third, (list, tuple))
        state_is_list = isinstance(args[1], (list, tuple))
        packed = not tensors or (kind == "lstm" and not state_is_list)
    names = (
        ("data", "batch_sizes", "hx", *common)
        if packed
        else ("input", "hx", *common, "batch_first")
    )
    given = dict(zip(names, args)) | named
    if len(args) > len(names) or given.keys() != set(names):
        raise TypeError(
            f"{kind}() takes ({', '.join(names)}), but was called with {sorted(given)} "
            f"({len(args)} positional)"
        )
    hx = tuple(given["hx"]) if kind == "lstm" else (given["hx"],)
    if kind == "lstm" and len(hx) != 2:
        raise RuntimeError(f"lstm expects two hidden states, got {len(hx)}")
    rest = tuple(given[n] for n in common)
    if packed:
        sizes = [int(n) for n in given["batch_sizes"].tolist()]
        r, state = _run(kind, given["data"], sizes, hx, *rest)
        return (r, *state)
    x = given["input"]
    if given["batch_first"]:
        x = aten.transpose(x, 0, 1)
    if x._a.shape[0] == 0:
        raise RuntimeError("Expected sequence length to be larger than 0 in RNN")
    projected = kind == "lstm" and hx[0]._a.shape[-1] != hx[1]._a.shape[-1]
    run = whole_lstm.function if kind == "lstm" and not projected else _run
    r, state = run(kind, x, None, hx, *rest)
    if given["batch_first"]:
        r = aten.transpose(r, 0, 1)
    return (r, *state)


def _declare(kind: str, doc: str) -> None:
    def network(
        *args: Any,
        input: Any = MISSING,
        data: Any = MISSING,
        batch_sizes: Any = MISSING,
        hx: Any = MISSING,
        params: Any = MISSING,
        has_biases: Any = MISSING,
        num_layers: Any = MISSING,
        dropout: Any = MISSING,
        train: Any = MISSING,
        bidirectional: Any = MISSING,
        batch_first: Any = MISSING,
    ) -> tuple[Any, ...]:
        named = {
            "input": input, "data": data, "batch_sizes": batch_sizes, "hx": hx, "params": params,
            "has_biases": has_biases, "num_layers": num_layers, "dropout": dropout,
            "train": train, "bidirectional": bidirectional, "batch_first": batch_first,
        }  # fmt: skip
        return _call(kind, args, {n: v for n, v in named.items() if v is not MISSING})

    network.__name__ = network.__qualname__ = kind
    network.__doc__ = (
        f"{doc}: (input, hx, params, has_biases, num_layers, dropout, train, bidirectional, "
        "batch_first), or for packed sequences (data, batch_sizes, hx, params, has_biases, "
        "num_layers, dropout, train, bidirectional) → (output, last states)."
    )
    face(kind, method=False)(network)


_declare("rnn_tanh", "The simple recurrent network with tanh")
_declare("rnn_relu", "The simple recurrent network with relu")
_declare("gru", "The gated recurrent unit")
_declare("lstm", "The long short-term memory; hx and the last states are (h, c)")


# ---- cells --------------------------------------------------------------------------------------


def _cell_shapes(name: str, x: Any, hx: Any, w_ih: Any, w_hh: Any, gates: int) -> None:
    if x._a.shape[-1] != w_ih._a.shape[-1]:
        raise RuntimeError(
            f"{name}: input has inconsistent input_size: got {x._a.shape[-1]} expected "
            f"{w_ih._a.shape[-1]}"
        )
    for h in hx:
        if h._a.shape[:-1] != x._a.shape[:-1]:
            raise RuntimeError(
                f"{name}: Input batch size {list(x._a.shape[:-1])} doesn't match hidden batch size "
                f"{list(h._a.shape[:-1])}"
            )
    hidden = w_hh._a.shape[-1]
    if hx[0]._a.shape[-1] != hidden or w_hh._a.shape[0] != gates * hidden:
        raise RuntimeError(
            f"{name}: hidden has inconsistent hidden_size: got {hx[0]._a.shape[-1]}, expected "
            f"{hidden}, with w_hh {list(w_hh._a.shape)}"
        )


def _step(kind: str, x: Any, hx: State, w_ih: Any, w_hh: Any, b_ih: Any, b_hh: Any) -> State:
    _cell_shapes(f"{kind}_cell", x, hx, w_ih, w_hh, _GATES[kind])
    return _STEPS[kind](aten.linear(x, w_ih, b_ih), hx, w_hh, b_hh, None)


def _declare_cell(kind: str, doc: str) -> None:
    def cell(self: Any, hx: Any, w_ih: Any, w_hh: Any, b_ih: Any = None, b_hh: Any = None) -> Any:
        return _step(kind, self, (hx,), w_ih, w_hh, b_ih, b_hh)[0]

    cell.__name__ = cell.__qualname__ = f"{kind}_cell"
    cell.__doc__ = f"One step of {doc}: input (N, in), hx (N, hidden) → (N, hidden)."
    face(f"{kind}_cell", method=False, autocast="lower:accelerator")(cell)


_declare_cell("rnn_tanh", "the simple recurrent network with tanh")
_declare_cell("rnn_relu", "the simple recurrent network with relu")
_declare_cell("gru", "the gated recurrent unit")


@face("lstm_cell", method=False, autocast="lower:accelerator")
def lstm_cell(
    self: Any, hx: Any, w_ih: Any, w_hh: Any, b_ih: Any = None, b_hh: Any = None
) -> tuple[Any, Any]:
    """One step of the long short-term memory: input (N, in), hx (h, c) → (h, c)."""
    if len(hx) != 2:
        raise RuntimeError("lstm_cell expects two hidden states")
    h, c = _step("lstm", self, tuple(hx), w_ih, w_hh, b_ih, b_hh)
    return h, c

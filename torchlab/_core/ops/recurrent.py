"""Recurrent networks as functions: the simple RNN, LSTM and GRU, and one step of each.

The products with the inputs of all times are one matrix product; only what depends on the last
state goes step by step. Derivatives of any order follow from the operators used.

Source: https://docs.pytorch.org/docs/2.13/nn.html#recurrent-layers; LSTM: Hochreiter and
Schmidhuber 1997; GRU: arXiv:1406.1078.
"""

from __future__ import annotations

from typing import Any

from torchlab._core import dtype as dt
from torchlab._core.backends import onednn
from torchlab._core.device import cpu
from torchlab._core.dispatch.arguments import MISSING
from torchlab._core.dispatch.modes import dispatched
from torchlab._core.dispatch.op import face
from torchlab._core.dispatch.registry import aten
from torchlab._core.ops._recurrent import GATES, STEPS, State, line, recorded
from torchlab._core.tape import TLS
from torchlab._core.tensor import Parameter, Tensor

# ---- one layer, one direction -------------------------------------------------------------------

_PLAIN = (Tensor, Parameter)
_REAL = (dt.float32, dt.float64)


def _fits(kind: str, x: Any, sizes: Any, state: State, weights: Any) -> bool:
    """Whether one kernel may run the line: plain tensors on the host, and nobody who wants to see
    the operators that it consists of (the compiler does not). What does not fit together the
    operators refuse."""
    if TLS.autocast is not None or TLS.function_modes or dispatched():
        return False
    dtype = x._k.dtype
    if dtype not in _REAL or x._k.device is not cpu or not x._a.size:
        return False
    for t in (x, *state, *weights):
        if t is not None and (
            type(t) not in _PLAIN or t._k.dtype is not dtype or t._k.device is not cpu
        ):
            return False
    w_ih, w_hh, b_ih, b_hh, w_hr = (None if w is None else w._a.shape for w in weights)
    hidden = state[-1]._a.shape[-1]
    rows = GATES[kind] * hidden
    batch = sizes[0] if sizes else x._a.shape[-2]
    return (
        x._a.ndim == (2 if sizes else 3)
        and all(s._a.shape == (batch, s._a.shape[-1]) for s in state)
        and w_ih == (rows, x._a.shape[-1])
        and w_hh == (rows, state[0]._a.shape[-1])
        and (b_ih is None or b_ih == (rows,))
        and (b_hh is None or b_hh == (rows,))
        and (w_hr is None or w_hr == (state[0]._a.shape[-1], hidden))
        and rows > 0
    )


def _line(
    kind: str, x: Any, sizes: list[int], state: State, weights: Any, backwards: bool
) -> tuple[Any, State]:
    """x (T, N, in), or packed (total, in), → (…, hidden) and the last state."""
    if _fits(kind, x, sizes, state, weights):
        return _kernel(kind, x, sizes, state, weights, backwards)
    return line(kind, x, sizes, state, weights, backwards)


def _kernel(
    kind: str, x: Any, sizes: list[int], state: State, weights: Any, backwards: bool
) -> tuple[Any, State]:
    given = (x, *state, *(weights if kind == "lstm" else weights[:4]))
    keep = recorded(given)
    if (
        kind == "lstm"
        and not sizes
        and weights[4] is None
        and x._a.shape[0] > 1
        and onednn.fits(x._a)
    ):
        r = aten._lstm_line_onednn(*given[:-1], backwards, keep)
    else:
        r = _KERNELS[kind](*given, sizes, backwards, keep)
    return r[0], tuple(r[1 : 1 + len(state)])


_KERNELS: dict[str, Any] = {
    "lstm": lambda *args: aten._lstm_line(*args),
    "gru": lambda *args: aten._gru_line(*args),
    "rnn_tanh": lambda *args: aten._rnn_line(*args[:-3], False, *args[-3:]),
    "rnn_relu": lambda *args: aten._rnn_line(*args[:-3], True, *args[-3:]),
}


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
            r, state = _line(kind, x, sizes or [], state, groups[k], d == 1)
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
    _cell_shapes(f"{kind}_cell", x, hx, w_ih, w_hh, GATES[kind])
    weights = (w_ih, w_hh, b_ih, b_hh, None)
    if x._a.ndim == 2 and _fits(kind, x, [x._a.shape[0]], hx, weights):
        return _kernel(kind, x, [x._a.shape[0]], hx, weights, False)[1]
    return STEPS[kind](aten.linear(x, w_ih, b_ih), hx, w_hh, b_hh, None)


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

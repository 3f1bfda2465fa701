"""Recurrent networks: RNN, LSTM, GRU over whole sequences.

Source: https://docs.pytorch.org/docs/2.13/nn.html#recurrent-layers
"""

from __future__ import annotations

import math
import numbers
import warnings
from typing import Any

from torchlab._core.dispatch.registry import aten
from torchlab.amp.switches import is_autocast_enabled
from torchlab.nn import init
from torchlab.nn.module import Module
from torchlab.nn.parameter import Parameter
from torchlab.nn.utils.rnn import PackedSequence

_GATES = {"LSTM": 4, "GRU": 3, "RNN_TANH": 1, "RNN_RELU": 1}


class RNNBase(Module):
    """What the recurrent networks share: their weights, and the checks of what they are given.

    Weights of layer k: weight_ih_l{k} (gates·hidden, in), weight_hh_l{k} (gates·hidden, hidden),
    bias_ih_l{k} and bias_hh_l{k} (gates·hidden,), with projections weight_hr_l{k} (proj, hidden);
    of the direction back with `_reverse`. They start uniform in ±1/√hidden_size.
    """

    __constants__ = (
        "mode", "input_size", "hidden_size", "num_layers", "bias", "batch_first", "dropout",
        "bidirectional", "proj_size",
    )  # fmt: skip
    __jit_unused_properties__ = ("all_weights",)
    _tensor_word = ""

    def __init__(
        self,
        mode: str,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        proj_size: int = 0,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.mode = mode
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.num_layers = num_layers
        self.bias = bias
        self.batch_first = batch_first
        self.dropout = float(_dropout(dropout, num_layers))
        self.bidirectional = bidirectional
        self.proj_size = proj_size
        _check_sizes(input_size, hidden_size, num_layers, proj_size, bias, batch_first)
        if mode not in _GATES:
            raise ValueError("Unrecognized RNN mode: " + mode)
        self._all_weights: list[list[str]] = []
        rows = _GATES[mode] * hidden_size
        state = proj_size or hidden_size
        directions = 2 if bidirectional else 1
        for layer in range(num_layers):
            width = input_size if layer == 0 else state * directions
            for direction in range(directions):
                end = f"_l{layer}" + ("_reverse" if direction else "")
                shapes: dict[str, tuple[int, ...]] = {
                    "weight_ih": (rows, width), "weight_hh": (rows, state)
                }  # fmt: skip
                if bias:
                    shapes |= {"bias_ih": (rows,), "bias_hh": (rows,)}
                if proj_size:
                    shapes["weight_hr"] = (proj_size, hidden_size)
                for name, shape in shapes.items():
                    weight = Parameter(aten.empty(shape, device=device, dtype=dtype))
                    setattr(self, name + end, weight)
                self._all_weights.append([name + end for name in shapes])
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw the initial values again."""
        bound = 1.0 / math.sqrt(self.hidden_size) if self.hidden_size > 0 else 0
        for weight in self.parameters():
            init.uniform_(weight, -bound, bound)

    def flatten_parameters(self) -> None:
        """Does nothing: the weights need not lie in one piece of memory here."""

    @property
    def _flat_weights_names(self) -> list[str]:
        return [name for names in self._all_weights for name in names]

    @property
    def _flat_weights(self) -> list[Any]:
        return [getattr(self, name) for name in self._flat_weights_names]

    @property
    def all_weights(self) -> list[list[Any]]:
        """The weights of each layer and direction."""
        return [[getattr(self, name) for name in names] for names in self._all_weights]

    # ---- checks ----------------------------------------------------------------------------------

    def check_input(self, input: Any, batch_sizes: Any) -> None:
        """Raise ValueError for another dtype than the weights', RuntimeError for another shape."""
        own = self._flat_weights[0].dtype
        if input.dtype != own and not is_autocast_enabled(input.device.type):
            raise ValueError(
                f"RNN input dtype ({input.dtype}) does not match weight dtype ({own}). Convert "
                f"input: input.to({own}), or convert model: model.to({input.dtype})"
            )
        wanted = 3 if batch_sizes is None else 2
        if input.ndim != wanted:
            raise RuntimeError(f"input must have {wanted} dimensions, got {input.ndim}")
        if self.input_size != input.shape[-1]:
            raise RuntimeError(
                f"input.size(-1) must be equal to input_size. Expected {self.input_size}, got "
                f"{input.shape[-1]}"
            )

    def get_expected_hidden_size(self, input: Any, batch_sizes: Any) -> tuple[int, int, int]:
        """The shape of the hidden state for this input."""
        lines = self.num_layers * (2 if self.bidirectional else 1)
        return (lines, self._batch(input, batch_sizes), self.proj_size or self.hidden_size)

    def _batch(self, input: Any, batch_sizes: Any) -> int:
        if batch_sizes is not None:
            return int(batch_sizes[0])
        return input.shape[0 if self.batch_first else 1]  # type: ignore[no-any-return]

    def check_hidden_size(
        self,
        hx: Any,
        expected_hidden_size: tuple[int, int, int],
        msg: str = "Expected hidden size {}, got {}",
    ) -> None:
        """Raise RuntimeError if the hidden state has another shape."""
        if tuple(hx.shape) != expected_hidden_size:
            raise RuntimeError(msg.format(expected_hidden_size, list(hx.shape)))

    def check_forward_args(self, input: Any, hidden: Any, batch_sizes: Any) -> None:
        """All checks before the network runs."""
        self.check_input(input, batch_sizes)
        self.check_hidden_size(hidden, self.get_expected_hidden_size(input, batch_sizes))

    def permute_hidden(self, hx: Any, permutation: Any) -> Any:
        """The hidden state with its sequences in another order."""
        return hx if permutation is None else aten.index_select(hx, 1, permutation)

    # ---- running ---------------------------------------------------------------------------------

    def _zeros(self, input: Any, shape: tuple[int, int, int]) -> Any:
        return aten.zeros(shape, dtype=input.dtype, device=input.device)

    def _whole_state(self, hx: Any, input: Any, batch_sizes: Any) -> Any:
        """The state that the run starts from, zeros where the caller gave none."""
        if hx is None:
            return self._zeros(input, self.get_expected_hidden_size(input, batch_sizes))
        return hx

    def _batched_state(self, hx: Any, batched: bool) -> Any:
        """hx with a batch dimension; raises RuntimeError if it has another rank than the input."""
        wanted = 3 if batched else 2
        if hx.ndim != wanted:
            kind = "batched 3-D" if batched else "unbatched 2-D"
            raise RuntimeError(
                f"For {kind} input, hx should also be {wanted}-D but got {hx.ndim}-D tensor"
            )
        return hx if batched else aten.unsqueeze(hx, 1)

    def _state_without_batch(self, hidden: Any) -> Any:
        return aten.squeeze(hidden, 1)

    def _network(self, input: Any, hx: Any, batch_sizes: Any) -> tuple[Any, Any]:
        run = getattr(aten, self.mode.lower())
        packed = () if batch_sizes is None else (batch_sizes,)
        order = () if batch_sizes is not None else (self.batch_first,)
        result = run(
            input, *packed, hx, self._flat_weights, self.bias, self.num_layers, self.dropout,
            self.training, self.bidirectional, *order,
        )  # fmt: skip
        return result[0], self._state_of(result)

    def _state_of(self, result: Any) -> Any:
        return result[1]

    def _sequence(self, input: Any, hx: Any) -> tuple[Any, Any]:
        """The run over a tensor or a packed sequence."""
        if isinstance(input, PackedSequence):
            data, sizes, order, back = input
            # A given state is in the user's order, the sequences are sorted by length.
            state = self._whole_state(hx, data, sizes)
            state = state if hx is None else self.permute_hidden(state, order)
            self.check_forward_args(data, state, sizes)
            output, hidden = self._network(data, state, sizes)
            return PackedSequence(output, sizes, order, back), self.permute_hidden(hidden, back)
        if input.ndim not in (2, 3):
            raise ValueError(
                f"{self._get_name()}: Expected input to be 2D or 3D, got "
                f"{input.ndim}D {self._tensor_word}instead"
            )
        batched = input.ndim == 3
        at = 0 if self.batch_first else 1
        if not batched:
            input = aten.unsqueeze(input, at)
        if hx is not None:
            hx = self._batched_state(hx, batched)
        state = self._whole_state(hx, input, None)
        self.check_forward_args(input, state, None)
        output, hidden = self._network(input, state, None)
        if not batched:
            output, hidden = aten.squeeze(output, at), self._state_without_batch(hidden)
        return output, hidden

    def extra_repr(self) -> str:
        parts = [f"{self.input_size}, {self.hidden_size}"]
        for name, default in (
            ("proj_size", 0), ("num_layers", 1), ("bias", True), ("batch_first", False),
            ("dropout", 0), ("bidirectional", False),
        ):  # fmt: skip
            value = getattr(self, name)
            if value != default:
                parts.append(f"{name}={value}")
        return ", ".join(parts)


def _dropout(p: Any, num_layers: int) -> float:
    if not isinstance(p, numbers.Number) or isinstance(p, bool) or not 0 <= p <= 1:  # type: ignore[operator]
        raise ValueError(
            "dropout should be a number in range [0, 1] representing the probability of an "
            "element being zeroed"
        )
    if p > 0 and num_layers == 1:  # type: ignore[operator]
        warnings.warn(
            "dropout option adds dropout after all but last recurrent layer, so non-zero dropout "
            f"expects num_layers greater than 1, but got dropout={p} and num_layers={num_layers}",
            stacklevel=4,
        )
    return p  # type: ignore[return-value]


def _check_sizes(
    input_size: Any, hidden_size: Any, num_layers: Any, proj_size: Any, bias: Any, batch_first: Any
) -> None:
    for name, value, wanted in (
        ("bias", bias, bool), ("batch_first", batch_first, bool), ("input_size", input_size, int),
        ("hidden_size", hidden_size, int), ("num_layers", num_layers, int),
        ("proj_size", proj_size, int),
    ):  # fmt: skip
        if not isinstance(value, wanted):
            raise TypeError(
                f"{name} should be of type {wanted.__name__}, got: {type(value).__name__}"
            )
    for name, size in (
        ("input_size", input_size), ("hidden_size", hidden_size), ("num_layers", num_layers)
    ):  # fmt: skip
        if size <= 0:
            raise ValueError(f"{name} must be greater than zero")
    if proj_size < 0:
        raise ValueError("proj_size should be a positive integer or zero to disable projections")
    if proj_size >= hidden_size:
        raise ValueError("proj_size has to be smaller than hidden_size")


def _no_projection(kwargs: dict[str, Any]) -> None:
    if "proj_size" in kwargs:
        raise ValueError("proj_size argument is only supported for LSTM, not RNN or GRU")


class RNN(RNNBase):
    """h' = tanh(W_ih x + b_ih + W_hh h + b_hh), or relu, over (T, N, in), (N, T, in) with
    batch_first, (T, in) or a PackedSequence. Returns (T, N, directions·hidden) and the last h
    (layers·directions, N, hidden)."""

    _tensor_word = "tensor "

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        _no_projection(kwargs)
        if len(args) > 3:
            self.nonlinearity = args[3]
            args = args[:3] + args[4:]
        else:
            self.nonlinearity = kwargs.pop("nonlinearity", "tanh")
        if self.nonlinearity not in ("tanh", "relu"):
            raise ValueError(
                f"Unknown nonlinearity '{self.nonlinearity}'. Select from 'tanh' or 'relu'."
            )
        super().__init__(f"RNN_{self.nonlinearity.upper()}", *args, **kwargs)

    def forward(self, input: Any, hx: Any = None) -> Any:
        return self._sequence(input, hx)


class GRU(RNNBase):
    """The gated recurrent unit (arXiv:1406.1078) over (T, N, in), (N, T, in) with batch_first,
    (T, in) or a PackedSequence. Returns (T, N, directions·hidden) and the last h
    (layers·directions, N, hidden)."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        _no_projection(kwargs)
        super().__init__("GRU", *args, **kwargs)

    def forward(self, input: Any, hx: Any = None) -> Any:
        return self._sequence(input, hx)


class LSTM(RNNBase):
    """The long short-term memory (Hochreiter and Schmidhuber 1997) over (T, N, in), (N, T, in)
    with batch_first, (T, in) or a PackedSequence. Returns (T, N, directions·h) and the last (h, c)
    of (layers·directions, N, h) and (layers·directions, N, hidden); h is proj_size, where that is
    not 0, else hidden."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__("LSTM", *args, **kwargs)

    def get_expected_cell_size(self, input: Any, batch_sizes: Any) -> tuple[int, int, int]:
        """The shape of the cell's state for this input."""
        lines = self.num_layers * (2 if self.bidirectional else 1)
        return (lines, self._batch(input, batch_sizes), self.hidden_size)

    def check_forward_args(self, input: Any, hidden: Any, batch_sizes: Any) -> None:
        self.check_input(input, batch_sizes)
        self.check_hidden_size(
            hidden[0],
            self.get_expected_hidden_size(input, batch_sizes),
            "Expected hidden[0] size {}, got {}",
        )
        self.check_hidden_size(
            hidden[1],
            self.get_expected_cell_size(input, batch_sizes),
            "Expected hidden[1] size {}, got {}",
        )

    def permute_hidden(self, hx: Any, permutation: Any) -> Any:
        if permutation is None:
            return hx
        return tuple(aten.index_select(s, 1, permutation) for s in hx)

    def _whole_state(self, hx: Any, input: Any, batch_sizes: Any) -> Any:
        if hx is not None:
            return hx
        return (
            self._zeros(input, self.get_expected_hidden_size(input, batch_sizes)),
            self._zeros(input, self.get_expected_cell_size(input, batch_sizes)),
        )

    def _batched_state(self, hx: Any, batched: bool) -> Any:
        wanted = 3 if batched else 2
        if hx[0].ndim != wanted or hx[1].ndim != wanted:
            kind = "batched 3-D" if batched else "unbatched 2-D"
            raise RuntimeError(
                f"For {kind} input, hx and cx should also be {wanted}-D but got "
                f"({hx[0].ndim}-D, {hx[1].ndim}-D) tensors"
            )
        return hx if batched else tuple(aten.unsqueeze(s, 1) for s in hx)

    def _state_without_batch(self, hidden: Any) -> Any:
        return tuple(aten.squeeze(s, 1) for s in hidden)

    def _state_of(self, result: Any) -> Any:
        return result[1], result[2]

    def forward(self, input: Any, hx: Any = None) -> Any:
        return self._sequence(input, hx)


__all__ = ["GRU", "LSTM", "RNN", "RNNBase"]

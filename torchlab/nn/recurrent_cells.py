"""One step of a recurrent network as a module.

Source: https://docs.pytorch.org/docs/2.13/nn.html#recurrent-layers
"""

from __future__ import annotations

import math
from typing import Any

from torchlab._core.dispatch.registry import aten
from torchlab.nn import init
from torchlab.nn.module import Module
from torchlab.nn.parameter import Parameter


class RNNCellBase(Module):
    """What the cells share: weight_ih (chunks·hidden, in), weight_hh (chunks·hidden, hidden) and
    two biases, all uniform in ±1/√hidden_size."""

    __constants__: tuple[str, ...] = ("input_size", "hidden_size", "bias")
    bias_ih: Any
    bias_hh: Any

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool,
        num_chunks: int,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.bias = bias
        rows = num_chunks * hidden_size
        shapes: dict[str, tuple[int, ...]] = {
            "weight_ih": (rows, input_size), "weight_hh": (rows, hidden_size),
            "bias_ih": (rows,), "bias_hh": (rows,),
        }  # fmt: skip
        for name, shape in shapes.items():
            if name.startswith("bias") and not bias:
                self.register_parameter(name, None)
            else:
                weight = Parameter(aten.empty(shape, device=device, dtype=dtype))
                self.register_parameter(name, weight)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw the initial values again."""
        bound = 1.0 / math.sqrt(self.hidden_size) if self.hidden_size > 0 else 0
        for weight in self.parameters():
            init.uniform_(weight, -bound, bound)

    def _weights(self) -> tuple[Any, Any, Any, Any]:
        return self.weight_ih, self.weight_hh, self.bias_ih, self.bias_hh

    def _rank(self, what: str, t: Any) -> None:
        if t.ndim not in (1, 2):
            raise ValueError(
                f"{self._get_name()}: Expected {what} to be 1D or 2D, got {t.ndim}D instead"
            )

    def _one_state(self, cell: Any, input: Any, hx: Any) -> Any:
        """One step of a cell whose state is one tensor."""
        self._rank("input", input)
        if hx is not None:
            self._rank("hidden", hx)
        batched = input.ndim == 2
        x = input if batched else aten.unsqueeze(input, 0)
        if hx is None:
            hx = aten.zeros((x.shape[0], self.hidden_size), dtype=x.dtype, device=x.device)
        elif not batched:
            hx = aten.unsqueeze(hx, 0)
        r = cell(x, hx, *self._weights())
        return r if batched else aten.squeeze(r, 0)

    def extra_repr(self) -> str:
        parts = [f"{self.input_size}, {self.hidden_size}"]
        if self.bias is not True:
            parts.append(f"bias={self.bias}")
        nonlinearity = self.__dict__.get("nonlinearity", "tanh")
        if nonlinearity != "tanh":
            parts.append(f"nonlinearity={nonlinearity}")
        return ", ".join(parts)


class RNNCell(RNNCellBase):
    """h' = tanh(W_ih x + b_ih + W_hh h + b_hh), or relu: input (N, in) or (in,), hx (N, hidden) or
    (hidden,), zeros if None."""

    __constants__ = ("input_size", "hidden_size", "bias", "nonlinearity")

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        nonlinearity: str = "tanh",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(input_size, hidden_size, bias, num_chunks=1, device=device, dtype=dtype)
        self.nonlinearity = nonlinearity

    def forward(self, input: Any, hx: Any = None) -> Any:
        if self.nonlinearity not in ("tanh", "relu"):
            raise RuntimeError(f"Unknown nonlinearity: {self.nonlinearity}")
        cell = aten.rnn_tanh_cell if self.nonlinearity == "tanh" else aten.rnn_relu_cell
        return self._one_state(cell, input, hx)


class LSTMCell(RNNCellBase):
    """One step of the long short-term memory: input (N, in) or (in,), hx (h, c) of (N, hidden) or
    (hidden,), zeros if None → (h', c')."""

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(input_size, hidden_size, bias, num_chunks=4, device=device, dtype=dtype)

    def forward(self, input: Any, hx: Any = None) -> Any:
        self._rank("input", input)
        if hx is not None:
            for i, s in enumerate(hx):
                self._rank(f"hx[{i}]", s)
        batched = input.ndim == 2
        x = input if batched else aten.unsqueeze(input, 0)
        if hx is None:
            zeros = aten.zeros((x.shape[0], self.hidden_size), dtype=x.dtype, device=x.device)
            hx = (zeros, zeros)
        elif not batched:
            hx = tuple(aten.unsqueeze(s, 0) for s in hx)
        h, c = aten.lstm_cell(x, hx, *self._weights())
        return (h, c) if batched else (aten.squeeze(h, 0), aten.squeeze(c, 0))


class GRUCell(RNNCellBase):
    """One step of the gated recurrent unit: input (N, in) or (in,), hx (N, hidden) or (hidden,),
    zeros if None."""

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(input_size, hidden_size, bias, num_chunks=3, device=device, dtype=dtype)

    def forward(self, input: Any, hx: Any = None) -> Any:
        return self._one_state(aten.gru_cell, input, hx)


__all__ = ["GRUCell", "LSTMCell", "RNNCell", "RNNCellBase"]

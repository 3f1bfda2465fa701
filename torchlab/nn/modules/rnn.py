"""`torch.nn.modules.rnn`: recurrent networks, under PyTorch's path."""

from __future__ import annotations

from torchlab.nn.recurrent import GRU, LSTM, RNN, RNNBase
from torchlab.nn.recurrent_cells import GRUCell, LSTMCell, RNNCell, RNNCellBase

__all__ = ["GRU", "GRUCell", "LSTM", "LSTMCell", "RNN", "RNNBase", "RNNCell", "RNNCellBase"]

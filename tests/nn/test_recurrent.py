"""Recurrent networks against values computed by hand and by NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import torchlab
from torchlab import nn


def filled(module: Any, value: float) -> Any:
    with torchlab.no_grad():
        for p in module.parameters():
            p.fill_(value)
    return module


def test_rnn_by_hand() -> None:
    rnn = filled(nn.RNN(1, 1, nonlinearity="relu"), 1.0)
    out, last = rnn(torchlab.tensor([[1.0], [2.0]]))  # h = x + 1 + h + 1
    assert out.tolist() == [[3.0], [7.0]]
    assert last.tolist() == [[7.0]]


def test_lstm_step() -> None:
    sigmoid = 1 / (1 + np.exp(-2.0))
    cell = filled(nn.LSTMCell(1, 1), 1.0)
    h, c = cell(torchlab.zeros(1, 1))  # every gate's argument is 2, both biases
    expected = sigmoid * np.tanh(2.0)
    np.testing.assert_allclose(c.item(), expected, rtol=1e-6)
    np.testing.assert_allclose(h.item(), sigmoid * np.tanh(expected), rtol=1e-6)


def test_gru_of_zeros_halves_the_state() -> None:
    gru = filled(nn.GRU(2, 1), 0.0)
    _, h = gru(torchlab.ones(3, 1, 2), torchlab.full((1, 1, 1), 8.0))
    assert h.item() == 1.0


def test_packed_sequences_end_where_they_end() -> None:
    torchlab.manual_seed(0)
    lstm = nn.LSTM(2, 3, bidirectional=True)
    x = [torchlab.randn(n, 2) for n in (2, 4, 1)]
    packed, (h, _) = lstm(nn.utils.rnn.pack_sequence(x, enforce_sorted=False))
    for i, (own, out) in enumerate(zip(x, nn.utils.rnn.unpack_sequence(packed), strict=True)):
        alone, (last, _) = lstm(own)
        np.testing.assert_allclose(out.detach().numpy(), alone.detach().numpy(), atol=1e-6)
        np.testing.assert_allclose(h[:, i].detach().numpy(), last.detach().numpy(), atol=1e-6)


def test_padding() -> None:
    rnn = nn.utils.rnn
    x = [torchlab.tensor([1, 2]), torchlab.tensor([3])]
    assert rnn.pad_sequence(x, batch_first=True, padding_value=9).tolist() == [[1, 2], [3, 9]]
    assert rnn.pad_sequence(x, padding_side="left").tolist() == [[1, 0], [2, 3]]
    packed = rnn.pack_sequence(x)
    assert packed.data.tolist() == [1, 3, 2]
    assert packed.batch_sizes.tolist() == [2, 1]
    padded, lengths = rnn.pad_packed_sequence(packed, total_length=3)
    assert padded.tolist() == [[1, 3], [2, 0], [0, 0]]
    assert lengths.tolist() == [2, 1]


def test_lengths_beyond_the_input_are_refused() -> None:
    with pytest.raises(RuntimeError, match="at most 3"):
        nn.utils.rnn.pack_padded_sequence(torchlab.zeros(3, 2, 1), [4, 1])


def test_another_weight_is_used_at_once() -> None:
    rnn = filled(nn.RNN(1, 1, nonlinearity="relu"), 1.0)
    rnn.weight_ih_l0 = nn.Parameter(torchlab.full((1, 1), 5.0))
    assert rnn(torchlab.ones(1, 1))[0].item() == 7.0

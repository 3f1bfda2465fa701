"""Example arguments of the recurrent networks' operators, for the generated tests."""

from __future__ import annotations

from typing import Any

from tests.core.ops.values import F

X, PACKED = F((3, 2, 3)), F((4, 3))  # (T, N, in); the second sequence has one time, the first three
SIZES = (2, 1, 1)
H = F((2, 4), -0.9, 0.9)


def _weights(gates: int, hidden: int = 4, state: int = 4) -> tuple[Any, ...]:
    rows = gates * hidden
    return F((rows, 3)), F((rows, state)), F((rows,)), F((rows,))


def _lines(states: int, gates: int, *more: Any) -> list[tuple[Any, ...]]:
    w = _weights(gates)
    return [
        (X, *(H,) * states, *w, *more, (), False, True),
        (X, *(H,) * states, *w[:2], None, None, *more, (), True, True),
        (PACKED, *(H,) * states, *w, *more, SIZES, False, True),
        (PACKED, *(H,) * states, *w, *more, SIZES, True, True),
    ]


def _mask(n: int, *without: int) -> tuple[bool, ...]:
    return tuple(i not in without for i in range(n))


ARGUMENTS: dict[str, list[tuple[Any, ...]]] = {
    "_lstm_line": [
        *_lines(2, 4, None),
        (X, F((2, 2)), H, *_weights(4, 4, 2), F((2, 4)), (), False, True),
    ],
    "_lstm_line_backward": [
        (X, H, None, X, H, H, *_weights(4)[:2], None, F((30, 4)), F((6, 4)), (), False, _mask(8, 7))
    ],
    "_gru_line": _lines(1, 3),
    "_gru_line_backward": [
        (PACKED, None, PACKED, H, *_weights(3)[:2], F((16, 4)), F((4, 4)), SIZES, True, _mask(6, 0))
    ],
    "_rnn_line": [a for relu in (False, True) for a in _lines(1, 1, relu)],
    "_rnn_line_backward": [
        (None, H, X, H, *_weights(1)[:2], F((6, 4)), False, (), False, _mask(6, 4))
    ],
}
for _name in ("_lstm_line_backward", "_gru_line_backward"):  # outputs' gradients have their width
    _given = ARGUMENTS[_name][0]
    ARGUMENTS[_name] = [(F((*_given[0].shape[:-1], 4)), *_given[1:])]

# For float32, with the extra `fast`: test_recurrent_lines.
LEFT_OUT = frozenset({"_lstm_line_onednn", "_lstm_line_onednn_backward"})
# The rest of the results is what backward needs, and has no gradient.
WELL_DEFINED: dict[str, Any] = {
    "_lstm_line": lambda found: found[:3],
    "_gru_line": lambda found: found[:2],
    "_rnn_line": lambda found: found[:2],
}

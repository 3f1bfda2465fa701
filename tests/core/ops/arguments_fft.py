"""Example arguments of the Fourier transforms, for the generated tests."""

from __future__ import annotations

from typing import Any

from tests.core.ops.values import C, F

ARGUMENTS: dict[str, list[tuple[Any, ...]]] = {
    "_fft_c2c": [
        (C(), (1,), 0, True),
        (C((2, 3, 2)), (0, 1), 1, False),
        (C((2, 3)), (0,), 2, True),
    ],
    "_fft_r2c": [(F((2, 5)), (1,), 0, True), (F((4, 3)), (1, 0), 2, True), (F(), (0, 1), 1, False)],
    "_fft_c2r": [(C((2, 3)), (1,), 2, 5), (C((3, 2)), (1, 0), 1, 4), (C((2, 2, 2)), (1,), 0, 3)],
}

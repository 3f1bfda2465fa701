"""What a `__torch_function__` handler is told: the call as its author wrote it (PyTorch's rule:
positional arguments stay positional, keyword-only ones come by name, defaults are not made up)."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import torchlab as torch


class Told(torch.Tensor):
    """Writes down how it is called."""

    calls: list[tuple[str, int, dict[str, Any]]] = []

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        cls.calls.append((func.__name__, len(args), kwargs or {}))
        return super().__torch_function__(func, types, args, kwargs or {})


@pytest.mark.parametrize(
    "call, told",
    [
        (lambda x: torch.add(x, x, alpha=2), ("add", 2, {"alpha": 2})),
        (lambda x: x.sum(dtype=torch.float64), ("sum", 1, {"dtype": torch.float64})),
        (lambda x: torch.softmax(x, 0), ("softmax", 2, {})),
        (lambda x: x + 1, ("add", 2, {})),
        (lambda x: x.clone(), ("clone", 1, {})),
    ],
)
def test_a_handler_is_told_the_call_as_written(call: Any, told: Any) -> None:
    x = torch.arange(3.0).as_subclass(Told)
    Told.calls.clear()
    result = call(x)
    assert Told.calls[0] == told
    assert type(result) is Told
    np.testing.assert_array_equal(result._a, call(torch.arange(3.0))._a)

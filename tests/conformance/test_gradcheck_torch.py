"""gradcheck against real PyTorch: its verdicts, and the class and the first words of its errors."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import pytest

import torchlab
from tests.conformance.gradcheck_cases import cases, second_cases

torch = pytest.importorskip("torch")


def verdict(check: Callable[..., Any], case: Any) -> Any:
    func, inputs, settings = case
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return check(func, inputs, **settings)
        except Exception as error:
            return type(error).__name__, str(error).strip().split("\n")[0][:60]


@pytest.mark.parametrize("name", cases(torchlab))
def test_first_derivatives(name: str) -> None:
    ours = verdict(torchlab.autograd.gradcheck, cases(torchlab)[name])
    assert ours == verdict(torch.autograd.gradcheck, cases(torch)[name])


@pytest.mark.parametrize("name", second_cases(torchlab))
def test_second_derivatives(name: str) -> None:
    ours = verdict(torchlab.autograd.gradgradcheck, second_cases(torchlab)[name])
    assert ours == verdict(torch.autograd.gradgradcheck, second_cases(torch)[name])

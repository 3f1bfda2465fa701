"""What `__torch_dispatch__`, `__torch_function__` and operators of one's own see and give, compared
with PyTorch by running the same small programs with both."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from torch.utils._python_dispatch import TorchDispatchMode as TheirMode  # noqa: E402

import torchlab  # noqa: E402
from tests.conformance import (  # noqa: E402
    dispatch_programs,
    function_programs,
    library_programs,
    subclass_programs,
)
from torchlab.utils._python_dispatch import TorchDispatchMode  # noqa: E402

# Programs whose log has other operators than PyTorch's, and why.
OTHER = {
    "mse": "mse_loss_backward is not declared: its gradient is written in other operators",
    "max_pool": "the gradient goes through the places of the maxima alone",
    "avg_pool": "the gradient's operator does not take the input",
    "batch_norm": "native_batch_norm has other outputs here (the variance too)",
    "sdpa": "attention is one operator here on all devices",
    "max_sort": "gradients of extremes add where PyTorch scatters",
    "mlp_step": "optimizers do their step in other operators",
    "adam_step": "optimizers do their step in other operators",
    "norms": "gradients of norms and deviations in other order",
    "clamp_abs": "`&` of masks where PyTorch has logical_and_",
    "einsum": "einsum permutes less",
    "expand_repeat": "one sum in the gradient of repeat",
    "transposes": "the gradient of squeeze is a view",
    "second": "the second derivative of a product with a number",
}


@pytest.mark.parametrize("name", sorted(dispatch_programs.PROGRAMS))
def test_a_mode_is_told_what_pytorch_tells_it(name: str) -> None:
    theirs, their_grads = dispatch_programs.run(torch, TheirMode, name)
    ours, our_grads = dispatch_programs.run(torchlab, TorchDispatchMode, name)
    same = [x.partition("(")[0] for x in theirs] == [x.partition("(")[0] for x in ours]
    assert same == (name not in OTHER), (theirs, ours)
    for a, b in zip(their_grads, our_grads, strict=True):
        assert (a is None) == (b is None)
        if a is not None and name not in ("mlp_step", "adam_step"):  # their weights are random
            np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-4, atol=1e-5)


def _plain(x: Any) -> Any:
    """A result with torchlab's name replaced by PyTorch's and numbers rounded."""
    if isinstance(x, (list, tuple)):
        return [_plain(y) for y in x]
    if isinstance(x, dict):
        return {_plain(k): _plain(v) for k, v in x.items()}
    if isinstance(x, float):
        return round(x, 5)
    return x.replace("torchlab", "torch") if isinstance(x, str) else x


@pytest.mark.parametrize("name", sorted(subclass_programs.CASES))
def test_subclasses_and_modes(name: str) -> None:
    run = subclass_programs.CASES[name]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert _plain(run(torchlab)) == _plain(run(torch))


@pytest.mark.parametrize("name", sorted(function_programs.CASES))
def test_classes_and_modes_that_take_functions_over(name: str) -> None:
    run = function_programs.CASES[name]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert _plain(run(torchlab)) == _plain(run(torch))


@pytest.mark.parametrize("name", sorted(library_programs.CASES))
def test_operators_of_ones_own(name: str) -> None:
    run = library_programs.CASES[name]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert _plain(run(torchlab)) == _plain(run(torch))

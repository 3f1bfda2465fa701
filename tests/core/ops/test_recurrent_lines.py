"""The recurrent networks' kernels against the same networks in operators, step by step."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

import torchlab as torch
from torchlab._core.backends import onednn
from torchlab._core.dispatch.registry import OPS
from torchlab._core.ops import recurrent

KINDS = ("LSTM", "GRU", "RNN")
OPTIONS: dict[str, dict[str, Any]] = {
    "plain": {},
    "batch first, no bias": {"batch_first": True, "bias": False},
    "both directions, two layers": {"bidirectional": True, "num_layers": 2},
    "projected": {"proj_size": 3},
    "relu": {"nonlinearity": "relu"},
}
TOLERANCE = {torch.float32: 2e-5, torch.float64: 1e-11}


@contextmanager
def in_operators() -> Iterator[None]:
    """No kernel runs a line."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(recurrent, "_fits", lambda *args: False)
        yield


@contextmanager
def without_onednn() -> Iterator[None]:
    was = onednn.enabled()
    onednn.enable(False)
    try:
        yield
    finally:
        onednn.enable(was)


def made(kind: str, options: dict[str, Any], dtype: Any) -> Any:
    torch.manual_seed(0)
    return getattr(torch.nn, kind)(5, 6, **options).to(dtype)


def states(module: Any, batch: int, dtype: Any) -> Any:
    """States that want a gradient."""
    n = module.num_layers * (2 if module.bidirectional else 1)
    rng = np.random.default_rng(1)
    sizes = (module.proj_size or 6, 6)[: 2 if module.mode == "LSTM" else 1]
    found = [
        torch.tensor(rng.normal(size=(n, batch, s)), dtype=dtype, requires_grad=True) for s in sizes
    ]
    return tuple(found) if module.mode == "LSTM" else found[0]


def flat(x: Any) -> list[Any]:
    if isinstance(x, (tuple, list)):
        return [t for part in x for t in flat(part)]
    return [x]


def results(module: Any, x: Any, hx: Any, pick: Any = flat) -> list[Any]:
    """Outputs and last states, and the gradients of everything."""
    y, last = module(x, hx)
    y = y.data if isinstance(y, torch.nn.utils.rnn.PackedSequence) else y
    outputs = pick((y, last))
    total = sum((t * t * torch.cos(t)).sum() for t in outputs)
    leaf = x.data if isinstance(x, torch.nn.utils.rnn.PackedSequence) else x
    gradients = torch.autograd.grad(
        total, [leaf, *flat(hx), *module.parameters()], allow_unused=True
    )
    return [*outputs, *gradients]


def same(a: list[Any], b: list[Any], dtype: Any) -> None:
    assert len(a) == len(b)
    for x, y in zip(a, b, strict=True):
        assert (x is None) == (y is None)
        if x is not None:
            assert x.stride() == y.stride()
            np.testing.assert_allclose(
                x.detach().numpy(), y.detach().numpy(), rtol=TOLERANCE[dtype], atol=TOLERANCE[dtype]
            )


def cases() -> Any:
    found = [
        (kind, name)
        for kind in KINDS
        for name in OPTIONS
        if not (name == "projected" and kind != "LSTM" or name == "relu" and kind != "RNN")
    ]
    return pytest.mark.parametrize(("kind", "name"), found)


def inputs(shape: tuple[int, ...], dtype: Any) -> Any:
    values = np.random.default_rng(2).normal(size=shape)
    return torch.tensor(values, dtype=dtype, requires_grad=True)


@cases()
@pytest.mark.parametrize("dtype", TOLERANCE, ids=str)
@pytest.mark.parametrize("times", [1, 4])
def test_values_and_gradients(kind: str, name: str, dtype: Any, times: int) -> None:
    module = made(kind, OPTIONS[name], dtype)
    x = inputs((3, times, 5) if module.batch_first else (times, 3, 5), dtype)
    hx = states(module, 3, dtype)
    with in_operators():
        expected = results(module, x, hx)
    same(results(module, x, hx), expected, dtype)
    with without_onednn():
        same(results(module, x, hx), expected, dtype)
    with torch.no_grad():
        y, last = module(x, hx)
    same(flat((y, last)), expected[: len(flat((y, last)))], dtype)


@cases()
def test_packed_sequences(kind: str, name: str) -> None:
    module = made(kind, OPTIONS[name], torch.float64)
    hx = states(module, 4, torch.float64)
    data = inputs((9, 5), torch.float64)
    packed = torch.nn.utils.rnn.PackedSequence(data, torch.tensor([4, 3, 1, 1]))
    with in_operators():
        expected = results(module, packed, hx)
    same(results(module, packed, hx), expected, torch.float64)
    with torch.no_grad():
        y, last = module(packed, hx)
    found = flat((y.data, last))
    same(found, expected[: len(found)], torch.float64)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("part", [slice(0, 1), slice(1, 2), slice(-1, None)])
def test_gradients_of_some_results(kind: str, part: slice) -> None:
    for dtype in TOLERANCE:
        module = made(kind, {}, dtype)
        x, hx = inputs((4, 2, 5), dtype), states(module, 2, dtype)
        with in_operators():
            expected = results(module, x, hx, lambda r: flat(r)[part])
        same(results(module, x, hx, lambda r: flat(r)[part]), expected, dtype)


@pytest.mark.parametrize("kind", KINDS)
def test_only_what_wants_a_gradient_gets_one(kind: str) -> None:
    module = made(kind, {}, torch.float32)
    x = inputs((4, 2, 5), torch.float32).detach()
    module.weight_ih_l0.requires_grad_(False)
    module.bias_hh_l0.requires_grad_(False)
    module(x)[0].sum().backward()
    assert module.weight_ih_l0.grad is None and module.bias_hh_l0.grad is None
    assert module.weight_hh_l0.grad is not None and module.bias_ih_l0.grad is not None
    expected = module.weight_hh_l0.grad
    module.zero_grad()
    with in_operators():
        module(x)[0].sum().backward()
    same([expected], [module.weight_hh_l0.grad], torch.float32)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dtype", TOLERANCE, ids=str)
def test_derivatives_of_the_second_order(kind: str, dtype: Any) -> None:
    module = made(kind, {}, dtype)
    x, hx = inputs((3, 2, 5), dtype), states(module, 2, dtype)
    wanted = [x, *flat(hx), *module.parameters()]

    def second() -> list[Any]:
        y = module(x, hx)[0]
        first = torch.autograd.grad((y * y).sum(), wanted, create_graph=True, allow_unused=True)
        total = sum((g * g).sum() for g in first if g is not None)
        return [*torch.autograd.grad(total, wanted, allow_unused=True)]

    with in_operators():
        expected = second()
    scale = max(g.abs().max().item() for g in expected if g is not None)
    same([g / scale for g in second()], [g / scale for g in expected], dtype)


def test_a_hook_sees_one_gradient_where_it_is_differentiated_again() -> None:
    module = made("GRU", {}, torch.float64)
    x = inputs((3, 2, 5), torch.float64) * 2
    seen: list[Any] = []
    x.register_hook(seen.append)
    y = module(x)[0]
    torch.autograd.grad((y * y).sum(), [x, module.weight_ih_l0], create_graph=True)
    assert len(seen) == 1


@pytest.mark.parametrize("kind", KINDS)
def test_results_may_be_written_to(kind: str) -> None:
    for dtype in TOLERANCE:
        module = made(kind, {}, dtype)
        x = inputs((3, 2, 5), dtype)
        y = module(x)[0]
        y.mul_(2).sum().backward()
        written, x.grad = x.grad, None
        (module(x)[0] * 2).sum().backward()
        same([written], [x.grad], dtype)


@pytest.mark.parametrize("kind", KINDS)
def test_large_arguments_saturate(kind: str) -> None:
    module = made(kind, {}, torch.float64)
    for dtype in TOLERANCE:
        x = torch.full((3, 1, 5), 1e4, dtype=dtype, requires_grad=True)
        y = module.to(dtype)(x)[0]
        y.sum().backward()
        assert y.abs().max() <= 1 and torch.isfinite(y).all() and torch.isfinite(x.grad).all()


@pytest.mark.parametrize("cell", ["LSTMCell", "GRUCell", "RNNCell"])
@pytest.mark.parametrize("bias", [True, False])
def test_cells(cell: str, bias: bool) -> None:
    for dtype in TOLERANCE:
        torch.manual_seed(0)
        module = getattr(torch.nn, cell)(5, 6, bias=bias).to(dtype)
        x = inputs((3, 5), dtype)

        def run(module: Any = module, x: Any = x) -> list[Any]:
            state = module(x)
            outputs = flat(module(x, state))
            total = sum((t * t).sum() for t in outputs)
            return [*outputs, *torch.autograd.grad(total, [x, *module.parameters()])]

        with in_operators():
            expected = run()
        same(run(), expected, dtype)


@pytest.mark.parametrize("kind", KINDS)
def test_transforms_see_the_operators(kind: str) -> None:
    module = made(kind, {}, torch.float64)
    x = inputs((2, 3, 2, 5), torch.float64).detach()
    mapped = torch.func.vmap(lambda v: module(v)[0])(x)
    same([mapped[1].contiguous()], [module(x[1])[0]], torch.float64)
    _, along = torch.func.jvp(lambda v: module(v)[0], (x[0],), (torch.ones_like(x[0]),))
    step = 1e-6
    slope = (module(x[0] + step)[0] - module(x[0] - step)[0]) / (2 * step)
    np.testing.assert_allclose(along.detach().numpy(), slope.detach().numpy(), rtol=1e-6, atol=1e-8)


@pytest.mark.skipif(onednn.library() is None, reason="needs the extra `fast`")
def test_the_fast_extra_runs_what_it_can() -> None:
    def ran(module: Any, dtype: Any, times: int) -> str:
        return module(inputs((times, 2, 5), dtype))[0].grad_fn.op.name

    module = made("LSTM", {}, torch.float32)
    assert ran(module, torch.float32, 4) == "_lstm_line_onednn"
    assert ran(module, torch.float32, 1) == "_lstm_line"  # one time: turning weights costs more
    with without_onednn():
        assert ran(module, torch.float32, 4) == "_lstm_line"
    assert ran(made("LSTM", {"proj_size": 3}, torch.float32), torch.float32, 4) == "_lstm_line"
    assert ran(made("LSTM", {}, torch.float64), torch.float64, 4) == "_lstm_line"


@pytest.mark.skipif(onednn.library() is None, reason="needs the extra `fast`")
def test_a_graph_that_was_made_for_onednn_runs_without() -> None:
    module = made("LSTM", {}, torch.float32)
    x = inputs((4, 2, 5), torch.float32)
    zeros = torch.zeros(2, 6)
    weights = list(module.parameters())

    def run() -> list[Any]:
        r = OPS["_lstm_line_onednn"]["default"].core(x, zeros, zeros, *weights, False, True)
        return [r[0], *torch.autograd.grad((r[0] * r[0]).sum(), [x, *weights])]

    expected = run()
    with without_onednn():
        found = run()
    same(found, expected, torch.float32)


@pytest.mark.parametrize("kind", KINDS)
def test_compiled_networks_keep_the_kernel(kind: str) -> None:
    for dtype in TOLERANCE:
        module = made(kind, {"num_layers": 2, "bidirectional": True}, dtype)
        x = inputs((4, 2, 5), dtype)
        wanted = [x, *module.parameters()]
        compiled = torch.compile(lambda v, m=module: (m(v)[0] ** 2).sum())
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # it would say so if it ran eagerly
            found = torch.autograd.grad(compiled(x), wanted)
        same([*found], [*torch.autograd.grad((module(x)[0] ** 2).sum(), wanted)], dtype)

"""torchlab.amp.GradScaler: scales, unscales, skips and adapts as PyTorch's documentation says.

Source: https://docs.pytorch.org/docs/2.13/amp.html#gradient-scaling
"""

from __future__ import annotations

import copy
import pickle
import warnings
from typing import Any

import pytest

import torchlab as torch
from torchlab.amp import GradScaler

INF = float("inf")


def _made(**options: Any) -> tuple[GradScaler, Any, Any]:
    p = torch.nn.Parameter(torch.ones(3))
    return GradScaler("cpu", init_scale=4.0, **options), p, torch.optim.SGD([p], lr=1.0)


def _step(scaler: GradScaler, p: Any, optimizer: Any, factor: float = 1.0) -> Any:
    optimizer.zero_grad()
    scaler.scale(p.sum() * factor).backward()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = scaler.step(optimizer)
    scaler.update()
    return result


def test_the_step_sees_unscaled_gradients() -> None:
    scaler, p, optimizer = _made()
    assert scaler.get_scale() == 4.0
    loss = scaler.scale(p.sum())
    assert loss.item() == 12.0
    loss.backward()
    assert p.grad.tolist() == [4.0, 4.0, 4.0]
    scaler.unscale_(optimizer)
    assert p.grad.tolist() == [1.0, 1.0, 1.0]
    scaler.step(optimizer)
    assert p.tolist() == [0.0, 0.0, 0.0]


def test_scale_keeps_containers() -> None:
    scaler, _, _ = _made()
    a, (b, c) = scaler.scale([torch.ones(()), (torch.ones(2), torch.ones(1).half())])
    assert a.item() == 4.0
    assert b.tolist() == [4.0, 4.0]
    assert c.dtype is torch.float16
    for wrong in (3, [3], "x"):
        with pytest.raises(ValueError, match="must be a Tensor or an iterable of Tensors"):
            scaler.scale(wrong)


def test_grows_after_good_steps_and_shrinks_after_bad_ones() -> None:
    scaler, p, optimizer = _made(growth_interval=2)
    _step(scaler, p, optimizer)
    assert scaler.get_scale() == 4.0
    _step(scaler, p, optimizer)
    assert scaler.get_scale() == 8.0
    before = p.tolist()
    assert _step(scaler, p, optimizer, INF) is None
    assert p.tolist() == before
    assert scaler.get_scale() == 4.0
    assert scaler.state_dict()["_growth_tracker"] == 0


def test_the_scale_does_not_grow_to_infinity() -> None:
    scaler = GradScaler("cpu", init_scale=2.0**127, growth_interval=1)
    p = torch.nn.Parameter(torch.zeros(1))
    _step(scaler, p, torch.optim.SGD([p], lr=0.0))
    assert scaler.get_scale() == 2.0**127


def test_one_bad_optimizer_skips_itself_alone_and_shrinks_the_scale() -> None:
    scaler, p, first = _made()
    q = torch.nn.Parameter(torch.ones(2))
    second = torch.optim.SGD([q], lr=1.0)
    scaler.scale(p.sum() + (q * INF).sum()).backward()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        scaler.step(first)
        scaler.step(second)
    scaler.update()
    assert p.tolist() == [0.0, 0.0, 0.0]
    assert q.tolist() == [1.0, 1.0]
    assert scaler.get_scale() == 2.0


def test_a_skipped_step_says_so_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("torchlab._core.settings._warned", set())
    scaler, p, optimizer = _made()
    for expected in (1, 0):
        optimizer.zero_grad()
        scaler.scale(p.sum() * INF).backward()
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            scaler.step(optimizer)
        scaler.update()
        assert len(told) == expected
    assert p.tolist() == [1.0, 1.0, 1.0]


def test_the_order_of_calls_is_checked() -> None:
    scaler, p, optimizer = _made()
    for call in (scaler.update, lambda: scaler.step(optimizer), lambda: scaler.unscale_(optimizer)):
        with pytest.raises(AssertionError, match="_scale is None"):
            call()
    scaler.scale(p.sum()).backward()
    with pytest.raises(AssertionError, match="No inf checks were recorded prior to update"):
        scaler.update()
    scaler.unscale_(optimizer)
    with pytest.raises(RuntimeError, match="already been called on this optimizer"):
        scaler.unscale_(optimizer)
    scaler.step(optimizer)
    with pytest.raises(RuntimeError, match="step\\(\\) has already been called"):
        scaler.step(optimizer)
    with pytest.raises(RuntimeError, match="being called after step"):
        scaler.unscale_(optimizer)
    with pytest.raises(RuntimeError, match="Closure use"):
        scaler.step(optimizer, closure=lambda: 0.0)


def test_an_optimizer_without_gradients() -> None:
    scaler, p, optimizer = _made()
    scaler.scale(p.sum())
    with pytest.raises(AssertionError, match="No inf checks were recorded for this optimizer"):
        scaler.step(optimizer)


def test_float16_gradients_are_refused_and_kept() -> None:
    scaler, _, _ = _made()
    q = torch.nn.Parameter(torch.ones(2).half())
    r = torch.nn.Parameter(torch.ones(2))
    q.grad, r.grad = torch.ones(2).half(), torch.ones(2)
    scaler.scale(torch.ones(()))
    with pytest.raises(ValueError, match="unscale FP16 gradients"):
        scaler.unscale_(torch.optim.SGD([r, q], lr=1.0))
    assert r.grad.tolist() == [1.0, 1.0]


def test_other_gradients() -> None:
    scaler, _, _ = _made()
    scaler.scale(torch.ones(()))
    p = torch.nn.Parameter(torch.ones(2).bfloat16())
    q = torch.nn.Parameter(torch.ones(2).double())
    p.grad, q.grad = 4 * torch.ones(2).bfloat16(), torch.tensor([4.0, float("nan")]).double()
    optimizer = torch.optim.SGD([p, q], lr=1.0)
    scaler.unscale_(optimizer)
    assert p.grad.tolist() == [1.0, 1.0]
    assert q.grad[0].item() == 1.0
    assert [f.item() for f in scaler._found_inf_per_device(optimizer).values()] == [1.0]


def test_sparse_gradients() -> None:
    scaler, _, _ = _made()
    table = torch.nn.Embedding(5, 2, sparse=True)
    scaler.scale(table(torch.tensor([1, 1])).sum()).backward()
    scaler.unscale_(torch.optim.SGD(table.parameters(), lr=1.0))
    assert table.weight.grad.to_dense()[1].tolist() == [2.0, 2.0]


def test_an_optimizer_that_scales_by_itself() -> None:
    class Own(torch.optim.SGD):
        _step_supports_amp_scaling = True
        seen: Any = None

        def step(self, closure: Any = None) -> Any:
            self.seen = (self.grad_scale.item(), self.found_inf.item())
            return 7

    scaler, p, _ = _made()
    optimizer = Own([p], lr=1.0)
    assert _step(scaler, p, optimizer, INF) == 7
    assert optimizer.seen == (4.0, 1.0)
    assert not hasattr(optimizer, "grad_scale")
    assert scaler.get_scale() == 2.0


def test_update_to_a_given_scale() -> None:
    scaler, _, _ = _made()
    scaler.scale(torch.ones(()))
    scaler.update(3.0)
    assert scaler.get_scale() == 3.0
    scaler.update(torch.tensor(5.0))
    assert scaler.get_scale() == 5.0
    for wrong in (2, torch.ones(2), torch.ones((), requires_grad=True)):
        with pytest.raises(AssertionError, match="new_scale should be a float"):
            scaler.update(wrong)  # type: ignore[arg-type]
    assert scaler.get_scale() == 5.0


def test_state() -> None:
    scaler, p, optimizer = _made(growth_interval=9, growth_factor=3.0, backoff_factor=0.25)
    _step(scaler, p, optimizer)
    state = scaler.state_dict()
    assert state == {
        "scale": 4.0,
        "growth_factor": 3.0,
        "backoff_factor": 0.25,
        "growth_interval": 9,
        "_growth_tracker": 1,
    }
    for other in (pickle.loads(pickle.dumps(scaler)), copy.deepcopy(scaler), GradScaler("cpu")):
        other.load_state_dict(state)
        assert other.state_dict() == state
    with pytest.raises(RuntimeError, match="state dict is empty"):
        scaler.load_state_dict({})
    scaler.scale(p.sum()).backward()
    scaler.unscale_(optimizer)
    with pytest.raises(AssertionError, match="may only be pickled at the beginning"):
        pickle.dumps(scaler)


def test_settings() -> None:
    scaler, _, _ = _made()
    scaler.set_growth_factor(3.0)
    scaler.set_backoff_factor(0.1)
    scaler.set_growth_interval(7)
    found = scaler.get_growth_factor(), scaler.get_backoff_factor(), scaler.get_growth_interval()
    assert found == (3.0, 0.1, 7)
    with pytest.raises(AssertionError, match="growth factor must be > 1"):
        GradScaler("cpu", growth_factor=1.0)
    with pytest.raises(AssertionError, match="backoff factor must be < 1"):
        GradScaler("cpu", backoff_factor=1.0)


def test_disabled() -> None:
    _, p, optimizer = _made()
    scaler = GradScaler("cpu", enabled=False)
    assert not scaler.is_enabled()
    assert scaler.scale(5) == 5
    assert scaler.get_scale() == 1.0
    assert scaler.state_dict() == {}
    p.grad = torch.ones(3)
    scaler.unscale_(optimizer)
    scaler.step(optimizer)
    scaler.update()
    assert p.tolist() == [0.0, 0.0, 0.0]

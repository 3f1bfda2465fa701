"""Traces: what they record, what they keep of the original, what they refuse."""

from __future__ import annotations

import copy
import threading
import warnings
import weakref
from typing import Any

import pytest

import torchlab as torch
from torchlab import nn

X, Y = torch.arange(12.0).reshape(3, 4), torch.arange(20.0).reshape(5, 4)


def traced(fn: Any, *args: Any, **kwargs: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return torch.jit.trace(fn, args or (X,), **kwargs)


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.BatchNorm1d(4)
        self.drop = nn.Dropout(0.5)
        self.fc = nn.Linear(4, 2)
        self.register_buffer("calls", torch.zeros(()))

    def forward(self, x: Any) -> Any:
        self.calls.add_(1)
        return self.fc(self.drop(self.norm(x)))


def test_a_module_keeps_its_tensors() -> None:
    m = Net()
    t = traced(m)
    assert isinstance(t, torch.jit.TopLevelTracedModule)
    assert isinstance(t, torch.jit.ScriptModule)
    assert list(t.state_dict()) == list(m.state_dict())
    assert t.fc.weight is m.fc.weight and t.calls is m.calls
    t(Y).sum().backward()
    assert m.fc.weight.grad is not None


def test_the_mode_is_recorded() -> None:
    m = Net().eval()
    t = traced(m)
    t.train()
    assert torch.equal(t(Y), t(Y)) and torch.equal(t(Y), m(Y))
    m.train()
    t = traced(m, check_trace=False).eval()
    before = int(m.norm.num_batches_tracked)
    assert not torch.equal(t(Y), t(Y))
    assert int(m.norm.num_batches_tracked) == before + 2


def test_buffers_are_written() -> None:
    m = Net().eval()
    t = traced(m, check_trace=False)
    before = float(m.calls)
    t(Y)
    assert float(m.calls) == before + 1
    assert type(m.calls) is torch.Tensor


def test_a_copy_has_tensors_of_its_own() -> None:
    m = Net().eval()
    t = traced(m)
    c = copy.deepcopy(t)
    assert c.fc.weight is not t.fc.weight
    with torch.no_grad():
        c.fc.weight.zero_()
        c.fc.bias.zero_()
    assert float(c(Y).abs().sum()) == 0
    assert torch.equal(t(Y), m(Y))


def test_other_dtypes_follow_the_module() -> None:
    t = traced(nn.Sequential(nn.Linear(4, 2), nn.ReLU()))
    assert t.double()(Y.double()).dtype is torch.float64


def test_several_methods() -> None:
    class Two(nn.Module):
        def forward(self, x: Any) -> Any:
            return x * 2

        def added(self, x: Any, y: Any) -> Any:
            return x + y

    t = torch.jit.trace_module(Two(), {"forward": X, "added": (X, X)})
    assert torch.equal(t(Y), Y * 2)
    assert torch.equal(t.added(Y, Y), Y + Y)
    assert t.added.schema == "added(__torch__.Two self, Tensor x, Tensor y) -> Tensor"


def test_sizes_are_recorded() -> None:
    t = traced(lambda x: x.view(x.size(0) * 2, -1))
    assert t(Y).shape == (10, 2)
    assert "size_of(x, 0)" in t.code and t.name == "_lambda"


def test_inside() -> None:
    seen = []

    def fn(x: Any) -> Any:
        seen.append((torch.jit.is_tracing(), isinstance(x.shape[0], torch.Tensor), x.ndim))
        return x * 1

    traced(fn)
    assert seen[0] == (True, True, 2)
    assert not torch.jit.is_tracing()


def test_containers() -> None:
    t = traced(lambda d: {"a": d["x"][0] + d["x"][1]}, {"x": (X, X)}, strict=False)
    assert torch.equal(t({"x": (Y, Y)})["a"], Y + Y)
    t = torch.jit.trace(lambda x, y: x - y, example_kwarg_inputs={"x": X, "y": X})
    assert torch.equal(t(Y, y=Y * 2), -Y)


def test_the_same_tensor_twice() -> None:
    t = traced(lambda x, y: x - y, X, X)
    assert torch.equal(t(Y, Y * 2), -Y)


def test_functions_that_do_not_ask() -> None:
    t = traced(
        lambda x: torch.einsum("ij,kj->ik", x, x) + torch.nn.functional.pad(x[:, :0], (0, 1))
    )
    assert torch.allclose(t(Y), Y @ Y.T)


def test_out_is_recorded() -> None:
    def fn(x: Any) -> Any:
        a, b = torch.empty_like(x), torch.empty(0)
        torch.mul(x, 3, out=a)
        torch.matmul(x, x.T, out=b)
        torch.max(x, 1, out=(torch.empty(0), torch.empty(0, dtype=torch.int64)))
        return a, torch.fft.fft(x, out=torch.empty(0, dtype=torch.complex64)).real, b

    for a, b in zip(traced(fn)(Y), fn(Y), strict=True):
        assert torch.allclose(a, b)


def test_autocast_is_recorded() -> None:
    def fn(x: Any) -> Any:
        with torch.autocast("cpu", torch.bfloat16):
            return x @ x.T

    assert traced(fn)(Y).dtype is torch.bfloat16


def test_own_backward_stays() -> None:
    class Odd(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 2

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g * 7

    t = traced(lambda x: Odd.apply(x))
    x = Y.clone().requires_grad_()
    t(x).sum().backward()
    assert x.grad is not None and float(x.grad[0, 0]) == 7


def test_hooks_are_recorded() -> None:
    m = nn.Sequential(nn.Linear(4, 4))
    m[0].register_forward_hook(lambda m, i, o: o * 2)
    assert torch.allclose(traced(m)(Y), m(Y))


def test_errors_name_the_line() -> None:
    def called(name: str, fn: Any) -> None:
        with pytest.raises(RuntimeError, match=rf"cannot record.*{name}.*test_trace\.py:\d+"):
            traced(fn)

    called("vmap|torch.func", lambda x: torch.func.grad(lambda r: (r * r).sum())(x))
    called("functional.jacobian", lambda x: torch.autograd.functional.jacobian(torch.sin, x))
    called("autograd.grad", lambda x: torch.autograd.grad(x.sum(), x)[0])
    called("backward", lambda x: x.sum().backward())


def test_what_comes_from_nowhere() -> None:
    def fn(x: Any) -> Any:
        return x + torch.func.vmap(lambda r: r * 2)(x)

    with pytest.raises(RuntimeError, match=r"torch\.jit\.trace.*test_trace\.py"):
        traced(fn)


def test_a_failing_trace_leaves_nothing() -> None:
    m = Net()
    with pytest.raises(RuntimeError):
        traced(m, torch.zeros(2, 3))
    assert not torch.jit.is_tracing() and "forward" not in m.fc.__dict__
    assert type(m.calls) is torch.Tensor
    assert m(X).shape == (3, 2)


def test_a_trace_keeps_no_tensors() -> None:
    class Held(torch.Tensor):
        pass

    x = torch.ones(3).as_subclass(Held)
    gone = weakref.ref(x)
    traced(lambda y: y * 2)
    del x
    assert gone() is None


def test_other_threads_are_not_traced() -> None:
    seen = []

    def fn(x: Any) -> Any:
        other = threading.Thread(
            target=lambda: seen.append(
                (torch.jit.is_tracing(), type(torch.einsum("i->i", torch.ones(2))))
            )
        )
        other.start()
        other.join()
        return x * 1

    traced(fn)
    assert seen[0] == (False, torch.Tensor)


def test_errors_while_running_name_the_recorded_line() -> None:
    t = traced(lambda x: x @ x.new_ones(4, 2))
    with pytest.raises(RuntimeError) as e:
        t(torch.ones(2, 3))
    assert any("test_trace.py" in note for note in e.value.__notes__)


def test_tracing_state() -> None:
    seen = []

    def fn(x: Any) -> Any:
        seen.append(torch._C._get_tracing_state() is not None)
        return x * 1

    assert torch._C._get_tracing_state() is None
    traced(fn)
    assert seen[0] and torch._C._get_tracing_state() is None

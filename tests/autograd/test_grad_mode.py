"""no_grad and its relatives, per thread."""

from __future__ import annotations

import threading

import pytest

import torchlab
from torchlab import enable_grad, inference_mode, is_grad_enabled, no_grad, set_grad_enabled


def test_contexts_nest_and_restore() -> None:
    x = torchlab.ones(1, requires_grad=True)
    with no_grad():
        assert not (x * 2).requires_grad
        with enable_grad():
            assert (x * 2).requires_grad
        assert not is_grad_enabled()
    assert is_grad_enabled()
    with pytest.raises(ZeroDivisionError), no_grad():
        _ = 1 / 0
    assert is_grad_enabled()
    with set_grad_enabled(False):
        assert not is_grad_enabled()
    set_grad_enabled(False)
    assert not is_grad_enabled()
    set_grad_enabled(True)
    assert is_grad_enabled()


def test_decorators_and_generators() -> None:
    @no_grad()
    def f() -> bool:
        return is_grad_enabled()

    @no_grad
    def numbers():
        for _ in range(2):
            yield is_grad_enabled()

    assert f() is False
    assert [(inside, is_grad_enabled()) for inside in numbers()] == [(False, True)] * 2


def test_each_thread_has_its_own() -> None:
    inside = []
    with no_grad():
        t = threading.Thread(target=lambda: inside.append(is_grad_enabled()))
        t.start()
        t.join()
        assert not is_grad_enabled()
    assert inside == [True]


def test_inference_tensors() -> None:
    x = torchlab.ones(2, requires_grad=True)
    with inference_mode():
        y = x * 2
        assert not y.requires_grad and y.is_inference()
    with pytest.raises(RuntimeError, match="Inference tensors cannot be saved for backward"):
        x * y
    with pytest.raises(RuntimeError, match="Inplace update to inference tensor"):
        y.add_(1)
    assert (x * y.clone()).requires_grad


def test_views_made_without_recording_must_not_be_written() -> None:
    x = torchlab.ones(2, requires_grad=True) * 1
    with no_grad():
        v = x[:1]
    with pytest.raises(RuntimeError, match="A view was created in no_grad mode"):
        v.mul_(2)
    assert x.tolist() == [1.0, 1.0]


def test_a_class_that_is_decorated_is_told() -> None:
    with pytest.warns(FutureWarning, match="Decorating classes is deprecated"):

        @no_grad()
        class Made:
            pass

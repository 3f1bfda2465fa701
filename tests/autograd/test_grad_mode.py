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


def test_inference_mode_records_nothing_even_if_told_to() -> None:
    x = torchlab.tensor([1.0, 2.0], requires_grad=True) * 1
    with torchlab.inference_mode(), torchlab.enable_grad():
        assert torchlab.is_grad_enabled()
        y = x.exp()
    assert not y.requires_grad and y.is_inference()
    with torchlab.inference_mode():
        assert not torchlab.is_grad_enabled()
    assert torchlab.is_grad_enabled()


def test_all_results_of_inference_mode_are_its_tensors() -> None:
    with torchlab.inference_mode():
        results = [*torchlab.ones(3).max(0), *torchlab.ones(3).sort()]
    assert all(t.is_inference() for t in results)


def test_writes_that_are_not_to_count() -> None:
    x = torchlab.tensor([1.0, 2.0])
    with torchlab.autograd._unsafe_preserve_version_counter(x):
        x.mul_(2)
    assert x._version == 0

"""Futures: values that come later, in this thread or another."""

from __future__ import annotations

import threading
from typing import Any

import pytest

import torchlab as torch
from torchlab.futures import Future, collect_all, wait_all


def failing(f: Any) -> Any:
    raise ValueError("callback")


def test_the_base_class() -> None:
    assert isinstance(Future(), torch.Future)
    f = torch.Future()
    f.set_result(1)
    assert f.wait() == 1 and not isinstance(f, Future)


def test_a_value_comes() -> None:
    f: Any = Future()
    seen: list[Any] = []
    doubled = f.then(lambda x: x.value() * 2)
    f.add_done_callback(lambda x: seen.append(x.value()))
    assert not f.done() and not doubled.done()
    with pytest.raises(RuntimeError):
        f.value()
    f.set_result(3)
    assert f.done() and f.wait() == f.value() == 3 and doubled.wait() == 6 and seen == [3]
    f.add_done_callback(lambda x: seen.append("late"))
    assert seen == [3, "late"]
    with pytest.raises(RuntimeError, match="can only be marked completed once"):
        f.set_result(4)


def test_errors() -> None:
    f: Any = Future()
    with pytest.raises(AssertionError, match="not an Exception"):
        f.set_exception("no")
    f.set_exception(ValueError("x"))
    with pytest.raises(ValueError, match="x"):
        f.wait()
    with pytest.raises(RuntimeError, match="when running the callback: ValueError"):
        f.then(failing).wait()
    with pytest.raises(TypeError):
        f.then(3)


def test_a_failing_callback_is_printed(capsys: Any) -> None:
    f: Any = Future()
    seen: list[int] = []
    f.add_done_callback(failing)
    f.add_done_callback(lambda x: seen.append(1))
    f.set_result(1)
    assert seen == [1]
    assert "ValueError: callback" in capsys.readouterr().err


def test_all() -> None:
    a, b = Future(), Future()
    both = collect_all([a, b])
    a.set_result(1)
    assert not both.done()
    b.set_result(2)
    assert [f.wait() for f in both.wait()] == [1, 2] == wait_all([a, b])
    assert wait_all([]) == []
    c: Any = Future()
    c.set_exception(KeyError("c"))
    with pytest.raises(KeyError):
        wait_all([a, c])
    with pytest.raises(TypeError):
        collect_all(3)  # type: ignore[arg-type]


def test_another_thread() -> None:
    f: Any = Future()
    threading.Timer(0.01, lambda: f.set_result(torch.ones(2))).start()
    assert f.wait().tolist() == [1, 1]


def test_fork() -> None:
    f = torch.jit.fork(lambda x, y=1: x + y, 2, y=3)
    assert isinstance(f, torch.jit.Future) and f.done() and torch.jit.wait(f) == 5
    with pytest.raises(ZeroDivisionError):
        torch.jit.fork(lambda: 1 / 0)
    with pytest.raises(TypeError):
        torch.jit.fork(3)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="indices"):
        Future(devices=["cpu"])

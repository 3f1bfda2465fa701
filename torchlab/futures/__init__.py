"""`torch.futures`: values that come later.

    future = torch.futures.Future()
    doubled = future.then(lambda f: f.value() * 2)
    future.set_result(21)
    doubled.wait()  # 42

Source: https://docs.pytorch.org/docs/2.13/futures.html
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

from torchlab.futures import _future

__all__ = ["Future", "collect_all", "wait_all"]


class Future(_future.Future):
    """A value that somebody sets once, and others wait for."""

    def set_exception(self, result: BaseException) -> None:
        """Set an error, which `wait` and `value` raise; AssertionError for what is none."""
        if not isinstance(result, Exception):
            raise AssertionError(f"{result} is of type {type(result)}, not an Exception.")
        self._complete(None, result)


def _checked(name: str, futures: Any) -> list[_future.Future]:
    if not isinstance(futures, Sequence) or not all(isinstance(f, _future.Future) for f in futures):
        raise TypeError(f"{name}(): expected a list of futures, not {futures!r}")
    return list(futures)


def collect_all(futures: list[Future]) -> Future:
    """The future of the list of `futures`, done when all of them are; it has the first error."""
    wanted = _checked("collect_all", futures)
    made = Future()
    left = len(wanted)
    lock = threading.Lock()
    if not wanted:
        made.set_result([])

    def one(_: Any) -> None:
        nonlocal left
        with lock:
            left -= 1
            if left:
                return
        error = next((f._error for f in wanted if f._error is not None), None)
        made._complete(wanted if error is None else None, error)

    for f in wanted:
        f._when_done(one)
    return made


def wait_all(futures: list[Future]) -> list[Any]:
    """The values of all the futures, when all are there; raises the first error."""
    return [f.wait() for f in collect_all(futures).wait()]

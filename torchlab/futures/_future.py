"""A value that comes later.

Source: https://docs.pytorch.org/docs/2.13/futures.html
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from types import GenericAlias
from typing import Any

from torchlab._core.device import device


class Future:
    """A value that somebody sets once, and others wait for; callbacks run when it is there, in the
    thread that sets it. `devices`: those that tensors of the value may be on; here the value is
    there when it is set, so none has to be named."""

    __class_getitem__ = classmethod(GenericAlias)  # type: ignore[var-annotated]

    def __init__(self, *, devices: list[int | str | device] | None = None) -> None:
        for d in devices or ():
            found = device("cuda", d) if isinstance(d, int) else device(d)
            if found.index is None:
                raise ValueError(f"Expected devices to have indices, got {found}")
        self._changed = threading.Condition()
        self._done = False
        self._result: Any = None
        self._error: BaseException | None = None
        self._callbacks: list[Callable[[Any], Any]] = []

    def done(self) -> bool:
        """Whether the value, or an error, is there."""
        return self._done

    def wait(self) -> Any:
        """The value, when it is there; raises the error if there is one."""
        with self._changed:
            self._changed.wait_for(lambda: self._done)
        return self.value()

    def value(self) -> Any:
        """The value; RuntimeError if it is not there yet. Raises the error if there is one."""
        if not self._done:
            raise RuntimeError("Future.value(): the future is not completed: use wait()")
        if self._error is not None:
            raise self._error
        return self._result

    def then(self, callback: Callable[[Any], Any]) -> Any:
        """The future of what `callback(self)` returns, called when this one is done."""
        _check_callable("then", callback)
        made = type(self)._empty()

        def run(future: Any) -> None:
            try:
                result = callback(future)
            except Exception as e:
                error = RuntimeError(
                    f"Got the following error when running the callback: {type(e).__name__}: {e}"
                )
                error.__cause__ = e
                made._complete(None, error)
            else:
                made._complete(result, None)

        self._when_done(run)
        return made

    def add_done_callback(self, callback: Callable[[Any], None]) -> None:
        """Call `callback(self)` when this is done, or now if it is. Its errors are only printed."""
        _check_callable("add_done_callback", callback)

        def run(future: Any) -> None:
            try:
                callback(future)
            except Exception as e:
                print(
                    f"Got the following error when running the callback: {type(e).__name__}: {e}",
                    file=sys.stderr,
                )

        self._when_done(run)

    def set_result(self, result: Any) -> None:
        """Set the value; RuntimeError if it is set already."""
        self._complete(result, None)

    @classmethod
    def _empty(cls) -> Any:
        return cls()

    def _complete(self, result: Any, error: BaseException | None) -> None:
        with self._changed:
            if self._done:
                raise RuntimeError(
                    "Attempting to mark a completed Future as complete again. Note that a Future"
                    " can only be marked completed once."
                )
            self._result, self._error, self._done = result, error, True
            callbacks, self._callbacks = self._callbacks, []
            self._changed.notify_all()
        for run in callbacks:
            run(self)

    def _when_done(self, run: Callable[[Any], None]) -> None:
        with self._changed:
            if not self._done:
                self._callbacks.append(run)
                return
        run(self)


Future.__module__ = f"{__name__.partition('.')[0]}.jit"


def _check_callable(name: str, callback: Any) -> None:
    if not callable(callback):
        raise TypeError(
            f"{name}(): the callback must be a function of the future, not"
            f" {type(callback).__name__}"
        )


__all__ = ["Future"]

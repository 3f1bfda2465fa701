"""no_grad, enable_grad, set_grad_enabled, inference_mode: per thread, as context or decorator.

Source: https://docs.pytorch.org/docs/2.13/torch.html#locally-disabling-gradient-computation
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

from torchlab._core.dispatch.modes import SLOW
from torchlab._core.settings import warn_user
from torchlab._core.tape import NOGRAD, TLS, storage_of
from torchlab._core.tensor import Tensor


def is_grad_enabled() -> bool:
    """Whether this thread's tape records, or would if this were not inference mode."""
    return not NOGRAD or TLS.grad or TLS.inference and TLS.inference_grad


def is_inference_mode_enabled() -> bool:
    """Whether this thread is in inference mode."""
    return TLS.inference


def _set(on: bool) -> None:
    if TLS.inference:
        TLS.inference_grad = on
    elif TLS.grad is not on:
        TLS.grad = on
        if on:
            NOGRAD.pop()
        else:
            NOGRAD.append(1)


class _Mode:
    """A context manager that also decorates functions, generators included."""

    __slots__ = ("_before",)

    def _again(self) -> Any:
        return type(self)()

    def clone(self) -> Any:
        """Another one of the kind."""
        return self._again()

    def __call__(self, fn: Callable[..., Any]) -> Callable[..., Any]:
        again = self._again
        if isinstance(fn, type):
            warn_user(
                "Decorating classes is deprecated and will be disabled in future versions. You "
                "should only decorate functions or methods. To preserve the current behavior of "
                "class decoration, you can directly decorate the `__init__` method and nothing "
                "else.",
                FutureWarning,
            )
        if inspect.isgeneratorfunction(fn):

            @functools.wraps(fn)
            def generator(*args: Any, **kwargs: Any) -> Any:
                with again():
                    g = fn(*args, **kwargs)
                    value = next(g, _END)
                while value is not _END:
                    sent = yield value
                    with again():
                        try:
                            value = g.send(sent)
                        except StopIteration as stop:
                            return stop.value
                return None

            return generator

        @functools.wraps(fn)
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            with again():
                return fn(*args, **kwargs)

        return wrapped


_END = object()


_new = object.__new__


class no_grad(_Mode):
    """Record nothing inside."""

    __slots__ = ()

    def __new__(cls, orig_func: Any = None) -> Any:
        if orig_func is None:
            return _new(cls)
        return _new(cls)(orig_func)

    def __enter__(self) -> None:
        before = self._before = TLS.grad
        if before:
            TLS.grad = False
            NOGRAD.append(1)

    def __exit__(self, *exc: object) -> None:
        if self._before:
            TLS.grad = True
            NOGRAD.pop()


class enable_grad(_Mode):
    """Record inside, also within no_grad."""

    __slots__ = ()

    def __new__(cls, orig_func: Any = None) -> Any:
        return _new(cls) if orig_func is None else _new(cls)(orig_func)

    def __enter__(self) -> None:
        self._before = is_grad_enabled()
        _set(True)

    def __exit__(self, *exc: object) -> None:
        _set(self._before)


class set_grad_enabled(_Mode):
    """Switch recording on or off: at once, and back at the end of a `with`."""

    __slots__ = ("mode",)

    def __init__(self, mode: bool) -> None:
        self.mode = bool(mode)
        self._before = is_grad_enabled()
        _set(self.mode)

    def _again(self) -> Any:
        return set_grad_enabled(self.mode)

    def __call__(self, fn: Callable[..., Any]) -> Callable[..., Any]:
        _set(self._before)
        return super().__call__(fn)

    def __enter__(self) -> None:
        _set(self.mode)

    def __exit__(self, *exc: object) -> None:
        _set(self._before)


class set_multithreading_enabled(_Mode):
    """Whether a backward over several devices may use a thread for each: at once, and back at the
    end of a `with`. The engine here runs a backward in the thread that calls it, whatever this
    says, as PyTorch does on the CPU; the setting is remembered for programs that ask."""

    __slots__ = ("mode",)

    def __init__(self, mode: bool) -> None:
        self.mode = bool(mode)
        self._before = TLS.multithreading
        TLS.multithreading = self.mode

    def _again(self) -> Any:
        return set_multithreading_enabled(self.mode)

    def __enter__(self) -> None:
        pass

    def __exit__(self, *exc: object) -> None:
        TLS.multithreading = self._before


def is_multithreading_enabled() -> bool:
    """What `set_multithreading_enabled` said last in this thread."""
    return TLS.multithreading


class enforce_grad_layout_policy(_Mode):
    """Whether the first gradient of a leaf is copied where its strides are not the leaf's (the
    default), or may be taken over as it is: at once, and back at the end of a `with`."""

    __slots__ = ("enable",)

    def __init__(self, enable: bool = True) -> None:
        self.enable = bool(enable)
        self._before = TLS.leaf_layout
        TLS.leaf_layout = self.enable

    def _again(self) -> Any:
        return enforce_grad_layout_policy(self.enable)

    def __enter__(self) -> None:
        pass

    def __exit__(self, *exc: object) -> None:
        TLS.leaf_layout = self._before


class inference_mode(_Mode):
    """As no_grad; tensors made inside never take part in autograd and have no version."""

    __slots__ = ("mode", "_inference")

    mode: Any
    _inference: bool

    def __new__(cls, mode: Any = True) -> Any:
        m = object.__new__(cls)
        if mode is True or not callable(mode):
            m.mode = mode
            return m
        m.mode = True
        return m(mode)

    def _again(self) -> Any:
        return inference_mode(self.mode)

    def __enter__(self) -> None:
        thread = TLS.__dict__  # one look-up instead of one for every access
        self._inference = thread["inference"]
        before = self._before = thread["grad"]
        if self.mode:
            if not self._inference:
                thread["inference"] = True
                SLOW.append(self)
            if before:
                thread["grad"] = False
                NOGRAD.append(1)
        else:
            thread["inference"] = False
            _set(True)

    def __exit__(self, *exc: object) -> None:
        thread = TLS.__dict__
        if self.mode and not self._inference:
            thread["inference_grad"] = False
            SLOW.remove(self)
        thread["inference"] = self._inference
        before = self._before
        if thread["grad"] is not before:
            thread["grad"] = before
            if before:
                NOGRAD.pop()
            else:
                NOGRAD.append(1)


class _unsafe_preserve_version_counter(_Mode):
    """Let writes inside not count: at the end the tensors have the versions that they came with.
    What the tape saved of them is then taken for unchanged."""

    __slots__ = ("tensors", "versions")

    def __init__(self, tensors: Any) -> None:
        self.tensors = (tensors,) if isinstance(tensors, Tensor) else tuple(tensors)
        self.versions = tuple(storage_of(t).version for t in self.tensors)

    def __enter__(self) -> None:
        pass

    def __exit__(self, *exc: object) -> None:
        for t, version in zip(self.tensors, self.versions, strict=True):
            storage_of(t).version = version

"""Decorators of data pipes: steps as methods, determinism, checks of what a pipe yields."""

from __future__ import annotations

import functools
import inspect
import typing
from collections.abc import Callable, Iterator
from typing import Any

from torchlab.utils.data.datapipes.datapipe import IterDataPipe, MapDataPipe

_determinism = False
_validation = True


class functional_datapipe:
    """Decorate a class of data pipes: `pipe.name(...)` makes one on top of `pipe`."""

    def __init__(self, name: str, enable_df_api_tracing: bool = False) -> None:
        self.name = name
        self.enable_df_api_tracing = enable_df_api_tracing

    def __call__(self, cls: Any) -> Any:
        if isinstance(cls, type):
            if issubclass(cls, IterDataPipe):
                base: Any = IterDataPipe
            elif issubclass(cls, MapDataPipe):
                base = MapDataPipe
            else:
                return cls
        else:  # a function that makes pipes
            base = IterDataPipe
        base.register_datapipe_as_function(self.name, cls, self.enable_df_api_tracing)
        return cls


class guaranteed_datapipes_determinism:
    """Inside, making a data pipe that is marked `non_deterministic` raises TypeError."""

    def __init__(self) -> None:
        global _determinism
        self.before = _determinism
        _determinism = True

    def __enter__(self) -> None:
        pass

    def __exit__(self, *exc: object) -> None:
        global _determinism
        _determinism = self.before


class non_deterministic:
    """Mark a class of data pipes whose order may change; or, with a function of its arguments, some
    of its instances."""

    cls: Any = None

    def __init__(self, arg: Any) -> None:
        if isinstance(arg, type):
            if not issubclass(arg, IterDataPipe):
                raise TypeError(
                    "Only `IterDataPipe` can be decorated with `non_deterministic`, but"
                    f" {arg.__name__} is found"
                )
            self.cls = arg
        elif callable(arg):
            self.deterministic_fn = arg
        else:
            raise TypeError(f"{arg} can not be decorated by non_deterministic")

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self.cls is not None:
            _refuse_if(True, self.cls)
            return self.cls(*args, **kwargs)
        cls = args[0]
        if not (isinstance(cls, type) and issubclass(cls, IterDataPipe)):
            found = getattr(cls, "__name__", cls)
            raise TypeError(f"Only `IterDataPipe` can be decorated, but {found} is found")
        self.cls = cls
        return self.deterministic_wrapper_fn

    def deterministic_wrapper_fn(self, *args: Any, **kwargs: Any) -> Any:
        """The class, asked first whether these arguments make it non-deterministic."""
        odd = self.deterministic_fn(*args, **kwargs)
        if not isinstance(odd, bool):
            raise TypeError(
                "deterministic_fn of `non_deterministic` decorator is required to return a boolean"
                f" value, but {type(odd)} is found"
            )
        _refuse_if(odd, self.cls)
        return self.cls(*args, **kwargs)


def _refuse_if(odd: bool, cls: Any) -> None:
    if odd and _determinism:
        raise TypeError(
            f"{cls.__name__} is non-deterministic, but you set 'guaranteed_datapipes_determinism'."
            " You can turn off determinism for this DataPipe if that is acceptable for your"
            " application"
        )


def argument_validation(f: Callable[..., Any]) -> Callable[..., Any]:
    """Decorate a function that takes data pipes: arguments are bound to its signature first."""
    signature = inspect.signature(f)

    @functools.wraps(f)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        bound = signature.bind(*args, **kwargs)
        return f(*bound.args, **bound.kwargs)

    return wrapper


class runtime_validation_disabled:
    """Inside, what pipes yield is not checked."""

    def __init__(self) -> None:
        global _validation
        self.before = _validation
        _validation = False

    def __enter__(self) -> None:
        pass

    def __exit__(self, *exc: object) -> None:
        global _validation
        _validation = self.before


def runtime_validation(f: Callable[..., Any]) -> Callable[..., Any]:
    """Decorate `__iter__`, declared to return `Iterator[T]`: RuntimeError for what is no T. Types
    that cannot be asked about (with parameters of their own) are not checked."""
    if f.__name__ != "__iter__":
        raise TypeError(
            f"Can not decorate function {f.__name__} with 'runtime_validation', only __iter__"
        )

    @functools.wraps(f)
    def wrapper(self: Any) -> Iterator[Any]:
        try:
            declared = typing.get_type_hints(f).get("return")
        except NameError:  # a type that only its function knows
            declared = None
        arguments = typing.get_args(declared)
        kind = arguments[0] if len(arguments) == 1 and isinstance(arguments[0], type) else object
        for value in f(self):
            if _validation and not isinstance(value, kind):
                raise RuntimeError(
                    f"Expected an instance as subtype of {kind}, but found {value!r}({type(value)})"
                )
            yield value

    return wrapper


__all__ = [
    "argument_validation", "functional_datapipe", "guaranteed_datapipes_determinism",
    "non_deterministic", "runtime_validation", "runtime_validation_disabled",
]  # fmt: skip

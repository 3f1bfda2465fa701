"""What all data pipes are: datasets with their steps as methods (`pipe.map(f).batch(4)`).

An `IterDataPipe` has one valid iterator at a time: a new one ends the one before, since pipes may
hold buffers.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Iterable, Iterator
from typing import Any, ClassVar, TypeVar

from torchlab.utils.data.dataset import Dataset, IterableDataset

T = TypeVar("T")
_ITERATING = threading.local()


class _Functional:
    """The part that both kinds share: steps as methods, and hooks for pickling and printing."""

    functions: ClassVar[dict[str, Callable[..., Any]]]
    reduce_ex_hook: ClassVar[Callable[..., Any] | None] = None
    getstate_hook: ClassVar[Callable[..., Any] | None] = None
    str_hook: ClassVar[Callable[..., str] | None] = None
    repr_hook: ClassVar[Callable[..., str] | None] = None

    def __getattr__(self, name: str) -> Any:
        function = type(self).functions.get(name)
        if function is None:
            raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}")
        bound = functools.partial(function, self)
        functools.update_wrapper(bound, function, assigned=("__doc__",))
        return bound

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *type(self).functions]

    @classmethod
    def register_function(cls, function_name: str, function: Callable[..., Any]) -> None:
        """Let `pipe.function_name(...)` call `function(pipe, ...)`."""
        cls.functions[function_name] = function

    @classmethod
    def register_datapipe_as_function(
        cls, function_name: str, cls_to_register: Any, enable_df_api_tracing: bool = False
    ) -> None:
        """Let `pipe.function_name(...)` make `cls_to_register(pipe, ...)`."""
        if function_name in cls.functions:
            raise Exception(
                f"Unable to add DataPipe function name {function_name} as it is already taken"
            )

        def make(source: Any, *args: Any, **kwargs: Any) -> Any:
            return cls_to_register(source, *args, **kwargs)

        functools.update_wrapper(make, cls_to_register, assigned=("__doc__",))
        cls.functions[function_name] = make

    @classmethod
    def set_reduce_ex_hook(cls, hook_fn: Any) -> None:
        """What `__reduce_ex__` asks first; None takes it back."""
        if cls.reduce_ex_hook is not None and hook_fn is not None:
            raise RuntimeError("Attempt to override existing reduce_ex_hook")
        cls.reduce_ex_hook = hook_fn

    @classmethod
    def set_getstate_hook(cls, hook_fn: Any) -> None:
        """What `__getstate__` passes the attributes through; None takes it back."""
        if cls.getstate_hook is not None and hook_fn is not None:
            raise RuntimeError("Attempt to override existing getstate_hook")
        cls.getstate_hook = hook_fn

    def __reduce_ex__(self, protocol: Any) -> Any:
        hook = type(self).reduce_ex_hook
        if hook is not None:
            try:
                return hook(self)
            except NotImplementedError:
                pass
        return super().__reduce_ex__(protocol)

    def __getstate__(self) -> Any:
        state = self.__dict__
        hook = type(self).getstate_hook
        return state if hook is None else hook(state)

    def __repr__(self) -> str:
        hook = type(self).repr_hook
        return type(self).__qualname__ if hook is None else hook(self)

    def __str__(self) -> str:
        hook = type(self).str_hook
        return type(self).__qualname__ if hook is None else hook(self)


class IterDataPipe(_Functional, IterableDataset[T]):
    """A data pipe to iterate over. Subclasses define `__iter__`, and `reset()`, called when a new
    pass begins, if they hold state."""

    functions: ClassVar[dict[str, Callable[..., Any]]] = {}
    _valid_iterator_id: int = 0
    _number_of_samples_yielded: int = 0

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "__iter__" in cls.__dict__:
            cls.__iter__ = _guarded(cls.__dict__["__iter__"])  # type: ignore[method-assign]

    def __iter__(self) -> Iterator[Any]:
        return self  # type: ignore[return-value]

    def reset(self) -> None:
        """Forget what is left of the pass before."""


def _guarded(own: Callable[..., Any]) -> Callable[..., Any]:
    """An `__iter__` whose iterators know when another one has been made."""

    @functools.wraps(own)
    def __iter__(self: Any) -> Iterator[Any]:
        nested = getattr(_ITERATING, "pipe", None) is self  # super().__iter__()
        if nested:
            return own(self)
        self._valid_iterator_id += 1
        self._number_of_samples_yielded = 0
        self.reset()
        _ITERATING.pipe = self
        try:
            made = own(self)
        finally:
            _ITERATING.pipe = None
        return _Pass(self, made, self._valid_iterator_id)

    return __iter__


class _Pass(Iterator[Any]):
    """One pass over a pipe, valid as long as it is the last that was begun."""

    def __init__(self, pipe: Any, source: Any, number: int) -> None:
        self.pipe = pipe
        self.source = source if hasattr(source, "__next__") else iter(source)
        self.number = number

    def __next__(self) -> Any:
        pipe = self.pipe
        if pipe._valid_iterator_id != self.number:
            raise RuntimeError(
                "This iterator has been invalidated because another iterator has been created from"
                f" the same IterDataPipe: {_shown(pipe)}\nThis may be caused by multiple"
                " references to the same IterDataPipe. We recommend using `.fork()` if that is"
                " necessary.\nFor feedback regarding this single iterator per IterDataPipe"
                " constraint, feel free to comment on this issue:"
                " https://github.com/pytorch/data/issues/45."
            )
        try:
            value = next(self.source)
        except StopIteration:
            raise
        except Exception as error:
            text = f"This exception is thrown by __iter__ of {_shown(pipe)}"
            head = error.args[0] if error.args else None
            if isinstance(head, str) and "thrown by __iter__ of" not in head:
                error.args = (f"{head}\n{text}", *error.args[1:])
            raise
        pipe._number_of_samples_yielded += 1
        return value

    def __getattr__(self, name: str) -> Any:
        return getattr(self.pipe, name)


def _shown(pipe: Any) -> str:
    facts = [
        f"{name}={getattr(value, '__name__', value)}"
        for name, value in sorted(pipe.__dict__.items())
        if not name.startswith("_")
    ]
    return f"{type(pipe).__name__}({', '.join(facts)})"


class DFIterDataPipe(IterDataPipe[Any]):
    """A data pipe of data frames."""

    def _is_dfpipe(self) -> bool:
        return True

    def __iter__(self) -> Iterator[Any]:
        raise NotImplementedError(f"{type(self).__name__} has no __iter__()")


class MapDataPipe(_Functional, Dataset[T]):
    """A data pipe with indices. Subclasses define `__getitem__` and usually `__len__`."""

    functions: ClassVar[dict[str, Callable[..., Any]]] = {}


class DataChunk(list[T]):
    """A batch in a data pipe: a list."""

    def __init__(self, items: Iterable[T]) -> None:
        items = list(items)
        super().__init__(items)
        self.items = items

    def as_str(self, indent: str = "") -> str:
        """Its elements as text."""
        return indent + "[" + ", ".join(str(i) for i in iter(self)) + "]"

    def __iter__(self) -> Iterator[T]:
        yield from super().__iter__()

    def raw_iterator(self) -> Iterator[T]:
        """Its elements."""
        yield from self.items


__all__ = ["DFIterDataPipe", "DataChunk", "IterDataPipe", "MapDataPipe"]

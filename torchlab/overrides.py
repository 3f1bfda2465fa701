"""`torchlab.overrides`: classes and modes that take over calls, through `__torch_function__`.

A class with `__torch_function__` is asked when one of its instances stands where a tensor belongs,
in operators and in the functions made of them. A mode (`TorchFunctionMode`) is asked for every
operator that the thread calls while it is on; it is told the operator as a function (`torch.add`
also for `x + y` and for `x.add(y)`). Reading attributes of plain tensors asks nobody.

Source: https://docs.pytorch.org/docs/2.13/torch.overrides.html
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable, Iterable
from typing import Any

from torchlab._core.dispatch import modes, registry
from torchlab._core.tape import TLS
from torchlab._core.tensor import Tensor

__all__ = [
    "BaseTorchFunctionMode",
    "TorchFunctionMode",
    "get_ignored_functions",
    "get_overridable_functions",
    "handle_torch_function",
    "has_torch_function",
    "is_tensor_like",
    "is_tensor_method_or_property",
    "resolve_name",
    "wrap_torch_function",
]

_ROOT = __name__.partition(".")[0]
_SPACES = ("torch", "nn.functional", "fft", "linalg", "special")


class TorchFunctionMode:
    """Takes over the operators that a thread calls, between `with` and its end. Override
    `__torch_function__(self, func, types, args=(), kwargs=None)`; inside it the mode is off."""

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        raise NotImplementedError

    def __enter__(self) -> TorchFunctionMode:
        TLS.function_modes.append(self)
        modes.SLOW.append(self)
        return self

    def __exit__(self, *exc: object) -> None:
        modes.SLOW.remove(self)
        TLS.function_modes.pop()


class BaseTorchFunctionMode(TorchFunctionMode):
    """A mode that changes nothing."""

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        return func(*args, **(kwargs or {}))


class DisableTorchFunctionSubclass:
    """Between `with` and its end, subclasses of Tensor are treated as plain tensors."""

    def __enter__(self) -> None:
        TLS.subclasses_off += 1

    def __exit__(self, *exc: object) -> None:
        TLS.subclasses_off -= 1


class DisableTorchFunction(DisableTorchFunctionSubclass):
    """As DisableTorchFunctionSubclass, and modes are off, too."""

    def __enter__(self) -> None:
        super().__enter__()
        self._modes, TLS.function_modes = TLS.function_modes, []

    def __exit__(self, *exc: object) -> None:
        TLS.function_modes = self._modes
        super().__exit__(*exc)


def has_torch_function(relevant_args: Iterable[Any]) -> bool:
    """Whether one of the arguments has a `__torch_function__` of its own, or a mode is on."""
    return bool(TLS.function_modes) or bool(modes.overriding(tuple(relevant_args)))


def has_torch_function_unary(obj: Any) -> bool:
    """`has_torch_function((obj,))`."""
    return has_torch_function((obj,))


def has_torch_function_variadic(*args: Any) -> bool:
    """`has_torch_function(args)`."""
    return has_torch_function(args)


def handle_torch_function(
    public_api: Callable[..., Any], relevant_args: Iterable[Any], *args: Any, **kwargs: Any
) -> Any:
    """Ask the mode, then the classes of `relevant_args`, for the result of
    `public_api(*args, **kwargs)`. TypeError if all return NotImplemented."""
    handlers = modes.overriding(tuple(relevant_args))
    types = tuple({type(x): None for x in handlers})
    if TLS.function_modes:
        mode = TLS.function_modes.pop()
        try:
            result = mode.__torch_function__(public_api, types, args, kwargs)
        finally:
            TLS.function_modes.append(mode)
        if result is not NotImplemented:
            return result
    for x in handlers:
        result = type(x).__torch_function__(public_api, types, args, kwargs)
        if result is not NotImplemented:
            return result
    name = f"{public_api.__module__}.{public_api.__name__}"
    raise TypeError(
        f"no implementation found for '{name}' on types that implement __torch_function__:"
        f" {[type(x) for x in handlers]}"
    )


def wrap_torch_function(
    dispatcher: Callable[..., Iterable[Any]],
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """A decorator: let classes override the function; `dispatcher` gets the same arguments and
    returns those whose classes are asked."""

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            relevant = dispatcher(*args, **kwargs)
            if has_torch_function(relevant):
                return handle_torch_function(wrapped, relevant, *args, **kwargs)
            return function(*args, **kwargs)

        return wrapped

    return decorate


def is_tensor_like(inp: Any) -> bool:
    """Whether it is a tensor, or its class has `__torch_function__`."""
    return type(inp) is Tensor or hasattr(inp, "__torch_function__")


def _module(space: str) -> Any:
    return importlib.import_module(_ROOT if space == "torch" else f"{_ROOT}.{space}")


def _takes_tensor_first(face: Any) -> bool:
    if face is None:  # the in-place form of an operator
        return True
    body = getattr(face, "body", None)
    if body is None:
        return bool(face.schema.arguments) and face.schema.arguments[0].type.base == "Tensor"
    return body.__code__.co_argcount > 0 and body.__code__.co_varnames[0] == "self"


@functools.cache
def _functions() -> tuple[dict[str, dict[str, Any]], set[Any]]:
    """({name space: {name: function}} that ask handlers, and the set of those that do not)."""
    asking: dict[str, dict[str, Any]] = {}
    ignored: set[Any] = set()
    for space in _SPACES:
        for name in sorted(registry.FUNCTIONS.get(space, ())):
            own = f"{space.replace('.', '_')}_{name}"
            face = registry.SPACE_FACES.get((space, name))
            face = face or registry.FACES.get(own if own in registry.FACES else name)
            function = getattr(_module(space), name)
            if _takes_tensor_first(face):
                asking.setdefault(space, {})[name] = function
            else:
                ignored.add(function)
    methods = {name: getattr(Tensor, name) for name in sorted(registry.METHODS)}
    asking["Tensor"] = methods
    return asking, ignored


def get_overridable_functions() -> dict[Any, list[Callable[..., Any]]]:
    """{name space: its functions that `__torch_function__` can take over}."""
    found: dict[Any, list[Callable[..., Any]]] = {}
    for space, functions in _functions()[0].items():
        owner = Tensor if space == "Tensor" else _module(space)
        found[owner] = list(functions.values())
    return found


def get_ignored_functions() -> set[Callable[..., Any]]:
    """Public functions that `__torch_function__` cannot take over: those that take no tensor
    first, such as `torch.zeros`."""
    return set(_functions()[1])


@functools.cache
def _names() -> dict[Any, str]:
    found: dict[Any, str] = {}
    for space, functions in _functions()[0].items():
        prefix = "torch" if space == "torch" else f"torch.{space}"
        for name, function in functions.items():
            found.setdefault(function, f"{prefix}.{name}")
    return found


def resolve_name(f: Any) -> str | None:
    """The public name of a function that a handler was given: "torch.add". None if it has none."""
    return _names().get(f)


@functools.cache
def _methods() -> frozenset[Any]:
    return frozenset(_functions()[0]["Tensor"].values())


def is_tensor_method_or_property(func: Callable[..., Any]) -> bool:
    """Whether it is a method of Tensor, or the getter of a property."""
    return func in _methods() or getattr(func, "__name__", None) == "__get__"

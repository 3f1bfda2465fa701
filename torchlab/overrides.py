"""`torchlab.overrides`: classes and modes that take over calls, through `__torch_function__`.

A class with `__torch_function__` is asked when one of its instances stands where a tensor belongs,
in operators and in the functions made of them. A mode (`TorchFunctionMode`) is asked for every
operator that the thread calls while it is on (`torch.Tensor.add` for `x + y` and `x.add(y)`), and
for makers such as `torch.ones`; of functions made of several operators it is told those. Reading
attributes of plain tensors asks nobody; instances of classes with the protocol are always asked.

Source: https://docs.pytorch.org/docs/2.13/torch.overrides.html
"""

from __future__ import annotations

import functools
import importlib
import inspect
import threading
from collections.abc import Callable, Iterable
from typing import Any

from torchlab._core.dispatch import modes, registry
from torchlab._core.tape import TLS
from torchlab._core.tensor import Tensor

__all__ = [
    "BaseTorchFunctionMode",
    "TorchFunctionMode",
    "get_default_nowrap_functions",
    "get_ignored_functions",
    "get_overridable_functions",
    "get_testing_overrides",
    "handle_torch_function",
    "has_torch_function",
    "is_tensor_like",
    "is_tensor_method_or_property",
    "redispatch_function",
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
    if _level.skipped:  # see `redispatch_function`
        _level.skipped = False
        return False
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
    return modes.ask_functions(public_api, tuple(relevant_args), args, kwargs)


class _Level(threading.local):
    skipped = False


_level = _Level()


def redispatch_function(
    func: Callable[..., Any], types: Any, args: tuple[Any, ...], kwargs: dict[str, Any] | None
) -> Any:
    """Call `func` and ask nobody about the call itself, as a `__torch_function__` does when it is
    done: operators give plain tensors; a Python function that asks (with `has_torch_function`) is
    told no once, and what it calls is asked about as ever."""
    named = kwargs or {}
    if (getattr(func, "__module__", "") or "").partition(".")[0] == _ROOT:
        with DisableTorchFunction():
            return func(*args, **named)
    _level.skipped = True
    try:
        return func(*args, **named)
    finally:
        _level.skipped = False


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
    names = {n for n in registry.METHODS if hasattr(Tensor, n)}
    names |= {n for n, v in vars(Tensor).items() if inspect.isfunction(v) and n not in _SILENT}
    asking["Tensor"] = {
        n: getattr(Tensor, n) for n in sorted(names) if n[:1] != "_" or n[:2] == "__"
    }
    return asking, ignored


_SILENT = frozenset(("__new__", "__init__", "__hash__", "as_subclass", "__init_subclass__"))


@functools.cache
def _properties() -> dict[str, Any]:
    """The getters that ask a subclass's handler, by the property's name."""
    found = {n: v for n, v in vars(Tensor).items() if isinstance(v, property)}
    return {n: v.__get__ for n, v in found.items() if n[:1] != "_" or n in ("_version", "_base")}


def get_overridable_functions() -> dict[Any, list[Callable[..., Any]]]:
    """{name space: its functions that `__torch_function__` can take over}."""
    found: dict[Any, list[Callable[..., Any]]] = {}
    for space, functions in _functions()[0].items():
        owner = Tensor if space == "Tensor" else _module(space)
        found[owner] = list(functions.values())
    for getter in _properties().values():
        found[getter.__self__] = [getter]
    return found


def get_testing_overrides() -> dict[Callable[..., Any], Callable[..., Any]]:
    """{function: one with the same parameters that returns -1}, for every function, method and
    property that a handler can take over."""
    found: dict[Callable[..., Any], Callable[..., Any]] = {}
    for functions in get_overridable_functions().values():
        for function in functions:
            found[function] = _minus_one(function)
    return found


def _minus_one(function: Callable[..., Any]) -> Callable[..., Any]:
    if function in _getters():
        parameter = inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD)
        signature = inspect.Signature([parameter])
    else:
        signature = inspect.signature(function)

    def override(*args: Any, **kwargs: Any) -> int:
        signature.bind(*args, **kwargs)
        return -1

    override.__signature__ = signature  # type: ignore[attr-defined]
    return override


@functools.cache
def _getters() -> frozenset[Any]:
    return frozenset(_properties().values())


def get_default_nowrap_functions() -> set[Callable[..., Any]]:
    """Getters whose tensors `Tensor.__torch_function__` gives as they are: `grad`, `_base`."""
    return set(modes.NOWRAP)


def _get_current_function_mode() -> TorchFunctionMode | None:
    """The innermost mode, or None."""
    return TLS.function_modes[-1] if TLS.function_modes else None


def _get_current_function_mode_stack() -> list[TorchFunctionMode]:
    """The thread's modes, the outermost first."""
    return list(TLS.function_modes)


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
    for name, getter in _properties().items():
        found[getter] = f"torch.Tensor.{name}.__get__"
    return found


def resolve_name(f: Any) -> str | None:
    """The public name of a function that a handler was given: "torch.add". None if it has none."""
    return _names().get(f)


@functools.cache
def _methods() -> frozenset[Any]:
    return frozenset(_functions()[0]["Tensor"].values())


def is_tensor_method_or_property(func: Callable[..., Any]) -> bool:
    """Whether it is a method of Tensor, or the getter of a property."""
    return func in _methods() or func in _getters()

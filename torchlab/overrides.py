"""`torchlab.overrides`: classes and modes that take over calls, through `__torch_function__`.

A class with `__torch_function__` is asked when one of its instances stands where a tensor belongs,
in operators and in the functions made of them. A mode (`TorchFunctionMode`) is asked for every
public function, method and property that the thread calls while it is on (`torch.Tensor.add` for
`x + y` and `x.add(y)`), makers such as `torch.ones` among them. How that costs nothing while no
mode is on: Note [Functions that ask] in torchlab._core.dispatch.watching.

Source: https://docs.pytorch.org/docs/2.13/torch.overrides.html
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import inspect
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager
from typing import Any

from torchlab._core.dispatch import modes, python_key, registry, watching
from torchlab._core.dispatch.overload import OpOverload
from torchlab._core.tape import TLS
from torchlab._core.tensor import Tensor

__all__ = [
    "BaseTorchFunctionMode",
    "TorchFunctionMode",
    "enable_reentrant_dispatch",
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
_SPACES = ("torch", "functional", "nn.functional", "nn.init", "linalg", "fft", "special")
_NOT_OVERRIDABLE = {
    "torch": """
        arange are_deterministic_algorithms_enabled as_strided as_tensor asarray bartlett_window
        blackman_window broadcast_shapes can_cast empty empty_permuted empty_quantized empty_strided
        eye fill finfo from_file from_numpy frombuffer full get_default_device get_default_dtype
        get_deterministic_debug_mode get_float32_matmul_precision get_num_interop_threads
        get_num_threads get_rng_state hamming_window hann_window iinfo initial_seed
        is_anomaly_enabled is_grad_enabled is_inference_mode_enabled is_storage is_tensor
        is_warn_always_enabled kaiser_window linspace logspace manual_seed normal ones promote_types
        rand rand_like randint
        randint_like randn randn_like randperm range result_type scalar_tensor seed
        set_default_device set_default_tensor_type set_deterministic_debug_mode
        set_float32_matmul_precision set_flush_denormal set_grad_enabled set_num_interop_threads
        set_num_threads set_printoptions set_rng_state set_warn_always sparse_bsc_tensor
        sparse_bsr_tensor sparse_compressed_tensor sparse_coo_tensor sparse_csc_tensor
        sparse_csr_tensor tensor tril_indices triu_indices typename use_deterministic_algorithms
        vander zeros
    """,
    "nn.functional": """
        assert_int_or_pair boolean_dispatch handle_torch_function hardsigmoid hardswish
        has_torch_function has_torch_function_unary has_torch_function_variadic upsample
        upsample_bilinear upsample_nearest
    """,
    "fft": "fftfreq rfftfreq",
    "Tensor": """
        __dir__ __hash__ __iter__ as_subclass new new_empty new_empty_strided new_full new_ones
        new_tensor new_zeros stride to_sparse_bsc to_sparse_bsr to_sparse_coo to_sparse_csc
        to_sparse_csr unflatten
    """,
}
"""Names of PyTorch's that its `get_overridable_functions` leaves out."""


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
        watching.mode_on()
        return self

    def __exit__(self, *exc: object) -> None:
        watching.mode_off()
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
    try:
        given = tuple(relevant_args)
    except TypeError:
        raise TypeError("expected a sequence") from None
    return bool(TLS.function_modes) or bool(modes.overriding(given, every=True))


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
    handlers = modes.overriding(tuple(relevant_args), every=True)
    return modes.ask_functions(public_api, handlers, args, kwargs, python=True, found=handlers)


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


def enable_reentrant_dispatch() -> AbstractContextManager[None]:
    """Within `__torch_dispatch__`, between `with` and its end: operators are recorded on the tape
    as they were where the operator was called that is being handled. RuntimeError elsewhere."""
    return python_key.reentrant()


# ---- what can be taken over ----------------------------------------------------------------------


def _module(space: str) -> Any:
    return importlib.import_module(_ROOT if space == "torch" else f"{_ROOT}.{space}")


def _public(space: str) -> dict[str, Any]:
    """The functions of a name space that ask, by name."""
    module = _module(space)
    if space == "torch":  # (asking the module for all its names would load all of torchlab)
        names = registry.FUNCTIONS["torch"] | {n for n in dir(module) if n.startswith("sym_")}
    else:
        names = {n for n in dir(module) if n[0] != "_"}
    found = {name: getattr(module, name) for name in sorted(names) if hasattr(module, name)}
    return {name: function for name, function in found.items() if watching.watched(function)}


@functools.cache
def _functions() -> dict[str, dict[str, Any]]:
    """{name space: {name: function}} of all functions that ask."""
    found = {space: _public(space) for space in _SPACES}
    names = {n for n in dir(Tensor) if watching.watched(getattr(Tensor, n))}
    found["Tensor"] = {n: getattr(Tensor, n) for n in sorted(names)}
    return found


@functools.cache
def _properties() -> dict[str, Any]:
    """The getters that ask, by the property's name."""
    found = {n: v for n, v in vars(Tensor).items() if isinstance(v, property)}
    return {n: v.__get__ for n, v in found.items() if n[:1] != "_" or n in ("_version", "_base")}


def get_overridable_functions() -> dict[Any, list[Callable[..., Any]]]:
    """{name space: its functions that `__torch_function__` can take over}: modules, Tensor, and the
    properties of Tensor with their getters."""
    ignored = get_ignored_functions()
    found: dict[Any, list[Callable[..., Any]]] = {}
    for space, functions in _functions().items():
        if space == "nn.init":
            continue
        owner = Tensor if space == "Tensor" else _module(space)
        found[owner] = [
            f
            for n, f in functions.items()
            if f not in ignored
            and (space == "Tensor" or not n.startswith("_") and not n.endswith("_"))
        ]
    for getter in _properties().values():
        found[getter.__self__] = [getter]
    return found


def get_testing_overrides() -> dict[Callable[..., Any], Callable[..., Any]]:
    """{function: one with the same parameters that returns -1}, for every function, method and
    property that a handler can take over."""
    found = {f: _minus_one(f) for every in get_overridable_functions().values() for f in every}
    return found | {f: _minus_one(f) for f in _functions()["nn.init"].values()}


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


def _is_torch_function_mode_enabled() -> bool:
    """Whether the thread has a mode on."""
    return bool(TLS.function_modes)


def _len_torch_function_stack() -> int:
    """How many modes the thread has on."""
    return len(TLS.function_modes)


@contextlib.contextmanager
def _pop_mode_temporarily() -> Iterator[TorchFunctionMode]:
    """Between `with` and its end the innermost mode, which it gives, is off."""
    mode = TLS.function_modes.pop()
    try:
        yield mode
    finally:
        TLS.function_modes.append(mode)


def _owner(space: str) -> Any:
    return Tensor if space == "Tensor" else _module(space)


def get_ignored_functions() -> set[Callable[..., Any]]:
    """Public functions of which no argument's class is asked, such as `torch.zeros`: they take no
    tensors, or no part in the protocol. A mode is asked of many of them, too."""
    return {getattr(_owner(s), n) for s, names in _NOT_OVERRIDABLE.items() for n in names.split()}


@functools.cache
def _names() -> dict[Any, str]:
    found: dict[Any, str] = {}
    for space, functions in _functions().items():
        prefix = "torch" if space == "torch" else f"torch.{space}"
        for name, function in functions.items():
            # PyTorch's own choice where a function has several names
            if space in ("functional", "nn.functional") or name == function.__name__:
                found[function] = f"{prefix}.{name}"
            found.setdefault(function, f"{prefix}.{name}")
    for name, getter in _properties().items():
        found[getter] = f"torch.Tensor.{name}.__get__"
    for name in _NOT_OVERRIDABLE["torch"].split():
        found.setdefault(getattr(_module("torch"), name), f"torch.{name}")
    return found


def resolve_name(f: Any) -> str | None:
    """The public name of a function that a handler was given: "torch.add"; that of an operator
    overload is "aten.add.Tensor". None if it has none."""
    if isinstance(f, OpOverload) or hasattr(type(f), "overloads"):  # one, or all of a name
        return str(f)
    return _names().get(f)


@functools.cache
def _methods() -> frozenset[Any]:
    return frozenset(_functions()["Tensor"].values())


def is_tensor_method_or_property(func: Callable[..., Any]) -> bool:
    """Whether it is a method of Tensor, or the getter or setter of a property."""
    return func in _methods() or getattr(func, "__name__", "") in ("__get__", "__set__")

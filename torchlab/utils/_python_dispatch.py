"""`torch.utils._python_dispatch`: modes that see every operator below autograd, and what tensor
subclasses with `__torch_dispatch__` share.

Source: https://docs.pytorch.org/docs/2.13/notes/extending.html#extending-torch-native-api
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from torchlab._core.dispatch import python_key
from torchlab._core.dispatch.overload import OpOverload
from torchlab._core.tape import TLS, storage_of
from torchlab._core.tensor import Tensor

__all__ = [
    "BaseTorchDispatchMode",
    "TorchDispatchMode",
    "is_traceable_wrapper_subclass",
    "return_and_correct_aliasing",
    "transform_subclass",
]


class TorchDispatchMode:
    """Is told every operator that the thread runs, between `with` and its end: composites in their
    parts, below autograd, backward's operators too. Override
    `__torch_dispatch__(self, func, types, args=(), kwargs=None)`; inside it the mode is off, and
    `func(*args, **kwargs)` computes."""

    below_autograd = True

    def __init__(self, _dispatch_key: Any = None) -> None:
        if _dispatch_key is not None:
            raise NotImplementedError(
                "TorchDispatchMode: infra modes with a _dispatch_key are internal to PyTorch"
            )

    def __torch_dispatch__(
        self, func: OpOverload, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        raise NotImplementedError

    def __enter__(self) -> TorchDispatchMode:
        python_key.on(self)
        return self

    def __exit__(self, *exc: object) -> None:
        python_key.off(self)

    @classmethod
    def push(cls, *args: Any, **kwargs: Any) -> TorchDispatchMode:
        """An instance of the mode: `with cls.push(): ...`."""
        return cls(*args, **kwargs)

    @classmethod
    def is_infra_mode(cls) -> bool:
        """False: no mode here belongs to the machinery."""
        return False


class BaseTorchDispatchMode(TorchDispatchMode):
    """A mode that changes nothing."""

    def __torch_dispatch__(
        self, func: OpOverload, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        return func(*args, **(kwargs or {}))


def _get_current_dispatch_mode_stack() -> list[Any]:
    """The thread's modes, the outermost first."""
    return list(TLS.dispatch_modes)


def _get_current_dispatch_mode() -> Any:
    """The innermost mode, or None."""
    return TLS.dispatch_modes[-1] if TLS.dispatch_modes else None


@contextmanager
def _disable_current_modes() -> Iterator[list[Any]]:
    """No dispatch mode is on inside; gives the modes that were."""
    stack, TLS.dispatch_modes = TLS.dispatch_modes, []
    try:
        yield list(stack)
    finally:
        TLS.dispatch_modes = stack


@contextmanager
def _pop_mode_temporarily() -> Iterator[Any]:
    """The innermost mode is off inside."""
    mode = TLS.dispatch_modes.pop()
    try:
        yield mode
    finally:
        TLS.dispatch_modes.append(mode)


def is_traceable_wrapper_subclass(t: Any) -> bool:
    """Whether a tensor's class says how to take it apart and put it together again, with
    `__tensor_flatten__` and `__tensor_unflatten__`."""
    return isinstance(t, Tensor) and is_traceable_wrapper_subclass_type(type(t))


def is_traceable_wrapper_subclass_type(cls: type) -> bool:
    """`is_traceable_wrapper_subclass` of instances of a class."""
    return (
        issubclass(cls, Tensor)
        and cls is not Tensor
        and hasattr(cls, "__tensor_flatten__")
        and hasattr(cls, "__tensor_unflatten__")
    )


def transform_subclass(
    t: Any,
    callback: Callable[[str, Any], Any],
    outer_size: Any = None,
    outer_stride: Any = None,
) -> Any:
    """A wrapper of the same class around `callback(name, inner tensor)` of each inner tensor."""
    size = t.size() if outer_size is None else outer_size
    stride = t.stride() if outer_stride is None else outer_stride
    names, context = t.__tensor_flatten__()
    inner = {name: callback(name, getattr(t, name)) for name in names}
    made = type(t).__tensor_unflatten__(inner, context, size, stride)
    if made.shape != size or made.stride() != tuple(stride):
        raise AssertionError(
            f"transform_subclass: expected size {tuple(size)} and stride {tuple(stride)}, but"
            f" {type(t).__name__}.__tensor_unflatten__ gave {tuple(made.shape)} and {made.stride()}"
        )
    return made


def return_and_correct_aliasing(func: OpOverload, args: Any, kwargs: Any, out: Any) -> Any:
    """The result of a handler with PyTorch's aliasing: views get their input's storage, what an
    in-place or out= operator returns is the argument that it wrote to."""
    parsed = func.parsed
    by_name = dict(zip((a.name for a in parsed.arguments), args, strict=False)) | dict(kwargs or {})
    written = {a.alias: by_name.get(a.name) for a in parsed.arguments if a.write}
    viewed = {a.alias: by_name.get(a.name) for a in parsed.arguments if a.alias and not a.write}

    def corrected(fact: Any, value: Any) -> Any:
        if fact.alias is None:
            return value
        if fact.write:
            return written[fact.alias]
        source = viewed.get(fact.alias)
        source = next(iter(viewed.values()), None) if source is None else source
        if isinstance(source, Tensor) and parsed.name != "_unsafe_view":
            for t in value if isinstance(value, (list, tuple)) else (value,):
                if isinstance(t, Tensor) and t is not source:
                    t._s = storage_of(source)
        return value

    facts = parsed.returns
    if len(facts) == 1:
        return corrected(facts[0], out)
    if not facts:
        return out
    return type(out)(corrected(f, v) for f, v in zip(facts, out, strict=True))

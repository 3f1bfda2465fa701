"""`torch.autocast`: mixed precision, chosen per operator. And its decorators for custom functions.

    with torch.autocast("cpu", dtype=torch.bfloat16):
        loss = loss_fn(model(x), y)
    loss.backward()

Source: https://docs.pytorch.org/docs/2.13/amp.html#autocasting
"""

from __future__ import annotations

import functools
import threading
import warnings
from collections.abc import Callable, Iterable
from typing import Any

from torchlab._core import dtype as dt
from torchlab._core.backends import cuda
from torchlab._core.tensor import Tensor
from torchlab.amp import switches
from torchlab.amp._casting import eligible

__all__ = ["autocast", "autocast_decorator", "custom_bwd", "custom_fwd", "is_autocast_available"]

_DTYPES = {
    "cpu": (dt.bfloat16, dt.float16),
    "cuda": (dt.float16, dt.bfloat16),
    "sim": (dt.float16, dt.bfloat16),
}


def is_autocast_available(device_type: str) -> bool:
    """Whether autocast knows that type of device ("cpu", "cuda", "sim")."""
    return switches.known(device_type, "is_autocast_available") in switches.AVAILABLE


def _has_cuda() -> bool:
    return bool(cuda.device_count())


class autocast:
    """Run what is inside in mixed precision; a context manager, and a decorator of functions.

    device_type: "cpu", "cuda" or "sim".
    dtype: what products of matrices and convolutions are computed in: bfloat16 or float16. By
        default what `get_autocast_dtype` says: bfloat16 on the CPU, float16 on accelerators. With
        another dtype autocast warns and stays off.
    enabled: False switches autocast off inside, also within another autocast.
    cache_enabled: whether casts of weights are kept until the outermost autocast ends.

    It holds for the thread. Casts are recorded on the tape; gradients come in the dtype of what was
    cast. In-place operators and calls with `out=` run in the types they are given. One object may
    be entered several times, also within itself.
    """

    def __init__(
        self,
        device_type: str,
        dtype: dt.dtype | None = None,
        enabled: bool = True,
        cache_enabled: bool | None = None,
    ) -> None:
        if not isinstance(device_type, str):
            raise ValueError(
                f"Expected `device_type` of type `str`, got: `{type(device_type)}`; for a device d"
                " it is d.type"
            )
        kind = switches.known(device_type, "autocast")
        self.fast_dtype = switches.get_autocast_dtype(kind) if dtype is None else dtype
        if kind not in switches.AVAILABLE:
            raise RuntimeError(
                f"User specified an unsupported autocast device_type '{device_type}'; it is one of"
                f" {', '.join(switches.AVAILABLE)}"
            )
        self.device = kind
        on = switches.is_autocast_cache_enabled()
        self._cache_enabled = on if cache_enabled is None else cache_enabled
        if enabled and kind == "cuda" and not _has_cuda():
            warnings.warn(
                "CUDA is not available (no GPU, or CuPy is not installed). Disabling autocast.",
                stacklevel=2,
            )
            enabled = False
        if enabled and self.fast_dtype not in _DTYPES[kind]:
            names = " and ".join(f"torch.{d.name}" for d in _DTYPES[kind])
            warnings.warn(
                f"In {kind.upper()} autocast, but the target dtype {self.fast_dtype!r} is not"
                f" supported. Disabling autocast.\n{kind.upper()} Autocast only supports dtypes of"
                f" {names} currently.",
                stacklevel=2,
            )
            enabled = False
        self._enabled = enabled
        # What was before, by thread: one object may be entered in several, and within itself.
        self._before: dict[int, list[tuple[bool, dt.dtype, bool]]] = {}

    def __enter__(self) -> autocast:
        kind = self.device
        self._before.setdefault(threading.get_ident(), []).append(
            (
                switches.is_autocast_enabled(kind),
                switches.get_autocast_dtype(kind),
                switches.is_autocast_cache_enabled(),
            )
        )
        switches.set_autocast_dtype(kind, self.fast_dtype)
        switches.turn(kind, bool(self._enabled))
        switches.autocast_increment_nesting()
        switches.set_autocast_cache_enabled(bool(self._cache_enabled))
        return self

    def __exit__(self, *exc: object) -> None:
        if switches.autocast_decrement_nesting() == 0:
            switches.clear_autocast_cache()
        enabled, dtype, cache = self._before[threading.get_ident()].pop()
        switches.set_autocast_dtype(self.device, dtype)
        switches.turn(self.device, enabled)
        switches.set_autocast_cache_enabled(cache)

    def __call__(self, func: Callable[..., Any]) -> Callable[..., Any]:
        if not callable(func):
            raise TypeError(
                f"autocast()(func) requires a callable, but got {type(func).__name__}. Did you mean"
                " to use autocast as a context manager? For example:\n"
                "    with torch.autocast(device_type=...):\n"
                "        output = model(input)"
            )
        return autocast_decorator(self, func)


def autocast_decorator(autocast_instance: autocast, func: Callable[..., Any]) -> Callable[..., Any]:
    """`func`, run under `autocast_instance`."""

    @functools.wraps(func)
    def decorate_autocast(*args: Any, **kwargs: Any) -> Any:
        with autocast_instance:
            return func(*args, **kwargs)

    return decorate_autocast


def _cast(value: Any, device_type: str, dtype: dt.dtype) -> Any:
    """Tensors of that device in `dtype`, also within containers."""
    if isinstance(value, Tensor):
        cast = eligible(value) and value._k.device.type == device_type
        return value.to(dtype) if cast else value
    if isinstance(value, (str, bytes)):
        return value
    if isinstance(value, dict):
        return {
            _cast(k, device_type, dtype): _cast(v, device_type, dtype) for k, v in value.items()
        }
    if isinstance(value, Iterable):
        each = (_cast(v, device_type, dtype) for v in value)
        return type(value)(each) if isinstance(value, (list, tuple)) else each
    return value


def _device_type(device_type: Any) -> None:
    if not isinstance(device_type, str):
        raise ValueError(f"Expected `device_type` of type `str`, got: `{type(device_type)}`")


def custom_fwd(
    fwd: Callable[..., Any] | None = None,
    *,
    device_type: str,
    cast_inputs: dt.dtype | None = None,
) -> Callable[..., Any]:
    """Decorate the `forward` of a custom `autograd.Function` for use under autocast.

    cast_inputs: if given, and autocast is on, floating point tensors of the device come in in this
        dtype, and forward runs with autocast off. Otherwise forward runs as autocast is.
    """
    _device_type(device_type)
    if fwd is None:
        return functools.partial(custom_fwd, device_type=device_type, cast_inputs=cast_inputs)

    @functools.wraps(fwd)
    def decorate_fwd(*args: Any, **kwargs: Any) -> Any:
        ctx = args[0]
        ctx._dtype = switches.get_autocast_dtype(device_type)
        on = switches.is_autocast_enabled(device_type)
        ctx._fwd_used_autocast = on and cast_inputs is None
        if cast_inputs is None or not on:
            return fwd(*args, **kwargs)
        with autocast(device_type, enabled=False):
            cast_args = _cast(args, device_type, cast_inputs)
            return fwd(*cast_args, **_cast(kwargs, device_type, cast_inputs))

    return decorate_fwd


def custom_bwd(bwd: Callable[..., Any] | None = None, *, device_type: str) -> Callable[..., Any]:
    """Decorate the `backward` of a custom `autograd.Function` whose forward has `custom_fwd`: it
    runs with autocast as forward did."""
    _device_type(device_type)
    if bwd is None:
        return functools.partial(custom_bwd, device_type=device_type)

    @functools.wraps(bwd)
    def decorate_bwd(*args: Any, **kwargs: Any) -> Any:
        ctx = args[0]
        with autocast(device_type, dtype=ctx._dtype, enabled=ctx._fwd_used_autocast):
            return bwd(*args, **kwargs)

    return decorate_bwd

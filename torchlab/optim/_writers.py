"""What the writers of optimizers take from `torch.optim.optimizer`: tensors in groups of one kind,
the choice between ways to compute, decorators of `step`, paragraphs for docstrings.

Source: https://github.com/pytorch/pytorch/blob/v2.13.0/torch/optim/optimizer.py
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from typing import Any, TypeAlias

from torchlab._core import dtype as dt
from torchlab._core.device import device
from torchlab._core.dispatch.registry import aten
from torchlab._core.tensor import Tensor
from torchlab.autograd.grad_mode import no_grad, set_grad_enabled
from torchlab.nn.parameter import Parameter

Args: TypeAlias = tuple[Any, ...]
Kwargs: TypeAlias = dict[str, Any]
StateDict: TypeAlias = dict[str, Any]
DeviceDict: TypeAlias = dict[device | None, Tensor]
DeviceDtypeDict: TypeAlias = dict[tuple[device, dt.dtype] | None, Tensor]
ParamsT: TypeAlias = Iterable[Tensor] | Iterable[dict[str, Any]] | Iterable[tuple[str, Tensor]]
Indices: TypeAlias = list[int]
TensorListList: TypeAlias = list[list[Tensor | None]]

_foreach_supported_types: list[type] = [Tensor, Parameter]

# Where PyTorch has such kernels; "sim" stands in the place of an accelerator from elsewhere.
_FOREACH_DEVICES = ("cuda", "xpu", "mtia", "sim")
_FUSED_DEVICES = ("mps", "cuda", "xpu", "hpu", "cpu", "mtia", "sim")
_CAPTURABLE_DEVICES = ("cuda", "xpu", "hpu", "sim")


def _get_foreach_kernels_supported_devices() -> list[str]:
    """The types of device on which many tensors are faster in one call."""
    return list(_FOREACH_DEVICES)


def _get_fused_kernels_supported_devices() -> list[str]:
    """The types of device on which an optimizer takes `fused=True`."""
    return list(_FUSED_DEVICES)


def _get_capturable_supported_devices(supports_xla: bool = True) -> list[str]:
    """The types of device on which an optimizer takes `capturable=True`."""
    return [*_CAPTURABLE_DEVICES, "xla"] if supports_xla else list(_CAPTURABLE_DEVICES)


@no_grad()
def _group_tensors_by_device_and_dtype(
    tensorlistlist: TensorListList, with_indices: bool = False
) -> dict[tuple[device, dt.dtype], tuple[TensorListList, Indices]]:
    """Lists of one length (parameters, gradients, each kind of state), cut so that the tensors of
    the first one share device and dtype: {(device, dtype): (lists, positions)}. The lists that
    follow may be empty and may have None or, for a count of steps, other devices. The positions
    are there `with_indices`.

    Raises:
        RuntimeError: there is no first list, or one of another length, or a None in the first.
    """
    if not tensorlistlist or not tensorlistlist[0]:
        raise RuntimeError("tensors are put into groups by a first list, which must not be empty")
    n = len(tensorlistlist[0])
    if any(len(x) not in (0, n) for x in tensorlistlist):
        raise RuntimeError(
            f"lists of tensors that are put into groups have one length, or none: not"
            f" {[len(x) for x in tensorlistlist]}"
        )
    groups: dict[tuple[device, dt.dtype], tuple[TensorListList, Indices]] = {}
    for i, first in enumerate(tensorlistlist[0]):
        if first is None:
            raise RuntimeError(
                "Tensors of the first list of nested Tensor lists are supposed to be defined but"
                f" the {i}-th Tensor is not."
            )
        key = (first.device, first.dtype)
        if key not in groups:
            groups[key] = ([[] for _ in tensorlistlist], [])
        lists, positions = groups[key]
        for whole, part in zip(tensorlistlist, lists, strict=True):
            if whole:
                part.append(whole[i])
        if with_indices:
            positions.append(i)
    return groups


def _default_to_fused_or_foreach(
    params: list[Any], differentiable: bool, use_fused: bool = False
) -> tuple[bool, bool]:
    """(fused, foreach) for these parameters, where the user has not said."""
    if differentiable:
        return False, False
    given = [p for p in params if p is not None]
    plain = all(type(p) in _foreach_supported_types for p in given)
    fused = (
        use_fused
        and plain
        and all(p.device.type in _FUSED_DEVICES and p.is_floating_point() for p in given)
    )
    return fused, not fused and plain and all(p.device.type in _FOREACH_DEVICES for p in given)


def _device_dtype_check_for_fused(p: Tensor, cuda_unsupported: bool = False) -> None:
    """Refuse a parameter for which there is no fused kernel."""
    devices = _get_fused_kernels_supported_devices()
    if cuda_unsupported:
        devices.remove("cuda")
    if not (p.device.type in devices and p.dtype.is_floating_point):
        raise RuntimeError(
            "`fused=True` requires all the params to be floating point Tensors of supported"
            f" devices: {devices} but {p.dtype} and {p.device.type}"
        )


def _use_grad_for_differentiable(func: Callable[..., Any]) -> Callable[..., Any]:
    """A `step` that is recorded only where `defaults["differentiable"]` says so."""

    @functools.wraps(func)
    def step(*args: Any, **kwargs: Any) -> Any:
        with set_grad_enabled(args[0].defaults["differentiable"]):
            return func(*args, **kwargs)

    return step


def _disable_dynamo_if_unsupported(
    single_tensor_fn: Callable[..., object] | None = None,
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """A decorator that changes nothing: torchlab compiles what is decorated, or breaks there."""
    return lambda func: func


def _get_value(x: Any) -> Any:
    """The number of a tensor of one element."""
    return x.item() if isinstance(x, Tensor) else x  # type: ignore[attr-defined]


def _to_scalar(x: Any) -> Any:
    """A tensor of one element without its dimensions; all else as it is."""
    return aten.squeeze(x) if isinstance(x, Tensor) and x.dim() != 0 else x  # type: ignore[attr-defined]


def _stack_if_compiling(x: Any) -> Any:
    """The numbers: what is compiled has them as numbers too."""
    return x


def _get_scalar_dtype(is_fused: bool | None = None) -> dt.dtype:
    """The dtype of a count of steps."""
    wide = not is_fused and dt.get_default_dtype() is dt.float64
    return dt.float64 if wide else dt.float32


def _view_as_real(params: list[Any], *state_and_grads: list[Any]) -> None:
    """Put pairs of real numbers into the lists, for the complex parameters and all that belongs to
    them."""
    for i, p in enumerate(params):
        if p.is_complex():
            for tensors in (params, *state_and_grads):
                tensors[i] = aten.view_as_real(tensors[i])


_params_doc = (
    "params (iterable): parameters or (name, parameter) pairs, or dicts that define groups of them"
)
_foreach_doc = (
    "foreach (bool, optional): whether many tensors are updated in one call. It changes nothing in"
    " what is computed (default: None)"
)
_fused_doc = "fused (bool, optional): whether the update is one kernel (default: None)"
_capturable_doc = (
    "capturable (bool, optional): whether the counts of steps stay on the device (default: False)"
)
_differentiable_doc = (
    "differentiable (bool, optional): whether the step is recorded for autograd (default: False)"
)
_maximize_doc = "maximize (bool, optional): whether the objective is to grow (default: False)"

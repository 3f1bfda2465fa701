"""Moving and converting a module: to, float, cuda, to_empty, requires_grad_, zero_grad."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torchlab._core import dtype as dt
from torchlab._core.device import concrete, device
from torchlab._core.dispatch.registry import aten
from torchlab._core.tensor import Tensor
from torchlab.autograd.grad_mode import no_grad


def _floats(owner: Any, convert: Callable[[Any], Any]) -> Any:
    return owner._apply(lambda t: convert(t) if t.is_floating_point() else t)


class Conversion:
    """The part of Module that changes all its tensors. Parameters stay the same objects, so that an
    optimizer that holds them keeps working."""

    _parameters: dict[str, Any]
    _buffers: dict[str, Any]
    children: Callable[[], Any]
    parameters: Callable[[], Any]
    modules: Callable[[], Any]

    def _apply(self, fn: Callable[[Any], Any], recurse: bool = True) -> Any:
        if recurse:
            for child in self.children():
                child._apply(fn)
        for parameter in self._parameters.values():
            if parameter is None:
                continue
            with no_grad():
                values = fn(parameter)
            if values is not parameter:
                parameter.data = values
            gradient = parameter._g
            if gradient is not None:
                wanted = gradient.requires_grad
                with no_grad():
                    values = fn(gradient)
                parameter._g = (
                    aten.detach(values).requires_grad_(wanted)
                    if values is not gradient
                    else gradient
                )
        for name, buffer in self._buffers.items():
            if buffer is not None:
                self._buffers[name] = fn(buffer)
        return self

    def apply(self, fn: Callable[[Any], None]) -> Any:
        """Call `fn(module)` for every module below and then for this one; returns this module."""
        for child in self.children():
            child.apply(fn)
        fn(self)
        return self

    def to(self, *args: Any, **kwargs: Any) -> Any:
        """`to(device)`, `to(dtype)`, `to(device, dtype)`, `to(tensor)`, `to(memory_format=...)`,
        in place.

        A dtype (floating point or complex) converts floating-point and complex tensors only.
        Raises TypeError for other dtypes.
        """
        target, dtype, non_blocking, memory_format = _parse_to(args, kwargs)
        if dtype is not None and not (dtype.is_floating_point or dtype.is_complex):
            raise TypeError(
                "nn.Module.to only accepts floating point or complex dtypes, but got desired "
                f"dtype={dtype}"
            )

        def convert(t: Any) -> Any:
            new = dtype if t._k.differentiable else None
            if memory_format is not None and t.dim() in (4, 5):
                return t.to(target, new, non_blocking, memory_format=memory_format)
            return t.to(target, new, non_blocking)

        return self._apply(convert)

    def float(self) -> Any:
        """All floating-point tensors to float32."""
        return _floats(self, lambda t: t.float())

    def double(self) -> Any:
        """All floating-point tensors to float64."""
        return _floats(self, lambda t: t.double())

    def share_memory(self) -> Any:
        """All tensors to memory that other processes can see, see `Tensor.share_memory_`."""
        return self._apply(lambda t: t.share_memory_())

    def half(self) -> Any:
        """All floating-point tensors to float16."""
        return _floats(self, lambda t: t.half())

    def bfloat16(self) -> Any:
        """All floating-point tensors to bfloat16."""
        return _floats(self, lambda t: t.bfloat16())

    def type(self, dst_type: Any) -> Any:
        """All tensors to `dst_type`."""
        return self._apply(lambda t: t.type(dst_type))

    def cpu(self) -> Any:
        """All tensors to host memory."""
        return self._apply(lambda t: t.cpu())

    def cuda(self, device: Any = None) -> Any:
        """All tensors to a GPU."""
        return self._apply(lambda t: t.cuda(device))

    def sim(self, device: Any = 0) -> Any:
        """All tensors to the simulated accelerator."""
        return self._apply(lambda t: t.sim(device))

    def to_empty(self, *, device: Any, recurse: bool = True) -> Any:
        """All tensors to `device` without their values: memory for a module made on "meta"."""
        return self._apply(lambda t: aten.empty_like(t, device=device), recurse=recurse)

    def requires_grad_(self, requires_grad: bool = True) -> Any:
        """Ask for (or stop) gradients of all parameters."""
        for p in self.parameters():
            p.requires_grad_(requires_grad)
        return self

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Forget the gradients of all parameters, or set them to zero."""
        for p in self.parameters():
            if p.grad is not None:
                clear_grad(p, set_to_none)


def clear_grad(p: Any, set_to_none: bool) -> None:
    """Forget `p.grad`, or cut it off its history and fill it with zeros."""
    if set_to_none:
        p.grad = None
        return
    g = p.grad
    if g.grad_fn is not None:
        p.grad = g = aten.detach(g)
    else:
        g.requires_grad_(False)
    g.zero_()


def _parse_to(args: Any, kwargs: Any) -> tuple[Any, Any, bool, Any]:
    unknown = kwargs.keys() - {"device", "dtype", "non_blocking", "memory_format", "tensor"}
    if unknown:
        raise TypeError(
            "to() received an invalid combination of arguments - got "
            f"({', '.join(sorted(unknown))}), but expected "
            "(device, dtype, non_blocking), (dtype, non_blocking) or (tensor, non_blocking), and "
            "memory_format"
        )
    target, dtype = kwargs.get("device"), kwargs.get("dtype")
    non_blocking = kwargs.get("non_blocking", False)
    for x in (*args, *([kwargs["tensor"]] if "tensor" in kwargs else [])):
        if isinstance(x, Tensor):
            target, dtype = x.device, x.dtype
        elif isinstance(x, dt.dtype):
            dtype = x
        elif isinstance(x, bool):
            non_blocking = x
        elif isinstance(x, (str, int, device)):
            target = x
        elif x is not None:
            raise TypeError(
                f"to() received an invalid combination of arguments - got ({type(x).__name__})"
            )
    return (
        (None if target is None else concrete(device(target))),
        dtype,
        non_blocking,
        kwargs.get("memory_format"),
    )

"""`torch.nn.grad`: the gradients of convolutions, without the forward.

Shapes are those of `conv1d` … `conv3d`: input (N, C, …), weight (C_out, C / groups, …), grad_output
as the convolution's result. RuntimeError where they do not fit.

Source: https://docs.pytorch.org/docs/2.13/nn.functional.html
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torchlab._core.dispatch.composed import convolution_backward
from torchlab._core.tensor import Tensor
from torchlab.nn._sizes import each_of


def _gradient(n: int, of_input: bool) -> Callable[..., Tensor]:
    """The function for `n` dimensions, of the input or of the weight."""

    def gradient(
        first: Any, second: Any, grad_output: Tensor, stride: Any, padding: Any, dilation: Any,
        groups: int,
    ) -> Tensor:  # fmt: skip
        geometry = (each_of(stride, n), each_of(padding, n), each_of(dilation, n))
        given = tuple(first if of_input else first.shape)
        if len(given) != n + 2:
            raise RuntimeError(
                f"conv{n}d: Expected {n + 2}-dimensional input, but got {len(given)}-dimensional"
                f" input of size {list(given)} instead"
            )
        # What is only a shape is a tensor without memory of its own: its values are not asked for.
        if of_input:
            x, w = grad_output.new_empty(1).expand(first), second
        else:
            x, w = first, grad_output.new_empty(1).expand(second)
        found: tuple[Tensor, ...] = convolution_backward(
            grad_output, x, w, None, *geometry, False, [0], groups, (of_input, not of_input, False)
        )
        return found[0 if of_input else 1]

    return gradient


def _input(n: int) -> Callable[..., Tensor]:
    gradient = _gradient(n, True)

    def conv_input(
        input_size: Any, weight: Tensor, grad_output: Tensor, stride: Any = 1, padding: Any = 0,
        dilation: Any = 1, groups: int = 1,
    ) -> Tensor:  # fmt: skip
        return gradient(input_size, weight, grad_output, stride, padding, dilation, groups)

    return _named(conv_input, n, "input")


def _weight(n: int) -> Callable[..., Tensor]:
    gradient = _gradient(n, False)

    def conv_weight(
        input: Tensor, weight_size: Any, grad_output: Tensor, stride: Any = 1, padding: Any = 0,
        dilation: Any = 1, groups: int = 1,
    ) -> Tensor:  # fmt: skip
        return gradient(input, weight_size, grad_output, stride, padding, dilation, groups)

    return _named(conv_weight, n, "weight")


def _named(f: Any, n: int, of: str) -> Any:
    f.__name__ = f.__qualname__ = f"conv{n}d_{of}"
    f.__doc__ = f"The gradient of `conv{n}d` for its {of}, whose shape is given."
    return f


conv1d_input, conv2d_input, conv3d_input = _input(1), _input(2), _input(3)
conv1d_weight, conv2d_weight, conv3d_weight = _weight(1), _weight(2), _weight(3)

__all__ = [
    "conv1d_input", "conv1d_weight", "conv2d_input", "conv2d_weight", "conv3d_input",
    "conv3d_weight",
]  # fmt: skip

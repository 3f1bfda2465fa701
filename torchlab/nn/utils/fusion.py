"""A convolution or linear layer and the batch norm after it, as one layer for inference.

Source: https://docs.pytorch.org/docs/2.13/generated/torch.nn.utils.fuse_conv_bn_eval.html
"""

from __future__ import annotations

import copy
from typing import Any

from torchlab._core.dispatch.registry import aten
from torchlab.nn.parameter import Parameter


def _check_eval(layer: Any, bn: Any) -> None:
    if layer.training or bn.training:
        raise AssertionError("Fusion only for eval!")


def _check_statistics(bn: Any) -> None:
    if bn.running_mean is None or bn.running_var is None:
        raise AssertionError("bn.running_mean and bn.running_var must not be None")


def _learnt(like: Any, bias: Any, weight_value: Any, bias_value: Any) -> tuple[Any, Any]:
    learnt = like.requires_grad
    return (
        Parameter(weight_value.detach(), learnt),
        Parameter(bias_value.detach(), bias is not None and bias.requires_grad),
    )


def fuse_conv_bn_eval(conv: Any, bn: Any, transpose: bool = False) -> Any:
    """A copy of `conv` that does what `bn` does after it. Both must be in evaluation mode, else
    AssertionError. transpose: the convolution is a transposed one."""
    _check_eval(conv, bn)
    _check_statistics(bn)
    fused = copy.deepcopy(conv)
    fused.weight, fused.bias = fuse_conv_bn_weights(
        fused.weight, fused.bias, bn.running_mean, bn.running_var, bn.eps, bn.weight, bn.bias,
        transpose,
    )  # fmt: skip
    return fused


def fuse_conv_bn_weights(
    conv_w: Any,
    conv_b: Any,
    bn_rm: Any,
    bn_rv: Any,
    bn_eps: float,
    bn_w: Any,
    bn_b: Any,
    transpose: bool = False,
) -> tuple[Any, Any]:
    """Weight and bias of the convolution with the batch norm in it."""
    old = aten.zeros_like(bn_rm) if conv_b is None else conv_b
    bn_w = aten.ones_like(bn_rm) if bn_w is None else bn_w
    bn_b = aten.zeros_like(bn_rm) if bn_b is None else bn_b
    scale = bn_w * aten.rsqrt(bn_rv + bn_eps)
    shape = [1, -1] if transpose else [-1, 1]
    shape += [1] * (conv_w.ndim - 2)
    weight = (conv_w * aten.reshape(scale, shape)).to(conv_w.dtype)
    bias = ((old - bn_rm) * scale + bn_b).to(old.dtype)
    return _learnt(conv_w, conv_b, weight, bias)


def fuse_linear_bn_eval(linear: Any, bn: Any) -> Any:
    """A copy of `linear` that does what `bn` does after it. Both must be in evaluation mode and
    have the same number of features, or `bn` one, else AssertionError."""
    _check_eval(linear, bn)
    _check_statistics(bn)
    if linear.out_features != bn.num_features and bn.num_features != 1:
        raise AssertionError(
            "To fuse, linear.out_features == bn.num_features or bn.num_features == 1, got "
            f"linear.out_features={linear.out_features} and bn.num_features={bn.num_features}"
        )
    fused = copy.deepcopy(linear)
    fused.weight, fused.bias = fuse_linear_bn_weights(
        fused.weight, fused.bias, bn.running_mean, bn.running_var, bn.eps, bn.weight, bn.bias
    )
    return fused


def fuse_linear_bn_weights(
    linear_w: Any, linear_b: Any, bn_rm: Any, bn_rv: Any, bn_eps: float, bn_w: Any, bn_b: Any
) -> tuple[Any, Any]:
    """Weight and bias of the linear layer with the batch norm in it."""
    if bn_w is None or bn_b is None:
        raise TypeError(
            "fuse_linear_bn_weights: bn_w and bn_b must be tensors; a batch norm without them "
            "(affine=False) cannot be fused with a linear layer"
        )
    old = aten.zeros_like(bn_rm) if linear_b is None else linear_b
    scale = bn_w * aten.rsqrt(bn_rv + bn_eps)
    weight = (linear_w * aten.unsqueeze(scale, -1)).to(linear_w.dtype)
    bias = ((old - bn_rm) * scale + bn_b).to(old.dtype)
    return _learnt(linear_w, linear_b, weight, bias)


__all__ = [
    "fuse_conv_bn_eval", "fuse_conv_bn_weights", "fuse_linear_bn_eval", "fuse_linear_bn_weights",
]  # fmt: skip

"""Dropout: random zeros, with PyTorch's own random numbers for the same seed.

Source: Hinton and others, arXiv:1207.0580; alpha dropout: Klambauer and others, arXiv:1706.02515;
https://docs.pytorch.org/docs/2.13/nn.functional.html#dropout-functions
"""

from __future__ import annotations

import math
from typing import Any

from torchlab._core import dtype as dt
from torchlab._core.dispatch.op import composite, face
from torchlab._core.dispatch.registry import aten

_SELU_LOW = 1.7580993408473766  # minus the limit of SELU at −∞


def _noise(x: Any, feature: bool) -> Any:
    """An empty tensor for the mask: of x's shape, or one number for each channel."""
    if not feature:
        return aten.empty_like(x)
    if x._a.ndim < 2:
        raise RuntimeError("Feature dropout requires at least 2 dimensions in the input")
    shape = (*x._a.shape[:2], *(1,) * (x._a.ndim - 2))
    return aten.new_empty(aten.detach(x), shape)


def _dropout(
    x: Any,
    p: float,
    train: bool,
    *,
    feature: bool = False,
    alpha: bool = False,
    inplace: bool = False,
) -> Any:
    if not 0 <= p <= 1:
        raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")
    if p == 0 or not train or x._a.size == 0:
        return x
    if p == 1:
        zeros = aten.zeros_like(aten.detach(x))
        return aten.mul_(x, zeros) if inplace else aten.mul(x, zeros)
    mask = aten.bernoulli_(_noise(x, feature), 1 - p)
    if not alpha:
        mask = aten.div_(mask, 1 - p)
        return aten.mul_(x, mask) if inplace else aten.mul(x, mask)
    a = 1 / math.sqrt((_SELU_LOW * _SELU_LOW * p + 1) * (1 - p))
    shift = aten.add_(aten.mul_(aten.sub(mask, 1), _SELU_LOW * a), _SELU_LOW * a * p)
    mask = aten.mul_(mask, a)
    if inplace:
        return aten.add_(aten.mul_(x, mask), shift)
    return aten.add(aten.mul(x, mask), shift)


def _declare(name: str, doc: str, **facts: bool) -> None:
    def dropout(self: Any, p: float, train: bool) -> Any:
        return _dropout(self, p, train, **facts)

    def dropout_(self: Any, p: float, train: bool) -> Any:
        return _dropout(self, p, train, inplace=True, **facts)

    for n, body in ((name, dropout), (name + "_", dropout_)):
        body.__name__ = body.__qualname__ = n
        body.__doc__ = doc if body is dropout else f"In-place version of `{name}`."
        face(n, method=False)(body)


_declare("dropout", "Zeroes each element with probability p, in training, and divides by 1 − p.")
_declare(
    "feature_dropout",
    "Zeroes whole channels of (N, C, …) with probability p, and divides by 1 − p.",
    feature=True,
)
_declare("alpha_dropout", "Dropout that keeps mean and variance of SELU networks.", alpha=True)
_declare("feature_alpha_dropout", "Alpha dropout of whole channels.", feature=True, alpha=True)


@face("native_dropout", method=False)
def native_dropout(self: Any, p: float, train: Any) -> Any:
    """(dropout, the mask of what was kept)."""
    if not 0 <= p <= 1:
        raise RuntimeError(f"dropout probability has to be between 0 and 1, but got {p}")
    if train is False or self._a.size == 0:
        return self, aten.ones_like(aten.detach(self), dtype=dt.bool_)
    if p == 1:
        mask = aten.zeros_like(aten.detach(self), dtype=dt.bool_)
        return aten.mul(self, aten.zeros_like(aten.detach(self))), mask
    mask = aten.bernoulli_(aten.empty_like(aten.detach(self), dtype=dt.bool_), 1 - p)
    return native_dropout_backward.call(self, mask, 1 / (1 - p)), mask


@composite(
    "native_dropout_backward(Tensor grad_output, Tensor mask, float scale) -> Tensor",
    public=False,
    out=True,
)
def native_dropout_backward(grad_output: Any, mask: Any, scale: float) -> Any:
    """grad_output · mask · scale."""
    return aten.mul(aten.mul(grad_output, mask), scale)

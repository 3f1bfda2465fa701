"""What the distributions share: broadcasting, probabilities and logits, lazy properties.

Source: https://docs.pytorch.org/docs/2.13/distributions.html
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from numbers import Number
from typing import Any

import numpy as np

from torchlab._core import dtype as dt
from torchlab._core import layout
from torchlab._core.dispatch.registry import aten
from torchlab._core.tensor import Size, Tensor
from torchlab.autograd.grad_mode import enable_grad

euler_constant = float(np.euler_gamma)
NO_SHAPE = Size()

__all__ = [
    "broadcast_all",
    "logits_to_probs",
    "clamp_probs",
    "probs_to_logits",
    "lazy_property",
    "tril_matrix_to_vec",
    "vec_to_tril_matrix",
]


class _Limits:
    """eps, tiny and max of a floating-point dtype as Python floats."""

    __slots__ = ("eps", "tiny", "max")

    def __init__(self, dtype: Any) -> None:
        if dtype is dt.bfloat16:  # which NumPy does not know
            self.eps, self.tiny, self.max = 2.0**-7, 2.0**-126, 255 * 2.0**120
        else:
            limits = np.finfo(dtype.np)
            self.eps, self.tiny, self.max = float(limits.eps), float(limits.tiny), float(limits.max)


@functools.cache
def finfo(dtype: Any) -> _Limits:
    """Limits of a floating-point dtype."""
    return _Limits(dtype)


def tensor_like(value: Any, like: Tensor) -> Tensor:
    """The number as a tensor of `like`'s dtype and device."""
    return aten.tensor(value, dtype=like.dtype, device=like.device)


def broadcast_all(*values: Any) -> tuple[Any, ...]:
    """The values as tensors of one shape; numbers take the dtype of the first tensor, or the
    default one."""
    for v in values:
        if not (isinstance(v, (Tensor, Number)) or hasattr(v, "__torch_function__")):
            raise ValueError(
                "Input arguments must all be instances of Number, torch.Tensor or objects "
                "implementing __torch_function__."
            )
    first = next((v for v in values if isinstance(v, Tensor)), None)
    options: dict[str, Any] = {"dtype": dt.get_default_dtype()}
    if first is not None:
        options = {"dtype": first.dtype, "device": first.device}
    tensors = [v if isinstance(v, Tensor) else aten.tensor(v, **options) for v in values]
    shape = layout.broadcast_shapes(*(tuple(t.shape) for t in tensors))
    return tuple(t.expand(shape) for t in tensors)


def _standard_normal(shape: Sequence[int], dtype: Any, device: Any) -> Tensor:
    return aten.randn(tuple(shape), dtype=dtype, device=device)


def _sum_rightmost(value: Tensor, dim: int) -> Tensor:
    """The sum over the last `dim` dimensions."""
    if dim == 0:
        return value
    return value.reshape(tuple(value.shape)[:-dim] + (-1,)).sum(-1)


def logits_to_probs(logits: Tensor, is_binary: bool = False) -> Tensor:
    """Sigmoid of log odds (binary), or softmax over the last dimension."""
    return aten.sigmoid(logits) if is_binary else aten.softmax(logits, -1)


def clamp_probs(probs: Tensor) -> Tensor:
    """Probabilities kept eps away from 0 and 1, so that their logarithms are finite."""
    eps = finfo(probs.dtype).eps
    return probs.clamp(min=eps, max=1 - eps)


def probs_to_logits(probs: Tensor, is_binary: bool = False) -> Tensor:
    """Log odds (binary), or logarithms, of clamped probabilities."""
    clamped = clamp_probs(probs)
    if is_binary:
        return aten.log(clamped) - aten.log1p(-clamped)
    return aten.log(clamped)


def cross_entropy_with_logits(logits: Tensor, value: Any) -> Tensor:
    """-log p(value) of a Bernoulli variable with these log odds, without overflow."""
    return (1 - value) * logits - aten.log_sigmoid(logits)


def log_of_logits(logits: Tensor) -> Tensor:
    """logits normalised so that their exponentials sum to one."""
    return logits - logits.logsumexp(-1, keepdim=True)


class lazy_property:
    """A property computed at its first use and then kept as an attribute of the instance."""

    def __init__(self, wrapped: Callable[[Any], Any]) -> None:
        self.wrapped = wrapped
        functools.update_wrapper(self, wrapped)  # type: ignore[arg-type]

    def __get__(self, instance: Any, obj_type: Any = None) -> Any:
        if instance is None:
            return _lazy_property_and_property(self.wrapped)
        with enable_grad():
            value = self.wrapped(instance)
        setattr(instance, self.wrapped.__name__, value)
        return value


class _lazy_property_and_property(lazy_property, property):
    """What the class attribute is: a property for documentation tools, lazy for us."""

    def __init__(self, wrapped: Callable[[Any], Any]) -> None:
        property.__init__(self, wrapped)


def tril_matrix_to_vec(mat: Tensor, diag: int = 0) -> Tensor:
    """The lower triangles (up to diagonal `diag`) of (*, D, D) matrices, row by row."""
    n = mat.shape[-1]
    if diag < -n or diag >= n:
        raise ValueError(f"diag ({diag}) provided is outside [{-n}, {n - 1}].")
    rows, columns = np.tril_indices(n, diag)
    return mat[..., aten.tensor(rows), aten.tensor(columns)]


def vec_to_tril_matrix(vec: Tensor, diag: int = 0) -> Tensor:
    """(*, D, D) lower triangular matrices from their entries, row by row."""
    length = vec.shape[-1]
    n = (
        -(1 + 2 * diag) + ((1 + 2 * diag) ** 2 + 8 * length + 4 * abs(diag) * (diag + 1)) ** 0.5
    ) / 2
    if round(n) - n > finfo(vec.dtype).eps:
        raise ValueError(
            f"The size of last dimension is {length} which cannot be expressed as "
            "the lower triangular part of a square D x D matrix."
        )
    d = round(n)
    rows, columns = np.tril_indices(d, diag)
    flat = aten.new_zeros(vec, (*vec.shape[:-1], d * d))
    places = aten.tensor(rows * d + columns, device=vec.device).expand(vec.shape)
    return flat.scatter(-1, places, vec).reshape((*vec.shape[:-1], d, d))

"""`Variable`, the old name of tensors that want gradients.

Source: https://docs.pytorch.org/docs/2.13/autograd.html#variable-deprecated
"""

from __future__ import annotations

from typing import Any

from torchlab._core.dispatch.registry import aten
from torchlab._core.tensor import Tensor
from torchlab.autograd import engine


class VariableMeta(type):
    """Every tensor is an instance of Variable."""

    def __instancecheck__(cls, other: Any) -> bool:
        return isinstance(other, Tensor)


class _Engine:
    """What extensions ask of the engine."""

    def queue_callback(self, callback: Any) -> None:
        """Call a function when the backward pass that this thread is in has ended."""
        engine.queue_callback(callback)


class Variable(metaclass=VariableMeta):
    """`Variable(x, requires_grad=True)` is the tensor x, detached, that wants gradients."""

    _execution_engine = _Engine()

    def __new__(cls, data: Any = None, requires_grad: bool = False, volatile: bool = False) -> Any:
        if data is None:
            t = aten.empty((0,))
        elif isinstance(data, Tensor):
            t = aten.detach(data)
        else:
            raise TypeError(f"Variable data has to be a tensor, but got {type(data).__name__}")
        return t.requires_grad_() if requires_grad else t


def variable(*args: Any, **kwargs: Any) -> Any:
    """Gone: RuntimeError."""
    raise RuntimeError("torch.autograd.variable(...) is deprecated, use torch.tensor(...) instead")


__all__ = ["Variable", "VariableMeta", "variable"]

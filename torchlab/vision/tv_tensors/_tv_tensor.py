"""The tensor that knows what its values are: the base of images, masks, boxes and points.

Source: https://docs.pytorch.org/vision/0.28/tv_tensors.html
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Self

from torchlab._core.dispatch.registry import aten
from torchlab._core.tensor import Tensor
from torchlab.overrides import DisableTorchFunctionSubclass
from torchlab.vision.tv_tensors._return_type import keeps_type

_KEEP_TYPE = frozenset(
    getattr(Tensor, name) for name in ("clone", "to", "detach", "requires_grad_")
)
"""What leaves the values' meaning alone returns the same type always."""


class TVTensor(Tensor):
    """The base class: to be derived from by those who define a kind of their own.

    Operations return plain tensors, as a sum of images is no image; `clone`, `to`, `detach` and
    `requires_grad_` return the type, and so does everything under `set_return_type("TVTensor")`.
    """

    @staticmethod
    def _to_tensor(
        data: Any, dtype: Any = None, device: Any = None, requires_grad: bool | None = None
    ) -> Tensor:
        if requires_grad is None:
            requires_grad = data.requires_grad if isinstance(data, Tensor) else False
        return aten.as_tensor(data, dtype=dtype, device=device).requires_grad_(requires_grad)

    @classmethod
    def _wrap_output(
        cls, output: Any, args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        """`output`, and the tensors of a tuple or list, as this type with the metadata of the
        arguments."""
        if isinstance(output, Tensor):
            return output if isinstance(output, cls) else output.as_subclass(cls)
        if isinstance(output, (tuple, list)):
            parts = [cls._wrap_output(part, args, kwargs) for part in output]
            # The named tuples of the operators, too, take the parts as one sequence.
            return type(output)(parts)
        return output

    @classmethod
    def wrap(cls, tensor: Tensor, like: TVTensor, **kwargs: Any) -> Self:
        """`tensor` as this type with the metadata of `like`; `kwargs` replace parts of it."""
        return tensor.as_subclass(cls)

    @classmethod
    def __torch_function__(
        cls,
        func: Callable[..., Any],
        types: tuple[type, ...],
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        # Two kinds of TVTensors have no common meaning.
        if not all(issubclass(cls, kind) for kind in types):
            return NotImplemented
        with DisableTorchFunctionSubclass():
            output = func(*args, **(kwargs or {}))
        if keeps_type() or (func in _KEEP_TYPE and isinstance(args[0], cls)):
            return cls._wrap_output(output, args, kwargs)
        # In-place operations return the very argument: that one as a plain tensor over the same
        # memory.
        return output.as_subclass(Tensor) if isinstance(output, cls) else output

    def _make_repr(self, **kwargs: Any) -> str:
        # `Tensor.__repr__` reads and prints like a tensor of this class.
        items = [f"{name}={value}" for name, value in kwargs.items()]
        return f"{super().__repr__()[:-1]}, {', '.join(items)})"

    # The four below are asked so often that they go round __torch_function__.

    @property
    def shape(self) -> Any:
        with DisableTorchFunctionSubclass():
            return super().shape

    @property
    def ndim(self) -> int:
        with DisableTorchFunctionSubclass():
            return super().ndim

    @property
    def device(self) -> Any:
        with DisableTorchFunctionSubclass():
            return super().device

    @property
    def dtype(self) -> Any:
        with DisableTorchFunctionSubclass():
            return super().dtype

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        # A leaf of its own: the copy has no history, and needs a gradient where this one does.
        copy = self.detach().clone().requires_grad_(self.requires_grad)
        memo[id(self)] = copy
        return type(self).wrap(copy, like=self)

"""`torch.TensorType`: the type that tensors have in a script's signature.

Source: https://docs.pytorch.org/docs/2.13/jit_language_reference.html#types
"""

from __future__ import annotations

import builtins


class TensorType:
    """`TensorType.get()`, the type of any tensor."""

    __module__ = "torchlab"
    annotation_str = "Tensor"

    @staticmethod
    def get() -> TensorType:
        """The type; there is one."""
        return _TENSOR

    def kind(self) -> builtins.str:
        """What sort of type it is."""
        return "TensorType"

    def str(self) -> builtins.str:
        """Its name in a schema."""
        return "Tensor"

    def __repr__(self) -> builtins.str:
        return "Tensor"


_TENSOR = TensorType()

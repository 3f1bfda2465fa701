"""All parameters as one vector, and back.

Source: https://docs.pytorch.org/docs/2.13/generated/torch.nn.utils.parameters_to_vector.html
"""

from __future__ import annotations

from collections.abc import Iterable

from torchlab._core.dispatch.registry import aten
from torchlab._core.tensor import Tensor


def _same_place(parameters: list[Tensor]) -> None:
    if len({p.device for p in parameters}) > 1:
        raise TypeError(
            "Found two parameters on different devices, this is currently not supported."
        )


def parameters_to_vector(parameters: Iterable[Tensor]) -> Tensor:
    """The elements of all parameters in order, (n,); gradients flow through."""
    parameters = list(parameters)
    _same_place(parameters)
    return aten.cat([aten.reshape(p, (-1,)) for p in parameters])


def vector_to_parameters(vec: Tensor, parameters: Iterable[Tensor]) -> None:
    """Let each parameter be its slice of `vec`: the slices' memory, not a copy.

    Raises TypeError if `vec` is no tensor.
    """
    if not isinstance(vec, Tensor):
        raise TypeError(f"expected torch.Tensor, but got: {type(vec).__name__}")
    parameters = list(parameters)
    _same_place(parameters)
    start = 0
    for p in parameters:
        n = p.numel()
        p.data = aten.view(vec[start : start + n], p.shape).data  # type: ignore[index,attr-defined]
        start += n

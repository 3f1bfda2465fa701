"""What a program may say of tensors before they go into a compiled function.

Shapes are static in torchlab: a new shape is compiled anew. So these marks change no result; they
are kept on the tensor, where PyTorch keeps them.

Source: https://docs.pytorch.org/docs/2.13/user_guide/torch_compiler/torch.compiler_dynamic_shapes.html
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from torchlab._core.tensor import Tensor

__all__ = ["mark_dynamic", "mark_static", "mark_static_address", "maybe_mark_dynamic"]

Dims = int | list[Any] | tuple[Any, ...]


def _mark(t: Any, kind: str, dims: Iterable[int]) -> None:
    marked = getattr(t, kind, None)
    if marked is None:
        marked = set()
        setattr(t, kind, marked)
    marked.update(dims)
    t._has_dynamo_dim_marking = True


def _listed(index: Dims) -> Iterable[int]:
    return (index,) if isinstance(index, int) else index


def mark_dynamic(
    t: Any,
    index: Dims,
    *,
    hint_override: int | None = None,
    min: int | None = None,
    max: int | None = None,
    specialize_on: list[Any] | None = None,
) -> None:
    """Say that dims of `t` will differ from call to call."""
    _mark(t, "_dynamo_dynamic_indices", _listed(index))


def maybe_mark_dynamic(t: Any, index: Dims) -> None:
    """Say that dims of `t` may differ from call to call."""
    _mark(t, "_dynamo_weak_dynamic_indices", _listed(index))


def mark_static(t: Any, index: Dims | None = None) -> None:
    """Say that dims of `t`, or all of them, stay as they are."""
    if isinstance(t, type):
        return
    _mark(t, "_dynamo_static_indices", range(t.ndim) if index is None else _listed(index))


def mark_static_address(t: Any, guard: bool = False) -> None:
    """Say that `t` stays in its place in memory. TypeError for what is no tensor."""
    if not isinstance(t, Tensor):
        raise TypeError(f"mark_static_address expects a tensor but received {type(t)}")
    t._dynamo_static_input_type = "guarded" if guard else "unguarded"  # type: ignore[attr-defined]

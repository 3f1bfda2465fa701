"""`torch.nn.common_types`: names for the types of sizes, which programs use in annotations."""

from __future__ import annotations

from typing import Any, TypeVar, Union

from torchlab._core.tensor import Tensor

T = TypeVar("T")


def _tuples_of(element: Any, n: int | None) -> Any:
    """`element`, or a tuple of `n` (None: of any number)."""
    sizes: Any = (element, ...) if n is None else (element,) * n
    return Union[element, tuple[sizes]]  # noqa: UP007 - `|` is not for type variables' aliases


_scalar_or_tuple_any_t = _tuples_of(T, None)
_scalar_or_tuple_1_t, _scalar_or_tuple_2_t, _scalar_or_tuple_3_t = (
    _tuples_of(T, n) for n in (1, 2, 3)
)
_scalar_or_tuple_4_t, _scalar_or_tuple_5_t, _scalar_or_tuple_6_t = (
    _tuples_of(T, n) for n in (4, 5, 6)
)

_size_any_t = _scalar_or_tuple_any_t[int]
_size_1_t, _size_2_t, _size_3_t = (_tuples_of(int, n) for n in (1, 2, 3))
_size_4_t, _size_5_t, _size_6_t = (_tuples_of(int, n) for n in (4, 5, 6))

_size_any_opt_t = _scalar_or_tuple_any_t[int | None]
_size_2_opt_t = _scalar_or_tuple_2_t[int | None]
_size_3_opt_t = _scalar_or_tuple_3_t[int | None]

_ratio_2_t, _ratio_3_t = _tuples_of(float, 2), _tuples_of(float, 3)
_ratio_any_t = _scalar_or_tuple_any_t[float]

_tensor_list_t = _scalar_or_tuple_any_t[Tensor]
_maybe_indices_t = _scalar_or_tuple_2_t[Tensor]

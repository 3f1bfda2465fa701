"""The functions of `torchlab.utils.data.collate` under the name of the module that PyTorch's
documentation of `default_collate` teaches classes of a program's own with."""

from __future__ import annotations

import re

from torchlab.utils.data.collate import (
    collate,
    collate_float_fn,
    collate_int_fn,
    collate_numpy_array_fn,
    collate_numpy_scalar_fn,
    collate_str_fn,
    collate_tensor_fn,
    default_collate,
    default_collate_fn_map,
    default_convert,
)

np_str_obj_array_pattern = re.compile(r"[SaUO]")  # kinds of arrays that become no tensor

__all__ = [
    "collate", "collate_float_fn", "collate_int_fn", "collate_numpy_array_fn",
    "collate_numpy_scalar_fn", "collate_str_fn", "collate_tensor_fn", "default_collate",
    "default_collate_fn_map", "default_convert", "np_str_obj_array_pattern",
]  # fmt: skip

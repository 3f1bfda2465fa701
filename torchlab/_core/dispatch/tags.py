"""`torch.Tag`: what is known of an operator beside its schema, and `OpOverload.tags`.

Source: https://docs.pytorch.org/docs/2.13/torch.html#operator-tags
"""

from __future__ import annotations

import enum
from typing import Any


class Tag(enum.Enum):
    """A fact about an operator. `core`: of the set that backends have to know; `pointwise`,
    `reduction`: how the result depends on the operands; `nondeterministic_seeded`: it draws random
    numbers; `dynamic_output_shape`, `data_dependent_output`: shape or value that only the data
    tell; `view_copy`: a view's copy; `inplace`, `out`: the forms that write; `inplace_view`: only
    the geometry is written; `pt2_compliant_tag`: works with fake tensors and compilers."""

    core = 0
    cudagraph_unsafe = 1
    data_dependent_output = 2
    dynamic_output_shape = 3
    flexible_layout = 4
    generated = 5
    inplace = 6
    inplace_view = 7
    maybe_aliasing_or_mutating = 8
    needs_contiguous_strides = 9
    needs_exact_strides = 10
    needs_fixed_stride_order = 11
    nondeterministic_bitwise = 12
    nondeterministic_seeded = 13
    out = 14
    out_variant = 15
    pointwise = 16
    pt2_compliant_tag = 17
    reduction = 18
    view_copy = 19

    def __int__(self) -> int:
        return self.value

    __index__ = __int__


Tag.__module__ = "torchlab"
_DECLARED = {
    "pointwise": Tag.pointwise,
    "reduction": Tag.reduction,
    "random": Tag.nondeterministic_seeded,
}
_FORMS = {"inplace": Tag.inplace, "out": Tag.out}


def tags_of(declared: Any, form: str) -> list[Tag]:
    """The tags of an operator's form, from the facts of its declaration (names, or Tags given by
    the author of a custom operator), in their order."""
    found = {t for t in declared if isinstance(t, Tag)}
    found |= {_DECLARED[t] for t in declared if t in _DECLARED}
    if form in _FORMS:
        found.add(_FORMS[form])
    return sorted(found, key=int)


__all__ = ["Tag", "tags_of"]

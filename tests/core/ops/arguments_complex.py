"""Example arguments of the complex operators, for the generated tests."""

from __future__ import annotations

from typing import Any

from tests.core.ops.values import C, F

ARGUMENTS: dict[str, list[tuple[Any, ...]]] = {
    "_conj": [(C(),), (C((2, 1, 3)),)],
    "_neg_view": [(F(),), (C(),)],
    "_conj_physical": [(F(),), (C(),)],
}
# Views as another type: finished by the public `view_as_real` and `view_as_complex`.
LEFT_OUT = frozenset({"_view_as_real", "_view_as_complex"})

"""Example arguments for the matrix decompositions."""

from __future__ import annotations

from typing import Any

import torchlab
from tests.core.ops.values import F, M

_WIDE, _TALL, _SQUARE = F((3, 4), -1, 1), F((4, 3), -1, 1), F((3, 3), -1, 1)
_BATCH = F((2, 3, 3), -1, 1)
_RIGHT = F((3, 2))
_MATRICES = [(_SQUARE,), (_BATCH,), (_WIDE,), (_TALL,)]


def _int32(values: list[int]) -> Any:
    return torchlab.tensor(values, dtype=torchlab.int32)


_PIVOTS = _int32([2, 2, 3])


def _triangle(x: Any, args: tuple[Any, ...]) -> Any:
    return x.triu() if args[-1] else x.tril()


ARGUMENTS: dict[str, list[tuple[Any, ...]]] = {
    "linalg_cholesky_ex": [(M(),), (M(), True)],
    "cholesky": [(M(),), (M(), True)],
    "cholesky_inverse": [(M(),), (M(), True)],
    "cholesky_solve": [(_RIGHT, M()), (_RIGHT, M(), True), (F((2, 3, 1)), M())],
    "linalg_qr": [*_MATRICES, (_SQUARE, "complete")],
    "qr": _MATRICES,
    "geqrf": _MATRICES,
    "_linalg_svd": _MATRICES,
    "linalg_svd": [(_SQUARE,), (_BATCH,), (_WIDE, False), (_TALL, False)],
    "svd": _MATRICES,
    "linalg_svdvals": _MATRICES,
    "_linalg_eigh": [(M(),), (M(), "U")],
    "linalg_eigh": [(M(),), (M(), "U")],
    "linalg_eigvalsh": [(M(),), (M(), "U")],
    "linalg_eig": [(_SQUARE,), (_BATCH,)],
    "_linalg_eigvals": [(_SQUARE,), (_BATCH,)],
    "linalg_eigvals": [(_SQUARE,), (_BATCH,)],
    "linalg_lu_factor_ex": _MATRICES,
    "linalg_lu_factor": _MATRICES,
    "_lu_with_info": _MATRICES,
    "linalg_lu": _MATRICES,
    "lu_unpack": [
        (_SQUARE, _PIVOTS),
        (_WIDE, _PIVOTS),
        (F((4, 3)), _int32([4, 2, 3])),
    ],
    "linalg_lu_solve": [
        (M(), _PIVOTS, _RIGHT),
        (M(), _PIVOTS, F((2, 3)), False),
        (M(), _PIVOTS, F((2, 3, 2)), True, True),
    ],
    "lu_solve": [(_RIGHT, M(), _PIVOTS)],
    "linalg_ldl_factor_ex": [(M(),)],
    "linalg_ldl_factor": [(M(),)],
    "linalg_ldl_solve": [(M(), _int32([1, 2, 3]), _RIGHT)],
    "linalg_householder_product": [
        (F((4, 3), -0.9, 0.9), F((3,), 0.3, 0.7)),
        (F((2, 4, 3), -0.9, 0.9), F((2, 2), 0.3, 0.7)),
    ],
    "orgqr": [(F((4, 3), -0.9, 0.9), F((3,), 0.3, 0.7))],
    "ormqr": [
        (F((4, 3), -0.9, 0.9), F((3,), 0.3, 0.7), F((4, 2))),
        (F((4, 3), -0.9, 0.9), F((3,), 0.3, 0.7), F((2, 4)), False),
        (F((4, 3), -0.9, 0.9), F((3,), 0.3, 0.7), F((4, 2)), True, True),
    ],
    "triangular_solve": [(_RIGHT, M()), (F((2, 3, 1)), M(), False, True)],
}
SYMMETRIC = frozenset(
    {
        "linalg_cholesky_ex", "cholesky", "_linalg_eigh", "linalg_eigh", "linalg_eigvalsh",
    }
)  # fmt: skip
FLAT = frozenset({"linalg_ldl_factor"})

# The factors' other triangle is not read: its gradient, which PyTorch gives too, means nothing.
PREPARED = {
    "cholesky_inverse": lambda x, args: (_triangle(x[0], args),),
    "cholesky_solve": lambda x, args: (x[0], _triangle(x[1], args)),
}
# Complex eigenvectors are free up to a factor of size 1.
WELL_DEFINED = {"linalg_eig": lambda r: (r[0], r[1].abs())}
# A part of `lobpcg`: its values and vectors must be those of its matrix.
LEFT_OUT = frozenset({"_eigenpairs"})

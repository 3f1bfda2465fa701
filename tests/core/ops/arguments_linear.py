"""Example arguments of products of matrices, solutions, powers and distances."""

from __future__ import annotations

from typing import Any

from tests.core.ops.values import C, F, M

SQUARES = F((2, 3, 3), -1, 1)
ARGUMENTS: dict[str, list[tuple[Any, ...]]] = {
    "addr": [(F((3, 2)), F((3,)), F((2,)), 2, 3), (F((2,)), F((3,)), F((2,)), 0, 1)],
    "addbmm": [(F((2, 2)), F((3, 2, 4)), F((3, 4, 2)), 2, 3)],
    "vdot": [(F((3,)), F((3,))), (C((3,)), C((3,)))],
    "inner": [(F((2, 3)), F((4, 3))), (F(()), F((2,)))],
    "kron": [(F((2, 3)), F((2,))), (F((2, 1)), F((3, 2)))],
    "linalg_vecdot": [(F(), F((3,))), (C((3,)), C((3,)))],
    "linalg_cross": [(F(), F((1, 3)), -1), (F((3, 2)), F((3, 2)), 0)],
    "linalg_multi_dot": [([F((2, 3)), F((3, 4)), F((4, 1))],), ([F((3,)), F((3, 2)), F((2,))],)],
    "linalg_solve_ex": [
        (M(), F((3, 2))),
        (SQUARES, F((3,))),
        (M(), F((2, 2, 3)), False),
        (C((2, 2)), C((2,))),
    ],
    "linalg_inv_ex": [(M(),), (SQUARES,), (C((2, 2)),)],
    "linalg_solve_triangular": [
        (M(), F((2, 3, 2)), True),
        (M(), F((2, 3)), False, False),
        (M(), F((3, 2)), False, True, True),
    ],
    "linalg_tensorinv": [(F((2, 3, 6), -1, 1), 2)],
    "linalg_tensorsolve": [(F((2, 3, 6), -1, 1), F((2, 3))), (F((6, 2, 3), -1, 1), F((6,)))],
    "_cofactors": [(F((2, 2), -1, 1),), (SQUARES,)],
    "linalg_slogdet": [(SQUARES,), (C((2, 2)),)],
    "slogdet": [(SQUARES,)],
    "logdet": [(M(),)],
    "linalg_matrix_power": [(M(), n) for n in (2, 3, 0, 1, 5, -2)],
    "linalg_matrix_exp": [(F((2, 2), -1, 1),), (F((2, 2, 2)),)],
    "_matrix_rank": [(M(), None, None, False), (SQUARES, F((2,)), F(()), False)],
    "_pinv": [
        (F((3, 2), -1, 1), None, None, False),
        (F((2, 2, 3), -1, 1), F((), 0, 1e-6), None, False),
        (F((3, 3), -1, 1), None, None, False),
    ],
    "_linalg_lstsq": [
        (F((4, 2), -1, 1), F((4, 3)), 1e-12, driver) for driver in ("gelsy", "gelsd", "gels")
    ],
    "linalg_lstsq": [(F((2, 4, 2), -1, 1), F((2, 4)), None, "gelsd")],
    "renorm": [(F(), 2, 0, 0.7), (F(), 1, 1, 5)],
    "_cdist_forward": [(F((2, 3), -1, 1), F((4, 3), -1, 1), p, None) for p in (2.0, 1.0, 3.0)],
    "_pdist_forward": [(F((4, 3), -1, 1), p) for p in (2.0, 1.5)],
}

# Products of 8-bit floats only: test_scaled_products.py
LEFT_OUT = frozenset({"_scaled_mm", "_scaled_mm_v2"})

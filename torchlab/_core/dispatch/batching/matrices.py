"""Batching rules of linear algebra, which knows leading dimensions already."""

from __future__ import annotations

from typing import Any

from torchlab._core.dispatch.batching.calls import Call, aligned, each, padded, rule
from torchlab._core.dispatch.registry import aten


def _leading(c: Call) -> Any:
    """One tensor; all before its last dimensions is a batch."""
    name = c.tensors()[0]
    return c.run(**{name: c.front(name)}) if c.only(name) else c.loop()


each(
    "linalg_det linalg_slogdet linalg_inv_ex linalg_cholesky_ex linalg_qr _linalg_svd _linalg_eigh"
    " linalg_eig _linalg_eigvals linalg_lu linalg_lu_factor_ex linalg_matrix_exp"
    " linalg_ldl_factor_ex cholesky cholesky_inverse geqrf _cofactors _pinv _matrix_rank"
    " tril triu pixel_shuffle pixel_unshuffle constant_pad_nd",
    _leading,
)


def _broadcast(**cores: int) -> Any:
    """Several tensors whose leading dimensions broadcast; `cores` says how many each has of its
    own."""

    def body(c: Call) -> Any:
        if any(c.rank(n) < k for n, k in cores.items()):
            return c.loop()
        values = aligned(c, cores, cores)
        for n, whole in _TOGETHER.items():  # these two have the same leading dimensions
            if n in cores and c.has(n) != c.has(whole):
                values |= {m: padded(c.full(m), c.rank(m)) for m in (n, whole)}
                rank = max(c.rank(m) - k for m, k in cores.items())
                values |= {m: padded(values[m], rank + cores[m]) for m in (n, whole)}
        return c.run(**values)

    return body


_TOGETHER = {"LU": "pivots", "LD": "pivots"}


def _equal(**cores: int) -> Any:
    """Several tensors with the same leading dimensions."""

    def body(c: Call) -> Any:
        if len({c.rank(n) - k for n, k in cores.items()}) != 1:
            return c.loop()
        return c.run(**{n: c.full(n) for n in cores})

    return body


rule("cholesky_solve")(_broadcast(self=2, input2=2))
rule("linalg_solve_triangular")(_broadcast(self=2, B=2))
rule("triangular_solve")(_broadcast(self=2, A=2))
rule("linalg_lu_solve")(_broadcast(LU=2, pivots=1, B=2))
rule("linalg_ldl_solve")(_broadcast(LD=2, pivots=1, B=2))
rule("lu_unpack")(_equal(LU_data=2, LU_pivots=1))
rule("linalg_householder_product")(_equal(input=2, tau=1))
rule("ormqr")(_equal(self=2, input2=1, input3=2))


@rule("linalg_solve_ex")
def solve(c: Call) -> Any:
    """B is a vector if it has one dimension, or the shape of A without the last."""
    a, b = c.shape("A"), c.shape("B")
    if len(b) == 1 or (len(a) - 1 == len(b) and b == a[:-1]):
        column = aten.unsqueeze(c.raw("B"), -1)
        inner = Call(c.op, tuple(
            column if n == "B" else c.args[i] for n, i in c.names.items()
        ), c.level)  # fmt: skip
        made = inner.run(**aligned(inner, ("A", "B"), {"A": 2, "B": 2}))
        return type(made)(aten.squeeze(made[0], -1), made[1])
    return c.run(**aligned(c, ("A", "B"), {"A": 2, "B": 2}))

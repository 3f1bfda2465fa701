"""The invariants of sparse tensors, checked if asked for: one call, or all while it is switched on.

Source: https://docs.pytorch.org/docs/2.13/generated/torch.sparse.check_sparse_tensor_invariants.html
"""

from __future__ import annotations

from typing import Any

import numpy as np

from torchlab._core import dtype as dt
from torchlab._core.ops._sparse import BSC, BSR, CSR, Compressed, Coo, flat

STATE = {"on": False}


def wanted(check_invariants: bool | None) -> bool:
    return STATE["on"] if check_invariants is None else check_invariants


def check_coo(p: Coo) -> None:
    """Indices within the size; sorted and distinct if the tensor says it is coalesced."""
    index = p.indices._a
    if index.size:
        low, high = index.min(axis=1), index.max(axis=1)
        for i in range(index.shape[0]):
            if low[i] < 0:
                raise RuntimeError(f"found negative index {low[i]} for dim {i}")
            if high[i] >= p.shape[i]:
                raise RuntimeError(
                    f"size is inconsistent with indices: for dim {i}, size is {p.shape[i]} but"
                    f" found index {high[i]}"
                )
    if p.coalesced and not bool((np.diff(flat(p)) > 0).all()):
        raise RuntimeError(
            "cannot set is_coalesced to true if indices correspond to uncoalesced COO tensor"
        )


def _need(condition: Any, what: str) -> None:
    if not bool(condition):
        raise RuntimeError(what)


def check_compressed(p: Compressed) -> None:
    """Shapes, types and ranges of the components, with PyTorch's messages."""
    rows = p.by_rows
    c_name, p_name = ("crow_indices", "col_indices") if rows else ("ccol_indices", "row_indices")
    major, minor = ("row", "col") if rows else ("column", "row")
    block = " block" if p.layout in (BSR, BSC) else ""
    base = 2 if block else 0
    c, q, v = p.compressed._a, p.plain._a, p.values._a
    _need(c.ndim >= 1, f"{c_name} must have dimensionality >= 1 but got {c.ndim}")
    _need(
        c.ndim == q.ndim,
        f"{c_name} and {p_name} dimensionalities must be equal but got {c.ndim} and {q.ndim},"
        " respectively",
    )
    b = c.ndim - 1
    _need(
        v.ndim > b + base,
        "values must have dimensionality > sum of batch and block dimensionalities"
        f" (={b} + {base}) but got {v.ndim}",
    )
    dense = v.ndim - b - base - 1
    _need(
        len(p.shape) == b + 2 + dense,
        "tensor dimensionality must be sum of batch, base, and dense dimensionalities"
        f" (={b} + 2 + {dense}) but got {len(p.shape)}",
    )
    h, w = (int(x) for x in v.shape[b + 1 : b + 3]) if block else (1, 1)
    for i, n in enumerate((h, w)):
        if block and n and p.shape[b + i] % n:
            raise RuntimeError(
                f"tensor shape[{b + i}] (={p.shape[b + i]}) must be divisible with blocksize[{i}]"
                f" (={n}) as defined by values shape"
            )
    counts = (p.shape[b] // max(h, 1), p.shape[b + 1] // max(w, 1))
    n_major, n_minor = counts if rows else counts[::-1]
    if not (h and w):
        n_major = p.shape[b if rows else b + 1]
    _need(
        c.shape[-1] == n_major + 1,
        f"{c_name}.shape[-1] must be equal to the number of {major}{block}s + 1 (={n_major + 1}),"
        f" but got {c.shape[-1]}",
    )
    nnz = v.shape[b]
    _need(
        q.shape[-1] == nnz,
        f"{p_name}.shape[-1] must be equal to nnz (={nnz}) as defined by values.shape[{b}], but got"
        f" {q.shape[-1]}",
    )
    types = p.compressed._k.dtype, p.plain._k.dtype
    _need(
        types[0] is types[1],
        f"{c_name} and {p_name} must have the same dtype, bot got {types[0].scalar_name} and"
        f" {types[1].scalar_name}, respectively",
    )
    _need(
        types[0] in (dt.int32, dt.int64),
        f"{c_name} and {p_name} dtype must be Int or Long, but got {types[0].scalar_name}",
    )
    n = f"n{minor}s"
    _need((c[..., 0] == 0).all(), f"`{c_name}[..., 0] == 0` is not satisfied.")
    _need((c[..., -1] == nnz).all(), f"`{c_name}[..., -1] == nnz` is not satisfied.")
    steps = np.diff(c, axis=-1)
    _need(
        ((steps >= 0) & (steps <= n_minor)).all(),
        f"`0 <= {c_name}[..., 1:] - {c_name}[..., :-1] <= {n}` is not satisfied.",
    )
    _need(((q >= 0) & (q < n_minor)).all(), f"`0 <= {p_name} < {n}` is not satisfied.")
    keys = p.majors().astype(np.int64) * n_minor + q
    many = "nrows" if p.layout in (CSR, BSR) else "ncols"
    _need(
        (np.diff(keys, axis=-1) > 0).all(),
        f"`{p_name}[..., {c_name}[..., i - 1]:{c_name}[..., i]] for all i = 1, ..., {many} are"
        " sorted and distinct along the last dimension values` is not satisfied.",
    )

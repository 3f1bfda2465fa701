"""Adding rows to the places that an index names, repeated places counted.

Many rows are added by SciPy's products of a sparse matrix of ones with a dense one: one pass in C,
in the order of the rows, where `ufunc.at` goes by elements and `reduceat` wants them sorted. A few
rows are not worth SciPy's import.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from torchlab._core.lazy import lazy

sparse = lazy("scipy.sparse")

MANY = 1 << 14  # elements of all rows


def quick(xp: Any, dtype: np.dtype, elements: int) -> bool:
    """Whether SciPy adds rows of so many elements in all."""
    return (
        xp is np
        and elements >= MANY
        and dtype.kind in "fciu"
        and dtype.itemsize >= 4
        and dtype.isnative
    )


def _real(rows: Any) -> Any:
    """Complex rows as twice as many real columns: a complex 1 times infinity is not infinity."""
    rows = np.ascontiguousarray(rows)
    return rows.view(rows.real.dtype) if rows.dtype.kind == "c" else rows


def sum_rows(xp: Any, rows: Any, where: Any, n: int) -> Any:
    """(n, columns): row i is the sum of those of `rows` (count, columns) whose `where` is i."""
    count, columns = rows.shape
    if quick(xp, rows.dtype, rows.size):
        real = _real(rows)
        ones = np.ones(count, real.dtype)
        chosen = sparse.csc_array((ones, where, np.arange(count + 1)), shape=(n, count))
        return (chosen @ real).view(rows.dtype)
    r = xp.zeros((n, columns), rows.dtype)
    if not count or not columns:
        return r
    order = xp.argsort(where, kind="stable")
    ordered = where[order]
    starts = xp.flatnonzero(xp.concatenate([xp.ones(1, bool), ordered[1:] != ordered[:-1]]))
    if len(starts) == count:
        r[where] = rows
        return r
    r[ordered[starts]] = xp.add.reduceat(rows[order], starts, axis=0)
    return r


def add_rows(a: Any, where: Any, rows: Any) -> None:
    """a[where[i]] += rows[i] in turn, for shapes (n, columns), (count,), (count, columns) and rows
    that are `quick`."""
    n, count = len(a), len(rows)
    real = np.concatenate([_real(a), _real(rows)])
    places = np.concatenate([np.arange(n), where])
    ones = np.ones(n + count, real.dtype)
    chosen = sparse.csc_array((ones, places, np.arange(n + count + 1)), shape=(n, n + count))
    a[...] = (chosen @ real).view(a.dtype)


def sum_bags(table: Any, indices: Any, ends: Any, weights: Any) -> Any:
    """(bags, columns): the sums of the table's rows that `indices` name, bag after bag up to
    ends[bag]; each row times its weight, if there are any. `table` is (n, columns), real."""
    starts = np.concatenate([np.zeros(1, ends.dtype), ends])
    factors = np.ones(len(indices), table.dtype) if weights is None else weights
    chosen = sparse.csr_array((factors, indices, starts), shape=(len(ends), len(table)))
    return chosen @ table


__all__ = ["MANY", "add_rows", "quick", "sum_bags", "sum_rows"]

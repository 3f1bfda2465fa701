"""Batching rules of indexing, gather and scatter, and of embeddings."""

from __future__ import annotations

from typing import Any

from torchlab._core import dtype as dt
from torchlab._core.dispatch.batching.calls import Call, padded, rule, wrap_dim
from torchlab._core.dispatch.registry import aten
from torchlab._core.layout import broadcast_shapes
from torchlab._core.tensor import Tensor


def _along(*tensors: str) -> Any:
    """gather and scatter: all tensors of one rank; 0-d ones count as one element."""

    def body(c: Call) -> Any:
        present = [n for n in tensors if n in c.names and isinstance(c.raw(n), Tensor)]
        rank = c.rank("self")
        dim = wrap_dim(c.raw("dim"), rank, c.op.name) + 1
        ranks = {max(c.rank(n), 1) for n in present}
        if len(ranks) != 1:
            return c.loop()
        full = {n: c.full(n) for n in present}
        if any(c.rank(n) == 0 for n in present):
            full = {n: padded(x, 1) for n, x in full.items()}
            made = c.call(**full, dim=dim)
            shape = c.shape("index") if c.op.name == "gather" else c.shape("self")
            return c.wrap(aten.reshape(made, (c.n, *shape)))
        return c.run(**full, dim=dim)

    return body


rule("gather")(_along("self", "index"))
rule("scatter", "scatter_add", "scatter_reduce")(_along("self", "index", "src"))


@rule("index_select")
def index_select(c: Call) -> Any:
    rank = c.rank("self")
    dim = wrap_dim(c.raw("dim"), rank, "index_select")
    if not c.has("index"):
        if not rank:
            made = c.call(self=aten.unsqueeze(c.front("self"), 1), dim=1)
            return c.wrap(aten.select(made, 1, 0))
        return c.run(self=c.front("self"), dim=dim + 1)
    if not rank or c.rank("index") != 1:
        return c.loop()
    if not c.has("self"):  # all rows at once, then the batch out of them
        index = c.front("index")
        made = c.call(index=aten.reshape(index, (-1,)), dim=dim)
        return c.wrap(aten.unflatten(made, dim, tuple(index._a.shape)), dim)
    shape = (c.n, *(1,) * dim, -1, *(1,) * (rank - dim - 1))
    index = aten.view(c.front("index"), shape)
    size = list(c.front("self")._a.shape)
    size[dim + 1] = c.shape("index")[0]
    return c.wrap(aten.gather(c.front("self"), dim + 1, aten.expand(index, tuple(size))))


@rule("index_add", "index_copy", "index_reduce")
def index_into(c: Call) -> Any:
    rank = c.rank("self")
    if c.has("index") or not rank or c.rank("source") != rank:
        return c.loop()
    dim = wrap_dim(c.raw("dim"), rank, c.op.name) + 1
    return c.run(self=c.full("self"), source=c.full("source"), dim=dim)


@rule("index_fill.int_Scalar", "index_fill.int_Tensor")
def index_fill(c: Call) -> Any:
    rank = c.rank("self")
    value = c.raw("value")
    if isinstance(value, Tensor) and c.has("value"):
        return _fill_each(c)
    if c.has("index") or not rank:
        return c.loop()
    dim = wrap_dim(c.raw("dim"), rank, c.op.name) + 1
    return c.run(self=c.front("self"), dim=dim)


def _fill_each(c: Call) -> Any:
    """A value for each element: where a mask of ones has been filled with zeros."""
    ones = aten.ones_like(c.raw("self"), dtype=dt.bool_)
    filled = aten.index_fill(ones, c.raw("dim"), c.raw("index"), 0)
    return aten.where(filled, c.raw("self"), c.raw("value"))


@rule("take")
def take(c: Call) -> Any:
    if not c.has("self"):
        return c.run(index=c.front("index"))
    x = aten.reshape(c.front("self"), (c.n, -1)) if c.n else c.front("self")
    index = aten.reshape(c.full("index"), (c.n, -1)) if c.n else c.full("index")
    count = x._a.shape[-1]
    index = aten.where(aten.lt(index, 0), aten.add(index, count), index)
    return c.wrap(aten.reshape(aten.gather(x, 1, index), (c.n, *c.shape("index"))))


# ---- index ---------------------------------------------------------------------------------------


def _plan(c: Call) -> tuple[list[Any], tuple[int, ...], int] | None:
    """(indices for a tensor whose hidden dimension is first, shape of what they pick, where that
    stands in the result after the hidden dimension); None if the loop has to do it."""
    indices = list(c.raw("indices"))
    tensors = [x for x in indices if x is not None]
    if not tensors or any(x._k.dtype in (dt.bool_, dt.uint8) for x in tensors):
        return None
    picked = broadcast_shapes(*(x._a.shape for x in tensors))
    at = [i for i, x in enumerate(indices) if x is not None]
    together = at[-1] - at[0] == len(at) - 1
    moved: list[Any] = []
    some = False
    for x in indices:
        if x is None:
            moved.append(None)
        elif isinstance(x, Tensor) and x._level == c.level and x.bdim is not None:  # type: ignore[attr-defined]
            value = x.value if x.bdim == 0 else aten.movedim(x.value, x.bdim, 0)  # type: ignore[attr-defined]
            moved.append(padded(value, len(picked)))
            some = True
        else:
            moved.append(x.value if x._level == c.level else x)
    if some:
        rows = aten.view(aten.arange(c.n, device=tensors[0].device), (c.n, *(1,) * len(picked)))
        return [rows, *moved], picked, at[0] if together else 0
    return [None, *moved], picked, -1 if together else 0


@rule("index.Tensor")
def index(c: Call) -> Any:
    if not c.has("self"):
        return _index_shared(c)
    plan = _plan(c)
    if plan is None:
        return c.loop()
    indices, picked, place = plan
    made = c.call(self=c.front("self"), indices=indices)
    n = len(picked)
    if indices[0] is None:  # together they stay in their place, else they come first
        return c.wrap(made, 0) if place < 0 else c.wrap(made, n)
    if place:
        made = aten.movedim(made, tuple(range(1, n + 1)), tuple(range(1 + place, n + 1 + place)))
    return c.wrap(made)


def _index_shared(c: Call) -> Any:
    """Batched indices into a tensor that all share."""
    plan = _plan(c)
    if plan is None:
        return c.loop()
    indices, _, place = plan
    return c.wrap(c.call(indices=indices[1:]), max(place, 0))


@rule("index_put")
def index_put(c: Call) -> Any:
    rank = c.rank("self")
    plan = _plan(c)
    if plan is None:
        return c.loop()
    indices, picked, place = plan
    x = c.full("self")
    free = [i for i in range(rank) if i >= len(indices) - 1 or indices[i + 1] is None]
    rest = [c.shape("self")[i] for i in free]
    first = sum(i < (place if indices[0] is not None else 0) for i in free)
    if indices[0] is None:
        rows = aten.view(aten.arange(c.n, device=x.device), (c.n, *(1,) * len(picked)))
        indices[0] = rows
        at = [i for i, y in enumerate(c.raw("indices")) if y is not None]
        together = at[-1] - at[0] == len(at) - 1
        first = sum(i < at[0] for i in free) if together else 0
    shape = (*rest[:first], *picked, *rest[first:])
    values = c.raw("values")
    value = aten.expand(values, shape)
    full = value.value if value._level == c.level and value.bdim == 0 else c.filled(value)
    if first:  # what is picked comes first beside the hidden dimension
        n = len(picked)
        full = aten.movedim(full, tuple(range(1 + first, 1 + first + n)), tuple(range(1, 1 + n)))
    return c.run(self=x, indices=indices, values=full)


@rule("index_backward")
def index_backward(c: Call) -> Any:
    g = c.raw("grad_output")
    zeros = aten.new_zeros(g, tuple(c.raw("input_sizes")))
    return aten.index_put(zeros, list(c.raw("indices")), g, True)


# ---- embeddings ----------------------------------------------------------------------------------


@rule("embedding")
def embedding(c: Call) -> Any:
    """Tables of their own are one long table; each element looks into its part."""
    if not c.has("weight"):
        return c.run(indices=c.front("indices"))
    if c.raw("padding_idx") >= 0 or c.raw("scale_grad_by_freq") or c.raw("sparse"):
        return c.loop()
    w, i = c.front("weight"), c.full("indices")
    return c.wrap(c.call(weight=aten.flatten(w, 0, 1), indices=aten.add(i, _starts(c, w, i))))


def _starts(c: Call, w: Any, i: Any) -> Any:
    count = w if isinstance(w, int) else w._a.shape[1]
    starts = aten.mul(aten.arange(c.n, dtype=i.dtype, device=i.device), count)
    return aten.view(starts, (c.n, *(1,) * (len(i._a.shape) - 1)))


@rule("embedding_dense_backward")
def embedding_backward(c: Call) -> Any:
    if c.raw("padding_idx") >= 0 or c.raw("scale_grad_by_freq"):
        return c.loop()
    count = c.raw("num_weights")
    i = c.full("indices")
    made = c.call(
        grad_output=c.full("grad_output"),
        indices=aten.add(i, _starts(c, count, i)),
        num_weights=count * c.n,
    )
    return c.wrap(aten.unflatten(made, 0, (c.n, count)))

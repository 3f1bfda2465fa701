"""Batching rules of views and of what undoes them."""

from __future__ import annotations

from typing import Any

from torchlab._core.dispatch.batching.calls import Call, each, padded, rule, wrap_dim
from torchlab._core.dispatch.registry import aten
from torchlab._core.tensor import strides_of


def _resolved(c: Call, sizes: Any, name: str = "self") -> tuple[int, ...]:
    """Sizes with the hidden one before them; a −1 is worked out without it."""
    sizes = tuple(sizes)
    if -1 in sizes:
        rest = 1
        for n in sizes:
            if n != -1:
                rest *= n
        total = c.raw(name)._a.size
        if sizes.count(-1) == 1 and rest > 0 and total % rest == 0:
            sizes = tuple(total // rest if n == -1 else n for n in sizes)
    return (c.n, *sizes)


@rule("view", "_unsafe_view", "_reshape_alias")
def view(c: Call) -> Any:
    sizes = _resolved(c, c.raw("size"))
    if c.raw("self")._a.size != _product(sizes[1:]) and min(sizes, default=0) >= 0:
        raise RuntimeError(
            f"shape '{list(c.raw('size'))}' is invalid for input of size {c.raw('self')._a.size}"
        )
    return c.run(self=c.front("self"), size=sizes)


def _product(sizes: Any) -> int:
    n = 1
    for x in sizes:
        n *= x
    return n


@rule("expand")
def expand(c: Call) -> Any:
    sizes = tuple(c.raw("size"))
    if len(sizes) < c.rank("self"):
        raise RuntimeError(
            f"expand: the number of sizes provided ({len(sizes)}) must be greater or equal to the"
            f" number of dimensions in the tensor ({c.rank('self')})"
        )
    x = c.front("self")
    shape = x._a.shape
    missing = len(sizes) - c.rank("self")
    for _ in range(missing):  # as a view: reshape might copy
        x = aten.unsqueeze(x, 1)
    sizes = tuple(
        s if n == -1 and i >= missing else n
        for i, (n, s) in enumerate(zip(sizes, (*(1,) * missing, *shape[1:]), strict=True))
    )
    return c.run(self=x, size=(c.n, *sizes))


@rule("permute")
def permute(c: Call) -> Any:
    rank = c.rank("self")
    dims = c.raw("dims")
    if len(dims) != rank:
        raise RuntimeError(
            "permute(sparse_coo): number of dimensions in the tensor input does not match the"
            f" length of the desired ordering of dimensions i.e. input.dim() = {rank} is not equal"
            f" to len(dims) = {len(dims)}"
        )
    moved = tuple(wrap_dim(d, rank, "permute") + 1 for d in dims)
    return c.run(self=c.front("self"), dims=(0, *moved))


def _shifted(*names: str, extra: int = 0) -> Any:
    """Dimensions of the first tensor, one further back. `extra`: dimensions that the result has
    more, and that count."""

    def body(c: Call) -> Any:
        rank = c.rank("self") + extra
        dims = {n: wrap_dim(c.raw(n), rank, c.op.name) + 1 for n in names}
        if c.rank("self") == 0 and not extra:
            if c.op.name == "transpose":
                return c.run(self=c.front("self"), dim0=0, dim1=0)
            if c.op.name == "squeeze":
                return c.wrap(aten.alias(c.front("self")))
            if c.op.name != "unfold":
                raise IndexError(f"{c.op.name}() cannot be applied to a 0-dim tensor.")
            made = c.call(self=aten.unsqueeze(c.front("self"), 1), **dims)
            return c.wrap(aten.select(made, 1, 0))
        return c.run(self=c.front("self"), **dims)

    return body


each("select.int slice.Tensor split.Tensor split_with_sizes unsafe_split.Tensor"
     " unsafe_split_with_sizes unbind.int squeeze.dim", _shifted("dim"))  # fmt: skip
rule("unsqueeze")(_shifted("dim", extra=1))
rule("transpose.int")(_shifted("dim0", "dim1"))
rule("unfold")(_shifted("dimension"))


@rule("diagonal", "diagonal_copy")
def diagonal(c: Call) -> Any:
    rank = c.rank("self")
    dims = [wrap_dim(c.raw(n), rank, "diagonal") + 1 for n in ("dim1", "dim2")]
    if rank < 2:
        c.call(self=c.raw("self"))
    return c.run(self=c.front("self"), dim1=dims[0], dim2=dims[1])


@rule("t")
def t(c: Call) -> Any:
    x, rank = c.front("self"), c.rank("self")
    if rank > 2:
        raise RuntimeError(f"t() expects a tensor with <= 2 dimensions, but self is {rank}D")
    return c.wrap(aten.transpose(x, 1, 2) if rank == 2 else aten.alias(x))


@rule("squeeze.default", "squeeze.dims")
def squeeze(c: Call) -> Any:
    shape = c.shape("self")
    dims = range(len(shape))
    if "dim" in c.names:
        dims = [wrap_dim(d, len(shape), "squeeze") for d in c.raw("dim")]  # type: ignore[assignment]
    ones = tuple(d + 1 for d in dims if d < len(shape) and shape[d] == 1)
    x = c.front("self")
    return c.wrap(aten.squeeze(x, ones) if ones else aten.alias(x))


@rule("as_strided.relative")
def as_strided(c: Call) -> Any:
    x = c.front("self")
    outer = strides_of(x)[0]
    return c.run(self=x, size=(c.n, *c.raw("size")), stride=(outer, *c.raw("stride")))


@rule("_view_as_real", "_view_as_complex")
def last(c: Call) -> Any:
    return c.run(self=c.front("self"))


# ---- derivatives of views: the sizes of the input are an argument --------------------------------


def _backward(*dims: str, tensor: str = "grad_output", sizes: str = "input_sizes") -> Any:
    def body(c: Call) -> Any:
        shape = tuple(c.raw(sizes))
        moved = {n: wrap_dim(c.raw(n), len(shape), c.op.name) + 1 for n in dims}
        if not shape:
            return c.loop()
        return c.run(**{tensor: c.front(tensor), sizes: (c.n, *shape)}, **moved)

    return body


rule("select_backward", "slice_backward")(_backward("dim"))
rule("diagonal_backward")(_backward("dim1", "dim2"))
rule("unfold_backward")(_backward("dim", tensor="grad_in"))


def _scatter_view(*dims: str) -> Any:
    def body(c: Call) -> Any:
        rank = c.rank("self")
        moved = {n: wrap_dim(c.raw(n), rank, c.op.name) + 1 for n in dims}
        return c.run(self=c.full("self"), src=c.full("src"), **moved)

    return body


rule("select_scatter", "slice_scatter")(_scatter_view("dim"))
rule("diagonal_scatter")(_scatter_view("dim1", "dim2"))


@rule("repeat")
def repeat(c: Call) -> Any:
    times = tuple(c.raw("repeats"))
    x = padded(c.front("self"), len(times))
    if len(times) < c.rank("self"):
        raise RuntimeError(
            "Number of dimensions of repeat dims can not be smaller than number of dimensions of"
            " tensor"
        )
    return c.run(self=x, repeats=(1, *times))

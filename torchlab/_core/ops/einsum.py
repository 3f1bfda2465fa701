"""Einstein's summation, and products over chosen dimensions.

Note [Labels]. Every dimension of every operand gets a label, a character; what the ellipsis stands
for gets Greek ones. The labels' order is that of the output, then alphabetical. Two operands are
contracted as one batch of matrix products: rows are labels of the left only, columns those of the
right only, the batch those of both that are still needed, and the rest is summed. A dimension of
size 1 that meets a larger one is dropped: broadcasting costs nothing.
Source of the semantics: https://docs.pytorch.org/docs/2.13/generated/torch.einsum.html
"""

from __future__ import annotations

import math
from typing import Any

from torchlab._core import layout
from torchlab._core.dispatch.op import composite, face
from torchlab._core.dispatch.registry import aten
from torchlab._core.dispatch.written import LETTERS, with_equation

_DOTS = 0x3B1  # α: the first label of an ellipsis


@face("einsum", method=False, autocast="lower:accelerator")
def einsum(*args: Any) -> Any:
    """Products and sums of tensors as an equation tells: "bij,bjk->bik". Instead of an equation,
    each operand may be followed by a list of its labels as numbers, the output's labels last."""
    if len(args) < 2:
        raise ValueError(
            "einsum(): must specify the equation string and at least one operand, or at least one "
            "operand and its subscripts list"
        )
    equation, *operands = with_equation(args)
    named, output = _parse(equation, operands)
    _check_sizes(named, operands)
    return _contract_all(named, output, operands)


# ---- reading ------------------------------------------------------------------------------------


def _parse(equation: str, operands: Any) -> tuple[list[str], str]:
    text = equation.replace(" ", "")
    left, arrow, output = text.partition("->")
    written = left.split(",")
    if len(written) != len(operands):
        more = "more" if len(operands) > len(written) else "fewer"
        raise RuntimeError(
            f"einsum(): {more} operands were provided than specified in the equation: "
            f"{len(operands)} for '{equation}'"
        )
    return _expand(written, output if arrow else None, operands)


def _check_labels(labels: str, where: str) -> None:
    for c in labels.replace("...", "", 1):
        if c == ".":
            raise RuntimeError(f"einsum(): found '.' for {where} that is not part of any ellipsis")
        if c not in LETTERS:
            raise RuntimeError(
                f"einsum(): invalid subscript '{c}' given for {where}, subscripts must be in "
                "[a-zA-Z]"
            )


def _expand(written: list[str], output: str | None, operands: Any) -> tuple[list[str], str]:
    """The labels of every operand and of the output, with Greek ones for the ellipsis."""
    counts = []
    for i, (labels, t) in enumerate(zip(written, operands, strict=True)):
        _check_labels(labels, f"operand {i}")
        n = len(labels.replace("...", ""))
        given = t._a.ndim
        if n > given or n < given and "..." not in labels:
            raise RuntimeError(
                f"einsum(): the number of subscripts in the equation ({n}) does not match the "
                f"number of dimensions ({given}) for operand {i} and "
                + ("" if "..." in labels else "no ")
                + "ellipsis was given"
            )
        counts.append(given - n if "..." in labels else 0)
    dots = "".join(chr(_DOTS + i) for i in range(max(counts, default=0)))
    named = [
        labels.replace("...", dots[len(dots) - n :])
        for labels, n in zip(written, counts, strict=True)
    ]
    every = "".join(named)
    if output is None:
        single = {c for c in every if every.count(c) == 1} - set(dots)
        return named, dots + "".join(sorted(single))
    _check_labels(output, "the output")
    output = output.replace("...", dots)
    for c in output:
        if output.count(c) > 1:
            raise RuntimeError(
                f"einsum(): output subscript {c} appears more than once in the output"
            )
        if c not in every:
            raise RuntimeError(
                f"einsum(): output subscript {c} does not appear in the equation for any input "
                "operand"
            )
    return named, output


def _check_sizes(named: list[str], operands: Any) -> None:
    sizes: dict[str, int] = {}
    for i, (labels, t) in enumerate(zip(named, operands, strict=True)):
        own: dict[str, int] = {}
        for c, n in zip(labels, t._a.shape, strict=True):
            if own.setdefault(c, n) != n:
                raise RuntimeError(
                    f"einsum(): subscript {c} is repeated for operand {i} but the sizes don't "
                    f"match, {n} != {own[c]}"
                )
            seen = sizes.setdefault(c, n)
            if seen == 1:
                sizes[c] = n
            elif n not in (1, seen):
                raise RuntimeError(
                    f"einsum(): subscript {c} has size {n} for operand {i} which does not "
                    f"broadcast with previously seen size {seen}"
                )


# ---- contracting --------------------------------------------------------------------------------


def _contract_all(named: list[str], output: str, operands: list[Any]) -> Any:
    order = output + "".join(sorted(set("".join(named)) - set(output)))
    only_two = len(operands) == 2
    labels, result = _diagonals(named[0], operands[0])
    for i, t in enumerate(operands[1:], 1):
        other, t = _diagonals(named[i], t)
        needed = set("".join(named[i + 1 :])) | set(output)
        labels, result = _contract(labels, result, other, t, needed, order, only_two)
    rest = [c for c in order if c in labels and c not in output]
    places = tuple(labels.index(c) for c in (*output, *rest))
    if len(operands) == 1 or places != tuple(range(len(places))):
        result = aten.permute(result, places)
    if rest:
        return aten.sum(result, tuple(range(len(output), len(labels))))
    if result._v is None and len(order) > len(output):  # a view, as wherever sizes were dropped
        return aten.view(result, result._a.shape)
    return result


def _diagonals(labels: str, t: Any) -> tuple[str, Any]:
    """A label that is repeated in one operand means a diagonal."""
    for c in dict.fromkeys(labels):
        while labels.count(c) > 1:
            i = labels.index(c)
            j = labels.index(c, i + 1)
            t = aten.diagonal(t, 0, i, j)
            labels = labels[:i] + labels[i + 1 : j] + labels[j + 1 :] + c
    return labels, t


def _without_ones(labels: str, t: Any, sizes: dict[str, int]) -> tuple[str, Any]:
    """Drop dimensions of size 1 where the other operand has more."""
    shape = t._a.shape
    drop = [d for d, c in enumerate(labels) if shape[d] == 1 and sizes.get(c, 1) != 1]
    if not drop:
        return labels, t
    return "".join(c for d, c in enumerate(labels) if d not in drop), aten.squeeze(t, tuple(drop))


def _summed(labels: str, t: Any, other: str, needed: set[str]) -> tuple[str, Any]:
    """Sum what only this operand has and nobody needs."""
    gone = [d for d, c in enumerate(labels) if c not in other and c not in needed]
    if not gone:
        return labels, t
    return "".join(c for d, c in enumerate(labels) if d not in gone), aten.sum(t, gone)


def _contract(
    a: str, x: Any, b: str, y: Any, needed: set[str], order: str, ordered: bool
) -> tuple[str, Any]:  # fmt: skip
    sizes_a, sizes_b = (dict(zip(l, t._a.shape, strict=True)) for l, t in ((a, x), (b, y)))
    a, x = _without_ones(a, x, sizes_b)
    b, y = _without_ones(b, y, sizes_a)
    a, x = _summed(a, x, b, needed)
    b, y = _summed(b, y, a, needed)
    both = [c for c in order if c in a and c in b]
    batch, inner = [c for c in both if c in needed], [c for c in both if c not in needed]
    rows = [c for c in order if c in a and c not in b]
    columns = [c for c in order if c in b and c not in a]
    size = {**dict(zip(a, x._a.shape, strict=True)), **dict(zip(b, y._a.shape, strict=True))}
    if all(size[c] == 1 for c in inner):  # nothing to add up
        every = [c for c in order if c in a or c in b]
        r = aten.mul(_spread(a, x, every), _spread(b, y, every))
        if not inner:
            return "".join(every), r
        left = [c for c in every if c not in inner]
        return "".join(left), aten.view(r, tuple(r._a.shape[every.index(c)] for c in left))
    first = next((order.index(c) for c in rows if size[c] != 1), 0)
    if ordered and columns and order.index(columns[-1]) < first:  # so the result lies in order
        a, x, b, y, rows, columns = b, y, a, x, columns, rows
    lead, left, middle, right = ([size[c] for c in part] for part in (batch, rows, inner, columns))
    x = aten.permute(x, tuple(a.index(c) for c in batch + rows + inner))
    y = aten.permute(y, tuple(b.index(c) for c in batch + inner + columns))
    k = math.prod(middle)
    r = aten.bmm(
        aten.reshape(x, (math.prod(lead), math.prod(left), k)),
        aten.reshape(y, (math.prod(lead), k, math.prod(right))),
    )
    return "".join(batch + rows + columns), aten.view(r, (*lead, *left, *right))


def _spread(labels: str, t: Any, every: list[str]) -> Any:
    """The operand with a dimension of size 1 for every label it lacks."""
    for c in every:  # behind the others: so they have stride 1, which the product's strides show
        if c not in labels:
            t = aten.unsqueeze(t, -1)
            labels += c
    return aten.permute(t, tuple(labels.index(c) for c in every))


# ---- tensordot ----------------------------------------------------------------------------------


def _pairs(a: Any, b: Any, dims: Any) -> tuple[list[int], list[int]]:
    """The contracted dimensions of both, as they were given."""
    if hasattr(dims, "_a"):
        dims = dims.tolist() if dims._a.ndim else dims.item()
    if hasattr(dims, "__index__"):
        n = int(dims)
        if n < 0:
            raise RuntimeError(f"tensordot expects dims >= 0, but got dims={n}")
        if n > min(a.ndim, b.ndim):
            raise RuntimeError(
                f"tensordot expects dims < ndim_a or ndim_b, but got dims={n} (shapes "
                f"{list(a.shape)} and {list(b.shape)})"
            )
        return list(range(a.ndim - n, a.ndim)), list(range(n))
    first, second = dims
    for name, d in (("dims_self", first), ("dims_other", second)):
        if not isinstance(d, (list, tuple)):
            raise TypeError(
                f"tensordot(): argument '{name}' must be tuple of ints, not {type(d).__name__}"
            )
    return list(first), list(second)


@composite(
    "tensordot(Tensor self, Tensor other, int[] dims_self, int[] dims_other) -> Tensor",
    out=True,
    tags=("out_copied", "out_same_dtype"),
    method=False,
    autocast="promote:accelerator",
)
def tensordot_(self: Any, other: Any, dims_self: Any, dims_other: Any) -> Any:
    """Sum over pairs of dimensions of two tensors; a dimension of size 1 goes with any."""
    a, b = self, other
    if len(dims_self) != len(dims_other):
        raise RuntimeError(
            "both dimension lists should have same length; got "
            f"{list(dims_self)} and {list(dims_other)}"
        )
    if a._k.dtype is not b._k.dtype:
        raise RuntimeError(
            f"both inputs should have same dtype (tensordot: {a.dtype} and {b.dtype})"
        )
    da = [layout.wrap_dim(d, a._a.ndim) for d in dims_self]
    db = [layout.wrap_dim(d, b._a.ndim) for d in dims_other]
    for name, found in (("first", da), ("second", db)):
        if len(set(found)) != len(found):
            raise RuntimeError(f"tensordot: a dim appears twice in the {name} list: {found}")
    for i, j in zip(da, db, strict=True):
        m, n = a._a.shape[i], b._a.shape[j]
        if n == 1:
            a = aten.sum(a, i, True, dtype=a.dtype)
        elif m == 1:
            b = aten.sum(b, j, True, dtype=b.dtype)
        elif m != n:
            raise RuntimeError(
                f"contracted dimensions need to match, but first has size {m} in dim {i} and "
                f"second has size {n} in dim {j}"
            )
    rest_a = [d for d in range(a._a.ndim) if d not in da]
    rest_b = [d for d in range(b._a.ndim) if d not in db]
    left, right = [a._a.shape[d] for d in rest_a], [b._a.shape[d] for d in rest_b]
    inner = math.prod(a._a.shape[d] for d in da)
    if math.prod(left) == math.prod(right) == 1:
        x, y = aten.permute(a, (*rest_a, *da)), aten.permute(b, (*db, *rest_b))
        if x._k.contiguous and y._k.contiguous:
            x, y = (v if v._a.ndim == 1 else aten.reshape(v, (inner,)) for v in (x, y))
            r = aten.dot(x, y)
        else:  # rather than copy; unlike `dot` this knows truth values
            r = aten.sum(aten.mul(aten.squeeze(x), aten.squeeze(y)), dtype=x.dtype)
        return aten.reshape(r, (*left, *right))
    x = aten.reshape(aten.permute(a, (*rest_a, *da)), (math.prod(left), inner))
    y = aten.reshape(aten.permute(b, (*db, *rest_b)), (inner, math.prod(right)))
    return aten.reshape(aten.mm(x, y), (*left, *right))


@face("tensordot", method=False)
def tensordot(a: Any, b: Any, dims: Any = 2, out: Any = None) -> Any:
    """Sum over pairs of dimensions of two tensors: over the last `dims` of a and the first of b, or
    over the dimensions in two lists."""
    first, second = _pairs(a._a, b._a, dims)
    return tensordot_.function(a, b, first, second, out=out)

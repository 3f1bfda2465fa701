"""The loop nest of a kernel: its loops after neighbours were joined, and index texts over them.

Shared by the languages that write loops out (C++ here; CUDA maps the outer loops to its grid).
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

from torchlab._core.codegen.group import merge_dims
from torchlab._core.codegen.loop_ir import Access, Shape, contiguous
from torchlab._core.codegen.stages import Plan

RESERVED = frozenset(
    """alignas alignof and asm auto bitand bitor bool break case catch char class compl const
    constexpr continue decltype default delete do double else enum explicit export extern false
    float for friend goto if inline int long mutable namespace new noexcept not nullptr operator
    or private protected public register requires return short signed sizeof static struct switch
    template this throw true try typedef typeid typename union unsigned using virtual void
    volatile wchar_t while xor int8 int16 int32 int64 uint8 uint16 uint32 uint64 begin end threads
    first width row i j t""".split()
)


class Names:
    """Program names → identifiers of the generated language, unique within a kernel."""

    def __init__(self) -> None:
        self._given: dict[str, str] = {}
        self._taken: set[str] = set()

    def __getitem__(self, name: str) -> str:
        if name not in self._given:
            self._given[name] = self.fresh(name)
        return self._given[name]

    def fresh(self, wish: str) -> str:
        """A new identifier like `wish`."""
        wish = re.sub(r"\W", "_", wish)
        if not wish or wish[0].isdigit() or wish in RESERVED or wish.startswith(("tl_", "__")):
            wish = f"v_{wish}"
        name, n = wish, 1
        while name in self._taken or re.fullmatch(r"[irk]\d+", name):
            n += 1
            name = f"{wish}_{n}"
        self._taken.add(name)
        return name


@dataclass(frozen=True)
class Loop:
    """`for var in range(extent)`."""

    var: str
    extent: int


@dataclass(frozen=True)
class Nest:
    """`outer` loops, then `inner` ones (the row; the reduced dims in mode "column"), and the
    strides that every access of the group has over them, `(*outer, *inner)`."""

    outer: tuple[Loop, ...]
    inner: tuple[Loop, ...]
    strides: dict[tuple[Shape, int], Shape]

    def stride(self, access: Access) -> Shape:
        return self.strides[access.stride, access.offset]

    def index(self, access: Access) -> str:
        """The element number of `access` as text."""
        return index_text((*self.outer, *self.inner), self.stride(access), access.offset)

    @property
    def row_index(self) -> str:
        """The position within the row, as text."""
        return index_text(self.inner, contiguous(tuple(x.extent for x in self.inner)), 0)

    @property
    def row_size(self) -> int:
        return math.prod(x.extent for x in self.inner)


def index_text(loops: tuple[Loop, ...], stride: Shape, offset: int) -> str:
    """`row * 1024 + i`."""
    terms = [
        x.var if s == 1 else f"{x.var} * {s}"
        for x, s in zip(loops, stride, strict=True)
        if s and x.extent > 1
    ]
    if offset or not terms:
        terms.append(str(offset))
    return " + ".join(terms)


def make_nest(plan: Plan) -> Nest:
    """Join the dims of a plan's group into as few loops as its accesses allow."""
    group = plan.group
    accesses = [a for m in group.members for a in (*m.loads.values(), m.store)]
    rank = len(group.dims)
    reduced = group.reduced or (False,) * rank
    kept = tuple(d for d in range(rank) if not reduced[d])
    sizes, outer = merge_dims(accesses, group.dims, kept)
    row_sizes, inner = merge_dims(accesses, group.dims, tuple(d for d in range(rank) if reduced[d]))
    if plan.mode == "pointwise":
        loops = _loops(sizes or (1,), "i", "i")
        strides = {
            (a.stride, a.offset): o.stride or (0,) for a, o in zip(accesses, outer, strict=True)
        }
        return Nest(loops[:-1], loops[-1:], strides)
    strides = {
        (a.stride, a.offset): (*o.stride, *i.stride)
        for a, o, i in zip(accesses, outer, inner, strict=True)
    }
    if plan.mode == "column":
        return Nest(_loops(sizes, "i", "i"), _loops(row_sizes, "row", "r"), strides)
    return Nest(_loops(sizes, "row", "r"), _loops(row_sizes, "i", "i"), strides)


def _loops(sizes: Shape, alone: str, several: str) -> tuple[Loop, ...]:
    if len(sizes) == 1:
        return (Loop(alone, sizes[0]),)
    return tuple(Loop(f"{several}{d}", n) for d, n in enumerate(sizes))

"""The histories of views that fell behind: Note [Views that fell behind] in `tape`.

Note [The way of a view]
~~~~~~~~~~~~~~~~~~~~~~~~
After a write, a view's history is one node that tells by geometry where its elements lie in the
base. Where a view on the way from the base was one of another type, or of conjugates or negatives,
geometry does not tell all, and PyTorch repeats every step from the base on: what was viewed before
such a step, and every view after it, as a view told by its geometry at that time. So a view knows
its `way`: None where geometry tells all, else (the way before, the last step), a step being a
geometry or the name of what changed the type. The geometry is that of then: a view that got another
shape in place since has a history of the old shape, and its gradient does not fit.
"""

from __future__ import annotations

from typing import Any

from torchlab._core import dtype as dt
from torchlab._core import tape
from torchlab._core.dispatch.registry import aten
from torchlab._core.kind import kind
from torchlab._core.refusals import NORMAL
from torchlab._core.tape import Node, ViewMeta, geometry, way_of
from torchlab._core.tensor import Tensor


def changed(x: Tensor, r: Any, *steps: Any) -> Any:
    """`r`, the view of `x` that these steps made, knows its way now."""
    v = r._v
    if v is None:
        return r
    base, creation, version, _ = v if type(v) is ViewMeta else (v, NORMAL, 0, None)
    way = way_of(x)
    if way is None and x._v is not None:
        way = (None, geometry(x))
    for step in steps:
        way = (way, step)
    r._v = (base, creation, version, way)
    return r


def in_pairs(geometry: Any) -> Any:
    """The geometry of a complex tensor as that of its (real, imaginary) parts."""
    shape, strides, offset = geometry
    return (*shape, 2), (*(2 * x for x in strides), 1), 2 * offset


def of_pairs(geometry: Any) -> Any:
    """The geometry of a complex tensor from that of its (real, imaginary) parts."""
    shape, strides, offset = geometry
    return shape[:-1], tuple(x // 2 for x in strides[:-1]), offset // 2


def strided_backward(g: Tensor, geometry: Any, base: Any) -> Tensor:
    """The gradient of a base from that of a view told by geometry. A real view of a complex base,
    or the other way round, is one of real numbers."""
    shape, base_geometry, k = base
    if k.dtype.is_complex != g._k.dtype.is_complex:
        if k.dtype.is_complex:
            pairs = in_pairs(base_geometry)
            return aten.view_as_complex(strided_backward(g, geometry, (pairs[0], pairs, g._k)))
        pairs = aten.view_as_real(aten.resolve_conj(g))
        return strided_backward(pairs, in_pairs(geometry), base)
    _, base_strides, base_offset = base_geometry
    size, strides, offset = geometry
    r = aten.as_strided_backward(g, tuple(shape), base_strides, base_offset, size, strides, offset)
    return aten.view(r, r._a.shape)  # type: ignore[no-any-return]  # PyTorch's is a view of cells


class AsStridedBackward0(Node):
    """The gradient of a view, told by geometry: scatter into the base's layout."""

    __slots__ = ("geometry", "base")

    def apply(self, g: Any) -> Any:
        return (strided_backward(g, self.geometry, self.base),)


class ConjBackward0(Node):
    """The gradient of a view of the conjugates."""

    __slots__ = ()

    def apply(self, g: Any) -> Any:
        return (aten._conj_physical(g) if g._k.dtype.is_complex else g,)


class NegViewBackward0(Node):
    """The gradient of a view of the negatives."""

    __slots__ = ()

    def apply(self, g: Any) -> Any:
        return (aten.neg(g),)


class ViewAsRealBackward0(Node):
    """The gradient of a complex tensor seen as (real, imaginary) pairs."""

    __slots__ = ()

    def apply(self, g: Any) -> Any:
        return (aten.complex(aten.select(g, -1, 0), aten.select(g, -1, 1)),)


class ViewAsComplexBackward0(Node):
    """The gradient of pairs seen as complex numbers."""

    __slots__ = ()

    def apply(self, g: Any) -> Any:
        return (aten.stack([aten.real(g), aten.imag(g)], -1),)


# For each change of the type: its node, the geometry and the type after it.
_CHANGES: dict[str, Any] = {
    "conj": (ConjBackward0, None, None),
    "neg": (NegViewBackward0, None, None),
    "view_as_real": (ViewAsRealBackward0, in_pairs, dt.dtype.to_real),
    "view_as_complex": (ViewAsComplexBackward0, of_pairs, dt.dtype.to_complex),
}


def remade(t: Tensor, base: Tensor, way: Any) -> Node:
    """The history of the view `t` from that of its base."""
    steps = []
    while way is not None:
        way, step = way
        steps.append(step)
    edge, at, k = base._e, geometry(base), base._k
    node: Any = None
    for step in reversed(steps) if steps else (geometry(t),):
        if type(step) is str:
            cls, moved, typed = _CHANGES[step]
            node = cls()
            at = at if moved is None else moved(at)
            k = k if typed is None else kind(typed(k.dtype), k.device)
        else:
            node = AsStridedBackward0()
            node.geometry, node.base = step, (at[0], at, k)
            at = step
            if not steps:
                k = t._k
        node.next, node.shape, node.k = (edge,), at[0], k
        edge = node
    return node  # type: ignore[no-any-return]


tape.remade.append(remade)

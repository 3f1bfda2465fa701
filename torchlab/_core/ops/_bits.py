"""Conjugates and negatives that are not computed yet: views with a bit set.

Note [Pending tensors]
~~~~~~~~~~~~~~~~~~~~~~
`x.conj()` of a complex tensor costs no copy: the result shares x's memory, and a bit says that its
elements are the conjugates of what lies there. A second bit, for negatives, comes from the
imaginary part of a conjugate. Tensors with a bit are of the hidden class `Pending`, an exotic class
(Note [Exotic tensors] in dispatch.exotic), so that tensors without one never ask for bits.

Their `_a` is no bare array, for then each place that reads arrays without looking at the class
would silently compute with wrong values. It is a `Bits`: it tells shape, strides and dtype of the
memory, gives the true values whenever something reads it (a copy with the bits applied), and takes
writes through the bits. So

- views (Op.family "view") act on the memory and hand the bits on;
- any other operator gets plain tensors with the true values. These have the edge of the pending
  tensor, so that the tape looks as if the operator had taken it, and its version counter (`Mirror`)
  so that a write to the memory before backward is found out;
- composites run their body: what they call does one or the other;
- writes in place run as ever, up to the array;
- a recorded write into such a view goes through `Turned`, which applies the bits to gradients.

Source: https://docs.pytorch.org/docs/2.13/generated/torch.conj.html
"""

from __future__ import annotations

from typing import Any, NoReturn

import numpy as np

from torchlab._core import layout
from torchlab._core.backends.meta import MetaArray
from torchlab._core.device import device
from torchlab._core.dispatch import compute, exotic, viewing, writes
from torchlab._core.dispatch.registry import FACES, aten
from torchlab._core.dtype import dtype as dtype_class
from torchlab._core.formats import contiguous_format, preserve_format
from torchlab._core.kind import Kind
from torchlab._core.memory.storage import Storage
from torchlab._core.ops._view_histories import changed
from torchlab._core.ops.kernels import negative
from torchlab._core.tape import NOGRAD, TLS, Node, ViewMeta, base_of, edge_of, storage_of
from torchlab._core.tensor import Tensor, strides_of

KEY = "Pending"
_new = object.__new__


# ---- the array ----------------------------------------------------------------------------------

# A method that writes would write to a copy, an address be that of a copy.
_REFUSED = frozenset(
    "fill sort partition put setfield resize byteswap setflags ctypes data base".split()
)


def turned(a: Any, conj: bool, neg: bool, out: Any = None) -> Any:
    """The values of `a` with the bits applied: conjugate, negative, or both."""
    if conj:
        a = np.conjugate(a) if out is None else np.conjugate(a, out=out)
    return negative(np, a, out) if neg else a


class Bits(np.lib.mixins.NDArrayOperatorsMixin):
    """Stands where other tensors have their array: memory, and what is to be done to its values."""

    __slots__ = ("memory", "conj", "neg", "contiguous")

    def __init__(self, memory: Any, conj: bool, neg: bool, contiguous: bool) -> None:
        self.memory, self.conj, self.neg, self.contiguous = memory, conj, neg, contiguous

    shape = property(lambda self: self.memory.shape)
    ndim = property(lambda self: self.memory.ndim)
    size = property(lambda self: self.memory.size)
    dtype = property(lambda self: self.memory.dtype)
    itemsize = property(lambda self: self.memory.itemsize)
    flags = property(lambda self: self.memory.flags)

    @property
    def strides(self) -> tuple[int, ...]:
        m = self.memory
        if m.size == 0 and self.contiguous:  # NumPy's are of its own choosing
            return tuple(x * m.itemsize for x in layout.contiguous_strides(m.shape))
        return tuple(m.strides)

    def resolved(self) -> Any:
        """A fresh array of the true values."""
        m = self.memory
        if type(m) is MetaArray:
            return MetaArray(m.shape, m.dtype, tuple(x // m.itemsize for x in m.strides))
        r = turned(m, self.conj, self.neg)
        return r if type(r) is type(m) else np.asarray(r)  # NumPy gives a scalar for no dims

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        if copy is False:
            raise ValueError("a tensor with the conjugate or negative bit has no array as it is")
        a = self.resolved()
        return a if dtype is None else a.astype(dtype)

    def __len__(self) -> int:
        return len(self.memory)

    def __bool__(self) -> bool:
        return bool(self.resolved())

    def __getitem__(self, index: Any) -> Any:
        return self.resolved()[index]

    def __setitem__(self, index: Any, value: Any) -> None:
        m = self.memory
        v = plain_array(value)
        if not hasattr(v, "astype"):
            v = np.asarray(v)
        self.memory[index] = turned(v.astype(m.dtype), self.conj, self.neg)

    def __getattr__(self, name: str) -> Any:
        if name in _REFUSED or name.startswith("__"):
            raise AttributeError(name)
        return getattr(self.resolved(), name)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **named: Any) -> Any:
        out = named.pop("out", None)
        run = getattr(ufunc, method)
        arrays = [plain_array(x) for x in inputs]
        if out is None:
            return run(*arrays, **named)
        targets = tuple(plain_array(x) for x in out)
        run(*arrays, out=targets, **named)
        for o, t in zip(out, targets, strict=True):
            if type(o) is Bits:
                o[...] = t
        return out[0] if len(out) == 1 else out

    def __array_function__(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        if func is np.copyto and type(args[0]) is Bits:
            target = args[0].resolved()
            np.copyto(target, *map(plain_array, args[1:]), **kwargs)
            args[0][...] = target
            return None
        if func in (np.put, np.place, np.putmask, np.fill_diagonal, np.put_along_axis):
            if type(args[0]) is Bits:
                return NotImplemented
        return func(*map(plain_array, args), **{k: plain_array(v) for k, v in kwargs.items()})


def plain_array(x: Any) -> Any:
    """What NumPy understands, in lists too."""
    if type(x) is Bits:
        return x.resolved()
    return type(x)(map(plain_array, x)) if type(x) in (list, tuple) else x


# ---- the tensor ---------------------------------------------------------------------------------


class PendingKind(Kind):
    """As `exotic_kind`; tells the tape of which class a saved value was."""

    __slots__ = ("cls",)


_kinds: dict[tuple[dtype_class, device], Kind] = {}


def pending_kind(k: Kind) -> Kind:
    """The kind of pending tensors over memory of kind `k`."""
    found = _kinds.get((k.dtype, k.device))
    if found is None:
        twins = []
        for inference in (False, True):
            p = PendingKind(k.dtype, k.device, False, inference)
            p.plain = p.direct = p.fast = p.fp = p.arith = False
            p.cls = Pending
            twins.append(p)
        for p in twins:
            p.n, p.i = twins
        found = _kinds.setdefault((k.dtype, k.device), twins[0])
    return found.i if k.inference else found


class Pending(exotic.Exotic):
    """A tensor with the conjugate or the negative bit; see Note [Pending tensors]."""

    __slots__ = ()
    backend = KEY
    strided = True

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Nothing is to be overridden: what is no operator runs as for other tensors."""
        op = getattr(func, "op", None)
        return NotImplemented if op is None else exotic.call(op, args)

    def is_conj(self) -> bool:
        return self._a.conj

    def is_neg(self) -> bool:
        return self._a.neg

    def is_contiguous(self, memory_format: Any = None) -> bool:
        if memory_format is None or memory_format is contiguous_format:
            return self._a.contiguous
        return bare(self).is_contiguous(memory_format)

    def data_ptr(self) -> int:
        return bare(self).data_ptr()

    def plain(self) -> Tensor:
        return settled(self)

    @classmethod
    def fallback(cls, op: Any, args: Any) -> Any:
        if op.family == "view":
            return viewed(op, args[0], args[1:])
        return op.core(*map(plain_of, args))

    @classmethod
    def fallback_face(cls, name: str, args: Any, kwargs: Any) -> Any:
        return FACES[name].body(*args, **kwargs)

    @classmethod
    def fallback_into(cls, op: Any, operands: Any, values: Any, out: Any) -> Any:
        """A pointwise operator with pending operands, into the array `out` or a new tensor."""
        operands = tuple(map(plain_of, operands))
        if type(out) is not Bits:
            return compute.elementwise(op, operands, values, out)
        target = out.resolved()
        compute.elementwise(op, operands, values, target)
        out[...] = target
        return out

    @classmethod
    def fallback_general(cls, op: Any, t: Tensor, operands: Any, values: Any) -> None:
        """An operator that is not element by element, into `t`."""
        target = settled(t) if isinstance(t, Pending) else t
        writes.general_into(op, target, tuple(map(plain_of, operands)), values)
        if target is not t:
            t._a[...] = target._a

    def written_out(self, r: Any, op: Any) -> None:
        """Take the values of `r` as the result of an `out=`."""
        b = bare(self)
        b._e = None
        writes.resize_out(op, b, r._a.shape)
        take(self, b)
        if self._k.device.type != "meta":
            self._a[...] = r._a
        writes.wrote(self)


# ---- the tape -----------------------------------------------------------------------------------


def _conjugated(g: Any) -> Any:
    return (aten._conj_physical(g) if g._k.dtype.is_complex else g,)


def relative(t: Tensor) -> tuple[bool, bool]:
    """(conj, neg): whether a view has these bits and its base has not, or the other way round."""
    b = base_of(t)
    return t.is_conj() != b.is_conj(), t.is_neg() != b.is_neg()


def through(t: Tensor, node: Any) -> Any:
    """`node`, which wrote the values of the view t, as what wrote the values of its base."""
    conj, neg = relative(t)
    return Turned(node, conj, neg) if conj or neg else node


writes.exotic_through.append(through)


class Turned(Node):
    """The node of a write into a pending view, in terms of the memory: bits applied to what comes
    in and to what goes to the written tensor."""

    __slots__ = ("fn", "conj", "neg")
    saves = ("fn",)

    def __init__(self, fn: Any, conj: bool, neg: bool) -> None:
        super().__init__()
        self.fn, self.conj, self.neg = fn, conj, neg
        self.next, self.shape, self.k = fn.next, fn.shape, fn.k

    def name(self) -> str:
        return self.fn.name()

    def turn(self, g: Any) -> Any:
        if self.conj:
            (g,) = _conjugated(g)
        return aten.neg(g) if self.neg else g

    def apply(self, g: Any) -> Any:
        first, *rest = self.fn.apply(self.turn(g))
        return (first if first is None else self.turn(first), *rest)

    def release(self) -> None:
        self.fn.release()


def bare(x: Any, history: bool = True) -> Tensor:
    """The memory as a plain tensor: same storage, base and edge (if anybody wants the history)."""
    e = edge_of(x) if history else None
    t = _new(Tensor)
    b = x._a
    k = aten_kind(x)
    t._a, t._k, t._s, t._v, t._e = b.memory, k if b.contiguous else k.v, x._s, x._v, e
    t._g = None
    return t


def aten_kind(x: Any) -> Kind:
    """The contiguous kind of the memory of a pending tensor."""
    k = compute.kind(x._k.dtype, x._k.device)
    return k.i if x._k.inference else k


def pending(t: Tensor, conj: bool, neg: bool) -> Any:
    """The plain tensor `t` (a fresh object) with bits: same storage, base and edge."""
    if not conj and not neg:
        return t
    r = _new(Pending)
    r._a = Bits(t._a, conj, neg, t._k.contiguous)
    r._k = pending_kind(t._k)
    r._s, r._v, r._e, r._g = storage_of(t), t._v, t._e, None
    return r


def take(x: Any, t: Tensor) -> Any:
    """Let x be a view of the memory of the plain tensor `t`; its bits stay."""
    x._a = Bits(t._a, x._a.conj, x._a.neg, t._k.contiguous)
    x._k = pending_kind(t._k)
    x._s, x._v, x._e = storage_of(t), t._v, t._e
    return x


def viewed(op: Any, x: Any, rest: Any) -> Any:
    """A view of a pending tensor: one of its memory, with its bits."""
    b = bare(x, op.name != "detach")
    r = op.core(b, *rest)
    if x._s is None:
        x._s = b._s
    many = type(r) in (list, tuple)
    made = [based(pending(y, x._a.conj, x._a.neg), b, x) for y in (r if many else (r,))]
    return type(r)(made) if many else made[0]


def based(r: Any, b: Tensor, x: Tensor) -> Any:
    """A pending tensor that is no view is the base of its views."""
    v = r._v
    if v is b:
        r._v = x
    elif type(v) is ViewMeta and v[0] is b:
        r._v = (x, *v[1:])
    return r


# ---- the values ---------------------------------------------------------------------------------


class Mirror(Storage):
    """The storage of a temporary with the true values: its version counter is that of the memory
    they were taken from."""

    __slots__ = ("source",)

    def __init__(self, owner: Any, source: Storage) -> None:
        self.source = source
        super().__init__(owner)

    version = property(lambda s: s.source.version, lambda s, value: None)  # type: ignore[assignment]
    writer = property(lambda s: s.source.writer, lambda s, value: None)  # type: ignore[assignment]

    @property
    def saved(self) -> int:  # type: ignore[override]
        return self.source.saved

    @saved.setter
    def saved(self, value: int) -> None:
        self.source.saved = max(self.source.saved, value)


def computed(x: Any) -> Tensor:
    """The true values in a plain tensor without history; strides as `clone` gives them."""
    b = x._a
    strides = None if b.contiguous else layout.empty_like_strides(b.shape, strides_of(x))
    r = compute.empty(b.shape, x._k.dtype, x._k.device, strides)
    if x._k.device.type != "meta":
        turned(b.memory, b.conj, b.neg, r._a)
    return r


def settled(x: Any) -> Tensor:
    """The true values, for an operator: with x's edge and version counter."""
    r = computed(x)
    e = r._e = edge_of(x)
    if e is not None:
        own = r._s
        r._s = Mirror(r._a if own is None else own, storage_of(x))
        if own is not None:  # keeps the allocator's block
            r._s._bytes = own._bytes
    if x._k.inference:
        r._k = r._k.i
    return r


def plain_of(x: Any) -> Any:
    """An operator's argument without pending tensors, in lists too."""
    if type(x) is Pending:
        return settled(x)
    if type(x) in (list, tuple) and any(type(y) is Pending for y in x):
        return [plain_of(y) for y in x]
    return x


def resolved(x: Any) -> Any:
    """The true values, recorded as a copy."""
    if not isinstance(x, Pending):
        return x
    r = computed(x)
    if x._k.inference:
        r._k = r._k.i
    return exotic.record("CloneBackward0", r, (x,), lambda g: (g,))


@exotic.exotic(KEY, "clone")
def _clone(x: Any, memory_format: Any) -> Any:
    if memory_format is None or memory_format is preserve_format:
        return resolved(x)
    return aten.clone(settled(x), memory_format=memory_format)


def refuse_array(x: Any) -> NoReturn:
    """Raise PyTorch's error: the array of the memory would not be the tensor's values."""
    bit, name = ("conjugate", "conj") if x._a.conj else ("negative", "neg")
    raise RuntimeError(
        f"Can't call numpy() on Tensor that has {bit} bit set. Use tensor.resolve_{name}().numpy()"
        " instead."
    )


def flipped(x: Any, *, conj: bool = False, neg: bool = False) -> Any:
    """A view of the whole tensor with a bit flipped, without history."""
    has = (x._a.conj, x._a.neg) if type(x) is Pending else (False, False)
    t = _new(Tensor)
    t._a, t._k, t._s, t._e, t._g = x._a, x._k, storage_of(x), None, None
    if type(x) is Pending:
        b = x._a
        k = aten_kind(x)
        t._a, t._k = b.memory, k if b.contiguous else k.v
    t._v = viewing.view_meta(x if x._v is None else x._v, t._s, t)
    changed(x, t, "conj" if conj else "neg")
    if NOGRAD and not TLS.grad:
        viewing.view_leaf(t)
    return pending(t, has[0] != conj, has[1] != neg)

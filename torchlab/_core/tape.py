"""The record of the tape: nodes, edges, and the values they save.

An *edge* answers three questions at once (requires_grad, grad_fn, is_leaf). It is
    None               no gradient is wanted
    AccumulateGrad     the tensor is a leaf that wants one
    a Node             the tensor is that node's only output
    Out(node, nr)      the tensor is output number nr of a node with several outputs

The engine that walks the tape lives in `torchlab.autograd.engine`.
"""

from __future__ import annotations

import weakref
from functools import partial
from itertools import count
from sys import getrefcount
from typing import Any, NamedTuple

import numpy as np

from torchlab._core.grad_state import ANOMALY as ANOMALY
from torchlab._core.grad_state import NOGRAD as NOGRAD
from torchlab._core.grad_state import OTHER_THREADS as OTHER_THREADS
from torchlab._core.grad_state import TLS as TLS
from torchlab._core.hooks import Hooks, hooks_of
from torchlab._core.kind import cpu_kind
from torchlab._core.memory.storage import Storage, Twin
from torchlab._core.references import ALONE, caller, references_of_edge
from torchlab._core.refusals import NORMAL, forbidden_write, modified

next_seq = count(1).__next__
next_task = count().__next__


class Node:
    """A step of the tape: what backward will do for one operator call.

    Subclasses are generated from the operators' declarations and carry PyTorch's names.
    """

    __slots__ = ("next", "shape", "k", "_hooks", "_seq", "__weakref__")
    saves: tuple[str, ...] = ()
    op: Any = None
    next: tuple[Any, ...]
    shape: Any
    k: Any
    _hooks: Hooks | None
    _seq: int
    used: Any = None  # numbers of the outputs that have a gradient; None: all
    _outs: Any = None  # nodes with several outputs: a list of (shape, kind); see MultiNode
    of_lists = False  # whether an argument that it gives gradients of is a list of tensors
    # Which of `next` PyTorch's node has (None: one leading nowhere); None: all. Numbers have none.
    places: tuple[int | None, ...] | None = None
    runs_on_nothing = False  # whether `apply` is called also where no gradient came
    refuses = False  # whether `apply` raises whatever came, be it nothing

    def __init__(self) -> None:
        self.next = ()
        self._hooks = None
        self._seq = next_seq()

    def __init_subclass__(cls) -> None:
        """`node._saved_self` and `node._raw_saved_self` for the slot `s_self`. (A `__getattr__`
        would make every look-up of an attribute of a node three times as slow.)"""
        for slot in cls.__dict__.get("saves", ()):
            if slot.startswith("s_"):
                setattr(cls, "_saved_" + slot[2:], _saved(slot))
                setattr(cls, "_raw_saved_" + slot[2:], _raw_saved(slot))
        for slot in cls.__dict__.get("__slots__", ()):  # numbers that the gradient needs
            if slot.startswith("v_") and not slot.endswith(("_dtype", "_device")):
                name = slot[2:].replace("_shape", "_sym_sizes")
                setattr(cls, "_saved_" + name, cls.__dict__[slot])

    def name(self) -> str:
        """The name that PyTorch gives it; those without a formula have a prefix."""
        name = type(self).__name__
        return "torch::autograd::" + name if name in _WITHOUT_FORMULA else name

    def apply(self, g: Any) -> Any:
        """The gradients of the inputs, one for each of `next` (None where there is none).
        `g` is a tensor, or for several outputs a tuple of tensors and None."""
        raise NotImplementedError

    def spend(self, g: Any) -> Any:
        """`apply` for the last time. The generated classes that save nothing have `apply` here."""
        results = self.apply(g)
        self.release()
        return results

    def release(self) -> None:
        """Drop the saved values; a second backward through them then says so."""
        for slot in self.saves:
            if getattr(self, slot, None) is not None:
                setattr(self, slot, RELEASED)

    @property
    def metadata(self) -> dict[Any, Any]:
        return EXTRA.setdefault(self, {})

    @property
    def next_functions(self) -> tuple[tuple[Any, int], ...]:
        return tuple(
            (None, 0)
            if e is None or type(e) is AccumulateGrad and e.leaf is nobody
            else (e.node, e.nr)
            if type(e) is Out
            else (e, 0)
            for e in self.shown(self.next)
        )

    def shown(self, edges: Any) -> Any:
        """What is there for each of `next`, as PyTorch's node has it."""
        if self.places is None:
            return edges
        return tuple(None if i is None else edges[i] for i in self.places)

    @property
    def requires_grad(self) -> bool:
        return True

    def _sequence_nr(self) -> int:
        return self._seq

    def _set_sequence_nr(self, number: int) -> None:
        self._seq = number

    def register_hook(self, fn: Any) -> Any:
        """Call `fn(grad_inputs, grad_outputs)` after this node ran; it may return new
        grad_inputs."""
        return hooks_of(self).add("post", fn)

    def register_prehook(self, fn: Any) -> Any:
        """Call `fn(grad_outputs)` before this node runs; it may return new grad_outputs."""
        return hooks_of(self).add("pre", fn)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} object at {id(self):#x}>"


def _saved(slot: str) -> property:
    return property(lambda node: _as_saved(unpack(getattr(node, slot), node), node))


def _as_saved(x: Any, node: Node) -> Any:
    """PyTorch makes tensors of numbers that its node takes for operands."""
    if type(x) not in (bool, int, float, complex) or node.places is not None:
        return x
    return parts_to_tensor(np.asarray(x), None, cpu_kind(np.asarray(x)), None)


def _raw_saved(slot: str) -> property:
    return property(lambda node: SavedTensor(node, slot))


class NotImplementedNode(Node):
    """The history that an operator without a formula leaves: its backward refuses."""

    __slots__ = ("operator",)
    refuses = True

    def __init__(self, operator: str, t: Any, edges: tuple[Any, ...]) -> None:
        super().__init__()
        self.operator = operator
        self.next, self.shape, self.k = edges, t._a.shape, t._k

    def apply(self, g: Any) -> Any:
        raise RuntimeError(f"derivative for aten::{self.operator} is not implemented")


NotImplementedNode.__name__ = NotImplementedNode.__qualname__ = "NotImplemented"
_WITHOUT_FORMULA = frozenset(("AccumulateGrad", "CopySlices", "CopyBackwards", "NotImplemented"))
# What few nodes have: the user's metadata, and the forward's stack in anomaly mode.
EXTRA: weakref.WeakKeyDictionary[Node, dict[Any, Any]] = weakref.WeakKeyDictionary()


class MultiNode(Node):
    """A node with several outputs; its `apply` gets a tuple of gradients, None where none came."""

    __slots__ = ("_outs",)


class Out:
    """The edge to output `nr` of a node with several outputs."""

    __slots__ = ("node", "nr")

    def __init__(self, node: Node, nr: int) -> None:
        self.node = node
        self.nr = nr


class LeafRef(weakref.ref):
    """A weak reference to a leaf. When the leaf dies before its node, it takes over the leaf's
    array, so that the node can make the leaf anew: PyTorch's node owns it.

    Note [Leaves that are gone]. `x = x * 2` drops the leaf, but its hooks must still run. The node
    cannot own the leaf, which owns the node; nor may it own the array, of which a new `.data`
    would not free it. So it holds the array weakly and takes it when the leaf goes.
    """

    __slots__ = ("array", "k", "cls", "kept", "grad", "grad_ref")

    def __new__(cls, leaf: Any) -> LeafRef:
        return weakref.ref.__new__(cls, leaf, _leaf_died)

    def __init__(self, leaf: Any) -> None:
        super().__init__(leaf, _leaf_died)
        a = leaf._a
        self.array = weakref.ref(a) if type(a) is np.ndarray else a
        self.k = leaf._k
        self.cls = type(leaf)
        self.kept: Any = None
        self.grad: Any = None  # what it accumulated, after it has gone
        self.grad_ref: Any = None  # the same, weakly, while it lives: kept if it has hooks


def _leaf_died(r: LeafRef) -> None:
    r.kept = r.array() if type(r.array) is weakref.ref else r.array
    if r.grad_ref is not None:
        r.grad = r.grad_ref()


def nobody() -> None:
    """The leaf of a node that brings nobody a gradient."""
    return None


class GradientEdge(NamedTuple):
    """A place on the tape: output `output_nr` of `node`. `ownership_token` keeps alive what the
    place needs."""

    node: Node
    output_nr: int
    ownership_token: Any = None


class AccumulateGrad(Node):
    """The end of a path: adds what arrives to the leaf's `.grad`. It holds its leaf weakly."""

    __slots__ = ("leaf",)

    def __init__(self, leaf: Any) -> None:
        self.leaf: Any = LeafRef(leaf)
        self.next = ()
        self._hooks = None
        self._seq = LEAF_SEQ

    @property
    def variable(self) -> Any:
        leaf = self.leaf()
        return self.revived() if leaf is None else leaf

    def expects(self, leaf: Any) -> tuple[Any, Any]:
        """(shape, kind) of the gradients that may arrive here."""
        r = self.leaf
        if type(r) is Reshaped and r() is None:
            return r.shape, r.k
        return leaf._a.shape, leaf._k

    def revived(self) -> Any:
        """The leaf made anew, if it is gone (Note [Leaves that are gone]); or None."""
        r = self.leaf
        if type(r) is Reshaped:
            return r.leaf()
        if type(r) is not LeafRef or r.kept is None:
            return None
        leaf = _new(r.cls)
        leaf._a, leaf._k, leaf._e, leaf._g = r.kept, r.k, self, r.grad
        leaf._s = leaf._v = None
        self.leaf = LeafRef(leaf)
        self.leaf.grad = r.grad
        return leaf

    def release(self) -> None:
        pass


# The edge of a view that was not recorded, of a base that wants gradients: it says that it wants
# some, too, but never gets any.
NOWHERE = object.__new__(AccumulateGrad)
NOWHERE.leaf, NOWHERE.next, NOWHERE._hooks, NOWHERE._seq = nobody, (), None, 2**64 - 1


class Reshaped:
    """What a node has in place of its leaf while graphs live that were recorded when the leaf had
    another shape or type.

    Note [Leaves that changed]. `x.data = y`, `x.set_(y)`, `out=x` and `x.t_()` under no_grad may
    give a leaf another shape. In PyTorch its node knows the shape it was made for, and lives as
    long as a graph does that ends in it: until then gradients of the old shape only may arrive.
    torchlab's leaf owns its node, so it gets a new one, which points at the `older` one; calling
    this gives the leaf when that one is gone, else None, which sends the engine the long way.
    """

    __slots__ = ("leaf", "older", "shape", "k", "steps")

    def __init__(self, leaf: Any, older: Any, shape: Any, k: Any, steps: Any = None) -> None:
        self.leaf = weakref.ref(leaf)
        self.older = None if older is None else weakref.ref(older, self._older_died)
        self.shape, self.k = shape, k
        self.steps = steps  # PyTorch's strides of the leaf as it is now, where the leaf lacks them

    def __call__(self) -> Any:
        if self.older is None or self.older() is not None:
            return None
        return self.leaf()

    def _older_died(self, ref: Any) -> None:
        leaf = self.leaf()
        if leaf is not None and type(leaf._e) is AccumulateGrad and leaf._e.leaf is self:
            if references_of_edge(leaf) > ALONE:  # graphs of its time end in the new node, too
                _succeed(leaf, leaf._e, self.shape, self.k, self.steps)


def _succeed(t: Any, node: AccumulateGrad, shape: Any, k: Any, steps: Any = None) -> None:
    new = AccumulateGrad(t)
    new._hooks = node._hooks if node._hooks is None else hooks_of(node)
    new.leaf = Reshaped(t, node, shape, k, steps)
    node.leaf = Reshaped(t, None, shape, k, steps)
    if t._e is node:
        t._e = new
    else:
        park(t, new)


def leaf_changed(t: Any, shape: Any, k: Any, anew: bool = False, steps: Any = None) -> None:
    """Tell the node of a leaf, if it has one, that the leaf had this shape and kind until now.
    `anew`: it gets a node that knows nothing of the older one, as PyTorch's `set_` gives it, and
    `.data=` where the type or the device is another. `steps`: see Reshaped."""
    anew = anew or t._k.dtype is not k.dtype or t._k.device is not k.device
    if t._a.shape == shape and t._k.c is k.c and not anew or t._e is NOWHERE:
        return
    parked = _parked.get(id(t)) if _parked else None
    node = t._e if parked is None else parked[1]
    if type(node) is not AccumulateGrad:
        return
    if anew or node_of_leaf(node) is node:
        _succeed(t, node, shape, k, steps)
        if anew and t._e is not None:
            t._e.leaf = LeafRef(t)
    elif type(node.leaf) is Reshaped:
        node.leaf.steps = steps


def steps_of_leaf(t: Any) -> Any:
    """PyTorch's strides of a leaf whose array lacks them: see Reshaped; or None."""
    e = t._e
    return e.leaf.steps if type(e) is AccumulateGrad and type(e.leaf) is Reshaped else None


def node_of_leaf(e: AccumulateGrad) -> AccumulateGrad:
    """The node that the graphs of this leaf end in: Note [Leaves that changed]."""
    r = e.leaf
    if type(r) is not Reshaped or r.older is None:
        return e
    older = r.older()
    return e if older is None else older


LEAF_SEQ = 2**64 - 1  # before all others, as in PyTorch
# Leaves that want no gradients for now, by id: their node, which they get back when they do again.
_parked: dict[int, tuple[Any, AccumulateGrad]] = {}


def park(leaf: Any, node: AccumulateGrad) -> None:
    """Keep the node (and its hooks) of a leaf that wants no gradients any more."""
    at = id(leaf)
    _parked[at] = (weakref.ref(leaf, lambda r, nodes=_parked: nodes.pop(at, None)), node)


def transplanted(leaf: Any) -> None:
    """What was a leaf has the history of a Function that wrote to it: of graphs that ended in it,
    nobody gets a gradient any more."""
    found = _parked.pop(id(leaf), None) if _parked else None
    if found is not None:
        found[1].leaf = lambda: None


def accumulator(leaf: Any) -> AccumulateGrad:
    """The node of a tensor that becomes a leaf: the one it had, if it was one before."""
    found = _parked.pop(id(leaf), None) if _parked else None
    return AccumulateGrad(leaf) if found is None else found[1]


class _Released:
    __slots__ = ()

    def __repr__(self) -> str:
        return "<released>"


RELEASED = _Released()


def storage_of(t: Any) -> Storage:
    """The tensor's Storage, made now if it has none."""
    s = t._s
    if s is None:
        s = t._s = Storage(t._a)
    return s


def save(t: Any) -> Any:
    """What a node keeps of a tensor: the parts, not the object, so that no cycle arises."""
    s = t._s
    if s is None:
        s = t._s = Storage(t._a)
    k = t._k
    if k.inference:
        raise RuntimeError(
            "Inference tensors cannot be saved for backward. Please do not use Tensors created in"
            " inference mode in computation tracked by autograd. To work around this, you can make"
            " a clone to get a normal tensor and use it in autograd, or use `torch.no_grad()`"
            " instead of `torch.inference_mode()`."
        )
    s.saved = s.version
    e = t._e if not s.stale else edge_of(t)
    if TLS.saved_hooks:
        return Packed(t, s, e)
    if s.stale and e is NOWHERE:
        e = object.__new__(AccumulateGrad)
        e.leaf = partial(_unrecorded, t._a, s, k, t._v)
    return (t._a, s, s.version, k, e)


def _unrecorded(a: Any, s: Storage, k: Any, v: Any) -> Any:
    """The leaf of the edge that is saved of a view that was not recorded: the view again."""
    t = parts_to_tensor(a, s, k, NOWHERE)
    t._v = v
    return t


class Packed:
    """A saved value that went through `saved_tensors_hooks`."""

    __slots__ = ("value", "unpack_hook", "edge", "version", "_storage")

    def __init__(self, t: Any, s: Storage, e: Any, hooks: Any = None) -> None:
        pack, self.unpack_hook = hooks or TLS.saved_hooks[-1]
        before = s.version
        was = TLS.grad
        if was:
            TLS.grad = False
            NOGRAD.append(1)
        try:
            self.value = pack(t)
        finally:
            if was:
                TLS.grad = True
                NOGRAD.pop()
        if s.version != before:
            raise RuntimeError(
                "A saved tensor pack hook is modifying its input in place. Tensors provided as"
                " input to pack hook can not be modified by in-place operations as this can lead to"
                " unexpected side-effects."
            )
        self.edge = e
        self.version = before
        self._storage = weakref.ref(s)  # weakly: the hooks may have freed the memory

    @property
    def storage(self) -> Storage | None:
        """The storage of what was packed, if it still lives."""
        return self._storage()


class SavedTensor:
    """What a node saved, as `grad_fn._raw_saved_<name>` gives it."""

    __slots__ = ("_node", "_slot", "_index")

    def __init__(self, node: Node, slot: str, index: int | None = None) -> None:
        self._node, self._slot, self._index = node, slot, index

    def _value(self) -> Any:
        found = getattr(self._node, self._slot)
        return found if self._index is None or found is RELEASED else found[self._index]

    @property
    def data(self) -> Any:
        """The tensor, or what a pack hook made of it."""
        found = self._value()
        return found.value if type(found) is Packed else unpack(found, self._node)

    def unpack(self) -> Any:
        """The tensor, checked."""
        return unpack(self._value(), self._node)

    def register_hooks(self, pack_hook: Any, unpack_hook: Any) -> None:
        """Let the saved value go through `pack_hook` now, and back through `unpack_hook`."""
        found = _as_saved(self._value(), self._node)
        if found is RELEASED:
            raise RuntimeError(
                "Calling register_hooks on a saved tensor after it has been freed. Saved"
                " intermediate values of the graph are freed when you call .backward() or"
                " autograd.grad(). Specify retain_graph=True if you need to backward through the"
                " graph a second time or if you need to access saved tensors after calling"
                " backward."
            )
        if type(found) is Packed:
            raise RuntimeError(
                "Calling register_hooks on a saved tensor whose hooks have already been set. Hint:"
                " only one pair of hooks is allowed at a time."
            )
        if isinstance(found, _tensor_class[0]):
            found = (found._a, storage_of(found), 0, found._k, None)
        if type(found) is not tuple or len(found) != 5:
            raise RuntimeError("Calling register_hooks on a saved value that is no tensor.")
        a, s, _, k, e = found
        packed = Packed(parts_to_tensor(a, s, k, None), s, e, (pack_hook, unpack_hook))
        if self._index is None:
            setattr(self._node, self._slot, packed)
        else:
            getattr(self._node, self._slot)[self._index] = packed


def save_output(node: Any, t: Any, nr: int = 0) -> Any:
    """As `save`, for the node's own result number `nr`: its edge is put in when it is unpacked."""
    s = t._s
    if s is None:
        s = t._s = Storage(t._a)
    s.saved = s.version
    edge = nr if t._k.differentiable else None
    if TLS.saved_hooks:
        return Packed(_as_output(node, t, s, nr), s, edge)
    return (t._a, s, s.version, t._k, edge)


def _as_output(node: Any, t: Any, s: Storage, nr: int) -> Any:
    """What a hook gets of a result that is not on the tape yet."""
    if not t._k.differentiable:
        return t
    e: Any = node
    if isinstance(node, MultiNode):  # a node with one output, when it is a Function's, too
        e = Out(node, nr)
        if type(node).used is not None and nr not in type(node).used:
            return t
    return parts_to_tensor(t._a, s, t._k, e)


_new = object.__new__
_tensor_class: list[Any] = []  # filled by torchlab._core.tensor


def parts_to_tensor(a: Any, s: Storage | None, k: Any, e: Any) -> Any:
    t = _new(k.cls)
    t._a, t._s, t._k, t._e = a, s, k, e
    t._v = t._g = None
    return t


def unpack(saved: Any, node: Node) -> Any:
    """A tensor again, after checking that nobody has written to it since it was saved."""
    if type(saved) is tuple and len(saved) == 5:
        a, s, version, k, e = saved
        if DETACHED and cut_off(e):
            raise RuntimeError(
                "Trying to use a saved tensor that has been detached in-place, i.e. with"
                " .detach_().This is not supported, please use out-of-place `.detach()` instead"
            )
        if s.version != version:
            raise RuntimeError(modified(node, a, k, s, version))
        if type(e) is int:  # an output of the node itself
            e = Out(node, e) if node._outs is not None else node
        elif type(e) is AccumulateGrad:
            leaf = e.leaf.leaf() if type(e.leaf) is Reshaped else e.leaf()
            other = leaf is not None and isinstance(leaf._s, Twin) and leaf._s is not s
            if leaf is not None and (leaf._a is a or other):
                return leaf  # as it is now, also if its `.data` was exchanged
        t = _new(k.cls)
        t._a, t._s, t._k, t._e = a, s, k, e
        t._v = t._g = None
        return t
    if saved is RELEASED:
        raise RuntimeError(
            "Trying to backward through the graph a second time (or directly access saved tensors"
            f" after they have already been freed): {node.name()}. Saved intermediate values of the"
            " graph are freed when you call .backward() or autograd.grad(). Specify"
            " retain_graph=True if you need to backward through the graph a second time or if you"
            " need to access saved tensors after calling backward."
        )
    if type(saved) is Packed:
        t = saved.unpack_hook(saved.value)
        if not isinstance(t, _tensor_class[0]):
            raise TypeError(
                "Output of saved tensor unpack_hook expected to be a Tensor but got result of type "
                f"{type(t).__name__}"
            )
        e = saved.edge
        if type(e) is int:
            e = Out(node, e) if node._outs is not None else node
        r = parts_to_tensor(t._a, storage_of(t), t._k, e)
        if e is NOWHERE:  # what a view wanted that was not recorded
            r._e = AccumulateGrad(r)
        return r
    if type(saved) is list:
        return [unpack(x, node) for x in saved]
    if keeper and type(saved) is keeper[0]:
        return saved.open(node)
    return saved


def unpack_spare(saved: Any, node: Node) -> Any:
    """As `unpack`, for a tensor the gradient can do without: None once it is overwritten."""
    if type(saved) is tuple and len(saved) == 5 and saved[1].version != saved[2]:
        return None
    return unpack(saved, node)


# Nodes whose output number nr was cut off by `detach_`: what saved it has lost its history.
DETACHED: weakref.WeakKeyDictionary[Node, set[int]] = weakref.WeakKeyDictionary()


def cut_off(e: Any) -> bool:
    """Whether what a tensor that was saved is an output of has been cut off by `detach_`."""
    node, nr = (e.node, e.nr) if type(e) is Out else (e, 0)
    return isinstance(node, Node) and nr in DETACHED.get(node, ())


keeper: list[Any] = []  # torchlab._core.dispatch.python_key puts its class of saved tensors here


def note_write(s: Storage) -> None:
    """Count a write in place; if the tape has saved this version, remember who wrote. Views may
    have fallen behind (see `edge_of`) unless the writer's tensor alone has the storage."""
    if s.saved == s.version:
        s.writer = caller()
        s.stale = getrefcount(s) > ALONE
    s.version += 1


def wants_changed(s: Storage) -> None:
    """A tensor over this storage wants gradients now, or no more: its views ask it, if it has
    any."""
    if getrefcount(s) > ALONE:
        s.stale = True


# ---- views --------------------------------------------------------------------------------------


# What a view's `_v` is: the base alone, if the view was made by a recorded operator (or one that
# had nothing to record) at version 0; else (base, how it was made, at which version, way). The way
# is None where geometry tells all: Note [The way of a view] in ops._view_histories. A plain tuple:
# it takes a fifth of the time of an object.
ViewMeta = tuple


def base_of(t: Any) -> Any:
    v = t._v
    return v[0] if type(v) is ViewMeta else v


def way_of(t: Any) -> Any:
    """A view's way from its base: see ViewMeta."""
    v = t._v
    return v[3] if type(v) is ViewMeta else None


def wants_grad(t: Any) -> bool:
    """Whether the tensor requires gradients, without asking for its history: a view does if its
    base does."""
    e = t._e
    if e is not None and not (type(e) is AccumulateGrad and e.leaf is nobody):
        return True
    return t._v is not None and base_of(t)._e is not None


def move_retained(t: Any, node: Node, nr: int = 0) -> None:
    """After a write, `retain_grad` means the gradient of what the tensor holds now: the wish moves
    to the new history. (Tensor hooks stay with the value that they were registered for.)"""
    e = t._e
    old = e.node if type(e) is Out else e
    if old is not None and old._hooks is not None:
        ref = old._hooks.retain.pop(e.nr if type(e) is Out else 0, None)
        if ref is not None:
            hooks_of(node).retain[nr] = ref


def edge_of(t: Any) -> Any:
    """The tensor's edge, for an operator that may record.

    Note [Views that fell behind]. After a write, a view's history is the write's: its edge is made
    anew from its base's, when somebody asks for it. `Storage.stale` tells that there may be such
    views; where it is not set (nearly everywhere), `_e` alone answers. It is set

    - by a recorded write (`rebase_history`);
    - by any write that finds the version marked (`Storage.saved`) while other tensors share the
      storage: taking a view of what wants gradients marks the version (`mark_view`);
    - when a tensor that has views begins or ceases to want gradients.
    """
    if t._v is None or not t._s.stale:
        return t._e
    return _view_edge(t, NOGRAD and not TLS.grad)


def edge_asked(t: Any) -> Any:
    """The edge, for `grad_fn`, `is_leaf` and their like, which refuse whether the tape records or
    not."""
    if t._v is None or not t._s.stale:
        return t._e
    return _view_edge(t, False)


def _view_edge(t: Any, unrecorded: Any) -> Any:
    s, e, v = t._s, t._e, t._v
    base, creation, version, way = v if type(v) is ViewMeta else (v, NORMAL, 0, None)
    wanted = base._e is not None
    if type(e) is AccumulateGrad and not wanted:
        if e.leaf is nobody:
            t._e = None
        return t._e
    if e is None and not wanted:
        return e
    if version != s.version:
        if creation != NORMAL:
            if unrecorded:
                return e
            raise RuntimeError(forbidden_write(maker_of(t), creation, True))
        node = remade[0](t, base, way)
        move_retained(t, node)
        t._e = node
        t._v = (base, creation, s.version, way)
    elif e is None:  # its base began to want gradients after the view was made
        t._e = NOWHERE
    return t._e


def mark_view(s: Storage) -> None:
    """Let the next write to `s` see that there is a view with a history: Note [Views that fell
    behind]."""
    s.saved = s.version


remade: list[Any] = []  # torchlab._core.ops._view_histories puts its function here


def maker_of(t: Any) -> tuple[str, int] | None:
    """The operator that made a tensor and the number of its output, where its edge tells."""
    e = t._e
    if e is None or type(e) is AccumulateGrad:
        return None
    node, nr = (e.node, e.nr) if type(e) is Out else (e, 0)
    name = node.name().split("::")[-1].rstrip("0123456789")
    return name.removesuffix("Backward"), nr


def geometry(t: Any) -> tuple[tuple[int, ...], tuple[int, ...], int]:
    """(shape, strides, offset) of a tensor in its storage, in elements."""
    a = t._a if not t._exotic else t._a.memory
    size = a.itemsize
    offset = (a.__array_interface__["data"][0] - storage_of(t).address) // size if a.size else 0
    return a.shape, tuple(x // size for x in a.strides), offset


def relocate(t: Any, array: Any) -> None:
    """Let a tensor have its elements in `array`: its storage has other memory now."""
    if t._exotic:  # Note [Pending tensors] in ops._bits
        t._a.memory = array
    else:
        t._a = array


class CopySlices(Node):
    """A recorded write into a view: the base's new history.

    The gradient of the base is split: the written part goes to `fn`, the node of the operator that
    wrote; what `fn` returns for the written tensor goes back into the place it came from.
    """

    __slots__ = ("fn", "view", "base", "places")
    saves = ("fn",)

    def apply(self, g: Any) -> Any:
        unpack(self.fn, self)  # released: raises
        return _copy_slices[0](self, g)

    def release(self) -> None:
        if self.fn is not RELEASED:
            self.fn.release()
            self.fn = RELEASED


_copy_slices: list[Any] = []

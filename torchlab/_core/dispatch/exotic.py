"""Tensors that are no strided arrays: sparse and quantized ones. The seam they dock on.

Note [Exotic tensors]
~~~~~~~~~~~~~~~~~~~~~
An exotic tensor is an instance of a hidden subclass of Tensor that derives from `Exotic`. Its `_a`
is a small object that knows `shape`, `ndim`, `size`, `dtype`, `itemsize` and holds the tensors it
is made of; its kind (`kind.exotic_kind`) is never plain, direct or fast. That costs dense tensors
nothing: every generated call already asks whether its operands are of class Tensor or Parameter,
and leaves for `modes.odd` if not. `odd` asks here. So an exotic class needs no change anywhere:

- operators: `@exotic("SparseCPU", "mm", "cat")` enters a Python function with the parameters of
  the operator's schema, all by position ("sum.dim_IntList" is one overload). It calls other
  operators on the components, so that derivatives follow; where PyTorch's gradient has another
  form, `record` puts a node on the tape. An entry "add_into" is for dense.add_(exotic).
- composites without an entry run their body. Any other operator raises what `refuse` of the class
  says, as a rule PyTorch's NotImplementedError with operator and backend.
- methods, properties, in-place forms: define them on the class (`@exotic_method` outside its body).
- functions whose face looks into arrays (`zeros_like`): an entry under the face's name, with
  `face=True`; `modes.face_odd` finds it.
- a class whose elements do lie in memory, to be read another way (`strided`), says itself what any
  operator without an entry does (the `fallback…` methods): see Note [Pending tensors] in ops._bits.
- `torch.zeros(layout=…)`: `LAYOUTS` has a maker for each layout.

`type(x) is torch.Tensor` is False for them (isinstance is True, and the class calls itself Tensor):
the price for not asking on hot paths.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NoReturn

from torchlab._core.dispatch import compute, modes, writes
from torchlab._core.tape import NOGRAD, RELEASED, TLS, Node, edge_of, save, unpack
from torchlab._core.tensor import Tensor

TABLES: dict[str, dict[str, Any]] = {}  # backend, as PyTorch calls it → operator → function
CLASSES: dict[str, list[type]] = {}  # backend → its classes
FACES: set[str] = set()  # functions that look for exotic arguments
LAYOUTS: dict[Any, Any] = {}  # layout → maker(name, shape, dtype, device, requires_grad)


class Exotic(Tensor):
    """The base of hidden classes of tensors. `backend` is PyTorch's name of the dispatch key."""

    __slots__ = ()
    _exotic = True
    backend = ""
    strided = False  # whether `plain()` is cheap: elements in memory, to be read another way

    def __init_subclass__(cls) -> None:
        cls.__name__ = cls.__qualname__ = "Tensor"
        cls.__module__ = Tensor.__module__
        CLASSES.setdefault(cls.backend, []).append(cls)

    @classmethod
    def refuse(cls, name: str, pointwise: bool, tensors: Sequence[Tensor]) -> NoReturn:
        """Raise PyTorch's error for an operator that there is not for this class."""
        raise NotImplementedError(
            f"Could not run 'aten::{name}' with arguments from the '{cls.backend}' backend. There"
            f" is no such operator for {cls.backend}; convert the tensor to a strided one first"
            " (to_dense(), dequantize()) if memory allows."
        )

    @classmethod
    def fallback(cls, op: Any, args: Sequence[Any]) -> Any:
        """Run an operator that has no entry."""
        pointwise = op.family in ("unary", "binary", "pointwise")
        return cls.refuse(op.name, pointwise, find(args))

    @classmethod
    def fallback_face(cls, name: str, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
        """Run the function `name` whose declaration looks into arrays, where there is no entry."""
        return cls.refuse(name, False, find(args))

    @classmethod
    def fallback_into(cls, op: Any, operands: Sequence[Any], values: Any, out: Any) -> Any:
        """A pointwise operator into the array of a dense tensor, where there is no entry."""
        return cls.refuse(f"{op.name}_", True, find(operands))

    @classmethod
    def fallback_general(cls, op: Any, t: Tensor, operands: Sequence[Any], values: Any) -> Any:
        """Another operator into `t`."""
        return cls.refuse(f"{op.name}_", False, find(operands))

    def plain(self) -> Tensor:
        """A dense tensor of the same values, for `strided` classes."""
        raise NotImplementedError(f"a tensor of {self.backend} is no strided one")

    def written_out(self, r: Tensor, op: Any) -> None:
        """Take the values of `r` as the result of `out=`, for `strided` classes."""
        raise NotImplementedError(f"{op.name}(): out= is not there for {self.backend}")

    def write_out(self, out: Any, name: str) -> Any:
        """Let `out` hold what this tensor holds, for `out=`."""
        raise NotImplementedError(f"{name}(): out= is not there for {self.backend}")

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """PyTorch's protocol: here only the sign for `modes.overriding` not to pass this class."""
        kwargs = kwargs or {}
        if hasattr(func, "bound"):  # an OpOverload: its call would ask here again
            if func.op is None or func.form != "functional":
                return func.run(args, kwargs)
            return call(func.op, func.bound(args, kwargs))
        op = getattr(func, "op", None)
        if op is not None and not kwargs:
            return call(op, args)
        return func(*args, **kwargs)


def find(args: Sequence[Any]) -> list[Any]:
    """The exotic tensors among arguments, in lists too."""
    found: list[Any] = []
    for x in args:
        for y in x if type(x) in (list, tuple) else (x,):
            if isinstance(y, Exotic):
                found.append(y)
    return found


def call(op: Any, args: Sequence[Any]) -> Any:
    """Run an operator that has an exotic operand."""
    tensors = find(args)
    for t in tensors:
        table = TABLES.get(t.backend, {})
        f = table.get(f"{op.name}.{op.overload}") or table.get(op.name)
        if f is not None:
            return f(*args)
    if op.family == "composite":
        return op.decompose(*args)
    return _speaker(tensors).fallback(op, args)


def _speaker(tensors: Sequence[Any]) -> Any:
    """The class that says what to do without an entry: strided ones become plain first."""
    return next((type(t) for t in tensors if t.strided), type(tensors[0]))


modes.exotic_call.append(call)


def into(op: Any, operands: Sequence[Any], values: Any, out: Any) -> Any:
    """A write into a dense tensor with an exotic operand: the entry `<operator>_into`."""
    tensors = find(operands)
    cls = _speaker(tensors)
    f = None if cls.strided else TABLES[tensors[0].backend].get(f"{op.name}_into")
    if f is None or out is None:
        return cls.fallback_into(op, operands, values, out)
    return f(op, operands, values, out)


def general_into(op: Any, t: Tensor, operands: Sequence[Any], values: Any) -> Any:
    """A write of an operator that is not element by element, with an exotic operand."""
    return _speaker(find(operands)).fallback_general(op, t, operands, values)


compute.exotic_into.append(into)
writes.exotic_general.append(general_into)


def into_out(op: Any, args: Sequence[Any], out: Any) -> Any:
    """`out=` of a pointwise operator."""
    return deliver(op, (out,), (op.core(*args),))


def deliver(op: Any, outs: Sequence[Any], made: Sequence[Any]) -> Any:
    """Let the `outs` hold what was made; each must be of the layout of its result."""
    made = [r.plain() if r._exotic and r.strided else r for r in made]  # type: ignore[attr-defined]
    for o, r in zip(outs, made, strict=True):
        if type(r) is not type(o) and (r._exotic or (o._exotic and not o.strided)):
            raise RuntimeError(
                f"{op.name}(): the result has layout {r.layout}, but out= has {o.layout}"
            )
    for o, r in zip(outs, made, strict=True):
        if r._exotic:
            r.write_out(o, op.name)
        elif o._exotic:
            writes.check_cast(op, r._k.dtype, o._k.dtype)
            o.written_out(r, op)
        else:
            o.resize_(r.shape).copy_(r)
    return outs[0] if len(outs) == 1 else tuple(outs)


writes.exotic_out.append(into_out)
writes.exotic_delivered.append(deliver)


def exotic(backend: str, *names: str, face: bool = False) -> Callable[[Any], Any]:
    """Enter the decorated function as the operator `names` of a backend. `face`: as the function of
    that name, too, whose declaration looks into arrays."""

    def declare(fn: Any) -> Any:
        table = TABLES.setdefault(backend, {})
        for name in names:
            if name in table:
                raise RuntimeError(f"{backend}: '{name}' is entered twice")
            table[name] = fn
            if face:
                FACES.add(name)
        return fn

    return declare


def exotic_method(backend: str, *names: str) -> Callable[[Any], Any]:
    """Let the decorated function be a method of all classes of a backend."""

    def declare(fn: Any) -> Any:
        for cls in CLASSES[backend]:
            for name in names:
                setattr(cls, name, fn)
        return fn

    return declare


def exotic_face(name: str, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    """The function `name` of an exotic first argument; NotImplemented if its face will do."""
    if name not in FACES:
        return NotImplemented
    t = args[0]
    f = TABLES[t.backend].get(name)
    if f is None:
        return type(t).fallback_face(name, args, kwargs)
    return f(*args, **kwargs)


modes.exotic_call.append(exotic_face)


# ---- the tape -----------------------------------------------------------------------------------


class ExoticNode(Node):
    """A step of the tape with a Python function as its gradient. `saved` goes to it as tensors:
    dense ones are checked for writes, as those of the generated nodes are."""

    __slots__ = ("backward", "saved")
    saves = ("backward", "saved")

    def apply(self, g: Any) -> Any:
        if self.backward is RELEASED:
            unpack(RELEASED, self)
        values = [x if isinstance(x, Tensor) else unpack(x, self) for x in self.saved]
        r = self.backward(g, *values)
        return r if type(r) is tuple else (r,)


_node_classes: dict[str, type] = {}


def node_class(name: str) -> type:
    """The class of the nodes called `name`."""
    cls = _node_classes.get(name)
    if cls is None:
        cls = _node_classes[name] = type(
            name, (ExoticNode,), {"__slots__": (), "__module__": "torchlab.autograd"}
        )
    return cls


def record(name: str, result: Any, inputs: Sequence[Any], backward: Any, *saved: Any) -> Any:
    """Make a node called `name` the history of `result`, if one of `inputs` wants gradients and the
    tape records. `backward(g, *saved)` gives one gradient for each input. Returns the result."""
    if NOGRAD and not TLS.grad or not result._k.differentiable:
        return result
    edges = tuple(edge_of(x) if isinstance(x, Tensor) else None for x in inputs)
    if all(e is None for e in edges):
        return result
    node: Any = node_class(name)()
    node.next = edges
    node.backward = backward
    node.saved = [
        x if isinstance(x, Exotic) or not isinstance(x, Tensor) else save(x) for x in saved
    ]
    node.shape, node.k = result._a.shape, result._k
    result._e = node
    return result

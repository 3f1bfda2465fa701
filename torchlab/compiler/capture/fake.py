"""Fake tensors and the mode that turns operator calls on them into nodes.

A fake tensor has shape, strides and dtype of the real one, says that it lies where the real one
does, and
has no elements: reading a value ends the capture. For the time of one operator's core it takes the
kind of
the meta device, so that meta rules compute the results; the tape records as always, which gives the
joint
graph its backward. A value is known by its `MetaArray`, which aliases (`detach`, saved tensors)
share.
"""

from __future__ import annotations

import operator
from typing import Any

from torchlab._core.backends.meta import MetaArray
from torchlab._core.device import cpu, device
from torchlab._core.dispatch.modes import SLOW
from torchlab._core.dispatch.registry import METHODS, aten
from torchlab._core.kind import Kind, kind
from torchlab._core.tape import TLS, AccumulateGrad, storage_of
from torchlab._core.tensor import Parameter, Tensor, strides_of
from torchlab.autograd.graph import REGIONS
from torchlab.compiler.capture.breaks import Break, user_line
from torchlab.fx.graph import Graph
from torchlab.fx.node import Node

META = device("meta")
_RANDOM = (
    "rand",
    "randn",
    "randint",
    "randperm",
    "bernoulli",
    "multinomial",
    "normal",
    "uniform",
    "exponential",
    "dropout",
    "native_dropout",
    "random",
    "cauchy",
    "geometric",
    "log_normal",
    "poisson",
    "rrelu_with_noise",
    "rrelu",
)


def _random(op: Any) -> bool:
    name = op.name.rstrip("_").removesuffix("_like")
    return (
        "random" in op.tags
        or any("Generator" in str(a.type) for a in op.schema.arguments)
        or name in _RANDOM
        or "dropout" in name
    )


def fake_like(t: Tensor, requires_grad: bool) -> Tensor:
    """A fake with the metadata of a real tensor; a leaf."""
    f = object.__new__(Tensor)
    f._a = MetaArray(t._a.shape, t._a.dtype, strides_of(t))
    f._k = t._k
    f._s = f._v = f._g = None
    f._e = AccumulateGrad(f) if requires_grad else None
    return f


def is_fake(t: Any) -> bool:
    return isinstance(t, Tensor) and type(t._a) is MetaArray


class FakeMode:
    """`with FakeMode() as mode:` calls of operators become nodes of `mode.graph`.

    decompose: also replace each operator by its decomposition, where it has one that is wanted.
    """

    def __init__(self, graph: Graph | None = None, decompose: Any = None) -> None:
        self.graph = graph or Graph()
        self.values: dict[int, tuple[MetaArray, Node]] = {}
        self.inputs: list[Tensor] = []
        self.fakes: list[Tensor] = []
        self.known: dict[int, Tensor] = {}
        self.last_placeholder: Node | None = None
        self.viewed: set[int] = set()
        self.decompose = decompose
        self.broken: Break | None = None
        self.origin: str | None = None

    # ---- on and off ------------------------------------------------------------------------------

    def __enter__(self) -> FakeMode:
        TLS.dispatch_modes.append(self)
        SLOW.append(self)
        return self

    def __exit__(self, *exc: object) -> None:
        SLOW.remove(self)
        TLS.dispatch_modes.remove(self)

    # ---- inputs ----------------------------------------------------------------------------------

    def input(self, t: Tensor, name: str = "arg") -> Tensor:
        """A fake for a real tensor, with a placeholder."""
        if type(t) not in (Tensor, Parameter):
            raise Break(f"a tensor of the subclass {type(t).__name__} is read")
        if t._k.device is not cpu or t._k.inference:
            raise Break(
                f"a tensor on the device '{t._k.device}' (or made in inference mode); "
                "only host tensors are compiled"
            )
        f = fake_like(t, t.requires_grad)
        self.placeholder(f, name)
        self.inputs.append(t)
        self.known[id(t)] = f
        return f

    def placeholder(self, f: Tensor, name: str) -> Node:
        """A placeholder for a fake that already exists."""
        where = (
            self.graph.inserting_after(self.last_placeholder)
            if self.last_placeholder is not None
            else self.graph.inserting_before(None)
        )
        with where:
            node = self.graph.placeholder(f"{name}_{len(self.fakes)}")
        self.last_placeholder = node
        self.fakes.append(f)
        self.note(f, node)
        return node

    def note(self, f: Tensor, node: Node) -> None:
        """`f` is the value of `node`."""
        self.values[id(f._a)] = (f._a, node)
        node.meta["val"] = Value(f._a.shape, strides_of(f), f._k.dtype)

    def node_of(self, f: Tensor) -> Node:
        return self.values[id(f._a)][1]

    def _enter(self, x: Any) -> Any:
        """An argument with fakes in the places of real tensors."""
        if isinstance(x, Tensor):
            if type(x._a) is MetaArray:
                if id(x._a) not in self.values:
                    raise Break("a tensor from another capture, or of the meta device")
                return x
            found = self.known.get(id(x))
            return found if found is not None else self.input(x, "attr")
        if isinstance(x, list):  # the lists of a node's arguments are immutable ones
            return [self._enter(y) for y in x]
        if type(x) is tuple:
            return tuple(self._enter(y) for y in x)
        return x

    def _noted(self, x: Any) -> Any:
        """An argument as a node keeps it."""
        if isinstance(x, Tensor):
            return self.node_of(x)
        if type(x) in (tuple, list):
            return type(x)(self._noted(y) for y in x)
        return cpu if isinstance(x, device) and x.type == "meta" else x

    # ---- calls -----------------------------------------------------------------------------------

    def __torch_dispatch__(self, op: Any, types: Any, args: Any, kwargs: Any) -> Any:
        if not hasattr(op, "schema"):
            return self._write(op, args)
        if self.broken is not None:
            raise self.broken
        if _random(op):
            self._stop(f"{op.name} draws random numbers; they are not part of a graph")
        if any(a.write for a in op.schema.arguments):
            self._stop(f"{op.name} writes in place")
        args = self._enter(tuple(args))
        if self.decompose is not None:
            body = self.decompose(op, args)
            if body is not None:
                with self:
                    result = body(*args)
                return result
        result, node = self._run(op, args)
        return result

    def _stop(self, reason: str) -> None:
        self.broken = Break(reason)
        raise self.broken

    def _run(self, op: Any, args: Any) -> Any:
        noted = [self._noted(x) for x in args]
        arguments = op.schema.arguments
        named = {
            a.name: v
            for a, v in zip(arguments, noted, strict=False)
            if a.kwarg_only and not (a.has_default and v is a.default)
        }
        node = self.graph.call_function(
            op, tuple(v for a, v in zip(arguments, noted, strict=False) if not a.kwarg_only), named
        )
        origin = self.origin or user_line()
        if origin:
            node.meta["origin"] = origin
        if REGIONS.budgets:
            node.meta["activation_memory_budget"] = REGIONS.budgets[-1]
        kinds: list[tuple[Tensor, Kind]] = []
        given = tuple(
            META if a.type.base == "Device" and not a.type.list else x
            for a, x in zip(arguments, args, strict=False)
        )
        fakes = _tensors(given)
        try:
            for t in fakes:
                kinds.append((t, t._k))
                if t._k.device is cpu:
                    m = kind(t._k.dtype, META)
                    t._k = m.c if t._k.contiguous else m.v
            result = op.core(*given)
        finally:
            for t, k in reversed(kinds):
                t._k = k
        if op.family == "view":
            self.viewed.update(id(t._s) for t in fakes if t._s is not None)
        self._register(result, node)
        return result, node

    def _register(self, result: Any, node: Node) -> None:
        if isinstance(result, Tensor):
            self._real_kind(result)
            if id(result._a) in self.values:  # the same value under another name
                self.graph.erase_node(node)
            else:
                self.note(result, node)
        elif isinstance(result, (tuple, list)):
            values = []
            for i, t in enumerate(result):
                if isinstance(t, Tensor):
                    self._real_kind(t)
                    part = self.graph.call_function(operator.getitem, (node, i))
                    part.meta["origin"] = node.meta.get("origin", "")
                    self.note(t, part)
                    values.append(part.meta["val"])
                else:
                    values.append(None)
            node.meta["val"] = values
        else:
            self._stop(f"{node.target} gives {type(result).__name__}, not a tensor")

    def _real_kind(self, t: Tensor) -> None:
        if type(t._a) is not MetaArray:
            self._stop("an operator made a tensor with values during capture")
        k = kind(t._k.dtype, cpu)
        t._k = k.c if t._k.contiguous else k.v

    def _write(self, call: Any, args: Any) -> Any:
        """An in-place call on a value that only the function knows: compute, and let the
        name mean the new
        value."""
        name = getattr(call, "__name__", "")
        owner, form = METHODS.get(name, (None, ""))
        target = args[0]
        if self.broken is not None:
            raise self.broken
        functional = form == "inplace" and hasattr(owner, "schema")
        if not functional and not (name == "div_" and len(args) == 2):
            self._stop(f"{name} writes in place and has no functional form")
        if not is_fake(target) or any(target is f for f in self.fakes):
            self._stop(f"{name} writes into an input, parameter or buffer")
        if target._v is not None or (target._s is not None and id(target._s) in self.viewed):
            self._stop(f"{name} writes into a tensor that shares memory with another")
        if functional:
            result = self.__torch_dispatch__(owner, (), args, {})
        else:
            with self:
                result = aten.div(*args)
        if result._a.shape != target._a.shape or result._k.dtype is not target._k.dtype:
            self._stop(f"{name} changes shape or dtype in place")
        target._a, target._k, target._e, target._s = (
            result._a,
            result._k,
            result._e,
            storage_of(result),
        )
        return target


class Value:
    """What is known of a node's value: shape, strides in elements, dtype."""

    __slots__ = ("shape", "stride", "dtype")

    def __init__(self, shape: Any, stride: Any, dtype: Any) -> None:
        self.shape, self.stride, self.dtype = tuple(shape), tuple(stride), dtype

    def __repr__(self) -> str:
        return f"{self.dtype} {self.shape} stride {self.stride}"


def _tensors(args: Any) -> list[Tensor]:
    found = []
    for x in args:
        if isinstance(x, Tensor):
            found.append(x)
        elif type(x) in (tuple, list):
            found += [y for y in x if isinstance(y, Tensor)]
    return found

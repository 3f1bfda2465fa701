"""What a trace notes: the calls that a program makes of PyTorch's functions, in order.

Every call runs on the plain tensors and becomes a node of an `fx.Graph`. Public functions are noted
whole, so that whatever they read of sizes they read again when the program runs. Tensors that no
call has made are the inputs, the module's parameters and buffers, and constants.

Source: https://docs.pytorch.org/docs/2.13/generated/torch.jit.trace.html
"""

from __future__ import annotations

import contextlib
import gc
import operator
from collections.abc import Callable, Iterator
from typing import Any

from torchlab._core.dispatch.levels import LEVELS
from torchlab._core.dispatch.registry import aten
from torchlab._core.dtype import int64
from torchlab._core.generator import default_generator
from torchlab._core.tape import TLS
from torchlab._core.tensor import Size, Tensor
from torchlab.amp import autocast
from torchlab.amp.switches import get_autocast_dtype, is_autocast_enabled
from torchlab.fx.graph import Graph
from torchlab.fx.node import Node
from torchlab.jit import tracing_tensors as tt
from torchlab.jit.tracing_tensors import TracedTensor, leaves, mapped, plain
from torchlab.overrides import DisableTorchFunction, TorchFunctionMode

_MAKERS_OF_CONSTANTS = frozenset(("tensor", "as_tensor", "from_numpy", "asarray", "new_tensor"))
_SIZES = frozenset(("numel", "nelement"))
_SILENT = frozenset(("__repr__", "__str__", "__format__", "__hash__", "_repr", "__dir__"))
_BACKWARD = frozenset(("backward", "register_hook", "register_post_accumulate_grad_hook"))
# With a size as an operand, these compute as with any tensor; others want it as a number.
_ARITHMETIC = frozenset(
    "add sub mul div true_divide floor_divide remainder fmod pow neg abs eq ne lt le gt ge maximum"
    " minimum rsub __rsub__ __rpow__ __rtruediv__ __rfloordiv__ __rmod__ __radd__ __rmul__ __add__"
    " __sub__ __mul__ __truediv__ __floordiv__ __mod__ __pow__ add_ sub_ mul_ div_ where"
    " logical_and logical_or logical_not bitwise_and bitwise_or __and__ __or__ __xor__".split()
)


def size_of(x: Tensor, dim: int) -> Tensor:
    """A size, as a tensor without dimensions."""
    return aten.full((), x.shape[dim], dtype=int64)


def numel_of(x: Tensor) -> Tensor:
    """The number of elements, as a tensor without dimensions."""
    return aten.full((), x.numel(), dtype=int64)


def as_number(x: Tensor) -> Any:
    """The number that a size, or what was computed of sizes, is."""
    return x.item()


PURE = (size_of, numel_of, as_number, operator.getitem)
"""Nodes that are left out if nobody uses them."""


class UnderAutocast:
    """A function as it is under autocast."""

    def __init__(self, fn: Callable[..., Any], kind: str, dtype: Any) -> None:
        self.fn, self.kind, self.dtype = fn, kind, dtype
        self.__name__ = f"autocast_{getattr(fn, '__name__', 'call')}"

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        with autocast(self.kind, self.dtype):
            return self.fn(*args, **kwargs)


class _Mode(TorchFunctionMode):
    """Hands on the calls whose arguments are all plain."""

    def __init__(self, recorder: Recorder) -> None:
        self.recorder = recorder

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        return self.recorder.call(func, args, kwargs or {})


class Recorder:
    """Notes one run of a program."""

    def __init__(self, attributes: dict[int, tuple[Tensor, str]]) -> None:
        """attributes: the root module's parameters and buffers: id → (tensor, path)."""
        self.graph = Graph()
        self.attributes = attributes
        self.nodes: dict[int, tuple[Tensor, Node]] = {}
        self.standing: dict[int, TracedTensor] = {}
        self.numbers: dict[int, Node | None] = {}  # sizes; with the node of the Python number
        self.fresh: dict[int, Tensor] = {}  # the inputs
        self.constants: list[Tensor] = []
        self.random: list[Node] = []
        self.inside = 0
        # What was there before, kept alive, so that no new tensor has the id of one of them.
        with DisableTorchFunction():
            kinds = [o for o in gc.get_objects() if issubclass(type(o), Tensor)]
        self.before = {id(t): t for t in kinds}

    def close(self) -> None:
        """Let go of the tensors that only the trace needs."""
        for table in (self.before, self.nodes, self.standing, self.fresh):
            table.clear()

    # ---- tensors ---------------------------------------------------------------------------------

    def wrap(self, t: Tensor) -> TracedTensor:
        """The tensor that the program sees for a plain one."""
        found = self.standing.get(id(t))
        if found is None:
            found = self.standing[id(t)] = tt.standing_for(t)
        return found

    def know(self, t: Tensor, node: Node) -> TracedTensor:
        """`node` makes `t`."""
        if id(t) not in self.nodes and id(t) not in self.attributes:
            self.nodes[id(t)] = (t, node)
        return self.wrap(t)

    def node(self, t: Any) -> Any:
        """The node that makes a plain tensor."""
        if not isinstance(t, Tensor):
            return t
        found = self.nodes.get(id(t))
        if found is not None:
            return found[1]
        if id(t) in self.attributes:
            made = self._note("get_attr", self.attributes[id(t)][1], (), {})
            self.nodes[id(t)] = (t, made)
            return made
        if t.requires_grad:
            raise RuntimeError(
                "Cannot insert a Tensor that requires grad as a constant. Consider making it a"
                f" parameter or input, or detaching the gradient\nTensor:\n{t}"
            )
        if id(t) not in self.before:
            file, line = tt.place()
            raise RuntimeError(
                f"torch.jit.trace: {file}:{line} uses a tensor of shape {tuple(t.shape)} that was"
                " made while the program ran, by something that a trace does not record. Make it"
                " with operators on the inputs, or hand it in as an argument"
            )
        return self.constant(t)

    def constant(self, t: Tensor) -> Node:
        """A tensor that the program holds."""
        made = self._note("get_attr", f"_constant{len(self.constants)}", (), {})
        self.constants.append(t)
        self.nodes[id(t)] = (t, made)
        return made

    def _note(self, op: str, target: Any, args: Any, kwargs: Any, name: str | None = None) -> Node:
        made = self.graph.create_node(op, target, args, kwargs, name)
        made.meta["place"] = tt.place()
        return made

    # ---- calls -----------------------------------------------------------------------------------

    @contextlib.contextmanager
    def plainly(self) -> Iterator[None]:
        """Nothing is noted until the end of `with`."""
        self.inside += 1
        try:
            with DisableTorchFunction():
                yield
        finally:
            self.inside -= 1

    def call(self, func: Callable[..., Any], args: Any, kwargs: dict[str, Any]) -> Any:
        """Run a public function, method or property, and note it."""
        name = getattr(func, "__name__", "")
        if LEVELS.running:
            raise self.refused(f"`{name}` within a transform of torch.func")
        owner = getattr(func, "__self__", None)
        if isinstance(owner, property):
            name = owner.fget.__name__ if owner.fget is not None else name
            if name == "shape" and func.__name__ == "__get__":
                return self._shape(args[0])
        if name == "size" and isinstance(args[0], Tensor):
            dim = kwargs.get("dim", args[1] if len(args) > 1 else None)
            if dim is None:
                return self._shape(args[0])
            with self.plainly():
                plain(args[0]).size(dim)  # raises for a wrong one
            return self._number(size_of, args[0], dim)
        if name in _SIZES and isinstance(args[0], Tensor):
            return self._number(numel_of, args[0])
        if name in _BACKWARD:
            raise self.refused(f"`{name}`")
        if name in _MAKERS_OF_CONSTANTS and type(args[0] if args else None) is not TracedTensor:
            return self._made_constant(func, name, args, kwargs)
        self._warn(name)
        if name in _SILENT or name == "__len__":
            return self._run(func, args, kwargs)
        if name == "__deepcopy__":
            return self.call(getattr(Tensor, "clone"), args[:1], {})  # noqa: B009
        return self.record(func, args, kwargs, name)

    @staticmethod
    def refused(what: str) -> RuntimeError:
        """The error for what a trace cannot contain, with the user's line."""
        file, line = tt.place()
        return RuntimeError(f"torch.jit.trace cannot record {what} ({file}:{line})")

    def _warn(self, name: str) -> None:
        if name in tt.READS:
            tt.converted(tt.READS[name])
        elif name == "numpy" or name == "__array__":
            tt.warn(tt.NUMPY)
        elif name == "__len__":
            tt.warn(tt.LEN)
        elif name in _MAKERS_OF_CONSTANTS:
            tt.warn(tt.CONSTANT.format(name))

    def _run(self, func: Callable[..., Any], args: Any, kwargs: Any) -> Any:
        with self.plainly():
            return func(*mapped(args, plain), **mapped(kwargs, plain))

    def _shape(self, x: Any) -> Any:
        with self.plainly():
            rank = plain(x).ndim
        return tuple.__new__(Size, [self._number(size_of, x, i) for i in range(rank)])

    def _number(self, fn: Callable[..., Tensor], x: Any, *args: Any) -> Any:
        with self.plainly():
            made = fn(plain(x), *args)
            node = self._note("call_function", fn, (self.node(plain(x)), *args), {})
        self.numbers[id(made)] = None
        return self.know(made, node)

    def _made_constant(self, func: Any, name: str, args: Any, kwargs: Any) -> Any:
        self._warn(name)
        result = self._run(func, args, kwargs)
        if id(result) in self.nodes or id(result) in self.attributes or id(result) in self.before:
            return result
        with self.plainly():
            self.constant(result)
        return self.wrap(result)

    def record(
        self, func: Callable[..., Any], args: Any, kwargs: Any, name: str = "", target: Any = None
    ) -> Any:
        """Run a call and note it, as one of `target` if that is given."""
        target = func if target is None else target
        given = [plain(x) for x in leaves((args, kwargs)) if isinstance(x, Tensor)]
        sizes = [x for x in given if id(x) in self.numbers]
        first = plain(args[0]) if args else None
        as_tensors = (
            not sizes or name in _ARITHMETIC
            or (id(first) in self.numbers and hasattr(Tensor, name) and isinstance(first, Tensor))
        )  # fmt: skip
        if as_tensors:
            result = self._record(func, target, args, kwargs, name, False)
        else:
            try:
                result = self._record(func, target, args, kwargs, name, True)
            except TypeError:
                result = self._record(func, target, args, kwargs, name, False)
        if sizes and len(sizes) == len(given) and type(result) is TracedTensor:
            made = plain(result)
            with self.plainly():
                if made.ndim == 0:
                    self.numbers.setdefault(id(made), None)
        return result

    def _record(
        self, func: Any, target: Any, args: Any, kwargs: Any, name: str, numbers: bool
    ) -> Any:
        def value(x: Any) -> Any:
            x = plain(x)
            return x.item() if numbers and id(x) in self.numbers else x

        def noted(x: Any) -> Any:
            x = plain(x)
            return self._as_number(x) if numbers and id(x) in self.numbers else self.node(x)

        cast = TLS.autocast
        with self.plainly():
            was = default_generator.get_state().tobytes()
            result = func(*mapped(args, value), **mapped(kwargs, value))
            now = default_generator.get_state().tobytes()
            if not _tells(result, name):
                return result
            if cast is not None:
                target = _under(target)
            node = self._note(
                "call_function", target, mapped(args, noted), mapped(kwargs, noted), _shown(target)
            )
            if was != now:
                self.random.append(node)
            return self.take(result, node)

    def _as_number(self, x: Tensor) -> Node:
        found = self.numbers[id(x)]
        if found is None:
            found = self._note("call_function", as_number, (self.node(x),), {})
            self.numbers[id(x)] = found
        return found

    def take(self, result: Any, node: Node) -> Any:
        """The results of a node, as the program sees them."""
        if isinstance(result, Tensor):
            return self.know(result, node)
        if isinstance(result, tuple) or type(result) is list:
            parts = [self._part(v, node, i) for i, v in enumerate(result)]
            if hasattr(result, "_fields"):
                return type(result)._make(parts)  # type: ignore[union-attr, attr-defined]
            return parts if type(result) is list else tuple(parts)
        if isinstance(result, dict):
            return {k: self._part(v, node, k) for k, v in result.items()}
        return result

    def _part(self, v: Any, node: Node, key: Any) -> Any:
        if not any(isinstance(x, Tensor) for x in leaves(v)):
            return v
        if isinstance(v, Tensor) and id(v) in self.nodes:
            return self.wrap(v)
        return self.take(v, self._note("call_function", operator.getitem, (node, key), {}))


def _tells(result: Any, name: str) -> bool:
    """Whether a call has to be noted: it made tensors, or wrote."""
    if result is None:
        return name == "__setitem__" or name == "data" or name == "__set__" or name.endswith("_")
    return any(isinstance(x, Tensor) for x in leaves(result))


def _under(func: Callable[..., Any]) -> Any:
    for kind in ("cpu", "cuda", "sim"):
        if is_autocast_enabled(kind):
            return UnderAutocast(func, kind, get_autocast_dtype(kind))
    return func


def _shown(func: Any) -> str | None:
    owner = getattr(func, "__self__", None)
    if isinstance(owner, property) and owner.fget is not None:
        return owner.fget.__name__.strip("_")
    return getattr(func, "__name__", "call").strip("_") or None


__all__ = ["PURE", "Recorder", "UnderAutocast", "as_number", "numel_of", "size_of"]

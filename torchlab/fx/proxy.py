"""The value that stands for another while a program is traced: it notes what is done with it.

Source: https://docs.pytorch.org/docs/2.13/fx.html#torch.fx.Proxy
"""

from __future__ import annotations

import builtins
import copy
import dataclasses
import dis
import operator
import sys
import traceback
from collections import OrderedDict
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, NoReturn

from torchlab._core.dispatch import watching
from torchlab._core.dispatch.overload import OpOverload
from torchlab.fx import traceback as fx_traceback
from torchlab.fx.graph import Graph
from torchlab.fx.node import Node, base_types, map_aggregate
from torchlab.fx.operator_schemas import check_for_mutable_operation
from torchlab.fx.source_text import BINARY, REFLECTABLE, UNARY

__all__ = [
    "TracerBase",
    "GraphAppendingTracer",
    "TraceError",
    "Proxy",
    "MetaProxy",
    "Attribute",
    "ParameterProxy",
    "Scope",
    "ScopeContextManager",
]

_PACKAGE = __name__.partition(".")[0]


class TraceError(ValueError):
    """Tracing met something that depends on values: a branch, a loop, a length."""


class Scope:
    """In which module's forward tracing is: its path and its class."""

    def __init__(self, module_path: str, module_type: Any) -> None:
        self.module_path = module_path
        self.module_type = module_type


class ScopeContextManager:
    """`current_scope` says what `scope` says, until the end of `with`."""

    def __init__(self, scope: Scope, current_scope: Scope) -> None:
        self._prev_scope = copy.copy(scope)
        scope.module_path = current_scope.module_path
        scope.module_type = current_scope.module_type
        self._scope = scope

    def __enter__(self) -> Scope:
        return self._scope

    def __exit__(self, *args: object) -> None:
        self._scope.module_path = self._prev_scope.module_path
        self._scope.module_type = self._prev_scope.module_type


class TracerBase:
    """What every tracer has: making nodes from values, and proxies from nodes."""

    graph: Graph
    record_stack_traces: bool = False
    check_mutable_operations: bool = False
    trace_asserts: bool = False
    proxy_buffer_attributes: bool = False
    traced_func_name: str = "forward"
    scope: Scope
    module_stack: OrderedDict[str, tuple[str, Any]]
    node_name_to_scope: dict[str, tuple[str, type]]

    def create_node(
        self,
        kind: str,
        target: Any,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        name: str | None = None,
        type_expr: Any = None,
    ) -> Node:
        """A node of the graph; override it to see every node that is made."""
        if kind == "call_function" and self.check_mutable_operations:
            check_for_mutable_operation(target, args, kwargs)
        node = self.graph.create_node(kind, target, args, kwargs, name, type_expr)
        scope = getattr(self, "scope", None)
        if scope is not None:
            self.node_name_to_scope[node.name] = (scope.module_path, scope.module_type)
        if fx_traceback.has_preserved_node_meta():
            for key, value in fx_traceback.get_current_meta().items():
                node.meta[key] = copy.copy(value)
        elif getattr(self, "module_stack", None) and kind == "call_module":
            node.meta["nn_module_stack"] = copy.copy(self.module_stack)
        origin = caller()
        if origin is not None and kind not in ("placeholder", "output"):
            node.meta.setdefault("origin", origin)
        return node

    def proxy(self, node: Node) -> Proxy:
        """The proxy that stands for a node's value."""
        return Proxy(node, self)

    def create_proxy(
        self,
        kind: str,
        target: Any,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        name: str | None = None,
        type_expr: Any = None,
        proxy_factory_fn: Callable[[Node], Proxy] | None = None,
    ) -> Proxy:
        """A node for a call whose arguments may hold proxies, and the proxy of its value."""
        args_ = self.create_arg(args)
        kwargs_ = self.create_arg(kwargs)
        if not isinstance(args_, tuple) or not isinstance(kwargs_, dict):
            raise AssertionError("create_arg of a tuple and a dict gave something else")
        node = self.create_node(kind, target, args_, kwargs_, name, type_expr)
        made = proxy_factory_fn(node) if proxy_factory_fn is not None else self.proxy(node)
        if self.record_stack_traces and not made.node.stack_trace:
            made.node.stack_trace = user_stack()
        return made

    def create_arg(self, a: Any) -> Any:
        """A value as an argument of a node: proxies become nodes. NotImplementedError for what no
        graph can hold."""
        if isinstance(a, Proxy):
            return a.node
        if hasattr(a, "__fx_create_arg__"):
            return a.__fx_create_arg__(self)
        if isinstance(a, tuple):
            parts = [self.create_arg(x) for x in a]
            return type(a)(*parts) if hasattr(a, "_fields") else tuple(parts)
        if isinstance(a, list):
            return [self.create_arg(x) for x in a]
        if isinstance(a, dict):
            made = {}
            for k, v in a.items():
                key = self.create_arg(k) if not isinstance(k, str) else k
                map_aggregate(key, _no_node)
                made[key] = self.create_arg(v)
            return made
        if isinstance(a, slice):
            return slice(*(self.create_arg(x) for x in (a.start, a.stop, a.step)))
        if isinstance(a, range):
            return range(*(self.create_arg(x) for x in (a.start, a.stop, a.step)))
        if isinstance(a, OpOverload) or a is None or a is ... or isinstance(a, base_types):
            return a
        if dataclasses.is_dataclass(a) and not isinstance(a, type):
            values = {f.name: self.create_arg(getattr(a, f.name)) for f in dataclasses.fields(a)}
            return self.create_node("call_function", type(a), (), values)
        raise NotImplementedError(f"argument of type: {type(a)}")

    def to_bool(self, obj: Proxy) -> bool:
        """`if proxy:` cannot be traced: TraceError."""
        raise TraceError("symbolically traced variables cannot be used as inputs to control flow")

    def iter(self, obj: Proxy) -> Iterator[Any]:
        """`for x in proxy:` cannot be traced: TraceError."""
        raise TraceError(
            "Proxy object cannot be iterated. This can be attempted when the Proxy is used in a "
            "loop or as a *args or **kwargs function argument. See the torch.fx docs on "
            "pytorch.org for a more detailed explanation of what types of control flow can be "
            "traced, and check out the Proxy docstring for help troubleshooting Proxy iteration "
            "errors"
        )

    def keys(self, obj: Proxy) -> Any:
        """`**proxy` or `proxy.keys()`: a node."""
        return Attribute(obj, "keys")()


def _no_node(x: Any) -> Any:
    if isinstance(x, Node):
        raise RuntimeError(
            f"Keys for dictionaries used as an argument cannot contain a Node. Got key: {x}"
        )
    return x


class GraphAppendingTracer(TracerBase):
    """A tracer that only writes into a graph: for proxies that are made by hand."""

    def __init__(self, graph: Graph) -> None:
        super().__init__()
        self.graph = graph
        self.scope = Scope("", None)
        self.module_stack = OrderedDict()
        self.node_name_to_scope = {}
        # Nobody replaces functions for these proxies (Note [Functions that do not ask] in
        # torchlab.fx._patches), so from the first on all functions ask.
        watching.class_made()


def assert_fn(x: object) -> None:
    """`assert x`, as a function that graphs can call."""
    assert x


class Proxy:
    """A value that is not known yet. Operators, methods, functions and attributes become nodes."""

    def __init__(self, node: Node, tracer: TracerBase | None = None) -> None:
        self.tracer = GraphAppendingTracer(node.graph) if tracer is None else tracer
        self.node = node

    def __repr__(self) -> str:
        return f"Proxy({self.node.name})"

    def __getattr__(self, k: str) -> Attribute:
        # made lazily: most attributes are methods that are called at once
        return Attribute(self, k)

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__

    def __setstate__(self, d: dict[str, Any]) -> None:
        self.__dict__ = d

    def __deepcopy__(self, memo: Any) -> Proxy:
        new = {k: copy.deepcopy(v, memo) for k, v in self.__dict__.items() if k == "node"}
        made = Proxy.__new__(type(self))
        made.__dict__.update(self.__dict__ | new)
        return made

    def __call__(self, *args: Any, **kwargs: Any) -> Proxy:
        return self.tracer.create_proxy("call_method", "__call__", (self, *args), kwargs)

    def __iter__(self) -> Iterator[Any]:
        # `a, b = proxy`: the number of names tells how many values there are
        instruction = _instruction(sys._getframe(1))
        if instruction is not None and instruction.opname == "UNPACK_SEQUENCE":
            return (self[i] for i in range(instruction.argval))
        return self.tracer.iter(self)

    def __abs__(self) -> Proxy:
        return self.tracer.create_proxy("call_function", operator.abs, (self,), {})

    def __bool__(self) -> bool:
        if self.tracer.trace_asserts:
            instruction = _instruction(sys._getframe(1))
            if instruction is not None and _starts_assert(sys._getframe(1), instruction):
                self.tracer.create_proxy("call_function", assert_fn, (self,), {})
                return True
        return self.tracer.to_bool(self)

    if TYPE_CHECKING:  # made below, as all operators are

        def __getitem__(self, index: Any) -> Proxy: ...

    def keys(self) -> Any:
        """What `**proxy` reads first; the tracer says what it gives."""
        return self.tracer.keys(self)

    def __len__(self) -> NoReturn:
        raise RuntimeError(
            "'len' is not supported in symbolic tracing by default. If you want this "
            "call to be recorded, please call torch.fx.wrap('len') at module scope"
        )

    @classmethod
    def __torch_function__(
        cls, orig_method: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        """An operator was called with a Proxy among its arguments."""
        kwargs = kwargs if kwargs else {}
        tracers: dict[Any, None] = {}

        def note(x: Any) -> Any:
            if isinstance(x, Proxy):
                tracers[x.tracer] = None
            return x

        map_aggregate(args, note)
        map_aggregate(kwargs, note)
        if len(tracers) > 1:
            raise RuntimeError(
                f"Found multiple different tracers {list(tracers)} while trying to trace "
                f"operations {orig_method}"
            )
        tracer = next(iter(tracers))
        if _is_method(orig_method):
            return tracer.create_proxy("call_method", orig_method.__name__, args, kwargs)
        return tracer.create_proxy("call_function", orig_method, args, kwargs)


def _is_method(fn: Any) -> bool:
    qualname = getattr(fn, "__qualname__", "")
    return getattr(fn, "__module__", None) == _PACKAGE and qualname.startswith("Tensor.")


def _instruction(frame: Any) -> Any:
    for instruction in dis.get_instructions(frame.f_code):
        if instruction.offset == frame.f_lasti:
            return instruction
    return None


def _starts_assert(frame: Any, instruction: Any) -> bool:
    """Whether the branch at `instruction` is that of an `assert`: what follows it, if it is not
    taken, raises AssertionError."""
    following = [i for i in dis.get_instructions(frame.f_code) if i.offset > instruction.offset]
    return bool(following) and any(i.opname == "LOAD_ASSERTION_ERROR" for i in following[:2])


def find_proxy(value: Any) -> Any:
    """The first Proxy in nested arguments, or None."""
    if isinstance(value, Proxy):
        return value
    if isinstance(value, dict):
        parts: Any = value.values()
    elif isinstance(value, slice):
        parts = (value.start, value.stop, value.step)
    elif isinstance(value, (tuple, list)):
        parts = value
    else:
        return None
    for x in parts:
        found = find_proxy(x)
        if found is not None:
            return found
    return None


class MetaProxy(Proxy):
    """A proxy that knows what its value looks like: `node.meta["example_value"]`."""

    def __init__(self, node: Node, tracer: TracerBase | None = None, fake_mode: Any = None) -> None:
        super().__init__(node, tracer)
        self.fake_mode = fake_mode

    def __repr__(self) -> str:
        return f"MetaProxy({self.node.name})"


class Attribute(Proxy):
    """`proxy.name`: a method if it is called next, else the value of the attribute."""

    def __init__(self, root: Proxy, attr: str) -> None:
        self.root = root
        self.attr = attr
        self.tracer = root.tracer
        self._node: Node | None = None

    @property
    def node(self) -> Node:  # type: ignore[override]
        """The node that reads the attribute, made when somebody asks for it."""
        if self._node is None:
            self._node = self.tracer.create_proxy(
                "call_function", builtins.getattr, (self.root, self.attr), {}
            ).node
        return self._node

    def __call__(self, *args: Any, **kwargs: Any) -> Proxy:
        return self.tracer.create_proxy("call_method", self.attr, (self.root, *args), kwargs)


class ParameterProxy(Proxy):
    """The proxy of a parameter, which knows its shape: for `Tracer(param_shapes_constant=True)`."""

    def __init__(self, tracer: TracerBase, node: Node, name: str, param: Any) -> None:
        super().__init__(node, tracer)
        self.param = param
        self.name = name

    def __repr__(self) -> str:
        return f"ParameterProxy({self.name})"

    @property
    def shape(self) -> Any:
        """The parameter's shape, as numbers."""
        return self.param.shape

    def size(self) -> Any:
        """The parameter's shape, as numbers."""
        return self.param.size()

    def dim(self) -> int:
        """The parameter's number of dims."""
        return self.param.dim()

    @property
    def ndim(self) -> int:
        """The parameter's number of dims."""
        return self.param.ndim

    def numel(self) -> int:
        """The parameter's number of elements."""
        return self.param.numel()

    def nelement(self) -> int:
        """The parameter's number of elements."""
        return self.param.nelement()


# ---- operators -----------------------------------------------------------------------------------


def _operator(name: str, fn: Any) -> None:
    def apply(self: Proxy, *args: Any) -> Proxy:
        return self.tracer.create_proxy("call_function", fn, (self, *args), {})

    apply.__name__ = f"__{name.strip('_')}__"
    setattr(Proxy, apply.__name__, apply)


def _reflected(name: str, fn: Any) -> None:
    def apply(self: Proxy, rhs: Any) -> Proxy:
        return self.tracer.create_proxy("call_function", fn, (rhs, self), {})

    apply.__name__ = f"__r{name.strip('_')}__"
    setattr(Proxy, apply.__name__, apply)


for _name in (*BINARY, *UNARY):
    _operator(_name, getattr(operator, _name))
for _name in REFLECTABLE:
    if _name != "getitem":
        _reflected(_name, getattr(operator, _name))
Proxy.__hash__ = object.__hash__  # type: ignore[method-assign]


# ---- where it comes from -------------------------------------------------------------------------


def caller() -> str | None:
    """The user's line that is running, as 'file:line'."""
    f: Any = sys._getframe(1)
    while f is not None:
        name = f.f_globals.get("__name__", "")
        own = name == _PACKAGE or name.startswith(f"{_PACKAGE}.")
        if not own and not f.f_code.co_filename.startswith("<"):
            return f"{f.f_code.co_filename}:{f.f_lineno}"
        f = f.f_back
    return None


def user_stack() -> str:
    """The stack that is running, without torchlab's own frames, as a traceback shows it."""
    frames = [
        (f, line)
        for f, line in traceback.walk_stack(sys._getframe(1))
        if f.f_globals.get("__name__", "").partition(".")[0] != _PACKAGE
        and not f.f_code.co_filename.startswith("<")
    ]
    return "".join(traceback.StackSummary.extract(iter(reversed(frames))).format()).strip()

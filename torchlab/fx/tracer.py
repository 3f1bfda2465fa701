"""Symbolic tracing: run a program on proxies and keep what it did.

While it runs, calls of modules, reads of parameters, functions named by `wrap` and those of
`torch.nn.functional` are patched, so that they become nodes too; the patches are undone at the end.
"""

from __future__ import annotations

import builtins
import functools
import inspect
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FunctionType
from typing import Any

from torchlab._core.dispatch import registry
from torchlab._core.dispatch.generate.source import NAMESPACE
from torchlab._core.tensor import Parameter, Tensor
from torchlab.fx.graph import Graph
from torchlab.fx.graph_module import GraphModule
from torchlab.fx.node import Node, map_aggregate
from torchlab.fx.proxy import Proxy, TraceError, find_proxy
from torchlab.nn import functional
from torchlab.nn._calls import Calls
from torchlab.nn.containers import Sequential
from torchlab.nn.module import Module

_WRAPPED: dict[tuple[int, str], tuple[dict[str, Any], str]] = {}
_LOCK = threading.RLock()  # the patches are global, so one trace at a time
PH = object()
"""In `concrete_args`: leave this argument symbolic."""


def wrap(fn_or_name: str | Callable[..., Any]) -> Any:
    """Keep calls of a module's global function whole in traces: `wrap("len")`, or as a decorator.

    Raises:
        RuntimeError: it is given a name outside the top level of a module.
    """
    name = fn_or_name if isinstance(fn_or_name, str) else getattr(fn_or_name, "__name__", None)
    if not isinstance(name, str):
        raise RuntimeError(
            "Unsupported type for global function! Must be either a callable or string name"
        )
    if callable(fn_or_name):
        table = getattr(fn_or_name, "__globals__", {})
    else:
        f = sys._getframe(1)
        if f.f_code.co_name != "<module>":
            raise RuntimeError("wrap must be called at the top level of a module")
        table = f.f_globals
    _WRAPPED[id(table), name] = (table, name)
    return fn_or_name


class Tracer:
    """Makes graphs. Subclass it to change what stays whole (`is_leaf_module`) or what nodes are
    made.
    """

    def __init__(
        self,
        autowrap_modules: Any = (),
        autowrap_functions: Any = (),
        param_shapes_constant: bool = False,
    ) -> None:
        self.autowrap_functions = tuple(autowrap_functions)
        self.autowrap_modules = tuple(autowrap_modules)
        self.param_shapes_constant = param_shapes_constant
        self.graph: Graph
        self.root: Module

    # ---- what subclasses change ------------------------------------------------------------------

    def is_leaf_module(self, m: Module, module_qualified_name: str) -> bool:
        """Whether the call of `m` stays one node: the library's own modules do, but not
        Sequential.
        """
        return type(m).__module__.startswith("torchlab.nn") and not isinstance(m, Sequential)

    def call_module(self, m: Module, forward: Callable[..., Any], args: Any, kwargs: Any) -> Any:
        """A module is called: a node for a leaf, else its forward is traced."""
        path = self.path_of_module(m)
        if not self.is_leaf_module(m, path):
            return forward(*args, **kwargs)
        return self.create_proxy("call_module", path, args, kwargs)

    def getattr(self, attr: str, attr_val: Any, parameter_proxy_cache: dict[str, Any]) -> Any:
        """A parameter is read."""
        if isinstance(attr_val, Parameter):
            for name, p in self.root.named_parameters():
                if p is attr_val:
                    if name not in parameter_proxy_cache:
                        parameter_proxy_cache[name] = self.create_proxy("get_attr", name, (), {})
                    return parameter_proxy_cache[name]
        return attr_val

    def to_bool(self, obj: Proxy) -> bool:
        """`if proxy:` cannot be traced: TraceError."""
        raise TraceError("symbolically traced variables cannot be used as inputs to control flow")

    def iter(self, obj: Proxy) -> Iterator[Any]:
        """`for x in proxy:` cannot be traced: TraceError."""
        raise TraceError(
            "Proxy object cannot be iterated. This can be attempted when the Proxy is "
            "used in a loop or as a *args or **kwargs function argument. See the "
            "torch.fx docs on pytorch.org for a more detailed explanation of what types "
            "of control flow can be traced, and check out the Proxy docstring for help "
            "troubleshooting Proxy iteration errors"
        )

    def keys(self, obj: Proxy) -> Any:
        return Proxy.__getattr__(obj, "keys")()

    def proxy(self, node: Node) -> Proxy:
        return Proxy(node, self)

    # ---- nodes -----------------------------------------------------------------------------------

    def create_node(
        self,
        kind: str,
        target: Any,
        args: Any,
        kwargs: Any,
        name: str | None = None,
        type_expr: Any = None,
    ) -> Node:
        node = self.graph.create_node(kind, target, args, kwargs, name, type_expr)
        origin = caller()
        if origin is not None:
            node.meta["origin"] = origin
        return node

    # fmt: skip
    def create_proxy(
        self,
        kind: str,
        target: Any,
        args: Any,
        kwargs: Any,
        name: str | None = None,
        type_expr: Any = None,
        proxy_factory_fn: Any = None,
    ) -> Proxy:
        """A node for a call whose arguments may hold proxies, and the proxy of its value."""
        node = self.create_node(
            kind,
            target,
            self.create_arg(tuple(args)),
            self.create_arg(dict(kwargs)),
            name,
            type_expr,
        )
        return proxy_factory_fn(node) if proxy_factory_fn is not None else self.proxy(node)

    def create_arg(self, a: Any) -> Any:
        """A value as an argument of a node: proxies become nodes, tensors attributes of the
        root.
        """
        return map_aggregate(a, self._leaf)

    def _leaf(self, x: Any) -> Any:
        if isinstance(x, Proxy):
            return x.node
        if isinstance(x, Parameter):
            for name, p in self.root.named_parameters():
                if p is x:
                    return self.create_node("get_attr", name, (), {})
            raise NameError("parameter is not a member of this module")
        if isinstance(x, Tensor):
            for name, b in self.root.named_buffers():
                if b is x:
                    return self.create_node("get_attr", name, (), {})
            known = self.tensor_attrs.get(id(x))
            if known is None:
                i = 0
                while hasattr(self.root, f"_tensor_constant{i}"):
                    i += 1
                known = f"_tensor_constant{i}"
                setattr(self.root, known, x)
                self.tensor_attrs[id(x)] = known
            return self.create_node("get_attr", known, (), {})
        if isinstance(x, range):
            return range(*(self._leaf(v) for v in (x.start, x.stop, x.step)))
        return x

    def path_of_module(self, mod: Module) -> str:
        """The path of `mod` below the root; NameError if it is not there."""
        for name, m in self.root.named_modules():
            if m is mod:
                return name
        raise NameError("module is not installed as a submodule")

    # ---- tracing ---------------------------------------------------------------------------------

    def trace(
        self, root: Module | Callable[..., Any], concrete_args: dict[str, Any] | None = None
    ) -> Graph:
        """The graph of a module or function. `concrete_args`: values to fix instead of
        tracing them.
        """
        if isinstance(root, Module):
            self.root, fn, is_method = root, type(root).forward, True
        else:
            self.root, fn, is_method = Module(), root, False
        self.graph = Graph(tracer_cls=type(self))
        self.tensor_attrs: dict[int, str] = {
            id(v): k for k, v in self.root.__dict__.items() if isinstance(v, Tensor)
        }
        with _LOCK, self._patched():
            args, kwargs = self.create_args_for_root(fn, is_method, concrete_args)
            result = fn(*args, **kwargs)
            self.create_node("output", "output", (self.create_arg(result),), {})
        return self.graph

    def create_args_for_root(
        self, root_fn: Any, is_module: bool, concrete_args: Any = None
    ) -> tuple[list[Any], dict[str, Any]]:
        """Placeholders for the parameters of `root_fn`."""
        concrete = concrete_args or {}
        args: list[Any] = [self.root] if is_module else []
        kwargs: dict[str, Any] = {}
        parameters = list(inspect.signature(inspect.unwrap(root_fn)).parameters.values())
        for p in parameters[1:] if is_module and parameters else parameters:
            if p.name in concrete and concrete[p.name] is not PH:
                value = concrete[p.name]
            else:
                stars = (
                    "*" if p.kind is p.VAR_POSITIONAL else "**" if p.kind is p.VAR_KEYWORD else ""
                )
                default = () if p.default is p.empty else (p.default,)
                annotated = (
                    p.annotation
                    if isinstance(p.annotation, type) and p.annotation is not p.empty
                    else None
                )
                value = self.proxy(
                    self.create_node(
                        "placeholder", stars + p.name, default, {}, type_expr=annotated
                    )
                )
            if p.kind is p.VAR_POSITIONAL:
                args.append(value)  # one proxy stands for all of them
            elif p.kind in (p.KEYWORD_ONLY, p.VAR_KEYWORD):
                kwargs[p.name] = value
            else:
                args.append(value)
        return args, kwargs

    @contextmanager
    def _patched(self) -> Iterator[None]:
        undo: list[Callable[[], None]] = []

        def put(owner: Any, name: str, value: Any) -> None:
            before = owner.__dict__[name] if not isinstance(owner, dict) else owner.get(name, undo)
            if isinstance(owner, dict):
                owner[name] = value
                undo.append(
                    lambda: owner.pop(name) if before is undo else owner.__setitem__(name, before)
                )
            else:
                setattr(owner, name, value)
                undo.append(lambda: setattr(owner, name, before))

        tracer, call, read = self, Calls.__call__, Module.__getattr__
        cache: dict[str, Any] = {}

        @functools.wraps(call)
        def module_call(module: Any, *args: Any, **kwargs: Any) -> Any:
            return tracer.call_module(module, lambda *a, **k: call(module, *a, **k), args, kwargs)

        def module_getattr(module: Any, name: str) -> Any:
            return tracer.getattr(name, read(module, name), cache)

        put(Calls, "__call__", module_call)
        put(Module, "__getattr__", module_getattr)
        for name, fn in [*functional.__dict__.items()]:
            if (
                isinstance(fn, FunctionType)
                and fn.__module__ == functional.__name__
                and name[:1] != "_"
            ):
                put(functional.__dict__, name, self._whole(fn))
        for name, face in registry.FACES.items():
            key = f"FACE_{name}"
            if (
                hasattr(face, "body")
                and face.name == name
                and face.function is not face.body
                and key in NAMESPACE
            ):
                put(NAMESPACE, key, self._whole(face.body, face.function))
        for table, name in _WRAPPED.values():
            fn = table.get(name, getattr(builtins, name, None))
            if callable(fn):
                put(table, name, self._whole(fn))
        for module in self.autowrap_modules:
            for name, fn in [*module.__dict__.items()]:
                if callable(fn) and name[:1] != "_" and not isinstance(fn, type):
                    put(module.__dict__, name, self._whole(fn))
        try:
            yield
        finally:
            for step in reversed(undo):
                step()

    def _whole(self, fn: Any, target: Any = None) -> Any:
        """`fn`, but a node if a proxy is among its arguments."""

        @functools.wraps(fn)
        def called(*args: Any, **kwargs: Any) -> Any:
            if find_proxy((args, kwargs)) is None:
                return fn(*args, **kwargs)
            return self.create_proxy("call_function", target or fn, args, kwargs)

        return called


def caller() -> str | None:
    """The user's line that is running, as 'file:line'."""
    f: Any = sys._getframe(1)
    while f is not None:
        name = f.f_globals.get("__name__", "")
        if not (
            name == "torchlab" or name.startswith("torchlab.")
        ) and not f.f_code.co_filename.startswith("<"):
            return f"{f.f_code.co_filename}:{f.f_lineno}"
        f = f.f_back
    return None


def symbolic_trace(
    root: Module | Callable[..., Any], concrete_args: dict[str, Any] | None = None
) -> GraphModule:
    """The module or function as a GraphModule.

    Raises:
        TraceError: its Python control flow depends on an input's value.
    """
    tracer = Tracer()
    graph = tracer.trace(root, concrete_args)
    name = (
        type(root).__name__
        if isinstance(root, Module)
        else getattr(root, "__name__", "GraphModule")
    )
    return GraphModule(tracer.root, graph, name)

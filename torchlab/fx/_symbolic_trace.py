"""Symbolic tracing: run a program on proxies and keep what it did.

While it runs, calls of modules, reads of parameters, functions named by `wrap` and those that do
not ask their arguments' classes are patched, so that they become nodes too; the patches are undone
at the end.

Source: https://docs.pytorch.org/docs/2.13/fx.html#torch.fx.Tracer
"""

from __future__ import annotations

import builtins
import collections
import contextlib
import functools
import inspect
import math
import sys
import threading
import warnings
from collections import OrderedDict
from collections.abc import Callable, Iterator
from types import FunctionType, ModuleType
from typing import Any

from torchlab._core.tensor import Parameter, Tensor
from torchlab.fx import codegen, graph_module
from torchlab.fx._compatibility import compatibility
from torchlab.fx._patches import Patcher, whole_functions
from torchlab.fx.codegen import _PyTreeCodeGen, _PyTreeInfo
from torchlab.fx.graph import Graph
from torchlab.fx.graph_module import GraphModule
from torchlab.fx.node import Node, base_types
from torchlab.fx.proxy import (
    ParameterProxy,
    Proxy,
    Scope,
    ScopeContextManager,
    TraceError,
    TracerBase,
    find_proxy,
)
from torchlab.nn._calls import Calls
from torchlab.nn.containers import Sequential
from torchlab.nn.module import Module
from torchlab.utils import _pytree as pytree

HAS_VARSTUFF = inspect.CO_VARARGS | inspect.CO_VARKEYWORDS
_proxyable_classes: dict[type, None] = {}
_wrapped_fns_to_patch: dict[tuple[int, str], dict[str, Any]] = {}
_wrapped_methods_to_patch: list[tuple[type, str]] = []
_LOCK = threading.RLock()  # the patches are global, so one trace at a time
_STATE = threading.local()


def is_fx_tracing() -> bool:
    """Whether this thread is tracing symbolically."""
    return bool(getattr(_STATE, "tracing", 0))


def is_fx_symbolic_tracing() -> bool:
    """Whether this thread is tracing symbolically."""
    return is_fx_tracing()


class PHBase:
    """A mark in `concrete_args`: this place stays symbolic."""

    def __repr__(self) -> str:
        return "PH"


PH = PHBase()


class PHWithMeta(PHBase):
    """A mark in `concrete_args` with attributes that go to the placeholder; `ph_key` finds the
    place again."""

    def __init__(self, ph_key: str | None = None) -> None:
        super().__init__()
        self.ph_key = ph_key


class ProxyableClassMeta(type):
    """The metaclass of classes that may be made of proxies while one traces: the call of the class
    becomes a node."""

    def __init__(cls, name: str, bases: tuple[type, ...], attrs: dict[str, Any]) -> None:
        _proxyable_classes.setdefault(cls)
        super().__init__(name, bases, attrs)

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        made = cls.__new__(cls)  # type: ignore[call-overload]
        if not is_fx_tracing():
            cls.__init__(made, *args, **kwargs)  # type: ignore[misc]
            return made
        found = find_proxy((args, kwargs))
        if found is not None:
            return found.tracer.create_proxy("call_function", cls, args, kwargs)
        cls.__init__(made, *args, **kwargs)  # type: ignore[misc]
        return made


def wrap(fn_or_name: str | Callable[..., Any]) -> str | Callable[..., Any]:
    """Keep calls of a module's global function whole in traces: `wrap("len")`, or as a decorator.

    Raises:
        NotImplementedError: it is called elsewhere than at the top level of a module.
    """
    if not callable(fn_or_name) and not isinstance(fn_or_name, str):
        raise RuntimeError(
            "Unsupported type for global function! Must be either a callable or string name"
        )
    name = fn_or_name if isinstance(fn_or_name, str) else fn_or_name.__name__
    frame: Any = sys._getframe(1)
    if frame.f_code.co_name != "<module>":
        raise NotImplementedError("wrap must be called at the top level of a module")
    _wrapped_fns_to_patch[id(frame.f_globals), name] = frame.f_globals
    return fn_or_name


def _is_wrapped(name: str, fn: Any) -> bool:
    """Whether generated code has to say `wrap` for a global, so that tracing it keeps it whole."""
    module = getattr(fn, "__module__", None)
    if module == "math":
        return True
    return any(
        key[1] == getattr(fn, "__name__", None)
        and getattr(table.get(key[1], getattr(builtins, key[1], None)), "__wrapped__", None) is fn
        or table.get(key[1], getattr(builtins, key[1], None)) is fn
        for key, table in _wrapped_fns_to_patch.items()
        if key[1] == getattr(fn, "__name__", None)
    )


codegen._is_wrapped_fn.append(_is_wrapped)


class Tracer(TracerBase):
    """Makes graphs. Subclass it to change what stays whole (`is_leaf_module`) or what nodes are
    made.

    autowrap_modules: their functions stay whole, if the traced functions' modules name them.
    autowrap_functions: so do these. param_shapes_constant: the shapes of parameters are numbers,
        not nodes.
    """

    def __init__(
        self,
        autowrap_modules: tuple[ModuleType, ...] = (math,),
        autowrap_functions: tuple[Callable[..., Any], ...] = (),
        param_shapes_constant: bool = False,
    ) -> None:
        super().__init__()
        self._autowrap_function_ids: set[int] = {
            id(value)
            for name, value in (item for m in autowrap_modules for item in m.__dict__.items())
            if not name.startswith("_") and callable(value)
        } | {id(f) for f in autowrap_functions}
        self._autowrap_search: list[ModuleType] = list(autowrap_modules)
        self.param_shapes_constant = param_shapes_constant
        self.submodule_paths: dict[Module, str] | None = None
        self.root_module_name: str = ""
        self.scope = Scope("", None)
        self.module_stack: OrderedDict[str, tuple[str, Any]] = collections.OrderedDict()
        self.num_calls: dict[str, int] = {}
        self.node_name_to_scope: dict[str, tuple[str, type]] = {}
        self._qualname_counter: dict[str, int] = collections.defaultdict(int)

    # ---- what subclasses change ------------------------------------------------------------------

    def get_fresh_qualname(self, prefix: str) -> str:
        """A name `<prefix>0`, `<prefix>1`, … that the root has not got yet."""
        while True:
            i = self._qualname_counter[prefix]
            self._qualname_counter[prefix] += 1
            if not hasattr(self.root, f"{prefix}{i}"):
                return f"{prefix}{i}"

    def create_arg(self, a: Any) -> Any:
        """A value as an argument of a node: proxies become nodes, tensors attributes of the
        root."""
        if isinstance(a, Parameter):
            for name, p in self.root.named_parameters():
                if p is a:
                    return self.create_node("get_attr", name, (), {})
            raise NameError("parameter is not a member of this module")
        if isinstance(a, Tensor):
            for name, b in self.root.named_buffers():
                if b is a:
                    return self.create_node("get_attr", name, (), {})
        if isinstance(a, Module):
            for name, m in self.root.named_modules():
                if m is a:
                    return self.create_node("get_attr", name, (), {})
        if isinstance(a, tuple) and hasattr(a, "_fields"):
            return self.create_node(
                "call_function", type(a), tuple(self.create_arg(x) for x in a), {}
            )
        if isinstance(a, Tensor):
            known = self.tensor_attrs.get(a)
            if known is None:
                known = self.get_fresh_qualname("_tensor_constant")
                self.tensor_attrs[a] = known
                setattr(self.root, known, a)
            return self.create_node("get_attr", known, (), {})
        if type(a) in _proxyable_classes:
            name = self.get_fresh_qualname(f"_{type(a).__name__}_constant_")
            setattr(self.root, name, a)
            return self.create_node("get_attr", name, (), {})
        return super().create_arg(a)

    def is_leaf_module(self, m: Module, module_qualified_name: str) -> bool:
        """Whether the call of `m` stays one node: the library's own modules do, but not
        Sequential."""
        module = type(m).__module__
        return module.startswith(_LIBRARY_MODULES) and not isinstance(m, Sequential)

    def path_of_module(self, mod: Module) -> str:
        """The path of `mod` below the root; NameError if it is not there."""
        if self.submodule_paths:
            path = self.submodule_paths.get(mod)
            if path is None:
                raise NameError("module is not installed as a submodule")
            return path
        for name, m in self.root.named_modules():
            if m is mod:
                return name
        raise NameError("module is not installed as a submodule")

    def call_module(
        self,
        m: Module,
        forward: Callable[..., Any],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
    ) -> Any:
        """A module is called: a node for a leaf, else its forward is traced."""
        path = self.path_of_module(m)
        with ScopeContextManager(self.scope, Scope(path, type(m))) as scope:
            calls = self.num_calls.get(path, 0)
            key = f"{scope.module_path}@{calls}" if calls > 0 else scope.module_path
            self.module_stack[key] = (path, scope.module_type)
            try:
                self.num_calls[path] = calls + 1
                if not self.is_leaf_module(m, path):
                    return forward(*args, **kwargs)
                return self.create_proxy("call_module", path, args, kwargs)
            finally:
                self.module_stack.pop(key)

    def getattr(self, attr: str, attr_val: Any, parameter_proxy_cache: dict[str, Any]) -> Any:
        """An attribute of a module is read: parameters become proxies."""

        def known(collection: Any, as_parameter: bool) -> Any:
            for name, p in collection:
                if p is attr_val:
                    if name not in parameter_proxy_cache:
                        more: dict[str, Any] = {}  # subclasses may define `create_proxy` without it
                        if as_parameter and self.param_shapes_constant:
                            factory = functools.partial(_parameter_proxy, self, name, p)
                            more["proxy_factory_fn"] = factory
                        parameter_proxy_cache[name] = self.create_proxy(
                            "get_attr", name, (), {}, **more
                        )
                    return parameter_proxy_cache[name]
            return None

        if isinstance(attr_val, Parameter):
            found = known(self.root.named_parameters(), True)
            if found is not None:
                return found
        if self.proxy_buffer_attributes and isinstance(attr_val, Tensor):
            found = known(self.root.named_buffers(), False)
            if found is not None:
                return found
        return attr_val

    def _module_getattr(self, attr: str, attr_val: Any, parameter_proxy_cache: Any) -> Any:
        return self.getattr(attr, attr_val, parameter_proxy_cache)

    # ---- tracing ---------------------------------------------------------------------------------

    def trace(
        self, root: Module | Callable[..., Any], concrete_args: dict[str, Any] | None = None
    ) -> Graph:
        """The graph of a module or function. `concrete_args`: values to fix instead of tracing
        them; in nested ones `PH` marks what stays symbolic."""
        if isinstance(root, Module):
            self.root, fn = root, getattr(type(root), self.traced_func_name, None)
            if fn is None:
                raise AssertionError(
                    f"traced_func_name={self.traced_func_name} doesn't exist in "
                    f"{type(root).__name__}"
                )
            self.root_module_name = root._get_name()
            self.submodule_paths = {mod: name for name, mod in root.named_modules()}
        else:
            self.root, fn = Module(), root
        self.graph = Graph(tracer_cls=getattr(self, "__class__", None))
        if getattr(fn, "__code__", None) is not None:
            self.graph._co_fields = {
                "co_name": fn.__code__.co_name,
                "co_filename": fn.__code__.co_filename,
                "co_firstlineno": fn.__code__.co_firstlineno,
            }
        self.tensor_attrs: dict[Any, str] = _Identities()
        self._collect_tensor_attributes(self.root, [])
        if not isinstance(fn, FunctionType):
            fn = _as_function(fn)
        with _LOCK, self._patched(fn) as start:
            result_fn, args = self.create_args_for_root(fn, isinstance(root, Module), concrete_args)
            with start():
                result = result_fn(*args)
            self.create_node(
                "output",
                "output",
                (self.create_arg(result),),
                {},
                type_expr=fn.__annotations__.get("return", None),
            )
        self.submodule_paths = None
        return self.graph

    def _collect_tensor_attributes(self, m: Module, prefix: list[str]) -> None:
        for k, v in m.__dict__.items():
            if isinstance(v, Tensor):
                self.tensor_attrs[v] = ".".join([*prefix, k])
        for k, child in m.named_children():
            self._collect_tensor_attributes(child, [*prefix, k])

    def create_args_for_root(
        self,
        root_fn: Callable[..., Any],
        is_module: bool,
        concrete_args: dict[str, Any] | tuple[Any, ...] | None = None,
    ) -> tuple[Any, list[Any]]:
        """(function to call, arguments): placeholders for the parameters of `root_fn`."""
        analysed = inspect.unwrap(root_fn)
        code = analysed.__code__
        total = code.co_argcount + code.co_kwonlyargcount
        names = iter(code.co_varnames)
        args: list[Any] = []
        skip = 0
        if is_module:
            if total == 0:
                raise RuntimeError("``self`` argument cannot be part of *args expansion!")
            skip = 1
            next(names)
            args.append(self.root)
        signature = inspect.signature(analysed)
        if isinstance(concrete_args, tuple):
            given = [next(names) for _ in range(skip, total)]
            if len(given) != len(concrete_args):
                raise RuntimeError(
                    f"Tracing expected {len(given)} arguments but got {len(concrete_args)} "
                    "concrete arguments"
                )
            concrete_args = dict(zip(given, concrete_args, strict=True))
            wanted = given
        else:
            wanted = [next(names) for _ in range(skip, total)]
        args += [self._placeholder(n, concrete_args, signature, analysed) for n in wanted]
        if code.co_kwonlyargcount > 0 or code.co_flags & HAS_VARSTUFF:
            if code.co_flags & inspect.CO_VARARGS:
                args.append(self._placeholder("*" + next(names), None, signature, analysed))
            if code.co_flags & inspect.CO_VARKEYWORDS:
                args.append(self._placeholder("**" + next(names), None, signature, analysed))
            root_fn = _with_plain_parameters(analysed, len(args))
        flat, in_spec = pytree.tree_flatten(tuple(args))
        if concrete_args is None or all(c.is_leaf() for c in in_spec.children_specs):
            return root_fn, args
        self.graph._codegen = _PyTreeCodeGen(
            _PyTreeInfo(list(code.co_varnames[:total]), in_spec, None)
        )

        def flat_fn(*flat_args: Any) -> Any:
            out = root_fn(*pytree.tree_unflatten(list(flat_args), in_spec))
            leaves, out_spec = pytree.tree_flatten(out)
            gen: Any = self.graph._codegen
            gen.pytree_info = gen.pytree_info._replace(out_spec=out_spec)
            return leaves

        return flat_fn, flat

    def _placeholder(
        self, name: str, concrete_args: Any, signature: inspect.Signature, fn: Any
    ) -> Any:
        if concrete_args is not None and name in concrete_args:
            counter = [0]

            def leaf(x: Any) -> Any:
                counter[0] += 1
                if isinstance(x, PHBase):
                    made = self.create_proxy("placeholder", f"{name}_{counter[0]}", (), {})
                    if isinstance(x, PHWithMeta):
                        made.node.meta.update(x.__dict__)
                    return made
                if type(x) is bool or (type(x) in base_types and type(x) is not Tensor):
                    made = self.create_proxy("placeholder", f"{name}_{counter[0]}", (), {})
                    _check_equal(
                        made == x,
                        f"{name} has been specialized to have value {x} but got another value",
                    )
                elif x is None:
                    made = self.create_proxy("placeholder", f"{name}_{counter[0]}", (), {})
                    self.create_proxy(
                        "call_function",
                        _assert_is_none,
                        (made, f"{name} has been specialized to have value None but got another "
                               "value"),
                        {},
                    )  # fmt: skip
                else:
                    warnings.warn(
                        f"Was not able to add assertion to guarantee correct input {name} to "
                        "specialized function. It is up to the user to make sure that your inputs "
                        "match the inputs you specialized the function with.",
                        stacklevel=2,
                    )
                return x

            return pytree.tree_map(leaf, concrete_args[name])
        plain = name.lstrip("*")
        if name.startswith("*"):
            default: tuple[Any, ...] = ()
        else:
            value = signature.parameters[plain].default
            default = () if value is inspect.Parameter.empty else (value,)
        return self.create_proxy(
            "placeholder", name, default, {}, type_expr=fn.__annotations__.get(name, None)
        )

    # ---- patches ---------------------------------------------------------------------------------

    @contextlib.contextmanager
    def _patched(self, fn: FunctionType) -> Iterator[Callable[[], Any]]:
        call, read = Calls.__call__, Module.__getattr__
        cache: dict[str, Any] = {}
        patcher = Patcher()

        @functools.wraps(call)
        def module_call(mod: Any, *args: Any, **kwargs: Any) -> Any:
            def forward(*a: Any, **k: Any) -> Any:
                return call(mod, *a, **k)

            table = getattr(mod.forward, "__globals__", {})
            _autowrap_check(patcher, table, self._autowrap_function_ids)
            return self.call_module(mod, forward, args, kwargs)

        @functools.wraps(read)
        def module_getattr(mod: Any, attr: str) -> Any:
            return self._module_getattr(attr, read(mod, attr), cache)

        @contextlib.contextmanager
        def start() -> Iterator[None]:
            _STATE.tracing = getattr(_STATE, "tracing", 0) + 1
            patcher.put(Module, "__getattr__", module_getattr)
            patcher.put(Calls, "__call__", module_call)
            _patch_wrapped_functions(patcher)
            for table in (fn.__globals__, *(m.__dict__ for m in self._autowrap_search)):
                _autowrap_check(patcher, table, self._autowrap_function_ids)
            try:
                yield
            finally:
                _STATE.tracing -= 1
                patcher.revert()

        yield start


# ---- the steps of `trace`, which tracers of libraries take themselves ----------------------------

_orig_module_call, _orig_module_getattr = Calls.__call__, Module.__getattr__


class ScriptObject:
    """An object of TorchScript's; there are none here."""


class _Patcher(Patcher):
    """What is patched inside the `with` is as it was afterwards."""

    def __enter__(self) -> _Patcher:
        _LOCK.acquire()
        _STATE.tracing = getattr(_STATE, "tracing", 0) + 1
        return self

    def __exit__(self, *exc: object) -> None:
        _STATE.tracing -= 1
        self.revert()
        _LOCK.release()

    def patch(
        self, frame_dict: dict[str, Any], name: str, new_fn: Any, deduplicate: bool = True
    ) -> None:
        """Replace an entry of a table of globals."""
        self.put_item(frame_dict, name, new_fn)

    def patch_method(self, cls: type, name: str, new_fn: Any, deduplicate: bool = True) -> None:
        """Replace a method of a class, its own or one that it inherits."""
        self.put(cls, name, new_fn)


def _patch_wrapped_functions(patcher: Patcher) -> None:
    """Let what `wrap` was told of, and what does not ask its arguments' classes, make nodes."""
    for key, table in list(_wrapped_fns_to_patch.items()):
        original = table.get(key[1], getattr(builtins, key[1], None))
        if callable(original):
            patcher.put_item(table, key[1], _create_wrapped_func(original))
    for cls, name in _wrapped_methods_to_patch:
        patcher.put(cls, name, _create_wrapped_method(cls, name))
    whole_functions(patcher)


def _autowrap_check(patcher: Patcher, frame_dict: dict[str, Any], function_ids: set[int]) -> None:
    """Wrap the functions that this table of globals names and that shall stay whole."""
    if not function_ids or patcher.seen(frame_dict):
        return
    for name, value in list(frame_dict.items()):
        if not name.startswith("_") and callable(value) and id(value) in function_ids:
            patcher.put_item(frame_dict, name, _create_wrapped_func(value))


def _parameter_proxy(tracer: Tracer, name: str, p: Parameter, node: Node) -> ParameterProxy:
    return ParameterProxy(tracer, node, name, p)


class _Identities(dict):  # type: ignore[type-arg]
    """A dict by identity, for tensors; it holds them."""

    def __setitem__(self, key: Any, value: Any) -> None:
        super().__setitem__(id(key), (key, value))

    def get(self, key: Any, default: Any = None) -> Any:
        found = super().get(id(key))
        return default if found is None else found[1]


_LIBRARY = __name__.partition(".")[0]
_LIBRARY_MODULES = (f"{_LIBRARY}.nn", f"{_LIBRARY}.ao.nn")


def _as_function(fn: Any) -> FunctionType:
    """A plain function for what is called: a callable object's `__call__`, a method."""
    if hasattr(fn, "__func__"):
        bound, inner = fn.__self__, fn.__func__
        names = list(inspect.signature(fn).parameters)
        if all(
            p.kind is p.POSITIONAL_OR_KEYWORD for p in inspect.signature(fn).parameters.values()
        ):
            made = _named_call(names, lambda *a: inner(bound, *a), inner.__name__)
            made.__defaults__ = inner.__defaults__
            made.__annotations__ = dict(inner.__annotations__)
            return made
    if callable(fn) and not isinstance(fn, type):
        inner = fn.__call__
        if hasattr(inner, "__func__"):
            return _as_function(inner)
    raise TypeError(f"symbolic_trace: cannot trace a {type(fn).__name__}; give it a function")


def _named_call(names: list[str], target: Callable[..., Any], name: str) -> FunctionType:
    """A function with parameters of these names that calls `target` with them."""
    scope: dict[str, Any] = {"target": target}
    shown = ", ".join(names)
    exec(f"def call({shown}):\n    return target({shown})\n", scope)
    made: FunctionType = scope["call"]
    made.__name__ = name
    return made


def _with_plain_parameters(fn: Any, n: int) -> Callable[..., Any]:
    """`fn`, called with its parameters by position: keyword-only ones, and one value each for its
    `*args` and `**kwargs`, which the body meets under those names."""
    code = fn.__code__
    plain = code.replace(
        co_argcount=n,
        co_posonlyargcount=0,
        co_kwonlyargcount=0,
        co_flags=code.co_flags & ~HAS_VARSTUFF,
    )
    return FunctionType(plain, fn.__globals__, fn.__name__, fn.__defaults__, fn.__closure__)


def _check_equal(condition: Any, message: str) -> None:
    condition.tracer.create_proxy("call_function", _assert, (condition, message), {})


def _assert(condition: Any, message: str) -> None:
    """`assert condition, message`, as a function: graphs call it."""
    if type(condition) is not Tensor and hasattr(condition, "__torch_function__"):
        if isinstance(condition, Proxy):
            condition.tracer.create_proxy("call_function", _assert, (condition, message), {})
            return
    assert condition, message


_assert.__module__ = _LIBRARY


def _assert_is_none(value: Any, msg: str) -> None:
    assert value is None, msg


def _create_wrapped_func(orig_fn: Callable[..., Any]) -> Callable[..., Any]:
    """`orig_fn`, but a node if a proxy is among its arguments."""

    @functools.wraps(orig_fn)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        found = find_proxy((args, kwargs))
        if found is None:
            return orig_fn(*args, **kwargs)
        return found.tracer.create_proxy("call_function", orig_fn, args, kwargs)

    return wrapped


def _create_wrapped_method(cls: type, name: str) -> Callable[..., Any]:
    """The method `name` of `cls`, but a node if a proxy is among its arguments."""
    orig_fn = getattr(cls, name)

    @functools.wraps(orig_fn)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        found = find_proxy((args, kwargs))
        if found is None:
            return orig_fn(*args, **kwargs)
        return found.tracer.create_proxy("call_method", name, args, kwargs)

    return wrapped


class _KeepModules(Tracer):
    """Every submodule stays whole: for code that was generated from a graph."""

    def is_leaf_module(self, m: Module, module_qualified_name: str) -> bool:
        return True


def _traced_anew(module: Module, tracer_cls: Any) -> Graph:
    cls = Tracer if tracer_cls is None else tracer_cls
    kept = type(cls.__name__, (_KeepModules, cls), {}) if cls is not Tracer else _KeepModules
    graph: Graph = kept().trace(module)
    graph._tracer_cls = tracer_cls
    return graph


graph_module._retrace.append(_traced_anew)


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
        root._get_name() if isinstance(root, Module) else getattr(root, "__name__", "GraphModule")
    )
    return GraphModule(tracer.root, graph, name)


__all__ = [
    "PH", "PHBase", "PHWithMeta", "ProxyableClassMeta", "TraceError", "Tracer",
    "compatibility", "is_fx_symbolic_tracing", "is_fx_tracing", "symbolic_trace", "wrap",
]  # fmt: skip

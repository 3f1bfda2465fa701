"""`make_fx`: the graph of the operators that a function runs, below autograd.

The function runs for real, or on fake tensors, whose sizes may be symbolic. A mode
(`__torch_dispatch__`) sees every operator, gradients' too, and notes it with the nodes of its
arguments, which are known by the tensors' identities. What Python decides from values cannot be in
a graph: reading one is an error.

Source: https://docs.pytorch.org/docs/2.13/func.html
"""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Callable, Iterator, Mapping
from types import FunctionType
from typing import Any

from torchlab._core.device import device
from torchlab._core.dispatch import arrivals
from torchlab._core.dispatch.overload import OpOverload
from torchlab._core.dispatch.tags import Tag
from torchlab._core.tensor import Parameter, Tensor
from torchlab._subclasses.fake_tensor import FakeTensor, FakeTensorMode
from torchlab.fx._symbolic_trace import PH, Tracer, _named_call
from torchlab.fx.experimental._shape_env import ShapeEnv
from torchlab.fx.experimental._size_nodes import SizeNodes
from torchlab.fx.experimental.symbolic_shapes import SymTypes, free_symbols
from torchlab.fx.graph import Graph, _snake_case
from torchlab.fx.graph_module import GraphModule
from torchlab.fx.passes.shape_prop import _extract_tensor_metadata
from torchlab.fx.proxy import Proxy
from torchlab.nn.module import Module
from torchlab.utils import _pytree as pytree
from torchlab.utils._python_dispatch import (
    TorchDispatchMode,
    _disable_current_modes,
    _get_current_dispatch_mode_stack,
)

__all__ = [
    "PythonKeyTracer",
    "dispatch_trace",
    "make_fx",
    "get_proxy_mode",
    "ProxyTorchDispatchMode",
    "get_isolated_graphmodule",
]

_LIFTED = "aten::lift_fresh"


@arrivals.virtual("lift_fresh_copy.default(Tensor self) -> Tensor")
def LIFT_FRESH_COPY(self: Tensor) -> Tensor:
    """A copy of a constant, so that a graph that writes to it does not change the module."""
    return self.clone()


class PythonKeyTracer(Tracer):
    """The tracer of `make_fx`: modules are run through, tensors that the graph has not made become
    attributes."""

    def __init__(self) -> None:
        super().__init__(autowrap_modules=())
        # By the tensor and by its array; with the array, which a write of the geometry replaces.
        self.tracked: dict[int, tuple[Tensor, Proxy, Any]] = {}
        self.constants: dict[int, Tensor] = {}
        self._sizes: SizeNodes | None = None

    @property
    def sizes(self) -> SizeNodes:
        """The nodes of symbolic numbers."""
        if self._sizes is None:
            self._sizes = SizeNodes(self.graph)
        return self._sizes

    def call_module(
        self,
        m: Module,
        forward: Callable[..., Any],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
    ) -> Any:
        """The module's forward runs."""
        return forward(*args, **kwargs)

    def getattr(self, attr: str, attr_val: Any, parameter_proxy_cache: dict[str, Any]) -> Any:
        """What the module has."""
        return attr_val

    def create_arg(self, a: Any) -> Any:
        """Tensors that are known give their nodes, symbolic numbers those that compute them;
        parameters become attributes of the root."""
        if type(a) in SymTypes:
            return self.sizes.number(a)
        if isinstance(a, Tensor):
            known = self.known(a)
            if known is not None:
                return known.node
        if isinstance(a, tuple):
            return tuple(self.create_arg(x) for x in a)  # named ones are what operators return
        if isinstance(a, FakeTensor):
            raise RuntimeError(
                f"{a} comes from outside the traced function: a graph cannot hold a tensor without"
                " data. Hand it in as an argument"
            )
        if isinstance(a, Parameter):
            for name, p in self.root.named_parameters():
                if p is a:
                    return self.create_node("get_attr", name, (), {})
            name = self.get_fresh_qualname("_param_constant")
            setattr(self.root, name, a)
            return self.create_node("get_attr", name, (), {})
        return super().create_arg(a)

    def known(self, t: Tensor) -> Proxy | None:
        """The proxy of a tensor. What backward reads of a saved one is another object around the
        same array."""
        found = self.tracked.get(id(t))
        if found is not None and (found[0] is not t or found[2] is not t._a):
            found = None
        if found is None and not isinstance(t, Parameter):
            found = self.tracked.get(id(t._a))
            if found is not None and found[2] is not t._a:
                found = None
        return None if found is None else found[1]

    def track(self, value: Any, proxy: Proxy) -> None:
        """`proxy` stands for `value`: for a tensor, or for each of a sequence's."""
        if isinstance(value, Tensor):
            self.tracked[id(value)] = self.tracked[id(value._a)] = (value, proxy, value._a)
            proxy.node.meta["val"] = _without_data(value)
            if not isinstance(value, FakeTensor) or not free_symbols(value):
                proxy.node.meta["tensor_meta"] = _extract_tensor_metadata(value)
        elif isinstance(value, (tuple, list)):
            for i, x in enumerate(value):
                if isinstance(x, (Tensor, tuple, list)):
                    self.track(x, proxy[i])
            proxy.node.meta["val"] = [_without_data(x) for x in value]
        elif value is not None:
            proxy.node.meta["val"] = value

    @contextlib.contextmanager
    def _patched(self, fn: FunctionType) -> Iterator[Callable[[], Any]]:
        yield contextlib.nullcontext


def _without_data(t: Any) -> Any:
    """A tensor of the meta device with the same shape, strides and dtype."""
    if not isinstance(t, Tensor):
        return t
    if isinstance(t, FakeTensor):  # in its state of now
        return t.snapshot()
    made = t.detach().new_empty_strided(tuple(t.shape), tuple(t.stride()), device=device("meta"))
    return made.requires_grad_(t.requires_grad) if t.requires_grad else made


class ProxyTorchDispatchMode(TorchDispatchMode):
    """Notes every operator as a node of `tracer.graph`."""

    def __init__(
        self,
        tracer: PythonKeyTracer,
        tracing_mode: str = "real",
        pre_dispatch: bool | Callable[[Any], bool] = False,
        decomposition_table: Mapping[Any, Callable[..., Any]] | None = None,
    ) -> None:
        super().__init__()
        self.tracer = tracer
        self.tracing_mode = tracing_mode
        self.pre_dispatch = pre_dispatch  # composites arrive whole; or which do
        self.direct: FakeTensorMode | None = None  # asked in place of the modes further out
        self.decomposition_table = dict(decomposition_table or {})
        self.enable_tracing = True

    def __torch_dispatch__(
        self, func: OpOverload, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        kwargs = kwargs or {}
        if not self.enable_tracing:
            return func(*args, **kwargs)
        rule = self.decomposition_table.get(func)
        if rule is not None:
            with self:
                result = rule(*args, **kwargs)
            if result is not NotImplemented:
                return result
        return self._note(func, args, kwargs)

    def _note(self, func: OpOverload, args: Any, kwargs: Any) -> Any:
        tracer = self.tracer
        flat = pytree.tree_leaves((args, kwargs))
        tensors = [x for x in flat if isinstance(x, Tensor)]
        followed = [
            t for t in tensors if tracer.known(t) is not None and id(t) not in tracer.constants
        ]
        if Tag.data_dependent_output in func.tags or func._opname == "_local_scalar_dense":
            if followed and self.tracing_mode == "real":
                raise RuntimeError(
                    "It appears that you're trying to get value out of a tracing tensor with "
                    f"{func} - erroring out! It's likely that this is caused by data-dependent "
                    "control flow or similar.  It may be possible to trace this with dynamic "
                    "shapes; try setting tracing_mode='symbolic' in your make_fx call."
                )
            return func(*args, **kwargs)
        lifted = func.name() == _LIFTED
        target: OpOverload = LIFT_FRESH_COPY if lifted else func
        name = target._opname
        noted_args, noted_kwargs = tracer.create_arg(tuple(args)), tracer.create_arg(dict(kwargs))
        node = tracer.create_node(
            "call_function", target, noted_args, noted_kwargs, name=_snake_case(name)
        )
        if self.direct is not None:
            out = self.direct.dispatch(func, args, kwargs)
        else:
            out = func(*args, **kwargs)
        proxy = Proxy(node, tracer)
        if name.endswith("_") and not name.endswith("__") and args:
            tracer.track(args[0], proxy)
        tracer.track(out, proxy)
        if lifted:
            tracer.constants[id(out)] = out
        return out


def get_proxy_mode() -> ProxyTorchDispatchMode | None:
    """The innermost mode of `make_fx` that is on in this thread."""
    for mode in reversed(_get_current_dispatch_mode_stack()):
        if isinstance(mode, ProxyTorchDispatchMode):
            return mode
    return None


def dispatch_trace(
    root: Module | Callable[..., Any], tracer: Tracer, concrete_args: tuple[Any, ...] | None = None
) -> GraphModule:
    """The graph of `root`, traced by `tracer`, as a module."""
    graph: Graph = tracer.trace(root, concrete_args)  # type: ignore[arg-type]
    name = type(root).__name__ if isinstance(root, Module) else root.__name__
    return GraphModule(tracer.root, graph, name)


def _signature_of(f: Any, n: int) -> list[str]:
    """The names of n arguments of `f`."""
    inner = inspect.unwrap(f)
    code = getattr(inner, "__code__", None)
    if code is None or code.co_flags & inspect.CO_VARARGS:
        return [f"arg{i}" for i in range(n)]
    names = list(code.co_varnames[: code.co_argcount + code.co_kwonlyargcount])
    if hasattr(inner, "__self__"):
        names = names[1:]
    if len(names) != n:
        raise RuntimeError(
            f"Tracing expected {len(names)} arguments but got {n} concrete arguments"
        )
    return names


def make_fx(
    f: Callable[..., Any],
    decomposition_table: Mapping[OpOverload, Callable[..., Any]] | None = None,
    tracing_mode: str = "real",
    _allow_non_fake_inputs: bool = False,
    *,
    pre_dispatch: bool = False,
    record_module_stack: bool = False,
    _allow_fake_constant: bool = False,
    _error_on_data_dependent_ops: bool = True,
    record_stack_traces: bool = False,
) -> Callable[..., GraphModule]:
    """`make_fx(f)(*args)` runs `f(*args)` and gives the graph of the operators it ran, with
    `torch.ops.aten` overloads as targets.

    decomposition_table: overload → function that is traced in its place. tracing_mode: "real", for
    which tensors are real ones, "fake", for which they have no data, or "symbolic": fake ones whose
    sizes (but 0 and 1) and numbers are symbols. The module's `shape_env` says what the function
    asked of them. pre_dispatch: operators that are made of others are noted themselves.

    Raises:
        RuntimeError: the function reads a value (`item`, `if tensor`).
    """
    if tracing_mode not in ("real", "fake", "symbolic"):
        raise AssertionError(f"tracing_mode must be real/fake/symbolic, got {tracing_mode}")

    def traced(*args: Any) -> GraphModule:
        tracer = PythonKeyTracer()
        tracer.record_stack_traces = record_stack_traces
        mode = ProxyTorchDispatchMode(tracer, tracing_mode, pre_dispatch, decomposition_table)
        env = ShapeEnv() if tracing_mode == "symbolic" else None
        fake_mode = None
        if tracing_mode != "real":
            fake_mode = _mode_of(args) or FakeTensorMode(
                allow_non_fake_inputs=_allow_non_fake_inputs, shape_env=env
            )
            args = _fakes(fake_mode, args, env)
        flat_values = pytree.tree_leaves(args)

        def run(*nested: Any) -> Any:
            for value, proxy in zip(flat_values, pytree.tree_leaves(nested), strict=True):
                if isinstance(value, Tensor):
                    tracer.track(value, proxy)
                if isinstance(proxy, Proxy):
                    if type(value) in SymTypes:
                        proxy.node.meta["val"] = value
                    tracer.sizes.input(value, proxy.node)
            with fake_mode or contextlib.nullcontext(), mode:
                out = f(*args)
            return pytree.tree_map_only(Tensor, known, out)

        def known(t: Tensor) -> Any:
            found = tracer.known(t)
            return t if found is None else found

        shown = _named_call(_signature_of(f, len(args)), run, getattr(f, "__name__", None) or
                            type(f).__name__)  # fmt: skip
        places = tuple(pytree.tree_map(lambda _: PH, a) for a in args)
        made = dispatch_trace(shown, tracer, concrete_args=places)
        if env is not None:
            made.shape_env = env
        return made

    return traced


def _mode_of(args: Any) -> FakeTensorMode | None:
    """The mode of the fakes among the arguments."""
    for x in pytree.tree_leaves(args):
        if isinstance(x, FakeTensor):
            return x.fake_mode
    return None


def _fakes(mode: FakeTensorMode, args: Any, env: ShapeEnv | None) -> Any:
    """The arguments with fakes for tensors and, with an environment, symbols for numbers."""

    def fake(i: int, x: Any) -> Any:
        if isinstance(x, Tensor):
            return mode.from_tensor(x, source=f"args[{i}]")
        if env is not None and type(x) is int and x not in (0, 1):
            return env.duck_symint(x, f"args[{i}]")  # type: ignore[attr-defined]
        return x

    leaves, spec = pytree.tree_flatten(args)
    return pytree.tree_unflatten([fake(i, x) for i, x in enumerate(leaves)], spec)


def get_isolated_graphmodule(
    func: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    tracing_mode: str = "real",
    decomposition_table: Mapping[OpOverload, Callable[..., Any]] | None = None,
) -> GraphModule:
    """The graph of a call, traced by itself, though another trace is running."""
    every, spec = pytree.tree_flatten((args, kwargs))

    def wrapped(flat: list[Any]) -> Any:
        a, k = pytree.tree_unflatten(flat, spec)
        return func(*a, **k)

    with _disable_current_modes():
        return make_fx(wrapped, decomposition_table, tracing_mode)(every)

"""Running a module on fake tensors, and the graph of what it ran.

Composite operators are noted whole, above autograd. What the module holds becomes inputs of the
graph: parameters, buffers, and the tensors it finds elsewhere, the constants.

Source: https://docs.pytorch.org/docs/2.13/export.html
"""

from __future__ import annotations

import builtins
import re
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from torchlab._core.tensor import Tensor
from torchlab._dynamo.exc import UserError, UserErrorType
from torchlab._subclasses.fake_tensor import (
    DataDependentOutputException,
    DynamicOutputShapeException,
    FakeTensor,
    FakeTensorMode,
)
from torchlab.compiler.capture import STATE
from torchlab.export.dynamic_shapes import Symbols, specifications
from torchlab.export.graph_signature import InputKind
from torchlab.fx.experimental._shape_env import ShapeEnv
from torchlab.fx.experimental.proxy_tensor import ProxyTorchDispatchMode, PythonKeyTracer
from torchlab.fx.experimental.symbolic_shapes import SymTypes
from torchlab.fx.graph import Graph
from torchlab.fx.node import Node
from torchlab.fx.proxy import Proxy
from torchlab.nn.module import Module
from torchlab.nn.modules.module import (
    register_module_forward_hook,
    register_module_forward_pre_hook,
)
from torchlab.utils import _pytree as pytree

_PACKAGE = __name__.partition(".")[0]


@dataclass
class Held:
    """A tensor that the module holds: its kind, its name there, whether it is in the state dict."""

    kind: InputKind
    target: str
    value: Tensor
    persistent: bool | None = None


@dataclass
class Traced:
    """A graph with all that is known of its inputs and outputs."""

    graph: Graph
    held: list[tuple[Node, Held]]
    users: list[tuple[Node, Any]]  # placeholders of the user's arguments with their example values
    outputs: list[Any]  # nodes and constants, flat
    in_spec: Any
    out_spec: Any
    symbols: Symbols
    mode: FakeTensorMode
    modules: dict[str, Module] = field(default_factory=dict)


class ExportTracer(PythonKeyTracer):
    """The tracer of an export: tensors that it does not know become inputs of the graph."""

    def __init__(self, root: Module) -> None:
        super().__init__()
        self.root = root
        self.graph = Graph(tracer_cls=PythonKeyTracer)
        self.module_stack: OrderedDict[str, tuple[str, Any]] = OrderedDict()
        self.held: list[tuple[Node, Held]] = []
        self.names = {id(m): n for n, m in root.named_modules()}
        self.mode: FakeTensorMode | None = None
        self._lifted = 0
        self._constants: dict[int, Node] = {}
        self._kept: list[Tensor] = []

    def create_node(self, *args: Any, **kwargs: Any) -> Node:
        """A node that knows in which modules it was run."""
        node = super().create_node(*args, **kwargs)
        if node.op == "call_function" and self.module_stack:
            node.meta.setdefault("nn_module_stack", self.module_stack.copy())
        return node

    def create_arg(self, a: Any) -> Any:
        """As ever, but a tensor that nobody knows is a constant of the module."""
        if isinstance(a, Tensor) and not isinstance(a, FakeTensor) and self.known(a) is None:
            return self.constant(a)
        return super().create_arg(a)

    def constant(self, t: Tensor) -> Node:
        """The placeholder of a tensor that the module found somewhere."""
        node = self._constants.get(id(t))
        if node is None:
            target = self._path_of(t)
            if target is None:
                target = f"lifted_tensor_{self._lifted}"
                self._lifted += 1
            held = Held(InputKind.CONSTANT_TENSOR, target, t)
            node = self._constants[id(t)] = self.placeholder(held, "c_")
            self._kept.append(t)
        return node

    def _path_of(self, t: Tensor) -> str | None:
        for prefix, m in self.root.named_modules():
            for name, value in m.__dict__.items():
                if value is t:
                    return f"{prefix}.{name}" if prefix else name
        return None

    def placeholder(self, held: Held, prefix: str) -> Node:
        """An input for a tensor of the module, before the user's."""
        name = prefix + re.sub(r"\W", "_", held.target).removeprefix("self_")  # as PyTorch does
        place = (
            self.graph.inserting_after(self.held[-1][0])
            if self.held
            else self.graph.inserting_before(None)
        )
        with place:
            node = self.graph.placeholder(name)
        self.held.append((node, held))
        if self.mode is not None and held.kind == InputKind.CONSTANT_TENSOR:
            node.meta["val"] = self.mode.from_tensor(held.value.detach(), static_shapes=True)
        return node


@contextmanager
def _stack_noted(tracer: ExportTracer) -> Iterator[None]:
    """The tracer knows which modules are running."""

    def enter(module: Module, args: Any) -> None:
        name = tracer.names.get(id(module))
        if name is not None:
            tracer.module_stack[name] = (name, type(module))

    def leave(module: Module, args: Any, result: Any) -> None:
        name = tracer.names.get(id(module))
        if name is not None:
            tracer.module_stack.pop(name, None)

    before = register_module_forward_pre_hook(enter)
    after = register_module_forward_hook(leave)
    try:
        yield
    finally:
        before.remove()
        after.remove()


class _State:
    """Fakes in the places of a module's parameters and buffers, and what stood there back."""

    def __init__(self, root: Module, fake: Callable[[Tensor], Tensor]) -> None:
        self.held: list[tuple[Held, Tensor]] = []
        self.places: list[tuple[Any, str, Any, Any, str]] = []  # table, name, before, fake, path
        self.attributes: list[tuple[Module, str, dict[str, Any]]] = []
        made: dict[int, Tensor] = {}
        for tables, kind in (("_parameters", InputKind.PARAMETER), ("_buffers", InputKind.BUFFER)):
            for prefix, m in root.named_modules():
                table = getattr(m, tables)
                for name, t in table.items():
                    if t is None:
                        continue
                    path = f"{prefix}.{name}" if prefix else name
                    if id(t) not in made:
                        made[id(t)] = fake(t)
                    persistent = None
                    if kind == InputKind.BUFFER:
                        persistent = name not in m._non_persistent_buffers_set
                    self.held.append((Held(kind, path, t, persistent), made[id(t)]))
                    self.places.append((table, name, t, made[id(t)], path))
        for prefix, m in root.named_modules():
            own = {k: v for k, v in m.__dict__.items() if isinstance(v, Tensor)}
            self.attributes.append((m, prefix, own))

    def enter(self) -> None:
        """Put the fakes in."""
        for table, name, _, made, _ in self.places:
            table[name] = made

    def replaced(self) -> list[tuple[Tensor, Tensor]]:
        """(the fake that stood there, what the program put in its place) of buffers."""
        found = []
        for table, name, _, made, _ in self.places:
            now = table.get(name)
            if isinstance(now, Tensor) and now is not made:
                found.append((made, now))
        return found

    def leave(self) -> None:
        """Put back what was there, attributes too."""
        for table, name, before, _, _ in self.places:
            table[name] = before
        for m, _, own in self.attributes:
            for name in [k for k, v in m.__dict__.items() if isinstance(v, FakeTensor)]:
                if name in own:
                    m.__dict__[name] = own[name]
                else:
                    del m.__dict__[name]


def trace(
    mod: Module, args: tuple[Any, ...], kwargs: dict[str, Any], dynamic_shapes: Any
) -> Traced:
    """The graph of `mod(*args, **kwargs)`."""
    env = ShapeEnv()
    mode = FakeTensorMode(shape_env=env, allow_non_fake_inputs=True, export=True)
    symbols = Symbols(env)
    specs = specifications(mod, args, kwargs, dynamic_shapes)
    leaves, in_spec = pytree.tree_flatten((args, kwargs))
    assert len(leaves) == len(specs)
    tracer = ExportTracer(mod)
    proxies = ProxyTorchDispatchMode(tracer, "symbolic", True)
    proxies.direct = mode
    state = _State(mod, lambda t: mode.from_tensor(t.detach(), static_shapes=True))
    for held, made in state.held:
        prefix = "p_" if held.kind == InputKind.PARAMETER else "b_"
        node = tracer.placeholder(held, prefix)
        tracer.track(made, Proxy(node, tracer))
        if held.value.requires_grad:
            node.meta["val"].requires_grad_()
    fakes, users = [], []
    seen: dict[int, Any] = {}
    for value, (source, name, spec) in zip(leaves, specs, strict=True):
        name = re.sub(r"\W", "_", name)
        node = tracer.graph.placeholder(name)
        if hasattr(builtins, name):  # an argument may be called `input`
            node.name = node.target = name
        example: Any = value
        if isinstance(value, Tensor):
            sizes = symbols.sizes_of(value, spec, source)
            example = seen.get(id(value))
            if example is None:
                example = seen[id(value)] = mode.from_tensor(value.detach(), sizes=sizes)
            tracer.track(example, Proxy(node, tracer))
        elif spec is not None and spec.kind != "STATIC":
            example = symbols._hinted(value, spec, source)
            node.meta["val"] = example
        tracer.sizes.input(example, node)
        fakes.append(example)
        users.append((node, value))
    tracer.mode = mode
    fake_args, fake_kwargs = pytree.tree_unflatten(fakes, in_spec)
    state.enter()
    STATE.exporting += 1
    try:
        with _stack_noted(tracer), mode, proxies:
            out = mod(*fake_args, **fake_kwargs)
            for before, now in state.replaced():
                before.copy_(now)  # type: ignore[attr-defined]
    except (DataDependentOutputException, DynamicOutputShapeException) as error:
        raise _data_dependent(error, tracer) from error
    finally:
        STATE.exporting -= 1
        state.leave()
    flat, out_spec = pytree.tree_flatten(out)
    outputs = [_output(x, tracer) for x in flat]
    tracer.graph.output(tuple(outputs))
    return Traced(tracer.graph, tracer.held, users, outputs, in_spec, out_spec, symbols, mode)


def _output(x: Any, tracer: ExportTracer) -> Any:
    if isinstance(x, Tensor) or type(x) in SymTypes:
        return tracer.create_arg(x)
    if x is None or isinstance(x, (bool, int, float, str, complex)):
        return x
    raise UserError(
        UserErrorType.INVALID_OUTPUT,
        f"It looks like one of the outputs with type `{type(x)}` is not supported or"
        " pytree-flattenable. Exported graphs can return tensors, numbers, strings and None in"
        " containers that torch.utils._pytree knows: register the class with"
        " torch.export.register_dataclass or torch.utils._pytree.register_pytree_node",
    )


def _data_dependent(error: Any, tracer: ExportTracer) -> UserError:
    line = "unknown"
    at = error.__traceback__
    while at is not None:
        name = at.tb_frame.f_globals.get("__name__", "")
        if name.partition(".")[0] != _PACKAGE and not at.tb_frame.f_code.co_filename.startswith(
            "<"
        ):
            line = f"{at.tb_frame.f_code.co_filename}:{at.tb_lineno}"
        at = at.tb_next
    where = ".".join(list(tracer.module_stack)[-1:]) or "the module"
    kind = "shape" if isinstance(error, DynamicOutputShapeException) else "number"
    return UserError(
        UserErrorType.DYNAMIC_CONTROL_FLOW,
        f"{error.func} gives a {kind} that only the data can tell, and an exported graph holds for"
        f" all data (in {where}, {line}). Use torch.where, a mask or a fixed size instead",
    )


__all__ = ["ExportTracer", "Held", "Traced", "trace"]

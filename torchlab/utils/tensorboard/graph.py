"""The graph of a module for TensorBoard: the operators of one call, in the scopes of the modules.

The call runs under a dispatch mode that sees every operator with its tensors; hooks before and
after each module's forward tell the scope.
"""

from __future__ import annotations

import contextlib
from typing import Any

from tensorboard.compat.proto.attr_value_pb2 import AttrValue
from tensorboard.compat.proto.config_pb2 import RunMetadata
from tensorboard.compat.proto.graph_pb2 import GraphDef
from tensorboard.compat.proto.node_def_pb2 import NodeDef
from tensorboard.compat.proto.step_stats_pb2 import DeviceStepStats, StepStats
from tensorboard.compat.proto.tensor_shape_pb2 import TensorShapeProto
from tensorboard.compat.proto.versions_pb2 import VersionDef

from torchlab._core.pytree import tree_leaves
from torchlab._core.tensor import Tensor
from torchlab.autograd.grad_mode import no_grad
from torchlab.nn.module import Module
from torchlab.utils._python_dispatch import TorchDispatchMode


class _Recorder(TorchDispatchMode):
    """Collects a node for each operator."""

    pre_dispatch = True  # composites arrive whole: `linear`, not its product and sum

    def __init__(self, model: Module) -> None:
        super().__init__()
        self.nodes: list[NodeDef] = []
        self.of: dict[int, str] = {}  # tensor → the node that made it
        self.kept: list[Tensor] = []  # so that no address comes twice
        self.scopes = [type(model).__name__]
        self.states = {
            id(t): (name, t)
            for part in (model.named_parameters(), model.named_buffers())
            for name, t in part
        }
        self.paths = _paths(model)

    def made(self, t: Tensor, node: str) -> None:
        self.of[id(t)] = node
        self.kept.append(t)

    def source(self, t: Tensor) -> str:
        """The node that `t` comes from: an operator's, an input, a parameter or a constant."""
        found = self.of.get(id(t))
        if found is not None:
            return found
        state = self.states.get(id(t))
        if state is not None:
            name, op = self.scope_of(state[0]), "prim::GetAttr"
        else:
            name, op = f"{self.scopes[-1]}/constant_{len(self.nodes)}", "prim::Constant"
        self.nodes.append(_node(name, op, [], "", [t]))
        self.made(t, name)
        return name

    def scope_of(self, dotted: str) -> str:
        """The scope of a parameter's name, of the module that has it."""
        owner, _, leaf = dotted.rpartition(".")
        inner = "".join(f"/{kind}[{part}]" for part, kind in self.paths[owner])
        return f"{self.scopes[0]}{inner}/{leaf}"

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        leaves = tree_leaves((args, kwargs))
        inputs = [self.source(x) for x in leaves if isinstance(x, Tensor)]
        numbers = [repr(x) for x in leaves if not isinstance(x, Tensor) and x is not None]
        result = func(*args, **kwargs)
        outputs = [x for x in tree_leaves(result) if isinstance(x, Tensor)]
        kind = str(func).rpartition(".")[0].replace(".", "::")  # aten.add.Tensor → aten::add
        name = f"{self.scopes[-1]}/{kind.rpartition('::')[2]}_{len(self.nodes)}"
        self.nodes.append(_node(name, kind, inputs, f"{{{', '.join(numbers)}}}", outputs))
        for t in outputs:
            self.made(t, name)
        return result


def _node(name: str, op: str, inputs: list[str], attr: str, outputs: list[Tensor]) -> NodeDef:
    shapes = [
        TensorShapeProto(dim=[TensorShapeProto.Dim(size=n) for n in t.shape]) for t in outputs
    ]
    return NodeDef(
        name=name.encode(), op=op, input=inputs,
        attr={
            "attr": AttrValue(s=attr.encode()),
            "_output_shapes": AttrValue(list=AttrValue.ListValue(shape=shapes)),
        },
    )  # fmt: skip


def graph(model: Module, args: Any, verbose: bool = False) -> tuple[GraphDef, RunMetadata]:
    """(the graph of `model(*args)` in eval mode, what TensorBoard wants beside it). `args`: a
    tensor or a tuple. An error of the call is printed and raised."""
    args = args if isinstance(args, (tuple, list)) else (args,)
    recorder = _Recorder(model)
    for i, x in enumerate(x for x in tree_leaves(args) if isinstance(x, Tensor)):
        name = f"input/{i}" if len(args) > 1 else "input/x"
        recorder.nodes.append(_node(name, "IO Node", [], "", [x]))
        recorder.made(x, name)
    training = {m: m.training for m in model.modules()}
    with contextlib.ExitStack() as stack:
        model.eval()
        stack.callback(_restore, training)
        for name, module in model.named_modules():
            if name:
                _follow(module, name.rpartition(".")[2], recorder, stack)
        stack.enter_context(no_grad())
        stack.enter_context(recorder)
        try:
            result = model(*args)
        except Exception as error:
            print(error)
            print("Error occurs, No graph saved")
            raise
    for i, t in enumerate(x for x in tree_leaves(result) if isinstance(x, Tensor)):
        recorder.nodes.append(
            _node(f"output/output.{i + 1}", "IO Node", [recorder.source(t)], "", [t])
        )
    if verbose:
        print(recorder.nodes)
    stats = RunMetadata(step_stats=StepStats(dev_stats=[DeviceStepStats(device="/device:CPU:0")]))
    return GraphDef(node=recorder.nodes, versions=VersionDef(producer=22)), stats


def _restore(training: dict[Module, bool]) -> None:
    for module, was in training.items():
        module.training = was


def _paths(model: Module) -> dict[str, list[tuple[str, str]]]:
    """The names of all modules, part by part, with the class that each part is."""
    classes = {name: type(m).__name__ for name, m in model.named_modules()}
    found: dict[str, list[tuple[str, str]]] = {}
    for name in classes:
        parts = name.split(".") if name else []
        found[name] = [(p, classes[".".join(parts[: i + 1])]) for i, p in enumerate(parts)]
    return found


def _follow(module: Module, part: str, recorder: _Recorder, stack: contextlib.ExitStack) -> None:
    """Let the recorder's scope be the module's while it runs."""

    def enter(m: Any, args: Any) -> None:
        recorder.scopes.append(f"{recorder.scopes[-1]}/{type(m).__name__}[{part}]")

    def leave(m: Any, args: Any, result: Any) -> None:
        recorder.scopes.pop()

    stack.callback(module.register_forward_pre_hook(enter).remove)
    stack.callback(module.register_forward_hook(leave, always_call=True).remove)


__all__ = ["graph"]

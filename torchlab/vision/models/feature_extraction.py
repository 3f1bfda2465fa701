"""Models that give what is in the middle of other models, found by tracing.

    names, _ = get_graph_node_names(resnet18())    # ["x", "conv1", …, "layer1.0.add", …, "fc"]
    body = create_feature_extractor(resnet18(), {"layer1": "fine", "layer4": "coarse"})
    body(images)                                   # {"fine": …, "coarse": …}

Source: https://docs.pytorch.org/vision/0.28/feature_extraction.html
"""

from __future__ import annotations

import inspect
import math
import re
import warnings
from collections.abc import Callable
from itertools import chain
from typing import Any

from torchlab import fx, nn
from torchlab.fx.graph_module import _copy_attr
from torchlab.vision import ops


class LeafModuleAwareTracer(fx.Tracer):
    """A tracer that does not look into modules of the classes `leaf_modules`."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self.leaf_modules: dict[type[nn.Module], Any] = dict.fromkeys(
            kwargs.pop("leaf_modules", ())
        )
        super().__init__(*args, **kwargs)

    def is_leaf_module(self, m: nn.Module, module_qualname: str) -> bool:  # type: ignore[override]  # torchvision's name
        if isinstance(m, tuple(self.leaf_modules)):
            return True
        return super().is_leaf_module(m, module_qualname)


class NodePathTracer(LeafModuleAwareTracer):
    """A tracer that knows the path of each node, `node_to_qualname`: of the module for the call of
    one ("layer1.0.conv1"), else of the module around it and the operation ("layer1.0.add"). What
    comes again within a module is counted: "layer1.0.relu", "layer1.0.relu_1"."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.current_module_qualname = ""
        self.node_to_qualname: dict[fx.Node, str] = {}

    def call_module(self, m: nn.Module, forward: Callable[..., Any], args: Any, kwargs: Any) -> Any:
        around = self.current_module_qualname
        try:
            path = self.path_of_module(m)
            self.current_module_qualname = path
            if not self.is_leaf_module(m, path):
                return forward(*args, **kwargs)
            return self.create_proxy("call_module", path, args, kwargs)
        finally:
            self.current_module_qualname = around

    def create_proxy(
        self, kind: str, target: Any, args: Any, kwargs: Any, name: str | None = None,
        type_expr: Any = None, *rest: Any,
    ) -> Any:  # fmt: skip
        proxy = super().create_proxy(kind, target, args, kwargs, name, type_expr, *rest)
        path = self._get_node_qualname(self.current_module_qualname, proxy.node)
        self.node_to_qualname[proxy.node] = path
        return proxy

    def _get_node_qualname(self, module_qualname: str, node: fx.Node) -> str:
        path = module_qualname
        if node.op != "call_module":
            # the graph counts names in all of it; here they are counted within the module
            name = str(node)
            path = f"{path}.{name}" if path else name
            if re.fullmatch(r".+_[0-9]+", name):
                path = path.rsplit("_", 1)[0]
        same = re.compile(re.escape(path) + r"(?:_([0-9]+))?")
        for known in reversed(self.node_to_qualname.values()):
            found = same.fullmatch(known)
            if found:
                return f"{path}_{int(found[1] or 0) + 1}"
        return path


def _within(part: list[str], whole: list[str]) -> bool:
    """Whether `part` is `whole` with some left out."""
    rest = iter(whole)
    return all(name in rest for name in part)


def _warn_graph_differences(train: NodePathTracer, evaluation: NodePathTracer) -> None:
    names = [list(t.node_to_qualname.values()) for t in (train, evaluation)]
    if names[0] == names[1]:
        return
    if _within(names[0], names[1]):
        text = (
            "NOTE: The nodes obtained by tracing the model in train mode are a subsequence of those"
            " obtained in eval mode. "
        )
    elif _within(names[1], names[0]):
        text = (
            "NOTE: The nodes obtained by tracing the model in eval mode are a subsequence of those"
            " obtained in train mode. "
        )
    else:
        text = (
            "The nodes obtained by tracing the model in train mode are different to those obtained"
            " in eval mode. "
        )
    warnings.warn(
        text + "When choosing nodes for feature extraction, you may need to specify output nodes"
        " for train and eval mode separately.",
        stacklevel=3,
    )


def _traced(
    model: nn.Module, training: bool, tracer_kwargs: dict[str, Any] | None,
    concrete_args: dict[str, Any] | None,
) -> tuple[NodePathTracer, fx.GraphModule]:  # fmt: skip
    facts: dict[str, Any] = dict(tracer_kwargs or {})
    # the modules and functions of `torchvision.ops` are whole, whatever else shall be
    classes = [m for m in vars(ops).values() if inspect.isclass(m) and issubclass(m, nn.Module)]
    facts["leaf_modules"] = [*facts.get("leaf_modules", ()), *classes]
    facts["autowrap_modules"] = (*facts.get("autowrap_modules", ()), math, ops)
    tracer = NodePathTracer(**facts)
    graph = tracer.trace(model.train(training), concrete_args=concrete_args)
    return tracer, fx.GraphModule(tracer.root, graph)


def get_graph_node_names(
    model: nn.Module, tracer_kwargs: dict[str, Any] | None = None,
    suppress_diff_warning: bool = False, concrete_args: dict[str, Any] | None = None,
) -> tuple[list[str], list[str]]:  # fmt: skip
    """The paths of the nodes in training and in eval mode, in the order in which they run.

    tracer_kwargs: of NodePathTracer (leaf_modules, autowrap_functions …).
    concrete_args: arguments that are values, not to be traced. UserWarning if the modes differ.
    """
    training = model.training
    train, _ = _traced(model, True, tracer_kwargs, concrete_args)
    evaluation, _ = _traced(model, False, tracer_kwargs, concrete_args)
    model.train(training)
    if not suppress_diff_warning:
        _warn_graph_differences(train, evaluation)
    return list(train.node_to_qualname.values()), list(evaluation.node_to_qualname.values())


class DualGraphModule(fx.GraphModule):
    """A module with a graph for training and one for eval; `train` and `eval` change which runs."""

    def __init__(
        self, root: nn.Module, train_graph: fx.Graph, eval_graph: fx.Graph,
        class_name: str = "GraphModule",
    ) -> None:  # fmt: skip
        super().__init__(root, train_graph, class_name)
        for node in chain(train_graph.nodes, eval_graph.nodes):
            if node.op in ("get_attr", "call_module"):
                _copy_attr(root, self, node.target)
        self.train_graph = train_graph
        self.eval_graph = eval_graph
        self.train()

    def train(self, mode: bool = True) -> DualGraphModule:
        """Run the graph for training, or for eval."""
        if mode != self.training:
            self.graph = self.train_graph if mode else self.eval_graph
        return super().train(mode)


def _dictionary(nodes: list[str] | dict[str, str]) -> dict[str, str]:
    named = nodes if isinstance(nodes, dict) else {n: n for n in nodes}
    return {str(k): str(v) for k, v in named.items()}


def _with_outputs(graph: fx.Graph, tracer: NodePathTracer, wanted: dict[str, str]) -> None:
    """Let the graph give, under each name, the last node at or below a path."""
    available = list(tracer.node_to_qualname.values())
    for query in wanted:
        if not any(path == query or path.startswith(f"{query}.") for path in available):
            raise ValueError(
                f"node: '{query}' is not present in model. Hint: use `get_graph_node_names` to make"
                " sure the `return_nodes` you specified are present. It may even be that you need"
                " to specify `train_return_nodes` and `eval_return_nodes` separately."
            )
    (output,) = (node for node in graph.nodes if node.op == "output")
    graph.erase_node(output)
    rest, found = dict(wanted), {}
    nodes = list(graph.nodes)
    for node in reversed(nodes):
        path = tracer.node_to_qualname.get(node)
        if path is None:
            continue
        for query in rest:
            if path == query or path.startswith(f"{query}."):
                found[rest.pop(query)] = node
                break
    with graph.inserting_after(nodes[-1]):
        graph.output(dict(reversed(found.items())))
    graph.eliminate_dead_code()


def create_feature_extractor(
    model: nn.Module, return_nodes: list[str] | dict[str, str] | None = None,
    train_return_nodes: list[str] | dict[str, str] | None = None,
    eval_return_nodes: list[str] | dict[str, str] | None = None,
    tracer_kwargs: dict[str, Any] | None = None, suppress_diff_warning: bool = False,
    concrete_args: dict[str, Any] | None = None,
) -> fx.GraphModule:  # fmt: skip
    """A module with the model's parameters that gives a dict of what nodes give.

    return_nodes: paths as `get_graph_node_names` gives them, or of modules, for what they end with;
    as a dict with the names in the result. Of both modes, or `train_return_nodes` and
    `eval_return_nodes`. What the nodes do not need is left out. The rest: see
    `get_graph_node_names`. ValueError for paths that are not there, or other than these arguments.
    """
    if all(n is None for n in (return_nodes, train_return_nodes, eval_return_nodes)):
        raise ValueError(
            "Either `return_nodes` or `train_return_nodes` and `eval_return_nodes` together, should"
            " be specified"
        )
    if (train_return_nodes is None) ^ (eval_return_nodes is None):
        raise ValueError(
            "If any of `train_return_nodes` and `eval_return_nodes` are specified, then both should"
            " be specified"
        )
    if return_nodes is not None and train_return_nodes is not None:
        raise ValueError(
            "If `train_return_nodes` and `eval_return_nodes` are specified, then both should be"
            " specified"
        )
    wanted: Any = {True: train_return_nodes, False: eval_return_nodes}
    if return_nodes is not None:
        wanted = {True: return_nodes, False: return_nodes}
    training = model.training
    made = {}
    try:
        for mode in (True, False):
            made[mode] = _traced(model, mode, tracer_kwargs, concrete_args)
        for mode, (tracer, traced) in made.items():
            _with_outputs(traced.graph, tracer, _dictionary(wanted[mode]))
        if not suppress_diff_warning:
            _warn_graph_differences(made[True][0], made[False][0])
    finally:
        model.train(training)
    name = type(model).__name__
    graphs = (made[True][1].graph, made[False][1].graph)
    return DualGraphModule(model, *graphs, class_name=name).train(training)


__all__ = ["create_feature_extractor", "get_graph_node_names"]

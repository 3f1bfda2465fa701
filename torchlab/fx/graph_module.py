"""A module whose forward is a graph."""

from __future__ import annotations

import copy
import linecache
from itertools import count
from typing import Any

from torchlab._core.tensor import Parameter, Tensor
from torchlab.fx.graph import Graph
from torchlab.nn.module import Module

_number = count(1).__next__


class GraphModule(Module):
    """Runs a graph's generated code; `root`: the module (or a dict of paths) the graph's
    targets come from.

    `code` is the source that runs; after a change of `graph` call `recompile()`.
    """

    def __new__(cls, *args: Any, **kwargs: Any) -> GraphModule:
        # every instance has a class of its own, because every instance has its own forward
        own = type(cls.__name__, (cls,), {"__module__": cls.__module__, "_graph_module_class": cls})
        return object.__new__(own)

    def __init__(
        self, root: Module | dict[str, Any], graph: Graph, class_name: str = "GraphModule"
    ) -> None:
        super().__init__()
        type(self).__name__ = class_name
        if isinstance(root, Module):
            self.training = root.training
        for node in graph.nodes:
            if node.op in ("get_attr", "call_module"):
                _copy_attribute(root, self, node.target)
        self.graph = graph

    @property
    def graph(self) -> Graph:
        """The graph. Assigning one takes it over and recompiles."""
        return self.__dict__["_graph"]

    @graph.setter
    def graph(self, g: Graph) -> None:
        if not isinstance(g, Graph):
            raise AssertionError(f"Expected a Graph instance, but got {type(g)}")
        self.__dict__["_graph"] = g
        g.owning_module = self
        self.recompile()

    @property
    def code(self) -> str:
        """The source of `forward`."""
        return self.__dict__["_code"]

    def recompile(self) -> Any:
        """Generate `forward` anew from the graph; debuggers and tracebacks show its source."""
        made = self.graph.python_code("self")
        filename = f"<eval_with_key>.{_number()}"
        text = made.src
        linecache.cache[filename] = (len(text), None, text.splitlines(True), filename)
        scope: dict[str, Any] = dict(made.globals)
        exec(compile(text, filename, "exec"), scope)
        type(self).forward = scope["forward"]  # type: ignore[method-assign]
        self.__dict__["_code"] = text
        return made

    # fmt: skip
    def print_readable(
        self,
        print_output: bool = True,
        include_stride: bool = False,
        include_device: bool = False,
        colored: bool = False,
    ) -> str:
        """The code as a class, with the source line that each value came from; printed, and
        returned.
        """
        body = self.graph.python_code("self", verbose=True).src.strip("\n")
        text = f"class {type(self).__name__}(torch.nn.Module):\n" + "".join(
            f"    {line}\n" for line in body.split("\n")
        )
        if print_output:
            print(text)
        return text

    def add_submodule(self, target: str, m: Module) -> bool:
        """Put `m` at a path, making the modules on the way; False if something else stands
        there.
        """
        *prefix, last = target.split(".")
        at: Module = self
        for part in prefix:
            child = getattr(at, part, None)
            if child is None:
                child = Module()
                at.add_module(part, child)
            if not isinstance(child, Module):
                return False
            at = child
        at.add_module(last, m)
        return True

    def delete_submodule(self, target: str) -> bool:
        """Remove the submodule at a path; whether there was one."""
        *prefix, last = target.split(".")
        try:
            at = self.get_submodule(".".join(prefix))
        except AttributeError:
            return False
        if last not in at._modules:
            return False
        del at._modules[last]
        return True

    def delete_all_unused_submodules(self) -> None:
        """Remove the submodules that no node uses."""
        used: set[str] = set()
        for node in self.graph.nodes:
            if node.op in ("call_module", "get_attr"):
                parts = node.target.split(".")
                used.update(".".join(parts[:i]) for i in range(1, len(parts) + 1))
                if node.op == "call_module":
                    inner = self.get_submodule(node.target)
                    used.update(
                        f"{node.target}.{name}" for name, _ in inner.named_modules() if name
                    )
        for name in [name for name, _ in self.named_modules() if name and name not in used]:
            self.delete_submodule(name)

    def __deepcopy__(self, memo: dict[int, Any]) -> GraphModule:
        root = Module()
        root.training = self.training
        for name in ("_parameters", "_buffers", "_modules"):
            root.__dict__[name] = copy.deepcopy(self.__dict__[name], memo)
        for node in self.graph.nodes:
            if (
                node.op == "get_attr"
                and "." not in node.target
                and node.target not in (*root._parameters, *root._buffers, *root._modules)
            ):
                setattr(root, node.target, copy.deepcopy(getattr(self, node.target), memo))
        made = GraphModule(root, copy.deepcopy(self.graph), type(self).__name__)
        made.train(self.training) if self.training else None
        return made

    def __copy__(self) -> GraphModule:
        return GraphModule(self, copy.deepcopy(self.graph), type(self).__name__)

    def __str__(self) -> str:
        return (
            f"{super().__repr__()}\n\n{self.code}\n\n# To see more debug info, please use "
            "`graph_module.print_readable()`"
        )


def _copy_attribute(root: Module | dict[str, Any], to: Module, target: str) -> None:
    """Let `to` have what `root` has at a path."""
    if isinstance(root, dict):
        if target not in root:
            raise RuntimeError(
                f"Node referenced target {target} but that target was not provided in ``root``!"
            )
        value = root[target]
    else:
        value = root
        for part in target.split("."):
            if not hasattr(value, part):
                raise RuntimeError(
                    f"Node referenced target {target} but that attribute was not found "
                    "in the root module"
                )
            value = getattr(value, part)
    *prefix, last = target.split(".")
    at = to
    for part in prefix:
        child = at._modules.get(part)
        if child is None:
            child = Module()
            at.add_module(part, child)
        if hasattr(child, last) and part == prefix[-1]:
            return
        at = child
    if isinstance(value, Tensor) and not isinstance(value, Parameter):
        at.register_buffer(last, value)
    else:
        setattr(at, last, value)

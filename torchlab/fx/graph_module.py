"""A module whose forward is a graph.

Source: https://docs.pytorch.org/docs/2.13/fx.html#torch.fx.GraphModule
"""

from __future__ import annotations

import contextlib
import copy
import os
import sys
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from torchlab._core.tensor import Parameter, Tensor
from torchlab.fx._evaluation import (
    _exec_with_source,
    _format_import_block,
    _forward_from_src,
    shown_place,
)
from torchlab.fx.codegen import PythonCode, _PyTreeCodeGen
from torchlab.fx.graph import Graph
from torchlab.fx.node import Node
from torchlab.fx.to_folder import write_folder
from torchlab.nn.module import Module

__all__ = ["reduce_graph_module", "GraphModule"]

_retrace: list[Callable[[Module, Any], Graph]] = []  # the tracer puts itself here


def _copy_attr(from_module: Any, to_module: Any, target: str) -> None:
    """Let `to_module` have what `from_module` has at a path."""
    *prefix, field = target.split(".")
    for item in prefix:
        f = getattr(from_module, item)
        t = getattr(to_module, item, None)
        if f is t:  # the whole of it has been copied
            return
        if t is None:
            t = Module()
            setattr(to_module, item, t)
        from_module, to_module = f, t
    _put(to_module, field, getattr(from_module, field))


def _assign_attr(from_obj: Any, to_module: Any, target: str) -> None:
    """Put an object at a path of `to_module`."""
    *prefix, field = target.split(".")
    for item in prefix:
        t = getattr(to_module, item, None)
        if t is None:
            t = Module()
            setattr(to_module, item, t)
        to_module = t
    _put(to_module, field, from_obj)


def _put(module: Any, name: str, value: Any) -> None:
    if isinstance(value, Tensor) and not isinstance(value, Parameter):
        module.register_buffer(name, value)
    else:
        setattr(module, name, value)


class _CodeOnlyModule(Module):
    """A module with the attributes of another one, for building a GraphModule from."""

    def __init__(self, body: dict[str, Any]) -> None:
        super().__init__()
        self.__dict__ = body


def reduce_graph_module(body: dict[str, Any], import_block: str) -> Module:
    """The GraphModule of a pickle: its code is traced anew, and its attributes come back."""
    fn_src = body.get("_code") or body["code"]
    forward = _forward_from_src(import_block + fn_src, {})
    return _deserialize_graph_module(forward, body)


def _deserialize_graph_module(
    forward: Callable[..., Any], body: dict[str, Any], graph_module_cls: Any = None
) -> Module:
    _CodeOnlyModule.forward = forward  # type: ignore[method-assign]
    graphmodule_cls = graph_module_cls or body.pop("_graphmodule_cls_", None) or GraphModule
    class_name = body.pop("_graphmodule_cls_name", graphmodule_cls.__name__)
    com = _CodeOnlyModule(body)
    graph = _retrace[0](com, com.__dict__.get("_tracer_cls"))
    graph._tracer_extras = com.__dict__.get("_tracer_extras")
    gm: Any = graphmodule_cls(com, graph, class_name=class_name)
    for k, v in body.items():
        if not hasattr(gm, k):
            setattr(gm, k, v)
    return gm  # type: ignore[no-any-return]


class _WrappedCall:
    """The call of a GraphModule: an error in the generated code is told with the line."""

    def __init__(self, cls: type, cls_call: Callable[..., Any] | None) -> None:
        self.cls = cls
        self.cls_call = cls_call

    @staticmethod
    def _generate_error_message(frame_summary: traceback.FrameSummary) -> str:
        return shown_place(frame_summary)

    def __call__(self, obj: Any, *args: Any, **kwargs: Any) -> Any:
        try:
            if self.cls_call is not None:
                return self.cls_call(obj, *args, **kwargs)
            own: Any = self.cls
            return super(own, obj).__call__(*args, **kwargs)  # type: ignore[misc]
        except Exception as e:
            frames = traceback.extract_tb(e.__traceback__)
            generated = [f for f in frames if "eval_with_key" in f.filename]
            if generated and not hasattr(e, "_told"):
                setattr(e, "_told", True)  # once, where graphs are nested  # noqa: B010
                print(self._generate_error_message(generated[-1]), file=sys.stderr)
            raise


class GraphModule(Module):
    """Runs a graph's generated code; `root`: the module (or a dict of paths) the graph's targets
    come from.

    `code` is the source that runs; after a change of `graph` call `recompile()`.
    """

    def __new__(cls, *args: Any, **kwargs: Any) -> GraphModule:
        # every instance has a class of its own, because every instance has its own forward
        base: Any = next(
            t for t in cls.__mro__ if t.__qualname__.split(".")[-1] != "GraphModuleImpl"
        )
        own = type("GraphModuleImpl", (base,), {"__module__": __name__})
        own.__qualname__ = "GraphModule.__new__.<locals>.GraphModuleImpl"
        return object.__new__(own)

    def __init__(
        self, root: Module | dict[str, Any], graph: Graph, class_name: str = "GraphModule"
    ) -> None:
        super().__init__()
        type(self).__name__ = class_name
        targets = [n.target for n in graph.nodes if n.op in ("get_attr", "call_module")]
        if isinstance(root, Module):
            if hasattr(root, "training"):
                self.training = root.training
            for target in targets:
                _copy_attr(root, self, target)
        elif isinstance(root, dict):
            for node in graph.nodes:
                if node.op in ("get_attr", "call_module") and node.target not in root:
                    raise RuntimeError(
                        f"Node {node} referenced target {node.target} but that target was not "
                        "provided in ``root``!"
                    )
            for target in sorted(targets, key=lambda t: t.count(".")):
                _assign_attr(root[target], self, target)
        else:
            raise RuntimeError(f"Unsupported type {root} passed for root!")
        self.graph = graph
        tracer_cls = graph._tracer_cls
        keep = tracer_cls is not None and "<locals>" not in tracer_cls.__qualname__
        self._tracer_cls = tracer_cls if keep else None
        self._tracer_extras = graph._tracer_extras or {}
        self.meta: dict[str, Any] = {}
        self._replace_hooks: list[Callable[..., Any]] = []
        self._create_node_hooks: list[Callable[..., Any]] = []
        self._erase_node_hooks: list[Callable[..., Any]] = []
        self._deepcopy_hooks: list[Callable[..., Any]] = []

    # ---- graph and code --------------------------------------------------------------------------

    @property
    def graph(self) -> Graph:
        """The graph. Assigning one takes it over and recompiles."""
        return self.__dict__["_graph"]  # type: ignore[no-any-return]

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
        if "_code" not in self.__dict__:
            raise RuntimeError("Code has not been generated! Please report a bug")
        return self.__dict__["_code"]  # type: ignore[no-any-return]

    def recompile(self) -> PythonCode:
        """Generate `forward` anew from the graph; debuggers and tracebacks show its source."""
        gen = self.graph._codegen
        if isinstance(gen, _PyTreeCodeGen):
            self._in_spec = gen.pytree_info.in_spec
            self._out_spec = gen.pytree_info.out_spec
        made = self.graph.python_code("self")
        state = self.__dict__
        state["_code"] = made.src
        state["_lineno_map"], state["_prologue_start"] = made._lineno_map, made._prologue_start
        cls: Any = type(self)
        cls.forward = _forward_from_src(made.src, made.globals, self.graph._co_fields)
        if "_wrapped_call" not in vars(cls):
            cls._wrapped_call = _WrappedCall(cls, vars(cls).get("__call__"))

            def call_wrapped(self: Any, *args: Any, **kwargs: Any) -> Any:
                return self._wrapped_call(self, *args, **kwargs)

            cls.__call__ = call_wrapped
        return made

    def print_readable(
        self,
        print_output: bool = True,
        include_stride: bool = False,
        include_device: bool = False,
        colored: bool = False,
        *,
        fast_sympy_print: bool = False,
        expanded_def: bool = False,
        additional_meta: list[str] | None = None,
    ) -> str:
        """The code as a class, with the source line that each value came from and, where they are
        known, dtypes and shapes; printed, and returned. Graph modules inside follow it."""
        body = self.graph.python_code(
            "self",
            verbose=True,
            include_stride=include_stride,
            include_device=include_device,
            colored=colored,
            expanded_def=expanded_def,
            additional_meta=additional_meta,
        ).src.lstrip("\n")
        text = _indented(f"class {type(self).__name__}(torch.nn.Module):\n" + _indented(body, 4), 0)
        for name, child in self.named_children():
            if isinstance(child, GraphModule):
                inner = child.print_readable(
                    False, include_stride, include_device, colored, expanded_def=expanded_def
                )
                inner = inner.replace(f"class {type(child).__name__}(", f"class {name}(", 1)
                text += "\n" + _indented(inner, 4)
        if print_output:
            print(text)
        return text

    def to_folder(self, folder: str | os.PathLike[str], module_name: str = "FxModule") -> None:
        """Write the module as a package into a folder: its code, its parameters, its submodules."""
        write_folder(self, Path(folder), module_name)

    def __str__(self) -> str:
        return "\n".join(
            [
                super().__repr__(),
                self.code,
                "# To see more debug info, please use `graph_module.print_readable()`",
            ]
        )

    # ---- submodules ------------------------------------------------------------------------------

    def add_submodule(self, target: str, m: Module) -> bool:
        """Put `m` at a path, making the modules on the way; False if something else stands
        there."""
        *prefix, last = target.split(".")
        at: Any = self
        for part in prefix:
            child = getattr(at, part, None)
            if child is None:
                child = Module()
                setattr(at, part, child)
            if not isinstance(child, Module):
                return False
            at = child
        at.add_module(last, m)
        return True

    def delete_submodule(self, target: str) -> bool:
        """Remove the submodule at a path; whether there was one."""
        *prefix, last = target.split(".")
        at: Any = self
        for part in prefix:
            at = getattr(at, part, None)
            if not isinstance(at, Module):
                return False
        if not isinstance(getattr(at, last, None), Module):
            return False
        delattr(at, last)
        return True

    def delete_all_unused_submodules(self) -> None:
        """Remove the submodules that no node uses."""
        used: set[str] = set()
        for node in self.graph.nodes:
            if node.op not in ("call_module", "get_attr"):
                continue
            parts = node.target.split(".")
            used.update(".".join(parts[:i]) for i in range(1, len(parts) + 1))
            if node.op == "call_module":
                try:
                    inner = self.get_submodule(node.target)
                except AttributeError:
                    continue
                used.update(f"{node.target}.{name}" for name, _ in inner.named_modules() if name)
        for name in [name for name, _ in self.named_modules() if name and name not in used]:
            self.delete_submodule(name)

    # ---- copies ----------------------------------------------------------------------------------

    def __reduce__(self) -> Any:
        body = self.__dict__.copy()
        made = self.graph.python_code("self")
        import_block = _format_import_block(made.globals)
        del body["_graph"]
        body["_code"] = made.src
        body["_graphmodule_cls_name"] = type(self).__name__
        return reduce_graph_module, (body, import_block)

    def _deepcopy_init(self) -> Callable[..., None]:
        return GraphModule.__init__

    def __deepcopy__(self, memo: dict[int, Any]) -> GraphModule:
        made: Any = type(self).__new__(type(self))
        memo[id(self)] = made
        hooks = {k: list(self.__dict__[k]) for k in _HOOKS}
        plain = {k: v for k, v in self.__dict__.items() if k not in _HOOKS}
        fake = _CodeOnlyModule(copy.deepcopy(plain, memo))
        self._deepcopy_init()(made, fake, fake.__dict__["_graph"])  # its name is GraphModule again
        for hook in hooks["_deepcopy_hooks"]:
            hook(made)
        for name in (*_KEPT, *_HOOKS):
            value = hooks.get(name, fake.__dict__.get(name))
            if value is not None:
                made.__dict__[name] = value
        made.meta = copy.copy(self.meta)
        return made  # type: ignore[no-any-return]

    def __copy__(self) -> GraphModule:
        made = GraphModule(self, self.graph, type(self).__name__)
        made.meta = copy.copy(self.meta)
        return made

    def _replicate_for_data_parallel(self) -> GraphModule:
        made = copy.copy(self)
        made._is_replica = True
        return made

    # ---- hooks -----------------------------------------------------------------------------------

    @contextlib.contextmanager
    def _set_replace_hook(self, f: Callable[..., Any]) -> Iterator[None]:
        """Inside, `f(old, new, user)` is told every input that is replaced."""
        self._register_replace_node_hook(f)
        try:
            yield
        finally:
            self._unregister_replace_node_hook(f)

    def _register_replace_node_hook(self, f: Callable[..., Any]) -> None:
        _checked(f)
        self._replace_hooks.append(f)

    def _unregister_replace_node_hook(self, f: Callable[..., Any]) -> None:
        self._replace_hooks.remove(f)

    def _register_create_node_hook(self, f: Callable[[Node], Any]) -> None:
        _checked(f)
        self._create_node_hooks.append(f)

    def _unregister_create_node_hook(self, f: Callable[[Node], Any]) -> None:
        self._create_node_hooks.remove(f)

    def _register_erase_node_hook(self, f: Callable[[Node], Any]) -> None:
        _checked(f)
        self._erase_node_hooks.append(f)

    def _unregister_erase_node_hook(self, f: Callable[[Node], Any]) -> None:
        self._erase_node_hooks.remove(f)

    def _register_deepcopy_hook(self, f: Callable[[GraphModule], Any]) -> None:
        _checked(f)
        self._deepcopy_hooks.append(f)

    def _unregister_deepcopy_hook(self, f: Callable[[GraphModule], Any]) -> None:
        self._deepcopy_hooks.remove(f)


_HOOKS = ("_replace_hooks", "_create_node_hooks", "_erase_node_hooks", "_deepcopy_hooks")
_KEPT = (
    "_state_dict_hooks", "_load_state_dict_pre_hooks", "_load_state_dict_post_hooks",
    "_forward_hooks", "_forward_hooks_with_kwargs", "_forward_hooks_always_called",
    "_forward_pre_hooks", "_forward_pre_hooks_with_kwargs", "_backward_hooks",
    "_backward_pre_hooks",
)  # fmt: skip


def _checked(f: Any) -> None:
    if not callable(f):
        raise AssertionError(f"hook must be a callable, got {type(f)}")


def _indented(text: str, n: int) -> str:
    pad = " " * n
    return "".join(f"{pad}{line}\n" if line.strip() else "\n" for line in text.rstrip().split("\n"))


__all__ += ["_exec_with_source", "_forward_from_src", "_WrappedCall"]

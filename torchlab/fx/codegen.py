"""A graph as Python source.

Source: https://docs.pytorch.org/docs/2.13/fx.html
"""

from __future__ import annotations

import builtins
import linecache
import re
import typing
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from torchlab._core.device import device
from torchlab._core.dispatch.generate.source import ident
from torchlab._core.pytree import TreeSpec, tree_flatten, tree_unflatten
from torchlab.fx._naming import _get_qualified_name, torch_path
from torchlab.fx.names import _custom_builtins, _Namespace
from torchlab.fx.node import Node, _type_repr
from torchlab.fx.source_text import BINARY, INPLACE, UNARY, value_text


@dataclass
class PythonCode:
    """`src`: the source; `globals`: the names it needs; `_lineno_map`: line of the body → number of
    the node in the graph."""

    src: str
    globals: dict[str, Any]
    _lineno_map: dict[int, int | None] | None
    _prologue_start: int = 0


class _PyTreeInfo(NamedTuple):
    """What the code of a graph with nested arguments needs: their names and structures."""

    orig_args: list[str]
    in_spec: TreeSpec
    out_spec: TreeSpec | None


class CodeGen:
    """How the source of a graph is written. Override what shall be different and give an instance
    to `Graph.set_codegen`."""

    def __init__(self) -> None:
        self._body_transformer: Callable[[list[str]], list[str]] | None = None
        self._func_name = "forward"

    def gen_fn_def(
        self,
        free_vars: list[str],
        maybe_return_annotation: str,
        *,
        expanded_def: bool = False,
    ) -> str:
        """The line with `def`; `free_vars` are the parameters as text."""
        if not free_vars or free_vars[0] != "self":
            free_vars = ["self", *free_vars]
        if expanded_def:
            inner = "".join(f"    {v},\n" for v in free_vars)
            return f"def {self._func_name}(\n{inner}){maybe_return_annotation}:"
        return f"def {self._func_name}({', '.join(free_vars)}){maybe_return_annotation}:"

    def generate_output(
        self,
        output_args: Any,
        *,
        descs: Sequence[str] | None = None,
        repr_fn: Callable[[object], str] | None = None,
    ) -> str:
        """The line with `return`."""
        return f"return {(repr_fn or repr)(output_args)}"

    def process_inputs(self, *args: Any) -> Any:
        """The values of the placeholders for the arguments of a call."""
        return args

    def process_outputs(self, outputs: Any) -> Any:
        """What a call returns for the value of the output node."""
        return outputs

    def additional_globals(self) -> list[tuple[str, Any]]:
        """(name, object) of globals that the overridden parts need."""
        return []

    def _gen_python_code(
        self,
        nodes: Any,
        root_module: str,
        namespace: _Namespace,
        *,
        verbose: bool = False,
        include_stride: bool = False,
        include_device: bool = False,
        colored: bool = False,
        expanded_def: bool = False,
        record_func: bool = False,
        additional_meta: list[str] | None = None,
    ) -> PythonCode:
        writer = _Writer(self, nodes, root_module, namespace)
        writer.verbose, writer.stride, writer.device = verbose, include_stride, include_device
        writer.colored, writer.expanded = colored, expanded_def
        writer.additional_meta = additional_meta or []
        return writer.write()


class _BoxedCodeGen(CodeGen):
    """The generated function takes one list and empties it, so that arguments are freed early."""

    def gen_fn_def(
        self,
        free_vars: list[str],
        maybe_return_annotation: str,
        *,
        expanded_def: bool = False,
    ) -> str:
        head = f"def {self._func_name}(self, args_list){maybe_return_annotation}:"
        names = [v.split(":")[0].split("=")[0].strip() for v in free_vars if v != "self"]
        unpack = f"\n    {', '.join(names)}, = args_list" if names else ""
        return f"{head}{unpack}\n    args_list.clear()"


class _PyTreeCodeGen(CodeGen):
    """The generated function takes nested arguments and gives nested results."""

    def __init__(self, pytree_info: _PyTreeInfo) -> None:
        super().__init__()
        self.pytree_info = pytree_info

    def process_inputs(self, *inputs: Any) -> Any:
        return tree_flatten(inputs)[0]

    def process_outputs(self, out: Any) -> Any:
        if self.pytree_info.out_spec is None:
            return out
        if not isinstance(out, (list, tuple)):
            out = [out]
        return tree_unflatten(list(out), self.pytree_info.out_spec)

    def gen_fn_def(
        self,
        free_vars: list[str],
        maybe_return_annotation: str,
        *,
        expanded_def: bool = False,
    ) -> str:
        own = self.pytree_info.orig_args
        given = list(own) if own and own[0] == "self" else ["self", *own]
        head = super().gen_fn_def(given, maybe_return_annotation, expanded_def=expanded_def)
        if not free_vars:
            return head
        names = [v.split(":")[0].split("=")[0].strip() for v in free_vars]
        typed = [v for v in free_vars if ":" in v]
        arguments = [v for v in own if v != "self"]
        lines = f"\n    {', '.join(names)}, = fx_pytree.tree_flatten_spec([{', '.join(arguments)}]"
        lines += ", self._in_spec)"
        if typed:
            lines = "\n    " + "; ".join(typed) + lines
        return head + lines

    def generate_output(
        self,
        output_args: Any,
        *,
        descs: Sequence[str] | None = None,
        repr_fn: Callable[[object], str] | None = None,
    ) -> str:
        text = (repr_fn or repr)(output_args)
        if self.pytree_info.out_spec is None:
            return f"return {text}"
        if not isinstance(output_args, (list, tuple)):
            text = f"[{text}]"
        return f"return pytree.tree_unflatten({text}, self._out_spec)"


class _Writer:
    """The writing of one graph's source."""

    def __init__(self, gen: CodeGen, nodes: Any, root: str, namespace: _Namespace) -> None:
        self.gen, self.nodes, self.root, self.names = gen, nodes, root, namespace
        self.verbose = self.stride = self.device = self.colored = self.expanded = False
        self.additional_meta: list[str] = []
        self.globals: dict[str, Any] = {}
        self.wrapped: dict[str, None] = {}
        self.free: list[str] = []
        self.returns = ""
        self.last_uses: dict[Node, list[Node]] = {}
        self.told: str | None = None

    def write(self) -> PythonCode:
        for name, builtin in _custom_builtins.items():
            self.bind(name, builtin.obj)
        self._find_last_uses()
        body: list[str] = []
        lineno: dict[int, int | None] = {}
        line = 0
        for i, node in enumerate(self.nodes):
            pieces = [f"{x}\n" for x in self._where_from(node)] if self.verbose else []
            pieces += self._node(node)
            for _ in range("".join(pieces).count("\n")):
                line += 1
                lineno[line] = i
            body += pieces
        if not body:
            body.append("pass\n")
        if self.gen._body_transformer is not None:
            body = self.gen._body_transformer(body)
        for name, value in self.gen.additional_globals():
            self.bind(name, value)
        head = self.gen.gen_fn_def(self.free, self.returns, expanded_def=self.expanded)
        wraps = "\n".join(f'torch.fx._symbolic_trace.wrap("{name}")' for name in self.wrapped)
        text = "\n".join("    " + line for line in "".join(body).split("\n"))
        before = f"\n{wraps}\n\n{head}"
        return PythonCode(f"{before}\n{text}", self.globals, lineno, before.count("\n") + 1)

    def _find_last_uses(self) -> None:
        seen: set[Node] = set()
        for node in reversed(list(self.nodes)):
            # in the order in which the arguments are written
            for n in node._input_nodes:
                if n not in seen:
                    seen.add(n)
                    self.last_uses.setdefault(node, []).append(n)

    # ---- lines -----------------------------------------------------------------------------------

    def _node(self, node: Node) -> list[str]:
        """Pieces of source: the statement, and what it lets go of at its end."""
        kind = f" : {self.type(node.type)}" if node.type is not None else self._shape(node)
        if node.op == "placeholder":
            default = f" = {self.value(node.args[0])}" if node.args else ""
            self.free.append(f"{node.target}{kind}{default}")
            raw = node.target.replace("*", "")
            return [f"{node.name} = {raw}\n"] if raw != node.name else []
        if node.op == "output":
            if node.type is not None:
                self.returns = f" -> {self.type(node.type)}"
            return [self.gen.generate_output(node.args[0], repr_fn=self.value), "\n"]
        drop = self._drop(node)
        if getattr(node.target, "__module__", None) == "_operator" and len(node.args) > 1:
            form = INPLACE.get(node.target.__name__)
            if form is not None and not node.kwargs:  # a statement; its value is the first operand
                text = form.format(*map(self.value, node.args))
                return [f"{text};  {node.name}{kind} = {self.value(node.args[0])}", f"{drop}\n"]
        return [f"{node.name}{kind} = {self._call(node)}", f"{drop}\n"]

    def _drop(self, node: Node) -> str:
        done = self.last_uses.get(node, [])
        names = [n.name for n in done]
        if not node.users:
            names.append(node.name)
        return f";  {' = '.join([*names, 'None'])}" if names else ""

    def _call(self, node: Node) -> str:
        args, kwargs = node.args, node.kwargs
        if node.op == "get_attr":
            return _format_target(self.root, node.target)
        if node.op == "call_module":
            return f"{_format_target(self.root, node.target)}({self._arguments(args, kwargs)})"
        if node.op == "call_method":
            owner = _format_target(self.value(args[0]), node.target)
            return f"{owner}({self._arguments(args[1:], kwargs)})"
        fn = node.target
        module = getattr(fn, "__module__", None)
        if module == "_operator" and fn.__name__ in BINARY and not kwargs and len(args) == 2:
            return BINARY[fn.__name__].format(*map(self.value, args))
        if module == "_operator" and fn.__name__ in UNARY and not kwargs and len(args) == 1:
            return UNARY[fn.__name__].format(*map(self.value, args))
        name = self.bind(_get_qualified_name(fn), fn)
        if name in self._wrapped_names():
            self.wrapped.setdefault(name)
        if (
            fn is builtins.getattr
            and len(args) == 2
            and isinstance(args[1], str)
            and args[1].isidentifier()
            and not kwargs
        ):
            return _format_target(self.value(args[0]), args[1])
        return f"{name}({self._arguments(args, kwargs)})"

    def _wrapped_names(self) -> set[str]:
        fns = self.globals
        return {k for k in fns if _is_wrapped(k, fns[k])}

    def _arguments(self, args: Any, kwargs: Any) -> str:
        given = [self.value(a) for a in args]
        given += [f"{k} = {self.value(v)}" for k, v in kwargs.items()]
        return ", ".join(given)

    def _where_from(self, node: Node) -> list[str]:
        """Comments that say which line of the user's a value comes from."""
        if node.op in ("placeholder", "output"):
            return []
        trace = node.stack_trace
        text = ""
        if trace:
            frames = [x.strip() for x in trace.strip().split("\n") if x.strip().startswith("File")]
            text = frames[-1] if frames else ""
            code = trace.strip().split("\n")[-1].strip()
            found = re.match(r'File "(.*)", line (\d+), in (.*)', text)
            if found is not None:
                text = f"# File: {found[1]}:{found[2]} in {found[3]}, code: {code}"
        elif node.meta.get("origin"):
            file, _, line = node.meta["origin"].rpartition(":")
            code = linecache.getline(file, int(line)).strip()
            text = f"# File: {file}:{line}, code: {code}"
        else:
            text = "# No stacktrace found for following nodes"
        if text == self.told or not text:
            return []
        first, self.told = self.told is None, text
        return [text] if first else ["", text]

    def _shape(self, node: Node) -> str:
        """`: "f32[2, 3]"`, where the value's shape is known and shall be shown."""
        if not self.verbose:
            return ""
        meta: Any = node.meta.get(
            "val", node.meta.get("tensor_meta", node.meta.get("example_value"))
        )
        if not (hasattr(meta, "dtype") and hasattr(meta, "shape")):
            return ""
        name = str(meta.dtype).removeprefix("torch.").removeprefix("torchlab.")
        text = f"{_ABBREVIATIONS.get(name, name)}{list(meta.shape)}"
        if self.stride:
            stride = getattr(meta, "stride", ())
            text += f"{list(stride() if callable(stride) else stride)}"
        if self.device and hasattr(meta, "device"):
            text += str(meta.device)
        return f': "{text}"'

    # ---- values ----------------------------------------------------------------------------------

    def value(self, v: Any) -> str:
        """An argument as source."""
        return value_text(v, self)

    def type(self, t: Any) -> str:
        """A type as source; its names become globals."""
        if t == ():
            return "()"
        name = _type_repr(t)
        if isinstance(t, str):
            return self.bind(name, t)
        origin = typing.get_origin(t)
        args = typing.get_args(t)
        if origin is not None and args:
            head = getattr(typing, getattr(t, "_name", None) or "", None)
            if origin is typing.Union:
                shown = self.bind("typing.Union", typing.Union)
            elif head is not None and name.startswith("typing."):
                shown = self.bind(f"typing.{t._name}", head)
            else:
                shown = self.bind(_type_repr(origin), origin)
            inner = [("..." if a is ... else self.type(a)) for a in args]
            return f"{shown}[{','.join(inner)}]"
        return self.bind(name, t)

    def bind(self, hint: str, obj: Any) -> str:
        """How the code calls an object: by its path if it is torchlab's own, else by a global."""
        if hint.startswith("torch.ops."):
            if hasattr(obj, "parsed") or hasattr(obj, "_qualified_op_name"):
                return hint
            hint = ident(obj)  # a declaration, which is not what `torch.ops` has
        elif obj is not device and torch_path(obj) is not None:
            return _get_qualified_name(obj) if callable(obj) else hint
        name = hint.replace(".", "_")
        if name in self.globals:
            if self.globals[name] is obj:
                return name
        elif any(other is obj for other in self.globals.values()):
            return next(k for k, other in self.globals.items() if other is obj)
        chosen = self.names.create_name(name, obj if _hashable(obj) else None)
        self.globals[chosen] = obj
        return chosen


_ABBREVIATIONS = {
    "float32": "f32", "float64": "f64", "float16": "f16", "bfloat16": "bf16", "complex64": "c64",
    "complex128": "c128", "int8": "i8", "int16": "i16", "int32": "i32", "int64": "i64",
    "uint8": "u8", "uint16": "u16", "uint32": "u32", "uint64": "u64", "bool": "b8",
    "float8_e4m3fn": "f8e4m3fn", "float8_e5m2": "f8e5m2", "complex32": "c32",
}  # fmt: skip

_is_wrapped_fn: list[Callable[[str, Any], bool]] = []  # the tracer puts its question here


def _is_wrapped(name: str, fn: Any) -> bool:
    return any(ask(name, fn) for ask in _is_wrapped_fn)


def _hashable(x: Any) -> bool:
    try:
        hash(x)
    except TypeError:
        return False
    return True


def _format_target(base: str, target: str) -> str:
    """`self.layers.0.weight` as Python: parts that are no identifiers go through getattr."""
    text = base
    for part in target.split("."):
        text = f"{text}.{part}" if part.isidentifier() else f'getattr({text}, "{part}")'
    return text

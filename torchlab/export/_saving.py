"""`torch.export.save` and `load`: a zip with the program as JSON and the tensors as bytes.

Nothing in such a file is run when it is read; pickles are not used. The format is torchlab's own:
PyTorch's `.pt2` files are another.

Source: https://docs.pytorch.org/docs/2.13/export.html#torch.export.save
"""

from __future__ import annotations

import json
import math
import os
import zipfile
from typing import IO, Any

import numpy as np

from torchlab._core.dispatch.compute import wrap
from torchlab._core.tensor import Parameter, Tensor
from torchlab._subclasses.fake_tensor import FakeTensorMode
from torchlab.export import graph_signature as signatures
from torchlab.export._codec import (
    Reader,
    Unsaved,
    dtypes,
    write_expr,
    write_known,
    write_size,
    write_spec,
    write_target,
    write_value,
)
from torchlab.export._constraints import ValueRanges
from torchlab.export.exported_program import (
    ExportedProgram,
    ModuleCallEntry,
    ModuleCallSignature,
)
from torchlab.export.graph_signature import (
    ExportGraphSignature,
    InputKind,
    InputSpec,
    OutputKind,
    OutputSpec,
)
from torchlab.fx.experimental._expressions import Expr, Symbol
from torchlab.fx.experimental._intervals import INF
from torchlab.fx.experimental._shape_env import Relation, ShapeEnv
from torchlab.fx.graph import Graph
from torchlab.fx.node import Node

FORMAT = 1
_ARGUMENTS: dict[str, Any] = {
    c.__name__: c
    for c in (
        signatures.TensorArgument, signatures.SymIntArgument, signatures.SymFloatArgument,
        signatures.SymBoolArgument, signatures.ConstantArgument,
    )
}  # fmt: skip

File = str | os.PathLike[str] | IO[bytes]


def save(
    ep: ExportedProgram,
    f: File,
    *,
    extra_files: dict[str, Any] | None = None,
    opset_version: dict[str, int] | None = None,
) -> None:
    """Write a program to a file or path. `extra_files`: name → string or bytes kept beside it.

    TypeError if `ep` is no ExportedProgram, ValueError for what the format has no form for: classes
    of the user's among arguments and results.
    """
    if not isinstance(ep, ExportedProgram):
        raise TypeError(
            "The 'ep' parameter must be an instance of 'ExportedProgram', got"
            f" '{type(ep).__name__}' instead."
        )
    try:
        text = json.dumps(_written(ep), allow_nan=False)
    except Unsaved as error:
        raise ValueError(f"torch.export.save: {error}") from None
    with zipfile.ZipFile(f, "w") as z:
        z.writestr("program.json", text)
        for part, tensors in (("state", ep.state_dict), ("constants", ep.constants)):
            facts = _facts_of(tensors)
            for i, t in enumerate(tensors.values()):
                if facts[i][-1] is not None:
                    continue  # it is another one under a second name
                z.writestr(f"{part}/{i}", np.ascontiguousarray(t.detach().cpu()._a).tobytes())
        for name, content in (extra_files or {}).items():
            z.writestr(f"extra/{name}", content)


def _written(ep: ExportedProgram) -> dict[str, Any]:
    symbols: dict[Symbol, None] = {}
    for node in ep.graph.nodes:
        _collect(node.meta.get("val"), symbols)
    for e in ep.range_constraints:
        symbols.update(dict.fromkeys(e.symbols))
    env = _environment(ep)
    call = ep.module_call_graph[0].signature
    assert call is not None
    return {
        "format": FORMAT,
        "symbols": [
            [s.name, env.var_to_val[s], *_bounds(env.var_to_range[s]), ep.dim_names.get(s)]
            for s in sorted(symbols, key=lambda s: s.key)
        ],
        "nodes": [_node(n) for n in ep.graph.nodes],
        "inputs": [
            [s.kind.name, *_argument(s.arg), s.target, s.persistent]
            for s in ep.graph_signature.input_specs
        ],
        "outputs": [
            [s.kind.name, *_argument(s.arg), s.target] for s in ep.graph_signature.output_specs
        ],
        "state": _facts_of(ep.state_dict),
        "constants": _facts_of(ep.constants),
        "ranges": [[write_expr(e), *_bounds((r.lower, r.upper))]
                   for e, r in ep.range_constraints.items()],
        "guards": [[g.kind, write_expr(g.expr)] for g in ep.guards],
        "checks": [[name, _check(known)] for name, known in ep.inputs],
        "in_spec": write_spec(call.in_spec),
        "out_spec": write_spec(call.out_spec),
        "names": call.forward_arg_names,
        "modules": [c.fqn for c in ep.module_call_graph[1:]],
    }  # fmt: skip


def _environment(ep: ExportedProgram) -> Any:
    for node in ep.graph.nodes:
        mode = getattr(node.meta.get("val"), "fake_mode", None)
        if mode is not None:
            return mode.shape_env
    return ShapeEnv()


def _collect(val: Any, symbols: dict[Symbol, None]) -> None:
    for x in val if isinstance(val, (list, tuple)) else (val,):
        parts = (*x.shape, *x.stride()) if isinstance(x, Tensor) else (x,)
        for n in parts:
            node = getattr(n, "node", None)
            if node is not None:
                symbols.update(dict.fromkeys(node.shape_env.simplify(node.expr).symbols))


def _bounds(r: tuple[Any, Any]) -> list[Any]:
    return [int(r[0]), None if r[1] == INF else int(r[1])]


def _node(n: Node) -> dict[str, Any]:
    made: dict[str, Any] = {"op": n.op, "name": n.name}
    if n.op == "call_function":
        made["target"] = write_target(n.target)
    if n.args:
        made["args"] = [write_value(a) for a in n.args]
    if n.kwargs:
        made["kwargs"] = {k: write_value(v) for k, v in n.kwargs.items()}
    if "val" in n.meta:
        made["val"] = write_known(n.meta["val"])
    if "origin" in n.meta:
        made["origin"] = n.meta["origin"]
    stack = n.meta.get("nn_module_stack")
    if stack:
        made["stack"] = [
            [k, path, t if isinstance(t, str) else f"{t.__module__}.{t.__qualname__}"]
            for k, (path, t) in stack.items()
        ]
    return made


def _argument(arg: Any) -> list[Any]:
    made = [type(arg).__name__, arg.name]
    return [*made, write_value(getattr(arg, "value", None))]


def _facts_of(tensors: dict[str, Any]) -> list[list[Any]]:
    """[name, dtype, shape, whether a parameter, requires_grad, the name of the same tensor before]
    of each."""
    first: dict[int, str] = {}
    found = []
    for name, t in tensors.items():
        same = first.get(id(t))
        first.setdefault(id(t), name)
        parameter = isinstance(t, Parameter)
        found.append([name, t.dtype.name, list(t.shape), parameter, t.requires_grad, same])
    return found


def _check(known: Any) -> Any:
    if isinstance(known, tuple):
        return {"sizes": [write_size(n) for n in known]}
    return {"size": write_size(known)} if isinstance(known, Expr) else {"value": write_value(known)}


# ---- reading -------------------------------------------------------------------------------------


def load(
    f: File,
    *,
    extra_files: dict[str, Any] | None = None,
    expected_opset_version: dict[str, int] | None = None,
) -> ExportedProgram:
    """Read a program that `save` wrote. The values of `extra_files` are filled in by name.

    ValueError if the file is none of torchlab's, or of a later format.
    """
    try:
        with zipfile.ZipFile(f) as z:
            if "program.json" not in z.namelist():
                raise ValueError("there is no program.json in it")
            data = json.loads(z.read("program.json"))
            if data.get("format") != FORMAT:
                raise ValueError(
                    f"its format is {data.get('format')}, this torchlab reads {FORMAT}"
                )
            tensors = {
                part: [
                    z.read(f"{part}/{i}") if facts[-1] is None else b""
                    for i, facts in enumerate(data[part])
                ]
                for part in ("state", "constants")
            }
            for name in extra_files or ():
                extra_files[name] = z.read(f"extra/{name}").decode()  # type: ignore[index]
    except (zipfile.BadZipFile, ValueError) as error:
        raise ValueError(
            f"torch.export.load: this is no program that torchlab's torch.export wrote: {error}"
        ) from None
    return _read(data, tensors)


def _read(data: dict[str, Any], tensors: dict[str, list[bytes]]) -> ExportedProgram:
    env = ShapeEnv()
    names: dict[Symbol, str] = {}
    symbols: dict[str, Symbol] = {}
    for name, hint, low, high, dim in data["symbols"]:
        s = symbols[name] = Symbol(name)
        env.var_to_val[s] = hint
        env.var_to_range[s] = (low, INF if high is None else high)
        env.var_to_sources[s] = []
        if dim is not None:
            names[s] = dim
    mode = FakeTensorMode(shape_env=env, allow_non_fake_inputs=True, export=True)
    r = Reader(symbols, mode)
    graph = Graph()
    for n in data["nodes"]:
        _add(graph, n, r)
    signature = ExportGraphSignature(
        [InputSpec(InputKind[k], _made(c, n, v, r), t, p) for k, c, n, v, t, p in data["inputs"]],
        [OutputSpec(OutputKind[k], _made(c, n, v, r), t) for k, c, n, v, t in data["outputs"]],
    )
    whole = ModuleCallSignature(
        [], [], r.spec(data["in_spec"]), r.spec(data["out_spec"]), data["names"]
    )
    return ExportedProgram(
        graph,
        signature,
        _tensors(data["state"], tensors["state"]),
        _tensors(data["constants"], tensors["constants"]),
        {r.expr(e): ValueRanges(low, INF if high is None else high)
         for e, low, high in data["ranges"]},
        [Relation(kind, r.expr(e)) for kind, e in data["guards"]],
        [ModuleCallEntry("", whole), *(ModuleCallEntry(m) for m in data["modules"])],
        [(name, _known(known, r)) for name, known in data["checks"]],
        None,
        names,
    )  # fmt: skip


def _add(graph: Graph, n: dict[str, Any], r: Reader) -> None:
    args = tuple(r.value(a) for a in n.get("args", ()))
    if n["op"] == "placeholder":
        node = graph.placeholder(n["name"])
    elif n["op"] == "output":
        node = graph.output(args[0])
    elif n["op"] == "call_function":
        kwargs = {k: r.value(v) for k, v in n.get("kwargs", {}).items()}
        node = graph.call_function(r.target(n["target"]), args, kwargs, name=n["name"])
    else:
        raise ValueError(f"torch.export.load: a node of the kind '{n['op']}'")
    if node.op != "output":
        node.name = n["name"]
    if node.op == "placeholder":
        node.target = n["name"]
    r.nodes[n["name"]] = node
    if "val" in n:
        node.meta["val"] = r.known(n["val"])
    if "origin" in n:
        node.meta["origin"] = n["origin"]
    if "stack" in n:
        node.meta["nn_module_stack"] = {k: (path, name) for k, path, name in n["stack"]}


def _made(cls: str, name: str, value: Any, r: Reader) -> Any:
    made = _ARGUMENTS[cls]
    return made(name, r.value(value)) if cls == "ConstantArgument" else made(name)


def _known(known: dict[str, Any], r: Reader) -> Any:
    ((kind, x),) = known.items()
    if kind == "sizes":
        return tuple(r.size(n) for n in x)
    return r.size(x) if kind == "size" else r.value(x)


def _tensors(facts: list[Any], contents: list[bytes]) -> dict[str, Tensor]:
    found: dict[str, Tensor] = {}
    types = dtypes()
    for (name, dtype, shape, parameter, requires_grad, same), content in zip(
        facts, contents, strict=True
    ):
        if same is not None:
            found[name] = found[same]
            continue
        d = types[dtype]
        if len(content) != math.prod(shape) * d.itemsize:
            raise ValueError(f"torch.export.load: the bytes of '{name}' are not those of {shape}")
        t = wrap(np.frombuffer(content, d.np).reshape(shape).copy())
        if parameter:
            found[name] = Parameter(t, requires_grad)
        else:
            found[name] = t.requires_grad_() if requires_grad else t  # type: ignore[assignment]
    return found


__all__ = ["load", "save"]

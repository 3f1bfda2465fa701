"""`torch.export.export`.

Source: https://docs.pytorch.org/docs/2.13/export.html#torch.export.export
"""

from __future__ import annotations

from typing import Any

from torchlab._core.tensor import Tensor
from torchlab._dynamo.exc import UserError, UserErrorType
from torchlab.export import _constraints
from torchlab.export._trace import Traced, trace
from torchlab.export.dynamic_shapes import Dim, ShapesCollection, combined
from torchlab.export.exported_program import (
    ExportedProgram,
    ModuleCallEntry,
    ModuleCallSignature,
)
from torchlab.export.graph_signature import (
    ConstantArgument,
    ExportGraphSignature,
    InputKind,
    InputSpec,
    OutputKind,
    OutputSpec,
    SymFloatArgument,
    SymIntArgument,
    TensorArgument,
)
from torchlab.fx.experimental._shape_env import Relation
from torchlab.fx.experimental._symbolic_numbers import SymFloat, SymInt
from torchlab.fx.node import Node
from torchlab.nn.module import Module


def export(
    mod: Module,
    args: tuple[Any, ...],
    kwargs: dict[str, Any] | None = None,
    *,
    dynamic_shapes: Any = None,
    strict: bool = False,
    preserve_module_call_signature: tuple[str, ...] = (),
    prefer_deferred_runtime_asserts_over_guards: bool = False,
) -> ExportedProgram:
    """The graph of `mod(*args, **kwargs)`, for all inputs of the same structure.

    Sizes are those of the example, but where `dynamic_shapes` says otherwise: a dict by argument
    name, or a tuple in their order; for each tensor a dict (dim → `Dim`, `Dim.AUTO`,
    `Dim.DYNAMIC`, `Dim.STATIC` or a number) or a sequence with an entry per dim; None for all as
    they are. The module runs once, on tensors without data; it is left as it was.

    Raises:
        torch._dynamo.exc.UserError: the program asks more of a size than was declared; its result
            depends on data in a way that no graph can hold; the arguments do not fit.
        ValueError: `mod` is no module.
        NotImplementedError: `strict`, or call signatures that are to be preserved.
    """
    if not isinstance(mod, Module):
        raise ValueError(f"Expected `mod` to be an instance of `torch.nn.Module`, got {type(mod)}.")
    if not isinstance(args, tuple):
        raise UserError(
            UserErrorType.INVALID_INPUT,
            f"Expecting `args` to be a tuple of example positional inputs, got {type(args)}",
        )
    if strict or preserve_module_call_signature or prefer_deferred_runtime_asserts_over_guards:
        raise NotImplementedError(
            "export: torchlab traces by running the module (strict=False), without module call"
            " signatures and with guards in place of run-time assertions"
        )
    kwargs = kwargs or {}
    if isinstance(dynamic_shapes, ShapesCollection):
        dynamic_shapes = dynamic_shapes.dynamic_shapes(mod, args, kwargs)
    traced = trace(mod, args, kwargs, dynamic_shapes)
    _constraints.check(traced.symbols)
    return _program(mod, traced, args, kwargs)


def _program(
    mod: Module, traced: Traced, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> ExportedProgram:
    env = traced.symbols.env
    inputs = [
        InputSpec(h.kind, TensorArgument(node.name), h.target, h.persistent)
        for node, h in traced.held
    ]
    shapes: list[tuple[str, Any]] = []
    for node, value in traced.users:
        val = node.meta.get("val")
        arg: Any = ConstantArgument(node.name, value)
        known: Any = value
        if isinstance(value, Tensor):
            arg = TensorArgument(node.name)
            known = tuple(_size(n) for n in val.shape)  # type: ignore[union-attr]
        elif type(val) is SymInt:
            known = _size(val)
            if not isinstance(known, int):
                arg = SymIntArgument(node.name)
        inputs.append(InputSpec(InputKind.USER_INPUT, arg, None))
        shapes.append((node.name, known))
    outputs = [OutputSpec(OutputKind.USER_OUTPUT, _output(x), None) for x in traced.outputs]
    state: dict[str, Any] = {}
    constants: dict[str, Any] = {}
    for _, h in traced.held:
        in_state = h.kind == InputKind.PARAMETER or h.persistent
        (state if in_state else constants)[h.target] = h.value
    names = list(combined(mod, args, kwargs))
    whole = ModuleCallSignature([], [], traced.in_spec, traced.out_spec, names)
    calls = [ModuleCallEntry("", whole)]
    calls += [ModuleCallEntry(name) for name, _ in mod.named_modules() if name]
    guards = [
        Relation(g.relation.kind, env.simplify(g.relation.expr))
        for g in _constraints.remaining(traced.symbols)
    ]
    return ExportedProgram(
        traced.graph,
        ExportGraphSignature(inputs, outputs),
        state,
        constants,
        _constraints.ranges_of(traced.symbols),
        guards,
        calls,
        shapes,
        (args, kwargs),
        _names(traced),
    )


def _names(traced: Traced) -> dict[Any, str]:
    """The names that the caller gave to sizes."""
    found = {}
    for s, (name, d) in traced.symbols.declared.items():
        given = name if isinstance(d, Dim) else d.name
        if given is not None:
            found[s] = given
    return found


def _size(n: Any) -> Any:
    """A size as an int or an expression."""
    if type(n) is not SymInt:
        return int(n)
    e = n.node.shape_env.simplify(n.node.expr)
    return e if e.constant is None else int(e.constant)


def _output(x: Any) -> Any:
    if not isinstance(x, Node):
        return ConstantArgument("", x)
    val = x.meta.get("val")
    if type(val) is SymInt:
        return SymIntArgument(x.name)
    return SymFloatArgument(x.name) if type(val) is SymFloat else TensorArgument(x.name)


__all__ = ["export"]

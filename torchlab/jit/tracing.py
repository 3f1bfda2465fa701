"""`torch.jit.trace`: a program as the calls that it makes for an example.

    traced = torch.jit.trace(model, torch.rand(1, 3, 224, 224))

The program runs once; every function of PyTorch's that it calls is noted, with the sizes that it
asks of tensors as values, not as constants: so the trace holds for other sizes. What Python decides
(branches, loops, numbers read from tensors) is fixed as it was, and where data or sizes decided it
a `TracerWarning` says so. Modules of `torch.nn` are noted whole.

Source: https://docs.pytorch.org/docs/2.13/generated/torch.jit.trace.html
"""

from __future__ import annotations

import contextlib
import inspect
import warnings
from collections.abc import Callable
from typing import Any

from torchlab._core.dispatch.registry import aten
from torchlab._core.tensor import Tensor
from torchlab.fx.node import Node
from torchlab.jit._state import STATE
from torchlab.jit.functions import ScriptFunction
from torchlab.jit.modules import ScriptModule
from torchlab.jit.tracing_check import (
    TracingCheckError,
    cloned,
    compare_outputs,
    compare_programs,
)
from torchlab.jit.tracing_leaves import whole
from torchlab.jit.tracing_modules import TopLevelTracedModule, TracedFunction, TracedModule
from torchlab.jit.tracing_patches import patched
from torchlab.jit.tracing_program import Program
from torchlab.jit.tracing_recorder import Recorder, _Mode
from torchlab.jit.tracing_tensors import TracerWarning, leaves, mapped, plain, warn
from torchlab.nn.module import Module

_OUTPUT = (
    "Only tensors, lists, tuples of tensors, or dictionary of tensors can be output from traced"
    " functions"
)
_CONTAINER = (
    "Encountering a {} at the output of the tracer might cause the trace to be incorrect, this is"
    " only valid if the container structure does not change based on the module's inputs. Consider"
    " using a constant container instead (e.g. for `list`, use a `tuple` instead. for `dict`, use a"
    " `NamedTuple` instead). If you absolutely need this and know the side effects, pass"
    " strict=False to trace() to allow this behavior."
)


class _Recorded:
    """A program and what was noted of it."""

    def __init__(self, program: Program, random: list[str]) -> None:
        self.program, self.random = program, random


def _inputs(recorder: Recorder, names: list[str], examples: list[Any]) -> list[Any]:
    """Placeholders; what the program sees for the examples."""
    seen = []
    with recorder.plainly():
        for name, example in zip(names, examples, strict=True):
            node = recorder.graph.create_node("placeholder", name, (), {}, name)
            seen.append(recorder.take(mapped(example, lambda t: _fresh(recorder, t)), node))
    return seen


def _fresh(recorder: Recorder, t: Tensor) -> Tensor:
    """An input as an object of its own: the same tensor may be given twice."""
    if id(t) in recorder.attributes or id(t) in recorder.fresh:
        t = aten.alias(t)
    recorder.fresh[id(t)] = t
    return t


def _output(recorder: Recorder, result: Any, strict: bool) -> Any:
    """The nodes of a result; RuntimeError for what a trace cannot give."""
    if result is None:
        raise RuntimeError(
            "The traced function didn't return any values! Side-effects are not captured in traces,"
            " so it would be a no-op."
        )
    if isinstance(result, Tensor):
        with recorder.plainly():
            return recorder.node(plain(result))
    if isinstance(result, tuple) and result:
        return tuple(_output(recorder, x, strict) for x in result)
    if isinstance(result, list) and result:
        if strict:
            warn(_CONTAINER.format("list"))
        return [_output(recorder, x, strict) for x in result]
    if isinstance(result, dict) and result:
        if strict:
            raise RuntimeError(_CONTAINER.format("dict"))
        return {k: _output(recorder, x, strict) for k, x in result.items()}
    raise RuntimeError(_OUTPUT)


def _record(
    run: Callable[..., Any],
    name: str,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    strict: bool,
    root: Module | None = None,
) -> _Recorded:
    names = _names(run, len(args), list(kwargs))
    examples = [*args, *kwargs.values()]
    if not all(isinstance(x, Tensor) for x in leaves(examples)):
        shown = ", ".join(_type_of(x) for x in examples)
        raise RuntimeError(
            f"Type 'Tuple[{shown}]' cannot be traced. Only Tensors and (possibly nested) Lists,"
            " Dicts, and Tuples of Tensors can be traced"
        )
    if STATE.recorder is not None:
        raise RuntimeError("torch.jit.trace: this thread is making a trace already")
    recorder = Recorder({} if root is None else _attributes(root))
    with patched(), contextlib.ExitStack() as stack:
        stack.callback(recorder.close)
        STATE.recorder = recorder
        stack.callback(lambda: setattr(STATE, "recorder", None))
        if root is not None:
            stack.enter_context(whole(root))
        seen = _inputs(recorder, names, examples)
        with _Mode(recorder):
            result = run(*seen[: len(args)], **dict(zip(kwargs, seen[len(args) :], strict=True)))
            found = _output(recorder, result, strict)
    recorder.graph.output(found)
    owner = "" if root is None else getattr(root, "original_name", type(root).__name__)
    structures = [mapped(x, lambda t: None) for x in examples]
    inputs = list(zip(names, structures, strict=True))
    program = Program(name, owner, inputs, recorder.graph, recorder.constants)
    return _Recorded(program, [_line(n) for n in recorder.random])


def _line(node: Node) -> str:
    file, line = node.meta["place"]
    return f"{node.format_node()} # {file}:{line}:0"


def _attributes(root: Module) -> dict[int, tuple[Tensor, str]]:
    found: dict[int, tuple[Tensor, str]] = {}
    for path, t in [
        *root.named_parameters(remove_duplicate=False),
        *root.named_buffers(remove_duplicate=False),
    ]:
        found.setdefault(id(t), (t, path))
    return found


def _type_of(x: Any) -> str:
    if isinstance(x, Tensor):
        return "Tensor"
    if isinstance(x, tuple):
        return f"Tuple[{', '.join(_type_of(v) for v in x)}]"
    if isinstance(x, list):
        return f"List[{_type_of(x[0]) if x else 'Tensor'}]"
    if isinstance(x, dict):
        value = next(iter(x.values()), None)
        return f"Dict[str, {_type_of(value)}]"
    return type(x).__name__


def _names(run: Callable[..., Any], n: int, keywords: list[str]) -> list[str]:
    """What the inputs are called."""
    names: list[str] = []
    try:
        parameters = list(inspect.signature(run).parameters.values())
    except (TypeError, ValueError):
        parameters = []
    for p in parameters:
        if p.kind is p.VAR_POSITIONAL:
            names += [f"{p.name}_{i}" if i else p.name for i in range(n - len(names))]
        elif p.kind is not p.KEYWORD_ONLY and p.kind is not p.VAR_KEYWORD:
            names.append(p.name)
    names = names[:n]
    names += [f"argument_{i + 1}" for i in range(len(names), n)]
    return names + keywords


def _examples(x: Any) -> tuple[Any, ...]:
    if isinstance(x, Tensor) or isinstance(x, dict):
        return (x,)
    return x if isinstance(x, tuple) else tuple(x)


def _function_name(fn: Any) -> str:
    name = getattr(fn, "__name__", None)
    if name is None:
        raise RuntimeError("Could not get name of python class object")
    return "_lambda" if name == "<lambda>" else name


def trace(
    func: Any,
    example_inputs: Any = None,
    optimize: Any = None,
    check_trace: bool = True,
    check_inputs: Any = None,
    check_tolerance: float = 1e-5,
    strict: bool = True,
    _force_outplace: bool = False,
    _module_class: Any = None,
    _compilation_unit: Any = None,
    example_kwarg_inputs: dict[str, Any] | None = None,
    _store_inputs: bool = True,
) -> Any:
    """What `func` does with the example inputs, as a function or module of its own.

    A module gives a `TopLevelTracedModule` with the same parameters and buffers. `strict`: dicts
    may not be results, and lists warn. `check_trace`: record again, with copies of the inputs (or
    with each of `check_inputs`); raises `TracingCheckError` if that differs, and warns if results
    do. RuntimeError for inputs and results that are no tensors or containers of tensors, and for
    what a trace cannot contain.
    """
    if isinstance(func, ScriptModule):
        warnings.warn(
            "The input to trace is already a ScriptModule, tracing it is a no-op. Returning the"
            " object as is.",
            stacklevel=2,
        )
        return func
    owner = getattr(func, "__self__", None)
    if isinstance(owner, Module):
        if func.__name__ != "forward":
            raise AttributeError(
                "trace doesn't support compiling individual module's functions.\nPlease use"
                " trace_module"
            )
        func = owner
    kwargs = example_kwarg_inputs or {}
    if example_inputs is None and example_kwarg_inputs is not None:
        example_inputs = ()
    elif example_inputs is None and isinstance(func, Module):
        raise RuntimeError("example_kwarg_inputs should be a dict")
    args = _examples(example_inputs)
    if isinstance(func, Module):
        made = _traced_module(
            func, {"forward": (args, kwargs)}, check_trace, {"forward": check_inputs},
            check_tolerance, strict,
        )  # fmt: skip
        return made
    name = _function_name(func)
    copies = cloned((args, kwargs))
    recorded = _record(func, name, args, kwargs, strict)
    traced = TracedFunction(recorded.program, func)
    if check_trace:
        for given, named in _checked(check_inputs, copies):
            copy = cloned((given, named))
            again = _record(func, name, copy[0], copy[1], strict)
            compare_programs(recorded.program, again.program)
            compare_outputs(traced, func, given, named, recorded.random, check_tolerance)
    return traced


def _checked(check_inputs: Any, copies: tuple[Any, Any]) -> list[tuple[Any, Any]]:
    if check_inputs is None:
        return [copies]
    return [(_examples(x), {}) for x in check_inputs]


def trace_module(
    mod: Module,
    inputs: dict[str, Any],
    optimize: Any = None,
    check_trace: bool = True,
    check_inputs: list[dict[str, Any]] | None = None,
    check_tolerance: float = 1e-5,
    strict: bool = True,
    _force_outplace: bool = False,
    _module_class: Any = None,
    _compilation_unit: Any = None,
    example_inputs_is_kwarg: bool = False,
    _store_inputs: bool = True,
) -> Any:
    """A module of which several methods are recorded; `inputs`: {method: example inputs}."""
    if not isinstance(mod, Module):
        raise AttributeError("expected torch.nn.Module as the first argument")
    if not isinstance(inputs, dict):
        raise AttributeError("expected a dictionary of (method_name, input) pairs")
    examples = {
        name: ((), x) if example_inputs_is_kwarg else (_examples(x), {})
        for name, x in inputs.items()
    }
    check = {
        name: None if check_inputs is None else [x[name] for x in check_inputs if name in x]
        for name in inputs
    }
    return _traced_module(mod, examples, check_trace, check, check_tolerance, strict)


def _traced_module(
    mod: Module,
    examples: dict[str, tuple[Any, Any]],
    check_trace: bool,
    check_inputs: dict[str, Any],
    tolerance: float,
    strict: bool,
) -> TopLevelTracedModule:
    made = TopLevelTracedModule(mod)
    for name, (args, kwargs) in examples.items():
        method = getattr(mod, name)
        run = mod if name == "forward" else method
        signed = _signed_as(method, run)
        copies = cloned((args, kwargs))
        recorded = _record(signed, name, args, kwargs, strict, mod)
        made._add(recorded.program)
        if not check_trace:
            continue
        for given, named in _checked(check_inputs[name], copies):
            copy = cloned((given, named))
            again = _record(signed, name, copy[0], copy[1], strict, mod)
            compare_programs(recorded.program, again.program)

            def traced(*a: Any, _name: str = name, **k: Any) -> Any:
                return made._run(_name, a, k)

            compare_outputs(traced, run, given, named, recorded.random, tolerance)
    return made


def _signed_as(method: Any, run: Any) -> Any:
    def call(*args: Any, **kwargs: Any) -> Any:
        return run(*args, **kwargs)

    call.__signature__ = inspect.signature(method)  # type: ignore[attr-defined]
    return call


__all__ = [
    "ScriptFunction", "TopLevelTracedModule", "TracedModule", "TracerWarning", "TracingCheckError",
    "trace", "trace_module",
]  # fmt: skip

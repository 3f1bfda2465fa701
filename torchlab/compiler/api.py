"""`torch.compile` and the public functions of `torch.compiler`.

Source: https://docs.pytorch.org/docs/2.13/generated/torch.compile.html
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from torchlab.autograd.graph import tracing
from torchlab.compiler.backends import check_backend
from torchlab.compiler.capture import STATE
from torchlab.compiler.function import COMPILED, CompiledFunction
from torchlab.compiler.optimized_module import OptimizedModule
from torchlab.fx.graph import Graph
from torchlab.nn.module import Module

MODES = ("default", "reduce-overhead", "max-autotune", "max-autotune-no-cudagraphs")


def compile(
    model: Any = None,
    *,
    fullgraph: bool = False,
    dynamic: bool | None = None,
    backend: Any = "inductor",
    mode: str | None = None,
    options: dict[str, Any] | None = None,
    disable: bool = False,
) -> Any:
    """`model` (a function or module) compiled; without it, a decorator.

    The first call with arguments of new shapes, types or values captures a graph and generates
    kernels for
    it, forward and backward; later calls check guards and run them. Whatever capture does not
    take (branches
    on values, random numbers, writes into inputs, custom Functions) makes the whole function
    run eagerly,
    which is said once. The gradient of a compiled function cannot be differentiated again,
    except with
    `backend="aot_eager"`.

    Args:
        fullgraph: raise instead of running eagerly.
        dynamic: accepted; shapes are always static here: a new shape is compiled anew.
        backend: "inductor", "aot_eager" or "eager" (the graph, run by operators), or a function of
            (GraphModule, example inputs) that gives a callable.
        mode: one of PyTorch's; they make no difference here.
        options: for "inductor": `language` ("auto", "cpp", "python"), `num_threads`, `fuse`.
        disable: give the model back as it is.

    Raises:
        InvalidBackend: no backend has that name.
        RuntimeError: `mode` and `options` together, or an unknown mode.
    """
    if mode is not None and options is not None:
        raise RuntimeError(
            "Either mode or options can be specified, but both can't be specified at the same time."
        )
    if mode is not None and mode not in MODES:
        raise RuntimeError(f"Unrecognized mode={mode}, should be one of: {', '.join(MODES)}")
    check_backend(backend)
    if model is None:
        return lambda m: compile(
            m,
            fullgraph=fullgraph,
            dynamic=dynamic,
            backend=backend,
            mode=mode,
            options=options,
            disable=disable,
        )
    if not callable(model):
        raise RuntimeError(
            f"torch.compile takes a function or a module, got {type(model).__name__}"
        )
    if disable:
        return model
    settings = {"backend": backend, "fullgraph": fullgraph, "options": options}
    if isinstance(model, OptimizedModule):
        return model
    if isinstance(model, Module):
        return OptimizedModule(model, **settings)
    if isinstance(model, CompiledFunction):
        model = model.fn
    return CompiledFunction(model, model, **settings)


def reset() -> None:
    """Forget everything that was compiled."""
    for f in list(COMPILED):
        f.reset()


def is_compiling() -> bool:
    """Whether this thread is inside a capture or an export."""
    return STATE.capturing > 0 or STATE.exporting > 0


def is_dynamo_compiling() -> bool:
    """Whether this thread is inside a capture."""
    return STATE.capturing > 0


def is_exporting() -> bool:
    """Whether this thread is inside an export."""
    return STATE.exporting > 0


tracing.append(is_dynamo_compiling)


def allow_in_graph(fn: Any) -> Any:
    """Mark a function, or a list of them, as one that the compiler need not look into. It looks
    into all of them here, so nothing changes.

    Raises:
        AssertionError: it cannot be called.
    """
    for f in fn if isinstance(fn, (list, tuple)) else (fn,):
        if not callable(f):
            raise AssertionError("allow_in_graph expects a callable")
    return fn


def assume_constant_result(fn: Any) -> Any:
    """Mark a function as one that always returns the same; a captured graph holds what it
    returned."""
    fn._dynamo_marked_constant = True
    return fn


def cudagraph_mark_step_begin() -> None:
    """Say that a new iteration begins, and results of the last are no longer needed: nothing, as
    no results are kept in place here."""


def disable(fn: Any = None, recursive: bool = True, *, reason: str | None = None) -> Any:
    """Mark a function: whatever calls it runs eagerly. Usable as a decorator with or without
    arguments.
    """
    if fn is None:
        return lambda f: disable(f, recursive, reason=reason)
    if isinstance(fn, CompiledFunction):
        fn = fn.fn

    @functools.wraps(fn)
    def inner(*args: Any, **kwargs: Any) -> Any:
        return fn(*args, **kwargs)

    inner._torchlab_disable = True  # type: ignore[attr-defined]
    return inner


@dataclass
class ExplainOutput:
    """What `explain` found. `graphs`: of aten operators; `break_reasons`: (reason,
    'file:line'); `guards`:
    a list of lines for each graph."""

    graphs: list[Graph] = field(default_factory=list)
    break_reasons: list[tuple[str, str]] = field(default_factory=list)
    guards: list[list[str]] = field(default_factory=list)
    programs: list[Any] = field(default_factory=list)

    @property
    def graph_count(self) -> int:
        return len(self.graphs)

    @property
    def graph_break_count(self) -> int:
        return len(self.break_reasons)

    @property
    def op_count(self) -> int:
        return sum(n.op == "call_function" for g in self.graphs for n in g.nodes)

    def __str__(self) -> str:
        lines = [
            f"Graph Count: {self.graph_count}",
            f"Graph Break Count: {self.graph_break_count}",
            f"Op Count: {self.op_count}",
        ]
        lines += [
            "Break Reasons:",
            *(f"  {reason} ({where})" for reason, where in self.break_reasons),
        ]
        for i, (g, guards) in enumerate(zip(self.graphs, self.guards, strict=True)):
            lines += [
                f"Graph {i}:",
                *("  " + x for x in str(g).splitlines()),
                f"Guards {i}:",
                *("  " + x for x in guards),
            ]
        return "\n".join(lines)


def explain(f: Any, **settings: Any) -> Callable[..., ExplainOutput]:
    """`explain(fn)(*args)`: compile `fn` for these arguments, call it, and tell graphs, breaks
    and guards.
    """

    def inner(*args: Any, **kwargs: Any) -> ExplainOutput:
        c = compile(f, **settings)
        c(*args, **kwargs)
        return ExplainOutput(
            [s.graph for s in c.segments],
            list(c.breaks),
            [s.guards.describe() for s in c.segments],
            list(c.compiled_programs),
        )

    return inner

"""A compiled function: its segments, and what it does when none of them fits."""

from __future__ import annotations

import functools
import threading
import types
import warnings
import weakref
from collections.abc import Callable
from typing import Any

from torchlab._core import events
from torchlab._core.tape import TLS
from torchlab._core.tensor import Tensor
from torchlab.compiler.aot import BudgetError
from torchlab.compiler.backends import build
from torchlab.compiler.capture import Break, Guards, Segment, arguments_key, capture, environment
from torchlab.compiler.watching import as_region, in_sight, onlookers
from torchlab.fx.graph import Graph

RECOMPILE_LIMIT = 8
"""Segments of one function; what needs more runs eagerly."""

COMPILED: weakref.WeakSet[CompiledFunction] = weakref.WeakSet()
_lock = threading.RLock()


class Unsupported(RuntimeError):
    """`fullgraph=True`, and the function cannot be captured as a whole."""


def _uncast(call: Callable[..., Any]) -> Callable[..., Any]:
    """`call` with autocast off: its casts are in the graph."""
    return call if TLS.autocast is None else TLS.autocast.off(call)  # type: ignore[no-any-return]


class CompiledFunction:
    """Call it like the function. `segments`: what was compiled; `breaks`: (reason, line) of
    what was not;
    `compiled_programs`: the generated programs, oldest first (see `torchlab.viz.fusion`)."""

    def __init__(
        self, fn: Callable[..., Any], root: Any, *, backend: Any, fullgraph: bool, options: Any
    ) -> None:
        functools.update_wrapper(self, fn)
        self.fn, self.root = fn, root
        self.backend, self.fullgraph, self.options = backend, fullgraph, options
        self._torchdynamo_orig_callable = fn
        self.reset()
        COMPILED.add(self)

    def reset(self) -> None:
        """Forget all segments and breaks."""
        self.table: dict[Any, list[Segment]] = {}
        self.refused: dict[Any, list[tuple[Guards, Break]]] = {}
        self.segments: list[Segment] = []
        self.breaks: list[tuple[str, str]] = []
        self._said: set[str] = set()
        self._full = False

    @property
    def compiled_programs(self) -> list[Any]:
        return [p for s in self.segments for p in s.programs]

    @property
    def graphs(self) -> list[Graph]:
        return [s.graph for s in self.segments]

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else types.MethodType(self, instance)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        env = environment()
        if env is None:
            modes = onlookers()
            if modes and environment(modes) is not None:
                return as_region(self._name(), modes, lambda: self(*args, **kwargs))
            return self.fn(*args, **kwargs)
        tensors: list[Tensor] = []
        try:
            key = (arguments_key(args, kwargs, tensors), env)
            found = self.table.get(key)
        except Break as b:
            return self._eagerly(b, args, kwargs)
        except TypeError:  # an argument that cannot be hashed
            return self._eagerly(Break("an argument cannot be hashed"), args, kwargs)
        if found is not None:
            for segment in found:
                if segment.guards.check() is None:
                    return _uncast(segment.run)(tensors)
        return self._miss(key, tensors, args, kwargs)

    # ---- what is rare ----------------------------------------------------------------------------

    def _miss(self, key: Any, tensors: list[Tensor], args: Any, kwargs: Any) -> Any:
        refused = self.refused.setdefault(key, [])
        for guards, b in refused:
            if guards.check() is None:
                return self._eagerly(b, args, kwargs)
        if (
            len(self.segments) + sum(map(len, self.refused.values())) >= RECOMPILE_LIMIT
            or self._full
        ):
            if not self._full:
                self._full = True
                warnings.warn(
                    f"torchlab.compile: {self._name()} has been compiled {RECOMPILE_LIMIT} times;"
                    f" other arguments run eagerly. The last reason was: {self._why(key)[0]}",
                    stacklevel=3,
                )
            return in_sight(lambda: self.fn(*args, **kwargs))
        if self.segments and events.guard_failure.listeners:
            what, expected, got = self._why(key)
            events.guard_failure.emit(fn=self.fn, guard=what, expected=expected, got=got)
        guards = Guards()
        with _lock:
            try:
                segment = self._compile(args, kwargs, guards)
            except Break as b:
                result = self._eagerly(b, args, kwargs)
                refused.append((guards, b))
                return result
        self.segments.append(segment)
        self.table.setdefault(key, []).append(segment)
        return _uncast(segment.run)(tensors)

    def _compile(self, args: Any, kwargs: Any, guards: Guards) -> Segment:
        captured, recipe = capture(self.fn, self.root, args, kwargs, guards)
        graph = Graph()
        table: dict[Any, Any] = {}
        result = graph.graph_copy(captured.graph, table)
        graph.output(result)
        try:
            call, programs = _uncast(build)(captured, self.backend, self.options)
        except Exception as error:
            if callable(self.backend) or isinstance(error, BudgetError):
                raise
            raise Break(
                f"the graph could not be compiled: {type(error).__name__}: {error}", ""
            ) from error
        if events.capture.listeners:
            events.capture.emit(fn=self.fn, graph=graph, guards=guards.describe())
        return Segment(graph, guards, call, captured.inputs[captured.given :], recipe, programs)

    def _eagerly(self, b: Break, args: Any, kwargs: Any) -> Any:
        text = f"{b.reason}" + (f" ({b.source})" if b.source else "")
        if self.fullgraph:
            raise Unsupported(
                f"torch.compile(fullgraph=True): {self._name()} cannot be captured as "
                f"one graph: {text}"
            )
        result = in_sight(lambda: self.fn(*args, **kwargs))
        if text not in self._said:
            self._said.add(text)
            self.breaks.append((b.reason, b.source))
            if events.graph_break.listeners:
                events.graph_break.emit(fn=self.fn, reason=b.reason, source=b.source)
            warnings.warn(f"torchlab.compile: {self._name()} runs eagerly: {text}", stacklevel=4)
        return result

    def _why(self, key: Any) -> tuple[str, Any, Any]:
        """What makes the newest segment unfit: (guard, expected, got)."""
        if not self.segments:
            return "no segment could be made", None, None
        guards = self.segments[-1].guards
        now, env = key
        if guards.environment != env:
            return "grad mode, default dtype, autocast", guards.environment, env
        if len(now) != len(guards.key):
            return "the number of arguments", len(guards.key), len(now)
        for i, (a, b) in enumerate(zip(guards.key, now, strict=True)):
            if a != b:
                return f"argument {i}", a, b
        return guards.check() or ("no guard", None, None)

    def _name(self) -> str:
        return getattr(self.root, "__qualname__", type(self.root).__name__)

    def __repr__(self) -> str:
        return (
            f"<compiled {self._name()}: {len(self.segments)} segment(s), {len(self.breaks)} "
            "break(s)>"
        )

"""Functions and modules that run what a trace recorded.

Source: https://docs.pytorch.org/docs/2.13/generated/torch.jit.trace.html
"""

from __future__ import annotations

import copy
from typing import Any

from torchlab.fx.graph import Graph
from torchlab.jit._state import STATE
from torchlab.jit.functions import ScriptFunction
from torchlab.jit.modules import ScriptModule
from torchlab.jit.tracing_program import Program
from torchlab.nn.module import Module


def noted(run: Any, callee: Any, args: Any, kwargs: Any) -> Any:
    """`run(*args, **kwargs)`, as one call of `callee` if a trace is being made."""
    recorder = STATE.recorder
    if recorder is None or recorder.inside:
        return run(*args, **kwargs)
    return recorder.record(run, args, kwargs, "", callee)


class TracedFunction(ScriptFunction):
    """A function that `torch.jit.trace` has recorded."""

    def __init__(self, program: Program, original: Any) -> None:
        self.name = program.name
        self.qualified_name = f"__torch__.{program.name}"
        self._program = program
        self.__name__ = self.__qualname__ = program.name
        self.__doc__ = getattr(original, "__doc__", None)

    @property
    def schema(self) -> str:
        """The declaration: parameters and the result with their types."""
        return self._program.schema

    @property
    def graph(self) -> Graph:
        """What was recorded, as a graph of `torch.fx`."""
        return self._program.graph

    inlined_graph = graph

    @property
    def code(self) -> str:
        """What was recorded, as Python."""
        return self._program.code()

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return noted(lambda *a, **k: self._program(None, a, k), self, args, kwargs)

    def __repr__(self) -> str:
        return f"<torch.jit.ScriptFunction {self.schema}>"

    def __deepcopy__(self, memo: dict[int, Any]) -> TracedFunction:
        return self


class TracedModule(ScriptModule):
    """A module within a traced one: it has the tensors, and cannot be called."""

    original_name: str

    def __init__(
        self, orig: Module, id_set: Any = None, _compilation_unit: Any = None, *, known: Any = None
    ) -> None:
        super().__init__()
        known = {} if known is None else known
        known[id(orig)] = self
        self.training = orig.training
        self._parameters.update(orig._parameters)
        self._buffers.update(orig._buffers)
        self._non_persistent_buffers_set.update(orig._non_persistent_buffers_set)
        self.__dict__["original_name"] = getattr(orig, "original_name", type(orig).__name__)
        for name, child in orig._modules.items():
            if child is None or isinstance(child, ScriptModule):
                self._modules[name] = child
            else:
                made = known.get(id(child))
                self._modules[name] = made or TracedModule(child, known=known)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        raise RuntimeError("Trace submodules cannot be called.")

    def _get_name(self) -> str:
        return self.original_name

    def extra_repr(self) -> str:
        return f"original_name={self.original_name}"

    def __reduce_ex__(self, protocol: Any) -> Any:
        raise RuntimeError(
            f"Tried to serialize object __torch__.{self.original_name}: a traced module holds"
            " functions that a file cannot. Save its state_dict, or use torch.export."
        )

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        made = memo[id(self)] = object.__new__(type(self))
        for key, value in self.__dict__.items():
            if key != "_programs":
                made.__dict__[key] = copy.deepcopy(value, memo)
        return made


class TopLevelTracedModule(TracedModule):
    """A module whose methods `torch.jit.trace` has recorded. It has the original's parameters,
    buffers and submodules: the same tensors. `train()` and `eval()` do not change what it does."""

    def __init__(self, orig: Module, id_set: Any = None, _compilation_unit: Any = None) -> None:
        super().__init__(orig, id_set, _compilation_unit)
        self.__dict__["_programs"] = {}

    def _add(self, program: Program) -> None:
        self._programs[program.name] = program
        for call in program.leaves():
            call.bind(self)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        return self._run("forward", args, kwargs)

    def _run(self, name: str, args: Any, kwargs: Any) -> Any:
        program = self._programs.get(name)
        if program is None:
            raise AttributeError(f"'RecursiveScriptModule' object has no attribute '{name}'")
        return program(self, args, kwargs)

    def __getattr__(self, name: str) -> Any:
        programs = self.__dict__.get("_programs", {})
        if name in programs:
            return _Method(self, name)
        try:
            return super().__getattr__(name)
        except AttributeError:
            raise AttributeError(
                f"'RecursiveScriptModule' object has no attribute '{name}'"
            ) from None

    @property
    def graph(self) -> Graph:
        """What `forward` was recorded as, a graph of `torch.fx`."""
        return self._programs["forward"].graph

    inlined_graph = graph

    @property
    def code(self) -> str:
        """What `forward` was recorded as, as Python."""
        return self._programs["forward"].code()

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        made = super().__deepcopy__(memo)
        made.__dict__["_programs"] = {}
        for program in self._programs.values():
            made._add(program.copied(lambda t: copy.deepcopy(t, memo)))
        return made


class _Method:
    """A recorded method that is not `forward`."""

    def __init__(self, module: TopLevelTracedModule, name: str) -> None:
        self.owner, self.name = module, name

    @property
    def _program(self) -> Program:
        return self.owner._programs[self.name]

    @property
    def schema(self) -> str:
        """The declaration."""
        return self._program.schema

    @property
    def graph(self) -> Graph:
        """What was recorded."""
        return self._program.graph

    @property
    def code(self) -> str:
        """What was recorded, as Python."""
        return self._program.code()

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._program(self.owner, args, kwargs)


__all__ = ["TopLevelTracedModule", "TracedFunction", "TracedModule", "noted"]

"""Modules of `torch.nn` in a trace: their forward is one call, not what it consists of.

What such a module does is known, so it is noted whole: with its settings and its training mode as
they are when the trace is made, and with the parameters and buffers of the traced module whenever
the program runs.

Source: https://docs.pytorch.org/docs/2.13/generated/torch.jit.trace.html
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from torchlab import nn
from torchlab._core.tensor import Tensor
from torchlab.jit._state import STATE
from torchlab.jit.modules import ScriptModule
from torchlab.jit.tracing_tensors import TracedTensor, plain
from torchlab.nn.module import Module

_PACKAGE = __name__.partition(".")[0]
_OPEN = ("Sequential", "ModuleList", "ModuleDict", "ParameterList", "ParameterDict", "Container")
_CALLABLES = (  # take functions or modules of the user's
    "Transformer", "TransformerEncoder", "TransformerDecoder", "TransformerEncoderLayer",
    "TransformerDecoderLayer", "TripletMarginWithDistanceLoss", "DataParallel",
)  # fmt: skip


def is_leaf(m: Module) -> bool:
    """Whether a module's forward is noted as one call."""
    if isinstance(m, ScriptModule):
        return True
    cls = type(m)
    name = cls.__name__
    if name in _OPEN or name in _CALLABLES or getattr(nn, name, None) is not cls:
        return False
    if any(type(c).__module__.partition(".")[0] != _PACKAGE for c in m.modules()):
        return False
    tensors = any(isinstance(v, Tensor) for v in m.__dict__.values())
    return not tensors and "forward" not in m.__dict__  # weights that hooks compute are attributes


class Leaf:
    """The forward of a module of `torch.nn`, as it was when the trace was made."""

    def __init__(self, m: Module, path: str) -> None:
        self.path = path
        self.module = m if isinstance(m, ScriptModule) else _shell(m)
        self.__name__ = path.replace(".", "_") or type(m).__name__.lower()
        self.kind = type(m).__name__

    def bind(self, traced: Module) -> None:
        """Use the parameters and buffers of the traced module."""
        found = traced.get_submodule(self.path)
        if isinstance(self.module, ScriptModule):
            self.module = found
        else:
            _bind(self.module, found)

    def copied(self) -> Leaf:
        """One for another traced module, not bound yet."""
        made = object.__new__(Leaf)
        made.__dict__.update(self.__dict__)
        if not isinstance(self.module, ScriptModule):
            made.module = _shell(self.module)
        return made

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.module.forward(*args, **kwargs)

    def __repr__(self) -> str:
        mode = "train" if self.module.training else "eval"
        return f"{self.kind}({self.path!r}, {mode})"


def _shell(m: Module) -> Module:
    """The module without hooks, with its settings; its tensors are bound later."""
    made = object.__new__(type(m))
    made.__dict__.update(m.__dict__)
    made.__dict__.pop("forward", None)
    made.__dict__["_modules"] = {k: None if c is None else _shell(c) for k, c in m._modules.items()}
    return made


def _bind(shell: Module, traced: Module) -> None:
    shell.__dict__["_parameters"] = traced._parameters
    shell.__dict__["_buffers"] = traced._buffers
    for name, c in shell._modules.items():
        if c is not None:
            _bind(c, traced._modules[name])  # type: ignore[arg-type]


@contextmanager
def whole(root: Module) -> Iterator[None]:
    """The forwards of the leaves in `root` are noted whole, and buffers of the other modules are
    seen as tensors of the trace, until the end of `with`."""
    recorder = STATE.recorder
    leaves: list[Module] = []
    inner: set[int] = set()
    try:
        for path, m in root.named_modules():
            if id(m) in inner:
                continue
            if is_leaf(m):
                inner.update(id(c) for c in m.modules())
                m.__dict__["forward"] = _noted(m, path)
                leaves.append(m)
                continue
            for name, b in list(m._buffers.items()):
                if b is not None:
                    m._buffers[name] = recorder.wrap(b)
        yield
    finally:
        for m in leaves:
            del m.__dict__["forward"]
        for m in root.modules():  # what the program has assigned stays, as plain tensors
            for table in (m._buffers, m.__dict__):
                for name, value in list(table.items()):
                    if type(value) is TracedTensor:
                        table[name] = plain(value)


def _noted(m: Module, path: str) -> Any:
    forward = type(m).forward

    def call(*args: Any, **kwargs: Any) -> Any:
        recorder = STATE.recorder
        if recorder is None or recorder.inside:
            return forward(m, *args, **kwargs)
        leaf = Leaf(m, path)

        def run(*args: Any, **kwargs: Any) -> Any:
            return forward(m, *args, **kwargs)

        return recorder.record(run, args, kwargs, "", leaf)

    return call


__all__ = ["Leaf", "is_leaf", "whole"]

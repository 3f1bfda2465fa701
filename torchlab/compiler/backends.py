"""What turns a captured graph into something that runs.

A backend is a function of (GraphModule, example inputs) that gives a callable; so may users' own
be. The
built-in "inductor" gets the capture itself, because it traces the backward, too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from torchlab._core.dtype import float32, get_default_dtype
from torchlab._core.tensor import Tensor
from torchlab.compiler.capture import Captured
from torchlab.compiler.inductor import compile_captured
from torchlab.fx.graph_module import GraphModule
from torchlab.nn.module import Module

Call = Callable[[Sequence[Tensor]], Sequence[Tensor]]

BACKENDS: dict[str, tuple[str, ...]] = {
    "inductor": (),
    "eager": ("debug",),
    "aot_eager": ("debug",),
}
"""Name → tags."""


def list_backends(exclude_tags: Any = ("debug", "experimental")) -> list[str]:
    """The names that `compile(backend=)` takes, without those that have one of the tags."""
    excluded = set(exclude_tags or ())
    return sorted(name for name, tags in BACKENDS.items() if not excluded & set(tags))


def check_backend(backend: Any) -> None:
    """Raise for a backend that does not exist."""
    if not callable(backend) and backend not in BACKENDS:
        raise InvalidBackend(
            f"Invalid backend: '{backend}', see `torch.compiler.list_backends()` for "
            f"available backends: {', '.join(sorted(BACKENDS))}"
        )


class InvalidBackend(RuntimeError):
    """`compile(backend=)` got a name that is no backend."""


def build(
    captured: Captured, backend: Any, options: dict[str, Any] | None
) -> tuple[Call, list[Any]]:
    """A function of the graph's inputs, and the generated programs behind it."""
    if backend == "inductor" and get_default_dtype() is float32:
        return compile_captured(captured, options)
    module = GraphModule(Module(), captured.graph, captured.name.strip("<>") or "fn")
    run: Any = module
    if callable(backend):
        run = backend(module, list(captured.inputs))
    return lambda tensors: run(*tensors), []

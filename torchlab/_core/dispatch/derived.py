"""Gradients taken inside a formula: for kernels whose backward is a kernel, too.

Such a formula, when it is differentiated again, runs the same computation once more in operators
and asks the tape for its gradients; the tape remembers all of that, so that there are derivatives
of any order.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from torchlab._core.dispatch.registry import aten

grad: list[Callable[..., Any]] = []  # torchlab.autograd.api puts its `grad` here


def gradients(
    run: Callable[..., Sequence[Any]], inputs: Sequence[Any], needs: Sequence[bool], given: Any
) -> list[Any]:
    """The gradients of `run(*inputs)`, a sequence of tensors, for the inputs that need one, from
    those of its results: None for each that has none. They are recorded.

    The inputs run under other names: a hook on one of them belongs to the backward outside.
    """
    own = [aten.alias(x) if n else x for x, n in zip(inputs, needs, strict=True)]
    pairs = [(r, g) for r, g in zip(run(*own), given, strict=False) if g is not None]
    wanted = [x for x, n in zip(own, needs, strict=True) if n]
    found = iter(
        grad[0]([r for r, _ in pairs], wanted, [g for _, g in pairs], create_graph=True,
                allow_unused=True)
    )  # fmt: skip
    return [next(found) if n else None for n in needs]

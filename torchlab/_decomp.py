"""`torch._decomp`: operators in terms of simpler ones, for `make_fx(decomposition_table=…)`.

Source: https://docs.pytorch.org/docs/2.13/torch.compiler_transformations.html
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from torchlab._core.dispatch.overload import OpOverload, bind

__all__ = ["get_decompositions"]


def get_decompositions(
    aten_ops: Sequence[Any], type: str = "post_autograd"
) -> dict[OpOverload, Callable[..., Any]]:
    """Overload → function that computes it by other operators, for those of `aten_ops` (overloads,
    or `torch.ops.aten.<name>` for all of a name) that torchlab declares one for."""
    if type != "post_autograd":
        raise NotImplementedError(
            f"get_decompositions: torchlab's decompositions stand below autograd, got type={type!r}"
        )
    table: dict[OpOverload, Callable[..., Any]] = {}
    for op in aten_ops:
        overloads = [op] if isinstance(op, OpOverload) else [getattr(op, o) for o in op.overloads()]
        for overload in overloads:
            if overload.form == "functional" and _decomposes(overload):
                table[overload] = functools.partial(_run, overload)
    return table


def _decomposes(overload: OpOverload) -> bool:
    """Whether the declaration has a decomposition, and takes and gives what the overload does."""
    declared = overload.op
    if declared is None or not declared.decompose:
        return False
    own, theirs = declared.schema, overload.parsed
    return len(own.returns) == len(theirs.returns) and [a.name for a in own.arguments] == [
        a.name for a in theirs.arguments
    ]


def _run(overload: OpOverload, *args: Any, **kwargs: Any) -> Any:
    return overload.op.decompose(*bind(overload.parsed, args, kwargs))  # type: ignore[union-attr, misc]

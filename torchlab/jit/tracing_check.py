"""Whether a trace does what the program does: it is recorded again, and both are run again.

Source: https://docs.pytorch.org/docs/2.13/generated/torch.jit.trace.html
"""

from __future__ import annotations

import difflib
from collections.abc import Callable
from typing import Any

from torchlab._core.tensor import Tensor
from torchlab.jit.tracing_program import Program
from torchlab.jit.tracing_tensors import leaves, mapped, warn
from torchlab.testing import assert_close


class TracingCheckError(Exception):
    """A second run of the program gave another trace."""

    def __init__(
        self,
        graph_diff_error: str | None,
        tensor_compare_error: str | None,
        extra_msg: str | None = None,
    ) -> None:
        self.message = "Tracing failed sanity checks!\n"
        if extra_msg is not None:
            self.message += extra_msg + "\n"
        if graph_diff_error is not None:
            self.message += "ERROR: Graphs differed across invocations!\n"
            self.message += _indented(graph_diff_error)
        if tensor_compare_error is not None:
            self.message += (
                "ERROR: Tensor-valued Constant nodes differed in value across invocations. This"
                " often indicates that the tracer has encountered untraceable code.\n"
            )
            self.message += _indented(tensor_compare_error)
        super().__init__(self.message)


def _indented(text: str) -> str:
    return "\n".join("\t" + line for line in text.split("\n"))


def cloned(x: Any) -> Any:
    """Copies of the example inputs."""

    def one(t: Any) -> Any:
        if not isinstance(t, Tensor):
            return t
        return t.detach().clone().requires_grad_(t.requires_grad)

    return mapped(x, one)


def compare_programs(first: Program, second: Program) -> None:
    """TracingCheckError if they are not the same."""
    a, b = first.code(), second.code()
    if a != b:
        difference = "".join(difflib.ndiff(a.splitlines(True), b.splitlines(True)))
        told = "Graph diff:\n" + _indented(difference) + "\nFirst diverging operator:\nNode diff:\n"
        for x, y in zip(a.splitlines(), b.splitlines(), strict=False):
            if x != y:
                told += _indented("\n".join(difflib.ndiff([x.strip()], [y.strip()])))
                break
        raise TracingCheckError(told, None)
    for i, (s, t) in enumerate(zip(first.constants, second.constants, strict=True)):
        try:
            assert_close(s, t, rtol=0, atol=0, equal_nan=True)
        except AssertionError as e:
            raise TracingCheckError(None, f"Constant c{i}:\n{e}\n") from None


def compare_outputs(
    traced: Callable[..., Any],
    original: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    random: list[str],
    tolerance: float,
) -> None:
    """Warn where the trace and the program give different values."""
    if random:
        nodes = "\n".join("\t" + line for line in random)
        warn(
            "Trace had nondeterministic nodes. Did you forget call .eval() on your model? Nodes:\n"
            f"{nodes}\nThis may cause errors in trace checking. To disable trace checking, pass"
            " check_trace=False to torch.jit.trace()"
        )
    try:
        ours = traced(*cloned(args), **cloned(kwargs))
    except Exception as e:
        raise TracingCheckError(
            None,
            None,
            "encountered an exception while running the trace with test inputs.\nException:\n"
            + _indented(str(e)),
        ) from e
    try:
        theirs = original(*cloned(args), **cloned(kwargs))
    except Exception as e:
        raise TracingCheckError(
            None,
            None,
            "encountered an exception while running the Python function with test inputs.\n"
            "Exception:\n" + _indented(str(e)),
        ) from e
    a = [x for x in leaves(ours) if isinstance(x, Tensor)]
    b = [x for x in leaves(theirs) if isinstance(x, Tensor)]
    for i, (x, y) in enumerate(zip(a, b, strict=False)):
        try:
            assert_close(
                x.detach(), y.detach(), rtol=tolerance, atol=1e-5, equal_nan=True,
                check_stride=False,
            )  # fmt: skip
        except AssertionError as e:
            warn(
                f"Output nr {i + 1}. of the traced function does not match the corresponding output"
                f" of the Python function. Detailed error:\n{e}"
            )


__all__ = ["TracingCheckError", "cloned", "compare_outputs", "compare_programs"]

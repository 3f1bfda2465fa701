"""Passes in a row, in an order that fits.

Source: https://docs.pytorch.org/docs/2.13/fx.html
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import wraps
from typing import Any

from torchlab.fx.graph_module import GraphModule
from torchlab.fx.passes._ordered import (
    Constraint,
    OrderedPasses,
    Pass,
    this_before_that_pass_constraint,
)
from torchlab.fx.passes.infra.pass_base import PassResult
from torchlab.nn.module import Module

__all__ = ["pass_result_wrapper", "this_before_that_pass_constraint", "PassManager"]


def pass_result_wrapper(fn: Pass) -> Callable[..., PassResult | None]:
    """A function that changes a module in place, as a pass that gives a PassResult."""
    if fn is None:
        return None

    @wraps(fn)
    def wrapped_fn(gm: Any) -> PassResult | None:
        result = fn(gm)
        if result is None:
            return PassResult(gm, True)
        if isinstance(result, PassResult):
            return result
        return PassResult(result, True) if isinstance(result, Module) else None

    if not inspect.isfunction(fn):
        wrapped_fn.__name__ = type(fn).__name__
    return wrapped_fn


def _topological_sort_passes(passes: list[Pass], constraints: list[Constraint]) -> list[Pass]:
    if not constraints:
        return passes
    later: dict[int, list[int]] = {i: [] for i in range(len(passes))}
    waiting = dict.fromkeys(later, 0)
    for i, a in enumerate(passes):
        for j, b in enumerate(passes):
            if i != j and not all(c(b, a) for c in constraints):  # `b` may not run before `a`
                later[i].append(j)
                waiting[j] += 1
    ready = [i for i, n in waiting.items() if n == 0]
    done: list[int] = []
    while ready:
        i = ready.pop(0)
        done.append(i)
        for j in later[i]:
            waiting[j] -= 1
            if waiting[j] == 0:
                ready.append(j)
    if len(done) != len(passes):
        left = [passes[i] for i, n in waiting.items() if n > 0]
        raise RuntimeError(f"Circular dependency detected within the following passes: {left}")
    return [passes[i] for i in done]


class PassManager(OrderedPasses):
    """Runs passes one after the other, `steps` times or until nothing changes.

    constraints: functions of (earlier pass, later pass) that say whether that order is allowed.
    run_checks_after_each_pass: call the checks of `add_checks` after every pass.
    suppress_check_failures: they do not stop the run.
    """

    steps: int = 1

    def __init__(
        self,
        passes: list[Pass] | None = None,
        constraints: list[Constraint] | None = None,
        steps: int | None = None,
        run_checks_after_each_pass: bool = False,
        suppress_check_failures: bool = False,
    ) -> None:
        super().__init__(passes, constraints)
        if steps:
            self.steps = steps
        self.run_checks_after_each_pass = run_checks_after_each_pass
        self.suppress_check_failures = suppress_check_failures

    def validate_constraints(self) -> None:
        """RuntimeError if the order of the passes breaks a constraint."""
        self._check_order()

    def solve_constraints(self) -> None:
        """Bring the passes into an order that all constraints allow."""
        self.passes = _topological_sort_passes(self.passes, self.constraints)
        self._validated = True

    def add_checks(self, check: Callable[[Module], Any]) -> None:
        """Let `check(module)` run before and after the passes. ValueError unless it has one
        parameter called `module`."""
        parameters = inspect.signature(check).parameters
        if len(list(parameters.values())) != 1:
            raise TypeError("PassManager check function should only take in one variable, a module")
        self.check = check  # type: ignore[method-assign, assignment]

    def check(self, module: Module) -> None:
        """What runs around the passes; nothing, unless `add_checks` says so."""

    def __call__(self, module: Module) -> PassResult:
        """(the module after the passes, whether any changed it)."""
        if not self._validated:
            self.solve_constraints()
        self.check(module)
        overall = False
        for _ in range(self.steps):
            modified = False
            for i, fn in enumerate(self.passes):
                name = fn.__name__ if inspect.isfunction(fn) else type(fn).__name__
                try:
                    result = fn(module)
                    if not isinstance(result, PassResult):
                        raise TypeError(
                            f"The result of the pass {name} should be type PassResult. Please wrap "
                            "it with pass_result_wrapper()"
                        )
                    module = result.graph_module
                    modified = modified or result.modified
                    if isinstance(module, GraphModule):
                        module.recompile()
                    if self.run_checks_after_each_pass:
                        self.check(module)
                except Exception as e:
                    before = [
                        p.__name__ if inspect.isfunction(p) else type(p).__name__
                        for p in self.passes[:i]
                    ]
                    raise Exception(
                        f"An error occurred when running the '{name}' pass after the following "
                        f"passes: {before}"
                    ) from e
            overall = overall or modified
            if not modified:
                break
        return PassResult(module, overall)

"""What both managers of passes have: functions in a row, and constraints on their order."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Pass = Callable[..., Any]
Constraint = Callable[[Pass, Pass], bool]


def this_before_that_pass_constraint(this: Pass, that: Pass) -> Constraint:
    """A constraint: `this` runs before `that`."""

    def depends_on(a: Pass, b: Pass) -> bool:
        return not (a == that and b == this)

    return depends_on


class OrderedPasses:
    """Passes, and functions of (earlier pass, later pass): whether that order is allowed."""

    passes: list[Pass]
    constraints: list[Constraint]
    _validated: bool = False

    def __init__(self, passes: list[Pass] | None, constraints: list[Constraint] | None) -> None:
        self.passes = passes or []
        self.constraints = constraints or []

    def add_pass(self, _pass: Pass) -> None:
        """One more pass, at the end."""
        self.passes.append(_pass)
        self._validated = False

    def add_constraint(self, constraint: Constraint) -> None:
        """One more constraint."""
        self.constraints.append(constraint)
        self._validated = False

    def _check_order(self) -> None:
        """RuntimeError if the order of the passes breaks a constraint."""
        if self._validated:
            return
        for constraint in self.constraints:
            for i, a in enumerate(self.passes):
                for j, b in enumerate(self.passes[i + 1 :]):
                    if not constraint(a, b):
                        raise RuntimeError(
                            f"pass schedule constraint violated. Expected {a} before {b} but found"
                            f" {a} at index {i} and {b} at index{j} in pass list."
                        )
        self._validated = True


__all__ = ["Constraint", "OrderedPasses", "Pass", "this_before_that_pass_constraint"]

"""Functions in a row, in an order that fits: the older manager of passes.

Source: https://docs.pytorch.org/docs/2.13/fx.html
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import wraps
from inspect import unwrap
from typing import Any

from torchlab.fx.passes._ordered import (
    Constraint,
    OrderedPasses,
    Pass,
    this_before_that_pass_constraint,
)

__all__ = [
    "PassManager",
    "inplace_wrapper",
    "log_hook",
    "loop_pass",
    "this_before_that_pass_constraint",
    "these_before_those_pass_constraint",
]

logger = logging.getLogger(__name__)


def inplace_wrapper(fn: Pass) -> Pass:
    """A function that changes its argument, as one that returns it."""

    @wraps(fn)
    def wrapped_fn(gm: Any, *args: Any, **kwargs: Any) -> Any:
        fn(gm, *args, **kwargs)
        return gm

    return wrapped_fn


def log_hook(fn: Pass, level: int = logging.INFO) -> Pass:
    """A function whose calls are logged."""

    @wraps(fn)
    def wrapped_fn(*args: Any, **kwargs: Any) -> Any:
        result = fn(*args, **kwargs)
        logger.log(level, "Ran pass %s\t Return value: %s", fn, result)
        return result

    return wrapped_fn


def loop_pass(
    base_pass: Pass,
    n_iter: int | None = None,
    predicate: Callable[[Any], bool] | None = None,
) -> Pass:
    """A pass run `n_iter` times, or while `predicate` holds of its result."""
    if (n_iter is not None) == (predicate is not None):
        raise AssertionError("Exactly one of `n_iter`or `predicate` must be specified.")

    @wraps(base_pass)
    def new_pass(source: Any) -> Any:
        result = source
        if n_iter is not None and n_iter > 0:
            for _ in range(n_iter):
                result = base_pass(result)
        elif predicate is not None:
            while predicate(result):
                result = base_pass(result)
        else:
            raise RuntimeError(
                f"loop_pass must be given positive int n_iter (given {n_iter}) xor predicate "
                f"(given {predicate})"
            )
        return result

    return new_pass


def these_before_those_pass_constraint(these: Pass, those: Pass) -> Constraint:
    """A constraint between functions that wrappers stand around."""

    def depends_on(a: Pass, b: Pass) -> bool:
        return not (unwrap(a) == those and unwrap(b) == these)

    return depends_on


class PassManager(OrderedPasses):
    """Runs functions one after the other, each on what the one before gave."""

    def __init__(
        self,
        passes: list[Pass] | None = None,
        constraints: list[Constraint] | None = None,
    ) -> None:
        super().__init__(passes, constraints)

    @classmethod
    def build_from_passlist(cls, passes: list[Pass]) -> PassManager:
        """A manager of these passes."""
        return cls(passes)

    def remove_pass(self, _passes: list[str]) -> None:
        """Leave out the passes with these names."""
        self.passes = [p for p in self.passes if p.__name__ not in _passes]
        self._validated = False

    def replace_pass(self, _target: Pass, _replacement: Pass) -> None:
        """Another pass in the place of those with `_target`'s name."""
        self.passes = [_replacement if p.__name__ == _target.__name__ else p for p in self.passes]
        self._validated = False

    def validate(self) -> None:
        """RuntimeError if the order of the passes breaks a constraint."""
        self._check_order()

    def __call__(self, source: Any) -> Any:
        self.validate()
        result = source
        for fn in self.passes:
            result = fn(result)
        return result

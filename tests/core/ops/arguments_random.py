"""Example arguments for the random operators."""

from __future__ import annotations

from typing import Any

from tests.core.ops.values import F

POSITIVE = F((3,), 0.5, 3.0)
INNER = F((3,), 0.1, 0.9)

ARGUMENTS: dict[str, list[tuple[Any, ...]]] = {
    "_standard_gamma_grad": [(POSITIVE, POSITIVE)],
    "_drawn_bernoulli": [(INNER, INNER)],
    "_drawn_for_mean": [(INNER, INNER)],
    "_drawn_for_std": [(INNER, INNER)],
    "_dirichlet_grad": [(INNER, POSITIVE, F((3,), 4.0, 6.0))],
}

# Draw from a generator: tests/core/ops/test_random_families.py looks at them.
LEFT_OUT = frozenset({"_standard_gamma", "_sample_dirichlet", "binomial", "poisson"})

"""The batching rule of every declared operator against a loop over the elements of the batch."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import torchlab
from tests.core.ops.samples import LEFT_OUT, SHAPE_FROM_DATA, declared, samples
from torchlab import func
from torchlab._core import pytree
from torchlab._core.dispatch import batches
from torchlab._core.dispatch.levels import again
from torchlab._core.dispatch.op import Op

SIZE = 3
# The strides of a memory layout that the mapped function does not see whole are its own.
STRIDES = {"as_strided"}
RULED = [
    op
    for op in declared()
    if op.family != "composite" and op.name not in LEFT_OUT | SHAPE_FROM_DATA | STRIDES
]


def several(t: Any) -> Any:
    """A batch whose first element is `t`; the others stay in any domain."""
    if t.is_floating_point() or t.is_complex():
        return torchlab.stack([t, t * 0.9, t * 0.8])
    return torchlab.stack([t] * SIZE)


def tensors_of(result: Any) -> list[Any]:
    found = [y for y in pytree.tree_leaves(result) if isinstance(y, torchlab.Tensor)]
    return [y.resolve_conj().resolve_neg() for y in found]


def cases(op: Op) -> Iterator[tuple[list[Any], Any, dict[int, Any]]]:
    """(leaves, structure, batches by place): all tensors batched, and one alone."""
    for args in list(samples(op))[:2]:
        leaves, spec = pytree.tree_flatten(list(args))
        at = [i for i, x in enumerate(leaves) if isinstance(x, torchlab.Tensor)]
        for chosen in (at, *([i] for i in at[:3])):
            if chosen:
                yield leaves, spec, {i: several(leaves[i]) for i in chosen}


def fresh(x: Any) -> Any:
    return x.clone() if isinstance(x, torchlab.Tensor) else x


def expected(op: Op, leaves: list[Any], spec: Any, given: dict[int, Any]) -> list[Any]:
    """The loop. Nothing where the smaller elements are refused."""
    rows = []
    for n in range(SIZE):
        row = [given[i][n].clone() if i in given else fresh(x) for i, x in enumerate(leaves)]
        try:
            rows.append(tensors_of(again(op, spec.unflatten(row))))
        except (RuntimeError, IndexError):
            return []
    return [torchlab.stack(list(column)) for column in zip(*rows, strict=True)]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("op", RULED, ids=str)
def test_rule_equals_the_loop(op: Op) -> None:
    if not all(a.has_default or a.type.base != "ScalarType" for a in op.schema.arguments):
        return  # has no samples
    for leaves, spec, given in cases(op):
        wanted = expected(op, leaves, spec, given)
        if not wanted:
            continue
        for last in (False, True):
            dims = [x.ndim - 1 if last else 0 for x in given.values()]
            moved = [
                x.movedim(0, d).contiguous() for x, d in zip(given.values(), dims, strict=True)
            ]

            def mapped(*xs: Any, leaves: Any = leaves, spec: Any = spec, given: Any = given) -> Any:
                values = dict(zip(given, xs, strict=True))
                return tensors_of(
                    again(op, spec.unflatten(values.get(i, x) for i, x in enumerate(leaves)))
                )

            got = func.vmap(mapped, in_dims=tuple(dims), randomness="different")(*moved)
            assert len(got) == len(wanted)
            for g, w in zip(got, wanted, strict=True):
                assert (g.shape, g.dtype) == (w.shape, w.dtype)
                plain = g.resolve_conj().resolve_neg().numpy()
                np.testing.assert_allclose(plain, w.numpy(), rtol=1e-6, atol=1e-8)


def test_few_operators_run_in_a_loop() -> None:
    looped = [str(op) for op in RULED if batches.rule_of(op) is batches.one_by_one]
    assert len(looped) < 0.08 * len(RULED), looped

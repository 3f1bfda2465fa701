"""`torchlab.return_types`: the classes of several results."""

from __future__ import annotations

import copy
import pickle

import pytest

import torchlab
import torchlab.utils._pytree as pytree
from torchlab import return_types


def test_the_class_of_a_result() -> None:
    x = torchlab.tensor([[1.0, 3.0], [2.0, 0.0]])
    r = x.max(0)
    assert type(r) is return_types.max
    assert (r.values.tolist(), r.indices.tolist()) == ([2.0, 3.0], [1, 0])
    assert repr(r) == ("torch.return_types.max(\nvalues=tensor([2., 3.]),\nindices=tensor([1, 0]))")
    assert (r.n_fields, r.n_sequence_fields, r.n_unnamed_fields) == (2, 2, 0)
    assert return_types.max.__match_args__ == ("values", "indices")


def test_with_out_it_is_another() -> None:
    x = torchlab.tensor([3.0, 1.0])
    out = torchlab.empty(2), torchlab.empty(2, dtype=torchlab.int64)
    r = torchlab.sort(x, out=out)
    assert type(r) is return_types.sort_out
    assert r.values is out[0]


def test_made_of_one_sequence() -> None:
    assert return_types.topk([1, 2]) == (1, 2)
    with pytest.raises(TypeError, match="constructor requires a sequence"):
        return_types.topk(1)
    with pytest.raises(TypeError, match="takes a 2-sequence \\(1-sequence given\\)"):
        return_types.topk([1])
    with pytest.raises(TypeError, match="one sequence of 2 results"):
        return_types.topk(1, 2, 3)


def test_results_without_names_are_a_plain_tuple() -> None:
    assert type(torchlab.var_mean(torchlab.ones(3))) is tuple


def test_all_of_them() -> None:
    classes = return_types.all_return_types
    assert [c.__name__ for c in classes] == sorted(c.__name__ for c in classes)
    for c in classes:
        assert getattr(return_types, c.__name__) is c
        assert c.__module__ == "torchlab.return_types"
    assert {"linalg_svd", "slogdet_out", "histogramdd"} <= set(dir(return_types))
    with pytest.raises(AttributeError):
        _ = return_types.histogramdd_out


def test_copies_and_trees() -> None:
    r = torchlab.sort(torchlab.ones(2))
    for twin in (copy.deepcopy(r), pickle.loads(pickle.dumps(r))):
        assert type(twin) is return_types.sort
        assert twin.indices.tolist() == [0, 1]
    leaves, spec = pytree.tree_flatten(r)
    assert len(leaves) == 2
    assert type(pytree.tree_unflatten(leaves, spec)) is return_types.sort
    return_types.pytree_register_structseq(return_types.sort)  # known: nothing happens

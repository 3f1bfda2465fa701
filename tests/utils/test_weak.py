"""torch.utils.weak."""

from __future__ import annotations

import gc

import pytest

import torchlab as torch
from torchlab.utils.weak import TensorWeakRef, WeakIdKeyDictionary, WeakTensorKeyDictionary


def test_keys_are_told_apart_by_identity() -> None:
    a, b = torch.ones(2), torch.ones(2)
    table = WeakTensorKeyDictionary({a: 1})
    table[b] = 2
    assert table[a] == 1 and table[b] == 2 and len(table) == 2
    assert a in table and torch.ones(2) not in table and 3 not in table
    assert [k is a or k is b for k in table] == [True, True]
    assert table.pop(a) == 1 and a not in table
    with pytest.raises(KeyError):
        table[a]


def test_keys_are_not_kept_alive() -> None:
    a = torch.ones(2)
    table = WeakIdKeyDictionary({a: 1})
    seen = TensorWeakRef(a)
    assert seen() is a
    del a
    gc.collect()
    assert len(table) == 0 and list(table) == [] and seen() is None


def test_copies_and_unions() -> None:
    a, b = torch.ones(1), torch.ones(1)
    first, second = WeakIdKeyDictionary({a: 1}), WeakIdKeyDictionary({b: 2})
    both = first | second
    assert len(both) == 2 and len(first) == 1 and both[b] == 2
    first |= {a: 5}
    assert first[a] == 5 and both[a] == 1
    with pytest.raises(NotImplementedError):
        first.__deepcopy__({})

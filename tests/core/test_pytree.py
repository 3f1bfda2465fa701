"""Nested containers: flattened and built again, mapped, walked with paths."""

from __future__ import annotations

import dataclasses
from collections import OrderedDict, defaultdict, deque, namedtuple
from typing import Any

import pytest

from torchlab.utils import _pytree as pytree

Point = namedtuple("Point", "x y")


@pytest.mark.parametrize(
    "tree, leaves",
    [
        (1, [1]),
        (None, [None]),
        ([], []),
        ([1, (2, None)], [1, 2, None]),
        ({"b": 1, "a": [2]}, [1, 2]),
        (Point(1, [2]), [1, 2]),
        (OrderedDict(z=1, a=2), [1, 2]),
        (deque([1, 2], maxlen=3), [1, 2]),
        (defaultdict(list, a=1), [1]),
    ],
)
def test_there_and_back(tree: Any, leaves: list[Any]) -> None:
    found, spec = pytree.tree_flatten(tree)
    assert found == leaves and spec.num_leaves == len(leaves)
    again = pytree.tree_unflatten(found, spec)
    assert again == tree and type(again) is type(tree)
    assert spec == pytree.tree_structure(tree)
    assert pytree.tree_unflatten(pytree.tree_leaves(tree), spec) == tree


def test_maps() -> None:
    assert pytree.tree_map(lambda a, b: a + b, [1, {"k": 2}], [10, {"k": 20}]) == [11, {"k": 22}]
    assert pytree.tree_map_only(int, lambda x: -x, [1, "a", (2.0, 3)]) == [-1, "a", (2.0, -3)]
    assert pytree.tree_map_only(lambda x: x == "a", str.upper, ["a", "b"]) == ["A", "b"]
    assert pytree.tree_all(lambda x: x > 0, [1, (2,)]) and pytree.tree_any(lambda x: x > 1, [1, 2])
    assert pytree.tree_all_only(int, lambda x: x > 0, [1, "a"])
    seen: list[int] = []
    assert pytree.tree_map_(seen.append, [1, [2]]) == [1, [2]] and seen == [1, 2]
    pairs = pytree.tree_map(len, [(1, 2), (3,)], is_leaf=lambda x: isinstance(x, tuple))
    assert pairs == [2, 1]


def test_shapes_that_do_not_fit() -> None:
    spec = pytree.tree_structure([1, 2])
    with pytest.raises(ValueError, match="holds 2 items"):
        spec.unflatten([1])
    with pytest.raises(ValueError, match="Node arity mismatch"):
        pytree.tree_map(lambda a, b: a, [1, 2], [1])
    with pytest.raises(ValueError, match="Type mismatch"):
        pytree.tree_map(lambda a, b: a, [1], (1,))
    with pytest.raises(ValueError, match="keys mismatch"):
        pytree.tree_map(lambda a, b: a, {"a": 1}, {"b": 1})


def test_paths() -> None:
    pairs = pytree.tree_leaves_with_path({"a": [1, Point(2, 3)]})
    assert [(pytree.keystr(k), v) for k, v in pairs] == [
        ("['a'][0]", 1),
        ("['a'][1].x", 2),
        ("['a'][1].y", 3),
    ]
    assert pytree.key_get({"a": [1, 5]}, (pytree.MappingKey("a"), pytree.SequenceKey(1))) == 5
    mapped = pytree.tree_map_with_path(lambda k, v: pytree.keystr(k), {"a": [1]})
    assert mapped == {"a": ["['a'][0]"]}


def test_types_of_ones_own() -> None:
    class Pair:
        def __init__(self, a: Any, b: Any) -> None:
            self.a, self.b = a, b

    pytree.register_pytree_node(Pair, lambda p: ([p.a, p.b], None), lambda c, _: Pair(*c))
    try:
        doubled = pytree.tree_map(lambda x: x * 2, Pair(1, [2]))
        assert (doubled.a, doubled.b) == (2, [4])
        with pytest.raises(ValueError, match="already registered"):
            pytree.register_pytree_node(Pair, lambda p: ([], None), lambda c, _: None)
        with pytest.raises(ValueError, match="flatten_with_keys_fn"):
            pytree.tree_leaves_with_path(Pair(1, 2))
    finally:
        pytree._deregister_pytree_node(Pair)
    assert pytree.tree_leaves(Pair(1, 2))[0].a == 1

    @dataclasses.dataclass
    class Data:
        x: int
        y: int | None = None

    pytree.register_dataclass(Data)
    assert pytree.tree_map(lambda v: v + 1, Data(1)) == Data(2)
    assert pytree.tree_leaves(Data(1, 2)) == [1, 2]
    pytree._deregister_pytree_node(Data)


def test_the_text_of_a_structure() -> None:
    assert repr(pytree.tree_structure([1, {"a": 2}])) == (
        "TreeSpec(list, None, [*,\n  TreeSpec(dict, ['a'], [*])])"
    )
    assert repr(pytree.LeafSpec()) == "*"

"""Nested containers: flattened and built again, mapped, walked with paths."""

from __future__ import annotations

import dataclasses
import enum
from collections import OrderedDict, defaultdict, deque, namedtuple
from typing import Any

import pytest

import torchlab as torch
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


# ---- structures as text -------------------------------------------------------------------------


class Colour(enum.Enum):
    RED = 1


@pytest.mark.parametrize(
    "tree, text",
    [
        (5, '{"type": null, "context": null, "children_spec": []}'),
        ({"b": 1}, '{"type": "builtins.dict", "context": "[\\"b\\"]", "children_spec": [*]}'),
        ((1,), '{"type": "builtins.tuple", "context": "null", "children_spec": [*]}'),
        (deque([1], 3), '{"type": "collections.deque", "context": "3", "children_spec": [*]}'),
        (
            defaultdict(int, a=1),
            '{"type": "collections.defaultdict", "context": {"default_factory_module": "builtins",'
            ' "default_factory_name": "int", "dict_context": ["a"]}, "children_spec": [*]}',
        ),
        (torch.Size([1]), '{"type": "torch.Size", "context": "null", "children_spec": [*]}'),
    ],
)
def test_structures_are_written_and_read(tree: Any, text: str) -> None:
    spec = pytree.tree_structure(tree)
    leaf = '{"type": null, "context": null, "children_spec": []}'
    assert pytree.treespec_dumps(spec) == f"[1, {text.replace('*', leaf)}]"
    assert pytree.treespec_loads(pytree.treespec_dumps(spec)) == spec


def test_structures_of_ones_own_types() -> None:
    with pytest.raises(NotImplementedError, match="_register_namedtuple"):
        pytree.treespec_dumps(pytree.tree_structure(Point(1, 2)))
    pytree._register_namedtuple(Point, serialized_type_name="tests.Point")
    spec = pytree.tree_structure(Point(1, 2))
    assert '"context": "tests.Point"' in pytree.treespec_dumps(spec)
    assert pytree.treespec_loads(pytree.treespec_dumps(spec)) == spec

    class Kept(list):
        pass

    def make(children: Any, context: Any) -> Kept:
        return Kept(children)

    with pytest.raises(ValueError, match="must be None or registered"):
        pytree.register_pytree_node(Kept, lambda k: (k, None), make, to_dumpable_context=str)
    assert Kept not in pytree.SUPPORTED_NODES
    pytree.register_pytree_node(
        Kept, lambda k: (list(k), "c"), make, serialized_type_name="tests.Kept",
        to_dumpable_context=lambda c: c + "!", from_dumpable_context=lambda c: c[:-1],
    )  # fmt: skip
    try:
        text = pytree.treespec_dumps(pytree.tree_structure(Kept([1])))
        assert '"context": "c!"' in text
        assert pytree.treespec_loads(text).context == "c"
    finally:
        pytree._deregister_pytree_node(Kept)


def test_enumerations_in_contexts() -> None:
    spec = pytree.tree_structure({Colour.RED: 1})
    text = pytree.treespec_dumps(spec)
    assert pytree.treespec_loads(text) == spec
    for other in ("os:system", "not_loaded:Colour", f"{__name__}:Point"):
        with pytest.raises(TypeError, match="is not an enumeration that is loaded"):
            pytree.treespec_loads(text.replace(f"{__name__}:Colour", other))


def test_factories_are_built_in_types() -> None:
    text = pytree.treespec_dumps(pytree.tree_structure(defaultdict(int, a=1)))
    with pytest.raises(TypeError, match="can be a built-in type"):
        pytree.treespec_loads(text.replace('"builtins"', '"os"').replace('"int"', '"system"'))
    with pytest.raises(TypeError, match="can be a built-in type"):
        pytree.treespec_loads(text.replace('"int"', '"exec"'))


def test_what_cannot_be_written_or_read() -> None:
    spec = pytree.tree_structure([1])
    with pytest.raises(ValueError, match=r"Unknown protocol 2. Available protocols: \[1\]"):
        pytree.treespec_dumps(spec, protocol=2)
    with pytest.raises(ValueError, match="Unknown protocol 2"):
        pytree.treespec_loads("[2, {}]")
    with pytest.raises(TypeError, match="instance of PyTreeSpec but got item of type"):
        pytree.treespec_dumps(3)  # type: ignore[arg-type]
    with pytest.raises(NotImplementedError, match="Deserializing x in pytree is not registered"):
        pytree.treespec_loads('[1, {"type": "x", "context": null, "children_spec": []}]')
    with pytest.raises(TypeError, match="Unable to serialize context"):
        pytree.treespec_dumps(pytree.tree_structure({object: 3}))
    with pytest.raises(NotImplementedError, match="No registered serialization name"):
        pytree.treespec_dumps(pytree.tree_structure(torch.ones(2).max(0)))


def test_structures_are_made_and_printed() -> None:
    leaf = pytree.treespec_leaf()
    assert pytree.treespec_tuple([leaf, leaf]) == pytree.tree_structure((1, 2))
    assert pytree.treespec_dict({"a": leaf}, b=leaf) == pytree.tree_structure({"a": 1, "b": 2})
    assert pytree.treespec_pprint(pytree.tree_structure({"b": 1, "a": [2, (3, None)]})) == (
        "{'b': *, 'a': [*, (*, *)]}"
    )
    with pytest.raises(ValueError, match=r"Expected a tuple of TreeSpec values, got: \[1\]"):
        pytree.treespec_tuple([1])  # type: ignore[list-item]
    with pytest.raises(ValueError, match="Expected a dictionary of TreeSpec values"):
        pytree.treespec_dict({"a": 1})  # type: ignore[dict-item]


# ---- more kinds of nodes ------------------------------------------------------------------------


def test_sizes_and_results_are_nodes() -> None:
    leaves, spec = pytree.tree_flatten(torch.Size([1, 2]))
    assert leaves == [1, 2] and spec.unflatten(leaves) == (1, 2)
    assert pytree.tree_leaves_with_path(torch.Size([4])) == [((pytree.SequenceKey(0),), 4)]
    found = pytree.tree_map_with_path(lambda path, x: path[0].idx, torch.ones(2).max(0))
    assert tuple(found) == (0, 1) and type(found).__name__ == "max"


def test_named_tuples_have_subclasses() -> None:
    class Below(Point):
        pass

    assert pytree.tree_leaves(Below(1, 2)) == [1, 2]
    assert pytree.is_namedtuple_class(Below) and pytree.is_namedtuple(Below)
    assert pytree.is_namedtuple(Point(1, 2)) and not pytree.is_namedtuple_instance(Point)


def test_constants_live_in_the_structure() -> None:
    @dataclasses.dataclass(frozen=True)
    class Fixed:
        name: str

    pytree.register_constant(Fixed)
    try:
        leaves, spec = pytree.tree_flatten([Fixed("a"), 1])
        assert leaves == [1] and spec.unflatten([2]) == [Fixed("a"), 2]
        assert pytree.is_constant_class(Fixed) and not pytree.is_constant_class(int)
    finally:
        pytree._deregister_pytree_node(Fixed)
    with pytest.raises(TypeError, match="non-default `__eq__`"):
        pytree.register_constant(type("Plain", (), {}))


def test_small_questions() -> None:
    assert pytree.arg_tree_leaves(1, [2, 3], a=(4,)) == [1, 2, 3, 4]
    assert pytree.tree_is_leaf(1) and not pytree.tree_is_leaf([])
    assert pytree.tree_is_leaf((1,), is_leaf=lambda x: isinstance(x, tuple))
    broadcast = pytree._broadcast_to_and_flatten
    assert broadcast([1, 2], pytree.tree_structure([[3, 4], 5])) == [1, 1, 2]
    assert broadcast([1, 2, 3], pytree.tree_structure([[3, 4], 5])) is None
    assert pytree._dict_flatten({"b": 1, "a": 2}) == ([1, 2], ["b", "a"])
    keyed, context = pytree._dict_flatten_with_keys({"b": 1})
    assert keyed == [(pytree.MappingKey("b"), 1)] and context == ["b"]
    assert pytree._dict_unflatten([1, 2], ["a", "b"]) == {"a": 1, "b": 2}
    assert pytree._namedtuple_unflatten([1, 2], Point) == Point(1, 2)


def test_the_function_stands_for_all_named_tuples() -> None:
    assert pytree._get_node_type(Point(1, 2)) is namedtuple and pytree._get_node_type(3) is int
    assert pytree.SUPPORTED_NODES[namedtuple].flatten_fn(Point(1, 2)) == ([1, 2], Point)
    leaf = pytree.LeafSpec()
    spec = pytree.TreeSpec(namedtuple, Point, [leaf, leaf])
    assert spec == pytree.tree_structure(Point(3, 4)) and spec.unflatten([1, 2]) == Point(1, 2)

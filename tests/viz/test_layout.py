"""The layered layout: nothing overlaps, edges go down, the same input gives the same drawing."""

from __future__ import annotations

import itertools
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from torchlab.viz.layout import Box, Layout, layered
from torchlab.viz.layout.coordinates import isotonic, place_rank
from torchlab.viz.layout.ordering import crossings
from torchlab.viz.layout.ranking import back_edges, ranks

SIZES = [(60.0, 30.0), (120.0, 44.0), (200.0, 30.0)]


@st.composite
def dags(draw: st.DrawFn) -> tuple[dict[str, tuple[float, float]], list[tuple[str, str]]]:
    n = draw(st.integers(1, 24))
    sizes = {f"v{i}": draw(st.sampled_from(SIZES)) for i in range(n)}
    pairs = st.tuples(st.integers(0, n - 1), st.integers(0, n - 1)).filter(lambda p: p[0] < p[1])
    edges = draw(st.lists(pairs, max_size=40)) if n > 1 else []
    return sizes, [(f"v{a}", f"v{b}") for a, b in edges]


def check_no_overlap(drawn: Layout) -> None:
    for (a, x), (b, y) in itertools.combinations(drawn.nodes.items(), 2):
        assert not x.overlaps(y), f"{a} {x} overlaps {b} {y}"


def check_inside(drawn: Layout) -> None:
    for box in drawn.nodes.values():
        assert box.x >= -1e-6 and box.y >= -1e-6
        assert box.right <= drawn.width + 1e-6 and box.bottom <= drawn.height + 1e-6


@settings(max_examples=80, deadline=None)
@given(dags())
def test_random_dags(graph: tuple[dict[str, tuple[float, float]], list[tuple[str, str]]]) -> None:
    sizes, edges = graph
    drawn = layered(sizes, edges)
    check_no_overlap(drawn)
    check_inside(drawn)
    assert [(r.src, r.dst) for r in drawn.routes] == edges
    for route in drawn.routes:
        source, target = drawn.nodes[route.src], drawn.nodes[route.dst]
        assert source.bottom < target.y
        assert route.points[0] == pytest.approx((source.cx, source.bottom))
        assert route.points[-1] == pytest.approx((target.cx, target.y))
        ys = [y for _, y in route.points]
        assert ys == sorted(ys)
    again = layered(sizes, edges)
    assert again.nodes == drawn.nodes and again.routes == drawn.routes


@settings(max_examples=40, deadline=None)
@given(dags())
def test_routes_of_random_dags_cross_no_box(
    graph: tuple[dict[str, tuple[float, float]], list[tuple[str, str]]],
) -> None:
    sizes, edges = graph
    drawn = layered(sizes, edges)
    for route in drawn.routes:
        for (x0, y0), (x1, y1) in itertools.pairwise(route.points):
            if x0 != x1:  # a curve; it runs between two ranks, where no box is
                segment = Box(min(x0, x1), min(y0, y1), abs(x1 - x0), abs(y1 - y0))
            else:
                segment = Box(x0 - 0.5, y0, 1.0, y1 - y0)
            for name, box in drawn.nodes.items():
                if name not in (route.src, route.dst):
                    assert not segment.overlaps(box), (route, name)


@settings(max_examples=60, deadline=None)
@given(dags(), st.integers(1, 4))
def test_groups_contain_their_members_and_nothing_else(
    graph: tuple[dict[str, tuple[float, float]], list[tuple[str, str]]], k: int
) -> None:
    sizes, edges = graph
    names = list(sizes)
    groups = {"g": names[:k], "h": names[k : 2 * k]}
    drawn = layered(sizes, edges, groups)
    check_no_overlap(drawn)
    check_inside(drawn)
    assert [(r.src, r.dst) for r in drawn.routes] == edges
    for group, members in groups.items():
        if not members:
            continue
        frame = drawn.groups[group]
        for name, box in drawn.nodes.items():
            if name in members:
                assert frame.x <= box.x and box.right <= frame.right
                assert frame.y < box.y and box.bottom < frame.bottom
            else:
                assert not frame.overlaps(box)


def test_chain_is_straight() -> None:
    drawn = layered({"a": (80, 30), "b": (120, 30), "c": (60, 30)}, [("a", "b"), ("b", "c")])
    assert {box.cx for box in drawn.nodes.values()} == {60.0}
    assert [drawn.nodes[n].y for n in "abc"] == [0.0, 60.0, 120.0]
    assert drawn.routes[0].path() == "M60.0 30.0L60.0 60.0"


def test_crossing_is_removed() -> None:
    # drawn in the order given, a–d and b–c would cross
    size = (40.0, 20.0)
    names = dict.fromkeys(("r", "a", "b", "c", "d"), size)
    drawn = layered(names, [("r", "a"), ("r", "b"), ("a", "d"), ("b", "c")])
    assert (drawn.nodes["a"].x < drawn.nodes["b"].x) == (drawn.nodes["d"].x < drawn.nodes["c"].x)


def test_long_edge_goes_around_the_middle_node() -> None:
    drawn = layered(dict.fromkeys("abc", (100.0, 30.0)), [("a", "b"), ("b", "c"), ("a", "c")])
    middle = drawn.nodes["b"]
    bend = [x for x, y in drawn.routes[2].points if middle.y <= y <= middle.bottom]
    assert bend and all(x < middle.x or x > middle.right for x in bend)


def test_an_input_stands_beside_its_only_reader() -> None:
    succ = [[1], [2], [], [2]]
    pred = [[], [0], [1, 3], []]
    assert ranks(succ, pred) == [0, 1, 2, 1]


def test_cycles_and_self_loops_are_drawn() -> None:
    edges = [("a", "b"), ("b", "a"), ("b", "b")]
    drawn = layered({"a": (50, 20), "b": (50, 20)}, edges)
    assert [(r.src, r.dst) for r in drawn.routes] == edges
    assert drawn.routes[1].points[0][1] > drawn.routes[1].points[-1][1]  # the one that points up
    assert back_edges(2, [(0, 1), (1, 0), (1, 1)]) == {1, 2}


def test_unconnected_parts_share_a_shelf_up_to_the_width() -> None:
    sizes = {f"v{i}": (100.0, 20.0) for i in range(4)}
    drawn = layered(sizes, [], max_width=300, node_gap=20, rank_gap=30)
    assert [b.y for b in drawn.nodes.values()] == [0.0, 0.0, 50.0, 50.0]


def test_isotonic_by_hand() -> None:
    assert isotonic([1.0, 3.0, 2.0, 4.0], [1.0] * 4) == [1.0, 2.5, 2.5, 4.0]
    assert isotonic([4.0, 0.0], [1.0, 3.0]) == [1.0, 1.0]


def test_two_boxes_that_want_the_same_place_stand_around_it() -> None:
    assert place_rank([100.0, 100.0], [40.0, 40.0], [1.0, 1.0], 10.0) == [75.0, 125.0]


def test_crossings_by_hand() -> None:
    assert crossings([[0, 1], [2, 3]], [[3], [2], [], []]) == 1
    assert crossings([[0, 1], [2, 3]], [[2, 3], [2, 3], [], []]) == 1
    assert crossings([[0, 1], [2, 3]], [[2], [3], [], []]) == 0


def test_empty_graph() -> None:
    drawn = layered({}, [])
    assert (drawn.width, drawn.height, drawn.nodes) == (0.0, 0.0, {})


@pytest.mark.parametrize(
    ("edges", "groups", "words"),
    [
        ([("a", "z")], {}, "unknown node 'z'"),
        ([], {"g": ["z"]}, "unknown node 'z'"),
        ([], {"g": ["a"], "h": ["a"]}, "in two groups"),
    ],
)
def test_bad_input(edges: list[tuple[str, str]], groups: dict[str, list[str]], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        layered({"a": (1, 1)}, edges, groups)


def test_a_deep_tape_of_five_thousand_nodes_is_quick() -> None:
    sizes = {f"v{i}": (120.0, 40.0) for i in range(5000)}
    edges = [(f"v{i}", f"v{i + 1}") for i in range(4999)]
    edges += [(f"v{i}", f"v{i + 7}") for i in range(0, 4990, 3)]
    start = time.process_time()
    drawn = layered(sizes, edges)
    assert time.process_time() - start < 8.0
    assert len(drawn.nodes) == 5000


def test_an_edge_into_a_group_goes_round_the_nodes_before_its_target() -> None:
    sizes = dict.fromkeys(("x", "late", "a", "b", "c", "d", "y"), (80.0, 20.0))
    edges = [("x", "a"), ("a", "b"), ("b", "c"), ("c", "d"), ("late", "d"), ("a", "y")]
    drawn = layered(sizes, edges, {"g": ["a", "b", "c", "d"]})
    for route in drawn.routes:
        for name, box in drawn.nodes.items():
            if name in (route.src, route.dst):
                continue
            for (x0, y0), (x1, y1) in zip(route.points, route.points[1:], strict=False):
                if x0 == x1:
                    aside = x0 <= box.x or x0 >= box.right
                    assert aside or max(y0, y1) <= box.y or min(y0, y1) >= box.bottom


def test_a_chain_with_a_leaf_at_every_link_stays_upright() -> None:
    chain = [f"op{i}" for i in range(6)]
    sizes = dict.fromkeys([*chain, *(f"leaf{i}" for i in range(5))], (100.0, 20.0))
    edges = list(zip(chain, chain[1:], strict=False))
    edges += [(chain[i], f"leaf{i}") for i in range(5)]
    drawn = layered(sizes, edges)
    middles = [drawn.nodes[name].x + 50 for name in chain[:5]]
    assert max(middles) - min(middles) < 1.0

"""Symbolic sizes: their arithmetic, what they ask, and operators' shapes in them."""

from __future__ import annotations

import math

import pytest

import torchlab as torch
from torchlab import nn
from torchlab._subclasses.fake_tensor import FakeTensorMode
from torchlab.fx.experimental.proxy_tensor import make_fx
from torchlab.fx.experimental.symbolic_shapes import (
    ShapeEnv,
    create_symint,
    free_symbols,
    guard_int,
    hint_int,
    is_concrete_int,
    is_symbolic,
    statically_known_true,
    sym_eq,
)

F = nn.functional


def size(val: int = 6, low: int = 0, high: int | None = None):
    env = ShapeEnv()
    return create_symint(env, val, "x.size(0)", low, high), env


@pytest.mark.parametrize(
    ("compute", "text"),
    [
        (lambda s, t: s * 2 + 1, "2*s0 + 1"),
        (lambda s, t: (s * 12) // s, "12"),
        (lambda s, t: math.prod((s, 3, 4)), "12*s0"),
        (lambda s, t: (s * 6) // 4, "3*s0//2"),
        (lambda s, t: (s * t + s) // (t + 1), "s0"),
        (lambda s, t: (s // 2) // 3, "s0//6"),
        (lambda s, t: (2 * s) % 4, "2*Mod(s0, 2)"),
        (lambda s, t: (2 * s + 4) % 2, "0"),
        (lambda s, t: (s + 7 - 3) // 2 + 1, "(s0//2) + 3"),
        (lambda s, t: s - s + t - t, "0"),
        (lambda s, t: torch.sym_max(s, t), "Max(s0, s1)"),
        (lambda s, t: torch.sym_max(s, 1), "s0"),
        (lambda s, t: s**2 - s * s, "0"),
        (lambda s, t: 10 - s, "-s0 + 10"),
        (lambda s, t: s / 2, "IntTrueDiv(s0, 2)"),
    ],
)
def test_arithmetic_has_a_normal_form_and_asks_nothing(compute, text):
    s, env = size(6)
    t = create_symint(env, 9)
    assert str(compute(s, t)) == text
    assert not env.asked


def test_values_of_expressions_are_pythons(rng=range(2, 40)):
    s, env = size(7)
    t = create_symint(env, 5)
    made = [
        (s * 3 + t) // 4,
        (s - 20) // 3,
        (2 * s + 1) % 4,
        (s * t + t) // t,
        torch.sym_min(s // 2, t),
        (s + t) % t,
        (4 * s + 2) // 6,
    ]
    plain = lambda s, t: [
        (s * 3 + t) // 4,
        (s - 20) // 3,
        (2 * s + 1) % 4,
        (s * t + t) // t,
        min(s // 2, t),
        (s + t) % t,
        (4 * s + 2) // 6,
    ]
    a, b = s.node.expr.symbol, t.node.expr.symbol
    for x in rng:
        for y in (2, 3, 17):
            values = {a: x, b: y}
            got = [e if type(e) is int else e.node.expr.value(values) for e in made]
            assert got == plain(x, y)
    assert not env.asked


def test_declared_ranges_answer_without_a_guard():
    s, env = size(6, 1, 99)
    t = create_symint(env, 4)
    assert s != 1 and s > 0 and s <= 99 and s - s // 2 > 0 and s * t > t - 1
    assert 2 * s + 1 != 4 * t and not (s == 0) and max(s, 1) is s
    assert not env.asked


def test_a_question_becomes_a_guard_with_the_line_that_asked():
    s, env = size(6, 1, 99)
    assert s > 3
    assert [str(g.relation) for g in env.asked] == ["s0 >= 4"]
    assert env.asked[0].line.startswith(__file__)
    assert s > 2 and len(env.asked) == 1  # it follows
    assert env.var_to_range[s.node.expr.symbol] == (4, 99)


@pytest.mark.parametrize(
    "use", [int, range, lambda s: [0] * s, hash, lambda s: [1, 2][s - 6 :], float, "{:d}".format]
)
def test_who_needs_the_number_itself_fixes_it(use):
    s, env = size(6)
    use(s)
    assert is_concrete_int(s) and str(s) == "6"
    assert str(env.asked[0].relation) == "s0 == 6"


def test_equal_sizes_become_one_and_divisible_ones_are_taken_apart():
    s, env = size(6)
    t = create_symint(env, 6)
    assert s == t and str(t) == "s0" and t - s == 0
    assert s % 3 == 0 and statically_known_true(s == 3 * (s // 3))
    assert str(t) == "3*s2"


def test_functions_of_symbolic_numbers():
    s, env = size(6)
    assert is_symbolic(s) and isinstance(s, torch.SymInt) and isinstance(s, int)
    assert hint_int(s * 2) == 12 and not env.asked
    assert statically_known_true(sym_eq((s, 3), (s, 3))) and sym_eq((s, 3), (s, 4)) is False
    assert isinstance(torch.sym_float(s), torch.SymFloat)
    assert str(torch.sym_int(s / 2)) == "TruncToInt(IntTrueDiv(s0, 2))"
    assert isinstance(torch.sym_not(s == 7), torch.SymBool) and torch.sym_not(False) is True
    assert torch.sym_sum([s, s, 1]).node.hint == 13
    assert guard_int(s) == 6 and not is_symbolic(s + 1 - s)


CASES = {
    "reshape": (lambda x: x.reshape(x.shape[0], -1), "[s0, 12]"),
    "flatten": (lambda x: x.flatten(), "[12*s0]"),
    "view": (lambda x: x.view(x.shape[0] * 3, 4), "[3*s0, 4]"),
    "expand": (lambda x: torch.ones(1, 3, 4).expand(x.shape[0], -1, -1), "[s0, 3, 4]"),
    "repeat": (lambda x: x.repeat(2, 1, 1), "[2*s0, 3, 4]"),
    "slice": (lambda x: x[1:, :2], "[s0 - 1, 2, 4]"),
    "steps": (lambda x: x[::2], "[(s0 + 1)//2, 3, 4]"),
    "half": (lambda x: x[: x.shape[0] // 2], "[s0//2, 3, 4]"),
    "select": (lambda x: x[x.shape[0] - 1], "[3, 4]"),
    "cat": (lambda x: torch.cat([x, torch.zeros(2, 3, 4)]), "[s0 + 2, 3, 4]"),
    "permute": (lambda x: x.permute(2, 0, 1).contiguous(), "[4, s0, 3]"),
    "sum": (lambda x: x.sum((1, 2), keepdim=True), "[s0, 1, 1]"),
    "broadcast": (lambda x: x + x.mean(0), "[s0, 3, 4]"),
    "matmul": (lambda x: x @ torch.ones(4, 5), "[s0, 3, 5]"),
    "einsum": (lambda x: torch.einsum("bij,bkj->bik", x, x), "[s0, 3, 3]"),
    "conv": (lambda x: F.conv1d(x, torch.ones(5, 3, 3), padding=1), "[s0, 5, 4]"),
    "length": (lambda x: F.conv1d(x.mT.T, torch.ones(2, 3, 3), padding=2), None),
    "pool": (lambda x: F.avg_pool1d(x, 2), "[s0, 3, 2]"),
    "pad": (lambda x: F.pad(x, (0, 0, 0, 0, 1, 2)), "[s0 + 3, 3, 4]"),
    "norm": (lambda x: F.layer_norm(x, (4,)), "[s0, 3, 4]"),
    "attention": (lambda x: F.scaled_dot_product_attention(x, x, x), "[s0, 3, 4]"),
    "zeros": (lambda x: torch.zeros(x.numel()), "[12*s0]"),
    "arange": (lambda x: torch.arange(x.shape[0] * 2), "[2*s0]"),
    "eye": (lambda x: torch.eye(x.shape[0]), "[s0, s0]"),
    "linspace": (lambda x: torch.linspace(0, 1, x.shape[0]), "[s0]"),
    "embedding": (lambda x: F.embedding(x.long(), torch.ones(10, 7)), "[s0, 3, 4, 7]"),
    "one_hot": (lambda x: F.one_hot(x.long(), 5), "[s0, 3, 4, 5]"),
    "interpolate": (lambda x: F.interpolate(x, scale_factor=2.0), "[s0, 3, 8]"),
    "mean by the size": (lambda x: x.sum(0) / x.shape[0], "[3, 4]"),
}


@pytest.mark.parametrize("name", [k for k, v in CASES.items() if v[1]])
def test_shapes_stay_symbolic_through_operators(name):
    compute, wanted = CASES[name]
    env = ShapeEnv()
    mode = FakeTensorMode(shape_env=env, allow_non_fake_inputs=True)
    b = create_symint(env, 6, "x.size(0)", 0, 1000)
    x = mode.from_tensor(torch.ones(6, 3, 4), sizes=(b, 3, 4))
    with mode:
        result = compute(x)
    assert f"[{', '.join(map(str, result.shape))}]" == wanted
    assert not env.asked, env.asked
    real = compute(torch.ones(6, 3, 4))
    hints = [hint_int(n) for n in result.shape]
    assert hints == list(real.shape) and [hint_int(n) for n in result.stride()] == list(
        real.stride()
    )


def test_make_fx_with_symbols_holds_for_other_sizes():
    def f(x, n):
        return x.reshape(-1)[: x.shape[1]] * n + torch.zeros(x.shape[1]), x.shape[0] * x.shape[1]

    gm = make_fx(f, tracing_mode="symbolic")(torch.ones(3, 4), 5)
    assert len(free_symbols(gm.graph.find_nodes(op="placeholder")[0].meta["val"])) == 2
    x = torch.randn(6, 7)
    got, want = gm(x, 2), f(x, 2)
    assert torch.equal(got[0], want[0]) and got[1] == want[1] == 42


def test_make_fx_fake_keeps_sizes_and_needs_no_data():
    gm = make_fx(lambda x: x.relu().sum(), tracing_mode="fake")(torch.ones(2, 3))
    val = gm.graph.find_nodes(op="placeholder")[0].meta["val"]
    assert repr(val) == "FakeTensor(..., size=(2, 3))"
    assert gm(torch.tensor([[-1.0, 2.0]])).item() == 2
    whole = make_fx(lambda x: x.flatten(1) @ x.new_ones(4, 1), pre_dispatch=True)(
        torch.ones(2, 2, 2)
    )
    assert "flatten.using_ints" in whole.code and "matmul.default" in whole.code

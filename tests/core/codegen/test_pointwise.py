"""Scalar expressions and reductions against NumPy in float64, in every language that runs here."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import special

from torchlab._core.codegen import Builder, compile_program, pointwise_kernel, toolchain

INF, NAN = math.inf, math.nan
Array = np.ndarray[Any, Any]

SPECIAL = [
    0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 2.0, 3.0, -3.0, 1e-3, -1e-3, 1e-30, -1e-30, 10.0, -10.0, 20.0,
    88.0, -88.0, 100.0, -100.0, 700.0, -700.0, 1e-40, -1e-40, 1e30, -1e30, INF, -INF, NAN,
]  # fmt: skip

UNARY: dict[str, Callable[[Array], Array]] = {
    "exp(x)": np.exp,
    "exp2(x)": np.exp2,
    "expm1(x)": np.expm1,
    "log(x)": np.log,
    "log2(x)": np.log2,
    "log10(x)": np.log10,
    "log1p(x)": np.log1p,
    "tanh(x)": np.tanh,
    "erf(x)": special.erf,
    "sigmoid(x)": special.expit,
    "sqrt(x)": np.sqrt,
    "rsqrt(x)": lambda x: 1 / np.sqrt(x),
    "reciprocal(x)": lambda x: 1 / x,
    "sin(x)": np.sin,
    "cos(x)": np.cos,
    "sinh(x)": np.sinh,
    "asinh(x)": np.arcsinh,
    "atan(x)": np.arctan,
    "floor(x)": np.floor,
    "ceil(x)": np.ceil,
    "round(x)": np.rint,
    "trunc(x)": np.trunc,
    "sign(x)": np.sign,
    "abs(x)": np.abs,
    "-x": np.negative,
    "x ** 2": np.square,
    "clamp(x, -1, 2)": lambda x: np.minimum(np.maximum(x, -1), 2),
    "where(x > 0, x, 0.25 * x)": lambda x: np.where(x > 0, x, 0.25 * x),
    "x if x < 1 else 1 / x": lambda x: np.where(x < 1, x, 1 / x),
    "isnan(x)": np.isnan,
    "isinf(x)": np.isinf,
    "isfinite(x)": np.isfinite,
    "signbit(x)": np.signbit,
    "not x": lambda x: x == 0,
    "inf * x": lambda x: np.inf * x,
}

BINARY: dict[str, Callable[[Array, Array], Array]] = {
    "x + 2 * y": lambda x, y: x + 2 * y,
    "x / y": np.divide,
    "x // y": np.floor_divide,
    "x % y": np.remainder,
    "fmod(x, y)": np.fmod,
    "x ** y": np.power,
    "maximum(x, y)": np.maximum,
    "minimum(x, y)": np.minimum,
    "fmax(x, y)": np.fmax,
    "fmin(x, y)": np.fmin,
    "atan2(x, y)": np.arctan2,
    "copysign(x, y)": np.copysign,
    "x < y": np.less,
    "x != y": np.not_equal,
    "x <= 1 and y > 0": lambda x, y: (x <= 1) & (y > 0),
    "where(x == y, x, y)": lambda x, y: np.where(x == y, x, y),
}

INTEGERS: dict[str, Callable[[Array, Array], Array]] = {
    "x + y": np.add,
    "x - 3 * y": lambda x, y: x - 3 * y,
    "x // y": np.floor_divide,
    "x % y": np.remainder,
    "x / y": lambda x, y: np.float32(x) / np.float32(y),
    "x ** 3": lambda x, y: x**3,
    "x & y": np.bitwise_and,
    "x | y": np.bitwise_or,
    "x ^ y": np.bitwise_xor,
    "~x": lambda x, y: ~x,
    "x << 2": lambda x, y: x << 2,
    "x >> 1": lambda x, y: x >> 1,
    "abs(x)": lambda x, y: np.abs(x),
    "sign(x)": lambda x, y: np.sign(x),
    "floor(x)": lambda x, y: x,
    "maximum(x, y)": np.maximum,
    "x >= y": np.greater_equal,
    "to(x, 'float64') * 0.5": lambda x, y: x * 0.5,
    "to(x, 'bool')": lambda x, y: x != 0,
    "where(x > y, x, 7)": lambda x, y: np.where(x > y, x, 7),
}

BOOLEANS: dict[str, Callable[[Array, Array], Array]] = {
    "x & y": np.logical_and,
    "x | y": np.logical_or,
    "x ^ y": np.logical_xor,
    "~x": lambda x, y: ~x,
    "x and not y": lambda x, y: x & ~y,
    "x == y": np.equal,
    "x + 1": lambda x, y: x.astype(np.int64) + 1,
    "x * 0.5": lambda x, y: (x * 0.5).astype(np.float32),
    "to(x, 'int64') - to(y, 'int64')": lambda x, y: x.astype(np.int64) - y.astype(np.int64),
    "where(x, 2.5, 0.0)": lambda x, y: np.where(x, 2.5, 0.0).astype(np.float32),
}


def evaluate(
    expressions: Mapping[str, Any], inputs: dict[str, Array], language: str
) -> list[Array]:
    """All expressions in one program, hence with one run of the compiler."""
    b = Builder("expressions")
    for name, array in inputs.items():
        b.input(name, array.shape, array.dtype.name)
    results = []
    for n, expr in enumerate(expressions):
        used = {k: k for k in inputs if re.search(rf"\b{k}\b", expr)}
        results.append(b.pointwise(f"r{n}", expr, **used))
    program = compile_program(b.finish(results), language=language)
    assert program.language == language
    return program.run(*inputs.values())


def assert_close(got: Array, wanted: Array, ulps: float, what: str, *inputs: Array) -> None:
    """Equal, infinities, NaN and the signs of zeros included, up to `ulps` units in the last
    place of `got`'s type (of its smallest subnormal below its range)."""
    assert got.shape == wanted.shape, what
    if got.dtype.kind != "f":
        np.testing.assert_array_equal(got, wanted, what)
        return
    with np.errstate(all="ignore"):
        wanted = wanted.astype(got.dtype)
        unit = np.spacing(np.abs(wanted))
        off = np.abs(got.astype(np.float64) - wanted) > ulps * unit
    special_value = ~np.isfinite(wanted) | ~np.isfinite(got)
    wrong = np.where(special_value, ~((got == wanted) | np.isnan(got) & np.isnan(wanted)), off)
    wrong |= (wanted == 0) & (got == 0) & (np.signbit(wanted) != np.signbit(got))
    bad = np.flatnonzero(wrong)[:5]
    assert not bad.size, (what, [x[bad] for x in inputs], got[bad], wanted[bad])


def samples(dtype: str) -> Array:
    rng = np.random.default_rng(0)
    normal = rng.normal(size=400)
    return np.concatenate([SPECIAL, 3 * normal, 30 * normal[:200]]).astype(dtype)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_functions_of_one_float(language: str, dtype: str) -> None:
    x = samples(dtype)
    with np.errstate(all="ignore"):
        wanted = [f(x.astype(np.float64)) for f in UNARY.values()]
    for expr, got, want in zip(UNARY, evaluate(UNARY, {"x": x}, language), wanted, strict=True):
        assert got.dtype.name == ("bool" if want.dtype == bool else dtype), expr
        assert_close(got, want, 2, expr, x)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_functions_of_two_floats(language: str, dtype: str) -> None:
    values = np.array([0.0, -0.0, 1, -1, 0.5, 2, -3, 7.25, 1e-40, -20, INF, -INF, NAN], dtype)
    x, y = (a.ravel() for a in np.meshgrid(values, values))
    got = evaluate(BINARY, {"x": x, "y": y}, language)
    for (expr, function), result in zip(BINARY.items(), got, strict=True):
        with np.errstate(all="ignore"):
            wanted = function(x.astype(np.float64), y.astype(np.float64))
        if expr in ("x % y", "maximum(x, y)", "minimum(x, y)", "fmax(x, y)", "fmin(x, y)"):
            result, wanted = result + 0.0, wanted + 0.0  # −0 + 0 is 0: their zeros' signs are free
        assert_close(result, wanted, 2, expr, x, y)


def test_integers(language: str) -> None:
    values = np.array([1, -1, 2, -2, 3, -7, 10, 255, -256, 2**31, -(2**40)])
    x, y = (a.ravel() for a in np.meshgrid(values, values))
    got = evaluate(INTEGERS, {"x": x, "y": y}, language)
    for (expr, function), result in zip(INTEGERS.items(), got, strict=True):
        wanted = function(x, y)
        assert result.dtype == wanted.dtype, expr
        assert_close(result, wanted, 0, expr, x, y)


def test_booleans(language: str) -> None:
    x, y = np.array([False, False, True, True]), np.array([False, True, False, True])
    got = evaluate(BOOLEANS, {"x": x, "y": y}, language)
    for (expr, function), result in zip(BOOLEANS.items(), got, strict=True):
        wanted = function(x, y)
        assert result.dtype == wanted.dtype, expr
        assert_close(result, wanted, 0, expr, x, y)


def test_results_worked_out_by_hand(language: str) -> None:
    x = np.array([-7, 7, -7, 7])
    y = np.array([2, 2, -2, -2])
    floor, rest = evaluate({"x // y": 0, "x % y": 0}, {"x": x, "y": y}, language)
    assert floor.tolist() == [-4, 3, 3, -4]
    assert rest.tolist() == [1, 1, -1, -1]
    v = np.array([-INF, -1000.0, -1.5, 0.0, 0.5, 1.5, 2.5, INF], "float32")
    sigmoid, rounded, tanh = evaluate(
        {"sigmoid(x)": 0, "round(x)": 0, "tanh(x)": 0}, {"x": v}, language
    )
    assert sigmoid[[0, 1, 3, 7]].tolist() == [0, 0, 0.5, 1]
    assert rounded.tolist() == [-INF, -1000, -2, 0, 0, 2, 2, INF]  # halves go to the even number
    assert tanh[[0, 1, 3, 7]].tolist() == [-1, -1, 0, 1]


def test_the_logarithm_of_gamma_at_the_ends(language: str) -> None:
    # log |Γ(x)|: Γ(5) = 24; the poles at 0, −1, … and both infinities give +inf, as C's lgamma
    x = np.array([5.0, 1.0, 0.0, -1.0, INF, -INF, NAN])
    (got,) = evaluate({"lgamma(x)": 0}, {"x": x}, language)
    np.testing.assert_allclose(got, [math.log(24), 0, INF, INF, INF, INF, NAN], rtol=1e-14)


def test_subnormal_numbers_are_not_flushed(language: str) -> None:
    x = np.array([-100.0, -103.0, -104.0], "float32")
    exp, scaled = evaluate({"exp(x)": 0, "x * 1e-42": 0}, {"x": x}, language)
    assert exp[0] == np.float32(math.exp(-100)) > 0  # 3.8e-44, below the normal range
    assert exp[1] == np.float32(2**-149)  # the smallest number there is
    assert exp[2] == 0
    assert scaled[0] != 0


@pytest.mark.parametrize("expr", ["x // y", "x % y"])
def test_integer_division_by_zero_raises(language: str, expr: str) -> None:
    with pytest.raises(RuntimeError, match="ZeroDivisionError"):
        evaluate({expr: 0}, {"x": np.array([4, 4]), "y": np.array([2, 0])}, language)


# -- layouts


@st.composite
def operands(draw: st.DrawFn) -> list[Array]:
    """Two arrays that broadcast together, with permuted memory, sizes 0 and 1 among them."""
    shape = draw(st.lists(st.integers(0, 4), max_size=4))
    arrays = []
    for _ in range(2):
        mine = [1 if draw(st.booleans()) else n for n in shape]
        order = draw(st.permutations(range(len(mine))))
        made = np.arange(math.prod(mine), dtype=np.float32).reshape([mine[d] for d in order])
        view = made.transpose(np.argsort(order)) if mine else made
        lead = draw(st.integers(0, len(mine)))
        if all(n == 1 for n in mine[:lead]):
            view = view.reshape(mine[lead:]) if view.flags.c_contiguous else view
        arrays.append(view)
    return arrays


def strides(array: Array) -> tuple[int, ...]:
    return tuple(s // array.itemsize for s in array.strides)


def check_broadcast(a: Array, b: Array, language: str) -> None:
    builder = Builder("layout")
    builder.input("a", a.shape, "float32", strides(a))
    builder.input("b", b.shape, "float32", strides(b))
    builder.pointwise("y", "a * 2 - b", a="a", b="b")
    builder.pointwise("z", "y + 1", y="y")
    y, z = compile_program(builder.finish(["y", "z"]), language=language).run(a, b)
    np.testing.assert_array_equal(y, a * 2 - b)
    np.testing.assert_array_equal(z, a * 2 - b + 1)
    assert y.dtype == np.float32


@settings(max_examples=60)
@given(operands())
def test_any_layout_broadcasts(arrays: list[Array]) -> None:
    check_broadcast(*arrays, "python")


@settings(max_examples=60)
@given(operands(), st.data())
def test_reductions_of_any_layout(arrays: list[Array], data: st.DataObject) -> None:
    x = arrays[0].astype(np.int64, order="K")
    dims = data.draw(st.sets(st.integers(0, x.ndim - 1)) if x.ndim else st.just(set()))
    keep = data.draw(st.booleans())
    kinds = ["sum", "prod", "any", "all"]
    if all(x.shape):
        kinds += ["max", "min"]
    b = Builder("reduce")
    b.input("x", x.shape, "int64", strides(x))
    for kind in kinds:
        b.reduce(kind, kind, "x", tuple(dims), keep)
    for kind, got in zip(kinds, compile_program(b.finish(kinds), language="python").run(x)):
        wanted = getattr(np, kind)(x, axis=tuple(dims), keepdims=keep)
        np.testing.assert_array_equal(got, wanted, kind)


CUBE = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
LAYOUTS = {
    "row-major": (CUBE, CUBE),
    "transposed": (CUBE, np.ascontiguousarray(CUBE.T).T),
    "row": (CUBE, CUBE[0, 0]),
    "column": (CUBE, CUBE[:, :1, :1]),
    "outer": (CUBE[:, :1], CUBE[:1, :, :1]),
    "0-d": (CUBE, np.array(5, np.float32)),
    "empty": (CUBE[:0], CUBE[:1]),
    "steps": (CUBE[:, :, ::2], CUBE[:, ::-1][:, :, 1::2]),
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_chosen_layouts(language: str, layout: str) -> None:
    check_broadcast(*LAYOUTS[layout], language)


def test_views_are_index_maps(language: str) -> None:
    b = Builder("views")
    x = b.input("x", (2, 3, 4), "float32")
    views = {
        "p": (b.view("p", "permute", x, 2, 0, 1), CUBE.transpose(2, 0, 1)),
        "s": (b.view("s", "slice", x, 2, 1, 4, 2), CUBE[:, :, 1:4:2]),
        "c": (b.view("c", "select", x, -2, -1), CUBE[:, 2]),
        "r": (b.view("r", "reshape", x, 6, 4), CUBE.reshape(6, 4)),
        "q": (b.view("q", "reshape", "p", 4, 6), CUBE.transpose(2, 0, 1).reshape(4, 6)),
        "e": (b.view("e", "expand", "c", 5, -1, -1), np.broadcast_to(CUBE[:, 2], (5, 2, 4))),
    }
    outs = [b.pointwise(f"{k}_out", "10 * v", v=name) for k, (name, _) in views.items()]
    got = compile_program(b.finish(outs), language=language).run(CUBE)
    for result, (name, wanted) in zip(got, views.values(), strict=True):
        np.testing.assert_array_equal(result, 10 * wanted, name)


def test_only_arrays_as_declared_are_run(language: str) -> None:
    b = Builder("strict")
    b.input("x", (), "float32")
    program = compile_program(b.finish([b.pointwise("y", "x + 1", x="x")]), language=language)
    assert program.run(np.array(2, np.float32))[0] == 3
    for wrong in (np.float32(2), np.array(2.0), np.zeros(1, np.float32)):
        with pytest.raises(ValueError, match="the input 'x'"):
            program.run(wrong)  # type: ignore[arg-type]


# -- reductions


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64"])
def test_reductions_over_last_first_and_all_dims(language: str, dtype: str) -> None:
    x = np.random.default_rng(1).permutation(7 * 37).reshape(7, 37).astype(dtype)
    kinds = ["sum", "max", "min", "argmax", "argmin", *(["mean"] if dtype != "int64" else [])]
    b = Builder("reductions")
    b.input("x", x.shape, dtype)
    names, wanted = [], []
    for where, dims in {"last": (-1,), "first": (0,), "all": None}.items():
        for kind in kinds:
            names.append(b.reduce(f"{kind}_{where}", kind, "x", dims))
            axis = None if dims is None else dims[0]
            wanted.append(getattr(np, kind)(x.astype(np.float64), axis=axis))
    got = compile_program(b.finish(names), language=language).run(x)
    for name, result, want in zip(names, got, wanted, strict=True):
        assert result.dtype.name == ("int64" if name.startswith("arg") else dtype), name
        np.testing.assert_allclose(result, want, rtol=1e-6 if dtype == "float32" else 1e-12)


def test_nan_wins_in_max_min_and_their_positions(language: str) -> None:
    x = np.tile(np.float32([1.0, INF, NAN, -INF, 5.0, NAN]), (3, 7))
    kinds = ["max", "min", "sum", "mean", "argmax", "argmin"]
    for dims in ((1,), (0,)):
        b = Builder("nan")
        b.input("x", x.shape, "float32")
        got = compile_program(
            b.finish([b.reduce(k, k, "x", dims) for k in kinds]), language=language
        ).run(x)
        for kind, result in zip(kinds, got, strict=True):
            with np.errstate(all="ignore"):
                wanted = getattr(np, kind)(x.astype(np.float64), axis=dims[0])
            np.testing.assert_array_equal(result, wanted, f"{kind} over {dims}")


def test_a_long_float32_sum_is_accurate(language: str) -> None:
    n = 2**20
    x = np.full(n, 0.1, np.float32)
    b = Builder("long")
    b.input("x", (n,), "float32")
    total, mean = compile_program(
        b.finish([b.reduce("total", "sum", "x"), b.reduce("mean", "mean", "x")]), language=language
    ).run(x)
    exact = n * float(np.float32(0.1))
    assert abs(float(total) - exact) < 2e-6 * exact
    assert abs(float(mean) - float(np.float32(0.1))) < 2e-7


def test_reductions_of_nothing(language: str) -> None:
    b = Builder("empty")
    b.input("x", (3, 0), "float32")
    names = [b.reduce(k, k, "x", (1,)) for k in ("sum", "prod", "mean", "any", "all")]
    got = compile_program(b.finish(names), language=language).run(np.empty((3, 0), np.float32))
    for result, wanted in zip(got, [0, 1, NAN, False, True], strict=True):
        np.testing.assert_array_equal(result, [wanted] * 3)
    b.reduce("top", "max", "x", (1,))
    with pytest.raises(ValueError, match=r"max\(\).*\(3, 0\)"):
        compile_program(b.finish(["top"]), language=language)


def test_a_value_read_only_by_an_empty_one_makes_no_kernel(language: str) -> None:
    b = Builder("unread")
    b.input("x", (2, 0, 3), "float32")
    b.reduce("m", "mean", "x", (0, 1), keepdim=True)  # (1, 1, 3), of no elements
    b.pointwise("z", "x - m", x="x", m="m")
    program = compile_program(b.finish(["z"]), language=language)
    assert program.kernels == ()
    assert program.run(np.empty((2, 0, 3), np.float32))[0].shape == (2, 0, 3)


# -- a kernel for any shape


def test_eager_kernel_contiguous_and_strided() -> None:
    x, y = CUBE, CUBE[::-1, :, ::-1]
    wanted = x * 2 + y
    for contiguous in (True, False):
        kernel = pointwise_kernel(
            "self * alpha + other",
            {"self": "float32", "other": "float32"},
            scalars={"alpha": 2},
            contiguous=contiguous,
            name="axpy",
        )
        assert kernel.dtype == "float32"
        second = np.ascontiguousarray(y) if contiguous else y
        np.testing.assert_array_equal(kernel(np.empty_like(x), x, second), wanted)
    column = np.empty((4, 3, 2), np.float32).T
    np.testing.assert_array_equal(kernel(column, x, y), wanted)  # the strided one, result too


if toolchain.find_compiler() is not None:

    @pytest.mark.parametrize("dtype", ["float32", "float64"])
    def test_cpp_equals_python(dtype: str) -> None:
        x = samples(dtype)
        both = [evaluate(UNARY, {"x": x}, language) for language in ("cpp", "python")]
        for expr, ours, reference in zip(UNARY, *both, strict=True):
            assert ours.dtype == reference.dtype
            assert_close(ours, reference, 4, expr, x)

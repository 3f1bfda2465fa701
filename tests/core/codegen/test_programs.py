"""Whole programs, random and chosen, against an interpreter without index maps and fusion."""

from __future__ import annotations

import multiprocessing
import os

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.core.codegen.codegen_reference import interpret
from torchlab._core.codegen import Builder, Program, compile_program

UNARY = (
    "exp(self * 0.1)", "self * 2 + 1", "tanh(self)", "self * self", "where(self < 0, 0, self)",
    "-self", "sigmoid(self)",
)  # fmt: skip
BINARY = (
    "self + other",
    "self - other",
    "self * other",
    "maximum(self, other)",
    "self / (abs(other) + 1)",
)
SIZES = st.sampled_from((1, 2, 3, 4, 6))


def check(
    program: Program, arrays: list[np.ndarray], language: str, tolerance: float = 2e-4
) -> None:
    """Run and compare; the tolerance is relative to each output's largest element."""
    compiled = compile_program(program, language=language, num_threads=2)
    for got, wanted in zip(compiled.run(*arrays), interpret(program, arrays), strict=True):
        assert got.shape == wanted.shape
        largest = np.abs(wanted).max(initial=1.0)
        np.testing.assert_allclose(
            got.astype(np.float64), wanted, rtol=tolerance, atol=tolerance * largest
        )


@st.composite
def programs(draw: st.DrawFn) -> tuple[Program, list[np.ndarray]]:
    """A few steps over inputs of related shapes and any dense layout."""
    b = Builder("random")
    base = draw(st.lists(SIZES, max_size=3))
    rng = np.random.default_rng(draw(st.integers(0, 2**16)))
    shapes: dict[str, tuple[int, ...]] = {}
    arrays = []
    for k in range(draw(st.integers(1, 3))):
        shape = tuple(1 if draw(st.integers(0, 3)) == 0 else n for n in base)
        order = draw(st.permutations(range(len(shape))))
        memory = rng.standard_normal([shape[d] for d in order]).astype(np.float32)
        array = (
            np.asarray(memory).transpose(np.argsort(order).astype(int))
            if order
            else np.asarray(memory)
        )
        name = b.input(f"x{k}", shape, "float32", tuple(s // 4 for s in array.strides))
        arrays.append(array)
        shapes[name] = shape
    for k in range(draw(st.integers(1, 7))):
        name, source = f"v{k}", draw(st.sampled_from(list(shapes)))
        shape = shapes[source]
        kind = draw(
            st.sampled_from(("unary", "binary", "reduce", "view", "view" if shape else "unary"))
        )
        if kind == "unary" or (kind == "view" and not shape):
            b.pointwise(name, draw(st.sampled_from(UNARY)), self=source)
        elif kind == "binary":
            pairs = [(v, s) for v, s in shapes.items() if fits(s, shape)]
            other, other_shape = draw(st.sampled_from(pairs))
            b.pointwise(name, draw(st.sampled_from(BINARY)), self=source, other=other)
            shape = np.broadcast_shapes(shape, other_shape)
        elif kind == "reduce":
            dims = tuple(d for d in range(len(shape)) if draw(st.booleans()))
            keepdim = draw(st.booleans())
            b.reduce(
                name,
                draw(st.sampled_from(("sum", "mean", "max", "min", "prod"))),
                source,
                dims,
                keepdim,
            )
            shape = tuple(
                1 if d in dims else n for d, n in enumerate(shape) if keepdim or d not in dims
            )
        else:
            shape = view(draw, b, name, source, shape)
        if np.prod(shape) > 5000:
            shapes[name] = shape
            break
        shapes[name] = shape
    made = [v for v in shapes if v.startswith("v")]
    outputs = [*draw(st.lists(st.sampled_from(made), max_size=2, unique=True)), made[-1]]
    return b.finish(outputs), arrays


def fits(a: tuple[int, ...], b: tuple[int, ...]) -> bool:
    """Whether two shapes broadcast."""
    return all(1 in (p, q) or p == q for p, q in zip(a[::-1], b[::-1], strict=False))


def view(
    draw: st.DrawFn, b: Builder, name: str, source: str, shape: tuple[int, ...]
) -> tuple[int, ...]:
    """Append a view of any kind; returns its shape."""
    kind = draw(st.sampled_from(("permute", "flatten", "unsqueeze", "slice", "expand")))
    if kind == "permute":
        order = draw(st.permutations(range(len(shape))))
        b.view(name, "permute", source, *order)
        return tuple(shape[d] for d in order)
    if kind == "slice":
        dim = draw(st.integers(0, len(shape) - 1))
        start, step = draw(st.integers(0, shape[dim] - 1)), draw(st.integers(1, 2))
        b.view(name, "slice", source, dim, start, shape[dim], step)
        return (*shape[:dim], len(range(start, shape[dim], step)), *shape[dim + 1 :])
    if kind == "expand":
        b.view(name, "expand", source, 3, *shape)
        return (3, *shape)
    target = (int(np.prod(shape)),) if kind == "flatten" else (shape[0], 1, *shape[1:])
    b.view(name, "reshape", source, *target)
    return target


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(programs())
def test_random_programs_as_numpy_code(case: tuple[Program, list[np.ndarray]]) -> None:
    check(*case, "python")


@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(programs())
def test_random_programs_in_the_best_language(case: tuple[Program, list[np.ndarray]]) -> None:
    check(*case, "auto")


def columns() -> tuple[Builder, list[str]]:
    """Reductions down 2,500 columns (more than a tile) of one matrix, and what follows them."""
    b = Builder("columns")
    x = b.input("x", (101, 2500), "float32")
    y = b.pointwise("y", "tanh(self)", self=x)
    total = b.reduce("total", "sum", y, (0,))
    names = [
        b.reduce(kind, kind, x, (0,)) for kind in ("max", "min", "argmax", "argmin", "any", "mean")
    ]
    return b, [total, b.pointwise("after", "self / 101", self=total), *names]


def batch_norm() -> tuple[Builder, list[str]]:
    """Statistics over the dims 0, 2, 3 and their use."""
    b = Builder("batch_norm")
    x = b.input("x", (4, 3, 5, 6), "float32")
    mean = b.reduce("mean", "mean", x, (0, 2, 3), keepdim=True)
    centered = b.pointwise("centered", "self - other", self=x, other=mean)
    square = b.pointwise("square", "self * self", self=centered)
    variance = b.reduce("variance", "mean", square, (0, 2, 3), keepdim=True)
    scale = b.pointwise("scale", "rsqrt(self + 1e-5)", self=variance)
    return b, [b.pointwise("y", "self * other", self=centered, other=scale), mean]


def root_mean_square() -> tuple[Builder, list[str]]:
    """A reduction over everything, used on every element of rows too long to stay in cache."""
    b = Builder("rms")
    x = b.input("x", (600, 500), "float32")
    square = b.pointwise("square", "self * self", self=x)
    mean = b.reduce("mean", "mean", square)
    return b, [
        b.pointwise("y", "self / sqrt(other)", self=x, other=mean),
        b.reduce("where", "argmax", x),
    ]


@pytest.mark.parametrize("make", [columns, batch_norm, root_mean_square])
def test_chosen_programs(make: object, language: str) -> None:
    builder, outputs = make()  # type: ignore[operator]
    (buffer,) = builder.inputs
    x = np.random.default_rng(0).standard_normal(buffer.shape).astype(np.float32)
    check(builder.finish(outputs), [x], language, tolerance=1e-5)


def test_statistics_of_channels_and_their_use_are_one_kernel() -> None:
    builder, outputs = batch_norm()
    assert len(compile_program(builder.finish(outputs)).kernels) == 1


def test_library_calls_stand_between_kernels_and_views_reach_them(language: str) -> None:
    b = Builder("library")
    x, w = b.input("x", (8, 4), "float32"), b.input("w", (4, 3), "float32")
    product = b.extern("product", np.matmul, [x, w], (8, 3), "float32")
    positive = b.pointwise("positive", "maximum(self, 0)", self=product)
    turned = b.view("turned", "permute", positive, 1, 0)
    gram = b.extern("gram", np.matmul, [turned, positive], (3, 3), "float32")
    program = b.finish([b.pointwise("y", "self + 1", self=gram), turned])
    rng = np.random.default_rng(1)
    arrays = [rng.standard_normal(s).astype(np.float32) for s in ((8, 4), (4, 3))]
    check(program, arrays, language, tolerance=1e-5)
    compiled = compile_program(program, language=language)
    reasons = {(d.first, d.second): d.reason for d in compiled.decisions}
    assert reasons["product", "positive"] == "'product' is a library call"


def test_library_calls_whose_results_are_not_row_major(language: str) -> None:
    b = Builder("strided")
    x = b.input("x", (2, 3, 4), "float32")
    moved = b.extern("moved", np.negative, [x], (2, 3, 4), "float32", stride=(12, 1, 3))
    twice = b.pointwise("y", "self * 2", self=moved)
    program = b.finish([moved, twice])
    a = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    got, doubled = compile_program(program, language=language).run(a)
    assert [s // 4 for s in got.strides] == [12, 1, 3]
    np.testing.assert_array_equal(got, -a)
    np.testing.assert_array_equal(doubled, -2 * a)


def test_library_calls_on_nothing(language: str) -> None:
    b = Builder("empty")
    x = b.input("x", (0, 4), "float32")
    y = b.pointwise("y", "self + 1", self=x)
    product = b.extern("product", lambda a: a.T @ a, [y], (4, 4), "float32")
    (result,) = compile_program(b.finish([product]), language=language).run(
        np.empty((0, 4), np.float32)
    )
    np.testing.assert_array_equal(result, np.zeros((4, 4)))


def test_a_dead_buffer_gives_its_memory_to_the_next(language: str) -> None:
    b = Builder("memory")
    value = b.input("x", (16, 16), "float32")
    for k in range(4):  # a transposed read keeps each step in a kernel of its own
        turned = b.view(f"turned{k}", "permute", value, 1, 0)
        value = b.pointwise(f"p{k}", "self + other", self=value, other=turned)
    program = b.finish([value])
    plan = compile_program(program, language=language).memory
    assert [(a.name, a.reuses) for a in plan.allocations] == [
        ("p0", None), ("p1", None), ("p2", "p0"), ("p3", None),
    ]  # fmt: skip
    assert (plan.peak, plan.total) == (2 * 1024, 4 * 1024)
    check(
        program, [np.random.default_rng(2).standard_normal((16, 16)).astype(np.float32)], language
    )


def test_results_take_the_layout_asked_for(language: str) -> None:
    b = Builder("layout")
    x = b.input("x", (5, 7), "float32", (1, 5))
    y = b.pointwise("y", "self + index(0) * 10 + index(-1)", self=x, stride=(1, 5))
    array = np.asfortranarray(np.random.default_rng(3).standard_normal((5, 7)), np.float32)
    (result,) = compile_program(b.finish([y]), language=language).run(array)
    assert result.strides == (4, 20)
    np.testing.assert_allclose(result, array + 10 * np.arange(5)[:, None] + np.arange(7), rtol=1e-6)


def test_kernels_run_in_forked_processes_after_threads_were_started() -> None:
    if "fork" not in multiprocessing.get_all_start_methods():
        return  # nothing can be forked here
    b = Builder("forked")
    x = b.input("x", (1024, 128), "float32")
    compiled = compile_program(b.finish([b.pointwise("y", "self * 2", self=x)]), num_threads=2)
    array = np.ones((1024, 128), np.float32)
    compiled.run(array)
    child = os.fork()
    if child == 0:
        os._exit(0 if compiled.run(array)[0].sum() == 2 * array.size else 1)
    assert os.waitpid(child, 0)[1] == 0

"""What shares a kernel, and the reasons given, against graphs worked out by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import special

from torchlab._core import events
from torchlab._core.codegen import Builder, CompiledProgram, Program, compile_program

ACROSS = (
    "'y' needs 'top' for every element, and memory runs across the reduction: the last row would"
    " have to be read before the first is finished"
)


def softmax_program(shape: tuple[int, ...], dim: int) -> Program:
    b = Builder("softmax")
    x = b.input("x", shape, "float32")
    top = b.reduce("top", "max", x, (dim,), keepdim=True, origin=("model.py:1",))
    e = b.pointwise("e", "exp(self - other)", self=x, other=top, origin=("model.py:2",))
    total = b.reduce("total", "sum", e, (dim,), keepdim=True, origin=("model.py:3",))
    y = b.pointwise("y", "self / other", self=e, other=total, origin=("model.py:3",))
    return b.finish([y])


def decisions(program: CompiledProgram) -> list[tuple[str, str, bool, str]]:
    return [(d.first, d.second, d.accepted, d.reason) for d in program.decisions]


def test_softmax_is_one_kernel(language: str) -> None:
    program = compile_program(softmax_program((64, 1000), -1), language=language)
    assert len(program.kernels) == 1
    assert [n.name for n in program.kernels[0].nodes] == ["top", "e", "total", "y"]
    assert (program.kernels[0].inputs, program.kernels[0].outputs) == (("x",), ("y",))
    # 64 row maxima of 4 bytes; 64 · 1000 exponentials, which the division outside still reads
    assert decisions(program) == [
        ("top", "e", True, "same loops; 256 bytes of 'top' need not be written and read"),
        ("e", "total", True, "same loops; 256000 bytes of 'e' need not be read again"),
        ("e", "y", True, "same loops; 256000 bytes of 'e' need not be written and read"),
        ("total", "y", True, "already in one kernel"),
    ]
    x = np.random.default_rng(0).normal(size=(64, 1000)).astype(np.float32) * 5
    (y,) = program.run(x)
    # x - top reaches 40, where float32 rounds by 2e-6; exp makes that a relative error
    np.testing.assert_allclose(y, special.softmax(x.astype(np.float64), -1), rtol=5e-6)


def test_gelu_of_a_linear_map_and_layer_norm_are_one_kernel(language: str) -> None:
    rows, width = 32, 100
    b = Builder("block")
    x, r = (b.input(n, (rows, width), "float32") for n in "xr")
    w, c, gain, bias = (b.input(n, (width,), "float32") for n in ("w", "c", "gain", "bias"))
    h = b.pointwise("h", "x * w + c", x=x, w=w, c=c)
    g = b.pointwise("g", "0.5 * h * (1 + erf(h * 0.7071067811865476))", h=h)
    s = b.pointwise("s", "g + r", g=g, r=r)
    mean = b.reduce("mean", "mean", s, (-1,), keepdim=True)
    d = b.pointwise("d", "s - mean", s=s, mean=mean)
    square = b.pointwise("square_", "d * d", d=d)
    var = b.reduce("var", "mean", square, (-1,), keepdim=True)
    scale = b.pointwise("scale", "rsqrt(var + 1e-5)", var=var)
    y = b.pointwise("y", "d * scale * gain + bias", d=d, scale=scale, gain=gain, bias=bias)
    program = compile_program(b.finish([y]), language=language)
    assert len(program.kernels) == 1
    assert all(d.accepted for d in program.decisions)
    bytes_ = rows * width * 4
    expected = [
        ("h", "g", True, f"same loops; {bytes_} bytes of 'h' need not be written and read"),
        ("g", "s", True, f"same loops; {bytes_} bytes of 'g' need not be written and read"),
        ("s", "mean", True, f"same loops; {bytes_} bytes of 's' need not be read again"),
        ("s", "d", True, f"same loops; {bytes_} bytes of 's' need not be written and read"),
        ("mean", "d", True, "already in one kernel"),
        ("d", "square_", True, f"same loops; {bytes_} bytes of 'd' need not be read again"),
    ]
    assert decisions(program)[:6] == expected

    rng = np.random.default_rng(0)
    arrays = [rng.normal(size=buffer.shape).astype(np.float32) for buffer in program.program.inputs]
    (got,) = program.run(*arrays)
    xs, rs, ws, cs, gains, biases = (a.astype(np.float64) for a in arrays)
    hidden = xs * ws + cs
    added = 0.5 * hidden * (1 + special.erf(hidden / np.sqrt(2))) + rs
    centred = added - added.mean(-1, keepdims=True)
    normal = centred / np.sqrt((centred**2).mean(-1, keepdims=True) + 1e-5)
    np.testing.assert_allclose(got, normal * gains + biases, rtol=1e-5, atol=1e-5)


def test_a_column_maximum_and_its_use_are_two_kernels(language: str) -> None:
    b = Builder("columns")
    x = b.input("x", (8, 16), "float32")
    top = b.reduce("top", "max", x, (0,))
    y = b.pointwise("y", "x - top", x=x, top=top)
    program = compile_program(b.finish([y]), language=language)
    assert [[n.name for n in k.nodes] for k in program.kernels] == [["top"], ["y"]]
    # asked twice: because y reads top, and because both read x
    assert set(decisions(program)) == {("top", "y", False, ACROSS)}
    assert str(program.decisions[0]) == f"top + y: not fused: {ACROSS}"
    x_array = np.random.default_rng(0).normal(size=(8, 16)).astype(np.float32)
    np.testing.assert_array_equal(program.run(x_array)[0], x_array - x_array.max(0))


def test_other_reasons_against_fusing() -> None:
    b = Builder("against")
    x = b.input("x", (6, 4), "float32")
    rows = b.reduce("rows", "sum", x, (1,))
    columns = b.reduce("columns", "sum", x, (0,))
    double = b.pointwise("double", "2 * x", x=x)
    product = b.extern("product", np.matmul, (double, "t"), (6, 6), "float32")
    b.steps.insert(-1, _transposed(b, double))
    program = compile_program(b.finish([rows, columns, product]), language="python")
    made = decisions(program)
    assert ("rows", "columns", False, "they reduce over different dims") in made
    assert ("double", "product", False, "'product' is a library call") in made
    array = np.arange(24, dtype=np.float32).reshape(6, 4)
    got = program.run(array)
    for result, wanted in zip(got, (array.sum(1), array.sum(0), 4 * array @ array.T), strict=True):
        np.testing.assert_array_equal(result, wanted)


def _transposed(b: Builder, name: str) -> Any:
    b.view("t", "permute", name, 1, 0)
    return b.steps.pop()


def test_reading_a_result_in_another_order_does_not_fuse(language: str) -> None:
    b = Builder("transposed")
    x = b.input("x", (5, 5), "float32")
    b.pointwise("a", "x + 1", x=x)
    b.view("t", "permute", "a", 1, 0)
    b.pointwise("y", "t * x", t="t", x=x)
    program = compile_program(b.finish(["y"]), language=language)
    assert len(program.kernels) == 2
    assert ("a", "y", False, "'y' reads 'a' in another order than it is computed") in decisions(
        program
    )
    x_array = np.arange(25, dtype=np.float32).reshape(5, 5)
    np.testing.assert_array_equal(program.run(x_array)[0], (x_array + 1).T * x_array)


@pytest.mark.parametrize("dim", [0, 1])
def test_fusing_changes_no_result(dim: int) -> None:
    definition = softmax_program((7, 9), dim)
    fused = compile_program(definition, language="python")
    single = compile_program(definition, language="python", fuse=False)
    assert len(single.kernels) == 4 > len(fused.kernels)
    assert single.decisions == ()
    x = np.random.default_rng(0).normal(size=(7, 9)).astype(np.float32)
    np.testing.assert_array_equal(fused.run(x)[0], single.run(x)[0])


def test_decisions_and_kernels_are_told_to_listeners(language: str) -> None:
    told: list[dict[str, Any]] = []
    built: list[dict[str, Any]] = []
    launched: list[str] = []
    with (
        events.fusion.subscribe(lambda **kw: told.append(kw)),
        events.kernel_compiled.subscribe(lambda **kw: built.append(kw)),
        events.kernel_launched.subscribe(lambda name: launched.append(name)),
    ):
        program = compile_program(softmax_program((4, 6), -1), language=language)
        assert launched == []
        program.run(np.zeros((4, 6), np.float32))
    assert [tuple(t.values()) for t in told] == decisions(program)
    (kernel,) = program.kernels
    assert [(e["name"], e["language"], e["source"]) for e in built] == [
        (kernel.name, language, kernel.source)
    ]
    assert launched == [kernel.name]


def test_line_map_leads_from_origins_to_source_lines(language: str) -> None:
    program = compile_program(softmax_program((4, 6), -1), language=language)
    (kernel,) = program.kernels
    lines = kernel.source.splitlines()
    origins = {"top", "e", "total", "y", "model.py:1", "model.py:2", "model.py:3"}
    assert set(kernel.line_map) == origins
    for numbers in kernel.line_map.values():
        assert numbers and all(1 <= n <= len(lines) for n in numbers)

    def text(origin: str) -> str:
        return "\n".join(lines[n - 1] for n in kernel.line_map[origin])

    assert "exp(" in text("e") and "exp(" in text("model.py:2")
    assert "exp(" not in text("y").replace("# ", "")
    assert "/" in text("y")
    both = set(kernel.line_map["total"]) | set(kernel.line_map["y"])
    assert set(kernel.line_map["model.py:3"]) == both  # one source line made two nodes
    # the kernel stands in the program's source where first_line says
    whole = program.source.splitlines()
    start = kernel.first_line - 1
    assert whole[start : start + len(lines)] == lines

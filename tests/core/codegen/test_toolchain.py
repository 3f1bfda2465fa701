"""Which compiler is found, and what happens without one or with a bad one."""

from __future__ import annotations

import shlex
import sys
import warnings
from collections.abc import Iterator

import numpy as np
import pytest

from torchlab._core.codegen import (
    Builder,
    CompileError,
    Program,
    compile_program,
    pointwise_kernel,
    toolchain,
)


@pytest.fixture
def fresh(monkeypatch: pytest.MonkeyPatch) -> Iterator[pytest.MonkeyPatch]:
    """Neither compilers nor what the user was told are remembered, before and after."""
    monkeypatch.setattr(toolchain, "_told", set())
    monkeypatch.delenv("CXX", raising=False)
    monkeypatch.delenv("TORCHLAB_CXX", raising=False)
    toolchain._find.cache_clear()
    yield monkeypatch
    toolchain._find.cache_clear()


@pytest.fixture
def no_compiler(fresh: pytest.MonkeyPatch) -> None:
    """An empty PATH, and no `ziglang` package."""
    fresh.setenv("PATH", "")
    fresh.setattr(toolchain.importlib.util, "find_spec", lambda name: None)


def program(name: str = "p") -> Program:
    b = Builder(name)
    b.input("x", (3,), "float32")
    return b.finish([b.pointwise("y", "2 * x + 1", x="x")])


X = np.array([0.0, 1.0, -2.0], np.float32)
Y = [1.0, 3.0, -3.0]


def test_without_a_compiler_numpy_code_runs_and_it_is_said_once(no_compiler: None) -> None:
    assert toolchain.find_compiler() is None
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        made = [compile_program(program(name)) for name in ("first", "second")]
    for compiled in made:
        assert compiled.language == "python"
        assert [k.language for k in compiled.kernels] == ["python"]
        assert compiled.run(X)[0].tolist() == Y
    assert [w.category for w in said] == [RuntimeWarning]
    assert "found no C++ compiler" in str(said[0].message)
    assert "CXX" in str(said[0].message)


def test_asking_for_cpp_without_a_compiler_raises(no_compiler: None) -> None:
    with pytest.raises(RuntimeError, match="no C\\+\\+ compiler was found: install"):
        compile_program(program(), language="cpp")


def test_asking_for_python_needs_no_compiler_and_says_nothing(no_compiler: None) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert compile_program(program(), language="python").run(X)[0].tolist() == Y


def test_eager_kernels_without_a_compiler(no_compiler: None) -> None:
    kernel = pointwise_kernel("2 * self + 1", {"self": "float32"})
    assert kernel.language == "python"
    assert kernel(np.empty_like(X), X).tolist() == Y


def test_the_environment_can_forbid_compilers(fresh: pytest.MonkeyPatch) -> None:
    fresh.setenv("TORCHLAB_CXX", "none")
    assert toolchain.find_compiler() is None


def test_a_compiler_that_refuses(fresh: pytest.MonkeyPatch) -> None:
    # Python itself serves as a program that takes no such options
    fresh.setenv("CXX", shlex.quote(sys.executable))
    compiler = toolchain.find_compiler()
    assert compiler is not None and "-fopenmp" not in compiler.flags
    with pytest.raises(CompileError, match=r"the generated C\+\+ of 'bad .*kernel_y"):
        compile_program(program("bad"), language="cpp")
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        made = [compile_program(program(name)) for name in ("first", "second")]
    assert [m.run(X)[0].tolist() for m in made] == [Y, Y]
    assert [m.language for m in made] == ["python", "python"]
    assert len(said) == 1 and "run as NumPy code instead" in str(said[0].message)


def test_a_variable_may_hold_a_command_with_options(fresh: pytest.MonkeyPatch) -> None:
    fresh.setenv("TORCHLAB_CXX", f"{shlex.quote(sys.executable)} -I -S")
    fresh.setenv("CXX", "nothing-of-this-name")
    compiler = toolchain.find_compiler()
    assert compiler is not None
    assert compiler.command[1:] == ("-I", "-S")


def test_an_unknown_language_is_refused() -> None:
    with pytest.raises(ValueError, match="'auto', 'cpp' or 'python', got 'cuda'"):
        compile_program(program(), language="cuda")


@pytest.mark.parametrize(("given", "count"), [("3", 3), ("5,2", 5)])
def test_the_number_of_threads(monkeypatch: pytest.MonkeyPatch, given: str, count: int) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", given)
    assert toolchain.default_threads() == count
    monkeypatch.setenv("OMP_NUM_THREADS", "0")
    assert toolchain.default_threads() >= 1


if toolchain.find_compiler() is not None:

    def test_auto_takes_the_compiler_and_arithmetic_stays_strict() -> None:
        compiler = toolchain.find_compiler()
        assert compiler is not None
        assert not {"-ffast-math", "-fassociative-math", "-funsafe-math-optimizations"} & set(
            compiler.flags
        )
        assert compile_program(program()).language == "cpp"
        kernel = pointwise_kernel("2 * self + 1", {"self": "float32"})
        assert kernel.language == "cpp"
        assert kernel(np.empty_like(X), X).tolist() == Y

    def test_what_cpp_lacks_runs_as_numpy_code_and_is_said(fresh: pytest.MonkeyPatch) -> None:
        b = Builder("remainders")
        b.input("x", (3,), "int64")
        definition = b.finish([b.pointwise("y", "fmod(x, 3)", x="x")])
        with pytest.warns(RuntimeWarning, match="kernel_y runs as NumPy code: fmod of integers"):
            made = compile_program(definition, language="cpp")
        assert made.language == "python"
        assert made.run(np.array([7, -7, 3]))[0].tolist() == [1, -1, 0]

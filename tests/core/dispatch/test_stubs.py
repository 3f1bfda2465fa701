"""The committed stubs are what the declarations say."""

from __future__ import annotations

import ast

from torchlab._core.dispatch import stubs
from torchlab._core.dispatch.schema import parse


def test_regenerated_without_a_difference() -> None:
    command = "python -m torchlab._core.dispatch.stubs --write"
    assert stubs.path().read_text(encoding="utf-8") == stubs.generate(), f"run: {command}"


def test_the_stubs_are_python_and_name_what_there_is() -> None:
    tree = ast.parse(stubs.generate())
    functions = {x.name: x for x in tree.body if isinstance(x, ast.FunctionDef)}
    (tensor,) = [x for x in tree.body if isinstance(x, ast.ClassDef)]
    methods = {x.name: x for x in tensor.body if isinstance(x, ast.FunctionDef)}
    assert ast.unparse(functions["exp"].args) == "input: Tensor, *, out: Tensor | None=..."
    assert (
        ast.unparse(functions["mm"].args)
        == "input: Tensor, mat2: Tensor, *, out: Tensor | None=..."
    )
    assert ast.unparse(methods["exp_"].args) == "self"
    assert ast.unparse(methods["exp_"].returns) == "Tensor"


def test_types() -> None:
    text = "f(int[2] a, Tensor?[] b, Scalar? c, Tensor[] d, ScalarType e) -> Tensor"
    found = [stubs.type_of(a.type) for a in parse(text).arguments]
    assert found == [
        "Sequence[_int] | _int", "Sequence[Tensor | None]", "Number | None", "Sequence[Tensor]",
        "_Dtype",
    ]  # fmt: skip

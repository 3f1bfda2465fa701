"""torchlab keeps the order of its layers."""

from __future__ import annotations

import pathlib

import pytest

from tests.architecture import layers, rules
from tests.architecture.import_graph import Import, all_imports, modules_of

ROOT = pathlib.Path(__file__).resolve().parents[2]
MODULES = modules_of(ROOT / "torchlab")
IMPORTS = list(all_imports(MODULES))


def _report(wrong: list[str]) -> str:
    return "\n".join(["", *wrong])


def test_every_module_has_its_place() -> None:
    wrong = rules.unplaced(MODULES)
    assert not wrong, _report(wrong)


@pytest.mark.parametrize(
    "rule", [rules.upward, rules.cycles, rules.inside_functions, rules.foreign]
)
def test_imports_follow(rule) -> None:
    wrong = rule(IMPORTS)
    assert not wrong, _report(wrong)


def test_the_package_is_what_was_read() -> None:
    assert "torchlab._core.events" in MODULES
    assert any(i.target == "torchlab._core.lazy" for i in IMPORTS)


# The rules themselves, on imports that are known to be wrong or right.


def _import(importer: str, target: str, **flags: bool) -> Import:
    defaults = {"in_function": False, "type_checking": False, "through_lazy": False}
    return Import(importer, target, 1, **(defaults | flags))


@pytest.mark.parametrize(
    ("importer", "target", "is_wrong"),
    [
        ("torchlab.nn.linear", "torchlab._core.tensor", False),
        ("torchlab.nn.linear", "torchlab.nn.module", False),
        ("torchlab.nn.linear", "torchlab.optim.sgd", True),  # to the right
        ("torchlab.optim.sgd", "torchlab.nn.module", False),  # to the left
        ("torchlab.nn.linear", "torchlab.fx.graph", True),  # above
        ("torchlab.nn.linear", "torchlab", True),  # the face
        ("torchlab", "torchlab.nn", False),
        ("torchlab._core.tensor", "torchlab._core.dispatch.op", False),  # one unit
        ("torchlab._core.dispatch.op", "torchlab._core.codegen.cpp", True),
        ("torchlab._core.ops.view", "torchlab._core.ops.linalg", True),  # siblings
        ("torchlab._core.ops.view.a", "torchlab._core.ops.view.b", False),
        ("torchlab._core.ops.view", "torchlab._core.ops._shared", False),
        ("torchlab._core.ops.view", "torchlab._core.ops.kernels", False),
        ("torchlab._core.ops.kernels", "torchlab._core.ops.view", True),
        ("torchlab.compiler.aot.joint", "torchlab.compiler.capture.guards", False),
        ("torchlab.compiler.capture.guards", "torchlab.compiler.api", True),
    ],
)
def test_upward_tells_wrong_from_right(importer: str, target: str, is_wrong: bool) -> None:
    assert bool(rules.upward([_import(importer, target)])) is is_wrong
    assert not rules.upward([_import(importer, target, type_checking=True)])


def test_lazy_is_no_way_upward() -> None:
    assert rules.upward([_import("torchlab.nn.a", "torchlab.fx", through_lazy=True)])
    assert rules.upward([_import("torchlab.nn.a", "torchlab", through_lazy=True)])
    assert not rules.upward([_import("torchlab.viz.a", "torchlab", through_lazy=True)])


def test_cycles_finds_one_and_forgives_type_checking() -> None:
    there, back = ("torchlab.nn.a", "torchlab.nn.b"), ("torchlab.nn.b", "torchlab.nn.a")
    assert rules.cycles([_import(*there), _import(*back)])
    assert not rules.cycles([_import(*there), _import(*back, type_checking=True)])


def test_foreign_knows_the_standard_library_and_numpy() -> None:
    assert not rules.foreign([_import("torchlab.nn.a", "ast"), _import("torchlab.nn.a", "numpy")])
    assert rules.foreign([_import("torchlab.nn.a", "scipy")])
    assert not rules.foreign([_import("torchlab.nn.a", "scipy", through_lazy=True)])
    assert rules.foreign([_import("torchlab._core.events", "numpy")])
    assert not rules.foreign([_import("torchlab.viz.widgets.live", "anywidget")])
    assert rules.foreign([_import("torchlab.viz.views.live", "anywidget")])


def test_place_takes_the_longest_prefix() -> None:
    assert layers.place("compiler.capture.guards")[2] == ("compiler.capture",)
    assert layers.place("compiler.api")[2] == ("compiler",)
    assert layers.place("nnx") is None


def test_reader_sees_every_form(tmp_path: pathlib.Path) -> None:
    package = tmp_path / "pkg"
    package.mkdir()
    (package / "__init__.py").write_text("from . import a\n")
    (package / "b.py").write_text("X = 1\n")
    (package / "a.py").write_text(
        "from typing import TYPE_CHECKING\n"
        "from .b import X\n"
        "import scipy.linalg\n"
        "heavy = lazy('scipy.special')\n"
        "if TYPE_CHECKING:\n"
        "    import pkg\n"
        "def f():\n"
        "    from pkg import b\n"
    )
    known = modules_of(package)
    assert set(known) == {"pkg", "pkg.a", "pkg.b"}
    found = {(i.importer, i.target, i.line): i for i in all_imports(known)}
    assert set(found) == {
        ("pkg", "pkg.a", 1),
        ("pkg.a", "typing", 1),
        ("pkg.a", "pkg.b", 2),
        ("pkg.a", "scipy", 3),
        ("pkg.a", "scipy", 4),
        ("pkg.a", "pkg", 6),
        ("pkg.a", "pkg.b", 8),
    }
    assert found["pkg.a", "scipy", 4].through_lazy
    assert found["pkg.a", "pkg", 6].type_checking
    assert found["pkg.a", "pkg.b", 8].in_function

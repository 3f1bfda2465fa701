"""`torchlab.testing.FileCheck`."""

from __future__ import annotations

import pytest

from torchlab.testing import FileCheck

TEXT = "a b\nc d\na e\nlast"


def test_in_order() -> None:
    FileCheck().check("a").check("d").check("last").run(TEXT)
    with pytest.raises(RuntimeError, match='Expected to find "a" but did not find it'):
        FileCheck().check("last").check("a b").check("a").run(TEXT.replace("last", "last a b"))


def test_a_failure_shows_the_place() -> None:
    with pytest.raises(RuntimeError) as failure:
        FileCheck().check("a").check_not("c").check("e").run(TEXT)
    assert str(failure.value) == (
        'Expected to not find "c" but found it\n'
        "a b\nc d\n~ <--- HERE\na e\nlast\nFrom CHECK-NOT: c\n"
    )


def test_lines() -> None:
    FileCheck().check("a").check_same("b").check_next("d").run(TEXT)
    with pytest.raises(RuntimeError, match='not find "\\\\n" but found it'):
        FileCheck().check("a").check_next("e").run(TEXT)
    with pytest.raises(RuntimeError, match="From CHECK-SAME: d"):
        FileCheck().check("a").check_same("d").run(TEXT)
    with pytest.raises(RuntimeError, match="From CHECK-NEXT: x"):
        FileCheck().check("last").check_next("x").run(TEXT)


def test_counts() -> None:
    FileCheck().check_count("a", 3).run(TEXT)
    FileCheck().check_count("a", 1, exactly=True).check("c").run(TEXT)
    with pytest.raises(RuntimeError, match="From CHECK-NOT: a"):
        FileCheck().check_count("a", 1, exactly=True).run(TEXT)
    with pytest.raises(RuntimeError, match="From CHECK-COUNT: a"):
        FileCheck().check_count("a", 4).run(TEXT)
    with pytest.raises(RuntimeError, match="says nothing"):
        FileCheck().check_count("a", 0)
    FileCheck().check_count("z", 0, exactly=True).run(TEXT)


def test_neighbours_in_any_order() -> None:
    FileCheck().check_dag("d").check_dag("b").check("e").run(TEXT)
    with pytest.raises(RuntimeError, match="From CHECK-DAG: b"):
        FileCheck().check_dag("d").check_not("z").check_dag("b").run(TEXT)


def test_regular_expressions_and_highlights() -> None:
    FileCheck().check_regex("[cd] d").check("e").run(TEXT)
    with pytest.raises(RuntimeError, match=r'regex "q\+"'):
        FileCheck().check_regex("q+").run(TEXT)
    FileCheck().check_source_highlighted("c d").run("x\n  c d\n  ~~~ <--\n")
    with pytest.raises(RuntimeError, match="highlighted"):
        FileCheck().check_source_highlighted("c d").run("x\nc d\n ~~ <--\n")


def test_checks_from_a_text() -> None:
    FileCheck().run("# CHECK: a\n# CHECK-NEXT: c\n# CHECK-NOT: q", TEXT)
    FileCheck().run("CHECK-COUNT-2: a\n# CHECK-DAG: last", TEXT)
    with pytest.raises(RuntimeError, match="From CHECK-NOT: a"):
        FileCheck().run("# CHECK-COUNT-EXACTLY-1: a", TEXT)
    with pytest.raises(RuntimeError, match="No checks have been added"):
        FileCheck().run("nothing", TEXT)
    with pytest.raises(TypeError, match="takes a text"):
        FileCheck().check("a").run(3)
    with pytest.raises(TypeError, match="must be str, not int"):
        FileCheck().check(3)

"""The cache of libraries: found again by another process, rebuilt when damaged."""

from __future__ import annotations

import json
import os
import pathlib
import stat
import subprocess
import sys

import pytest

from torchlab._core.codegen import cache, toolchain

# What it prints: the event's flag, the program's, and 2 · 1.5 + 1.
CHILD = """
import json
import numpy as np
from torchlab._core import events
from torchlab._core.codegen import Builder, compile_program

seen = []
events.kernel_compiled.subscribe(lambda **kw: seen.append(kw["cached"]))
b = Builder("child")
b.input("x", (3,), "float32")
program = compile_program(b.finish([b.pointwise("y", "2 * x + 1", x="x")]), language="cpp")
print(json.dumps([seen, program.cached, program.run(np.full(3, 1.5, np.float32))[0].tolist()]))
"""


@pytest.fixture
def folder(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> pathlib.Path:
    """An empty cache; the place of its entries."""
    monkeypatch.setenv("TORCHLAB_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache" / "kernels"


def build(text: pathlib.Path, library: pathlib.Path) -> None:
    """Stands in for a compiler."""
    library.write_bytes(b"made of " + text.read_bytes())


def refuse(text: pathlib.Path, library: pathlib.Path) -> None:
    raise AssertionError("the cache was to be used")


def test_an_entry_is_built_once(folder: pathlib.Path) -> None:
    library, cached = cache.fetch("entry", "source", build)
    assert (library, cached) == (folder / "entry.so", False)
    assert library.read_bytes() == b"made of source"
    assert (folder / "entry.cpp").read_text() == "source"
    assert cache.fetch("entry", "source", refuse) == (library, True)


@pytest.mark.parametrize("suffix", ["so", "sha256"])
@pytest.mark.parametrize("damage", [b"", b"\xff\x00 not what was written", None])
def test_a_damaged_entry_is_rebuilt(
    folder: pathlib.Path, suffix: str, damage: bytes | None
) -> None:
    library, _ = cache.fetch("entry", "source", build)
    if damage is None:
        (folder / f"entry.{suffix}").unlink()
    else:
        (folder / f"entry.{suffix}").write_bytes(damage)
    assert cache.fetch("entry", "source", build) == (library, False)
    assert library.read_bytes() == b"made of source"
    assert cache.fetch("entry", "source", refuse) == (library, True)


def test_a_failed_build_leaves_no_library(folder: pathlib.Path) -> None:
    def fail(text: pathlib.Path, library: pathlib.Path) -> None:
        library.write_bytes(b"half")
        raise toolchain.CompileError("refused")

    with pytest.raises(toolchain.CompileError, match="refused"):
        cache.fetch("entry", "source", fail)
    assert [p.name for p in folder.iterdir()] == ["entry.cpp"]
    assert cache.fetch("entry", "source", build)[1] is False


def test_notes_are_made_once(folder: pathlib.Path) -> None:
    made: list[int] = []

    def make() -> str:
        made.append(1)
        return "yes"

    assert cache.note("about", make) == cache.note("about", make) == "yes"
    assert made == [1]


def test_keys_tell_their_parts_apart() -> None:
    assert cache.key("a", "b") == cache.key("a", "b")
    assert len({cache.key("ab", "c"), cache.key("a", "bc"), cache.key("abc"), cache.key("")}) == 4
    assert cache.key("source", "flags") != cache.key("flags", "source")


if os.name == "posix":

    def test_the_cache_is_private(folder: pathlib.Path) -> None:
        folder.parent.mkdir(mode=0o755)
        cache.fetch("entry", "source", build)
        for path in (folder, folder.parent):
            assert stat.S_IMODE(path.stat().st_mode) == 0o700


if toolchain.find_compiler() is not None:

    def _child() -> tuple[list[bool], bool, list[float]]:
        root = pathlib.Path(__file__).resolve().parents[3]
        path = os.pathsep.join(filter(None, (str(root), os.environ.get("PYTHONPATH"))))
        done = subprocess.run(
            [sys.executable, "-c", CHILD],
            env={**os.environ, "PYTHONPATH": path},
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert done.returncode == 0, done.stderr
        flags, cached, values = json.loads(done.stdout)
        return flags, cached, values

    def test_a_second_process_does_not_compile(folder: pathlib.Path) -> None:
        assert _child() == ([False], False, [4.0, 4.0, 4.0])
        times = {p: p.stat().st_mtime_ns for p in folder.iterdir()}
        assert _child() == ([True], True, [4.0, 4.0, 4.0])
        assert {p: p.stat().st_mtime_ns for p in folder.iterdir()} == times
        for library in folder.glob("*.so"):
            library.write_bytes(library.read_bytes()[:100])
        assert _child() == ([False], False, [4.0, 4.0, 4.0])
        assert _child() == ([True], True, [4.0, 4.0, 4.0])

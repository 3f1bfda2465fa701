"""What lies where, how long files are, and what `import torchlab` loads."""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys

from tests.architecture import layers

ROOT = pathlib.Path(__file__).resolve().parents[2]


def _top_level() -> set[str]:
    """Names in the project's top folder; in a git checkout without what git ignores."""
    if (ROOT / ".git").exists():
        listing = subprocess.run(
            ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
            cwd=ROOT,
            capture_output=True,
            text=True,
        )
        if listing.returncode == 0:
            return {line.partition("/")[0] for line in listing.stdout.splitlines()}
    return set(os.listdir(ROOT))


def test_the_top_folder_holds_what_it_should() -> None:
    found = {name for name in _top_level() if not name.startswith(".")}
    found -= {"PKG-INFO", "build", "dist"}  # an unpacked sdist, and builds where git ignores none
    assert found - layers.TOP_LEVEL == set()
    assert {"pyproject.toml", "README.md", "torchlab", "tests"} <= found


def test_no_file_is_too_long() -> None:
    too_long = []
    for folder in ("torchlab", "tests"):
        for path in sorted((ROOT / folder).rglob("*.py")):
            with path.open(encoding="utf-8") as file:
                lines = sum(1 for _ in file)
            if lines > layers.LONGEST_FILE:
                too_long.append(f"{path.relative_to(ROOT)}: {lines} lines")
    assert not too_long, "\n".join(too_long)


def test_import_loads_numpy_and_the_standard_library_only() -> None:
    code = (
        "import sys\n"
        "import numpy\n"
        "before = set(sys.modules)\n"
        "import torchlab\n"
        "print(*sorted({name.partition('.')[0] for name in set(sys.modules) - before}))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    loaded = set(done.stdout.split()) - sys.stdlib_module_names
    assert loaded <= {"torchlab", "numpy"}, f"import torchlab loads {sorted(loaded)}"

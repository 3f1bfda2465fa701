"""`pytest --torchlab-notebooks`, in a pytest of its own."""

from __future__ import annotations

import json
import os
import pathlib
import re
import subprocess
import sys

import pytest

from torchlab.testing.nbval_plugin import SANITIZER

ROOT = pathlib.Path(__file__).resolve().parents[2]


def _notebook(path: pathlib.Path, *cells: tuple[str, str]) -> None:
    """Write a notebook of (source, stored stdout) cells."""
    path.write_text(
        json.dumps(
            {
                "nbformat": 4,
                "nbformat_minor": 5,
                "metadata": {},
                "cells": [
                    {
                        "cell_type": "code",
                        "id": f"c{i}",
                        "metadata": {},
                        "execution_count": i + 1,
                        "source": source,
                        "outputs": (
                            [{"output_type": "stream", "name": "stdout", "text": stdout}]
                            if stdout
                            else []
                        ),
                    }
                    for i, (source, stdout) in enumerate(cells)
                ],
            }
        )
    )


def _pytest(folder: pathlib.Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    # By its module name, so that it is the same with and without torchlab installed, whose entry
    # point is switched off.
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:torchlab"]
        + ["-p", "torchlab.testing.nbval_plugin", *arguments],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
    )


def test_runs_cells_and_compares_marked_ones_without_what_is_unstable(tmp_path) -> None:
    _notebook(
        tmp_path / "good.ipynb",
        ("# NBVAL_CHECK_OUTPUT\nprint(object())", "<object object at 0x7f0000000000>\n"),
        ("# NBVAL_CHECK_OUTPUT\nprint('took 1.25 ms')", "took 310 µs\n"),
        ("print('never compared')", "something else\n"),
    )
    _notebook(
        tmp_path / "bad.ipynb",
        ("# NBVAL_CHECK_OUTPUT\nprint(1)", "2\n"),
        ("raise ValueError('told')", ""),
    )
    (tmp_path / "own.cfg").write_text("regex: never\nreplace: ever\n")
    done = _pytest(tmp_path, "--torchlab-notebooks", "--nbval-sanitize-with=own.cfg")
    assert "3 passed" in done.stdout and "2 failed" in done.stdout, done.stdout + done.stderr
    assert done.returncode == 1


def test_without_the_option_nothing_is_collected_or_imported(tmp_path) -> None:
    _notebook(tmp_path / "a.ipynb", ("1 / 0", ""))
    (tmp_path / "test_a.py").write_text(
        "import sys\ndef test(): assert 'nbval' not in sys.modules\n"
    )
    done = _pytest(tmp_path, "-p", "no:nbval")
    assert "1 passed" in done.stdout, done.stdout + done.stderr


def test_without_nbval_it_says_what_to_install(tmp_path) -> None:
    done = _pytest(tmp_path, "-p", "no:nbval", "--torchlab-notebooks")
    assert done.returncode == 4
    assert "pip install 'torchlab[test]'" in done.stderr + done.stdout


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("<A at 0x7f3a5c0d1e20>", "<A at 0x10f4b2a90>"),
        ("3.2 ms", "14 µs"),
        ("1.5s", "12s"),
        ("12.5 µs ± 30 ns per loop", "900 ns ± 1.2 ns per loop"),
        ("[00:01<00:03, 4.2it/s]", "[00:02<00:05, 31.75it/s]"),
        ("2026-01-02 03:04:05", "2027-11-12T13:14:15.25Z"),
        ('<path id="m1a2b3c4d5e" d="x"/>', '<path id="m0f9e8d7c6b" d="x"/>'),
        ("/tmp/ipykernel_12/345.py", "/var/folders/x/ipykernel_9/77.py"),
    ],
)
def test_sanitizer_makes_unstable_text_equal(one: str, other: str) -> None:
    assert _sanitize(one) == _sanitize(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("tensor([1., 2.])", "tensor([1., 3.])"),
        ("accuracy 0.97", "accuracy 0.98"),
        ("torch.Size([3, 4])", "torch.Size([4, 3])"),
        ("x[1:3]", "x[1:4]"),
        ("0x1f", "0x2f"),
        ("MulBackward0", "AddBackward0"),
    ],
)
def test_sanitizer_keeps_what_matters(one: str, other: str) -> None:
    assert _sanitize(one) != _sanitize(other)


def _sanitize(text: str) -> str:
    rules = re.findall(
        "^regex: (.*)$\n^replace: (.*)$", SANITIZER.read_text(encoding="ascii"), re.MULTILINE
    )
    assert len(rules) >= 8
    for regex, replace in rules:
        text = re.sub(regex, replace, text)
    return text

"""binder/ agrees with pyproject.toml, and its scripts are sound."""

from __future__ import annotations

import json
import os
import pathlib
import re
import shutil
import subprocess
import tomllib

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[1]
BINDER = ROOT / "binder"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def _requirements() -> list[str]:
    lines = (BINDER / "requirements.txt").read_text(encoding="utf-8").splitlines()
    return [line.strip() for line in lines if line.strip() and not line.startswith("#")]


def test_requirements_are_the_core_and_the_lab() -> None:
    wanted = PROJECT["dependencies"] + PROJECT["optional-dependencies"]["lab"]
    assert sorted(_requirements()) == sorted(wanted)
    assert not any("cupy" in line for line in _requirements())


def test_python_is_one_that_the_project_supports() -> None:
    runtime = (BINDER / "runtime.txt").read_text(encoding="utf-8").strip()
    version = re.fullmatch(r"python-3\.(\d+)", runtime)
    lowest = re.fullmatch(r">=3\.(\d+)", PROJECT["requires-python"])
    assert version and lowest and int(version[1]) >= int(lowest[1])


def test_binder_holds_what_repo2docker_reads() -> None:
    known = {"requirements.txt", "runtime.txt", "apt.txt", "postBuild", "start"}
    assert {path.name for path in BINDER.iterdir()} == known


@pytest.mark.parametrize("name", ["postBuild", "start"])
def test_scripts_parse_and_are_executable(name: str) -> None:
    script = BINDER / name
    assert script.read_text(encoding="utf-8").startswith("#!/bin/bash\n")
    bash = shutil.which("bash")
    if bash is not None:  # a Windows checkout has neither bash nor the executable bit
        assert os.access(script, os.X_OK)
        subprocess.run([bash, "-n", str(script)], check=True)


def test_start_hands_over_to_the_server() -> None:
    assert (BINDER / "start").read_text(encoding="utf-8").rstrip().endswith('exec "$@"')
    bash = shutil.which("bash")
    if bash is not None:
        done = subprocess.run(
            [bash, str(BINDER / "start"), "sh", "-c", "echo $OMP_NUM_THREADS-$0-$1", "a b", "c"],
            env={"PATH": os.environ["PATH"], "CPU_LIMIT": "1.8"},
            capture_output=True,
            text=True,
        )
        assert (done.returncode, done.stdout) == (0, "2-a b-c\n")


def test_the_first_page_is_a_notebook_that_exists() -> None:
    text = (BINDER / "postBuild").read_text(encoding="utf-8")
    written = re.search(r"<<'JSON'\n(.*?)\nJSON\n", text, re.DOTALL)
    assert written is not None
    url = json.loads(written[1])["LabApp"]["default_url"]
    assert (ROOT / url.removeprefix("/lab/tree/")).is_file()

"""Freed host memory: kept by glibc where nobody has decided otherwise."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys

import pytest

from torchlab._core.memory import host

_HAS_MALLOPT = sys.platform == "linux" and hasattr(ctypes.CDLL(None), "mallopt")

_FAULTS = """
import resource, torchlab as torch
def step():
    x = [torch.ones(2**20) for _ in range(8)]  # 4 MiB each
    return sum(x)
for _ in range(3):
    step()
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(10):
    step()
print((resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before) // 10)
"""


def _faults(**more: str) -> int:
    """Page faults of one step after some."""
    own = {k: v for k, v in os.environ.items() if not k.startswith(("MALLOC_", "GLIBC_"))}
    done = subprocess.run(
        [sys.executable, "-c", _FAULTS], env={**own, **more}, capture_output=True, text=True,
        check=True,
    )  # fmt: skip
    return int(done.stdout)


@pytest.mark.skipif(not _HAS_MALLOPT, reason="a setting of glibc")
def test_a_step_gets_the_memory_of_the_last_one() -> None:
    assert _faults() < 100
    assert _faults(TORCHLAB_KEEP_MEMORY="0") > 1000


@pytest.mark.parametrize(
    ("name", "value"), [("TORCHLAB_KEEP_MEMORY", "0"), ("MALLOC_TRIM_THRESHOLD_", "131072")]
)
def test_the_users_decision_stands(name: str, value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(name, value)
    assert not host.keep_freed()


def test_other_systems_are_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host.sys, "platform", "darwin")
    assert not host.keep_freed()

"""What this machine has: package versions, compilers, a Chromium. No package is imported for it."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import pathlib
import shutil
import subprocess
import sys

_CHROMIUM_NAMES = (
    "chromium",
    "chromium-browser",
    "google-chrome",
    "google-chrome-stable",
    "chrome",
)
_CHROMIUM_PLACES = (
    "/Applications/Chromium.app/Contents/MacOS/Chromium",
    "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
    r"C:\Program Files\Google\Chrome\Application\chrome.exe",
    r"C:\Program Files (x86)\Google\Chrome\Application\chrome.exe",
)


def package_version(distribution: str) -> str | None:
    """The installed version of a distribution, None where it is not installed."""
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return None


def has_module(name: str) -> bool:
    """Whether the top-level module `name` can be imported; it is not imported to find out."""
    if name in sys.modules:
        return sys.modules[name] is not None
    return importlib.util.find_spec(name) is not None


def find_chromium() -> str | None:
    """The path of a Chromium or Chrome: `TORCHLAB_CHROMIUM`, the PATH, then the usual places."""
    given = os.environ.get("TORCHLAB_CHROMIUM")
    if given:
        return shutil.which(given)
    for name in _CHROMIUM_NAMES:
        path = shutil.which(name)
        if path:
            return path
    return next((place for place in _CHROMIUM_PLACES if os.access(place, os.X_OK)), None)


def first_line_of(command: list[str]) -> str | None:
    """The first line that `command` prints; None where it cannot be run or fails (10 s at most)."""
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=10, stdin=subprocess.DEVNULL
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    lines = (done.stdout or done.stderr).splitlines()
    return lines[0].strip() if done.returncode == 0 and lines else None


def find_compilers() -> list[tuple[str, str]]:
    """The C++ compilers found, as (path, first line of `--version`): `CXX`, g++, clang++, c++."""
    found: dict[str, tuple[str, str]] = {}
    for name in (os.environ.get("CXX", ""), "g++", "clang++", "c++"):
        path = shutil.which(name) if name else None
        if path is None or os.path.realpath(path) in found:
            continue
        version = first_line_of([path, "--version"])
        if version is not None:
            found[os.path.realpath(path)] = (path, version)
    return list(found.values())


def usable_cores() -> int:
    """The number of CPU cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def package_folder() -> pathlib.Path:
    """The folder of the package torchlab."""
    return pathlib.Path(__file__).resolve().parent.parent

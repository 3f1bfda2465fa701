"""Which parts of the test suite run here, and one line for each that does not.

Two folders need something that is not everywhere: `tests/browser` a Chromium (and JupyterLab and
Playwright), `tests/conformance` real PyTorch. Where it is missing the folder is not collected, and
the summary says so; with `TORCHLAB_REQUIRE_BROWSER=1` or `TORCHLAB_REQUIRE_TORCH=1`, as in CI, the
run fails instead.
"""

from __future__ import annotations

import importlib.util
import os
import pathlib
from collections.abc import Callable

import pytest
from hypothesis import settings

TESTS = pathlib.Path(__file__).resolve().parent

# The machines that run this are shared: a slow example is no bug. The same examples every time in
# CI, so that a red run can be repeated.
settings.register_profile("torchlab", deadline=None, derandomize="CI" in os.environ)
settings.load_profile("torchlab")


def _no_browser() -> str | None:
    # Imported here: torchlab must be importable only for a run that reaches this folder.
    from torchlab.cli.environment import find_chromium

    for module, remedy in (("playwright", "torchlab[test]"), ("jupyterlab", "torchlab[lab]")):
        if importlib.util.find_spec(module) is None:
            return f"{module} is not installed (pip install '{remedy}')"
    if find_chromium() is None:
        return "no Chromium was found (install one, or set TORCHLAB_CHROMIUM to its path)"
    return None


def _no_torch() -> str | None:
    if importlib.util.find_spec("torch") is None:
        return "PyTorch is not installed (pip install 'torchlab[conformance]')"
    return None


SUITES: dict[str, tuple[str, Callable[[], str | None]]] = {
    "browser": ("TORCHLAB_REQUIRE_BROWSER", _no_browser),
    "conformance": ("TORCHLAB_REQUIRE_TORCH", _no_torch),
}

LEFT_OUT = pytest.StashKey[dict[str, str]]()


def _asked_for(config: pytest.Config, folder: pathlib.Path) -> bool:
    """Whether the run's arguments reach `folder`."""
    for argument in config.args:
        path = (config.invocation_params.dir / argument.partition("::")[0]).resolve()
        if path == folder or path in folder.parents or folder in path.parents:
            return True
    return False


def pytest_configure(config: pytest.Config) -> None:
    left_out = {}
    for name, (variable, reason_of) in SUITES.items():
        folder = TESTS / name
        if not folder.is_dir() or not _asked_for(config, folder):
            continue
        reason = reason_of()
        if reason is None:
            continue
        if os.environ.get(variable) == "1":
            raise pytest.UsageError(f"tests/{name} cannot run, and {variable}=1: {reason}")
        left_out[name] = reason
    config.stash[LEFT_OUT] = left_out


def pytest_ignore_collect(collection_path: pathlib.Path, config: pytest.Config) -> bool | None:
    if collection_path.parent == TESTS and collection_path.name in config.stash[LEFT_OUT]:
        return True
    return None


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, exitstatus: int, config: pytest.Config
) -> None:
    for name, reason in config.stash[LEFT_OUT].items():
        terminalreporter.write_line(f"tests/{name} was not run: {reason}", yellow=True)

"""A pytest plugin: `pytest --torchlab-notebooks` runs the notebooks among the tests.

It is there wherever torchlab and pytest are installed together, and does nothing without the
option. With it, nbval (`pip install 'torchlab[test]'`) executes every cell of every notebook that
pytest collects and fails where one raises; it compares outputs of cells marked NBVAL_CHECK_OUTPUT,
or of all cells when `--nbval` is given too. Before comparing, what differs from run to run is
replaced (`nbval_sanitize.cfg`): addresses, timings, dates, SVG ids. The kernel is the Python that
runs pytest, unless `--nbval-kernel-name` names another.
"""

from __future__ import annotations

import os
import pathlib
import tempfile

import pytest

SANITIZER = pathlib.Path(__file__).with_name("nbval_sanitize.cfg")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Declare `--torchlab-notebooks`."""
    parser.getgroup("torchlab", "torchlab").addoption(
        "--torchlab-notebooks",
        action="store_true",
        help=(
            "also run the notebooks found (nbval's lax mode, with torchlab's sanitizer of "
            "addresses, timings and the like); needs nbval"
        ),
    )


def _joined_with(own: str, config: pytest.Config) -> str:
    """A file with torchlab's rules, then those of the file `own`: nbval reads only one."""
    handle, name = tempfile.mkstemp(prefix="torchlab-sanitize-", suffix=".cfg")
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        file.write(SANITIZER.read_text(encoding="utf-8"))
        file.write("\n")
        file.write(pathlib.Path(own).read_text(encoding="utf-8"))
    config.add_cleanup(lambda: pathlib.Path(name).unlink(missing_ok=True))
    return name


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Translate the option into nbval's and xdist's own."""
    option = config.option
    if not option.torchlab_notebooks:
        return
    if not config.pluginmanager.hasplugin("nbval"):
        raise pytest.UsageError(
            "--torchlab-notebooks needs nbval, which is not installed or is switched off; "
            "install it with: pip install 'torchlab[test]'"
        )
    if not option.nbval:
        option.nbval_lax = True
    if not option.nbval_kernel_name:
        option.nbval_current_env = True
    if hasattr(config, "workerinput"):
        return  # an xdist worker: the sanitizer came with the options of the main process
    own = option.nbval_sanitize_with
    if own is None:
        option.nbval_sanitize_with = str(SANITIZER)
    elif not SANITIZER.samefile(own):
        option.nbval_sanitize_with = _joined_with(own, config)
    if getattr(option, "dist", "no") in ("load", "worksteal"):
        # Those hand the cells of one notebook to different processes, each with its own kernel.
        option.dist = "loadfile"

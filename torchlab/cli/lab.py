"""`torchlab lab`: JupyterLab on the first notebook, on this machine only."""

from __future__ import annotations

import argparse
import os
import pathlib
import shutil
import sys
from typing import Any

from torchlab._core.lazy import lazy
from torchlab.cli import environment

START = "00_start.ipynb"
COPY = "torchlab-notebooks"

labapp = lazy("jupyterlab.labapp", needs="pip install 'torchlab[lab]'")


def _port(text: str) -> int:
    try:
        port = int(text)
    except ValueError:
        port = -1
    if not 0 <= port <= 65535:
        raise argparse.ArgumentTypeError(f"{text!r} is not a port: an integer from 0 to 65535")
    return port


def add_parser(commands: Any) -> None:
    """Declare the command and its options."""
    parser = commands.add_parser(
        "lab",
        help=f"open JupyterLab on {START}",
        description=(
            f"Open JupyterLab on {START}. The server listens on 127.0.0.1 only. Outside a source"
            f" checkout the notebooks are first copied to ./{COPY}; files that are there already"
            " are kept."
        ),
    )
    parser.add_argument("notebook", nargs="?", help=f"another notebook to open (default: {START})")
    parser.add_argument("--port", type=_port, help="the port (default: 8888, or the next free one)")
    parser.add_argument("--no-browser", action="store_true", help="only print the address")
    parser.set_defaults(handler=main)


def notebooks_folder(package: pathlib.Path, current: pathlib.Path) -> pathlib.Path:
    """The folder of the notebooks: the checkout's, or a copy in `current` of those in the wheel.

    Raises:
        FileNotFoundError: the installation has no notebooks.
    """
    checkout = package.parent / "notebooks"
    if (checkout / START).is_file() and (package.parent / "pyproject.toml").is_file():
        return checkout
    shipped = package / "_notebooks"
    if not (shipped / START).is_file():
        raise FileNotFoundError(
            f"this installation of torchlab has no notebooks (looked for {checkout / START} and "
            f"{shipped / START}); install it again, or run this in a source checkout"
        )
    target = current / COPY
    for source in sorted(shipped.rglob("*")):
        copy = target / source.relative_to(shipped)
        if source.is_file() and not copy.exists():
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source, copy)
    return target


def arguments(notebook: pathlib.Path, port: int | None, browser: bool) -> list[str]:
    """JupyterLab's command line for one notebook; loopback only."""
    result = [
        str(notebook),
        "--ServerApp.ip=127.0.0.1",
        f"--ServerApp.root_dir={notebook.parent}",
    ]
    if port is not None:
        result.append(f"--ServerApp.port={port}")
    if not browser:
        result.append("--no-browser")
    if hasattr(os, "geteuid") and os.geteuid() == 0:
        # In a container there is often no other user, and nothing outside reaches the server.
        result.append("--allow-root")
    return result


def main(options: argparse.Namespace) -> int:
    """Start JupyterLab and stay until it ends."""
    if not environment.has_module("jupyterlab"):
        print(
            "torchlab lab: JupyterLab is not installed in this environment "
            f"({sys.executable}).\nInstall it with: pip install 'torchlab[lab]' "
            "(in a checkout: pip install -e '.[lab]')",
            file=sys.stderr,
        )
        return 1
    if options.notebook is not None:
        notebook = pathlib.Path(options.notebook).resolve()
        if not notebook.is_file():
            print(f"torchlab lab: there is no notebook {options.notebook}", file=sys.stderr)
            return 2
    else:
        try:
            folder = notebooks_folder(environment.package_folder(), pathlib.Path.cwd())
        except OSError as e:
            print(f"torchlab lab: {e}", file=sys.stderr)
            return 1
        notebook = folder / START
    print(f"torchlab lab: opening {notebook}", file=sys.stderr)
    labapp.main(arguments(notebook, options.port, browser=not options.no_browser))
    return 0

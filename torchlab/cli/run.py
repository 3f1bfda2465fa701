"""`torchlab run`: an unmodified PyTorch script, with `import torch` meaning torchlab."""

from __future__ import annotations

import os
import runpy
import sys
from collections.abc import Sequence
from typing import Any

from torchlab import compat

_USAGE = "usage: torchlab run [-h] (SCRIPT | -m MODULE) [ARGUMENT ...]"
_HELP = f"""{_USAGE}

Run a Python script or module that was written for PyTorch: `import torch` and
`import torch.x.y` mean torchlab. Everything after SCRIPT or MODULE goes to it,
in sys.argv. It runs as __main__, and its exit code is passed through.

  SCRIPT      a .py file, or a folder or zip file with a __main__.py
  -m MODULE   a module found on sys.path, as with python -m
  -h, --help  show this text
"""


def add_parser(commands: Any) -> None:
    """Declare the command for the list of commands; `main` reads its arguments itself."""
    commands.add_parser("run", help="run an unmodified PyTorch script on torchlab", add_help=False)


def _wrong(message: str) -> int:
    print(f"{_USAGE}\ntorchlab run: error: {message}", file=sys.stderr)
    return 2


def run_script(path: str, arguments: Sequence[str]) -> None:
    """Run the file `path` as `python path arguments...` would, with the alias installed."""
    sys.argv[:] = [path, *arguments]
    if os.path.isfile(path) and path.endswith((".py", ".pyw")):
        # As python does: a script's imports start in its own folder, not in the caller's. For
        # folders and zip files runpy puts the path itself there.
        sys.path[0] = os.path.dirname(os.path.abspath(path))
    compat.install()
    runpy.run_path(path, run_name="__main__")


def run_module(name: str, arguments: Sequence[str]) -> None:
    """Run the module `name` as `python -m name arguments...` would, with the alias installed."""
    sys.argv[:] = [name, *arguments]  # runpy replaces the first by the module's file
    sys.path[0] = os.getcwd()
    compat.install()
    runpy.run_module(name, run_name="__main__", alter_sys=True)


def main(argv: Sequence[str]) -> int:
    """Run what `argv` names. A script's exception or SystemExit leaves this function as it is."""
    first = argv[0] if argv else None
    if first is None:
        return _wrong("which script? Give a file, or -m and a module")
    if first in ("-h", "--help"):
        print(_HELP, end="")
        return 0
    if first == "-m" or (first.startswith("-m") and not first.startswith("--")):
        rest = [first[2:], *argv[1:]] if len(first) > 2 else list(argv[1:])
        if not rest:
            return _wrong("-m needs the name of a module")
        run_module(rest[0], rest[1:])
        return 0
    if first == "--":
        argv = argv[1:]
        if not argv:
            return _wrong("which script? Give a file, or -m and a module")
    elif first.startswith("-"):
        return _wrong(f"unknown option {first}; a script's own options come after its name")
    if not os.path.exists(argv[0]):
        return _wrong(f"can't open file {argv[0]!r}: there is none in {os.getcwd()}")
    run_script(argv[0], argv[1:])
    return 0

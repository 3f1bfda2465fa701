"""`torchlab run`: an unmodified PyTorch script, with `import torch` meaning torchlab."""

from __future__ import annotations

import io
import os
import runpy
import sys
from collections.abc import Sequence
from types import ModuleType, TracebackType
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
    sys.excepthook = _without_these_frames
    compat.install()
    if not (os.path.isfile(path) and path.endswith((".py", ".pyw"))):
        runpy.run_path(path, run_name="__main__")  # it puts the folder or zip file on sys.path
        return
    # As python does: the script's folder is where its imports start, and `__file__` is absolute.
    # (runpy would make argv[0] absolute, too, and take the module away when the script ends.)
    file = os.path.abspath(path)
    sys.path[0] = os.path.dirname(file)
    with io.open_code(file) as source:
        code = compile(source.read(), file, "exec")
    module = ModuleType("__main__")
    module.__dict__.update(
        __file__=file, __cached__=None, __loader__=None, __spec__=None, __package__=None
    )
    sys.modules["__main__"] = module
    exec(code, module.__dict__)


def _without_these_frames(
    kind: type[BaseException], error: BaseException, trace: TracebackType | None
) -> None:
    """Show the error that ended a script as python would have: its traceback begins in the
    script."""
    at, ours = trace, None
    while at is not None:
        if at.tb_frame.f_code.co_filename == __file__:
            ours = at
        at = at.tb_next
    begin = trace if ours is None else ours.tb_next
    while begin is not None and begin.tb_frame.f_code.co_filename == "<frozen runpy>":
        begin = begin.tb_next
    sys.__excepthook__(kind, error.with_traceback(begin), begin)  # (none: a SyntaxError there)


def run_module(name: str, arguments: Sequence[str]) -> None:
    """Run the module `name` as `python -m name arguments...` would, with the alias installed."""
    sys.argv[:] = [name, *arguments]  # runpy replaces the first by the module's file
    sys.path[0] = os.getcwd()
    sys.excepthook = _without_these_frames
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

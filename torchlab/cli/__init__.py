"""The command `torchlab`: `lab`, `run` and `info`.

Exit codes: 0 for success, 1 when the work could not be done (something is not installed, a script
raised), 2 when the command line is wrong. `run` passes the script's own exit code through.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from torchlab.cli import environment, info, lab, run

__all__ = ["main"]


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="torchlab",
        description="PyTorch's stack in readable Python, with a Jupyter laboratory to look inside.",
        epilog="exit codes: 0 done; 1 it could not be done; 2 the command line is wrong",
    )
    version = environment.package_version("torchlab") or "(not installed)"
    parser.add_argument("--version", action="version", version=f"torchlab {version}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for command in (lab, run, info):
        command.add_parser(commands)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line `argv` (default: `sys.argv[1:]`) and return its exit code.

    Wrong usage, `--help` and a script's own `sys.exit` leave as SystemExit, as with argparse.
    """
    arguments = list(sys.argv[1:] if argv is None else argv)
    if not arguments:
        _parser().print_help(sys.stderr)
        return 2
    if arguments[0] == "run":
        # Everything after the script belongs to the script, `--help` included, which argparse
        # cannot express; so `run` reads its own arguments.
        return run.main(arguments[1:])
    options = _parser().parse_args(arguments)
    code: int = options.handler(options)
    return code

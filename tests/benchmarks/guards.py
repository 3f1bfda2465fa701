"""What the guards of the lab cost while nobody listens: instructions per call, counted by valgrind.

    python tests/benchmarks/guards.py [add|exp|transpose|…]

Every generated call begins with `if SLOW:`; an operator is counted with and without these lines, in
processes of their own. Needs valgrind. Counts are repeatable; times on a shared machine are not.
"""

from __future__ import annotations

import inspect
import os
import pathlib
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable
from typing import Any

ROOT = pathlib.Path(__file__).resolve().parents[2]
CALLS = (2000, 6000)
ARGUMENTS = {"add": 2, "mul": 2, "exp": 1, "relu": 1, "t": 1, "neg": 1}


def unguarded(method: Callable[..., Any]) -> Callable[..., Any]:
    """The generated function compiled again without the two lines of its guard."""
    source, found = re.subn(
        r"^    if SLOW:\n        return slow\(.*\)\n", "", inspect.getsource(method), flags=re.M
    )
    if found != 1:
        raise SystemExit(f"expected one guard in {method.__name__}, found {found}")
    scope: dict[str, Any] = {}
    exec(compile(source, "<without guard>", "exec"), method.__globals__, scope)
    return scope[method.__name__]


def work(name: str, guarded: bool, calls: int) -> None:
    import torchlab

    form = "__add__" if name == "add" else name
    getattr(torchlab.ones(10), form)(*[torchlab.ones(10)] * (ARGUMENTS[name] - 1))  # generates it
    method = getattr(torchlab.Tensor, form)
    fn = method if guarded else unguarded(method)
    arguments = [torchlab.ones(10).requires_grad_() for _ in range(ARGUMENTS[name])]
    for _ in range(calls):
        fn(*arguments)


def instructions(name: str, guarded: bool, calls: int) -> int:
    with tempfile.TemporaryDirectory() as folder:
        command = [
            "valgrind", "--tool=callgrind", f"--callgrind-out-file={folder}/out", sys.executable,
            __file__, "--work", name, str(int(guarded)), str(calls),
        ]  # fmt: skip
        env = dict(os.environ, PYTHONPATH=str(ROOT), PYTHONHASHSEED="0", OMP_NUM_THREADS="1",
                   OPENBLAS_NUM_THREADS="1", PYTHONDONTWRITEBYTECODE="1")  # fmt: skip
        said = subprocess.run(command, env=env, capture_output=True, text=True, check=True).stderr
    return int(re.findall(r"Collected : (\d+)", said)[0])


def per_call(name: str, guarded: bool) -> float:
    few, many = (instructions(name, guarded, n) for n in CALLS)
    return (many - few) / (CALLS[1] - CALLS[0])


def main() -> None:
    for name in sys.argv[1:] or ["add", "exp", "t"]:
        bare, guarded = per_call(name, False), per_call(name, True)
        print(f"{name}: {bare:.0f} instructions without guards, {guarded:.0f} with:"
              f" {100 * (guarded / bare - 1):+.2f} %", flush=True)  # fmt: skip


if __name__ == "__main__":
    if sys.argv[1:2] == ["--work"]:
        work(sys.argv[2], sys.argv[3] == "1", int(sys.argv[4]))
    else:
        main()

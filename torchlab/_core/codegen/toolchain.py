"""Finding a C++ compiler and making libraries with it.

Order: `TORCHLAB_CXX`, `CXX`, g++, clang++, the `ziglang` package. `TORCHLAB_CXX=none` uses no
compiler.
"""

from __future__ import annotations

import ctypes
import functools
import importlib.util
import os
import pathlib
import platform
import shlex
import shutil
import subprocess
import sys
import warnings
from collections.abc import Callable
from dataclasses import dataclass

from torchlab._core.codegen import cache

# Never -ffast-math or its parts -fassociative-math, -freciprocal-math, -fno-signed-zeros: they
# change results, and gcc's start-up code for -ffast-math would switch the whole process to
# flush-to-zero.
FLAGS = (
    "-O3", "-fno-math-errno", "-fno-trapping-math", "-fopenmp-simd", "-ffp-contract=off", "-fwrapv",
    "-fno-exceptions", "-fno-rtti",
)  # fmt: skip
_QUOTED = 20  # lines of what the compiler said
_X86 = ("-march=native", "-mprefer-vector-width=512")
_PROBE = (
    'extern "C" int probe(int n) {\n#pragma omp parallel for\n    for (int i = 0; i < n; ++i) {}\n '
    "   return n;\n}\n"
)


class CompileError(RuntimeError):
    """The compiler refused a generated source; the message names the kernel and quotes the
    compiler."""


@dataclass(frozen=True)
class Compiler:
    """A compiler's command line up to the files, and what identifies it in the cache's keys."""

    command: tuple[str, ...]
    identity: str
    flags: tuple[str, ...]

    def run(self, source: pathlib.Path, library: pathlib.Path, extra: tuple[str, ...] = ()) -> None:
        """Make `library` of `source`. Raises CompileError with what the compiler said."""
        command = [*self.command, *self.flags, *extra, "-shared", str(source), "-o", str(library)]
        if os.name != "nt":
            command[-2:-2] = ["-fPIC"]
            command.append("-lm")
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=600)
        except (OSError, subprocess.TimeoutExpired) as e:
            raise CompileError(f"{' '.join(self.command)} could not be run: {e}") from e
        if done.returncode:
            raise CompileError(
                f"{shlex.join(command)}\n{done.stderr.strip() or done.stdout.strip()}"
            )


def find_compiler() -> Compiler | None:
    """The compiler to use, or None. Remembered per value of PATH, CXX and TORCHLAB_CXX."""
    env = os.environ
    return _find(env.get("TORCHLAB_CXX", ""), env.get("CXX", ""), env.get("PATH", ""))


@functools.lru_cache(maxsize=8)
def _find(wanted: str, cxx: str, path: str) -> Compiler | None:
    if wanted == "none":
        return None
    for given in filter(None, (wanted, cxx, "g++", "clang++")):
        command = shlex.split(given)
        found = shutil.which(command[0], path=path)
        if found:
            return _with_openmp(_compiler((found, *command[1:])))
    if importlib.util.find_spec("ziglang") is not None:
        zig = _compiler(
            (sys.executable, "-m", "ziglang", "c++"), ("-nostdlib++", "-fno-sanitize=undefined")
        )
        return zig
    return None


def _compiler(command: tuple[str, ...], extra: tuple[str, ...] = ()) -> Compiler:
    real = pathlib.Path(command[0]).resolve()
    status = real.stat()
    machine = platform.machine().lower()
    native = _X86 if machine in ("x86_64", "amd64") else ("-mcpu=native",)
    identity = f"{' '.join(command)} {real} {status.st_size} {status.st_mtime_ns} {cpu_features()}"
    return Compiler(command, identity, (*FLAGS, *native, *extra))


def _with_openmp(compiler: Compiler) -> Compiler:
    """`compiler` with -fopenmp, where that makes a library that loads."""

    def probe() -> str:
        try:
            name = cache.key(_PROBE, compiler.identity, "probe")
            library, _ = cache.fetch(
                name, _PROBE, lambda s, lib: compiler.run(s, lib, ("-fopenmp",))
            )
            ctypes.CDLL(str(library))
        except (CompileError, OSError):
            return "no"
        return "yes"

    answer = cache.note(f"openmp-{cache.key(compiler.identity)[:16]}", probe)
    if answer != "yes":
        return compiler
    return Compiler(compiler.command, compiler.identity, (*compiler.flags, "-fopenmp"))


@functools.lru_cache(maxsize=1)
def cpu_features() -> str:
    """What this processor can do, as text: a library made for another one must not be loaded."""
    try:
        with open("/proc/cpuinfo") as file:
            for line in file:
                if line.lower().startswith(("flags", "features")):
                    return line.partition(":")[2].strip()
    except OSError:
        pass
    return f"{platform.system()} {platform.machine()} {platform.processor()}"


def build(source: str, name: str, compiler: Compiler) -> tuple[ctypes.CDLL, bool]:
    """The library made of `source`, from the cache if it is there, and whether it was.

    Raises:
        CompileError: naming `name` and quoting the compiler.
    """
    entry = cache.key(source, compiler.identity, " ".join(compiler.flags))
    try:
        library, cached = cache.fetch(entry, source, compiler.run)
        return ctypes.CDLL(str(library)), cached
    except CompileError as e:
        said = str(e).splitlines()
        if len(said) > _QUOTED:
            said[_QUOTED:] = [f"… and {len(said) - _QUOTED} more lines"]
        text = "\n".join(said)
        raise CompileError(f"the generated C++ of '{name}' was not compiled:\n{text}") from None
    except OSError as e:
        raise CompileError(f"the library of '{name}' could not be made or loaded: {e}") from e


def entry_point(library: ctypes.CDLL, name: str, arrays: int) -> Callable[..., int]:
    """`name(*ndarrays, threads)` of a library. The arrays go over as objects: the C++ side reads
    the data pointer from the array's head, which is a microsecond cheaper than asking for it from
    Python."""
    function = library[name]
    function.argtypes = [ctypes.py_object] * arrays + [ctypes.c_int]
    function.restype = ctypes.c_int
    return function


def default_threads() -> int:
    """`OMP_NUM_THREADS` if set, else the processors this process may use."""
    given = os.environ.get("OMP_NUM_THREADS", "").split(",")[0]
    if given.isdigit() and int(given) > 0:
        return int(given)
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


_told: set[str] = set()


def say_once(topic: str, text: str) -> None:
    """Warn of a fallback, the first time only."""
    if topic not in _told:
        _told.add(topic)
        warnings.warn(text, RuntimeWarning, stacklevel=4)

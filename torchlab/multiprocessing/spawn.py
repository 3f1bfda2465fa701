"""`spawn`: run a function in several processes and hear of the first that fails.

Source: https://docs.pytorch.org/docs/2.13/multiprocessing.html#spawning-subprocesses
"""

from __future__ import annotations

import ctypes
import logging
import multiprocessing
import multiprocessing.connection
import os
import pickle
import shutil
import signal
import sys
import tempfile
import time
import traceback
import warnings
import weakref
from collections.abc import Callable
from typing import Any

log = logging.getLogger("torch.multiprocessing.spawn")
_PR_SET_PDEATHSIG = 1


class ProcessException(Exception):
    """A process failed. `error_index`: its place among the processes; `error_pid`: its number."""

    def __init__(self, msg: str, error_index: int, error_pid: int) -> None:
        super().__init__(msg)
        self.msg = msg
        self.error_index = error_index
        self.error_pid = error_pid

    def __reduce__(self) -> Any:
        return type(self), (self.msg, self.error_index, self.error_pid)


class ProcessRaisedException(ProcessException):
    """A process ended with an exception; the text has its traceback."""


class ProcessExitedException(ProcessException):
    """A process ended with an exit code, or by a signal (`signal_name`)."""

    def __init__(
        self,
        msg: str,
        error_index: int,
        error_pid: int,
        exit_code: int,
        signal_name: str | None = None,
    ) -> None:
        super().__init__(msg, error_index, error_pid)
        self.exit_code = exit_code
        self.signal_name = signal_name

    def __reduce__(self) -> Any:
        facts = (self.msg, self.error_index, self.error_pid, self.exit_code, self.signal_name)
        return type(self), facts


def _die_with_parent() -> None:
    """Let the system interrupt this process when the one that started it is gone (Linux only)."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, int(signal.SIGINT))


def _wrap(fn: Callable[..., Any], i: int, args: tuple[Any, ...], error_file: str) -> None:
    _die_with_parent()
    try:
        fn(i, *args)
    except KeyboardInterrupt:
        pass  # the parent was interrupted, too
    except Exception:
        with open(error_file, "wb") as file:
            pickle.dump(traceback.format_exc(), file)
        sys.exit(1)


class ProcessContext:
    """Processes that were started together."""

    def __init__(self, processes: list[Any], error_files: list[str]) -> None:
        self.processes = processes
        self.error_files = error_files
        self.sentinels = {p.sentinel: i for i, p in enumerate(processes)}

    def pids(self) -> list[int]:
        """The numbers of the processes."""
        return [int(p.pid) for p in self.processes]

    def join(self, timeout: float | None = None, grace_period: float | None = None) -> bool:
        """Wait for a process to end; True when all have ended well.

        timeout: seconds to wait, None: until one ends. grace_period: seconds that the others have
        to end by themselves, and again after they were asked to, once one has failed.
        ProcessRaisedException, ProcessExitedException if one failed; the others are ended first.
        """
        if not self.sentinels:
            return True
        failed = None
        for sentinel in multiprocessing.connection.wait(self.sentinels.keys(), timeout=timeout):
            index = self.sentinels.pop(sentinel)  # type: ignore[call-overload]
            process = self.processes[index]
            process.join()
            if process.exitcode != 0:
                failed = index
                break
        if failed is None:
            return not self.sentinels
        self._end_others(grace_period)
        raise self._error(failed)

    def _end_others(self, grace_period: float | None) -> None:
        self._wait(grace_period)
        for p in self.processes:
            if p.is_alive():
                log.warning("Terminating process %s via signal SIGTERM", p.pid)
                p.terminate()
        self._wait(30.0 if grace_period is None else grace_period)
        for p in self.processes:
            if p.is_alive():
                log.warning("Unable to shutdown process %s via SIGTERM , trying SIGKILL", p.pid)
                p.kill()
            p.join()

    def _wait(self, seconds: float | None) -> None:
        if seconds is not None:
            end = time.monotonic() + seconds
            for p in self.processes:
                p.join(max(0.0, end - time.monotonic()))

    def _error(self, index: int) -> ProcessException:
        process = self.processes[index]
        pid = process.pid
        if os.access(self.error_files[index], os.R_OK) and os.stat(self.error_files[index]).st_size:
            with open(self.error_files[index], "rb") as file:
                told = pickle.load(file)
            text = f"\n\n-- Process {index} terminated with the following error:\n{told}"
            return ProcessRaisedException(text, index, pid)
        code = process.exitcode
        if code < 0:
            try:
                name = signal.Signals(-code).name
            except ValueError:
                name = f"<Unknown signal {-code}>"
            text = f"process {index} terminated with signal {name}"
            return ProcessExitedException(text, index, pid, code, name)
        text = f"process {index} terminated with exit code {code}"
        return ProcessExitedException(text, index, pid, code)


class SpawnContext(ProcessContext):
    """What `spawn` returns."""


def start_processes(
    fn: Callable[..., Any],
    args: tuple[Any, ...] = (),
    nprocs: int = 1,
    join: bool = True,
    daemon: bool = False,
    start_method: str = "spawn",
) -> ProcessContext | None:
    """Call `fn(i, *args)` in `nprocs` processes, i from 0; wait for them, or return their
    ProcessContext (`join=False`)."""
    mp = multiprocessing.get_context(start_method)
    folder = tempfile.mkdtemp(prefix="torchlab-spawn-")
    files, processes = [os.path.join(folder, str(i)) for i in range(nprocs)], []
    for i, file in enumerate(files):
        process = mp.Process(target=_wrap, args=(fn, i, args, file), daemon=daemon)  # type: ignore[attr-defined]
        process.start()
        processes.append(process)
    context = ProcessContext(processes, files)
    weakref.finalize(context, shutil.rmtree, folder, True)
    if not join:
        return context
    while not context.join():
        pass
    return None


def spawn(
    fn: Callable[..., Any],
    args: tuple[Any, ...] = (),
    nprocs: int = 1,
    join: bool = True,
    daemon: bool = False,
    start_method: str = "spawn",
) -> ProcessContext | None:
    """Call `fn(i, *args)` in `nprocs` new Python processes, i from 0. `fn` has to be found by its
    name in its module, its arguments have to be picklable; tensors are shared.

    join: wait, and raise what the first failing process did (ProcessRaisedException with its
    traceback, ProcessExitedException) after ending the others; False: return their ProcessContext.
    daemon: end the processes when this one ends.
    """
    if start_method != "spawn":
        warnings.warn(
            f"This method only supports start_method=spawn (got: {start_method}).\nTo use a"
            " different start_method use:\n\t\t torch.multiprocessing.start_processes(...)",
            FutureWarning,
            stacklevel=2,
        )
    return start_processes(fn, args, nprocs, join, daemon, start_method="spawn")


__all__ = [
    "ProcessContext", "ProcessException", "ProcessExitedException", "ProcessRaisedException",
    "SpawnContext", "spawn", "start_processes",
]  # fmt: skip

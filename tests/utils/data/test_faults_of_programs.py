"""Programs that end while a loader works: their end is quiet, and nothing of them goes on."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import time

import pytest

from tests.utils.data.leaks import all_end, segments

METHODS = ("fork", "spawn", "forkserver", "pinned")
"""How workers are started; "pinned": by fork, and a thread pins the batches."""

PROGRAM = """
    import os, signal, sys, time
    # whoever runs the tests may have switched these off (nohup, a shell's background jobs)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    import torchlab
    from torchlab.utils.data import DataLoader

    class Slow:
        def __len__(self):
            return 1000

        def __getitem__(self, i):
            time.sleep(0.01)
            return torchlab.full((3, 32, 32), float(i))

    def main():
        {strategy}
        loader = DataLoader(
            Slow(), 4, num_workers=2, multiprocessing_context="{method}",
            persistent_workers={persistent}, pin_memory={pinned},
        )
        batches = iter(loader)
        pids = [w.process.pid for w in batches._workers]
        if {ready}:  # each worker has answered
            first, _ = next(batches), next(batches)
        print(*pids, flush=True)
        {end}

    if __name__ == "__main__":
        main()
"""
BY_NAME = "torchlab.multiprocessing.set_sharing_strategy('file_system')"


def program(tmp_path, method, end, persistent=False, strategy="pass", ready=True):
    path = tmp_path / "program.py"
    path.write_text(
        textwrap.dedent(PROGRAM).format(
            method="fork" if method == "pinned" else method,
            pinned=method == "pinned",
            end=end,
            persistent=persistent,
            strategy=strategy,
            ready=ready,
        )
    )
    return subprocess.Popen(
        [sys.executable, str(path)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | ({"TORCHLAB_ACCELERATOR": "sim"} if method == "pinned" else {}),
        start_new_session=True,
    )


def workers_of(process):
    return [int(pid) for pid in process.stdout.readline().split()]


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("persistent", [False, True])
@pytest.mark.parametrize(
    ("end", "code", "says"),
    [
        ("return", 0, ""),
        ("globals().update(kept=(loader, batches, first))", 0, ""),
        ("sys.exit(3)", 3, ""),
        ("raise ValueError('in the loop')", 1, "ValueError: in the loop"),
    ],
    ids=["return", "global", "exit", "exception"],
)
def test_the_interpreter_ends_with_a_live_iterator(tmp_path, method, persistent, end, code, says):
    before = segments()
    with program(tmp_path, method, end, persistent) as process:
        workers = workers_of(process)
        out, error = process.communicate(timeout=60)
    assert (process.returncode, out) == (code, "")
    assert error.strip().endswith(says) and error.count("Traceback") == bool(says), error
    assert len(workers) == 2 and all_end(workers)
    assert segments() <= before


@pytest.mark.parametrize("pause", [0.0, 0.2, 0.5])
def test_ctrl_c_while_workers_still_import_the_program(tmp_path, pause):
    with program(tmp_path, "spawn", "list(batches)", ready=False) as process:
        workers = workers_of(process)
        time.sleep(pause)
        os.killpg(process.pid, signal.SIGINT)
        _, error = process.communicate(timeout=60)
    assert process.returncode in (-signal.SIGINT, 130, 1)
    assert error.count("Traceback") == 1 and error.strip().endswith("KeyboardInterrupt"), error
    assert len(workers) == 2 and all_end(workers)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("where", ["time.sleep(60)", "list(batches)"], ids=["loop", "wait"])
def test_ctrl_c(tmp_path, method, where):
    """The terminal sends the signal to the program and all its workers."""
    with program(tmp_path, method, where) as process:
        workers = workers_of(process)
        time.sleep(0.3)
        os.killpg(process.pid, signal.SIGINT)
        began = time.monotonic()
        _, error = process.communicate(timeout=60)
    assert time.monotonic() - began < 8
    assert process.returncode in (-signal.SIGINT, 130, 1)
    assert error.count("Traceback") == 1 and error.strip().endswith("KeyboardInterrupt"), error
    assert len(workers) == 2 and all_end(workers)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("name", ["SIGTERM", "SIGKILL", "SIGHUP"])
def test_signals_that_end_the_program(tmp_path, method, name):
    before = segments()
    with program(tmp_path, method, "time.sleep(60)", strategy=BY_NAME) as process:
        workers = workers_of(process)
        os.kill(process.pid, getattr(signal, name))
        process.communicate(timeout=60)
    assert process.returncode == -getattr(signal, name)
    assert len(workers) == 2 and all_end(workers)
    end = time.monotonic() + 10
    while segments() - before and time.monotonic() < end:  # Python's resource tracker removes them
        time.sleep(0.05)
    assert segments() <= before

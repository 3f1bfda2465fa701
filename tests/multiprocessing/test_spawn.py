"""`spawn`: results, and what is told of processes that fail."""

from __future__ import annotations

import os
import pickle
import signal
import sys
import tempfile
import time

import pytest

import torchlab as torch
import torchlab.multiprocessing as mp


def write(i, x):
    x[i] = i + 1


def raise_in_one(i, text):
    if i == 1:
        raise ValueError(text)
    time.sleep(60)


def exit_with_three(i):
    if i == 0:
        sys.exit(3)
    time.sleep(60)


def kill_itself(i):
    os.kill(os.getpid(), signal.SIGKILL)


def ignore_sigterm(i):
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if i == 0:
        time.sleep(0.3)  # until the other ignores it, too
        raise RuntimeError("first")
    time.sleep(60)


@pytest.mark.parametrize("method", ["spawn", "fork", "forkserver"])
def test_processes_write_into_one_tensor(method):
    x = torch.zeros(3).share_memory_()
    assert mp.start_processes(write, (x,), nprocs=3, start_method=method) is None
    assert x.tolist() == [1, 2, 3]


def test_not_joined():
    x = torch.zeros(2).share_memory_()
    folders = set(os.listdir(tempfile.gettempdir()))
    context = mp.spawn(write, (x,), nprocs=2, join=False)
    assert isinstance(context, mp.ProcessContext)
    assert context.pids() == [p.pid for p in context.processes]
    assert context.join(timeout=0) in (False, True)
    while not context.join():
        pass
    assert x.tolist() == [1, 2]
    assert context.join() is True
    del context
    left = set(os.listdir(tempfile.gettempdir())) - folders
    assert not [n for n in left if n.startswith("torchlab-spawn-")]


def test_the_childs_traceback_arrives():
    start = time.monotonic()
    with pytest.raises(mp.ProcessRaisedException) as found:
        mp.start_processes(raise_in_one, ("no luck",), nprocs=2, start_method="fork")
    assert time.monotonic() - start < 20
    text = str(found.value)
    assert text.startswith("\n\n-- Process 1 terminated with the following error:\nTraceback")
    assert "in raise_in_one" in text
    assert text.endswith("ValueError: no luck\n")
    assert found.value.error_index == 1
    again = pickle.loads(pickle.dumps(found.value))
    assert (str(again), again.error_pid) == (text, found.value.error_pid)


def test_exit_codes_and_signals():
    with pytest.raises(
        mp.ProcessExitedException, match="process 0 terminated with exit code 3"
    ) as e:
        mp.start_processes(exit_with_three, nprocs=2, start_method="fork")
    assert (e.value.exit_code, e.value.signal_name, e.value.error_index) == (3, None, 0)
    with pytest.raises(mp.ProcessExitedException, match="terminated with signal SIGKILL") as e:
        mp.start_processes(kill_itself, nprocs=1, start_method="fork")
    assert (e.value.exit_code, e.value.signal_name) == (-9, "SIGKILL")
    assert pickle.loads(pickle.dumps(e.value)).exit_code == -9


def test_others_that_do_not_listen_are_killed():
    context = mp.start_processes(ignore_sigterm, nprocs=2, join=False, start_method="fork")
    with pytest.raises(mp.ProcessRaisedException, match="first"):
        while not context.join(grace_period=0.5):
            pass
    assert not any(p.is_alive() for p in context.processes)


def test_another_start_method_is_warned_of():
    x = torch.zeros(1).share_memory_()
    with pytest.warns(FutureWarning, match="only supports start_method=spawn"):
        mp.spawn(write, (x,), start_method="fork")
    assert x.tolist() == [1]

"""Memory that several processes see, and tensors that travel between them."""

from __future__ import annotations

import gc
import os
import pickle
import signal
import subprocess
import sys
import textwrap
import threading
import time
import warnings
from multiprocessing.reduction import ForkingPickler

import numpy as np
import pytest

import torchlab as torch
import torchlab.multiprocessing as mp
from tests.utils.data.leaks import segments
from torchlab._core import sharing, threads
from torchlab._core.codegen.wrapper import Threads

METHODS = ("fork", "spawn", "forkserver")


@pytest.fixture(params=["file_descriptor", "file_system"])
def strategy(request):
    before = mp.get_sharing_strategy()
    mp.set_sharing_strategy(request.param)
    yield request.param
    mp.set_sharing_strategy(before)


def own():
    """The names that this process made; other tests run beside this one."""
    begin = f"torchlab_{os.getpid()}_"
    return sorted(n for n in os.listdir("/dev/shm") if n.startswith(begin))


def left(before):
    """The names, made here or by processes that have ended, that were not there `before`. What
    another test lets die is cleared within seconds, as what is looked for must be."""
    end = time.monotonic() + 20
    while segments() - before and time.monotonic() < end:
        time.sleep(0.05)
    return segments() - before


def descriptors():
    gc.collect()
    return len(os.listdir("/proc/self/fd"))


# ---- in one process -------------------------------------------------------------------------


def test_all_views_move_together(strategy):
    x = torch.arange(12.0).reshape(3, 4)
    view, transposed, saved = x[1:], x.t(), x.clone()
    leaf = torch.nn.Parameter(x[0])
    assert not any(t.is_shared() for t in (x, view, leaf))
    assert view.share_memory_() is view
    assert all(t.is_shared() for t in (x, view, transposed, leaf))
    assert x.untyped_storage().is_shared()
    view[0, 0] = -1
    assert x[1, 0] == -1 == transposed[0, 1]
    x[1, 0] = saved[1, 0]
    assert torch.equal(x, saved)
    address = x.data_ptr()
    assert x.share_memory_().data_ptr() == address


def test_a_view_and_its_base_move_without_a_search(monkeypatch, strategy):
    """Which looks through all objects of the program."""

    def search(s):
        raise AssertionError("searched")

    base = torch.ones(3, 4)
    monkeypatch.setattr(sharing, "tensors_over", search)
    for x in (base[1:].t(), torch.arange(6.0)[2:], torch.arange(3.0)):
        values = x.tolist()
        assert x.share_memory_().is_shared() and x.tolist() == values
        x.zero_()
    assert base.is_shared() and base.tolist() == [[1] * 4, [0] * 4, [0] * 4]
    other = torch.arange(6.0)
    views = other[1:], other.view(2, 3)
    with pytest.raises(AssertionError, match="searched"):
        views[0].share_memory_()
    monkeypatch.undo()
    views[0].share_memory_().zero_()
    assert views[1].is_shared() and views[1].tolist() == [[0, 0, 0]] * 2


def test_a_tensor_alone_moves_without_a_search(strategy, monkeypatch):
    x = torch.ones(5)
    monkeypatch.setattr(gc, "get_referrers", None)
    assert x.share_memory_().is_shared()
    assert x.tolist() == [1] * 5


def test_shared_memory_keeps_its_length(strategy):
    x = torch.ones(4).share_memory_()
    with pytest.raises(RuntimeError, match="resiz"):
        x.resize_(100)
    with pytest.raises(RuntimeError, match="keeps its 16 bytes"):
        x.untyped_storage().resize_(100)
    assert x.tolist() == [1] * 4
    with pytest.raises(RuntimeError, match="only available on CPU"):
        torch.ones(2, device="meta").share_memory_()


def test_training_goes_on_in_shared_memory(strategy):
    torch.manual_seed(0)
    net = torch.nn.Linear(3, 2)
    x = torch.randn(4, 3)
    y = net(x).sum()
    net.share_memory()
    assert all(p.is_shared() for p in net.parameters())
    y.backward()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    before = net.weight.clone()
    optimizer.step()
    assert torch.allclose(net.weight, before - 0.1 * net.weight.grad)
    assert net.weight.is_shared()


def test_names_and_descriptors_are_let_go(strategy):
    start, open_before = own(), None
    for _ in range(3):
        x = torch.ones(1000).share_memory_()
        y = x[10:]
        array = y.numpy()
        assert len(own()) == len(start) + (strategy == "file_system")
        del x, y
        gc.collect()
        assert own() == start
        assert array.sum() == 990  # an array outlives the name and the tensor
        del array
        open_before = open_before or descriptors()
        assert descriptors() == open_before


def test_strategies():
    assert mp.get_all_sharing_strategies() == {"file_descriptor", "file_system"}
    with pytest.raises(AssertionError, match="invalid sharing strategy 'fax'"):
        mp.set_sharing_strategy("fax")


def test_what_may_not_travel():
    x = torch.ones(2, requires_grad=True)
    with pytest.raises(RuntimeError, match="Cowardly refusing to serialize non-leaf tensor"):
        ForkingPickler.dumps(x * 2)
    x.register_hook(lambda g: g)
    with pytest.warns(UserWarning, match="backward hook .* will not be serialized"):
        ForkingPickler.dumps(x)


def test_travelling_within_the_process_finds_the_same_memory(strategy):
    x = torch.arange(6.0)
    for t in (x, x[2:], x.reshape(2, 3).t(), torch.nn.Parameter(x)):
        back = pickle.loads(ForkingPickler.dumps(t))
        assert type(back) is type(t)
        assert (back.shape, back.stride(), back.storage_offset(), back.requires_grad) == (
            t.shape, t.stride(), t.storage_offset(), t.requires_grad,
        )  # fmt: skip
        assert back.data_ptr() == t.data_ptr()
    storage = x.untyped_storage()
    assert pickle.loads(ForkingPickler.dumps(storage)) == storage


# ---- between processes ------------------------------------------------------------------------


def fill(queue, back):
    while (got := queue.get()) is not None:
        name, t = got
        facts = (tuple(t.shape), t.stride(), t.storage_offset(), str(t.dtype), t.requires_grad)
        total = t.detach().double().sum().item()
        with torch.no_grad():
            t.fill_(7)
        back.put((name, facts, total))
    back.put(None)


@pytest.mark.parametrize("method", METHODS)
def test_a_child_writes_into_the_parents_tensors(strategy, method):
    start, open_before = segments(), descriptors()
    context = mp.get_context(method)
    queue, back = context.SimpleQueue(), context.Queue()
    base = torch.arange(24.0)
    sent = {
        "plain": torch.ones(5),
        "view": base[6:18].view(3, 4).t(),
        "parameter": torch.nn.Parameter(torch.ones(2, 2)),
        "leaf": torch.ones(3, dtype=torch.float64, requires_grad=True),
        "integers": torch.arange(4),
        "bfloat16": torch.ones(3, dtype=torch.bfloat16),
    }
    process = context.Process(target=fill, args=(queue, back))
    process.start()
    for name, t in sent.items():
        total = t.detach().double().sum().item()
        queue.put((name, t))
        facts = (tuple(t.shape), t.stride(), t.storage_offset(), str(t.dtype), t.requires_grad)
        assert back.get(timeout=60) == (name, facts, total)
        assert (t == 7).all(), name
    assert base.tolist() == [*range(6), *[7] * 12, *range(18, 24)]
    queue.put(None)
    assert back.get(timeout=60) is None
    process.join(60)
    assert process.exitcode == 0
    process.close()
    queue.close(), back.close(), back.join_thread()
    del sent, base, t, queue, back, process
    gc.collect()
    assert not left(start)
    assert descriptors() <= open_before + 4  # a fork server and the resource sharer stay


def produce(queue, done):
    queue.put(torch.arange(1000.0))
    queue.put([torch.ones(3), {"k": torch.zeros(2, 2)}])
    queue.put(torch.empty(0, 3))
    queue.put(torch.ones(2).to_sparse())
    queue.put(torch.tensor([1 + 2j]).conj())
    done.wait()


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_a_parent_receives(strategy, method):
    start = segments()
    context = mp.get_context(method)
    queue, done = context.Queue(), context.Event()
    process = context.Process(target=produce, args=(queue, done))
    process.start()
    got = [queue.get(timeout=60) for _ in range(5)]
    done.set()
    process.join(60)
    assert process.exitcode == 0
    assert torch.equal(got[0], torch.arange(1000.0))
    assert got[0].is_shared()
    assert got[1][0].tolist() == [1, 1, 1]
    assert got[1][1]["k"].shape == (2, 2)
    assert got[2].shape == (0, 3)
    assert got[3].to_dense().tolist() == [1, 1]
    assert got[4].item() == 1 - 2j
    del got
    gc.collect()
    assert not left(start)


def passes_on(first, second):
    second.put(first.get())
    second.close()
    second.join_thread()
    time.sleep(0.5)


def test_through_a_third_process(strategy):
    context = mp.get_context("fork")
    first, second = context.SimpleQueue(), context.Queue()
    process = context.Process(target=passes_on, args=(first, second))
    process.start()
    x = torch.zeros(4)
    first.put(x)
    back = second.get(timeout=60)
    back += 3
    assert x.tolist() == [3] * 4
    process.join(60)


def square(t):
    return t * t


def test_pool(strategy):
    with mp.get_context("fork").Pool(2) as pool:
        results = pool.map(square, [torch.full((3,), float(i)) for i in range(6)])
    assert [r[0].item() for r in results] == [0, 1, 4, 9, 16, 25]


def backward_in_child(queue):
    x = torch.ones(3, requires_grad=True)
    (x * 2).sum().backward()
    queue.put(x.grad.tolist())


def test_backward_in_a_forked_child():
    backward_in_child(mp.SimpleQueue())
    context = mp.get_context("fork")
    queue = context.SimpleQueue()
    process = context.Process(target=backward_in_child, args=(queue,))
    process.start()
    assert queue.get() == [2, 2, 2]
    process.join()


def report_threads(queue):
    torch.set_num_threads(4)
    queue.put((threads.limit, Threads(8)()))


def test_forked_children_run_kernels_on_one_thread():
    context = mp.get_context("fork")
    queue = context.SimpleQueue()
    process = context.Process(target=report_threads, args=(queue,))
    process.start()
    assert queue.get() == (1, 1)
    process.join()


# ---- crashes ----------------------------------------------------------------------------------

CRASH = """
    import os, signal, sys, time
    import torchlab as torch
    import torchlab.multiprocessing as mp

    def consumer(queue, ready):
        kept = [queue.get() for _ in range(3)]
        ready.put(os.getpid())
        time.sleep(60)

    def producer(queue, ready):
        kept = [torch.ones(1000) for _ in range(3)]
        for t in kept:
            queue.put(t)
        ready.put(os.getpid())
        time.sleep(60)

    if __name__ == "__main__":
        mp.set_sharing_strategy(sys.argv[2])
        context = mp.get_context("fork")
        queue, ready = context.Queue(), context.SimpleQueue()
        processes = [
            context.Process(target=f, args=(queue, ready), daemon=True)
            for f in (consumer, producer)
        ]
        for p in processes:
            p.start()
        pids = {ready.get(), ready.get()}
        victim = {"consumer": processes[0].pid, "producer": processes[1].pid}
        if sys.argv[1] == "all":
            for pid in pids:
                os.kill(pid, signal.SIGKILL)
            os.kill(os.getpid(), signal.SIGKILL)
        os.kill(victim[sys.argv[1]], signal.SIGKILL)
        for p in processes:
            p.terminate()
            p.join()
"""


@pytest.mark.parametrize("victim", ["consumer", "producer", "all"])
def test_nothing_stays_after_a_crash(tmp_path, strategy, victim):
    script = tmp_path / "crash.py"
    script.write_text(textwrap.dedent(CRASH))
    before = segments()
    code = subprocess.run(
        [sys.executable, script, victim, strategy],
        timeout=120, env=dict(os.environ), check=False, stderr=subprocess.DEVNULL,
    ).returncode  # fmt: skip
    assert code == (-signal.SIGKILL if victim == "all" else 0)
    assert not left(before)  # the resource tracker needs a moment


# ---- hogwild ----------------------------------------------------------------------------------


def train(rank, model, x, y, steps):
    torch.manual_seed(rank)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for _ in range(steps):
        rows = torch.randint(0, len(x), (16,))
        optimizer.zero_grad()
        torch.nn.functional.mse_loss(model(x[rows]), y[rows]).backward()
        optimizer.step()


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_two_processes_train_one_model(method):
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1))
    x = torch.randn(256, 4)
    y = x.sum(1, keepdim=True).tanh()
    model.share_memory()
    before = torch.nn.functional.mse_loss(model(x), y).item()
    context = mp.get_context(method)
    processes = [context.Process(target=train, args=(r, model, x, y, 150)) for r in range(2)]
    for p in processes:
        p.start()
    for p in processes:
        p.join(120)
    assert [p.exitcode for p in processes] == [0, 0]
    assert torch.nn.functional.mse_loss(model(x), y).item() < before / 3


def test_numpy_arrays_over_shared_memory():
    x = torch.zeros(3).share_memory_()
    x.numpy()[1] = 5
    assert x.tolist() == [0, 5, 0]
    y = torch.from_numpy(np.ones(3)).share_memory_()
    assert y.is_shared()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert y.sum() == 3


def test_threads_share_a_storage_once():
    x = torch.arange(1000.0)
    views = [x[i:] for i in range(8)]
    threads = [threading.Thread(target=v.share_memory_) for v in views]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert all(v.is_shared() for v in views)
    views[0].fill_(3)
    assert all((v == 3).all() for v in views)

"""Memory of batches that is used again: only when nobody can see what was in it."""

from __future__ import annotations

import gc
import os
import signal
import threading
import time
from multiprocessing import resource_tracker

import numpy as np
import pytest

import torchlab as torch
from tests.utils.data.leaks import descriptors, nothing_left
from torchlab import multiprocessing as mp
from torchlab._core.memory import shared
from torchlab.utils import data as D
from torchlab.utils.data import channel, collate
from torchlab.utils.data.segments import LEAST, MOST, Pool

METHODS = ("fork", "spawn", "forkserver")
N = LEAST // 4  # elements, as few as make it worth while
AHEAD = 2


@pytest.fixture(params=["file_descriptor", "file_system"])
def strategy(request):
    before = mp.get_sharing_strategy()
    mp.set_sharing_strategy(request.param)
    yield request.param
    mp.set_sharing_strategy(before)


class Ends:
    """A worker and a loader in one process, with two mappings of each segment."""

    def __init__(self):
        self.worker, self.loader = channel.pair()
        self.pool = Pool(AHEAD)

    def send(self, value):
        shared.CACHE.clear()  # two processes have one each
        self.worker.post(channel.Message(value, self.pool))
        got = self.loader.take()
        shared.CACHE.clear()
        return got

    def batch(self, value, n=N):
        """What the loader has of a batch that the worker fills with `value`."""
        self.pool.begin(self.loader.lent.free())
        collate.allocate = self.pool.allocate
        try:
            made = D.default_collate([torch.full((n // 2,), float(value))] * 2)
        finally:
            collate.allocate = None
        return self.send(made)

    def close(self):
        self.pool.clear()
        self.loader.lent.clear()
        self.worker.close()
        self.loader.close()


@pytest.fixture
def ends():
    resource_tracker.ensure_running()  # what stays
    queue = mp.SimpleQueue()
    queue.put(torch.ones(1))
    queue.get()
    queue.close()
    gc.collect()
    before = descriptors()
    ends = Ends()
    yield ends
    ends.close()
    gc.collect()
    assert descriptors().items() <= before.items()  # what was there before may have been closed


def test_memory_is_used_again(ends, strategy):
    addresses = set()
    for i in range(12):
        x = ends.batch(i)
        addresses.add(x.data_ptr())
        assert x.is_shared() and x.eq(i).all() and x.untyped_storage().nbytes() == 4 * N
        x.add_(1)
        assert x.eq(i + 1).all()
        del x
    assert len(addresses) == 1


def test_with_a_batch_held_there_are_two(ends, strategy):
    addresses = set()
    before = None
    for i in range(12):
        x = ends.batch(i)
        addresses.add(x.data_ptr())
        assert before is None or before.eq(i - 1).all()
        before = x
    assert len(addresses) == 2


def detached(x):
    return torch.nn.Parameter(x).detach()[1:]


def capsule(x):
    return np.from_dlpack(x)


@pytest.mark.parametrize(
    "see",
    [
        lambda x: x[0, 3:5],
        lambda x: x.t(),
        lambda x: x.data,
        lambda x: x.view(torch.int32),
        lambda x: x.numpy(),
        lambda x: x.numpy()[1, ::2].T,
        lambda x: memoryview(x.numpy()),
        lambda x: x.untyped_storage(),
        lambda x: torch.nn.Parameter(x[0]),
        lambda x: (x.requires_grad_() * x).grad_fn,
        lambda x: torch.from_numpy(x.numpy().view(np.uint8)),
        lambda x: [x[1]].__iter__(),
        detached,
        capsule,
    ],
)
def test_whatever_sees_the_memory_keeps_it(ends, see):
    x = ends.batch(7)
    where, seen = x.data_ptr(), see(x)
    del x
    gc.collect()
    assert ends.loader.lent.free() == []
    assert ends.batch(8).data_ptr() != where
    assert ends.loader.lent.free() == [1]
    del seen
    gc.collect()
    assert ends.loader.lent.free() == [0]


def test_what_the_worker_keeps_is_not_written(ends):
    ends.pool.begin([])
    segment, array = ends.pool.allocate(4 * N)
    mine = array.view(np.float32)
    mine[:] = 3
    s = shared.Storage(array)
    shared.adopt(s, segment)
    del array
    x = ends.send(s)
    del x
    for i in range(AHEAD + 4):
        assert ends.batch(i).eq(i).all()
        assert (mine == 3).all()


def test_one_batch_sent_again_and_again(ends, strategy):
    """As by a dataset that keeps what it has made."""
    ends.pool.begin([])
    segment, array = ends.pool.allocate(4 * N)
    s = shared.Storage(array)
    shared.adopt(s, segment)
    del array
    got = []
    for i in range(AHEAD + 4):
        s.bytes.view(np.float32)[:] = i
        got.append(torch.tensor([], dtype=torch.float32).set_(ends.send(s)))
        assert all(x.eq(i).all() for x in got)  # one memory, as ever
        ends.pool.begin(ends.loader.lent.free())
    for _ in range(4):
        assert ends.batch(-1).eq(-1).all()
    assert all(x.eq(AHEAD + 3).all() for x in got)


def test_what_is_sent_on_is_not_written(ends, strategy):
    queue = mp.SimpleQueue()
    x = ends.batch(5)
    where = x.data_ptr()
    queue.put(x[1])
    del x
    gc.collect()
    assert ends.loader.lent.free() == []
    for i in range(AHEAD + 4):
        assert ends.batch(i).data_ptr() != where
    assert queue.get().eq(5).all()  # after all this time
    queue.close()


def test_what_a_forked_child_sees_is_not_written(ends, strategy):
    x = ends.batch(5)
    go, done = mp.Pipe(), mp.Pipe()
    pid = os.fork()
    if not pid:
        go[0].recv()
        done[0].send(bool(x.eq(5).all()))
        os._exit(0)
    where = x.data_ptr()
    del x
    for i in range(AHEAD + 4):
        assert ends.batch(i).data_ptr() != where
    go[1].send(None)
    assert done[1].recv()
    os.waitpid(pid, 0)
    for end in (*go, *done):
        end.close()


def test_a_forked_child_of_a_worker_has_memory_of_its_own(ends):
    ends.batch(1)
    ends.pool.begin(ends.loader.lent.free())
    pid = os.fork()
    if not pid:
        _, array = ends.pool.allocate(4 * N)
        array[:] = 9
        os._exit(0)
    assert os.waitpid(pid, 0)[1] == 0
    _, array = ends.pool.allocate(4 * N)
    assert (array.view(np.float32) == 1).all()


def test_what_is_not_used_is_forgotten(ends, strategy):
    sizes = [N, N + 1000, N + 2000, N + 3000]
    for i in range(8):
        assert ends.batch(i, sizes[i % 2]).eq(i).all()
    first = {kept.segment.nbytes for kept in ends.pool._kept.values()}
    assert first == {4 * N, 4 * N + 4000}
    for i in range(AHEAD + 4):
        ends.batch(i, sizes[2 + i % 2])
    for kept in (ends.pool._kept, ends.loader.lent._mapped):
        assert len(kept) == 2
    assert {s.nbytes for s, _ in ends.loader.lent._mapped.values()} == {
        4 * N + 8000,
        4 * N + 12000,
    }


def test_a_user_who_keeps_all_does_not_make_the_pool_grow(ends):
    kept = [ends.batch(i) for i in range(20)]
    assert len(ends.pool._kept) <= AHEAD + 3 >= len(ends.loader.lent._mapped)
    assert all(x.eq(i).all() for i, x in enumerate(kept))
    assert len({x.data_ptr() for x in kept}) == 20
    del kept
    later = {ends.batch(i).data_ptr() for i in range(8)}
    assert len(later) == 1  # again


def test_small_and_many(ends):
    ends.pool.begin([])
    made = [ends.pool.allocate(LEAST - 1) for _ in range(3)]
    assert not ends.pool._kept
    made += [ends.pool.allocate(LEAST) for _ in range(MOST + 3)]
    assert len(ends.pool._kept) == MOST and len({id(segment) for segment, _ in made}) == MOST + 6


class Refuses:
    def __reduce__(self):
        raise ValueError("it stays here")


def test_a_message_that_cannot_be_made(ends):
    where = ends.batch(1).data_ptr()
    ends.pool.begin(ends.loader.lent.free())
    for _ in range(2):  # of memory that is known to the loader, and of new memory
        _, array = ends.pool.allocate(4 * N)
        s = shared.Storage(array)
        shared.adopt(s, next(reversed(ends.pool._kept)))
        with pytest.raises(ValueError, match="stays here"):
            channel.Message([s, Refuses()], ends.pool)
        del s, array
    for i in range(AHEAD + 4):
        x = ends.batch(i)
        assert x.eq(i).all() and x.data_ptr() != where


# ---- with loaders


class Rows(D.Dataset):
    def __init__(self, n=40):
        self.n = n

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        return torch.full((N,), float(i)), i


def mapped(pid="self"):
    """How many segments a process has mapped."""
    with open(f"/proc/{pid}/maps") as file:
        return sum("/memfd:torchlab" in line or "/dev/shm/torchlab" in line for line in file)


@pytest.mark.parametrize("method", METHODS)
def test_all_batches_kept(method, strategy):
    with nothing_left():
        got = list(D.DataLoader(Rows(), 2, num_workers=2, multiprocessing_context=method))
        for i, (x, number) in enumerate(got):
            assert number.tolist() == [2 * i, 2 * i + 1]
            assert x.eq(number[:, None]).all()
        del got, x, number


def addresses(loader):
    """Where batches lay."""
    found = set()
    for i, (x, number) in enumerate(loader):
        found.add(x.data_ptr())
        assert number.tolist() == [i] and x.eq(i).all()
    return found


@pytest.mark.filterwarnings("ignore:This DataLoader will create")
@pytest.mark.parametrize("workers", [1, 3])
@pytest.mark.parametrize("ahead", [1, 2, 4])
def test_few_segments_for_many_batches(workers, ahead, strategy):
    with nothing_left():
        loader = D.DataLoader(Rows(60), 1, num_workers=workers, prefetch_factor=ahead)
        assert len(addresses(loader)) <= workers * (ahead + 2)


def collated_by_hand(samples):
    """A user's own: nothing of it is in shared memory yet."""
    return {"x": torch.stack([x for x, _ in samples]).t(), "all": [i for _, i in samples]}


def test_with_a_users_own_collate():
    addresses = set()
    for batch in D.DataLoader(Rows(60), 2, num_workers=1, collate_fn=collated_by_hand):
        addresses.add(batch["x"].data_ptr())
        assert batch["x"].eq(torch.tensor(batch["all"])).all() and batch["x"].shape == (N, 2)
    assert len(addresses) <= 4


def test_rows_of_a_tensor_dataset():
    x = torch.arange(40.0)[:, None].expand(40, N).contiguous()
    addresses = set()
    order = [[3, -1], [0, 39], [-40, 7]] * 6
    for i, (batch,) in enumerate(
        D.DataLoader(D.TensorDataset(x), batch_sampler=order, num_workers=1)
    ):
        addresses.add(batch.data_ptr())
        assert batch[:, 5].tolist() == [float(k % 40) for k in order[i]]
    assert len(addresses) <= 4
    with pytest.raises(IndexError):
        list(D.DataLoader(D.TensorDataset(x), batch_sampler=[[0, 40]], num_workers=1))


def gone(pids, seconds=5.0):
    end = time.monotonic() + seconds
    while (n := sum(mapped(pid) for pid in pids)) and time.monotonic() < end:
        time.sleep(0.02)
    return n == 0


@pytest.mark.parametrize("method", METHODS)
def test_between_two_passes_nothing_is_held(method, strategy):
    gc.collect()
    before = mapped()
    with nothing_left():
        loader = D.DataLoader(
            Rows(10), 2, num_workers=2, persistent_workers=True, multiprocessing_context=method
        )
        last = None
        for _ in range(3):
            for x, number in loader:
                assert x.eq(number[:, None]).all()
                assert last is None or last.eq(torch.tensor([8, 9])[:, None]).all()
            assert gone([w.process.pid for w in loader._iterator._workers])
            last = x
            del x, number
            assert mapped() == before + 1
        next(iter(loader))  # given up
        for x, number in loader:
            assert x.eq(number[:, None]).all()
        del loader, last, x, number


@pytest.mark.parametrize("method", METHODS)
def test_a_killed_worker_leaves_no_segment(method, strategy):
    with nothing_left():
        loader = D.DataLoader(Rows(400), 2, num_workers=2, multiprocessing_context=method)
        batches = iter(loader)
        kept = [next(batches) for _ in range(6)]
        os.kill(batches._workers[1].process.pid, signal.SIGKILL)
        with pytest.raises(RuntimeError, match="killed by signal"):
            kept += list(batches)
        for x, number in kept:
            assert x.eq(number[:, None]).all()
        del batches, kept, x, number


def test_loaders_in_several_threads():
    wrong = []

    def read():
        for x, number in D.DataLoader(Rows(60), 2, num_workers=1):
            if not x.eq(number[:, None]).all():
                wrong.append(number)

    with nothing_left():
        threads = [threading.Thread(target=read) for _ in range(4)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
    assert wrong == []


class Passing(Rows):
    """Gives a tensor to somebody else, too."""

    def __init__(self, n, queue):
        super().__init__(n)
        self.queue = queue

    def __getitem__(self, i):
        if i == 0:
            self.queue.put(torch.arange(1000.0))
        return super().__getitem__(i)


def test_what_a_worker_sent_to_others_outlives_the_loader():
    """By name: a descriptor would need its sender."""
    before = mp.get_sharing_strategy()
    mp.set_sharing_strategy("file_system")
    queue = mp.get_context("fork").SimpleQueue()
    loader = D.DataLoader(Passing(40, queue), 2, num_workers=1, multiprocessing_context="fork")
    try:
        assert len(list(loader)) == 20
        assert queue.get().sum().item() == 499500
    finally:
        mp.set_sharing_strategy(before)


def test_unread_batches_of_a_killed_worker_and_of_the_others_are_removed(strategy):
    with nothing_left():
        for _ in range(5):
            loader = D.DataLoader(Rows(400), 2, num_workers=2, multiprocessing_context="fork")
            batches = iter(loader)
            kept = [next(batches) for _ in range(6)]
            os.kill(batches._workers[1].process.pid, signal.SIGKILL)
            with pytest.raises(RuntimeError, match="killed by signal"):
                kept += list(batches)
            del batches, kept

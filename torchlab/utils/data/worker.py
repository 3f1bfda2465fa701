"""What a loader's worker process does: gets batches as it is asked for them.

A worker has a channel of its own for requests and batches: no lock is shared with other workers, so
one that is killed stops nobody else. It ends when it is told to, and
when the process that started it is gone.

Source: https://docs.pytorch.org/docs/2.13/data.html#multi-process-data-loading
"""

from __future__ import annotations

import contextlib
import multiprocessing
import pickle
import queue
import random
import signal
import sys
import threading
import time
import traceback
from collections import deque
from dataclasses import dataclass
from multiprocessing import connection, reduction
from typing import Any

import numpy as np

from torchlab._core import threads
from torchlab._core.generator import Generator, default_generator
from torchlab.utils.data import collate, graph_settings
from torchlab.utils.data.channel import Channel, Message
from torchlab.utils.data.datapipes.datapipe import IterDataPipe, MapDataPipe
from torchlab.utils.data.fetch import FromMap, FromStream, phases
from torchlab.utils.data.segments import Pool
from torchlab.utils.data.state import capture, dataset_state, restore, taken_up
from torchlab.utils.data.watch import Told, stretch

STATE = "state"  # tell where you were after so many batches
LATEST = -1
FORGET = "forget"  # give back the memory of past batches, nothing follows soon
RESUME = "resume"  # begin again: a new pass of a loader with persistent workers


class Ended:
    """The answer of a worker whose stream is exhausted."""


@dataclass(frozen=True, slots=True)
class WorkerInfo:
    """What a worker knows of itself: `id` from 0 to `num_workers` - 1, its `seed`, and its own copy
    of the `dataset`."""

    id: int
    num_workers: int
    seed: int
    dataset: Any
    rng: Any = None
    worker_method: str = "multiprocessing"


_info: WorkerInfo | None = None


def get_worker_info() -> WorkerInfo | None:
    """In a loader's worker its WorkerInfo, elsewhere None."""
    return _info


def numpy_seed(base_seed: int, worker_id: int) -> Any:
    """The seed of NumPy's random numbers in a worker: four 32-bit words."""
    words = (worker_id, base_seed & 0xFFFFFFFF, base_seed >> 32, 0)
    return np.random.SeedSequence(words).generate_state(4)


class Failure:
    """An exception on its way to another process: its class, and its traceback as text."""

    def __init__(self, where: str) -> None:
        kind, error, trace = sys.exc_info()
        assert kind is not None
        self.kind = kind
        self.where = where
        self.text = "".join(traceback.format_exception(kind, error, trace))

    def portable(self) -> Failure:
        """The same with a class that can be sent: the first of its bases that can."""
        for kind in self.kind.__mro__:
            try:
                reduction.ForkingPickler.dumps(kind)
            except (AttributeError, pickle.PicklingError):
                continue
            self.named, self.kind = self.kind.__name__, kind
            return self
        raise AssertionError("object can always be sent")

    named = ""

    def brief(self) -> str:
        """The exception in one line."""
        return self.text.rstrip().rsplit("\n", 1)[-1]

    def reraise(self) -> None:
        """Raise an exception of that class (RuntimeError if it cannot be made of a text)."""
        name = self.named or self.kind.__name__
        text = f"Caught {name} {self.where}.\nOriginal {self.text}"
        if self.kind is KeyError:
            text = _Lines(text)  # KeyError shows the repr of its argument
        try:
            error = self.kind(text)
        except Exception:
            raise RuntimeError(text) from None
        raise error


class _Lines(str):
    """A text whose repr is itself."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


@dataclass
class Work:
    """What a worker is started with."""

    number: int
    workers: int
    base_seed: int
    dataset: Any
    streams: bool
    batched: bool
    collate_fn: Any
    drop_last: bool
    init_fn: Any
    shared_seed: int | None
    ahead: int = 0  # how many batches are got at most before the first of them is given out
    saved: Any = None  # where this worker was in the pass that is taken up
    started: float = 0.0  # when its process was asked for

    def seed(self) -> None:
        """Random numbers of its own for every worker, as PyTorch seeds them."""
        own = self.base_seed + self.number
        random.seed(own)
        default_generator.manual_seed(own)
        np.random.seed(numpy_seed(self.base_seed, self.number))

    def info(self) -> WorkerInfo:
        """What `get_worker_info` tells in the worker."""
        return WorkerInfo(
            id=self.number,
            num_workers=self.workers,
            seed=self.base_seed + self.number,
            dataset=self.dataset,
        )

    def fetcher(self) -> Any:
        """A new pass over the dataset."""
        if self.shared_seed is not None:
            rng = Generator().manual_seed(self.shared_seed)
            graph_settings.apply_random_seed(self.dataset, rng)
        if self.streams:
            return FromStream(self.dataset, self.batched, self.collate_fn, self.drop_last)
        return FromMap(self.dataset, self.batched, self.collate_fn)


class _Pass:
    """A worker's pass, and where it was after each of the batches that it has got ahead."""

    def __init__(self, task: Work) -> None:
        self.task = task
        saved, task.saved = task.saved, None
        if saved is not None and saved["start"] is not None:
            restore(saved["start"], [])
        self.start = capture([])
        self.done = 0
        self.history: deque[tuple[int, Any, bytes, bool]] = deque(maxlen=task.ahead + 1)
        if saved is None:
            self.fetch = task.fetcher()
        else:
            self.fetch = taken_up(task.fetcher, task.dataset, saved["dataset"], saved["ended"])
            for indices in saved["past"]:
                with contextlib.suppress(Exception):  # the loader has told of it
                    self.fetch(indices)
            self.done = saved["given"]
            if saved["now"] is not None:
                restore(saved["now"], [])
        self._remember()

    def passed(self) -> None:
        """A batch was got, or failed: remember where the pass is now. (When the batch is on its
        way, whose receiver may be waiting.)"""
        self.done += 1
        self._remember()

    def _remember(self) -> None:
        # Pickled, since a dataset may go on with the object that it has given.
        told = pickle.dumps(dataset_state(self.fetch))
        ended = getattr(self.fetch, "ended", False)
        self.history.append((self.done, capture([]), told, ended))

    def __call__(self, indices: Any, told: list[Told] | None) -> Any:
        return self.fetch(indices) if told is None else phases(self.fetch, indices, told)

    def state(self, given: int) -> dict[str, Any]:
        """Where the pass was after `given` batches; LATEST: where it is."""
        for done, now, told, ended in reversed(self.history):
            if given in (done, LATEST):
                return {
                    "start": self.start,
                    "now": now,
                    "given": given,
                    "dataset": pickle.loads(told),
                    "ended": ended,
                }
        raise AssertionError(f"no account of batch {given}")


class _Sender:
    """Writes batches: at once if the channel takes them, as it does where tensors lie in shared
    memory; else on a thread, so that the next batch can be got while nobody reads. (A thread that
    is woken waits for the one that works, five milliseconds if that is busy.)"""

    def __init__(self, channel: Channel, pool: Pool) -> None:
        self.channel = channel
        self.pool = pool
        self.waiting: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._writing = threading.Lock()
        threading.Thread(target=self._run, daemon=True).start()

    def send(self, number: Any, result: Any, where: str, told: list[Told] | None = None) -> None:
        """Pickle now (that may fail, and the loader has to hear of it), write later. Where somebody
        looks, a second message tells of the first."""
        if isinstance(result, Failure):
            result = result.portable()
        more = () if told is None else (True,)
        try:
            data = Message((number, result, *more), self.pool)
        except Exception:
            data = Message((number, Failure(where).portable(), *more))
        if told is not None:
            told.append(stretch("pack", told[-1][2], time.perf_counter()))
        if told is None and self.waiting.empty() and self._writing.acquire(blocking=False):
            try:
                self.channel.post(data)
            finally:
                self._writing.release()
            if self.channel.behind:
                self.waiting.put((None, None))  # the thread writes the rest
            return
        self.waiting.put((data, told))

    def _run(self) -> None:
        while True:
            data, told = self.waiting.get()
            try:
                with self._writing:
                    self.channel.flush(0)
                    if data is not None:
                        self.channel.send(data)
                    if told is not None:
                        told.append(stretch("send", told[-1][2], time.perf_counter()))
                        self.channel.send(Message(told))
            except OSError:
                return  # nobody reads any more
            del data, told


def work(task: Work, channel: Channel, inherited: list[Channel]) -> None:
    """A worker's life. `inherited`: ends of channels that a forked worker has of other
    processes."""
    for end in inherited:
        end.close()
    where = f"in DataLoader worker process {task.number}"
    pool = Pool(task.ahead // task.workers)
    try:
        if hasattr(signal, "pthread_sigmask"):  # blocked by whoever started this process
            signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
        _serve(task, channel, pool, where)
    except (EOFError, OSError, KeyboardInterrupt):
        pass  # the loader is gone, or about to end
    finally:
        pool.clear()  # processes of `multiprocessing` end without Python's own clearing up


def _serve(task: Work, channel: Channel, pool: Pool, where: str) -> None:
    """Begin as `task` says and answer requests, until there are no more."""
    global _info
    sender = _Sender(channel, pool)
    fetch: Any = None
    failure = None
    try:
        threads.set_num_threads(1)
        if sys.platform != "win32":
            collate.allocate = pool.allocate
        task.seed()
        _info = task.info()
        if isinstance(task.dataset, (IterDataPipe, MapDataPipe)):
            graph_settings.apply_sharding(task.dataset, task.workers, task.number)
        if task.init_fn is not None:
            task.init_fn(task.number)
        fetch = _Pass(task)
    except Exception:
        failure = Failure(where)
    parent: Any = multiprocessing.parent_process()
    since = time.perf_counter()
    first = [stretch("start", task.started, since)]
    while channel.socket in connection.wait([channel.socket, parent.sentinel]):
        message = channel.receive()
        if message is None:
            return
        if message[0] == RESUME:
            pool.clear()
            task.shared_seed = message[1]
            sender.send(RESUME, None, where)
            failure = None
            try:
                fetch = _Pass(task)
            except Exception:
                failure = Failure(where)
            continue
        if message[0] == STATE:
            sender.send(STATE, failure or fetch.state(message[1]), where)
            continue
        if message[0] == FORGET:
            pool.clear()
            continue
        number, indices, watched, free = message
        pool.begin(free)
        told = [*first, stretch("idle", since, time.perf_counter())] if watched else None
        first = []
        result: Any = failure
        if failure is None:
            try:
                result = fetch(indices, told)
            except StopIteration:
                result = Ended() if task.streams else Failure(where)
            except Exception:
                result = Failure(where)
        sender.send(number, result, where, told)
        del result
        if failure is None:
            fetch.passed()
        since = time.perf_counter()


__all__ = [
    "FORGET",
    "LATEST",
    "RESUME",
    "STATE",
    "Ended",
    "Failure",
    "Work",
    "WorkerInfo",
    "get_worker_info",
    "work",
]

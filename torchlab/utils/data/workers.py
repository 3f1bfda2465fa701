"""A pass over a loader's batches that worker processes get.

Requests go to the workers in turn, `prefetch_factor` ahead for each; answers come as they are ready
and wait until it is their turn (unless `in_order` is False).

Source: https://docs.pytorch.org/docs/2.13/data.html#multi-process-data-loading
"""

from __future__ import annotations

import contextlib
import itertools
import os
import reprlib
import signal
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable, Iterator
from multiprocessing import resource_tracker
from typing import Any

from torchlab import multiprocessing as mp
from torchlab._core import blocks, events
from torchlab._core.lazy import lazy
from torchlab.utils.data import channel
from torchlab.utils.data.inbox import Arrived, Gone, Inbox, inbox
from torchlab.utils.data.passes import _BaseDataLoaderIter, known
from torchlab.utils.data.sampler import drawn_seed
from torchlab.utils.data.state import Order, pack, unpack
from torchlab.utils.data.watch import Watch, stretch
from torchlab.utils.data.worker import FORGET, LATEST, RESUME, STATE, Ended, Failure, Work, work

_PATIENCE = 5.0  # seconds that workers have to end by themselves
_REASONS = {
    signal.SIGKILL: "A worker that needs too much memory ends so, too.",
    signal.SIGBUS: "It is possible that dataloader's workers are out of shared memory. Please try"
    " to raise your shared memory limit.",
}


shared = lazy("torchlab._core.memory.shared")


@contextlib.contextmanager
def _interrupts_wait(method: str) -> Iterator[None]:
    """A process that is started meanwhile hears of Ctrl-C only when its work begins: one that still
    imports the program would print a traceback of its own.

    A fork server keeps its signals as they are, since it starts other processes, too."""
    if method == "forkserver" or not hasattr(signal, "pthread_sigmask"):
        yield
        return
    if method == "spawn":
        resource_tracker.ensure_running()  # its start would let the signal through again
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


class _Worker:
    """One process and the loader's end of its channel."""

    def __init__(self, context: Any, task: Work, others: list[_Worker]) -> None:
        self.channel, theirs = channel.pair()
        inherited: list[Any] = []
        if context.get_start_method() == "fork":  # the child has a copy of every open end
            inherited = [self.channel, *(w.channel for w in others)]
        try:
            self.process = context.Process(target=work, args=(task, theirs, inherited), daemon=True)
            with _interrupts_wait(context.get_start_method()):
                self.process.start()
        except BaseException:
            self.channel.close()
            raise
        finally:
            theirs.close()
        self.number = task.number
        self.lock = threading.RLock()  # of the channel: Note [The pinning thread] in inbox
        self.wake: Callable[[], None] | None = None  # whoever polls, if that is another thread
        self.active = True  # it has more to give
        self.asked = 0  # requests without an answer

    def ask(self, message: Any) -> None:
        """Send a request. That a worker is gone is found when its answer is waited for."""
        pickled = channel.Message(message)
        with contextlib.suppress(OSError), self.lock:
            self.channel.post(pickled)
        if self.wake is not None and self.channel.behind:
            self.wake()

    def forget(self) -> None:
        """Let go of the memory of past batches; the worker does so, too."""
        with self.lock:
            self.channel.lent.clear()

    def death(self) -> str:
        """What is said of a worker that is gone."""
        self.process.join(_PATIENCE)
        code, pid = self.process.exitcode, self.process.pid
        text = f"DataLoader worker (pid(s) {pid}) exited unexpectedly"
        if code is not None and code < 0:
            return (
                f"{text}: worker {self.number} (pid {pid}) is killed by signal:"
                f" {signal.strsignal(-code)}. {_REASONS.get(-code, '')}".rstrip()
            )
        if code is None:
            what = "has closed its channel, or the memory of a batch is gone"
            return f"{text}: worker {self.number} {what}"
        return (
            f"{text}: worker {self.number} ended with exit code {code}. Run with num_workers=0 to"
            " see what it does."
        )


def _end(workers: list[_Worker], inbox: Inbox, owner: int, patience: float = _PATIENCE) -> None:
    """End the processes: by request, after `patience` seconds by force."""
    if os.getpid() != owner:
        return  # a forked child has a copy of the loader, but not its workers
    inbox.close()
    for w in workers:
        w.ask(None)
        w.channel.close()
    _join(workers, patience)
    for w in workers:
        if w.process.is_alive():
            w.process.terminate()
    _join(workers, 1.0)
    for w in workers:
        if w.process.is_alive():  # a stopped process hears of nothing else
            w.process.kill()
            w.process.join()
        pid = w.process.pid
        w.process.close()
        w.forget()  # not before: who lets go last removes a segment that has a name
        if pid is not None:
            shared.remove_of(pid)
    workers.clear()


def _join(workers: list[_Worker], seconds: float) -> None:
    until = time.monotonic() + seconds
    for w in workers:
        w.process.join(max(0.0, until - time.monotonic()))


def _stopped(pid: int) -> bool:
    """Whether a process has been halted. Only Linux tells."""
    with contextlib.suppress(OSError), open(f"/proc/{pid}/stat") as file:
        return file.read().rpartition(")")[2].split()[0] in "Tt"
    return False


class WorkersIterator(_BaseDataLoaderIter):
    """One pass over the batches; with persistent workers the same object for every pass."""

    def __init__(self, loader: Any, saved: Any = None) -> None:
        began = time.perf_counter()
        self._loader = loader = known(loader)
        self._told = loader._length_told
        context = loader.multiprocessing_context
        if context is None:
            context = mp.get_context()  # type: ignore[attr-defined]
        if saved is None:
            shared_seed = loader._shared_seed()
            base_seed = drawn_seed(loader.generator)
            loader._shared_seed()  # PyTorch draws another one here and leaves it: the stream is its
        elif "order" not in saved:
            shared_seed = loader._shared_seed()  # as when workers that stay begin anew
            base_seed = saved["base_seed"]
        else:
            shared_seed, base_seed = saved["shared_seed"], saved["base_seed"]
        kept = None
        if saved is not None and "order" not in saved:  # the workers go on with a new pass
            saved, kept = None, saved
        order = Order(loader, saved and saved["order"])
        parts = _parts(loader, saved, order)
        if kept is not None:
            parts = [_part(told, [], 0) for told in kept["workers"]]
        self._workers: list[_Worker] = []
        self._inbox = inbox(self._workers, loader._pins())
        ending = self._workers, self._inbox, os.getpid()
        self._finalizer = weakref.finalize(self, _end, *ending)
        for i in range(loader.num_workers):
            task = Work(
                number=i,
                workers=loader.num_workers,
                base_seed=base_seed,
                dataset=loader.dataset,
                streams=loader._streams,
                batched=loader.batch_sampler is not None,
                collate_fn=loader.collate_fn,
                drop_last=loader.drop_last,
                init_fn=loader.worker_init_fn,
                shared_seed=shared_seed,
                ahead=loader.prefetch_factor * loader.num_workers,
                saved=parts[i],
                started=time.perf_counter(),
            )
            self._workers.append(_Worker(context, task, self._workers))
        self._inbox.start()
        progress = Progress(self, order, base_seed, shared_seed, saved)
        if kept is not None:
            progress.seeded = False
        self._begin(progress, began)

    def __iter__(self) -> Iterator[Any]:
        return self

    def __len__(self) -> int:
        return self._loader._length()

    def restart(self) -> None:
        """Begin a new pass with the same workers."""
        self._told = self._loader._length_told
        began = time.perf_counter()
        shared_seed = self._loader._shared_seed()
        for w in self._workers:
            w.ask((RESUME, shared_seed))
            w.active, w.asked = True, 0
        waiting = set(self._workers)
        while waiting:  # what is left of the pass before comes first
            w, number, _ = self._receive()
            if number == RESUME:
                w.forget()
                waiting.discard(w)
        progress = Progress(self, Order(self._loader), self._progress.base_seed, shared_seed)
        progress.seeded = False  # the workers' random numbers go on
        self._begin(progress, began)

    def _begin(self, progress: Progress, began: float) -> None:
        loader = self._loader
        self._watch = Watch(loader, progress.base_seed)
        self._progress = loader._pass = progress
        self._order = progress.order
        self._sent = 0  # requests so far
        self._due = 0  # the request whose answer is given out next
        self._open: dict[int, Any] = {}  # request → its worker, then (answer, its worker)
        self._asked = progress.asked
        self._ready: dict[int, float] = {}  # when batches were made, where somebody looks
        self._early: deque[int] = deque()  # answers that came while states were waited for
        self._turn = itertools.cycle(self._workers)
        for _ in range(progress.turn):
            next(self._turn)
        for _ in range(loader.prefetch_factor * len(self._workers)):
            self._ask()
        self._watch.passed("begin", began)

    def _ask(self) -> None:
        """Send the next request to the next worker that has more to give."""
        limit = self._loader.prefetch_factor
        for w in itertools.islice(self._turn, len(self._workers)):
            if w.active and (self._loader.in_order or w.asked < limit):
                break
        else:
            return
        try:
            place, indices = next(self._order)
        except StopIteration:
            return
        w.ask((self._sent, indices, self._watch.on, w.channel.lent.free()))
        w.asked += 1
        self._open[self._sent] = w
        self._asked[self._sent] = (place, indices)
        self._sent += 1

    def _receive(self) -> tuple[_Worker, Any, Any]:
        """The next answer of any worker. RuntimeError if one is gone, or after the timeout."""
        timeout = self._loader.timeout
        since = time.perf_counter()
        try:
            found = self._inbox.get(timeout if timeout > 0 else None)
        except Gone as gone:
            text = gone.worker.death()
            self._give_up(1.0)
            raise RuntimeError(text) from None
        except BaseException:
            if self._inbox.broken:
                self._give_up()
            raise
        if found is None:
            text = f"DataLoader timed out after {timeout} seconds{self._late()}"
            self._give_up(0.0)
            raise RuntimeError(text)
        if found.told is not None:
            self._hear(found, since)
        return found.worker, found.number, found.answer

    def _late(self) -> str:
        """Who has kept the loader waiting."""
        due = self._open.get(self._due)
        late = [due] if isinstance(due, _Worker) else [w for w in self._workers if w.asked]
        text = ""
        for w in late:
            text += f": worker {w.number} (pid {w.process.pid})"
            if _stopped(w.process.pid):
                text += " is stopped by a signal and"
            text += f" has not given batch {self._due}" if w is due else " has not answered"
            if w is due and not self._loader._streams:
                text += f", indices {reprlib.repr(self._asked[self._due][1])}"
        return text

    def _hear(self, found: Arrived, since: float) -> None:
        """Pass on what is told of a batch."""
        self._watch.phase(None, self._due, stretch("blocked", since, found.came))
        for item in found.told or ():
            self._watch.phase(found.worker.number, found.number, item)
            if item[0] == "pack":
                self._ready[found.number] = item[2]

    def _give_up(self, patience: float = _PATIENCE) -> None:
        if self._finalizer.detach():
            _end(self._workers, self._inbox, os.getpid(), patience)
        self._open.clear()
        self._due = self._sent

    def __next__(self) -> Any:
        if blocks.LISTENERS:
            with blocks.block("enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__"):
                return self._following()
        return self._following()

    def _following(self) -> Any:
        listeners = events.loader_step.listeners
        watched = self._watch.on
        began = time.perf_counter() if listeners or watched else 0.0
        number, batch = self._next()
        made = self._ready.pop(number, None)
        if watched:
            now = time.perf_counter()
            self._watch.phase(None, number, stretch("wait", began, now))
            if made is not None:
                self._watch.phase(self._giver, number, stretch("queued", made, now))
        indices = self._asked.pop(number)[1]
        if watched:
            self._gave(number, indices, batch, began)
        if type(batch) is Failure:
            batch.reraise()
        if listeners:
            events.loader_step.emit(
                index=self._progress.count - 1,
                size=len(indices) if isinstance(indices, list) else 1,
                seconds=time.perf_counter() - began,
            )
        if self._loader._streams:
            self._loader._warn_length(self._progress.count, self._told)
        return batch

    def _gave(self, number: int, indices: Any, batch: Any, began: float) -> None:
        index, error = self._progress.count - 1, ""
        if type(batch) is Failure:
            batch, error = None, batch.brief()
        self._watch.gave(number, index, self._giver, indices, batch, error, began)

    def _next(self) -> tuple[int, Any]:
        asked = time.perf_counter()
        while True:
            while self._due < self._sent and self._due not in self._open:
                self._due += 1  # given out already, or a stream had no more
            if self._due == self._sent:
                if self._loader._pass is self._progress:
                    self._loader._pass = None
                if not self._loader.persistent_workers:
                    self._finalizer()
                for w in self._workers:
                    w.ask((FORGET,))
                    w.forget()
                self._watch.passed("end", asked)
                raise StopIteration
            if self._early and not self._loader.in_order:
                return self._give(self._early.popleft())
            if type(self._open[self._due]) is tuple:
                return self._give(self._due)
            number = self._take(*self._receive())
            if number is not None and not self._loader.in_order:
                return self._give(number)

    def _take(self, w: _Worker, number: int, answer: Any) -> int | None:
        """Keep an answer until it is its turn. None if there is none: a stream has ended."""
        w.asked -= 1
        if type(answer) is Ended:
            self._ready.pop(number, None)
            w.active = False
            del self._open[number], self._asked[number]
            self._ask()
            return None
        self._open[number] = (answer, w)
        return number

    def _give(self, number: int) -> tuple[int, Any]:
        answer, w = self._open.pop(number)
        self._progress.count += 1
        self._progress.given[w.number] += 1
        self._progress.turn = (w.number + 1) % len(self._workers)
        self._giver = w.number
        self._ask()
        return number, answer

    def states(self, between: bool = False) -> list[Any] | None:
        """Where each worker was after the last of its batches that was given out, or `between` two
        passes; None if they are gone."""
        if not self._finalizer.alive:
            return None
        for w in self._workers:
            w.ask((STATE, LATEST if between else self._progress.given[w.number]))
        found: list[Any] = [None] * len(self._workers)
        for _ in self._workers:
            while True:
                w, number, answer = self._receive()
                if number == STATE:
                    break
                kept = self._take(w, number, answer)
                if kept is not None and not self._loader.in_order:
                    self._early.append(kept)
            if type(answer) is Failure:
                answer.reraise()
            answer["start"], answer["now"] = pack(answer["start"]), pack(answer["now"])
            found[w.number] = answer
        return found


def between(iterator: WorkersIterator) -> Any:
    """What workers that stay know when a pass has ended; None if they are gone."""
    found = iterator.states(between=True)
    if found is None:
        return None
    for told in found:
        told["start"], told["now"], told["ended"] = told["now"], None, False
    return {"base_seed": iterator._progress.base_seed, "workers": found}


class Progress:
    """How far a pass is. It outlives the iterator, and does not keep it."""

    def __init__(
        self,
        iterator: WorkersIterator,
        order: Order,
        base_seed: int,
        shared_seed: int | None,
        saved: Any = None,
    ) -> None:
        self.iterator = weakref.ref(iterator)
        self.loader_streams = iterator._loader._streams
        self.in_order = iterator._loader.in_order
        self.order = order
        self.base_seed = base_seed
        self.shared_seed = shared_seed
        self.asked: dict[int, tuple[int, Any]] = {}  # what was asked for and not given
        self.seeded = True  # whether the workers began with their seeds
        self.count = 0
        self.turn = 0
        self.given = [0] * iterator._loader.num_workers
        if saved is not None:
            self.count, self.turn = saved["given"], saved["turn"]
            self.given = list(saved["worker_given"])
            self.seeded = saved["seeded"]

    def state(self) -> dict[str, Any]:
        """Where the pass is."""
        iterator = self.iterator()
        found = None if iterator is None else iterator.states()
        again = self.seeded and (
            self.loader_streams or (self.in_order and self.order.owner is None)
        )
        if found is None and not again:
            raise RuntimeError(
                "DataLoader.state_dict: the workers of the unfinished pass are gone, and what they"
                " did cannot be repeated (workers that stay, in_order=False, or a sampler with a"
                " state of its own); call it while the iterator is there"
            )
        return {
            "given": self.count,
            "order": self.order.state(list(self.asked.values())),
            "shared_seed": self.shared_seed,
            "base_seed": self.base_seed,
            "seeded": self.seeded,
            "turn": self.turn,
            "worker_given": list(self.given),
            "workers": found,
        }


def _parts(loader: Any, saved: Any, order: Order) -> list[Any]:
    """For each worker where it was in the pass that is taken up, and what it has to read again."""
    n = loader.num_workers
    if saved is None:
        return [None] * n
    gone = saved["workers"] is None
    past = [] if loader._streams else order.replay(saved["order"], keep=gone)
    parts = []
    for i in range(n):
        given = saved["worker_given"][i]
        told = None if gone else saved["workers"][i]
        again: list[Any] = []
        if loader._streams and (told is None or (told["dataset"] is None and not told["ended"])):
            again = [[None] * (loader.batch_size or 1)] * given
        elif told is None:
            again = past[i::n]
        parts.append(_part(told, again, given))
    return parts


def _part(told: Any, again: list[Any], given: int) -> dict[str, Any]:
    part: dict[str, Any] = {"start": None, "now": None, "dataset": None, "ended": False}
    part |= told or {}
    part["start"], part["now"] = unpack(part["start"]), unpack(part["now"])
    return part | {"past": again, "given": given}


__all__ = ["WorkersIterator"]

"""A pass over a loader's batches that worker processes get.

Requests go to the workers in turn, `prefetch_factor` ahead for each; answers come as they are ready
and wait until it is their turn (unless `in_order` is False).

Source: https://docs.pytorch.org/docs/2.13/data.html#multi-process-data-loading
"""

from __future__ import annotations

import contextlib
import itertools
import os
import signal
import time
import weakref
from collections import deque
from collections.abc import Iterator
from multiprocessing import connection
from typing import Any

from torchlab import multiprocessing as mp
from torchlab._core import events
from torchlab.utils.data.sampler import drawn_seed
from torchlab.utils.data.state import Order, pack, unpack
from torchlab.utils.data.worker import LATEST, RESUME, STATE, Ended, Failure, Work, work

_PATIENCE = 5.0  # seconds that workers have to end by themselves


class _Worker:
    """One process and the loader's ends of its pipes."""

    def __init__(self, context: Any, task: Work, others: list[_Worker]) -> None:
        requests, self.requests = context.Pipe(duplex=False)
        self.results, results = context.Pipe(duplex=False)
        inherited: list[Any] = []
        if context.get_start_method() == "fork":  # the child has a copy of every open end
            inherited = [self.requests, self.results]
            inherited += [end for w in others for end in (w.requests, w.results)]
        self.process = context.Process(
            target=work, args=(task, requests, results, inherited), daemon=True
        )
        self.process.start()
        requests.close()
        results.close()
        self.number = task.number
        self.active = True  # it has more to give
        self.asked = 0  # requests without an answer

    def ask(self, message: Any) -> None:
        """Send a request. That a worker is gone is found when its answer is waited for."""
        with contextlib.suppress(OSError):
            self.requests.send(message)

    def death(self) -> str:
        """What is said of a worker that is gone."""
        self.process.join(_PATIENCE)
        code, pid = self.process.exitcode, self.process.pid
        text = f"DataLoader worker (pid(s) {pid}) exited unexpectedly"
        if code is not None and code < 0:
            return (
                f"{text}: worker {self.number} (pid {pid}) is killed by signal:"
                f" {signal.strsignal(-code)}. A worker that needs too much memory ends so, too."
            )
        return (
            f"{text}: worker {self.number} ended with exit code {code}. Run with num_workers=0 to"
            " see what it does."
        )


def _end(workers: list[_Worker], owner: int, patience: float = _PATIENCE) -> None:
    """End the processes: by request, after `patience` seconds by force."""
    if os.getpid() != owner:
        return  # a forked child has a copy of the loader, but not its workers
    for w in workers:
        w.ask(None)
        w.requests.close()
        w.results.close()
    until = time.monotonic() + patience
    for w in workers:
        w.process.join(max(0.0, until - time.monotonic()))
    for w in workers:
        if w.process.is_alive():
            w.process.terminate()
    for w in workers:
        w.process.join(1.0)
        if w.process.is_alive():
            w.process.kill()
            w.process.join()
        w.process.close()
    workers.clear()


class WorkersIterator:
    """One pass over the batches; with persistent workers the same object for every pass."""

    def __init__(self, loader: Any, saved: Any = None) -> None:
        self._loader = loader
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
        self._finalizer = weakref.finalize(self, _end, self._workers, os.getpid())
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
            )
            self._workers.append(_Worker(context, task, self._workers))
        progress = Progress(self, order, base_seed, shared_seed, saved)
        if kept is not None:
            progress.seeded = False
        self._begin(progress)

    def __iter__(self) -> Iterator[Any]:
        return self

    def __len__(self) -> int:
        return self._loader._length()

    def restart(self) -> None:
        """Begin a new pass with the same workers."""
        shared_seed = self._loader._shared_seed()
        for w in self._workers:
            w.ask((RESUME, shared_seed))
            w.active, w.asked = True, 0
        waiting = set(self._workers)
        while waiting:  # what is left of the pass before comes first
            w, number, _ = self._receive()
            if number == RESUME:
                waiting.discard(w)
        progress = Progress(self, Order(self._loader), self._progress.base_seed, shared_seed)
        progress.seeded = False  # the workers' random numbers go on
        self._begin(progress)

    def _begin(self, progress: Progress) -> None:
        loader = self._loader
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
        w.ask((self._sent, indices, bool(events.loader_phase.listeners)))
        w.asked += 1
        self._open[self._sent] = w
        self._asked[self._sent] = (place, indices)
        self._sent += 1

    def _receive(self) -> tuple[_Worker, Any, Any]:
        """The next answer of any worker. RuntimeError if one is gone, or after the timeout."""
        sources: dict[Any, _Worker] = {w.results: w for w in self._workers}
        sources |= {w.process.sentinel: w for w in self._workers}
        timeout = self._loader.timeout
        ready = connection.wait(sources, timeout if timeout > 0 else None)
        if not ready:
            self._give_up(0.0)
            raise RuntimeError(f"DataLoader timed out after {timeout} seconds")
        pipes = [end for end in ready if not isinstance(end, int)]
        w = sources[pipes[0] if pipes else ready[0]]
        try:
            if not pipes:  # its process is gone, and it has left nothing in its pipe
                raise EOFError
            number, answer, *told = w.results.recv()
        except (EOFError, OSError):
            # The pipe ends with its process; so does the memory that it was about to hand over.
            text = w.death()
            self._give_up()
            raise RuntimeError(text) from None
        if told:  # somebody looks
            for phase, began, ended in told[0]:
                self._tell(phase, w.number, number, began, ended)
            self._ready[number] = ended
        return w, number, answer

    def _tell(self, phase: str, worker: int | None, batch: int, began: float, ended: float) -> None:
        if events.loader_phase.listeners:
            events.loader_phase.emit(
                phase=phase, worker=worker, batch=batch, began=began, ended=ended
            )

    def _give_up(self, patience: float = _PATIENCE) -> None:
        if self._finalizer.detach():
            _end(self._workers, os.getpid(), patience)
        self._open.clear()
        self._due = self._sent

    def __next__(self) -> Any:
        listeners = events.loader_step.listeners
        watched = bool(events.loader_phase.listeners)
        began = time.perf_counter() if listeners or watched else 0.0
        number, batch = self._next()
        made = self._ready.pop(number, None)
        if watched:
            now = time.perf_counter()
            self._tell("wait", None, number, began, now)
            if made is not None:
                self._tell("queued", self._giver, number, made, now)
        indices = self._asked.pop(number)[1]
        if type(batch) is Failure:
            batch.reraise()
        if listeners:
            events.loader_step.emit(
                index=self._progress.count - 1,
                size=len(indices) if isinstance(indices, list) else 1,
                seconds=time.perf_counter() - began,
            )
        if self._loader._streams:
            self._loader._warn_length(self._progress.count)
        return batch

    def _next(self) -> tuple[int, Any]:
        while True:
            while self._due < self._sent and self._due not in self._open:
                self._due += 1  # given out already, or a stream had no more
            if self._due == self._sent:
                if self._loader._pass is self._progress:
                    self._loader._pass = None
                if not self._loader.persistent_workers:
                    self._finalizer()
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

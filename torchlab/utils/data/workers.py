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
from collections.abc import Iterator
from multiprocessing import connection
from typing import Any

from torchlab import multiprocessing as mp
from torchlab._core import events
from torchlab.utils.data.sampler import drawn_seed
from torchlab.utils.data.worker import RESUME, Ended, Failure, Work, work

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

    def __init__(self, loader: Any) -> None:
        self._loader = loader
        context = loader.multiprocessing_context
        if context is None:
            context = mp.get_context()  # type: ignore[attr-defined]
        shared_seed = loader._shared_seed()
        base_seed = drawn_seed(loader.generator)
        loader._shared_seed()  # PyTorch draws another one here and leaves it: the stream is its
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
            )
            self._workers.append(_Worker(context, task, self._workers))
        self._begin()

    def __iter__(self) -> Iterator[Any]:
        return self

    def __len__(self) -> int:
        return self._loader._length()

    def restart(self) -> None:
        """Begin a new pass with the same workers."""
        message = RESUME, self._loader._shared_seed()
        for w in self._workers:
            w.ask(message)
            w.active, w.asked = True, 0
        waiting = set(self._workers)
        while waiting:  # what is left of the pass before comes first
            w, number, _ = self._receive()
            if number == RESUME:
                waiting.discard(w)
        self._begin()

    def _begin(self) -> None:
        loader = self._loader
        self._order = iter(
            loader.batch_sampler if loader.batch_sampler is not None else loader.sampler
        )
        self._sent = 0  # requests so far
        self._due = 0  # the request whose answer is given out next
        self._open: dict[int, Any] = {}  # request → its worker, then (answer,)
        self._sizes: dict[int, int] = {}
        self._count = 0
        self._turn = itertools.cycle(self._workers)
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
            indices = next(self._order)
        except StopIteration:
            return
        w.ask((self._sent, indices))
        w.asked += 1
        self._open[self._sent] = w
        self._sizes[self._sent] = len(indices) if isinstance(indices, list) else 1
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
            number, answer = w.results.recv()
        except (EOFError, OSError):
            # The pipe ends with its process; so does the memory that it was about to hand over.
            text = w.death()
            self._give_up()
            raise RuntimeError(text) from None
        return w, number, answer

    def _give_up(self, patience: float = _PATIENCE) -> None:
        if self._finalizer.detach():
            _end(self._workers, os.getpid(), patience)
        self._open.clear()
        self._due = self._sent

    def __next__(self) -> Any:
        listeners = events.loader_step.listeners
        began = time.perf_counter() if listeners else 0.0
        number, batch = self._next()
        size = self._sizes.pop(number)
        if listeners:
            events.loader_step.emit(
                index=self._count, size=size, seconds=time.perf_counter() - began
            )
        self._count += 1
        if self._loader._streams:
            self._loader._warn_length(self._count)
        return batch

    def _next(self) -> tuple[int, Any]:
        while True:
            while self._due < self._sent and self._due not in self._open:
                self._due += 1  # given out already, or a stream had no more
            if self._due == self._sent:
                if not self._loader.persistent_workers:
                    self._finalizer()
                raise StopIteration
            found = self._open[self._due]
            if type(found) is tuple:
                return self._give(self._due, found[0])
            w, number, answer = self._receive()
            w.asked -= 1
            if type(answer) is Ended:
                w.active = False
                del self._open[number]
                self._ask()
            elif number == self._due or not self._loader.in_order:
                return self._give(number, answer)
            else:
                self._open[number] = (answer,)

    def _give(self, number: int, answer: Any) -> tuple[int, Any]:
        del self._open[number]
        self._ask()
        if type(answer) is Failure:
            answer.reraise()
        return number, answer


__all__ = ["WorkersIterator"]

"""What a loader tells those who look: when a pass begins and ends, what was done for a batch and
when, and which batches it gives out (`events.loader_pass`, `loader_phase`, `loader_batch`).

Times are those of `time.perf_counter`, one clock for all processes of a machine.
"""

from __future__ import annotations

import itertools
import time
from typing import Any

from torchlab._core import events

Told = tuple[str, float, float, float | None, tuple[Any, float] | None]
"""(phase, began, ended, seconds of the processor, the slowest sample and its seconds)"""

_passes = itertools.count()


def stretch(phase: str, began: float, ended: float) -> Told:
    """A stretch of which only the times are known."""
    return phase, began, ended, None, None


class Watch:
    """One pass, as those who look know it. Asks for listeners before it builds anything."""

    __slots__ = ("loader", "number", "base_seed")

    def __init__(self, loader: Any, base_seed: int | None) -> None:
        self.loader = loader
        self.number = next(_passes)
        self.base_seed = base_seed

    @property
    def on(self) -> bool:
        """Whether somebody looks at single batches."""
        return bool(events.loader_phase.listeners or events.loader_batch.listeners)

    def passed(self, stage: str, began: float) -> None:
        """The pass has begun ('begin') or ended ('end'); it took from `began` until now."""
        if events.loader_pass.listeners:
            events.loader_pass.emit(
                loader=self.loader,
                pass_id=self.number,
                stage=stage,
                base_seed=self.base_seed,
                began=began,
                ended=time.perf_counter(),
            )

    def phase(self, worker: int | None, batch: int, told: Told) -> None:
        """A stretch of work or of waiting."""
        if events.loader_phase.listeners:
            phase, began, ended, cpu, slowest = told
            events.loader_phase.emit(
                loader=self.loader,
                pass_id=self.number,
                phase=phase,
                worker=worker,
                batch=batch,
                began=began,
                ended=ended,
                cpu=cpu,
                slowest=slowest,
            )

    def gave(
        self,
        batch: int,
        index: int,
        worker: int | None,
        indices: Any,
        value: Any,
        error: str,
        began: float,
    ) -> None:
        """A batch is given out (or an exception, told in `error`); it was asked for at `began`."""
        if events.loader_batch.listeners:
            seed = None
            if worker is not None and self.base_seed is not None:
                seed = self.base_seed + worker
            events.loader_batch.emit(
                loader=self.loader,
                pass_id=self.number,
                batch=batch,
                index=index,
                worker=worker,
                seed=seed,
                indices=None if self.loader._streams else indices,
                value=value,
                error=error,
                began=began,
                ended=time.perf_counter(),
            )


__all__ = ["Told", "Watch", "stretch"]

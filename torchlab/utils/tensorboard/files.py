"""The file of events behind a SummaryWriter."""

from __future__ import annotations

import time
from typing import Any

from tensorboard.compat.proto import event_pb2
from tensorboard.compat.proto.event_pb2 import Event
from tensorboard.summary.writer.event_file_writer import EventFileWriter


class FileWriter:
    """Writes events into a file of its own in `log_dir`, in a thread.

    max_queue: events that wait at most; flush_secs: seconds between two writes.
    """

    def __init__(
        self, log_dir: Any, max_queue: int = 10, flush_secs: float = 120, filename_suffix: str = ""
    ) -> None:
        self._open = lambda: EventFileWriter(str(log_dir), max_queue, flush_secs, filename_suffix)
        self.event_writer = self._open()

    def get_logdir(self) -> str:
        """The folder."""
        found: str = self.event_writer.get_logdir()
        return found

    def add_event(self, event: Any, step: Any = None, walltime: float | None = None) -> None:
        """Write an event of the time `walltime` (default: now; seconds since 1970)."""
        event.wall_time = time.time() if walltime is None else walltime
        if step is not None:
            event.step = int(step)  # a tensor's or NumPy's number, too
        self.event_writer.add_event(event)

    def add_summary(
        self, summary: Any, global_step: Any = None, walltime: float | None = None
    ) -> None:
        """Write a message of `summary`."""
        self.add_event(Event(summary=summary), global_step, walltime)

    def add_graph(self, graph_profile: Any, walltime: float | None = None) -> None:
        """Write (a GraphDef, the StepStats of a run)."""
        graph, stats = graph_profile
        self.add_event(Event(graph_def=graph.SerializeToString()), None, walltime)
        tagged = event_pb2.TaggedRunMetadata(tag="step1", run_metadata=stats.SerializeToString())
        self.add_event(Event(tagged_run_metadata=tagged), None, walltime)

    def add_onnx_graph(self, graph: Any, walltime: float | None = None) -> None:
        """Write a GraphDef."""
        self.add_event(Event(graph_def=graph.SerializeToString()), None, walltime)

    def flush(self) -> None:
        """Wait until all events are on disk."""
        self.event_writer.flush()

    def close(self) -> None:
        """Write what waits, and end."""
        self.event_writer.close()

    def reopen(self) -> None:
        """Go on with a new file, after `close`."""
        self.event_writer = self._open()


__all__ = ["FileWriter"]

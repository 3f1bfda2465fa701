"""`tensorboard_trace_handler`: traces as files in a folder, one for each cycle.

Source: https://docs.pytorch.org/docs/2.13/profiler.html
"""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Callable
from typing import Any


def tensorboard_trace_handler(
    dir_name: str,
    worker_name: str | None = None,
    use_gzip: bool = False,
    use_python_export: bool = False,
) -> Callable[[Any], None]:
    """An `on_trace_ready` that writes `<worker>.<time>.pt.trace.json` to a folder, which it makes:
    what TensorBoard's profiler plugin reads.

    worker_name: unique among those that write there; None is `<host>_<process>`. use_gzip: write
    compressed. use_python_export: as all traces are here.
    """

    def handler(prof: Any) -> None:
        try:
            os.makedirs(dir_name, exist_ok=True)
        except OSError as e:
            raise RuntimeError("Can't create directory: " + dir_name) from e
        worker = worker_name or f"{socket.gethostname()}_{os.getpid()}"
        # Nanoseconds: cycles may be shorter than a millisecond.
        name = f"{worker}.{time.time_ns()}.pt.trace.json{'.gz' if use_gzip else ''}"
        prof.export_chrome_trace(os.path.join(dir_name, name))

    return handler


__all__ = ["tensorboard_trace_handler"]

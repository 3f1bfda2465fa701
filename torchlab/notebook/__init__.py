"""`%load_ext torchlab.notebook`: live memory in JupyterLab's sidebar.

Loading it opens a comm to the page (target `torchlab.memory`) and a `MemoryFeed` that listens to
the allocators' events and sends what the devices hold, at most about 16 times a second, also while
a cell is busy. The panel that draws it is the JupyterLab extension `torchlab-jupyterlab`, which
comes with the extra `lab`. Where no such page listens (plain IPython, nbconvert) the messages go
nowhere. Not loaded, it costs nothing; `%unload_ext torchlab.notebook` ends it.
"""

from __future__ import annotations

import atexit
import os
from typing import Any

from torchlab._core.lazy import lazy
from torchlab.notebook.devices import DeviceMemory, read_devices
from torchlab.notebook.feed import PROTOCOL, TARGET, MemoryFeed

__all__ = [
    "TARGET",
    "DeviceMemory",
    "MemoryFeed",
    "load_ipython_extension",
    "read_devices",
    "unload_ipython_extension",
]

comm_package = lazy("comm", needs="pip install 'torchlab[lab]'")

_feed: MemoryFeed | None = None


def load_ipython_extension(ip: Any) -> None:
    """Start the feed for this kernel (`%load_ext torchlab.notebook`); a running one is replaced."""
    global _feed
    unload_ipython_extension(ip)
    comm = comm_package.create_comm(target_name=TARGET, data={"protocol": PROTOCOL})
    _feed = MemoryFeed(comm).start()
    ip.events.register("post_run_cell", _after_cell)
    atexit.register(_feed.close)


def unload_ipython_extension(ip: Any) -> None:
    """Stop the feed (`%unload_ext torchlab.notebook`)."""
    global _feed
    if _feed is None:
        return
    ip.events.unregister("post_run_cell", _after_cell)
    atexit.unregister(_feed.close)
    _feed.close()
    _feed = None


def _after_cell(_result: Any = None) -> None:
    """The state a cell left behind is on the page before the next one starts."""
    if _feed is not None:
        _feed.flush()


def _after_fork() -> None:
    if _feed is not None:
        _feed.forget_in_child()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)

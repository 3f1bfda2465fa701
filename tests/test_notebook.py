"""The memory feed: what it sends, when, and that it ends; with a comm and events made here."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

from torchlab import notebook
from torchlab._core import events
from torchlab.notebook import DeviceMemory, MemoryFeed, read_devices

MIB = 1 << 20
LISTENED = (events.block_alloc, events.block_free, events.segment_alloc, events.segment_free)


class FakeComm:
    """Keeps what is sent, with the time of its arrival in seconds."""

    def __init__(self) -> None:
        self.sent: list[tuple[float, dict[str, Any]]] = []
        self.closed = 0
        self.on_message: Callable[[dict[str, Any]], None] = lambda message: None
        self.on_closed: Callable[[dict[str, Any]], None] = lambda message: None

    def send(self, data: dict[str, Any]) -> None:
        self.sent.append((time.monotonic(), data))

    def close(self) -> None:
        self.closed += 1

    def on_msg(self, callback: Callable[[dict[str, Any]], None]) -> None:
        self.on_message = callback

    def on_close(self, callback: Callable[[dict[str, Any]], None]) -> None:
        self.on_closed = callback


class FakeAllocator:
    """Counts bytes and emits the events a caching allocator emits."""

    def __init__(self) -> None:
        self.process = 100 * MIB
        self.allocated = self.peak = self.blocks = 0

    def alloc(self, size: int) -> None:
        self.allocated += size
        self.peak = max(self.peak, self.allocated)
        self.blocks += 1
        events.block_alloc.emit(
            device="sim:0", segment=0, address=0, size=size, requested=size, stream=0
        )

    def free(self, size: int) -> None:
        self.allocated -= size
        self.blocks -= 1
        events.block_free.emit(device="sim:0", segment=0, address=0, size=size, stream=0)

    def read(self) -> list[DeviceMemory]:
        return [
            DeviceMemory("cpu", "process", self.process, self.process),
            DeviceMemory(
                "sim:0", "allocator", self.allocated, self.peak, 64 * MIB, 512 * MIB, 1, self.blocks
            ),
        ]


@pytest.fixture
def comm() -> FakeComm:
    return FakeComm()


@pytest.fixture
def allocator() -> FakeAllocator:
    return FakeAllocator()


@pytest.fixture
def feed(comm: FakeComm, allocator: FakeAllocator) -> Any:
    feed = MemoryFeed(comm, allocator.read, interval=0.05, idle=30.0).start()
    yield feed
    feed.close()


def wait_for(condition: Callable[[], bool], seconds: float = 5.0) -> None:
    """Wait until the condition holds; the feed's thread runs beside the test."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "the feed did not send what was waited for"
        time.sleep(0.005)


def sim_of(message: dict[str, Any]) -> dict[str, Any]:
    return next(d for d in message["devices"] if d["device"] == "sim:0")


def test_start_sends_the_present_state_in_full(feed: MemoryFeed, comm: FakeComm) -> None:
    message = comm.sent[0][1]
    assert message["feed"] == "torchlab.memory"
    assert message["protocol"] == 1 and message["sequence"] == 1
    assert [d["device"] for d in message["devices"]] == ["cpu", "sim:0"]
    assert message["devices"][0]["limit"] is None
    assert sim_of(message) == {
        "device": "sim:0",
        "kind": "allocator",
        "allocated": 0,
        "peak": 0,
        "reserved": 64 * MIB,
        "limit": 512 * MIB,
        "segments": 1,
        "blocks": 0,
        "high": 0,
    }


def test_an_event_is_sent_without_anyone_asking(
    feed: MemoryFeed, comm: FakeComm, allocator: FakeAllocator
) -> None:
    allocator.alloc(3 * MIB)
    wait_for(lambda: sim_of(comm.sent[-1][1])["allocated"] == 3 * MIB)
    assert sim_of(comm.sent[-1][1])["blocks"] == 1


def test_a_storm_of_events_is_coalesced_and_its_final_state_is_sent(
    feed: MemoryFeed, comm: FakeComm, allocator: FakeAllocator
) -> None:
    begin = time.monotonic()
    while time.monotonic() < begin + 0.5:
        allocator.alloc(512)
        allocator.free(512)
    allocator.alloc(7 * MIB)
    wait_for(lambda: sim_of(comm.sent[-1][1])["allocated"] == 7 * MIB)
    times = [t for t, _ in comm.sent[1:]]  # the first message is start's own
    assert 2 <= len(times) <= 13  # 0.5 s at one per 0.05 s, the end, and a late first one
    assert min(b - a for a, b in zip(times, times[1:], strict=False)) >= 0.049
    assert [m["sequence"] for _, m in comm.sent] == list(range(1, len(comm.sent) + 1))


def test_a_block_that_came_and_went_between_two_messages_is_in_high(
    comm: FakeComm, allocator: FakeAllocator
) -> None:
    allocator.alloc(2 * MIB)
    feed = MemoryFeed(comm, allocator.read, interval=0.2, idle=30.0).start()
    try:
        allocator.alloc(MIB)
        wait_for(lambda: sim_of(comm.sent[-1][1])["allocated"] == 3 * MIB)
        allocator.alloc(9 * MIB)  # within the pause of 0.2 s
        allocator.free(9 * MIB)
        wait_for(lambda: sim_of(comm.sent[-1][1])["high"] == 12 * MIB)
        assert sim_of(comm.sent[-1][1])["allocated"] == 3 * MIB
    finally:
        feed.close()


def test_flush_sends_only_what_is_new(
    feed: MemoryFeed, comm: FakeComm, allocator: FakeAllocator
) -> None:
    assert not feed.flush()
    allocator.process += MIB // 2  # flicker
    assert not feed.flush()
    allocator.process += MIB
    assert feed.flush()
    assert comm.sent[-1][1]["devices"][0]["allocated"] == 100 * MIB + 3 * MIB // 2
    assert feed.flush(force=True)


def test_at_rest_it_notices_that_the_process_grew(comm: FakeComm, allocator: FakeAllocator) -> None:
    feed = MemoryFeed(comm, allocator.read, interval=0.01, idle=0.05).start()
    try:
        allocator.process += 8 * MIB  # no event tells of it
        wait_for(lambda: comm.sent[-1][1]["devices"][0]["allocated"] == 108 * MIB)
        time.sleep(0.2)
        assert len(comm.sent) == 2
    finally:
        feed.close()


def test_a_page_that_comes_late_gets_the_state(feed: MemoryFeed, comm: FakeComm) -> None:
    comm.on_message({"content": {"data": {"request": "state"}}})
    assert len(comm.sent) == 2
    comm.on_message({"content": {"data": {"request": "something else"}}})
    assert len(comm.sent) == 2


def test_close_ends_the_thread_and_the_listening(
    feed: MemoryFeed, comm: FakeComm, allocator: FakeAllocator
) -> None:
    assert all(topic.listeners for topic in LISTENED)
    feed.close()
    feed.close()
    assert comm.closed == 1
    assert not any(topic.listeners for topic in LISTENED)
    assert "torchlab-memory" not in [t.name for t in threading.enumerate()]
    sent = len(comm.sent)
    allocator.alloc(MIB)
    assert not feed.flush(force=True) and len(comm.sent) == sent


def test_a_page_that_closes_the_comm_ends_the_feed(feed: MemoryFeed, comm: FakeComm) -> None:
    comm.on_closed({"content": {"data": {}}})
    assert feed.closed and not any(topic.listeners for topic in LISTENED)


def test_after_a_fork_the_child_listens_no_more(feed: MemoryFeed, comm: FakeComm) -> None:
    feed.forget_in_child()
    assert feed.closed and comm.closed == 0  # the page belongs to the parent
    assert not any(topic.listeners for topic in LISTENED)


def test_read_devices_tells_of_this_process_and_of_sim() -> None:
    found = {d.device: d for d in read_devices()}
    sim = found["sim:0"]
    assert sim.kind == "allocator"
    assert sim.reserved is not None and sim.limit is not None
    assert 0 <= sim.allocated <= sim.reserved <= sim.limit
    if "cpu" in found:  # Windows does not tell
        cpu = found["cpu"]
        assert cpu.kind == "process" and cpu.segments is None
        assert 5 * MIB < cpu.allocated <= cpu.peak


class FakeShell:
    """IPython's `ip.events`, as far as the extension uses it."""

    def __init__(self) -> None:
        self.callbacks: list[tuple[str, Callable[..., None]]] = []
        self.events = self

    def register(self, name: str, callback: Callable[..., None]) -> None:
        self.callbacks.append((name, callback))

    def unregister(self, name: str, callback: Callable[..., None]) -> None:
        self.callbacks.remove((name, callback))


def test_loading_twice_keeps_one_feed_and_unloading_leaves_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made: list[FakeComm] = []

    class Package:
        @staticmethod
        def create_comm(target_name: str, data: dict[str, Any]) -> FakeComm:
            assert target_name == "torchlab.memory" and data == {"protocol": 1}
            made.append(FakeComm())
            return made[-1]

    monkeypatch.setattr(notebook, "comm_package", Package)
    shell = FakeShell()
    notebook.load_ipython_extension(shell)
    notebook.load_ipython_extension(shell)
    assert [c.closed for c in made] == [1, 0]
    assert [name for name, _ in shell.callbacks] == ["post_run_cell"]
    assert [len(topic.listeners) for topic in LISTENED] == [1, 1, 1, 1]
    shell.callbacks[0][1](None)  # a cell that changed nothing
    notebook.unload_ipython_extension(shell)
    notebook.unload_ipython_extension(shell)
    assert made[1].closed == 1 and not shell.callbacks
    assert not any(topic.listeners for topic in LISTENED)

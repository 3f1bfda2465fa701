"""The widgets without a browser: what they send, how often, and that the last state arrives."""

from __future__ import annotations

import threading
import time
from typing import Any

import pytest

from tests.viz import samples
from torchlab.viz.pictures import picture
from torchlab.viz.widgets.throttle import Throttle

pytest.importorskip("anywidget")

KINDS = sorted(samples.ALL)


@pytest.mark.parametrize("kind", KINDS)
def test_a_widget_holds_the_drawing_as_json(kind: str) -> None:
    shown = picture(samples.ALL[kind]())
    widget = shown.widget()
    assert widget.kind == kind
    assert widget.state == shown.drawing("css").state(kind)
    assert "export default" in widget._esm and "function picture(" in widget._esm
    assert "--tl-bg" in widget._css
    widget.close()


def test_a_click_reaches_the_callbacks() -> None:
    widget = picture(samples.autograd()).widget()
    chosen: list[str] = []
    widget.on_select(chosen.append)
    widget._handle_custom_msg({"type": "select", "id": "n3"}, [])
    widget._handle_custom_msg({"type": "other"}, [])
    widget._handle_custom_msg("noise", [])
    assert chosen == ["n3"]
    widget.close()


def test_many_updates_are_drawn_few_times_and_the_last_is_shown() -> None:
    widget = picture(samples.autograd()).widget()
    snapshot = samples.autograd()
    for step in range(200):
        snapshot = samples.autograd()
        snapshot["nodes"][0]["grad_norm"] = float(step)
        widget.update(snapshot)
    widget.flush()
    assert widget.published < 100
    assert dict(widget.state["details"]["n0"]["rows"])["gradient norm"] == "199"
    widget.close()


def test_numbers_that_json_lacks_are_sent_as_texts() -> None:
    snapshot = samples.autograd()
    snapshot["nodes"][0]["grad_norm"] = float("nan")
    widget = picture(snapshot).widget()
    assert dict(widget.state["details"]["n0"]["rows"])["gradient norm"] == "nan"
    widget.close()


def test_throttle_publishes_at_once_then_waits_then_flushes_by_itself() -> None:
    seen: list[Any] = []
    arrived = threading.Event()

    def publish(value: Any) -> None:
        seen.append(value)
        if value == "last":
            arrived.set()

    throttle = Throttle(publish, interval=0.05)
    throttle.put("first")
    assert seen == ["first"]
    for i in range(50):
        throttle.put(i)
    throttle.put("last")
    assert arrived.wait(5)
    assert seen[0] == "first" and seen[-1] == "last" and len(seen) < 20
    throttle.flush()
    assert seen.count("last") == 1


def test_throttle_calls_a_function_only_when_it_publishes() -> None:
    calls: list[int] = []
    throttle = Throttle(lambda value: None, interval=60.0)
    for i in range(100):
        throttle.put(lambda i=i: calls.append(i))
    assert calls == [0]
    throttle.flush()
    assert calls == [0, 99]


def test_slow_drawing_stretches_the_interval() -> None:
    throttle = Throttle(lambda value: time.sleep(0.03), interval=0.001)
    throttle.put(1)
    assert throttle._interval >= 0.12


def test_what_was_made_at_once_is_made_again() -> None:
    """The name of what `x = make()` makes is not there yet while `make` runs."""
    names: list[str] = []
    seen: list[list[str]] = []
    arrived = threading.Event()

    def publish(value: list[str]) -> None:
        seen.append(value)
        if value:
            arrived.set()

    throttle = Throttle(publish, interval=0.01)
    throttle.put(lambda: list(names))
    names.append("held")
    assert arrived.wait(5)
    assert seen == [[], ["held"]]

"""Anomaly mode: a backward that fails or makes NaN names the forward call it belongs to.

As in PyTorch the mode is the process's, not the thread's. While it is on, every node that is put
on the tape remembers the stack in its metadata, under `traceback_`, and, if that was done by a
backward, the node of that backward under `parent_`.

Source: https://docs.pytorch.org/docs/2.13/autograd.html#anomaly-detection
"""

from __future__ import annotations

import threading
import traceback
import warnings
from collections.abc import Callable
from typing import Any

from torchlab._core import events
from torchlab._core.dispatch.registry import aten
from torchlab._core.tape import ANOMALY, EXTRA, Node

_subscriptions: list[Any] = []
_check = [True]


class _Running(threading.local):
    node: Node | None = None  # what runs in this thread's backward


_running = _Running()


def remember(node: Node, **payload: Any) -> None:
    """Keep the stack of the forward call that put `node` on the tape."""
    facts = EXTRA.setdefault(node, {})
    facts["traceback_"] = [
        line
        for line in traceback.format_stack()[:-1]
        if "/torchlab/_core/" not in line and 'File "<torchlab' not in line
    ]
    if _running.node is not None:
        facts["parent_"] = _running.node


def applied(apply: Callable[[Node, Any], Any], node: Node, g: Any) -> Any:
    """`apply(node, g)`, with a word about where the node comes from should it fail."""
    before, _running.node = _running.node, node
    try:
        return apply(node, g)
    except Exception:
        _tell(node)
        raise
    finally:
        _running.node = before


def check(node: Node, results: Any) -> None:
    """Raise if a gradient that `node` gave has a NaN, and say where the forward call was."""
    if not _check[0]:
        return
    for i, g in enumerate(results):
        if g is None or not g._k.differentiable or g._k.device.type == "meta":
            continue
        if bool(aten.isnan(aten.detach(g)).any()):
            _tell(node)
            raise RuntimeError(f"Function '{node.name()}' returned nan values in its {i}th output.")


def _tell(node: Node) -> None:
    facts = EXTRA.get(node, {})
    if "traceback_" not in facts:
        warnings.warn(
            f"Error detected in {node.name()}. No forward pass information available. Enable detect"
            " anomaly during forward pass for more information.",
            stacklevel=3,
        )
        return
    warnings.warn(
        f"Error detected in {node.name()}. Traceback of forward call that caused the"
        f" error:\n{''.join(facts['traceback_'])}",
        stacklevel=3,
    )
    parent = facts.get("parent_")
    while parent is not None:
        facts = EXTRA.get(parent, {})
        stack = "".join(facts.get("traceback_", ["  (made outside anomaly mode)\n"]))
        warnings.warn(
            "\n\nPrevious calculation was induced by"
            f" {parent.name()}. Traceback of forward call that induced the previous"
            f" calculation:\n{stack}",
            stacklevel=3,
        )
        parent = facts.get("parent_")


def is_anomaly_enabled() -> bool:
    """Whether anomaly mode is on."""
    return bool(ANOMALY)


def is_anomaly_check_nan_enabled() -> bool:
    """Whether anomaly mode, where it is on, looks for NaN."""
    return _check[0]


def set_anomaly_enabled(mode: bool, check_nan: bool = True) -> None:
    """Switch anomaly mode on or off."""
    _check[0] = check_nan
    if mode and not ANOMALY:
        ANOMALY.append(True)
        _subscriptions.append(events.node_created.subscribe(remember))
    elif not mode and ANOMALY:
        ANOMALY.clear()
        _subscriptions.pop().close()


class set_detect_anomaly:
    """Switch anomaly mode on or off: at once, and back at the end of a `with`."""

    def __init__(self, mode: bool, check_nan: bool = True) -> None:
        self.prev = is_anomaly_enabled()
        self.prev_check_nan = is_anomaly_check_nan_enabled()
        set_anomaly_enabled(mode, check_nan)

    def __enter__(self) -> None:
        pass

    def __exit__(self, *exc: object) -> None:
        set_anomaly_enabled(self.prev, self.prev_check_nan)


class detect_anomaly:
    """Inside, a NaN in backward raises, and errors in backward name the forward call."""

    def __init__(self, check_nan: bool = True) -> None:
        self.prev = is_anomaly_enabled()
        self.check_nan = check_nan
        self.prev_check_nan = is_anomaly_check_nan_enabled()
        warnings.warn(
            "Anomaly Detection has been enabled. This mode will increase the runtime and should"
            " only be enabled for debugging.",
            stacklevel=2,
        )

    def __enter__(self) -> None:
        set_anomaly_enabled(True, self.check_nan)

    def __exit__(self, *exc: object) -> None:
        set_anomaly_enabled(self.prev, self.prev_check_nan)


__all__ = ["detect_anomaly", "set_detect_anomaly"]

"""Anomaly mode: a backward that makes NaN names the forward call it belongs to.

Source: https://docs.pytorch.org/docs/2.13/autograd.html#anomaly-detection
"""

from __future__ import annotations

import traceback
import warnings
from typing import Any

import numpy as np

from torchlab._core import events
from torchlab._core.tape import EXTRA, TLS, Node

_subscriptions: list[Any] = []
_check = [True]


def _remember(node: Node, **payload: Any) -> None:
    stack = traceback.format_stack()
    EXTRA.setdefault(node, {})["traceback_"] = [
        line for line in stack if "/torchlab/_core/" not in line
    ]


class AnomalyError(RuntimeError):
    """Raised after the step whose gradient has a NaN."""


_found: list[tuple[Node, int]] = []


def _inspect(node: Node, grad_outputs: Any, grad_inputs: Any) -> None:
    if not _check[0]:
        return
    for i, g in enumerate(grad_inputs):
        if g is not None and g._k.differentiable and np.isnan(np.asarray(g._a).sum()):
            _found.append((node, i))
            return


def raise_if_found() -> None:
    """Called by the engine after each step while anomaly mode is on."""
    if _found:
        node, i = _found[0]
        _found.clear()
        stack = "".join(EXTRA.get(node, {}).get("traceback_", ["  (made outside anomaly mode)\n"]))
        warnings.warn(
            f"Error detected in {node.name()}. Traceback of forward call that caused the"
            f" error:\n{stack}",
            stacklevel=2,
        )
        raise RuntimeError(f"Function '{node.name()}' returned nan values in its {i}th output.")


def is_anomaly_enabled() -> bool:
    """Whether anomaly mode is on."""
    return TLS.anomaly


def is_anomaly_check_nan_enabled() -> bool:
    """Whether anomaly mode, where it is on, looks for NaN."""
    return _check[0]


def set_anomaly_enabled(mode: bool, check_nan: bool = True) -> None:
    """Switch anomaly mode on or off."""
    set_detect_anomaly(mode, check_nan)


class set_detect_anomaly:
    """Switch anomaly mode on or off: at once, and back at the end of a `with`."""

    def __init__(self, mode: bool, check_nan: bool = True) -> None:
        self._before = TLS.anomaly
        _check[0] = check_nan
        self._switch(mode)

    def _switch(self, on: bool) -> None:
        if on and not TLS.anomaly:
            _subscriptions.append(
                (events.node_created.subscribe(_remember), events.backward_step.subscribe(_inspect))
            )
        elif not on and TLS.anomaly:
            for s in _subscriptions.pop():
                s.close()
        TLS.anomaly = on

    def __enter__(self) -> None:
        pass

    def __exit__(self, *exc: object) -> None:
        self._switch(self._before)


class detect_anomaly(set_detect_anomaly):
    """Inside, a NaN in backward raises and names the forward call."""

    def __init__(self, check_nan: bool = True) -> None:
        self._before = TLS.anomaly
        _check[0] = check_nan

    def __enter__(self) -> None:
        self._switch(True)

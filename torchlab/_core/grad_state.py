"""What the tape and the calls ask of a thread: whether it records, and what else is switched.

Source: https://docs.pytorch.org/docs/2.13/notes/autograd.html#locally-disabling-gradient-computation
"""

from __future__ import annotations

import threading
from typing import Any

import numpy as np

_first_thread: list[int] = []  # the first thread that used a tape
OTHER_THREADS: list[int] = []  # an entry for each that did later; empty: nobody needs a lock


class GradState(threading.local):
    """Per thread: whether the tape records, and the other settings a call may depend on."""

    def __init__(self) -> None:
        (OTHER_THREADS if _first_thread else _first_thread).append(threading.get_ident())
        np.seterr(all="ignore")  # a new thread starts with NumPy's warnings on; PyTorch has none
        self.grad = True
        self.inference = False
        self.inference_grad = False  # whether inference mode was told to record; it never does
        self.autocast: Any = None
        self.function_modes: list[Any] = []
        self.dispatch_modes: list[Any] = []
        self.handling: list[bool] = []  # for each call below autograd: whether it is recorded above
        self.saved_hooks: list[Any] = []
        self.subclasses_off = 0  # how often __torch_function__ of subclasses was switched off
        self.graph_task = -1  # the number of the backward that this thread runs; -1: none
        self.all_leaves = True  # whether it, and those it runs in, bring all leaves gradients
        self.executes: Any = None  # the nodes of that backward, or a function that tells of one
        self.hooks_refused: str | None = None  # why saved_tensors_hooks may not be used
        self.multithreading = True  # see autograd.set_multithreading_enabled
        self.leaf_layout = True  # whether a leaf's gradient must have the leaf's strides

    @property
    def anomaly(self) -> bool:
        return bool(ANOMALY)


ANOMALY: list[bool] = []  # not empty: anomaly mode is on, in all threads
TLS = GradState()
NOGRAD: list[int] = []  # one entry per thread that has switched recording off


__all__ = ["ANOMALY", "NOGRAD", "OTHER_THREADS", "TLS", "GradState"]

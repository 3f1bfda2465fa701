"""Which modules are running."""

from __future__ import annotations

import pytest

import torchlab as tl
from torchlab.utils.module_tracker import ModuleTracker


class Seen(tl.nn.Module):
    """Notes what runs, forward and backward."""

    def __init__(self, log, tracker):
        super().__init__()
        self.log, self.tracker = log, tracker

    def note(self):
        self.log.append((sorted(self.tracker.parents), self.tracker.is_bw))

    def forward(self, x):
        self.note()
        x.register_hook(lambda g: self.note())
        return x * 2


def test_forward_and_backward():
    """As PyTorch 2.13 tells it of the same program."""
    log, tracker = [], ModuleTracker()
    model = tl.nn.Sequential(
        tl.nn.Linear(2, 2), Seen(log, tracker), tl.nn.Sequential(Seen(log, tracker))
    )
    with tracker:
        y = model(tl.ones(1, 2))
        assert tracker.parents == {"Global"}
        y.sum().backward()
        assert (tracker.parents, tracker.is_bw) == ({"Global"}, False)
    assert log == [
        (["Global", "Sequential", "Sequential.1"], False),
        (["Global", "Sequential", "Sequential.2", "Sequential.2.0"], False),
        (["Global", "Sequential", "Sequential.1"], True),
        (["Global", "Sequential", "Sequential.0"], True),
    ]
    model(tl.ones(1, 2))  # no tracker: no name
    assert log[-1] == (["Global"], False)


def test_a_module_that_fails_is_left():
    tracker = ModuleTracker()
    with tracker, pytest.raises(RuntimeError):
        tl.nn.Sequential(tl.nn.Linear(2, 2))(tl.ones(1, 3))
    assert tracker.parents == {"Global"}

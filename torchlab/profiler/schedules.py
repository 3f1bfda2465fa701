"""What a profiler does in each step, and what it looks at.

Source: https://docs.pytorch.org/docs/2.13/profiler.html
"""

from __future__ import annotations

import enum
import warnings
from collections.abc import Callable

from torchlab._core.backends import cuda as _gpus


class ProfilerActivity(enum.Enum):
    """What can be looked at. `PrivateUse1` is the simulated accelerator."""

    CPU = 0
    XPU = 1
    MTIA = 4
    CUDA = 2
    HPU = 3
    PrivateUse1 = 5


class ProfilerAction(enum.Enum):
    """What a profiler does in one step of a schedule."""

    NONE = 0
    WARMUP = 1
    RECORD = 2
    RECORD_AND_SAVE = 3
    DEVICE_STOPPED = 4


def supported_activities() -> set[ProfilerActivity]:
    """What can be looked at on this machine: the CPU, and GPUs if there are any."""
    found = {ProfilerActivity.CPU}
    if _gpus.device_count():
        found.add(ProfilerActivity.CUDA)
    return found


def schedule(
    *,
    wait: int,
    warmup: int,
    active: int,
    repeat: int = 0,
    skip_first: int = 0,
    skip_first_wait: int = 0,
) -> Callable[[int], ProfilerAction]:
    """A schedule for `profile`: after `skip_first` steps, cycles of `wait` steps at rest, `warmup`
    steps that are thrown away and `active` recorded ones; `repeat` cycles, 0 for no end.

    skip_first_wait: if not 0, the first cycle has no steps at rest. AssertionError where a number
    is out of range.
    """
    if min(wait, warmup, repeat, skip_first) < 0 or active <= 0:
        raise AssertionError(
            f"Invalid profiler schedule arguments. Got wait={wait} (need >= 0), warmup={warmup}"
            f" (need >= 0), active={active} (need > 0), repeat={repeat} (need >= 0),"
            f" skip_first={skip_first} (need >= 0)."
        )
    if warmup == 0:
        warnings.warn(
            "Profiler won't be using warmup, this can skew profiler results", stacklevel=2
        )

    def action(step: int) -> ProfilerAction:
        if step < 0:
            raise AssertionError(f"Step must be non-negative. Got {step}.")
        if step < skip_first:
            return ProfilerAction.NONE
        step -= skip_first
        if skip_first_wait:
            step += wait
        cycle, at = divmod(step, wait + warmup + active)
        if repeat and cycle >= repeat:
            return ProfilerAction.NONE
        if at < wait:
            return ProfilerAction.NONE
        if at < wait + warmup:
            return ProfilerAction.WARMUP
        last = wait + warmup + active - 1
        return ProfilerAction.RECORD if at < last else ProfilerAction.RECORD_AND_SAVE

    return action


__all__ = ["ProfilerAction", "ProfilerActivity", "schedule", "supported_activities"]

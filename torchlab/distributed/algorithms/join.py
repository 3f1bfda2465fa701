"""`with Join([model]):` lets processes with fewer inputs than the others go on taking part in what
the others do. One process has no others: nobody waits, and the hooks run once at the end.

Source: https://docs.pytorch.org/docs/2.13/distributed.algorithms.join.html
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

__all__ = ["Join", "JoinHook", "Joinable"]


class JoinHook:
    """What a process does that has no inputs left: `main_hook` for each step that another makes,
    `post_hook` when all have ended."""

    def main_hook(self) -> None:
        """Take part in one step."""

    def post_hook(self, is_last_joiner: bool) -> None:
        """All have ended; `is_last_joiner`: this process was among the last."""


class Joinable(ABC):
    """What may stand in a Join: a model or an optimizer whose steps the processes make together."""

    @abstractmethod
    def __init__(self) -> None:
        super().__init__()

    @abstractmethod
    def join_hook(self, **kwargs: Any) -> JoinHook:
        """The hook for `Join(..., **kwargs)`."""

    @property
    @abstractmethod
    def join_device(self) -> Any:
        """The device of what the processes send each other."""

    @property
    @abstractmethod
    def join_process_group(self) -> Any:
        """The group of the processes."""


class Join:
    """A block in which inputs may be uneven. ValueError for no joinables, TypeError for what is
    none."""

    def __init__(
        self, joinables: list[Any], enable: bool = True, throw_on_early_termination: bool = False,
        **kwargs: Any,
    ) -> None:  # fmt: skip
        if not joinables:
            raise ValueError("The join context manager requires at least one joinable")
        for x in joinables:
            if not hasattr(x, "join_hook"):
                raise TypeError(f"{type(x).__name__} has no join_hook(): it is no Joinable")
        self._joinables = joinables
        self._enable = enable
        self._hooks = [x.join_hook(**kwargs) for x in joinables] if enable else []

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        if kind is None:
            for hook in self._hooks:
                hook.post_hook(True)

    @staticmethod
    def notify_join_context(joinable: Any) -> None:
        """Tell the others that this process still has inputs: nobody listens."""

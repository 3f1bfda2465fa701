"""Calls of nn.Modules as events: what `with_modules` (and `with_stack`) adds."""

from __future__ import annotations

import time
from typing import Any

from torchlab.autograd.profiler_watch import MODULE_SPANS, USER, Collector, Record
from torchlab.nn.modules.module import (
    register_module_forward_hook,
    register_module_forward_pre_hook,
)


class ModuleSpans:
    """Hooks on all modules that make a record of each call, `nn.Module: Linear_0`: the number
    counts the modules of one class in the order of their first call."""

    def __init__(self, owner: Collector) -> None:
        self.owner = owner
        self._numbers: dict[str, dict[int, int]] = {}
        self._open: list[tuple[Any, Record]] = []
        self._hooks = [
            register_module_forward_pre_hook(self._begins),
            register_module_forward_hook(self._ends, always_call=True),
        ]

    def _begins(self, module: Any, args: Any) -> None:
        kind = type(module).__name__
        numbers = self._numbers.setdefault(kind, {})
        number = numbers.setdefault(id(module), len(numbers))
        record = self.owner.begin(f"nn.Module: {kind}_{number}", "python_function", USER)
        record.start = time.perf_counter_ns()
        self._open.append((module, record))

    def _ends(self, module: Any, args: Any, output: Any) -> None:
        if self._open and self._open[-1][0] is module:
            self._open.pop()[1].end = time.perf_counter_ns()

    def close(self) -> None:
        """Take the hooks back."""
        for hook in self._hooks:
            hook.remove()


MODULE_SPANS.append(ModuleSpans)

__all__ = ["ModuleSpans"]

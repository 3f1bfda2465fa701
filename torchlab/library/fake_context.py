"""`get_ctx`: what a fake rule may ask while it runs.

Source: https://docs.pytorch.org/docs/2.13/library.html#torch.library.get_ctx
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NoReturn


class FakeImplCtx:
    """What `get_ctx()` gives inside a fake rule."""

    def new_dynamic_size(self, *, min: int = 0, max: int | None = None) -> NoReturn:
        """A size that depends on values. torchlab's fake tensors have known shapes: as in PyTorch
        where dynamic shapes are off, the capture ends here, with RuntimeError."""
        raise RuntimeError(
            "new_dynamic_size: the output's shape depends on values, and fake tensors have fixed"
            " shapes; call such an operator outside of compiled code"
        )

    create_unbacked_symint = new_dynamic_size


class _Running(threading.local):
    ctx: Any = None


_running = _Running()


@contextmanager
def fake_context(on: bool) -> Iterator[None]:
    """Inside, if `on`, a fake rule is running."""
    before, _running.ctx = _running.ctx, FakeImplCtx() if on else _running.ctx
    try:
        yield
    finally:
        _running.ctx = before


def get_ctx() -> FakeImplCtx:
    """The context of the fake rule that is running; elsewhere one of its own."""
    return _running.ctx or FakeImplCtx()


__all__ = ["FakeImplCtx", "fake_context", "get_ctx"]

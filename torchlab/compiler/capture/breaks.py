"""What ends a capture."""

from __future__ import annotations

import sys
from typing import Any


class Break(BaseException):
    """Capture cannot go on: `reason`, and the user's line as 'file:line'.

    Not an Exception, so that a user's `except Exception` does not swallow it.
    """

    def __init__(self, reason: str, source: str = "") -> None:
        super().__init__(reason)
        self.reason = reason
        self.source = source or user_line() or ""


def user_line(f: Any = None) -> str | None:
    """The line of the user's code that is running, as 'file:line'; None if there is none."""
    f = sys._getframe(1) if f is None else f
    while f is not None:
        name = f.f_globals.get("__name__", "")
        if not (
            name == "torchlab" or name.startswith("torchlab.")
        ) and not f.f_code.co_filename.startswith("<torchlab"):
            return f"{f.f_code.co_filename}:{f.f_lineno}"
        f = f.f_back
    return None

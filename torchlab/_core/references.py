"""Who holds a storage or a node of the tape, and who called torchlab.

Counts of references tell whether a tensor has company without a list of its views; what a lone one
counts is measured here, as it differs from one Python to the next.
"""

from __future__ import annotations

import sys
from sys import getrefcount
from types import FrameType
from typing import Any


class _Lone:
    def __init__(self) -> None:
        self._s = object()


def references(s: Any) -> int:
    """How many hold a storage that the caller has in a variable, as `ALONE` counts."""
    return getrefcount(s)


def _references_of(t: Any) -> int:
    s = t._s
    return references(s)


def references_of_edge(t: Any) -> int:
    """How many hold the edge of a tensor, as `ALONE` counts."""
    e = t._e
    return references(e)


# What `getrefcount` gives in a function that got the storage of a tensor without views from a
# variable of its caller.
ALONE = _references_of(_Lone())


def caller() -> tuple[Any, int] | None:
    """(code, instruction) of the first frame outside torchlab, seen from the caller's caller."""
    f: FrameType | None = sys._getframe(2)
    while f is not None:
        name = f.f_globals.get("__name__", "")
        if not (name == "torchlab" or name.startswith("torchlab.")):
            return f.f_code, f.f_lasti
        f = f.f_back
    return None


__all__ = ["ALONE", "caller", "references", "references_of_edge"]

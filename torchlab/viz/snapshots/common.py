"""What all snapshots share: source places, and how numbers are written."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypedDict

VERSION = 1


class Source(TypedDict):
    """A line of the user's program."""

    file: str
    line: int
    code: str


def check(snapshot: Mapping[str, Any], kind: str) -> None:
    """Raise ValueError unless `snapshot` is of this `kind` and of a version that can be drawn."""
    if snapshot.get("kind") != kind:
        raise ValueError(f"expected a snapshot of kind {kind!r}, got {snapshot.get('kind')!r}")
    if snapshot.get("version") != VERSION:
        raise ValueError(
            f"the {kind} snapshot has version {snapshot.get('version')!r}; this torchlab draws "
            f"version {VERSION}"
        )


def bytes_text(n: int | None) -> str:
    """`1536` → `'1.5 KiB'`; exact below 1024."""
    if n is None:
        return "?"
    if abs(n) < 1024:
        return f"{n} B"
    value = float(n)
    for unit in ("KiB", "MiB", "GiB", "TiB"):
        value /= 1024
        if abs(value) < 1024 or unit == "TiB":
            break
    return (
        f"{value:.0f} {unit}" if value == int(value) or abs(value) >= 100 else f"{value:.1f} {unit}"
    )


def count_text(n: int, noun: str) -> str:
    """`1 node`, `2 nodes`, `2 entries`."""
    if n == 1:
        return f"1 {noun}"
    return f"{n:,} {noun[:-1]}ies" if noun.endswith("ry") else f"{n:,} {noun}s"


def shape_text(shape: Sequence[int] | None) -> str:
    """`[64, 10]`, and `scalar` for no dimensions, `?` where it is not known."""
    if shape is None:
        return "?"
    return f"[{', '.join(map(str, shape))}]" if len(shape) else "scalar"


def source_text(source: Source | None) -> str:
    """`train.py:12`, with the last part of the path only; empty if not known."""
    if not source:
        return ""
    return f"{source['file'].replace(chr(92), '/').rsplit('/', 1)[-1]}:{source['line']}"

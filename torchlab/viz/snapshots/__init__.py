"""Snapshots: plain data (only dict, list, str, int, float, bool, None) that says what a picture
shows.

Recorders make them, views draw them; they survive JSON, a saved widget and a committed notebook.
Every snapshot has `kind` and `version`.
"""

from __future__ import annotations

from torchlab.viz.snapshots.common import bytes_text, check, count_text, shape_text, source_text

__all__ = ["bytes_text", "check", "count_text", "shape_text", "source_text"]

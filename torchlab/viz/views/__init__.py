"""Views: pure functions from a snapshot to a drawing (SVG panels and the details of each part)."""

from __future__ import annotations

from torchlab.viz.views.common import Details, Drawing, static_svg

__all__ = ["Details", "Drawing", "static_svg"]

"""What a view returns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, TypedDict

from torchlab.viz import palette, svg


class Table(TypedDict):
    """A small table in the details."""

    title: str
    head: list[str]
    rows: list[list[str]]


class Details(TypedDict):
    """What is shown when a part is chosen: plain text only, a page escapes it."""

    title: str
    subtitle: str
    rows: list[list[str]]
    tables: list[Table]
    code: str
    warning: str


def details(
    title: str,
    subtitle: str = "",
    rows: Sequence[tuple[str, str]] = (),
    tables: Sequence[Table] = (),
    code: str = "",
    warning: str = "",
) -> Details:
    """A `Details` with its empty rows left out."""
    return Details(
        title=title,
        subtitle=subtitle,
        rows=[[key, value] for key, value in rows if value],
        tables=[t for t in tables if t["rows"]],
        code=code,
        warning=warning,
    )


@dataclass(slots=True)
class Drawing:
    """A picture before it is put on a page. `details` are by the `data-id` of the parts in
    `panels`."""

    title: str
    subtitle: str
    rows: list[list[svg.Panel]]
    details: dict[str, Details] = field(default_factory=dict)
    start: str = ""  # the part whose details are shown first

    def state(self, kind: str) -> dict[str, Any]:
        """What a page needs, as plain data; drawn with CSS variables (theme `"css"`)."""
        colours = palette.ink("css")
        return {
            "kind": kind,
            "title": self.title,
            "subtitle": self.subtitle,
            "panels": [
                {
                    "id": p.id,
                    "title": p.title,
                    "width": p.width + 2 * svg.MARGIN,
                    "stretch": p.stretch,
                    "svg": svg.panel_svg(p, colours),
                }
                for row in self.rows
                for p in row
            ],
            "details": self.details,
            "start": self.start,
        }


def static_svg(drawing: Drawing, theme: str) -> str:
    """The drawing as one SVG document for `"light"` or `"dark"` pages."""
    return svg.compose(drawing.rows, palette.ink(theme), drawing.title, drawing.subtitle)


def part(identity: str, label: str, body: str, extra: str = "") -> str:
    """A group that can be chosen by pointer and keyboard."""
    return (
        f'<g class="part" data-id="{svg.escape(identity)}" data-key="{svg.escape(identity)}"'
        ' tabindex="0"'
        f' role="button" aria-label="{svg.escape(label)}"{extra}>{body}</g>'
    )

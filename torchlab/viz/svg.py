"""Writing SVG: escaping, the width of text, shapes, and panels that make up a picture.

Text is never measured by a browser here. A fixed-width font is asked for and a slightly generous
width per character assumed, so that a label stays inside its box with any of the usual fonts.
"""

from __future__ import annotations

import html
import math
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass

from torchlab.viz.palette import Ink

MONO = "'JetBrains Mono','DejaVu Sans Mono',Menlo,Consolas,'Liberation Mono',monospace"
SANS = "system-ui,-apple-system,'Segoe UI','DejaVu Sans',sans-serif"
FONT_SIZE = 12.0
CHAR = 0.615  # width of a fixed-width character, in font sizes (DejaVu Sans Mono: 0.602)


def escape(text: object) -> str:
    """`text` for SVG and HTML, in content and in attributes; control characters, which XML does not
    allow, become a replacement character."""
    cleaned = "".join(
        (
            c
            if c in "\t\n"
            or (c >= " " and c not in "\x7f\ufffe\uffff" and not "\ud800" <= c <= "\udfff")
            else "\ufffd"
        )
        for c in str(text)
    )
    return html.escape(cleaned, quote=True)


def _columns(char: str) -> int:
    if unicodedata.combining(char):
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1


def text_width(text: str, size: float = FONT_SIZE) -> float:
    """The width of one line of fixed-width text, in pixels."""
    return sum(map(_columns, text)) * size * CHAR


def fit(text: str, width: float, size: float = FONT_SIZE) -> str:
    """`text`, cut with an ellipsis to at most `width` pixels."""
    if text_width(text, size) <= width:
        return text
    room = width - size * CHAR
    used, kept = 0.0, []
    for char in text:
        used += _columns(char) * size * CHAR
        if used > room:
            break
        kept.append(char)
    return "".join(kept).rstrip() + "…"


def wrap(text: str, width: float, size: float = FONT_SIZE) -> list[str]:
    """`text` in lines of at most `width` pixels, broken at spaces where there are any."""
    limit = max(8, int(width / (size * CHAR)))
    lines: list[str] = []
    line = ""
    for word in text.split():
        while len(word) > limit:
            head, word = word[: limit - 1] + "…", word[limit - 1 :]
            lines += [line, head] if line else [head]
            line = ""
        if line and len(line) + 1 + len(word) > limit:
            lines.append(line)
            line = word
        else:
            line = f"{line} {word}" if line else word
    return [*lines, line] if line or not lines else lines


def text(
    x: float,
    y: float,
    content: str,
    fill: str,
    *,
    size: float = FONT_SIZE,
    anchor: str = "start",
    weight: str = "",
    sans: bool = False,
    width: float | None = None,
    extra: str = "",
    halo: str = "",
) -> str:
    """A line of text with its baseline at `y`; with `width` it is cut, the whole in a tooltip;
    `halo` is a colour around the letters that keeps lines below them off."""
    shown = content if width is None else fit(content, width, size)
    tip = f"<title>{escape(content)}</title>" if shown != content else ""
    attributes = f' text-anchor="{anchor}"' if anchor != "start" else ""
    attributes += f' font-weight="{weight}"' if weight else ""
    attributes += f' font-family="{SANS}"' if sans else ""
    if halo:
        attributes += (
            f' stroke="{halo}" stroke-width="5" stroke-linejoin="round" paint-order="stroke"'
        )
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size:g}" fill="{fill}"{attributes}{extra}'
        f' xml:space="preserve">{tip}{escape(shown)}</text>'
    )


def rect(
    x: float,
    y: float,
    width: float,
    height: float,
    fill: str,
    stroke: str = "none",
    *,
    radius: float = 0.0,
    stroke_width: float = 1.0,
    extra: str = "",
) -> str:
    """A rectangle."""
    line = f' stroke="{stroke}" stroke-width="{stroke_width:g}"' if stroke != "none" else ""
    corner = f' rx="{radius:g}"' if radius else ""
    return (
        f'<rect x="{x:.1f}" y="{y:.1f}" width="{max(width, 0):.1f}" height="{max(height, 0):.1f}"'
        f'{corner} fill="{fill}"{line}{extra}/>'
    )


def line(
    x0: float, y0: float, x1: float, y1: float, stroke: str, width: float = 1.0, extra: str = ""
) -> str:
    """A straight line."""
    return (
        f'<line x1="{x0:.1f}" y1="{y0:.1f}" x2="{x1:.1f}" y2="{y1:.1f}" stroke="{stroke}"'
        f' stroke-width="{width:g}"{extra}/>'
    )


def arrow(path: str, end: tuple[float, float], stroke: str, extra: str = "") -> str:
    """A curve with a small head that points down at `end` (no markers: their ids would collide when
    a page holds several pictures)."""
    x, y = end
    head = f"M{x - 3.5:.1f} {y - 6.5:.1f}L{x:.1f} {y:.1f}L{x + 3.5:.1f} {y - 6.5:.1f}Z"
    return (
        f'<g class="edge"{extra}>'
        f'<path d="{path}" fill="none" stroke="{stroke}" stroke-width="1.3"/>'
        f'<path d="{head}" fill="{stroke}" stroke="none"/></g>'
    )


def legend(x: float, y: float, entries: Sequence[tuple[str, str, str]], colours: Ink) -> str:
    """A row of swatches `(fill, stroke, label)` from `x` on, its text's baseline at `y`."""
    out = []
    for fill, stroke, label in entries:
        out.append(rect(x, y - 9, 12, 10, fill, stroke, radius=2))
        out.append(text(x + 17, y, label, colours["muted"], size=11))
        x += 17 + text_width(label, 11) + 16
    return "".join(out)


@dataclass(frozen=True, slots=True)
class Panel:
    """A part of a picture: SVG `body` in a field of `width` × `height` pixels, below a title."""

    id: str
    title: str
    width: float
    height: float
    body: str
    stretch: bool = False  # may be enlarged a little to fill a page


TITLE_HEIGHT = 26.0
MARGIN = 14.0


def frame(
    width: float, height: float, body: str, colours: Ink, label: str, natural: bool = True
) -> str:
    """A whole SVG document of the given size in pixels with its background."""
    w, h = math.ceil(width), math.ceil(height)
    size = f' width="{w}" height="{h}"' if natural else f' data-w="{w}" data-h="{h}"'
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {w} {h}"{size}'
        f' role="img" aria-label="{escape(label)}" font-family="{MONO}" font-size="{FONT_SIZE:g}">'
        f"{rect(0, 0, w, h, colours['bg'])}{body}</svg>"
    )


def panel_svg(panel: Panel, colours: Ink) -> str:
    """One panel as an SVG document without its title (a page shows that itself)."""
    body = f'<g transform="translate({MARGIN:g} {MARGIN:g})">{panel.body}</g>'
    return frame(
        panel.width + 2 * MARGIN,
        panel.height + 2 * MARGIN,
        body,
        colours,
        panel.title,
        natural=False,
    )


def compose(rows: Sequence[Sequence[Panel]], colours: Ink, title: str, subtitle: str = "") -> str:
    """A static picture: rows of panels, each under its title."""
    body = [text(MARGIN, 24, title, colours["ink"], size=15, weight="600", sans=True)]
    y = 34.0
    if subtitle:
        body.append(text(MARGIN, 43, subtitle, colours["muted"], size=12, sans=True))
        y = 54.0
    widest = MARGIN * 2 + max(
        text_width(title, 15), text_width(subtitle, 12), *(_row_width(row) for row in rows), 0.0
    )
    for row in rows:
        if not row:
            continue
        x = MARGIN
        for panel in row:
            body.append(
                text(x, y + 16, panel.title, colours["muted"], size=12, weight="600", sans=True)
            )
            body.append(
                f'<g transform="translate({x:.1f} {y + TITLE_HEIGHT:.1f})"'
                f' data-panel="{escape(panel.id)}">'
                f"{panel.body}</g>"
            )
            x += _wide(panel) + 2 * MARGIN
        y += TITLE_HEIGHT + max(p.height for p in row) + MARGIN
    return frame(widest, y + 2, "".join(body), colours, title)


def _row_width(row: Sequence[Panel]) -> float:
    return sum(map(_wide, row)) + 2 * MARGIN * (len(row) - 1)


def _wide(panel: Panel) -> float:
    """The room that a panel and its title need."""
    return max(panel.width, text_width(panel.title))

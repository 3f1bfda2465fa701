"""A picture as one offline HTML page: the renderer of the widgets, inlined, and its state as JSON.

The page loads nothing. The snapshot is in it too, so that a page sent to a colleague can be opened
again as a picture (`read`).
"""

from __future__ import annotations

import html
import json
import math
import pathlib
import re
from functools import cache
from typing import Any

from torchlab.viz import palette

STATIC = pathlib.Path(__file__).parent / "widgets" / "static"
_SNAPSHOT = re.compile(
    r'<script type="application/json" id="tlviz-snapshot">(.*?)</script>', re.DOTALL
)

_SHIM = """
const state = JSON.parse(document.getElementById("tlviz-state").textContent);
const listeners = new Set();
const model = {
  state, sent: [],
  get(name) { return name === "state" ? this.state : undefined; },
  on(event, callback) { if (event === "change:state") listeners.add(callback); },
  off(event, callback) { listeners.delete(callback); },
  send(message) { this.sent.push(message); },
  set_state(next) { this.state = next; listeners.forEach((f) => f()); },
};
globalThis.tlviz = model;
renderer.render({ model, el: document.getElementById("tlviz-root") });
"""


def finite(value: Any) -> Any:
    """`value` with NaN and infinities as texts, since JSON has none; itself if it has none."""
    try:
        json.dumps(value, allow_nan=False)  # far quicker than a walk
    except ValueError:
        return _finite(value)
    return value


def _finite(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, dict):
        return {k: _finite(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(v) for v in value]
    return value


def json_for_html(value: Any) -> str:
    """JSON that can stand inside a `<script>` element, whatever strings it holds."""
    try:
        text = json.dumps(value, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    except ValueError:
        text = json.dumps(_finite(value), ensure_ascii=True, separators=(",", ":"))
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")


# What a renderer needs beside common.js and its own file.
PARTS = {"backward": ("layered.js", "timeline.js"), "loader": ("timeline.js", "lanes.js")}
SHEETS = ("style.css", "loader.css")


@cache
def module_source(kind: str) -> str:
    """The renderer of one kind of picture as a single ES module (the shared part comes first)."""
    files = ["common.js", *PARTS.get(kind, ()), f"{kind}.js"]
    return "\n".join((STATIC / file).read_text(encoding="utf-8") for file in files)


@cache
def style_source() -> str:
    """The style sheet of all pictures, with the palette's variables."""
    sheets = ((STATIC / file).read_text(encoding="utf-8") for file in SHEETS)
    return palette.css_variables() + "\n".join(sheets)


def page(state: dict[str, Any], snapshot: dict[str, Any]) -> str:
    """The whole page for `state` (a `Drawing.state`) and the snapshot it was drawn from."""
    module = module_source(state["kind"]).replace("export default", "const renderer =")
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        '<meta http-equiv="Content-Security-Policy" content="default-src \'none\'; '
        "style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:\">"
        f"<title>{html.escape(state['title'])}</title>\n<style>{style_source()}"
        "html{background:#fff}@media (prefers-color-scheme:dark){html{background:#15181e}}"
        "body{margin:16px}</style></head>\n"
        '<body><div id="tlviz-root"></div>\n'
        f'<script type="application/json" id="tlviz-state">{json_for_html(state)}</script>\n'
        f'<script type="application/json" id="tlviz-snapshot">{json_for_html(snapshot)}</script>\n'
        f'<script type="module">\n{module}\n{_SHIM}</script></body></html>\n'
    )


def read(source: str) -> dict[str, Any]:
    """The snapshot inside a page that `page` made.

    Raises:
        ValueError: the text is not such a page.
    """
    found = _SNAPSHOT.search(source)
    if found is None:
        raise ValueError("this page holds no torchlab snapshot")
    snapshot = json.loads(found.group(1))
    if not isinstance(snapshot, dict) or "kind" not in snapshot:
        raise ValueError("this page holds no torchlab snapshot")
    return snapshot

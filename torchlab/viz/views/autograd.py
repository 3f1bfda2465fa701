"""The autograd graph: a box per node of the tape, in the order in which backward visits them."""

from __future__ import annotations

import math
from typing import Any

from torchlab.viz import palette, svg
from torchlab.viz.layout import Box, Layout, layered
from torchlab.viz.palette import Ink
from torchlab.viz.snapshots.autograd import AutogradSnapshot, Node, saved_bytes, stale
from torchlab.viz.snapshots.common import bytes_text, check, count_text, shape_text, source_text
from torchlab.viz.views.common import Drawing, details, part, static_svg

MAX_LABEL = 230.0
LINE = 16.0


def norm_text(value: float | str | None) -> str:
    """A gradient norm in three digits; '' where backward has not been."""
    if value is None:
        return ""
    return value if isinstance(value, str) else f"{value:.3g}"


def _is_finite(value: float | str | None) -> bool:
    return isinstance(value, (int, float)) and math.isfinite(value)


def _heat_range(snapshot: AutogradSnapshot) -> tuple[float, float] | None:
    """Lowest and highest log10 of the finite, non-zero gradient norms."""
    norms = [n["grad_norm"] for n in snapshot["nodes"]]
    logs = [math.log10(v) for v in norms if isinstance(v, float | int) and 0 < v < math.inf]
    return (min(logs), max(logs)) if logs else None


def _heat(value: float | str | None, span: tuple[float, float] | None) -> str:
    if value is None or span is None:
        return "line"
    if not _is_finite(value):
        return "error"
    if float(value) <= 0:
        return "h0"
    low, high = span
    return palette.heat((math.log10(float(value)) - low) / (high - low) if high > low else 0.5)


def _lines(node: Node) -> list[str]:
    """The text of a box: name, shape, what it saves or how large its gradient is."""
    leaf = node["kind"] == "leaf"
    first = node["label"] or node["name"] if leaf else node["name"]
    info = node["outputs"] if not leaf else node["inputs"] or node["outputs"]
    second = f"{shape_text(info[0]['shape'])} {info[0]['dtype']}" if info else ""
    third = []
    if node["saved"]:
        kept = [s for s in node["saved"] if not s["freed"]]
        total = sum(s["bytes"] for s in kept)
        third.append(f"saves {bytes_text(total)}" if kept else "saved: freed")
    if node["grad_norm"] is not None:
        third.append(f"‖g‖ {norm_text(node['grad_norm'])}")
    return [first, second, " · ".join(third)]


def _size(lines: list[str]) -> tuple[float, float]:
    width = max(svg.text_width(lines[0], 12), *(svg.text_width(t, 11) for t in lines[1:]))
    return min(width, MAX_LABEL) + 30, 14 + LINE * sum(bool(t) for t in lines)


def _changed(node: Node) -> bool:
    return any(stale(s) for s in node["saved"])


def _box(node: Node, box: Box, lines: list[str], span: tuple[float, float] | None, c: Ink) -> str:
    kind = "leaf" if node["kind"] == "leaf" else "op"
    bad = _changed(node)
    running = node["state"] == "running"
    stroke = c["run"] if running else c["warn"] if bad else c[f"{kind}-line"]
    x, y = box.x, box.y
    out = [
        svg.rect(
            x,
            y,
            box.width,
            box.height,
            c[kind],
            stroke,
            radius=9 if kind == "leaf" else 4,
            stroke_width=2.4 if running or bad else 1.2,
            extra=' class="shape"',
        ),
        svg.rect(x + 5, y + 7, 4, box.height - 14, c[_heat(node["grad_norm"], span)], radius=2),
    ]
    baseline = y + 7 + 12
    for i, content in enumerate(lines):
        if not content:
            continue
        size, fill = (12.0, c["ink"]) if i == 0 else (11.0, c["muted"])
        if i == 2 and not (node["grad_norm"] is None or _is_finite(node["grad_norm"])):
            fill = c["error"]
        out.append(
            svg.text(
                x + 16,
                baseline,
                content,
                fill,
                size=size,
                weight="600" if i == 0 else "",
                width=box.width - 24,
            )
        )
        baseline += LINE
    if node["state"] == "done":
        out.append(f'<circle cx="{box.right - 9:.1f}" cy="{y + 9:.1f}" r="3" fill="{c["good"]}"/>')
    if bad:
        out.append(
            svg.text(box.right - 7, box.bottom - 6, "!", c["warn"], weight="700", anchor="end")
        )
    return part(node["id"], " ".join(t for t in lines if t), "".join(out))


def _details(node: Node, snapshot: AutogradSnapshot) -> Any:
    source = node["source"]
    after = [e["dst"] for e in snapshot["edges"] if e["src"] == node["id"]]
    names = {n["id"]: n["label"] or n["name"] for n in snapshot["nodes"]}
    saved = [
        [
            s["name"],
            f"{shape_text(s['shape'])} {s['dtype']}",
            "freed" if s["freed"] else bytes_text(s["bytes"]),
            s["storage"],
            f"{s['version']} → {s['current_version']}" if stale(s) else str(s["version"]),
        ]
        for s in node["saved"]
    ]
    changed = [s["name"] for s in node["saved"] if stale(s)]
    infos = {
        side: ", ".join(f"{shape_text(i['shape'])} {i['dtype']}" for i in node[key])  # type: ignore[literal-required]
        for side, key in (("inputs", "inputs"), ("outputs", "outputs"))
    }
    return details(
        node["label"] or node["name"],
        f"{node['id']} · {node['name']}" if node["label"] else node["id"],
        [
            ("operator", node["op"]),
            ("module", node["module"]),
            ("inputs", infos["inputs"]),
            ("outputs", infos["outputs"]),
            ("gradient norm", norm_text(node["grad_norm"]) or "not computed yet"),
            ("backward", node["state"] + (f", {node['runs']} times" if node["runs"] > 1 else "")),
            ("next", ", ".join(names[i] for i in after)),
            ("line", source_text(source)),
        ],
        [
            {
                "title": "Saved for backward",
                "head": ["name", "tensor", "bytes", "storage", "version"],
                "rows": saved,
            }
        ],
        code=source["code"] if source else "",
        warning=(
            f"{', '.join(changed)} changed in place after it was saved: backward will refuse"
            if changed
            else ""
        ),
    )


def arrange(snapshot: AutogradSnapshot) -> Layout:
    """Where the boxes go."""
    sizes = {node["id"]: _size(_lines(node)) for node in snapshot["nodes"]}
    return layered(sizes, [(e["src"], e["dst"]) for e in snapshot["edges"]], rank_gap=26)


def draw(snapshot: AutogradSnapshot, theme: str = "light") -> Drawing:
    """The drawing of an autograd snapshot.

    Raises:
        ValueError: another kind or version of snapshot.
    """
    check(snapshot, "autograd")
    c = palette.ink(theme)
    placed = arrange(snapshot)
    span = _heat_range(snapshot)
    top = 30.0
    body = [f'<g transform="translate(0 {top:g})">']
    for route in placed.routes:
        body.append(
            svg.arrow(
                route.path(),
                route.points[-1],
                c["edge"],
                f' data-src="{svg.escape(route.src)}" data-dst="{svg.escape(route.dst)}"',
            )
        )
    for node in snapshot["nodes"]:
        body.append(_box(node, placed.nodes[node["id"]], _lines(node), span, c))
    body.append("</g>")
    key, width = _legend(span, snapshot, c)
    panel = svg.Panel(
        "graph",
        "Backward runs from top to bottom",
        max(placed.width, width),
        placed.height + top,
        key + "".join(body),
    )
    ops = sum(n["kind"] != "leaf" for n in snapshot["nodes"])
    subtitle = (
        f"{count_text(ops, 'operation')} · "
        f"{count_text(len(snapshot['nodes']) - ops, 'leaf tensor')} · "
        f"{bytes_text(saved_bytes(snapshot))} saved for backward"
    )
    return Drawing(
        "Autograd graph",
        subtitle,
        [[panel]],
        {node["id"]: _details(node, snapshot) for node in snapshot["nodes"]},
        snapshot["roots"][0] if snapshot["roots"] else "",
    )


def _legend(
    span: tuple[float, float] | None, snapshot: AutogradSnapshot, c: Ink
) -> tuple[str, float]:
    entries = [(c["op"], c["op-line"], "operation"), (c["leaf"], c["leaf-line"], "leaf")]
    states = {n["state"] for n in snapshot["nodes"]}
    if "running" in states:
        entries.append((c["bg"], c["run"], "running"))
    if "done" in states:
        entries.append((c["good"], "none", "done"))
    out = [svg.legend(0, 10, entries, c)]
    x = sum(33 + svg.text_width(label, 11) for _, _, label in entries)
    if span:
        low, high = (f"{10**v:.2g}" for v in span)
        out.append(svg.text(x, 10, f"‖g‖ {low}", c["muted"], size=11))
        x += svg.text_width(f"‖g‖ {low}", 11) + 6
        for i in range(palette.HEATS):
            out.append(svg.rect(x, 1, 12, 10, c[f"h{i}"]))
            x += 12
        out.append(svg.text(x + 6, 10, high, c["muted"], size=11))
        x += 6 + svg.text_width(high, 11)
    return "".join(out), x


def autograd_svg(snapshot: AutogradSnapshot, theme: str = "light") -> str:
    """An autograd snapshot as one SVG document."""
    return static_svg(draw(snapshot, theme), theme)

"""The data of a page that plays a recorded backward: no markup, short keys for many steps."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from torchlab.viz import palette
from torchlab.viz.playback import Playback, dims_text, origin_text, stats_text, total
from torchlab.viz.snapshots.backward import BackwardNode, BackwardSnapshot, Size
from torchlab.viz.snapshots.common import bytes_text, shape_text, source_text
from torchlab.viz.views.common import Details, Drawing, details
from torchlab.viz.views.folding import fold, opened, order_of

HELD_COLOURS = ("op-line", "run", "leaf-line")  # saved tensors, gradients on their way, .grad


def held(row: Mapping[str, Any]) -> list[int]:
    """What is held after a step, or before the first: saved tensors, gradients on their way, the
    leaves' gradients; in bytes."""
    return [row["saved_bytes"], row["flight_bytes"], row["leaf_bytes"]]


@dataclass(slots=True)
class PlayerDrawing(Drawing):
    """A drawing whose page plays the recording: the page draws it from data."""

    player: dict[str, Any] = field(default_factory=dict)

    def state(self, kind: str) -> dict[str, Any]:
        """What a page needs, as plain data: no markup."""
        return {
            "kind": kind,
            "title": self.title,
            "subtitle": self.subtitle,
            "panels": [],
            "details": self.details,
            "start": self.start,
            "player": self.player,
        }


def log_span(snapshot: BackwardSnapshot) -> tuple[float, float] | None:
    """Lowest and highest log10 of the finite, non-zero norms of all steps."""
    found = [math.log10(v) for s in snapshot["steps"] if isinstance(v := total(s), float) and v > 0]
    return (min(found), max(found)) if found else None


def heat(value: float | str | None, span: tuple[float, float] | None) -> str:
    """The colour's name for a norm: 'line' for none, 'error' for what is not finite."""
    if value is None or span is None:
        return "error" if isinstance(value, str) else "line"
    if isinstance(value, str):
        return "error"
    if value <= 0:
        return "h0"
    low, high = span
    return palette.heat((math.log10(value) - low) / (high - low) if high > low else 0.5)


def solid(colour: str) -> str:
    """What is not finite must not be taken for the ramp's red end: in small fields it has the
    text's colour."""
    return "ink" if colour == "error" else colour


def worst(sizes: Sequence[Size]) -> Size:
    """The largest of some norms; one that is not finite wins; None if there is none."""
    numbers = [float(s) for s in sizes if isinstance(s, (int, float))]
    odd = next((s for s in sizes if isinstance(s, str)), None)
    return odd if odd is not None else max(numbers) if numbers else None


def norm_text(value: float | str | None) -> str:
    """A norm in three digits; '' for none."""
    if value is None:
        return ""
    return (
        {"nan": "NaN", "inf": "Inf"}.get(value, value) if isinstance(value, str) else f"{value:.3g}"
    )


def shape_of(node: BackwardNode) -> str:
    infos = node["outputs"]
    return f"{shape_text(infos[0]['shape'])} {infos[0]['dtype']}" if infos else ""


def kept_bytes(node: BackwardNode) -> int:
    return sum(s["bytes"] for s in node["saved"])


def node_details(node: BackwardNode, play: Playback, notes: Mapping[str, list[str]]) -> Details:
    source = node["source"]
    infos = {
        side: ", ".join(f"{shape_text(i['shape'])} {i['dtype']}" for i in infos_)
        for side, infos_ in (("inputs", node["inputs"]), ("outputs", node["outputs"]))
    }
    saved = [
        [s["name"], f"{shape_text(s['shape'])} {s['dtype']}", bytes_text(s["bytes"]), s["storage"]]
        for s in node["saved"]
    ]
    return details(
        node["label"] or node["name"],
        " · ".join(t for t in (node["id"], node["name"] if node["label"] else "") if t),
        [
            ("operator", node["op"]),
            ("module", node["module"]),
            ("inputs", infos["inputs"]),
            ("outputs", infos["outputs"]),
            ("fed", "\n".join(stats_text(s) for s in node["fed"])),
            ("sums", "\n".join(notes.get(f"sum {node['id']}", []))),
            ("line", source_text(source)),
        ],
        [
            {
                "title": "Saved for backward",
                "head": ["name", "tensor", "bytes", "storage"],
                "rows": saved,
            }
        ],
        code=source["code"] if source else "",
        warning=" ".join(notes.get(node["id"], [])),
    )


def node_notes(snapshot: BackwardSnapshot, play: Playback) -> dict[str, list[str]]:
    """What is to be said of single nodes: where NaN starts, writes, sums (under 'sum <id>')."""
    notes: dict[str, list[str]] = {}
    for origin in snapshot["origins"]:
        notes.setdefault(origin["node"], []).append(origin_text(origin))
    for write in snapshot["writes"]:
        wrote = write["written"]
        line = f", by {source_text(wrote)}: {wrote['code']}" if wrote else ""
        notes.setdefault(write["node"], []).append(
            f"{write['name']} was changed in place after it was saved{line}."
        )
    for b in snapshot["broadcasts"]:
        notes.setdefault(f"sum {b['node']}", []).append(
            f"{play.name(b['into'])} {shape_text(b['shape'])} was broadcast to"
            f" {shape_text(b['to'])}: its gradient is summed here over {dims_text(b['dims'])},"
            f" {b['each']:,} into each"
        )
    error = snapshot["error"]
    if error and error["node"]:
        notes.setdefault(error["node"], []).append(f"Backward stopped here: {error['text']}")
    return notes


def player(snapshot: BackwardSnapshot, play: Playback, span: Any) -> dict[str, Any]:
    """What the page plays, in short keys: thousands of steps are sent."""
    groups = fold(snapshot)
    are_open = opened(groups)
    index = {n["id"]: i for i, n in enumerate(snapshot["nodes"])}
    order = order_of(snapshot)
    owner = {c: g.id for g in groups.values() for c in g.children}
    return {
        "nodes": [
            {
                "id": n["id"],
                "leaf": n["kind"] == "leaf",
                "name": n["label"] or n["name"],
                "find": " ".join((n["name"], n["label"], n["op"], n["module"])).lower(),
                "shape": shape_of(n),
                "bytes": kept_bytes(n),
                "group": owner.get(n["id"], ""),
                "order": order[n["id"]],
            }
            for n in snapshot["nodes"]
        ],
        "groups": [
            {"id": g.id, "label": g.label, "parent": g.parent, "size": g.size}
            for g in groups.values()
            if g.id
        ],
        "open": sorted(are_open - {""}),
        "edges": [[index[e["src"]], index[e["dst"]]] for e in snapshot["edges"]],
        "steps": [
            {
                "n": index[s["node"]],
                "size": total(s),
                "got": [_flow(g, index) for g in s["received"] if g is not None],
                "sent": [_flow(g, index) for g in s["sent"] if g is not None],
                "leaf": s["leaf"] and {"first": s["leaf"]["first"], "norm": s["leaf"]["norm"]},
                "freed": [
                    [f["name"], bytes_text(f["bytes"]), bool(f["returned"])] for f in s["freed"]
                ],
                "held": held(s),
                "text": play.describe(i + 1),
            }
            for i, s in enumerate(snapshot["steps"])
        ],
        "begin": held(snapshot["start"]),
        "roots": [index[r] for r in snapshot["roots"] if r in index],
        "position": play.position,
        "span": list(span) if span else None,
        "marks": [
            {
                "what": o["what"],
                "where": o["where"],
                "node": index.get(o["node"], -1),
                "path": [index[p["node"]] for p in o["path"] if p["node"] in index],
                "text": origin_text(o),
            }
            for o in snapshot["origins"]
        ],
        "stopped": snapshot["error"]
        and {
            "node": index.get(snapshot["error"]["node"], -1),
            "text": f"Backward stopped: {snapshot['error']['text']}",
        },
    }


def _flow(g: Any, index: Mapping[str, int]) -> list[Any]:
    summed = f"summed over {dims_text(g['summed'])}" if g["summed"] else ""
    return [index.get(g["to"], -1), shape_text(g["shape"]), g["norm"], summed]

"""A recorded backward: the graph at one step, and what is held over all steps."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from torchlab.viz import palette, svg
from torchlab.viz.layout import Box, nested
from torchlab.viz.palette import Ink
from torchlab.viz.playback import (
    NodeState,
    Playback,
    total,
)
from torchlab.viz.snapshots.backward import BackwardNode, BackwardSnapshot
from torchlab.viz.snapshots.common import bytes_text, check, count_text
from torchlab.viz.views.common import Drawing, part, static_svg
from torchlab.viz.views.folding import fold, members, opened, order_of, shown
from torchlab.viz.views.player import (
    HELD_COLOURS,
    PlayerDrawing,
    heat,
    held,
    kept_bytes,
    log_span,
    node_details,
    node_notes,
    norm_text,
    player,
    shape_of,
    solid,
    worst,
)

MAX_LABEL = 236.0
LINE = 16.0


def _lines(node: BackwardNode, now: NodeState, added: bool) -> list[str]:
    """The text of a box at one position."""
    size = norm_text(now.norm)
    if node["kind"] == "leaf":
        third = f"‖g‖ {size} · {'added' if added else 'first'}" if size else ""
        return [node["label"] or node["name"], shape_of(node), third]
    kept = kept_bytes(node)
    saves = f"{'freed' if now.freed else 'saves'} {bytes_text(kept)}" if kept else ""
    return [
        node["name"],
        shape_of(node),
        " · ".join(t for t in (f"‖g‖ {size}" * bool(size), saves) if t),
    ]


def _size(lines: Sequence[str]) -> tuple[float, float]:
    width = max(svg.text_width(lines[0], 12), *(svg.text_width(t, 11) for t in lines[1:]))
    return min(width, MAX_LABEL) + 34, 14 + LINE * 3


class _Picture:
    """The static drawing at the recording's position, folded as it opens."""

    def __init__(self, snapshot: BackwardSnapshot, theme: str) -> None:
        self.snapshot = snapshot
        self.c: Ink = palette.ink(theme)
        self.play = Playback(snapshot)
        self.span = log_span(snapshot)
        self.groups = fold(snapshot)
        self.open = opened(self.groups)
        self.box_of = shown(self.groups, self.open)
        self.owner = {c: g.id for g in self.groups.values() for c in g.children}
        self.nodes = {n["id"]: n for n in snapshot["nodes"]}
        self.bad = {
            place["node"] for o in snapshot["origins"] for place in o["path"] if place["node"]
        }
        self.bad_start = {o["node"]: o["what"] for o in snapshot["origins"] if o["node"]}

    def _now(self, identity: str) -> NodeState:
        return self.play.node_state(identity, self.play.position)

    def lines(self, identity: str) -> list[str]:
        """The text of a node's or a folded group's box."""
        if identity in self.nodes:
            now = self._now(identity)
            return _lines(self.nodes[identity], now, self._added(identity))
        inside = members(self.groups, identity)
        ran = sum(self._now(i).runs > 0 for i in inside)
        sizes = [self._now(i).norm for i in inside]
        size = worst(sizes)
        text = f" · max ‖g‖ {norm_text(size)}" if size is not None else ""
        return [
            self.groups[identity].label,
            count_text(len(inside), "node") + ", folded",
            f"{ran} of {len(inside)} ran{text}",
        ]

    def _added(self, identity: str) -> bool:
        steps = self.snapshot["steps"][: self.play.position]
        mine = [s for s in steps if s["node"] == identity and s["leaf"]]
        return bool(mine and mine[-1]["leaf"] and not mine[-1]["leaf"]["first"])

    def _fill(self, identity: str) -> str:
        if identity in self.nodes:
            return heat(self._now(identity).norm, self.span)
        sizes = [self._now(i).norm for i in members(self.groups, identity)]
        return heat(worst(sizes), self.span)

    def box(self, identity: str, box: Box) -> str:
        """One box."""
        c, lines = self.c, self.lines(identity)
        node = self.nodes.get(identity)
        kind = "group" if node is None else "leaf" if node["kind"] == "leaf" else "op"
        status = "waiting" if node is None else self._now(identity).status
        marked = identity in self.bad
        stroke = c["error"] if marked else c["run"] if status == "running" else c[f"{kind}-line"]
        out, hot = [], self._fill(identity)
        if node is None:
            out.append(
                svg.rect(box.x + 4, box.y + 4, box.width, box.height, c[kind], stroke, radius=4)
            )
        out += [
            svg.rect(
                box.x, box.y, box.width, box.height, c[kind if hot == "line" else "bg"], stroke,
                radius=9 if kind == "leaf" else 4,
                stroke_width=2.4 if marked or status == "running" else 1.2,
                extra=' class="shape"',
            ),
            svg.rect(box.x + 5, box.y + 7, 6, box.height - 14, c[solid(hot)], radius=2),
        ]  # fmt: skip
        if hot != "line":
            radius = 9 if kind == "leaf" else 4
            veil = ' fill-opacity="0.24"'
            out.insert(
                -1, svg.rect(box.x, box.y, box.width, box.height, c[hot], radius=radius, extra=veil)
            )
        for i, content in enumerate(lines):
            if content:
                out.append(
                    svg.text(
                        box.x + 18,
                        box.y + 19 + LINE * i,
                        content,
                        c["muted"] if i else c["ink"],
                        size=11.0 if i else 12.0,
                        weight="" if i else "600",
                        width=box.width - 28,
                    )
                )
        if identity in self.bad_start:
            word = norm_text(self.bad_start[identity])
            out.append(
                svg.text(box.x + box.width / 2, box.y - 5, f"{word} starts here", c["error"],
                         size=11, weight="700", anchor="middle", halo=c["bg"])
            )  # fmt: skip
        return part(identity, " ".join(t for t in lines if t), "".join(out))

    def graph(self) -> svg.Panel:
        """The graph's panel."""
        items = list(dict.fromkeys(self.box_of[n["id"]] for n in self._ordered()))
        sizes = {i: _size(self.lines(i)) for i in items}
        edges = list(
            dict.fromkeys(
                (self.box_of[e["src"]], self.box_of[e["dst"]])
                for e in self.snapshot["edges"]
                if self.box_of[e["src"]] != self.box_of[e["dst"]]
            )
        )
        inside = {item: self._owner(item) for item in items}
        parents: dict[str, str] = {}
        for group in inside.values():
            while group and group not in parents:
                parents[group] = self.groups[group].parent
                group = parents[group]
        names = {g: self.groups[g].label for g in parents}
        placed = nested(
            sizes,
            edges,
            inside,
            parents,
            {g: svg.text_width(t, 11) + 24 for g, t in names.items()},
        )
        top, c = 36.0, self.c
        key, key_width = self._legend()
        body = [key, f'<g transform="translate(0 {top:g})">']
        for identity, frame in placed.groups.items():
            body.append(
                svg.rect(frame.x, frame.y, frame.width, frame.height, c["group"], c["group-line"],
                         radius=6, extra=' stroke-dasharray="4 3"')
            )  # fmt: skip
            body.append(
                svg.text(frame.x + 10, frame.y + 16, names[identity], c["group-line"], size=11,
                         weight="600", width=frame.width - 16)
            )  # fmt: skip
        for route in placed.routes:
            hot = route.src in self.bad and route.dst in self.bad
            body.append(svg.arrow(route.path(), route.points[-1], c["error" if hot else "edge"]))
        body += [self.box(item, placed.nodes[item]) for item in items]
        body.append("</g>")
        title = f"After step {self.play.position} of {len(self.snapshot['steps'])}"
        return svg.Panel(
            "graph", title, max(placed.width + 6, key_width), placed.height + top + 6, "".join(body)
        )

    def _ordered(self) -> list[BackwardNode]:
        place = order_of(self.snapshot)
        return sorted(self.nodes.values(), key=lambda n: place[n["id"]])

    def _owner(self, item: str) -> str:
        return self.groups[item].parent if item in self.groups else self.owner[item]

    def _legend(self) -> tuple[str, float]:
        c = self.c
        entries = [
            (c["op"], c["op-line"], "operation"),
            (c["leaf"], c["leaf-line"], "leaf"),
            (c["group"], c["group-line"], "module"),
        ]
        if self.bad:
            entries.append((c["bg"], c["error"], "NaN or Inf"))
        out = [svg.legend(0, 10, entries, c)]
        x = sum(33 + svg.text_width(label, 11) for _, _, label in entries)
        if self.span:
            low, high = (f"{10**v:.2g}" for v in self.span)
            out.append(svg.text(x, 10, f"‖g‖ {low}", c["muted"], size=11))
            x += svg.text_width(f"‖g‖ {low}", 11) + 6
            for i in range(palette.HEATS):
                out.append(svg.rect(x, 1, 14, 10, c[f"h{i}"]))
                x += 14
            out.append(svg.text(x + 6, 10, high, c["muted"], size=11))
            x += 8 + svg.text_width(high, 11)
        return "".join(out), x

    def timeline(self, width: float = 620.0, height: float = 108.0) -> svg.Panel:
        """What backward holds after every step, stacked, and the steps' norms as a row of ticks."""
        c, steps = self.c, self.snapshot["steps"]
        rows = [held(self.snapshot["start"]), *map(held, steps)]
        peak = max(map(sum, rows)) or 1
        high, n = height - 52, max(1, len(steps))
        # of many steps, the fullest of every two pixels'
        bins = min(len(rows), int(width / 2))
        cuts = [len(rows) * i // bins for i in range(bins + 1)]
        picks = [max(range(a, b), key=lambda i: sum(rows[i])) for a, b in pairwise(cuts)]
        picks[0], picks[-1] = 0, len(rows) - 1
        base = [0.0] * len(picks)
        out = []
        for k, colour in enumerate(HELD_COLOURS):
            up = [b + rows[i][k] for b, i in zip(base, picks, strict=True)]
            ways = [
                [
                    f"{width * i / n:.1f},{14 + high * (1 - v / peak):.1f}"
                    for i, v in zip(picks, line, strict=True)
                ]
                for line in (up, base)
            ]
            points = " ".join(ways[0] + ways[1][::-1])
            out.append(f'<polygon points="{points}" fill="{c[colour]}" fill-opacity="0.75"/>')
            base = up
        ticks = min(len(steps), int(width / 2))  # of many steps, the hottest of each tick's
        for i in range(ticks):
            some = steps[len(steps) * i // ticks : len(steps) * (i + 1) // ticks]
            fill = c[solid(heat(worst([total(step) for step in some]), self.span))]
            wide = width / ticks
            out.append(svg.rect(wide * i, 20 + high, wide - (0.6 if wide > 4 else 0), 8, fill))
        at = width * self.play.position / n
        out.append(svg.line(at, 10, at, 28 + high, c["accent"], 2))
        out.append(svg.text(0, 9, f"{bytes_text(peak)} at most", c["muted"], size=11))
        words = ("saved tensors", "gradients on their way", "the leaves' .grad")
        entries = [(c[k], "none", w) for k, w in zip(HELD_COLOURS, words, strict=True)]
        out.append(svg.legend(0, height - 2, entries, c))
        return svg.Panel("held", "What backward holds, step by step", width, height, "".join(out))


def draw(snapshot: BackwardSnapshot, theme: str = "light") -> Drawing:
    """The drawing of a recorded backward.

    Raises:
        ValueError: another kind or version of snapshot.
    """
    check(snapshot, "backward")
    play, span = Playback(snapshot), log_span(snapshot)
    ops = sum(n["kind"] != "leaf" for n in snapshot["nodes"])
    peak = max(sum(held(row)) for row in (snapshot["start"], *snapshot["steps"]))
    subtitle = (
        f"{count_text(len(snapshot['steps']), 'step')} · {count_text(ops, 'operation')} · "
        f"{count_text(len(snapshot['nodes']) - ops, 'leaf tensor')} · "
        f"{bytes_text(peak)} held at most"
    )
    notes = node_notes(snapshot, play)
    drawing = PlayerDrawing(
        "Backward, step by step",
        subtitle,
        [],
        {n["id"]: node_details(n, play, notes) for n in snapshot["nodes"]},
        next((i for i in [*(o["node"] for o in snapshot["origins"]), *snapshot["roots"]] if i), ""),
    )
    if theme == "css":
        drawing.player = player(snapshot, play, span)
    else:
        picture = _Picture(snapshot, theme)
        drawing.rows = [[picture.timeline()], [picture.graph()]]
    return drawing


def backward_svg(snapshot: BackwardSnapshot, theme: str = "light") -> str:
    """A recorded backward as one SVG document."""
    return static_svg(draw(snapshot, theme), theme)

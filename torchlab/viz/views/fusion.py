"""Fusion: the lowered graph with a box per kernel, the generated source, the reasons for not
fusing."""

from __future__ import annotations

import re

from torchlab.viz import palette, svg
from torchlab.viz.layout import layered
from torchlab.viz.palette import Ink
from torchlab.viz.snapshots.common import check, count_text, shape_text, source_text
from torchlab.viz.snapshots.fusion import FusionSnapshot, Group, IRNode
from torchlab.viz.views.common import Details, Drawing, details, part, static_svg

SOURCE_WIDTH = 500.0
CODE_LINE = 16.0
CODE_SIZE = 11.5
MAX_SOURCE_LINES = 400

_TOKEN = re.compile(
    r"(?P<comment>//.*|#(?!\s*(?:include|pragma|define|if|endif|else)\b).*)"
    r"|(?P<text>\"(?:\\.|[^\"\\])*\")"
    r"|(?P<keyword>#\s*(?:include|pragma|define|ifdef|ifndef|if|endif|else)\b|\b(?:auto|bool|break|char|const|"
    r"constexpr|continue|def|double|else|extern|float|for|from|if|import|in|inline|int|int32_t|int64_t|long|"
    r"lambda|restrict|__restrict__|return|size_t|static|std|template|typename|uint8_t|unsigned|void|while)\b)"
)


def _box_lines(node: IRNode) -> tuple[str, str]:
    second = f"{shape_text(node['shape'])} {node['dtype']}"
    return (
        f"{node['id']} = {node['op']}"
        if node["kind"] == "op"
        else node["id"]
        if node["id"].startswith(node["kind"])
        else f"{node['kind']} {node['id']}"
    ), second


def _size(node: IRNode) -> tuple[float, float]:
    first, second = _box_lines(node)
    return min(max(svg.text_width(first), svg.text_width(second, 11)), 210) + 22, 44.0


def _graph(snapshot: FusionSnapshot, c: Ink) -> svg.Panel:
    nodes = {n["id"]: n for n in snapshot["nodes"]}
    titles = {g["id"]: svg.fit(g["name"], 260, 11) for g in snapshot["groups"]}
    placed = layered(
        {i: _size(n) for i, n in nodes.items()},
        [(u, v) for u, v in snapshot["edges"]],
        {g["id"]: g["nodes"] for g in snapshot["groups"]},
        rank_gap=26,
        node_gap=18,
        max_width=900,
        group_widths={g: svg.text_width(t, 11) + 40 for g, t in titles.items()},
    )
    out = []
    for k, group in enumerate(snapshot["groups"]):
        box = placed.groups.get(group["id"])
        if box is None:
            continue
        body = svg.rect(
            box.x,
            box.y,
            box.width,
            box.height,
            c["group"],
            c["group-line"],
            radius=8,
            stroke_width=1.4,
            extra=' class="shape" stroke-dasharray="6 3"',
        ) + svg.rect(box.x + 10, box.y + 9, 9, 9, c[palette.category(k)], c["group-line"], radius=2)
        out.append(
            part(
                group["id"],
                f"kernel {group['name']}",
                body,
                f' data-kernel="{svg.escape(group["id"])}"',
            )
        )
    for route in placed.routes:
        out.append(
            svg.arrow(
                route.path(),
                route.points[-1],
                c["edge"],
                f' data-src="{svg.escape(route.src)}" data-dst="{svg.escape(route.dst)}"',
            )
        )
    for group in snapshot["groups"]:  # above the edges
        box = placed.groups.get(group["id"])
        if box is not None:
            out.append(
                svg.text(
                    box.x + 25,
                    box.y + 18,
                    group["name"],
                    c["group-line"],
                    size=11,
                    weight="600",
                    width=box.width - 34,
                    halo=c["group"],
                    extra=' pointer-events="none"',
                )
            )
    for identity, node in nodes.items():
        box = placed.nodes[identity]
        first, second = _box_lines(node)
        fill, stroke = (c["op"], c["op-line"]) if node["kind"] == "op" else (c["io"], c["io-line"])
        body = svg.rect(
            box.x,
            box.y,
            box.width,
            box.height,
            fill,
            stroke,
            radius=4 if node["kind"] == "op" else 20,
            stroke_width=1.2,
            extra=' class="shape"',
        )
        body += svg.text(
            box.cx, box.y + 19, first, c["ink"], weight="600", anchor="middle", width=box.width - 14
        )
        body += svg.text(
            box.cx, box.y + 34, second, c["muted"], size=11, anchor="middle", width=box.width - 14
        )
        out.append(part(identity, f"{first} {second}", body))
    return svg.Panel(
        "graph",
        "Lowered graph and fusion groups",
        max(placed.width, 200),
        placed.height + 4,
        "".join(out),
    )


def code_spans(content: str, c: Ink) -> str:
    """A line of source as escaped `<tspan>`s, keywords and comments coloured."""
    out, position = [], 0
    for match in _TOKEN.finditer(content):
        out.append(svg.escape(content[position : match.start()]))
        colour = {"comment": "comment", "text": "good", "keyword": "keyword"}[
            match.lastgroup or "keyword"
        ]
        out.append(f'<tspan fill="{c[colour]}">{svg.escape(match.group())}</tspan>')
        position = match.end()
    return "".join(out) + svg.escape(content[position:])


def _source(snapshot: FusionSnapshot, c: Ink) -> svg.Panel:
    """Every kernel's source; a line carries the ids of the nodes it computes."""
    nodes = {n["id"]: n for n in snapshot["nodes"]}
    out: list[str] = []
    y = 0.0
    for k, group in enumerate(snapshot["groups"]):
        out.append(svg.rect(0, y, SOURCE_WIDTH, 22, c["group"], c["group-line"], radius=4))
        out.append(svg.rect(8, y + 6.5, 9, 9, c[palette.category(k)], c["group-line"], radius=2))
        out.append(
            svg.text(
                24,
                y + 15,
                f"{group['name']} · {group['language']}",
                c["group-line"],
                size=11,
                weight="600",
                width=SOURCE_WIDTH - 32,
            )
        )
        y += 27
        makers: dict[int, list[str]] = {}
        for member in group["nodes"]:
            for number in nodes[member]["lines"] if member in nodes else ():
                makers.setdefault(number, []).append(member)
        lines = group["source"].splitlines()
        for number, content in enumerate(lines[:MAX_SOURCE_LINES], 1):
            pieces = _broken(content)
            out.append(_code_line(group, number, pieces, makers.get(number, []), y, c))
            y += CODE_LINE * len(pieces)
        if len(lines) > MAX_SOURCE_LINES:
            out.append(
                svg.text(
                    44, y + 12, f"… {len(lines) - MAX_SOURCE_LINES} more lines", c["muted"], size=11
                )
            )
            y += CODE_LINE
        y += 12
    if not snapshot["groups"]:
        out.append(svg.text(0, 14, "No kernel was generated.", c["muted"]))
        y = 24
    return svg.Panel("source", "Generated source", SOURCE_WIDTH, y, "".join(out))


def _broken(content: str) -> list[str]:
    """A line of source in pieces that fit; later pieces are indented further than the line."""
    rest = content.expandtabs(4)
    indent = " " * (len(rest) - len(rest.lstrip()) + 4)
    columns = int((SOURCE_WIDTH - 46) / (CODE_SIZE * svg.CHAR))
    indent = indent if len(indent) < columns // 2 else "    "
    pieces: list[str] = []
    while len(rest) > columns:
        at = rest.rfind(" ", len(indent) + 1, columns) + 1 or columns
        pieces.append(rest[:at].rstrip())
        rest = indent + rest[at:]
    return [*pieces, rest]


def _code_line(
    group: Group, number: int, pieces: list[str], makers: list[str], y: float, c: Ink
) -> str:
    height = CODE_LINE * len(pieces)
    fill = c["op"] if makers else c["bg"]
    body = svg.rect(0, y, SOURCE_WIDTH, height, fill, extra=' class="shape"')
    if makers:
        body += svg.rect(0, y, 3, height, c["op-line"])
    body += svg.text(34, y + 12, str(number), c["muted"], size=10, anchor="end")
    ink = c["ink"]
    for i, piece in enumerate(pieces):
        spans = code_spans(piece, c) if ink == c["ink"] else svg.escape(piece)
        body += (
            f'<text x="44" y="{y + 12 + CODE_LINE * i:.1f}" font-size="{CODE_SIZE:g}"'
            f' fill="{ink}"'
            f' xml:space="preserve">{spans}</text>'
        )
        if any(m.lastgroup == "comment" for m in _TOKEN.finditer(piece)):
            ink = c["comment"]  # it goes on where the line does
    return (
        f'<g class="code" data-kernel="{svg.escape(group["id"])}" data-line="{number}"'
        f' data-nodes="{svg.escape(" ".join(makers))}">{body}</g>'
    )


def _rejections(snapshot: FusionSnapshot, width: float, c: Ink) -> svg.Panel | None:
    if not snapshot["rejections"]:
        return None
    pair_width = 190.0
    out = [
        svg.text(8, 12, "these two", c["muted"], size=11),
        svg.text(pair_width + 8, 12, "were not fused because", c["muted"], size=11),
    ]
    y = 20.0
    for k, item in enumerate(snapshot["rejections"]):
        lines = svg.wrap(item["reason"], width - pair_width - 16)
        height = 8 + 16 * len(lines)
        body = svg.rect(
            0,
            y,
            width,
            height,
            c["panel" if k % 2 == 0 else "bg"],
            radius=3,
            extra=' class="shape"',
        )
        body += svg.text(
            8,
            y + 16,
            f"{item['first']} · {item['second']}",
            c["ink"],
            weight="600",
            width=pair_width - 12,
        )
        for i, content in enumerate(lines):
            body += svg.text(pair_width + 8, y + 16 + 16 * i, content, c["ink"])
        out.append(
            part(
                f"r{k}",
                f"{item['first']} and {item['second']} were not fused",
                body,
                f' data-nodes="{svg.escape(item["first"] + " " + item["second"])}"',
            )
        )
        y += height + 2
    return svg.Panel("rejections", "Why these were not fused", width, y, "".join(out))


def _notes(snapshot: FusionSnapshot) -> dict[str, Details]:
    where = {m: g for g in snapshot["groups"] for m in g["nodes"]}
    out: dict[str, Details] = {}
    for node in snapshot["nodes"]:
        group = where.get(node["id"])
        origin = node["origin"]
        near = [
            [r["second"] if r["first"] == node["id"] else r["first"], r["reason"]]
            for r in snapshot["rejections"]
            if node["id"] in (r["first"], r["second"])
        ]
        out[node["id"]] = details(
            node["id"],
            node["op"] if node["kind"] == "op" else node["kind"],
            [
                ("shape", shape_text(node["shape"])),
                ("dtype", node["dtype"]),
                ("kernel", group["name"] if group else "none" if node["kind"] == "op" else ""),
                ("kernel lines", ", ".join(map(str, node["lines"]))),
                ("your line", source_text(origin)),
            ],
            [{"title": "Not fused with", "head": ["node", "reason"], "rows": near}],
            code=origin["code"] if origin else "",
        )
    for group in snapshot["groups"]:
        out[group["id"]] = details(
            group["name"],
            f"kernel · {group['language']}",
            [
                ("nodes", ", ".join(group["nodes"])),
                ("lines", str(len(group["source"].splitlines()))),
            ],
        )
    for k, item in enumerate(snapshot["rejections"]):
        out[f"r{k}"] = details(
            f"{item['first']} · {item['second']}", "not fused", [("reason", item["reason"])]
        )
    return out


def draw(snapshot: FusionSnapshot, theme: str = "light") -> Drawing:
    """The drawing of a fusion snapshot.

    Raises:
        ValueError: another kind or version of snapshot.
    """
    check(snapshot, "fusion")
    c = palette.ink(theme)
    graph, source = _graph(snapshot, c), _source(snapshot, c)
    side_by_side = graph.width <= 620
    rows = [[graph, source]] if side_by_side else [[graph], [source]]
    width = (
        graph.width + source.width + 2 * svg.MARGIN
        if side_by_side
        else max(graph.width, source.width)
    )
    table = _rejections(snapshot, min(max(width, 560), 720), c)
    if table:
        rows.append([table])
    ops = [n for n in snapshot["nodes"] if n["kind"] == "op"]
    kernels = count_text(len(snapshot["groups"]), "kernel")
    pairs = count_text(len(snapshot["rejections"]), "pair")
    subtitle = f"{count_text(len(ops), 'operation')} in {kernels} · {pairs} not fused"
    return Drawing(
        f"Fusion of {snapshot['name']}",
        subtitle,
        rows,
        _notes(snapshot),
        ops[0]["id"] if ops else "",
    )


def fusion_svg(snapshot: FusionSnapshot, theme: str = "light") -> str:
    """A fusion snapshot as one SVG document."""
    return static_svg(draw(snapshot, theme), theme)

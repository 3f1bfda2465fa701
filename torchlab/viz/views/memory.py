"""The allocator: every segment as a bar with its blocks, and allocated and reserved bytes over
time."""

from __future__ import annotations

from typing import Literal

from torchlab.viz import palette, svg
from torchlab.viz.palette import Ink
from torchlab.viz.snapshots.common import bytes_text, check, count_text, source_text
from torchlab.viz.snapshots.memory import Block, Event, MemorySnapshot, Segment, fragmentation, thin
from torchlab.viz.views.common import Details, Drawing, details, part, static_svg

WIDTH = 600.0
LABEL = 160.0
BAR = 26.0
PLOT_HEIGHT = 170.0
MAX_SEGMENTS = 40
MAX_EVENTS = 600


def _owner_hues(snapshot: MemorySnapshot) -> dict[str, str]:
    """A hue per kind of owner (see `_family`)."""
    hues: dict[str, str] = {}
    for segment in snapshot["segments"]:
        for block in segment["blocks"]:
            if block["state"] == "allocated":
                hues.setdefault(_family(block), palette.category(len(hues)))
    return hues


def _family(block: Block) -> str:
    """The part of the owner's name before the first dot or bracket: a module, usually."""
    owner = block["owner"] or "unknown"
    if ":" in owner:  # a line of the program
        return owner
    for mark in (".", "[", " "):
        owner = owner.split(mark)[0]
    return owner or "unknown"


def _block(block: Block, x: float, y: float, width: float, hues: dict[str, str], c: Ink) -> str:
    state = block["state"]
    fill = (
        c[hues[_family(block)]]
        if state == "allocated"
        else c["free" if state == "free" else "warn-bg"]
    )
    stroke = c["warn"] if state == "pending" else c["free-line"]
    label = block["owner"] if state == "allocated" else "pending" if state == "pending" else "free"
    tip = f"{label or 'unknown'}: {bytes_text(block['size'])}, {state}"
    body = f"<title>{svg.escape(tip)}</title>" + svg.rect(
        x, y, max(width, 0.6), BAR, fill, stroke, extra=' class="shape"', stroke_width=0.8
    )
    if width >= 40:
        colour = c["ink"] if state == "allocated" else c["muted"]
        shown = label or bytes_text(block["size"])
        body += svg.text(
            x + width / 2, y + 17, shown, colour, size=11, anchor="middle", width=width - 4
        )
    return part(block["id"], tip, body)


def _block_details(segment: Segment, block: Block) -> Details:
    source = block["source"]
    waste = block["size"] - block["requested"] if block["state"] == "allocated" else 0
    return details(
        block["owner"] or ("Free block" if block["state"] == "free" else "Block"),
        f"{block['id']} in segment {segment['id']}",
        [
            ("state", block["state"]),
            ("size", f"{bytes_text(block['size'])} ({block['size']:,} bytes)"),
            ("requested", f"{block['requested']:,} bytes" if block["requested"] else ""),
            ("rounding", f"{waste:,} bytes lost" if waste else ""),
            ("address", f"0x{segment['address'] + block['offset']:x}"),
            ("offset", f"{block['offset']:,}"),
            ("pool", f"{segment['pool']}, stream {segment['stream']}"),
            ("line", source_text(source)),
        ],
        code=source["code"] if source else "",
    )


def _segments(snapshot: MemorySnapshot, c: Ink) -> tuple[svg.Panel, dict[str, Details]]:
    hues = _owner_hues(snapshot)
    segments = snapshot["segments"]
    longest = max((s["size"] for s in segments), default=1) or 1
    room = WIDTH - LABEL
    out: list[str] = []
    notes: dict[str, Details] = {}
    entries = [(c[hue], c["free-line"], svg.fit(owner, 130, 11)) for owner, hue in hues.items()][:7]
    entries.append((c["free"], c["free-line"], "free"))
    y = 0.0
    line: list[tuple[str, str, str]] = []
    used = 0.0
    for entry in entries:
        need = 33 + svg.text_width(entry[2], 11)
        if line and used + need > WIDTH:
            out.append(svg.legend(0, y + 10, line, c))
            y, line, used = y + 17, [], 0.0
        line.append(entry)
        used += need
    out.append(svg.legend(0, y + 10, line, c))
    y += 24
    for segment in segments[:MAX_SEGMENTS]:
        taken = sum(b["size"] for b in segment["blocks"] if b["state"] != "free")
        name = f"{segment['id']} {segment['pool']}" + (
            f" · stream {segment['stream']}" if segment["stream"] else ""
        )
        out.append(svg.text(0, y + 11, name, c["ink"], size=11, width=LABEL - 8))
        out.append(
            svg.text(
                0,
                y + 24,
                f"{bytes_text(taken)} of {bytes_text(segment['size'])}",
                c["muted"],
                size=10,
                width=LABEL - 8,
            )
        )
        width = room * segment["size"] / longest
        narrow = width < 90  # a small segment next to a huge one is drawn to its own scale
        width = max(width, 90.0)
        for block in segment["blocks"]:
            x = LABEL + width * block["offset"] / segment["size"]
            out.append(_block(block, x, y, width * block["size"] / segment["size"], hues, c))
            notes[block["id"]] = _block_details(segment, block)
        out.append(
            svg.rect(
                LABEL,
                y,
                width,
                BAR,
                "none",
                c["io-line"],
                stroke_width=1.3,
                extra=' pointer-events="none"',
            )
        )
        if narrow:
            out.append(svg.text(LABEL + width + 8, y + 17, "own scale", c["muted"], size=10))
        y += BAR + 12
    if len(segments) > MAX_SEGMENTS:
        out.append(
            svg.text(
                0, y + 10, count_text(len(segments) - MAX_SEGMENTS, "more segment"), c["muted"]
            )
        )
        y += 20
    if not segments:
        out.append(svg.text(0, y + 12, "The allocator holds no segment.", c["muted"]))
        y += 20
    return svg.Panel("segments", "Segments and their blocks", WIDTH, y, "".join(out), True), notes


def _nice_step(top: float) -> float:
    """A power of two that cuts `top` into three to six parts."""
    step = 1.0
    while top / step > 6:
        step *= 2
    return step


def _timeline(snapshot: MemorySnapshot, c: Ink) -> tuple[svg.Panel, dict[str, Details]]:
    events = thin(snapshot["events"], MAX_EVENTS)
    notes: dict[str, Details] = {}
    left, right = 76.0, WIDTH - 8
    if not events:
        body = svg.text(0, 14, "No event has been recorded yet.", c["muted"])
        return svg.Panel("timeline", "Bytes over events", WIDTH, 24, body, True), notes
    top: float = max(max(e["reserved"], e["allocated"]) for e in events) or 1
    limit = snapshot["limit"]
    show_limit = limit is not None and limit <= 2 * top
    if show_limit and limit is not None:
        top = max(top, limit)
    top *= 1.06
    first, last = events[0]["i"], events[-1]["i"]
    scale = (right - left) / max(last - first, 1)
    base = 26 + PLOT_HEIGHT

    def px(i: int) -> float:
        return left + (i - first) * scale

    def py(n: float) -> float:
        return base - PLOT_HEIGHT * n / top

    out = [
        svg.legend(
            left,
            10,
            [(c["allocated"], "none", "allocated"), (c["free"], c["reserved"], "reserved")]
            + (
                [(c["error"], "none", "out of memory")]
                if any(e["kind"] == "oom" for e in events)
                else []
            ),
            c,
        )
    ]
    step = _nice_step(top)
    k = 0
    while k * step <= top:
        y = py(k * step)
        out.append(svg.line(left, y, right, y, c["line"], 0.8))
        out.append(
            svg.text(left - 8, y + 4, bytes_text(int(k * step)), c["muted"], size=10, anchor="end")
        )
        k += 1

    def stairs(key: Literal["allocated", "reserved"], close: bool) -> str:
        path = [f"M{px(first):.1f} {base if close else py(events[0][key]):.1f}"]
        for event in events:
            path.append(f"H{px(event['i']):.1f}V{py(event[key]):.1f}")
        return "".join(path) + (f"H{right:.1f}V{base:.1f}Z" if close else f"H{right:.1f}")

    out.append(f'<path d="{stairs("reserved", True)}" fill="{c["free"]}"/>')
    out.append(
        f'<path d="{stairs("allocated", True)}" fill="{c["allocated"]}" fill-opacity="0.28"/>'
    )
    out.append(
        f'<path d="{stairs("reserved", False)}" fill="none" stroke="{c["reserved"]}"'
        ' stroke-width="1.4"/>'
    )
    out.append(
        f'<path d="{stairs("allocated", False)}" fill="none" stroke="{c["allocated"]}"'
        ' stroke-width="1.8"/>'
    )
    if show_limit and limit is not None:
        y = py(limit)
        out.append(svg.line(left, y, right, y, c["error"], 1.2, ' stroke-dasharray="5 4"'))
        out.append(svg.text(left + 4, y - 5, f"limit {bytes_text(limit)}", c["error"], size=11))
    out.append(svg.text(left, base + 16, f"event {first}", c["muted"], size=10))
    out.append(svg.text(right, base + 16, f"event {last}", c["muted"], size=10, anchor="end"))
    for event in events:
        out.append(_event(event, px(event["i"]), py(event["allocated"]), base, max(scale, 3.0), c))
        notes[f"e{event['i']}"] = details(
            f"{event['kind'].replace('_', ' ')} of {bytes_text(event['size'])}",
            f"event {event['i']}",
            [
                ("for", event["label"]),
                ("allocated", bytes_text(event["allocated"])),
                ("reserved", bytes_text(event["reserved"])),
            ],
            warning="The allocation failed." if event["kind"] == "oom" else "",
        )
    return svg.Panel("timeline", "Bytes over events", WIDTH, base + 22, "".join(out), True), notes


def _event(event: Event, x: float, y: float, base: float, width: float, c: Ink) -> str:
    tip = f"event {event['i']}: {event['kind']} {bytes_text(event['size'])} {event['label']}"
    body = f"<title>{svg.escape(tip)}</title>" + svg.rect(
        x - width / 2,
        base - PLOT_HEIGHT,
        width,
        PLOT_HEIGHT,
        c["accent"],
        extra=' class="hit" fill-opacity="0"',
    )
    if event["kind"] == "oom":
        body += (
            f'<path d="M{x - 5:.1f} {y - 5:.1f}l10 10m0 -10l-10 10" stroke="{c["error"]}"'
            ' stroke-width="2.4"/>'
        )
    return f'<g class="event" data-id="e{event["i"]}" data-key="e{event["i"]}">{body}</g>'


def draw(snapshot: MemorySnapshot, theme: str = "light") -> Drawing:
    """The drawing of a memory snapshot.

    Raises:
        ValueError: another kind or version of snapshot.
    """
    check(snapshot, "memory")
    c = palette.ink(theme)
    segments, block_notes = _segments(snapshot, c)
    timeline, event_notes = _timeline(snapshot, c)
    limit = snapshot["limit"]
    loose = fragmentation(snapshot)
    subtitle = (
        f"allocated {bytes_text(snapshot['allocated'])} (peak "
        f"{bytes_text(snapshot['peak_allocated'])}) · "
        f"reserved {bytes_text(snapshot['reserved'])} (peak "
        f"{bytes_text(snapshot['peak_reserved'])})"
        + (f" · limit {bytes_text(limit)}" if limit is not None else "")
        + (f" · free memory {loose:.0%} fragmented" if loose else "")
    )
    start = next(
        (b["id"] for s in snapshot["segments"] for b in s["blocks"] if b["state"] == "allocated"),
        "",
    )
    return Drawing(
        f"Memory of {snapshot['device']}",
        subtitle,
        [[segments], [timeline]],
        block_notes | event_notes,
        start,
    )


def memory_svg(snapshot: MemorySnapshot, theme: str = "light") -> str:
    """A memory snapshot as one SVG document."""
    return static_svg(draw(snapshot, theme), theme)

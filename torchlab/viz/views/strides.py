"""The stride explorer: the chain of views, the index grid, the storage below, and the reasons."""

from __future__ import annotations

import itertools
import math

from torchlab.viz import palette, svg
from torchlab.viz.palette import Ink
from torchlab.viz.snapshots.common import bytes_text, check, count_text, shape_text
from torchlab.viz.snapshots.strides import (
    StrideSnapshot,
    ViewStep,
    cell_of,
    explain_contiguity,
    explain_view,
    indices,
)
from torchlab.viz.views.common import Details, Drawing, details, part, static_svg

WIDTH = 600.0
CELL, ROW = 44.0, 34.0
MAX_CELLS = 256
MAX_SIDE = 16


def _value(snapshot: StrideSnapshot, cell: int) -> str:
    values = snapshot["storage"]["values"]
    return values[cell] if values is not None and 0 <= cell < len(values) else ""


def _hue(index: tuple[int, ...], shape: list[int]) -> str:
    """The colour of an index: by its first dimension that has more than one place."""
    for place, size in zip(index, shape, strict=True):
        if size > 1:
            return palette.category(place)
    return palette.category(0)


def _chain(snapshot: StrideSnapshot, c: Ink) -> svg.Panel:
    x = y = row_height = 0.0
    out = []
    steps = snapshot["chain"]
    for k, step in enumerate(steps):
        lines = [
            step["op"],
            f"shape  {shape_text(step['shape'])}",
            f"stride {shape_text(step['stride'])}",
        ]
        if step["offset"]:
            lines.append(f"offset {step['offset']}")
        ok = explain_contiguity(step["shape"], step["stride"])["contiguous"]
        lines.append("contiguous" if ok else "not contiguous")
        width = min(max(svg.text_width(t) for t in lines) + 22, WIDTH)
        height = 14 + 17 * len(lines)
        if x and x + width > WIDTH:
            x, y, row_height = 0.0, y + row_height + 16, 0.0
        elif x:
            out.append(svg.line(x - 26, y + 40, x - 8, y + 40, c["edge"], 1.4))
            out.append(f'<path d="M{x - 9:.1f} {y + 36:.1f}l7 4l-7 4Z" fill="{c["edge"]}"/>')
        last = k == len(steps) - 1
        out.append(
            svg.rect(
                x,
                y,
                width,
                height,
                c["op"] if last else c["panel"],
                c["op-line"] if last else c["line"],
                radius=5,
                stroke_width=1.4 if last else 1,
            )
        )
        for i, content in enumerate(lines):
            fill = c["ink"] if i == 0 else c["muted"]
            if i == len(lines) - 1:
                fill = c["good"] if ok else c["error"]
            out.append(
                svg.text(
                    x + 11,
                    y + 20 + 17 * i,
                    content,
                    fill,
                    weight="600" if i == 0 else "",
                    width=width - 20,
                )
            )
        x += width + 30
        row_height = max(row_height, height)
    return svg.Panel(
        "chain", "Chain of views over one storage", WIDTH, y + row_height, "".join(out), True
    )


def _cell(
    identity: str,
    x: float,
    y: float,
    upper: str,
    lower: str,
    fill: str,
    tip: str,
    cell: int,
    c: Ink,
    muted: bool = False,
) -> str:
    body = (
        f"<title>{svg.escape(tip)}</title>"
        + svg.rect(x, y, CELL, ROW, fill, c["line"], extra=' class="shape"')
        + svg.text(
            x + CELL / 2,
            y + 15,
            upper,
            c["muted" if muted else "ink"],
            anchor="middle",
            width=CELL - 5,
        )
        + svg.text(
            x + CELL / 2, y + 29, lower, c["muted"], size=10, anchor="middle", width=CELL - 4
        )
    )
    return part(identity, tip, body, f' data-cell="{cell}"')


def _grid(snapshot: StrideSnapshot, step: ViewStep, c: Ink) -> tuple[svg.Panel, dict[str, Details]]:
    """The tensor as the user indexes it: the last two dimensions as a table, the others as
    slices."""
    shape, stride, offset = step["shape"], step["stride"], step["offset"]
    rows = shape[-2] if len(shape) > 1 else 1
    columns = shape[-1] if shape else 1
    shown_rows, shown_columns = min(rows, MAX_SIDE), min(columns, MAX_SIDE)
    outer = shape[:-2]
    head = 33 if outer else 17  # above the cells: a slice's label, the columns' numbers
    x = y = shelf = 0.0
    out: list[str] = []
    notes: dict[str, Details] = {}
    count = hidden = 0
    for lead in indices(outer):
        width, height = shown_columns * CELL + 26, shown_rows * ROW + head + 3
        if count >= MAX_CELLS:
            hidden += 1
            continue
        if x and x + width > WIDTH:
            x, y, shelf = 0.0, y + shelf + 10, 0.0
        label = f"[{', '.join(map(str, lead))}, :, :]" if outer else ""
        out.append(svg.text(x + 26, y + 11, label, c["muted"], size=11))
        for j in range(shown_columns if shape else 0):
            out.append(
                svg.text(
                    x + 26 + (j + 0.5) * CELL,
                    y + head - 5,
                    str(j),
                    c["muted"],
                    size=10,
                    anchor="middle",
                )
            )
        for i, j in itertools.product(range(shown_rows), range(shown_columns)):
            index = ((*lead, i, j) if len(shape) > 1 else (j,)) if shape else ()
            if j == 0 and len(shape) > 1:
                out.append(
                    svg.text(
                        x + 20, y + head + i * ROW + 21, str(i), c["muted"], size=10, anchor="end"
                    )
                )
            cell = cell_of(index, stride, offset)
            identity = f"i{','.join(map(str, index))}"
            tip = f"{snapshot['name']}[{', '.join(map(str, index))}] is cell {cell}"
            out.append(
                _cell(
                    identity,
                    x + 26 + j * CELL,
                    y + head + i * ROW,
                    _value(snapshot, cell) or f"@{cell}",
                    f"@{cell}",
                    c[_hue(index, shape)],
                    tip,
                    cell,
                    c,
                )
            )
            notes[identity] = _index_details(snapshot, step, index, cell)
            count += 1
        x += width + 16
        shelf = max(shelf, height)
    y += shelf
    cut = []
    if hidden:
        cut.append(count_text(hidden, "more slice"))
    if rows > shown_rows or columns > shown_columns:
        cut.append(f"{rows} × {columns} cut to {shown_rows} × {shown_columns}")
    if math.prod(shape) == 0:
        cut.append("no elements")
    if cut:
        out.append(svg.text(0, y + 16, "; ".join(cut), c["muted"], size=11))
        y += 20
    title = f"Index grid of {snapshot['name']} {shape_text(shape)}: value, and the cell it reads"
    return svg.Panel("grid", title, WIDTH, y, "".join(out), True), notes


def _index_details(
    snapshot: StrideSnapshot, step: ViewStep, index: tuple[int, ...], cell: int
) -> Details:
    terms = [str(step["offset"]), *(f"{i}·{s}" for i, s in zip(index, step["stride"], strict=True))]
    address = snapshot["storage"]["address"]
    byte = cell * snapshot["itemsize"]
    return details(
        f"{snapshot['name']}[{', '.join(map(str, index))}]",
        f"cell {cell}",
        [
            ("value", _value(snapshot, cell)),
            ("cell", f"{' + '.join(terms)} = {cell}"),
            ("how", "offset + Σ index · stride"),
            ("bytes", f"{byte} … {byte + snapshot['itemsize'] - 1} of the storage"),
            ("address", f"0x{address + byte:x}" if address is not None else ""),
        ],
    )


def _storage(
    snapshot: StrideSnapshot, step: ViewStep, c: Ink
) -> tuple[svg.Panel, dict[str, Details]]:
    """The memory: every cell, coloured by the index that reads it."""
    numel = snapshot["storage"]["numel"]
    shown = min(numel, MAX_CELLS)
    readers: dict[int, list[tuple[int, ...]]] = {}
    for index in indices(step["shape"], 4096):
        readers.setdefault(cell_of(index, step["stride"], step["offset"]), []).append(index)
    per_row = int(WIDTH // CELL)
    out: list[str] = []
    notes: dict[str, Details] = {}
    for cell in range(shown):
        x, y = (cell % per_row) * CELL, (cell // per_row) * (ROW + 8)
        who = readers.get(cell, [])
        name = snapshot["name"]
        texts = [f"{name}[{', '.join(map(str, i))}]" for i in who]
        tip = f"cell {cell}: " + (
            ", ".join(texts[:4]) + (" …" if len(texts) > 4 else "") or "not in this tensor"
        )
        fill = c[_hue(who[0], step["shape"])] if who else c["free"]
        out.append(
            _cell(
                f"s{cell}",
                x,
                y,
                _value(snapshot, cell) or "·",
                f"@{cell}",
                fill,
                tip,
                cell,
                c,
                not who,
            )
        )
        notes[f"s{cell}"] = details(
            f"Storage cell {cell}",
            snapshot["storage"]["id"],
            [
                ("value", _value(snapshot, cell)),
                (
                    "bytes",
                    f"{cell * snapshot['itemsize']} … {(cell + 1) * snapshot['itemsize'] - 1}",
                ),
                ("read by", ", ".join(texts[:12]) or f"no index of {name}"),
                ("readers", str(len(who)) if len(who) > 1 else ""),
            ],
        )
    height = max(1, -(-shown // per_row)) * (ROW + 8)
    if shown < numel:
        out.append(svg.text(0, height + 8, f"{numel - shown:,} more cells", c["muted"], size=11))
        height += 16
    outside = sum(cell not in readers for cell in range(shown))
    if outside:
        out.append(
            svg.legend(
                0, height + 10, [(c["free"], c["line"], "cell that this tensor does not read")], c
            )
        )
        height += 18
    title = (
        f"Storage {snapshot['storage']['id']}: {count_text(numel, 'cell')} of {snapshot['dtype']}, "
        f"{bytes_text(snapshot['storage']['bytes'])} on {snapshot['device']}"
    )
    return svg.Panel("storage", title, WIDTH, height, "".join(out), True), notes


def _reasons(snapshot: StrideSnapshot, step: ViewStep, c: Ink) -> svg.Panel:
    """A table of the dimensions, and in words why not."""
    shape, stride = step["shape"], step["stride"]
    answer = explain_contiguity(shape, stride)
    asked = snapshot["asked_view"]
    view = None if asked is None else explain_view(shape, stride, asked, snapshot["itemsize"])
    bad = set(answer["dims"]) | set(view["dims"] if view else [])
    out: list[str] = []
    heads = ("dim", "size", "stride", "contiguous would be")
    xs = (8.0, 60.0, 120.0, 196.0)
    for x, head in zip(xs, heads, strict=True):
        out.append(svg.text(x, 12, head, c["muted"], size=11))
    y = 20.0
    for d in range(len(shape)):
        if d in bad:
            out.append(svg.rect(0, y, 350, 20, c["error-bg"], radius=3))
        row = (str(d), str(shape[d]), str(stride[d]), str(answer["needed"][d]))
        for x, content in zip(xs, row, strict=True):
            out.append(
                svg.text(x, y + 14, content, c["error"] if d in bad else c["ink"], width=140)
            )
        y += 21
    y += 8

    def verdict(ok: bool, head: str, words: str, y: float) -> float:
        lines = svg.wrap(words, WIDTH - 28)
        height = 28 + 17 * len(lines)
        out.append(svg.rect(0, y, WIDTH, height, c["panel"] if ok else c["error-bg"], radius=5))
        out.append(svg.rect(0, y, 4, height, c["good" if ok else "error"], radius=2))
        out.append(
            svg.text(14, y + 18, head, c["good" if ok else "error"], weight="600", width=WIDTH - 28)
        )
        for i, content in enumerate(lines):
            out.append(svg.text(14, y + 36 + 17 * i, content, c["ink"]))
        return y + height + 8

    name = snapshot["name"]
    head = f"{name}.is_contiguous() is {answer['contiguous']}"
    nbytes = math.prod(shape) * snapshot["itemsize"]
    words = answer["reason"]
    if not answer["contiguous"]:
        words += f". contiguous() copies {bytes_text(nbytes)}"
    y = verdict(answer["contiguous"], head, words + ".", y)
    if view is not None:
        call = f"{name}.view({', '.join(map(str, asked or []))})"
        if view["ok"]:
            y = verdict(
                True,
                f"{call} works",
                f"no copy: stride {shape_text(view['stride'])}; {view['reason']}.",
                y,
            )
        else:
            cost = (
                f". reshape would copy {bytes_text(view['copy_bytes'])}"
                if view["copy_bytes"]
                else ""
            )
            y = verdict(False, f"{call} fails", view["reason"] + cost + ".", y)
    return svg.Panel("why", "Why", WIDTH, y, "".join(out), True)


def draw(snapshot: StrideSnapshot, theme: str = "light") -> Drawing:
    """The drawing of a stride snapshot.

    Raises:
        ValueError: another kind or version of snapshot.
    """
    check(snapshot, "strides")
    c = palette.ink(theme)
    step = snapshot["chain"][-1]
    grid, grid_notes = _grid(snapshot, step, c)
    storage, storage_notes = _storage(snapshot, step, c)
    return Drawing(
        f"Strides of {snapshot['name']}",
        f"shape {shape_text(step['shape'])} · stride {shape_text(step['stride'])} · offset "
        f"{step['offset']} · "
        f"{snapshot['dtype']}",
        [[_chain(snapshot, c)], [grid], [storage], [_reasons(snapshot, step, c)]],
        grid_notes | storage_notes,
        next(iter(grid_notes), ""),
    )


def strides_svg(snapshot: StrideSnapshot, theme: str = "light") -> str:
    """A stride snapshot as one SVG document."""
    return static_svg(draw(snapshot, theme), theme)

"""The four static pictures: valid SVG, the snapshot's numbers, nothing that breaks out, no cut
corners."""

from __future__ import annotations

import copy
import re
import xml.etree.ElementTree as ET
from typing import Any

import pytest

from tests.viz import samples
from torchlab.viz import palette, svg
from torchlab.viz.pictures import PICTURES, picture
from torchlab.viz.snapshots import bytes_text, count_text, shape_text, source_text
from torchlab.viz.snapshots.autograd import saved_bytes
from torchlab.viz.snapshots.memory import fragmentation, thin
from torchlab.viz.views import autograd as autograd_view
from torchlab.viz.views.fusion import code_spans

SVG = "{http://www.w3.org/2000/svg}"
KINDS = sorted(samples.ALL)


def parse(text: str) -> ET.Element:
    return ET.fromstring(text)


def labels(root: ET.Element) -> list[str]:
    """What is written in the picture, tooltips left out."""
    found = []
    for node in root.iter(f"{SVG}text"):
        words = (node.text or "") + "".join(
            ("".join(c.itertext()) if c.tag != f"{SVG}title" else "") + (c.tail or "") for c in node
        )
        found.append(words)
    return found


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("kind", KINDS)
def test_a_static_picture_is_valid_svg_with_plain_colours(kind: str, theme: str) -> None:
    text = picture(samples.ALL[kind]()).to_svg(theme)
    root = parse(text)
    assert root.tag == f"{SVG}svg"
    assert "var(" not in text and "<style" not in text and "url(" not in text
    background = root.find(f"{SVG}rect")
    assert background is not None
    assert background.get("fill") == {"light": "#ffffff", "dark": "#15181e"}[theme]
    assert not re.search(r"\sid=", text), "ids collide when a page holds two pictures"
    assert picture(samples.ALL[kind]()).to_svg(theme) == text


@pytest.mark.parametrize("kind", KINDS)
def test_hostile_names_stay_text(kind: str) -> None:
    shown = picture(samples.hostile(kind))
    root = parse(shown.svg)
    assert not list(root.iter(f"{SVG}script"))
    assert not [a for node in root.iter() for a in node.attrib if a.startswith("on")]
    page = shown.to_html()
    assert "<script>alert(1)" not in page
    for panel in shown.drawing("css").state(kind)["panels"]:
        assert "<script" not in panel["svg"]
        parse(panel["svg"])


@pytest.mark.parametrize("kind", KINDS)
def test_shapes_stay_inside_the_picture(kind: str) -> None:
    for panel in picture(samples.ALL[kind]()).drawing("css").state(kind)["panels"]:
        root = parse(panel["svg"])
        _, _, width, height = map(float, root.attrib["viewBox"].split())
        for node in root.iter(f"{SVG}rect"):
            assert float(node.attrib["x"]) + float(node.attrib["width"]) <= width
            assert float(node.attrib["y"]) + float(node.attrib["height"]) <= height
        for node in root.iter(f"{SVG}text"):
            if node.get("text-anchor") is None:
                size = float(node.attrib["font-size"])
                words = "".join(t for t in (node.text or "", *(c.tail or "" for c in node)))
                assert float(node.attrib["x"]) + svg.text_width(words, size) <= width, words


def test_autograd_numbers() -> None:
    snapshot = samples.autograd()
    # s0 2560 + s1 512 + s2 65536 + s3 10240 + s4 262144 + s5 131072 + s6 16384 + s7 576
    assert saved_bytes(snapshot) == 489024
    shown = picture(snapshot)
    words = labels(parse(shown.svg))
    assert "8 operations · 4 leaf tensors · 478 KiB saved for backward" in words
    assert "AddmmBackward0" in words and "conv1.weight" in words
    assert "saves 74 KiB · ‖g‖ 0.0874" in words
    note = shown.details["n2"]
    rows = dict(note["rows"])
    assert rows["next"] == "fc.bias, ViewBackward0, TBackward0"
    assert rows["line"] == "train.py:18" and note["code"] == "return self.fc(x)"
    assert note["tables"][0]["rows"][0] == ["mat1", "[64, 256] float32", "64 KiB", "s2", "0"]
    assert shown.details["n8"]["tables"][0]["rows"][0][-1] == "0 → 1"
    assert "changed in place" in shown.details["n8"]["warning"] and not note["warning"]
    assert (
        repr(shown)
        == "<Autograd graph: 8 operations · 4 leaf tensors · 478 KiB saved for backward>"
    )


def test_autograd_heat_goes_by_magnitude() -> None:
    snapshot = samples.autograd()
    snapshot["nodes"][1]["grad_norm"] = "nan"
    snapshot["nodes"][2]["grad_norm"] = 0.0
    colours = palette.ink("light")
    strips = {}
    for part in parse(picture(snapshot).svg).iter(f"{SVG}g"):
        rects = part.findall(f"{SVG}rect")
        if part.get("class") == "part":
            strips[part.get("data-id")] = rects[1].get("fill")
    assert strips["n0"] == colours["h5"]  # the largest
    assert strips["n3"] == colours["h0"]  # the smallest
    assert strips["n1"] == colours["error"]
    assert strips["n2"] == colours["h0"]
    assert strips["n5"] == colours["line"]  # no gradient yet


def test_autograd_of_nothing() -> None:
    empty = {"kind": "autograd", "version": 1, "roots": [], "nodes": [], "edges": []}
    assert "0 operations · 0 leaf tensors" in " ".join(labels(parse(picture(empty).svg)))


def test_stride_numbers() -> None:
    shown = picture(samples.strides())
    words = labels(parse(shown.svg))
    assert "shape [4, 3] · stride [1, 4] · offset 0 · int64" in words
    assert "Storage s0: 12 cells of int64, 96 B on cpu" in words
    assert "y.view(12) fails" in words and "y.is_contiguous() is False" in words
    rows = dict(shown.details["i2,1"]["rows"])
    assert rows["cell"] == "0 + 2·1 + 1·4 = 6" and rows["value"] == "6"
    assert rows["bytes"] == "48 … 55 of the storage" and rows["address"] == "0x5030"
    assert dict(shown.details["s7"]["rows"])["read by"] == "y[3, 1]"
    cells = {
        node.get("data-id"): node.get("data-cell")
        for node in parse(shown.svg).iter(f"{SVG}g")
        if node.get("data-cell")
    }
    assert cells["i2,1"] == cells["s6"] == "6"


def test_cells_outside_the_view_are_said_to_be() -> None:
    shown = picture(samples.sliced())
    assert dict(shown.details["s0"]["rows"])["read by"] == "no index of crop"
    assert dict(shown.details["s1"]["rows"])["read by"] == "crop[0, 0, 0]"
    assert "cell that this tensor does not read" in labels(parse(shown.svg))


@pytest.mark.parametrize("shape", [[], [0], [0, 3], [1], [40, 40], [2, 3, 1, 2], [5, 16, 16]])
def test_strides_of_any_shape(shape: list[int]) -> None:
    snapshot = samples.strides() | {"asked_view": None}
    step = [1] * len(shape)
    for d in range(len(shape) - 2, -1, -1):
        step[d] = step[d + 1] * max(shape[d + 1], 1)
    numel = 1
    for size in shape:
        numel *= size
    snapshot["chain"] = [{"op": "empty", "shape": shape, "stride": step, "offset": 0}]
    snapshot["storage"] = {
        "id": "s0",
        "numel": numel,
        "bytes": numel * 8,
        "address": None,
        "values": None,
    }
    words = labels(parse(picture(snapshot).svg))
    assert "y.is_contiguous() is True" in words
    if shape == [40, 40]:
        assert "40 × 40 cut to 16 × 16" in words and "1,344 more cells" in words


def test_memory_numbers() -> None:
    snapshot = samples.memory()
    shown = picture(snapshot)
    words = labels(parse(shown.svg))
    # 5 × 128 KiB + 6 + 4 − 4 + 5 − 0.125 + 3 + 11 − 5 MiB = 20.5 MiB
    assert (
        "allocated 20.5 MiB (peak 25.5 MiB) · reserved 34 MiB (peak 34 MiB) · limit 40 MiB · "
        "free memory 56% fragmented" in words
    )
    # free: 1.5 + 5 + 6 + 1 MiB, the largest 6
    assert fragmentation(snapshot) == pytest.approx(1 - 6 / 13.5)
    assert "9 MiB of 20 MiB" in words and "limit 40 MiB" in words
    rows = dict(shown.details["b0"]["rows"])
    assert rows["size"] == "128 KiB (131,072 bytes)" and rows["rounding"] == "1,072 bytes lost"
    assert dict(shown.details["b7"]["rows"])["address"] == hex(0x7F0000400000 + 11 * 2**20)
    assert shown.details["e16"]["warning"] == "The allocation failed."


def test_block_widths_are_to_scale() -> None:
    root = parse(picture(samples.memory()).svg)
    width = {}
    for node in root.iter(f"{SVG}g"):
        if node.get("data-id") in ("b5", "b6", "b9"):
            rect = node.find(f"{SVG}rect")
            assert rect is not None
            width[node.get("data-id")] = float(rect.attrib["width"])
    assert width["b6"] / width["b5"] == pytest.approx(5 / 6, rel=0.01)
    assert width["b9"] / width["b5"] == pytest.approx(11 / 6, rel=0.01)


def test_memory_without_segments_or_events() -> None:
    snapshot = samples.memory() | {"segments": [], "events": [], "limit": None}
    words = labels(parse(picture(snapshot).svg))
    assert "The allocator holds no segment." in words and "No event has been recorded yet." in words


def test_thinning_keeps_peaks_and_failures() -> None:
    events: list[Any] = [
        {
            "i": i,
            "kind": "alloc",
            "size": 1,
            "allocated": 1000 if i == 517 else i % 7,
            "reserved": 1000,
            "label": "",
        }
        for i in range(1000)
    ]
    events[700]["kind"] = "oom"
    kept = thin(events, 50)
    assert len(kept) <= 51
    assert {0, 517, 700, 999} <= {e["i"] for e in kept}
    assert [e["i"] for e in kept] == sorted(e["i"] for e in kept)


def test_fusion_numbers() -> None:
    shown = picture(samples.fusion())
    root = parse(shown.svg)
    words = labels(root)
    assert "6 operations in 2 kernels · 2 pairs not fused" in words
    assert "fused_mul_add_gelu" in words and "buf4 · buf5" in words
    lines = {
        (n.get("data-kernel"), n.get("data-line")): n.get("data-nodes")
        for n in root.iter(f"{SVG}g")
        if n.get("class") == "code"
    }
    assert lines["k0", "6"] == "buf0" and lines["k0", "8"] == "buf2" and lines["k0", "1"] == ""
    assert lines["k1", "6"] == "buf4" and len(lines) == 11 + 8
    rows = dict(shown.details["buf4"]["rows"])
    assert rows["kernel"] == "fused_sum_div" and rows["your line"] == "train.py:8"
    assert shown.details["buf5"]["tables"][0]["rows"][0][0] == "buf4"
    assert dict(shown.details["buf5"]["rows"])["kernel"] == "none"


def test_fusion_source_is_whole() -> None:
    """Long lines are broken, not cut."""
    words = "".join(w.strip() for w in labels(parse(picture(samples.fusion()).svg)))
    for line in (samples.KERNEL_0 + samples.KERNEL_1).splitlines():
        assert line.replace(" ", "") in words.replace(" ", "")


def test_code_spans_escape_and_colour() -> None:
    c = palette.ink("light")
    assert (
        code_spans("if (a<b) // x&y", c) == f'<tspan fill="{c["keyword"]}">if</tspan> (a&lt;b) '
        f'<tspan fill="{c["comment"]}">// x&amp;y</tspan>'
    )


def test_a_comment_that_is_broken_stays_one() -> None:
    snapshot = samples.fusion()
    comment = "// " + "a_word " * 20
    snapshot["groups"][0]["source"] = comment + "\n" + snapshot["groups"][0]["source"]
    c = palette.ink("light")
    lines = re.findall(r'<text[^>]*fill="([^"]*)"[^>]*>(.*?)</text>', picture(snapshot).svg)
    pieces = [(fill, content) for fill, content in lines if "a_word" in content]
    assert len(pieces) > 1 and f'fill="{c["comment"]}"' in pieces[0][1]
    assert all(fill == c["comment"] for fill, _ in pieces[1:])


@pytest.mark.parametrize("kind", KINDS)
def test_wrong_snapshots_are_refused(kind: str) -> None:
    snapshot = samples.ALL[kind]()
    with pytest.raises(ValueError, match="version 99"):
        picture(snapshot | {"version": 99}).to_svg()
    with pytest.raises(ValueError, match="no picture of kind 'nothing'"):
        picture({"kind": "nothing"})
    with pytest.raises(ValueError, match=f"expected a snapshot of kind '{kind}'"):
        PICTURES[kind]({"kind": "other"}).to_svg()


def test_views_do_not_change_their_snapshot() -> None:
    for kind, make in samples.ALL.items():
        snapshot = make()
        before = copy.deepcopy(snapshot)
        picture(snapshot).to_html()
        assert snapshot == before, kind


def test_themes() -> None:
    with pytest.raises(ValueError, match="'light', 'dark' or 'css'"):
        palette.ink("pink")
    assert palette.ink("css")["bg"] == "var(--tl-bg, #ffffff)"


def _luminance(colour: str) -> float:
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [p / 12.92 if p <= 0.03928 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_text_has_contrast(theme: str) -> None:
    """WCAG 2.1 AA: 4.5 : 1 for text on every field that carries it."""
    c = palette.ink(theme)
    pairs = [("ink", f"c{i}") for i in range(palette.CATEGORIES)]
    for field in ("bg", "panel", "op", "leaf", "io", "free"):
        pairs += [("ink", field), ("muted", field)]
    pairs += [
        ("error", "error-bg"),
        ("error", "bg"),
        ("warn", "warn-bg"),
        ("good", "bg"),
        ("good", "panel"),
    ]
    pairs += [("keyword", "bg"), ("keyword", "op"), ("comment", "op")]
    for text, field in pairs:
        low, high = sorted((_luminance(c[text]), _luminance(c[field])))
        assert (high + 0.05) / (low + 0.05) >= 4.5, (text, field)


def test_text_measures() -> None:
    assert svg.text_width("abcd", 10) == pytest.approx(24.6)
    assert svg.text_width("日本", 10) == svg.text_width("abcd", 10)
    assert svg.fit("abcdefgh", svg.text_width("abcde")) == "abcd…"
    assert svg.fit("abc", 1000) == "abc"
    assert svg.wrap("aaa bbb ccc", svg.text_width("aaaaaaaa")) == ["aaa bbb", "ccc"]
    assert svg.escape("a<b>&\"'\x00") == "a&lt;b&gt;&amp;&quot;&#x27;\ufffd"


def test_long_labels_are_cut_and_whole_in_the_tooltip() -> None:
    snapshot = samples.autograd()
    name = "a" * 300
    snapshot["nodes"][0]["name"] = name
    root = parse(autograd_view.autograd_svg(snapshot))
    cut = [w for w in labels(root) if w.startswith("aaa")]
    assert len(cut) == 1 and cut[0].endswith("…") and len(cut[0]) < 40
    assert name in [t.text for t in root.iter(f"{SVG}title")]


@pytest.mark.parametrize(
    ("n", "text"),
    [
        (0, "0 B"),
        (1023, "1023 B"),
        (1024, "1 KiB"),
        (1536, "1.5 KiB"),
        (5 * 2**30, "5 GiB"),
        (None, "?"),
    ],
)
def test_bytes(n: int | None, text: str) -> None:
    assert bytes_text(n) == text


def test_small_texts() -> None:
    assert count_text(1, "node") == "1 node" and count_text(2000, "node") == "2,000 nodes"
    assert shape_text([]) == "scalar" and shape_text([2, 3]) == "[2, 3]" and shape_text(None) == "?"
    assert source_text({"file": r"C:\x\train.py", "line": 3, "code": ""}) == "train.py:3"
    assert source_text(None) == ""

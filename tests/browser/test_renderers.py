"""The four renderers in a real browser, on the offline page that `Picture.to_html` writes."""

from __future__ import annotations

import json
import pathlib
import xml.etree.ElementTree as ET
from typing import Any

import pytest
from playwright.sync_api import Page

from tests.viz import samples
from torchlab.viz.pictures import picture

KINDS = sorted(samples.ALL)
COLOUR_SCHEMES = ["light", "dark"]


def open_picture(page: Page, snapshot: dict[str, Any]) -> None:
    page.set_content(picture(snapshot).to_html())
    page.wait_for_selector("[data-draws]")


def update(page: Page, snapshot: dict[str, Any]) -> None:
    """What a kernel's message does to a live widget."""
    state = picture(snapshot).drawing("css").state(snapshot["kind"])
    page.evaluate("text => tlviz.set_state(JSON.parse(text))", json.dumps(state))


def details(page: Page) -> str:
    return page.locator(".tlv-details").inner_text()


@pytest.mark.parametrize("scheme", COLOUR_SCHEMES)
@pytest.mark.parametrize("width", [1280, 768])
@pytest.mark.parametrize("kind", KINDS)
def test_it_draws_and_fits(
    page: Page, pictures: pathlib.Path, kind: str, width: int, scheme: str
) -> None:
    page.set_viewport_size({"width": width, "height": 800})
    page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
    open_picture(page, samples.ALL[kind]())
    assert page.locator(".tlv-panel svg .part").count() > 5
    assert page.locator(".tlv-name").count() == 1
    # neither the page nor a panel has to be scrolled sideways
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    for sizes in page.eval_on_selector_all(
        ".tlv-panel > .tlv-scroll", "all => all.map(n => [n.scrollWidth, n.clientWidth])"
    ):
        assert sizes[0] <= sizes[1] + 1
    background = page.eval_on_selector(".tlviz", "n => getComputedStyle(n).backgroundColor")
    assert background == {"light": "rgb(255, 255, 255)", "dark": "rgb(21, 24, 30)"}[scheme]
    page.screenshot(path=str(pictures / f"{kind}-{width}-{scheme}.png"), full_page=True)


@pytest.mark.parametrize("kind", KINDS)
def test_measured_text_stays_in_its_box(page: Page, kind: str) -> None:
    """The widths that Python assumed hold for the browser's font."""
    open_picture(page, samples.ALL[kind]())
    wide = page.evaluate("""() => [...document.querySelectorAll('.part')].flatMap((part) => {
          const box = part.querySelector('.shape').getBBox();
          return [...part.querySelectorAll('text')].filter((text) => {
            const words = text.getBBox();
            return words.x < box.x - 0.5 || words.x + words.width > box.x + box.width + 0.5;
          }).map((text) => text.textContent);
        })""")
    assert wide == []


def test_a_click_shows_a_tape_node(page: Page) -> None:
    open_picture(page, samples.autograd())
    assert "NllLossBackward0" in details(page)
    page.locator('.part[data-id="n8"]').click()
    text = details(page)
    for words in (
        "ReluBackward0",
        "[64, 16, 8, 8] float32",
        "256 KiB",
        "0 → 1",
        "train.py:16",
        "self.conv1(x)",
    ):
        assert words in text
    assert "changed in place" in page.locator(".tlv-warning").inner_text()
    assert page.evaluate("tlviz.sent") == [{"type": "select", "id": "n8"}]
    assert page.locator(".edge.tlv-near").count() == 2


def test_keys_walk_the_graph(page: Page) -> None:
    open_picture(page, samples.autograd())
    page.locator('.part[data-id="n0"]').focus()
    page.keyboard.press("Enter")
    page.keyboard.press("ArrowDown")
    assert page.evaluate("document.activeElement.dataset.id") == "n1"
    assert "LogSoftmaxBackward0" in details(page)
    page.keyboard.press("ArrowUp")
    assert "NllLossBackward0" in details(page)


def test_the_frame_of_a_choice_lies_over_its_neighbours(page: Page) -> None:
    snapshot = samples.autograd()
    open_picture(page, snapshot)
    for identity in ("n0", "n1"):
        page.locator(f'.part[data-id="{identity}"]').click()
        ring = page.locator(".tlv-ring")
        assert ring.count() == 1  # the one before is gone
        assert page.evaluate("document.querySelector('.tlv-ring').nextElementSibling") is None
        shape = page.locator(f'.part[data-id="{identity}"] > .shape')
        assert ring.bounding_box() == shape.bounding_box()
    update(page, snapshot)
    assert page.locator(".tlv-ring").count() == 1


def test_an_update_keeps_elements_choice_and_focus(page: Page) -> None:
    snapshot = samples.autograd()
    open_picture(page, snapshot)
    page.locator('.part[data-id="n9"]').focus()
    page.keyboard.press("Enter")
    page.evaluate("window.before = document.querySelector('.part[data-id=n9]')")
    snapshot["nodes"][9] |= {"grad_norm": 0.25, "state": "done", "runs": 1}
    update(page, snapshot)
    assert page.evaluate("window.before === document.querySelector('.part[data-id=n9]')")
    assert page.evaluate("document.activeElement === window.before")
    assert page.locator(".tlv-sel").get_attribute("data-id") == "n9"
    text = details(page)
    assert "0.25" in text and "done" in text
    assert "‖g‖ 0.25" in page.locator('.part[data-id="n9"]').text_content()


def test_growing_and_shrinking_graphs_are_patched(page: Page) -> None:
    full = samples.autograd()
    small = samples.autograd()
    small["nodes"], small["edges"] = small["nodes"][:3], small["edges"][:2]
    open_picture(page, small)
    assert page.locator(".part").count() == 3
    update(page, full)
    assert page.locator(".part").count() == 12 and page.locator(".edge").count() == 11
    page.locator('.part[data-id="n11"]').click()
    update(page, small)
    assert page.locator(".part").count() == 3
    assert "NllLossBackward0" in details(page)  # the chosen node is gone
    update(page, {"kind": "autograd", "version": 1, "roots": [], "nodes": [], "edges": []})
    assert "Click a part" in details(page)


def test_the_patched_page_equals_a_fresh_one(page: Page) -> None:
    open_picture(page, samples.sliced())
    update(page, samples.strides())
    serialized = (
        "[...document.querySelectorAll('svg')].map((s) => new XMLSerializer().serializeToString(s))"
    )
    patched = page.evaluate(serialized)
    open_picture(page, samples.strides())
    fresh = page.evaluate(serialized)
    assert len(patched) == len(fresh) == 4
    for one, other in zip(patched, fresh, strict=True):
        assert ET.canonicalize(one) == ET.canonicalize(other)  # the order of attributes may differ


def test_an_index_lights_its_cell(page: Page) -> None:
    open_picture(page, samples.strides())
    page.locator('[data-id="i2,1"]').hover()
    lit = page.eval_on_selector_all(".tlv-twin", "all => all.map((n) => n.dataset.id).sort()")
    assert lit == ["i2,1", "s6"]
    page.locator('[data-id="s7"]').click()
    page.locator("h3").hover()
    lit = page.eval_on_selector_all(".tlv-twin", "all => all.map((n) => n.dataset.id).sort()")
    assert lit == ["i3,1", "s7"]
    assert "y[3, 1]" in details(page)


def test_a_block_and_an_event_can_be_chosen(page: Page) -> None:
    open_picture(page, samples.memory())
    page.locator('.part[data-id="b5"]').click()
    assert "fc.weight" in details(page) and "0x7f0000400000" in details(page)
    page.locator('.event[data-id="e16"]').click()
    assert "oom of 16 MiB" in details(page) and "The allocation failed." in details(page)


def test_a_node_lights_its_source_lines(page: Page) -> None:
    open_picture(page, samples.fusion())

    def lit() -> list[list[str]]:
        return page.eval_on_selector_all(
            ".code.tlv-twin", "all => all.map((n) => [n.dataset.kernel, n.dataset.line])"
        )

    page.locator('.part[data-id="buf2"]').click()
    assert lit() == [["k0", "8"], ["k0", "9"]]
    assert "h = F.gelu(x * w + 1)" in details(page)
    page.locator('.part[data-id="k1"]').click(position={"x": 40, "y": 14})
    assert len(lit()) == 8
    page.locator('.part[data-id="r1"]').click()
    assert "extern kernel" in details(page)
    twins = page.eval_on_selector_all(".part.tlv-twin", "all => all.map((n) => n.dataset.id)")
    assert twins == ["buf4", "buf5"]
    page.locator('.code[data-kernel="k0"][data-line="7"]').hover()
    twins = page.eval_on_selector_all(".part.tlv-twin", "all => all.map((n) => n.dataset.id)")
    assert twins == ["buf1"]


@pytest.mark.parametrize("kind", KINDS)
def test_hostile_names_do_not_run(page: Page, kind: str) -> None:
    page.on("dialog", lambda dialog: pytest.fail(f"a dialog opened: {dialog.message}"))
    open_picture(page, samples.hostile(kind))
    for identity in page.eval_on_selector_all(
        ".part", "all => all.slice(0, 5).map((n) => n.dataset.id)"
    ):
        page.evaluate(
            "id => document.querySelector(`[data-id='${id}']`).dispatchEvent("
            "new PointerEvent('pointerdown', {bubbles: true, button: 0}))",
            identity,
        )
    assert page.locator("#tlviz-root script").count() == 0
    assert "<script>alert(1)</script>" in page.locator("#tlviz-root").inner_text()


def test_svg_that_could_run_is_disarmed(page: Page) -> None:
    """State can come from someone else's notebook."""
    open_picture(page, samples.autograd())
    bad = (
        "<svg xmlns='http://www.w3.org/2000/svg' "
        "onload='window.hit=1'><script>window.hit=1</script>"
        "<foreignObject><img src='x' onerror='window.hit=1' xmlns='http://www.w3.org/1999/xhtml'/>"
        "</foreignObject><a href='javascript:window.hit=1'><text>x</text></a><rect "
        "onclick='window.hit=1'/></svg>"
    )
    page.evaluate(
        "svg => tlviz.set_state({...tlviz.state, panels: [{id: 'p', title: 't', width: 9, svg}]})",
        bad,
    )
    held = page.eval_on_selector(".tlv-p svg", "n => n.outerHTML")
    assert "hit" not in held and "script" not in held and "foreignObject" not in held
    assert page.evaluate("window.hit") is None


def test_the_same_page_gives_the_same_pixels(page: Page) -> None:
    shots = []
    for _ in range(2):
        open_picture(page, samples.autograd())
        shots.append(page.locator(".tlv-stage").screenshot())
    assert shots[0] == shots[1]

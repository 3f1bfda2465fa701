"""The player of a recorded backward: stepping, rewinding, playing, choosing, searching, folding."""

from __future__ import annotations

import json
import pathlib
import time
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, expect

import torchlab as torch
from tests.browser.lab import LabServer, Notebook, screenshot, set_theme, wait_until
from tests.viz import samples
from torchlab import nn, viz
from torchlab.nn import functional as F
from torchlab.viz.pictures import picture


class Block(nn.Module):
    """A residual block, to have modules within modules."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.up = nn.Linear(width, 2 * width)
        self.down = nn.Linear(2 * width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.down(F.gelu(self.up(self.norm(x))))


def recorded(blocks: int = 2) -> viz.BackwardRecorder:
    """A recording of some blocks, a linear layer and a loss."""
    torch.manual_seed(0)
    net = nn.Sequential(*(Block(8) for _ in range(blocks)), nn.Linear(8, 3))
    with viz.record_backward(net) as recording:
        F.cross_entropy(net(torch.randn(5, 8)), torch.tensor([0, 1, 2, 0, 1])).backward()
    return recording


def open_page(page: Page, shown: Any) -> Locator:
    page.set_content(shown.to_html())
    page.wait_for_selector("[data-draws]")
    return page.locator(".tlb")


def position(page: Page) -> int:
    return int(page.locator(".tlb").get_attribute("data-position") or -1)


def status(page: Page, name: str) -> str | None:
    return page.locator(".tlb-box", has_text=name).first.get_attribute("data-status")


def test_steps_and_rewinds(page: Page) -> None:
    recording = recorded()
    recording.seek(0)
    root = open_page(page, recording.picture)
    assert position(page) == 0 and status(page, "NllLossBackward0") == "waiting"
    root.locator(".tlb-step").click()
    assert status(page, "NllLossBackward0") == "running"
    assert status(page, "LogSoftmaxBackward0") == "receiving"
    expect(root.locator(".tlb-now")).to_contain_text("Step 1 of")
    expect(root.locator(".tlb-now")).to_contain_text("LogSoftmaxBackward0")
    assert root.locator('.edge[data-state="now"]').count() == 1
    root.locator(".tlb-step").click()
    assert status(page, "NllLossBackward0") == "done"
    # the details follow the step, with numbers that Python computed
    size = recording.steps[1]["received"][0]["norm"]
    expect(root.locator(".tlv-name")).to_have_text("LogSoftmaxBackward0")
    expect(root.locator(".tlv-rows")).to_contain_text(f"[5, 3] ‖g‖ {size:.3g}")
    root.locator(".tlb-back").click()
    root.locator(".tlb-back").click()
    assert position(page) == 0 and status(page, "NllLossBackward0") == "waiting"
    assert root.locator('.edge[data-state="idle"]').count() == root.locator(".edge").count()
    root.locator(".tlb-last").click()
    assert position(page) == len(recording.steps)
    n = len(recording.steps)
    expect(root.locator(".tlb-count")).to_have_text(f"{n} / {n}")
    statuses = root.locator(".tlb-box").evaluate_all("all => all.map(n => n.dataset.status)")
    assert set(statuses) == {"done", "running"}


def test_every_position_equals_pythons(page: Page) -> None:
    recording = recorded(1)
    root = open_page(page, recording.picture)
    root.locator(".tlb-open-all").click()
    for at in (len(recording.steps), 9, 4, 0, 7):
        root.locator(".tlb-slider").evaluate(
            "(n, v) => { n.value = v; n.dispatchEvent(new Event('input')); }", str(at)
        )
        state = recording.seek(at)
        shown = root.locator(".tlb-box").evaluate_all(
            "all => Object.fromEntries(all.map(n => [n.dataset.id, n.dataset.status]))"
        )
        assert shown == {i: s.status for i, s in state.nodes.items()}
        expect(root.locator(".tlb-now")).to_have_text(state.text)


def test_keys(page: Page) -> None:
    recording = recorded(1)
    recording.seek(0)
    root = open_page(page, recording.picture)
    root.locator(".tlb-box").first.focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowLeft")
    assert position(page) == 1
    page.keyboard.press("End")
    assert position(page) == len(recording.steps)
    page.keyboard.press("Home")
    assert position(page) == 0
    page.keyboard.press("Space")
    expect(root).to_have_attribute("data-playing", "true")
    wait_until(lambda: position(page) >= 2, "two steps")
    page.keyboard.press("Space")
    expect(root).to_have_attribute("data-playing", "false")
    stopped = position(page)
    page.wait_for_timeout(900)
    assert position(page) == stopped
    root.locator(".tlb-box").first.focus()
    before = page.evaluate("document.activeElement.dataset.id")
    page.keyboard.press("ArrowDown")
    assert page.evaluate("document.activeElement.dataset.id") != before
    root.locator(".tlb-search").press("ArrowLeft")  # a key in the field is the field's
    assert position(page) == stopped


def test_playing_ends_at_the_end_and_begins_again(page: Page) -> None:
    recording = recorded(1)
    root = open_page(page, recording.picture)
    root.locator(".tlb-speed select").select_option("35")
    root.locator(".tlb-play").click()
    expect(root.locator(".tlb-play")).to_have_attribute("aria-label", "Pause (space)")
    n = len(recording.steps)
    expect(root.locator(".tlb-count")).to_have_text(f"{n} / {n}")
    expect(root).to_have_attribute("data-playing", "false")
    expect(root.locator(".tlb-play")).to_have_attribute("aria-label", "Play (space)")


def test_a_click_chooses_a_node(page: Page) -> None:
    root = open_page(page, recorded(1).picture)
    root.locator(".tlb-box", has_text="GeluBackward0").click()
    details = root.locator(".tlv-details")
    for words in ("GeluBackward0", "operator", "gelu", "received", "let go", "fed", "line"):
        expect(details).to_contain_text(words)
    assert root.locator(".edge.tlv-near").count() == 2
    sent = page.evaluate("tlviz.sent")
    assert sent and sent[-1]["type"] == "select"


def test_the_timeline_can_be_clicked(page: Page) -> None:
    recording = recorded(1)
    root = open_page(page, recording.picture)
    box = root.locator(".tlb-time svg").bounding_box()
    assert box
    page.mouse.click(box["x"] + box["width"] / 2, box["y"] + 20)
    assert abs(position(page) - len(recording.steps) / 2) <= 0.5


def test_search_finds_opens_and_goes_on(page: Page) -> None:
    root = open_page(page, recorded().picture)
    root.locator(".tlb-fold-all").click()
    field = root.locator(".tlb-search")
    field.fill("gelu")
    expect(root.locator(".tlb-found")).to_have_text("2 found")
    assert root.locator(".tlb-hit").count() == 2  # the two folded blocks
    assert root.locator(".tlb-dim").count() == root.locator(".tlb-box").count() - 2
    field.press("Enter")
    expect(root.locator(".tlb-found")).to_have_text("1 of 2")
    expect(root.locator(".tlv-name")).to_have_text("GeluBackward0")
    assert root.locator(".tlb-box.tlb-hit", has_text="GeluBackward0").count() == 1
    field.press("Enter")
    assert root.locator(".tlb-box.tlb-hit", has_text="GeluBackward0").count() == 2
    field.fill("no such thing")
    expect(root.locator(".tlb-found")).to_have_text("0 found")
    field.press("Escape")
    assert root.locator(".tlb-dim").count() == 0 and field.input_value() == ""


def test_modules_fold_and_open(page: Page) -> None:
    root = open_page(page, recorded().picture)
    everything = root.locator(".tlb-box").count()
    frame = root.locator(".tlb-frame", has_text="0: Block").first
    frame.locator("[data-fold] text").click()
    folded = root.locator(".tlb-box.tlb-group")
    expect(folded).to_have_count(1)
    assert root.locator(".tlb-box").count() < everything
    expect(folded).to_contain_text("13 nodes, folded")
    expect(folded).to_contain_text("13 of 13 ran")
    expect(folded).to_have_attribute("aria-expanded", "false")
    assert page.evaluate("document.activeElement.dataset.id") == folded.get_attribute("data-id")
    page.keyboard.press("Enter")
    expect(root.locator(".tlb-box")).to_have_count(everything)
    root.locator(".tlb-fold-all").click()
    expect(root.locator(".tlb-box.tlb-group")).to_have_count(3)
    root.locator(".tlb-box.tlb-group").first.dblclick(position={"x": 60, "y": 30})
    expect(root.locator(".tlb-box.tlb-group")).to_have_count(2)
    root.locator(".tlb-open-all").click()
    expect(root.locator(".tlb-box")).to_have_count(everything)


def test_boxes_lie_apart_and_inside_their_modules(page: Page) -> None:
    root = open_page(page, recorded().picture)
    root.locator(".tlb-open-all").click()
    shapes = root.locator(".tlb-box .shape").evaluate_all(
        "all => all.map(n => n.getBBox()).map(b => [b.x, b.y, b.x + b.width, b.y + b.height])"
    )
    for i, one in enumerate(shapes):
        for other in shapes[:i]:
            assert (
                one[2] <= other[0] or other[2] <= one[0] or one[3] <= other[1] or other[3] <= one[1]
            )
    wrong = page.evaluate("""() => [...document.querySelectorAll('.tlb-box')].flatMap((part) => {
        const box = part.querySelector('.shape').getBBox();
        return [...part.querySelectorAll('.tlb-name, .tlb-line')].filter((text) => {
            const words = text.getBBox();
            return words.x < box.x || words.x + words.width > box.x + box.width + 0.5;
        }).map((text) => text.textContent);
    })""")
    assert wrong == []


def test_nan_is_marked_from_its_start(page: Page) -> None:
    root = open_page(page, picture(samples.backward()))
    note = root.locator(".tlb-note")
    expect(note).to_contain_text("The forward's first NaN is made by log")
    expect(note).to_contain_text("7 negative")
    assert root.locator(".tlb-bad.tlb-box").count() == 2
    assert root.locator(".edge.tlb-bad").count() == 1
    expect(root.locator('.tlb-box[data-id="n4"] .tlb-flag')).to_have_text("NaN starts here")
    note.get_by_role("button").click()
    expect(root.locator(".tlv-name")).to_have_text("LogBackward0")
    strip = root.locator('.tlb-box[data-id="n0"]')
    assert strip.get_attribute("data-heat") == "error"
    root.locator(".tlb-box", has_text="AddmmBackward0").click()
    expect(root.locator(".tlv-details")).to_contain_text("summed here over dim 0, 5 into each")
    expect(root.locator(".tlv-details")).to_contain_text("(held elsewhere too)")


def test_five_thousand_nodes_open_folded_within_a_second(page: Page) -> None:
    torch.manual_seed(0)
    net = nn.Sequential(*(Block(8) for _ in range(385)))
    with viz.record_backward(net) as recording:
        net(torch.randn(2, 8)).sum().backward()
    assert len(recording.snapshot()["nodes"]) > 5000
    state = json.dumps(recording.picture.drawing("css").state("backward"))
    open_page(page, picture(samples.backward()))
    seconds = page.evaluate(
        """text => {
            const start = performance.now();
            tlviz.set_state(JSON.parse(text));
            document.querySelector('.tlb svg').getBoundingClientRect();
            return (performance.now() - start) / 1100;
        }""",
        state,
    )
    assert seconds < 1.0
    boxes = page.locator(".tlb-box").count()
    assert 3 < boxes <= 60
    start = time.monotonic()
    page.locator(".tlb-search").fill("384.up.weight")
    page.locator(".tlb-search").press("Enter")
    expect(page.locator(".tlv-name")).to_have_text("384.up.weight")
    assert time.monotonic() - start < 5


def test_labels_for_those_who_listen(page: Page) -> None:
    root = open_page(page, picture(samples.backward()))
    unnamed = root.evaluate(
        """root => [...root.querySelectorAll('button, input, select, .part')].filter((n) =>
            !(n.getAttribute('aria-label') || n.closest('label') || n.textContent.trim()))
            .map((n) => n.outerHTML)"""
    )
    assert unnamed == []
    slider = root.get_by_role("slider", name="Position in the backward")
    assert "takes its first gradient" in (slider.get_attribute("aria-valuetext") or "")
    expect(root.get_by_role("toolbar", name="Play the backward")).to_be_visible()
    label = root.locator('.tlb-box[data-id="n4"]').get_attribute("aria-label") or ""
    assert label.startswith("LogBackward0, [5, 3] float32, ‖g‖ 0.258") and "done" in label


def contrast(page: Page, text: str, below: str) -> float:
    """The contrast of a text's colour against the fill of a shape, as WCAG 2 defines it."""
    found: float = page.evaluate(
        """([text, below]) => {
            const rgb = (s) => s.match(/[\\d.]+/g).map(Number);
            const light = ([r, g, b]) => [r, g, b].map((v) => (v /= 255) <= 0.03928
                ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
                .reduce((s, v, i) => s + v * [0.2126, 0.7152, 0.0722][i], 0);
            let worst = 99;
            for (const box of document.querySelectorAll(below)) {
                const base = rgb(getComputedStyle(box.querySelector('.shape')).fill);
                const veil = getComputedStyle(box.querySelector('.tlb-heat'));
                const a = Number(veil.fillOpacity), over = rgb(veil.fill);
                const mixed = base.slice(0, 3).map((v, i) => v * (1 - a) + over[i] * a);
                for (const words of box.querySelectorAll(text)) {
                    const [x, y] = [light(rgb(getComputedStyle(words).fill)), light(mixed)];
                    worst = Math.min(worst, (Math.max(x, y) + 0.05) / (Math.min(x, y) + 0.05));
                }
            }
            return worst;
        }""",
        [text, below],
    )
    return found


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_can_be_read_on_every_heat(page: Page, scheme: str) -> None:
    page.emulate_media(color_scheme=scheme, reduced_motion="reduce")  # type: ignore[arg-type]
    open_page(page, recorded().picture)
    assert contrast(page, "text", ".tlb-box") >= 4.5
    open_page(page, picture(samples.backward()))
    assert contrast(page, ".tlb-name, .tlb-line", ".tlb-box") >= 4.5


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 768])
def test_it_fits(page: Page, pictures: pathlib.Path, width: int, scheme: str) -> None:
    page.set_viewport_size({"width": width, "height": 800})
    page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
    recording = recorded()
    recording.seek(9)
    open_page(page, recording.picture)
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    bar = page.locator(".tlb-bar").bounding_box()
    assert bar and bar["height"] < 70
    pictures.mkdir(parents=True, exist_ok=True)
    page.screenshot(path=str(pictures / f"player-{width}-{scheme}.png"), full_page=True)


CELLS = [
    """\
import torchlab as torch
from torchlab import nn, viz

net = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
with viz.record_backward(net) as recording:
    loss = net(torch.ones(3, 4)).pow(2).mean()
    loss.backward()
recording.seek(2)
recording.show()
""",
    "print(recording.seek(5).text)",
]


def test_in_jupyterlab(page: Page, lab_server: LabServer, pictures: pathlib.Path) -> None:
    path = lab_server.write_notebook("player.ipynb", CELLS)
    notebook = Notebook.open(page, lab_server, path)
    notebook.run_cell(0)
    root = page.locator(".tlb")
    expect(root.locator(".tlb-count")).to_have_text("2 / 11")
    root.locator(".tlb-box").first.focus()
    page.keyboard.press("ArrowRight")  # JupyterLab's own keys stay out
    expect(root.locator(".tlb-count")).to_have_text("3 / 11")
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("Space")
    expect(root).to_have_attribute("data-playing", "true")
    page.keyboard.press("Space")
    expect(root).to_have_attribute("data-playing", "false")
    root.locator(".tlb-search").fill("tanh")
    expect(root.locator(".tlb-found")).to_have_text("1 found")
    root.locator(".tlb-search").fill("")
    screenshot(page, "player-lab-light", pictures)
    set_theme(page, dark=True)
    background = root.evaluate("n => getComputedStyle(n).backgroundColor")
    assert background == "rgb(21, 24, 30)"
    root.evaluate("n => n.scrollIntoView({block: 'start'})")
    screenshot(page, "player-lab-dark", pictures)
    notebook.run_cell(1)  # Python moves the player
    expect(root.locator(".tlb-count")).to_have_text("5 / 11")
    assert "Step 5 of 11" in notebook.output_text(1)
    assert notebook.first_error() is None
    notebook.close()

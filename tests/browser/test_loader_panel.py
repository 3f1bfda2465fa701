"""The panel on data loading: hovering, keys, zoom, epochs, lanes, live updates, many batches."""

from __future__ import annotations

import json
import pathlib
import shutil
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.lab import LabServer, Notebook, execute, screenshot, set_theme, wait_until
from tests.viz import samples
from torchlab.viz.loading import Loading
from torchlab.viz.pictures import picture

LABEL = 104  # pixels of a lane's name


def open_page(page: Page, snapshot: Any) -> Locator:
    page.set_content(picture(snapshot).to_html())
    page.wait_for_selector("[data-draws]")
    return page.locator(".tll")


def update(page: Page, snapshot: Any) -> None:
    state = picture(snapshot).drawing("css").state("loader")
    page.evaluate("text => tlviz.set_state(JSON.parse(text))", json.dumps(state))


def place(page: Page, seconds: float, row: int) -> tuple[float, float]:
    """Where a time is on a lane (0: the loop), in the page's pixels."""
    box = page.locator(".tll-lanes").bounding_box()
    shown = page.locator(".tll")
    assert box
    start, end = (float(shown.get_attribute(f"data-{k}") or 0) for k in ("from", "to"))
    share = (seconds * 1e6 - start) / (end - start)
    return box["x"] + LABEL + share * (box["width"] - LABEL), box["y"] + 22 + 30 * row + 8


def span(page: Page) -> tuple[float, float]:
    root = page.locator(".tll")
    return tuple(float(root.get_attribute(f"data-{k}") or 0) for k in ("from", "to"))  # type: ignore[return-value]


def test_the_verdict_is_on_top(page: Page) -> None:
    snapshot = samples.loader()
    root = open_page(page, snapshot)
    verdict = Loading(snapshot).verdict
    expect(root.locator(".tll-cause")).to_contain_text("reading samples")
    expect(root.locator(".tll-why")).to_have_text(verdict.sentence)
    expect(root.locator(".tll-remedy")).to_have_text(verdict.remedy)
    expect(root.locator(".tll-settings")).to_have_text("num_workers=16")
    expect(root.locator(".tll-note")).to_have_text(
        "Worker 0 failed in batch 10: ValueError: no such picture"
    )
    top = root.locator(".tll-verdict").bounding_box()
    plot = root.locator(".tll-plot").bounding_box()
    assert top and plot and top["y"] < plot["y"]


def test_hovering_tells_of_the_batch(page: Page) -> None:
    snapshot = samples.loader()
    root = open_page(page, snapshot)
    began, ended = snapshot["batches"][7]["spans"]["fetch"]
    page.mouse.move(*place(page, (began + ended) / 2, 3))
    expect(root.locator(".tlv-name")).to_have_text("Batch 7")
    details = root.locator(".tlv-details")
    for words in (
        "read samples", "epoch 1", f"2, seed {2**62 + 2}", "cat/14.png, 15", "160 ms, computing 1%",
        "sample 15, 150 ms", "2 samples, 2 KiB, 48 B of it not in tensors",
    ):  # fmt: skip
        expect(details).to_contain_text(words)
    expect(root.locator(".tll-now")).to_contain_text("read samples · batch 7 of worker 2 (epoch 1)")
    assert root.locator(".tll-hit").count() > 4  # on the worker's lane, below it, and on the loop's
    assert root.locator(".tll-cursor").get_attribute("visibility") == "visible"
    made = snapshot["batches"][8]["spans"]["pack"][1]
    x, y = place(page, made + 0.05, 4)
    page.mouse.move(x, y + 14)  # the strip below the lane
    expect(root.locator(".tlv-name")).to_have_text("Batch 8")
    expect(details).to_contain_text("118 ms behind batch 7")
    page.mouse.move(5, 5)
    expect(root.locator(".tlv-name")).to_have_text("The loop's process")
    expect(root.locator(".tll-now")).to_contain_text("Point at a lane")
    assert root.locator(".tll-hit").count() == 0


def test_the_queue_can_be_read(page: Page) -> None:
    snapshot = samples.loader()
    root = open_page(page, snapshot)
    x, _ = place(page, 0.16, 0)
    box = root.locator(".tll-lanes").bounding_box()
    assert box
    page.mouse.move(x, box["y"] + 22 + 30 * 6 + 30)
    level = max(n for t, n in [(0, 0), *Loading(snapshot).depth()] if t <= 0.16)
    assert level > 0
    last = [n for t, n in Loading(snapshot).depth() if t <= 0.16][-1]
    expect(root.locator(".tll-now")).to_contain_text(f"at 160 ms · {last} batches ready")


def test_a_click_keeps_a_batch_and_tells_python(page: Page) -> None:
    snapshot = samples.loader()
    root = open_page(page, snapshot)
    began, ended = snapshot["batches"][3]["spans"]["fetch"]
    page.mouse.click(*place(page, (began + ended) / 2, 4))
    page.mouse.move(5, 5)
    expect(root.locator(".tlv-name")).to_have_text("Batch 3")
    assert root.get_attribute("data-batch") == "3"
    assert page.evaluate("tlviz.sent") == [{"type": "select", "id": "b3"}]
    update(page, samples.loader())  # a redraw keeps it
    expect(root.locator(".tlv-name")).to_have_text("Batch 3")
    root.locator(".tll-lanes").focus()
    page.keyboard.press("Escape")
    expect(root.locator(".tlv-name")).to_have_text("The loop's process")


def test_keys_walk_over_batches_and_lanes(page: Page) -> None:
    root = open_page(page, samples.loader())
    root.locator(".tll-lanes").focus()
    page.keyboard.press("ArrowRight")
    assert root.get_attribute("data-batch") == "0"
    for _ in range(3):
        page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowLeft")
    expect(root.locator(".tlv-name")).to_have_text("Batch 2")
    page.keyboard.press("Shift+ArrowRight")  # the same worker's next
    expect(root.locator(".tlv-name")).to_have_text("Batch 7")
    page.keyboard.press("ArrowDown")  # what the worker below did then
    expect(root.locator(".tlv-details")).to_contain_text(f"3, seed {2**62 + 3}")
    page.keyboard.press("ArrowUp")
    page.keyboard.press("ArrowUp")
    expect(root.locator(".tlv-details")).to_contain_text(f"1, seed {2**62 + 1}")
    page.keyboard.press("End")
    expect(root.locator(".tlv-name")).to_have_text("Batch 11")
    expect(root.locator(".tlv-details")).to_contain_text("epoch 2")
    page.keyboard.press("Home")
    expect(root.locator(".tlv-name")).to_have_text("Batch 0")
    page.keyboard.press("Enter")
    assert page.evaluate("tlviz.sent") == [{"type": "select", "id": "b0"}]


def test_zoom_pan_and_epochs(page: Page) -> None:
    snapshot = samples.loader()
    root = open_page(page, snapshot)
    whole = span(page)
    assert whole[0] == 0
    root.locator(".tll-in").click()
    wait_until(lambda: span(page)[1] - span(page)[0] < 0.51 * whole[1], "half")
    expect(root.locator(".tll-range")).to_contain_text("of 423 ms")
    expect(root.locator(".tll-window")).to_have_count(1)
    before = span(page)
    x, y = place(page, sum(before) / 2e6, 1)
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(x - 100, y, steps=4)
    page.mouse.up()
    wait_until(lambda: span(page)[0] > before[0] + 1000, "a pan to the right")
    assert root.get_attribute("data-batch") == ""  # a drag chooses nothing
    page.keyboard.press("PageUp")
    root.locator(".tll-lanes").focus()
    page.keyboard.press("+")
    page.keyboard.press("PageUp")
    page.keyboard.press("PageUp")
    wait_until(lambda: span(page)[0] == 0, "the beginning")
    page.keyboard.press("0")
    wait_until(lambda: span(page) == whole, "all")
    expect(root.locator(".tll-overview")).to_be_hidden()
    root.locator(".tll-jump select").select_option("1")
    began, ended = (t * 1e6 for t in Loading(snapshot).ends(1))
    wait_until(lambda: span(page) == (round(began), round(ended)), "the second epoch")
    box = root.locator(".tll-overview").bounding_box()
    assert box
    page.mouse.click(box["x"] + LABEL + 5, box["y"] + 8)  # the strip takes one anywhere
    wait_until(lambda: span(page)[0] == 0, "the beginning")
    assert root.locator(".tll-jump select").input_value() == ""
    root.locator(".tll-all").click()
    wait_until(lambda: span(page) == whole, "all")
    x, y = place(page, 0.1, 2)
    page.mouse.dblclick(x, y)
    wait_until(lambda: span(page)[1] - span(page)[0] < 0.5 * whole[1], "a double click")
    assert span(page)[0] < 1e5 < span(page)[1]
    page.keyboard.down("Control")
    page.mouse.wheel(0, 300)
    page.keyboard.up("Control")
    page.mouse.wheel(0, 300)  # without Control the page scrolls


def test_walking_keeps_the_batch_in_view(page: Page) -> None:
    snapshot = samples.loader(4, 1, 200)
    root = open_page(page, snapshot)
    for _ in range(4):
        root.locator(".tll-in").click()
    root.locator(".tll-after").click()
    for _ in range(12):
        root.locator(".tll-after").click()
    page.wait_for_timeout(60)
    number = int(root.get_attribute("data-batch") or -1)
    assert number > 12
    assert root.locator(".tll-hit").count() >= 2


def test_lanes_tell_of_their_workers(page: Page) -> None:
    root = open_page(page, samples.loader())
    lane = root.get_by_role("button", name="worker 2: show its figures")
    lane.click()
    expect(root.locator(".tlv-name")).to_have_text("Worker 2")
    details = root.locator(".tlv-details")
    expect(details).to_contain_text("of its time")
    expect(details).to_contain_text(f"{2**62 + 2}, {2**62 + 3}")
    assert page.evaluate("tlviz.sent") == [{"type": "select", "id": "w0.2"}]
    lane.focus()
    page.keyboard.press("ArrowDown")
    expect(root.locator(".tlv-name")).to_have_text("Worker 3")
    assert page.evaluate("document.activeElement.dataset.id") == "w0.3"
    page.keyboard.press("Enter")
    expect(root.locator(".tll-lane.tlv-sel")).to_have_count(1)


def test_it_grows_while_it_runs(page: Page) -> None:
    full = samples.loader(2, 1, 40)
    part = json.loads(json.dumps(full))
    part["batches"], part["blocked"] = part["batches"][:10], part["blocked"][:10]
    part["passes"][0]["end"], part["running"] = None, True
    root = open_page(page, part)
    expect(root.locator(".tll-follow")).to_be_visible()
    before = span(page)
    page.evaluate("window.verdict = document.querySelector('.tll-verdicts').firstChild")
    update(page, part)
    assert page.evaluate("window.verdict === document.querySelector('.tll-verdicts').firstChild")
    root.locator(".tll-lanes").focus()
    page.keyboard.press("ArrowRight")
    more = json.loads(json.dumps(full))
    more["batches"], more["blocked"] = more["batches"][:20], more["blocked"][:20]
    more["passes"][0]["end"], more["running"] = None, True
    update(page, more)
    assert span(page)[1] > before[1] * 1.5
    assert root.get_attribute("data-batch") == "0"
    assert page.evaluate("document.activeElement.classList.contains('tll-lanes')")
    now = span(page)[1]
    page.keyboard.press("+")
    wait_until(lambda: span(page)[1] < 0.8 * now, "a zoom")
    assert not root.locator(".tll-follow input").is_checked()  # it was moved away from the end
    root.locator(".tll-follow input").check()
    wide = span(page)[1] - span(page)[0]
    update(page, full)
    end = max(Loading(full).ends(0)) * 1e6
    assert span(page)[1] == pytest.approx(end, abs=2)
    assert span(page)[1] - span(page)[0] == pytest.approx(wide, abs=2)
    expect(root.locator(".tll-follow")).to_be_hidden()


def test_a_thousand_batches_open_within_a_second(page: Page) -> None:
    state = json.dumps(picture(samples.loader(4, 2, 500)).drawing("css").state("loader"))
    root = open_page(page, samples.loader())
    seconds = page.evaluate(
        """text => {
            const start = performance.now();
            tlviz.set_state(JSON.parse(text));
            document.querySelector('.tll-lanes').getBoundingClientRect();
            return (performance.now() - start) / 1000;
        }""",
        state,
    )
    assert seconds < 1.0
    assert page.locator(".tll-lanes *").count() < 200
    assert int(root.get_attribute("data-bins") or 0) > 300
    for _ in range(6):
        root.locator(".tll-in").click()
    wait_until(lambda: root.get_attribute("data-bins") == "0", "no folding when zoomed in")


def test_many_workers_stay_in_view(page: Page) -> None:
    page.set_viewport_size({"width": 1280, "height": 1200})
    snapshot = samples.loader(40, 1, 80)
    root = open_page(page, snapshot)
    assert root.locator(".tll-lane").count() == 41
    hold = root.locator(".tll-plot > .tlv-scroll")
    assert hold.evaluate("n => n.scrollHeight <= n.clientHeight + 1")
    lane = root.locator(".tll-lane").last.bounding_box()
    assert lane and lane["height"] < 16
    began, ended = snapshot["batches"][39]["spans"]["fetch"]
    page.mouse.move(place(page, (began + ended) / 2, 0)[0], lane["y"] + lane["height"] / 2)
    expect(root.locator(".tlv-details")).to_contain_text(f"39, seed {2**62 + 39}")


def test_folding_keeps_the_shares(page: Page) -> None:
    """The height of what is folded is the share of the time, also where long stretches join in."""
    open_page(page, samples.loader())
    shares = page.evaluate("""async () => {
        const source = [...document.scripts].find((s) => s.type === 'module').textContent;
        const from = source.indexOf('const LANE'), to = source.indexOf('// A step curve');
        const lanePaths = new Function(
            source.slice(from, to) + '; return [TimeAxis, lanePaths];')();
        const [TimeAxis, draw] = lanePaths;
        const spans = [];
        for (let k = 0; k < 3000; k++) {
            spans.push(k * 10, k * 10 + 6, 0, k, k * 10 + 6, k * 10 + 8, 1, k);
        }
        spans.push(30000, 40000, 0, 1);
        const BAR = 18, out = draw(spans, 2, new TimeAxis(0, 40000, 904), 0, BAR);
        const area = (list) => list.join('').split('z').reduce((sum, d) => {
            const folded = d.match(/h([\\d.]+)v([\\d.]+)/);
            if (folded) return sum + folded[1] * folded[2];
            const wide = d.match(/M([\\d.]+) [\\d.]+H([\\d.]+)/);
            return wide ? sum + (wide[2] - wide[1]) * BAR : sum;
        }, 0);
        return [0, 1].map((p) => (area(out.folded[p]) + area(out.wide[p])) / (800 * BAR));
    }""")
    assert shares == pytest.approx([0.6 * 0.75 + 0.25, 0.2 * 0.75], rel=0.04)


def test_labels_for_those_who_listen(page: Page) -> None:
    root = open_page(page, samples.loader())
    unnamed = root.evaluate(
        """root => [...root.querySelectorAll('button, input, select, .part')].filter((n) =>
            !(n.getAttribute('aria-label') || n.closest('label') || n.textContent.trim()))
            .map((n) => n.outerHTML)"""
    )
    assert unnamed == []
    expect(root.get_by_role("toolbar", name="Time")).to_be_visible()
    assert "Left and right arrow" in (root.locator(".tll-lanes").get_attribute("aria-label") or "")
    assert root.locator(".tll-now").get_attribute("aria-live") == "polite"


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 768])
def test_it_fits(page: Page, pictures: pathlib.Path, width: int, scheme: str) -> None:
    page.set_viewport_size({"width": width, "height": 800})
    page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
    root = open_page(page, samples.loader())
    root.locator(".tll-lanes").focus()
    page.keyboard.press("ArrowRight")
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    tools = root.locator(".tll-tools").bounding_box()
    assert tools and tools["height"] < 40
    # no text of the picture is cut, and none lies on another
    boxes = page.evaluate("""() => {
        const svg = document.querySelector('.tll-lanes').getBoundingClientRect();
        return [...document.querySelectorAll('.tll-lanes text')].map((t) => {
            const b = t.getBoundingClientRect();
            return [b.left - svg.left, b.top - svg.top, b.right - svg.left, b.bottom - svg.top,
                    svg.width, svg.height];
        });
    }""")
    for i, one in enumerate(boxes):
        assert one[0] >= 0 and one[1] >= 0 and one[2] <= one[4] + 1 and one[3] <= one[5] + 1
        for other in boxes[:i]:
            apart = one[2] <= other[0] or other[2] <= one[0]
            assert apart or one[3] <= other[1] + 1 or other[3] <= one[1] + 1
    pictures.mkdir(parents=True, exist_ok=True)
    page.screenshot(path=str(pictures / f"loader-{width}-{scheme}.png"), full_page=True)
    page.set_viewport_size({"width": 620, "height": 800})  # the picture follows the page's width
    wait_until(
        lambda: page.evaluate("document.documentElement.scrollWidth <= innerWidth"), "a narrow page"
    )


CELLS = [
    """\
import time
import torchlab as torch
from torchlab import viz
from torchlab.utils.data import DataLoader, Dataset

class Slow(Dataset):
    def __len__(self):
        return 120
    def __getitem__(self, i):
        time.sleep(0.01)
        return torch.full((3,), float(i))

with viz.record_loading() as recording:
    recording.show()
    for batch in DataLoader(Slow(), 4, num_workers=1):
        time.sleep(0.02)
""",
    "print(recording.verdict.cause)",
]


def test_in_jupyterlab(page: Page, lab_server: LabServer, pictures: pathlib.Path) -> None:
    path = lab_server.write_notebook("loading.ipynb", CELLS)
    notebook = Notebook.open(page, lab_server, path)
    notebook.start_cell(0)
    root = page.locator(".tll")
    expect(root.locator(".tll-follow")).to_be_visible()  # it is drawn while the cell runs
    wait_until(lambda: int(root.get_attribute("data-draws") or 0) >= 3, "three live pictures")
    notebook.wait_cell(0)
    expect(root.locator(".tll-follow")).to_be_hidden()
    expect(root.locator(".tlv-sub").first).to_contain_text("30 batches")
    root.locator(".tll-lanes").focus()
    page.keyboard.press("End")  # JupyterLab's own keys stay out
    expect(root.locator(".tlv-name")).to_have_text("Batch 29")
    root.evaluate("n => n.scrollIntoView({block: 'start'})")
    screenshot(page, "loader-lab-light", pictures)
    set_theme(page, dark=True)
    background = root.evaluate("n => getComputedStyle(n).backgroundColor")
    assert background == "rgb(21, 24, 30)"
    root.evaluate("n => n.scrollIntoView({block: 'start'})")
    screenshot(page, "loader-lab-dark", pictures)
    notebook.run_cell(1)
    assert notebook.output_text(1).strip() == "workers"
    assert notebook.first_error() is None
    notebook.close()


def test_the_notebook_on_loading(page: Page, lab_server: LabServer, pictures: pathlib.Path) -> None:
    name = "03_data_loading.ipynb"
    shutil.copy(pathlib.Path(__file__).parents[2] / "notebooks" / name, lab_server.root / name)
    notebook = Notebook.open(page, lab_server, name)
    notebook.run_all(240)
    execute(page, "application:toggle-left-area")  # the room that a small screen gives
    panels = page.locator(".tll")
    assert panels.count() >= 3  # those that JupyterLab has drawn: it leaves out what is far away
    first = panels.first
    first.scroll_into_view_if_needed()
    expect(first.locator(".tll-cause")).to_contain_text("reading samples")
    first.locator(".tll-after").click()
    expect(first.locator(".tlv-name")).to_have_text("Batch 0")
    for dark in (False, True):
        set_theme(page, dark=dark)
        for width in (1280, 768):
            page.set_viewport_size({"width": width, "height": 1000})
            for k in (0, 1):
                panel = panels.nth(k)
                panel.evaluate("n => n.scrollIntoView({block: 'start'})")
                wait_until(
                    lambda panel=panel: panel.evaluate("n => n.scrollWidth <= n.clientWidth"),
                    f"a panel that fits at {width}",
                )
                colour = "dark" if dark else "light"
                screenshot(page, f"loading-notebook-{colour}-{width}-{k}", pictures)
    notebook.close()

"""notebooks/00_start.ipynb in a real JupyterLab: every cell runs, the pictures draw and live."""

from __future__ import annotations

import json
import pathlib
from typing import Any

from playwright.sync_api import Locator, Page, expect

from tests.browser.lab import LabServer, Notebook, execute, screenshot, set_theme, wait_until

START = pathlib.Path(__file__).resolve().parents[2] / "notebooks" / "00_start.ipynb"
SIGNAL = "start-signal"

WAIT = f"""\
def wait_for(step):
    import pathlib, time
    path = pathlib.Path({SIGNAL!r})
    while not path.exists() or path.read_text() != step:
        time.sleep(0.02)


"""


class Start:
    """A copy of the notebook in which two cells stop until the test lets them go on."""

    def __init__(self, server: LabServer) -> None:
        content: dict[str, Any] = json.loads(START.read_text(encoding="utf-8"))
        self.cells = content["cells"]
        self.signal = server.root / SIGNAL
        self.live = self._stop("total.backward()", "viz.live_autograd", "backward")
        self.memory = self._stop("held = torch.sim.memory_allocated()", "viz.live_memory", "memory")
        (server.root / START.name).write_text(json.dumps(content), encoding="utf-8")

    def _stop(self, line: str, mark: str, step: str) -> int:
        """Put a wait before `line` of the cell with `mark`; returns the cell's index."""
        index = self.find(mark)
        source = "".join(self.cells[index]["source"])
        assert source.count(line) == 1
        start = source.index(line)
        indent = source[source.rfind("\n", 0, start) + 1 : start]
        stopped = f"{source[:start]}wait_for({step!r})\n{indent}{source[start:]}"
        self.cells[index]["source"] = WAIT + stopped
        return index

    def find(self, mark: str) -> int:
        """The index of the one code cell whose source contains `mark`."""
        (index,) = (i for i in self.code() if mark in "".join(self.cells[i]["source"]))
        return index

    def code(self) -> list[int]:
        """The indices of the code cells."""
        return [i for i, cell in enumerate(self.cells) if cell["cell_type"] == "code"]


def picture(page: Page, index: int) -> Locator:
    """The live picture below a cell."""
    found = page.locator(f'.jp-Cell[data-windowed-list-index="{index}"] .tlviz-live')
    found.scroll_into_view_if_needed()
    return found


def allocated(page: Page) -> int:
    """What the sidebar says that sim:0 holds, in bytes; -1 while it says nothing."""
    found = page.locator('#torchlab-memory [data-device="sim:0"] [data-field="allocated"]')
    return int(found.get_attribute("data-bytes") or -1) if found.count() else -1


def keep(page: Page, shown: Locator, name: str, folder: pathlib.Path) -> None:
    """Screenshots of the part, 1280 and 768 wide, light and dark; nothing in it sticks out."""
    for dark in (False, True):
        set_theme(page, dark=dark)
        for width in (1280, 768):
            page.set_viewport_size({"width": width, "height": 800})
            shown.evaluate("n => n.scrollIntoView({block: 'start'})")
            assert shown.evaluate("n => n.scrollWidth <= n.clientWidth"), f"{name} at {width}"
            screenshot(page, f"start-{name}-{'dark' if dark else 'light'}-{width}", folder)
    page.set_viewport_size({"width": 1280, "height": 800})
    set_theme(page, dark=False)


def test_the_first_notebook(page: Page, lab_server: LabServer, pictures: pathlib.Path) -> None:
    start = Start(lab_server)
    notebook = Notebook.open(page, lab_server, START.name)
    execute(page, "torchlab:show-memory")
    expect(page.locator("#torchlab-memory")).to_be_visible()

    for index in start.code():
        if index not in (start.live, start.memory):
            notebook.run_cell(index)
            continue
        notebook.start_cell(index)
        shown = picture(page, index)
        if index == start.live:
            # 6 × (mm, tanh), sum, 6 weights; the cell waits for this test before backward
            expect(shown.locator(".part")).to_have_count(19)
            shown.locator(".part", has_text="SumBackward0").click()
            expect(shown.locator(".tlv-details")).to_contain_text("not computed yet")
            start.signal.write_text("backward", encoding="utf-8")
            expect(shown.locator(".tlv-details")).to_contain_text("done")
        else:
            expect(shown.locator(".part", has_text="free").first).to_be_visible()
            wait_until(lambda: allocated(page) > 1 << 20, "over 1 MiB in the sidebar, meanwhile")
            start.signal.write_text("memory", encoding="utf-8")
        notebook.wait_cell(index)
    assert notebook.first_error() is None
    # what the cells left: the parameters, their gradients and Adam's moments, the batch
    text = notebook.output_text(start.memory)
    kept = int(text.rsplit("without it ", 1)[1].split(" KiB")[0])
    wait_until(lambda: round(allocated(page) / 1024) == kept, f"{kept} KiB in the sidebar")
    screenshot(page, "start-sidebar", pictures)
    for side in ("left", "right"):  # the pictures have the room that a small screen gives
        execute(page, f"application:toggle-{side}-area")

    graph = picture(page, start.find("viz.autograd_graph"))
    expect(graph.locator(".part")).to_have_count(16)
    graph.locator(".part", has_text="MaxPool2D").click()
    details = graph.locator(".tlv-details")
    expect(details).to_contain_text("[4, 32, 4, 4] float32")
    expect(details).to_contain_text("32 KiB")  # the saved input: 4 × 32 × 8 × 8 × 4
    expect(details).to_contain_text("Saved for backward")
    expect(details).to_contain_text("cell:2")
    # a name and its value stand beside each other, whatever JupyterLab's style says of such lists
    term, value = (details.locator(tag).first.bounding_box() for tag in ("dt", "dd"))
    assert term and value and value["x"] >= term["x"] + term["width"]
    assert abs(term["y"] - value["y"]) < 5
    keep(page, graph, "autograd", pictures)

    strides = picture(page, start.find("viz.stride_explorer"))
    strides.locator('[data-id="i2,1"]').click()
    expect(strides.locator(".tlv-details")).to_contain_text("0 + 2·1 + 1·4 = 6")
    expect(strides).to_contain_text("x.t().view(12) fails")
    keep(page, strides, "strides", pictures)

    memory = picture(page, start.memory)
    memory.locator(".part", has_text="parameters.2.weight").click()
    expect(memory.locator(".tlv-details")).to_contain_text("18,432 bytes")  # 32 × 16 × 3 × 3 × 4
    keep(page, memory, "memory", pictures)

    fusion = picture(page, start.find("viz.fusion"))
    expect(fusion.locator(".part").first).to_be_visible()
    assert fusion.locator(".code").count() > 20
    keep(page, fusion, "fusion", pictures)

    keep(page, picture(page, start.live), "live", pictures)
    notebook.close()

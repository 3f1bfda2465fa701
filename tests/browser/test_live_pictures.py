"""The live pictures in JupyterLab: they change while a cell runs, and a click shows details."""

from __future__ import annotations

import pathlib

from playwright.sync_api import Page, expect

from tests.browser.lab import LabServer, Notebook, screenshot, set_theme

SETUP = """\
import pathlib, time
import torchlab as torch
from torchlab import viz

def wait_for(step):
    path = pathlib.Path("live-signal")
    while not path.exists() or path.read_text() != step:
        time.sleep(0.02)

w = torch.ones(4, 3).requires_grad_()
x = torch.ones(5, 3)
"""

BUSY = """\
with viz.live_autograd({"w": w}) as recorder:
    loss = (x @ w.t()).exp().sum()
    wait_for("backward")
    loss.backward()
    wait_for("end")
"""

MEMORY = """\
with viz.live_memory(names=lambda: globals()) as recorder:
    held = torch.ones(1 << 20, device="sim")
    wait_for("end")
"""

OTHERS = """\
y = torch.arange(12).view(3, 4).t()
viz.stride_explorer(y, view=(12,)).show()
"""


def test_pictures_live(page: Page, lab_server: LabServer, pictures: pathlib.Path) -> None:
    path = lab_server.write_notebook("live.ipynb", [SETUP, BUSY, MEMORY, OTHERS])
    notebook = Notebook.open(page, lab_server, path)
    notebook.run_cell(0)
    signal = lab_server.root / "live-signal"

    notebook.start_cell(1)
    graph = page.locator(".tlviz-live").first
    expect(graph.locator(".part")).to_have_count(5)
    expect(graph.locator('.part[data-id="n1"]')).to_contain_text("w")
    graph.locator(".part", has_text="ExpBackward0").click()
    expect(graph.locator(".tlv-details")).to_contain_text("not computed yet")
    expect(graph.locator(".tlv-details")).to_contain_text("cell:2")
    # The cell is still running: it waits for this file. (The kernel's light says "idle" now and
    # then, for messages of the page are answered beside the cell.)
    signal.write_text("backward")
    expect(graph.locator(".tlv-details")).to_contain_text("done")
    expect(graph.locator(".tlv-details")).to_contain_text("freed")
    screenshot(page, "live-autograd", pictures)
    signal.write_text("end")
    notebook.wait_cell(1)
    # the static picture is there for other viewers, and hidden beside the living one
    assert page.locator("img.tlviz-static").first.is_visible() is False

    signal.unlink()
    notebook.start_cell(2)
    memory = page.locator(".tlviz-live").nth(1)
    expect(memory.locator(".part", has_text="held")).to_have_count(1)
    signal.write_text("end")
    notebook.wait_cell(2)
    notebook.run_cell(3)
    strides = page.locator(".tlviz-live").nth(2)
    strides.locator('[data-id="i2,1"]').click()
    expect(strides.locator(".tlv-details")).to_contain_text("0 + 2·1 + 1·4 = 6")
    set_theme(page, dark=True)
    background = strides.evaluate("n => getComputedStyle(n).backgroundColor")
    assert background == "rgb(21, 24, 30)"
    screenshot(page, "live-pictures-dark", pictures)
    assert notebook.first_error() is None

"""notebooks/01 and 02 in a real JupyterLab: every cell runs, and the player plays."""

from __future__ import annotations

import pathlib
import shutil

from playwright.sync_api import Page, expect

from tests.browser.lab import LabServer, Notebook, execute, screenshot, set_theme

FOLDER = pathlib.Path(__file__).resolve().parents[2] / "notebooks"
SCRATCH, STEP = "01_autograd_from_scratch.ipynb", "02_step_through_a_backward.ipynb"


def test_the_notebooks_on_backward(
    page: Page, lab_server: LabServer, pictures: pathlib.Path
) -> None:
    for name in (SCRATCH, STEP):
        shutil.copy(FOLDER / name, lab_server.root / name)
    first = Notebook.open(page, lab_server, SCRATCH)
    first.run_all()
    first.close()

    notebook = Notebook.open(page, lab_server, STEP)
    notebook.run_all()
    execute(page, "application:toggle-left-area")  # the room that a small screen gives
    player = page.locator(".tlb").first
    player.scroll_into_view_if_needed()
    expect(player.locator(".tlb-count")).to_have_text("23 / 23")  # later cells have moved it
    player.locator(".tlb-first").click()
    for _ in range(8):
        player.locator(".tlb-step").click()
    expect(player.locator(".tlb-count")).to_have_text("8 / 23")
    expect(player.locator(".tlb-now")).to_contain_text("AddmmBackward0 (1.down")
    expect(player.locator('.tlb-box[data-status="running"]')).to_have_count(1)
    for dark in (False, True):
        set_theme(page, dark=dark)
        for width in (1280, 768):
            page.set_viewport_size({"width": width, "height": 1000})
            player.evaluate("n => n.scrollIntoView({block: 'start'})")
            assert player.evaluate("n => n.scrollWidth <= n.clientWidth"), f"at {width}"
            colour = "dark" if dark else "light"
            screenshot(page, f"step-notebook-{colour}-{width}", pictures)
    notebook.close()

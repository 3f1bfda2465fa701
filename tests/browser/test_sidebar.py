"""The sidebar's memory panel in a real JupyterLab, fed by a real kernel."""

from __future__ import annotations

import pathlib

from playwright.sync_api import Page, expect

from tests.browser.lab import (
    LabServer,
    Notebook,
    execute,
    open_lab,
    screenshot,
    set_theme,
    wait_until,
)

MIB = 1 << 20

LOAD = "%load_ext torchlab.notebook"

# A cell that stays busy and does what the test asks for by writing a step's name into a file: the
# test, not a clock, decides when the cell goes on.
BUSY = """\
import pathlib
import time

import torchlab as torch


def wait_for(step):
    while not pathlib.Path("signal-{name}").exists() or (
        pathlib.Path("signal-{name}").read_text() != step
    ):
        time.sleep(0.02)


held = [torch.empty(8 << 20, dtype=torch.uint8, device="sim")]
wait_for("more")
held += [torch.empty(4 << 20, dtype=torch.uint8, device="sim") for _ in range(16)]
wait_for("less")
del held[1:]
wait_for("end")
print("ended")
"""


def open_panel(page: Page) -> None:
    """Open the sidebar as a user does, by its tab."""
    if not page.locator("#torchlab-memory").is_visible():
        page.locator('.jp-SideBar [data-id="torchlab-memory"]').click()
    expect(page.locator("#torchlab-memory")).to_be_visible()


def bytes_of(page: Page, device: str, field: str) -> int:
    """The number in the panel, -1 where there is none."""
    found = page.evaluate(
        """([device, field]) => {
            const node = document.querySelector(
                `#torchlab-memory [data-device="${device}"] [data-field="${field}"]`);
            return node ? Number(node.dataset.bytes) : -1;
        }""",
        [device, field],
    )
    return int(found)


def signal(server: LabServer, name: str, step: str) -> None:
    (server.root / f"signal-{name}").write_text(step, encoding="utf-8")


def test_the_numbers_follow_a_busy_cell(
    page: Page, lab_server: LabServer, pictures: pathlib.Path
) -> None:
    path = lab_server.write_notebook("busy.ipynb", [LOAD, BUSY.format(name="busy")])
    notebook = Notebook.open(page, lab_server, path)
    open_panel(page)
    notebook.run_cell(0)
    sim = page.locator('#torchlab-memory [data-device="sim:0"]')
    expect(sim).to_be_visible()
    before = bytes_of(page, "sim:0", "allocated")
    assert before == 0
    assert bytes_of(page, "cpu", "allocated") > 10 * MIB

    notebook.start_cell(1)
    wait_until(lambda: bytes_of(page, "sim:0", "allocated") == 8 * MIB, "8 MiB during the cell")
    assert notebook.status() == "busy"
    assert bytes_of(page, "sim:0", "reserved") >= 8 * MIB
    expect(sim.locator('[data-field="blocks"]')).to_have_text("1")

    signal(lab_server, "busy", "more")
    wait_until(lambda: bytes_of(page, "sim:0", "allocated") == 72 * MIB, "72 MiB during the cell")
    assert notebook.status() == "busy"
    assert bytes_of(page, "sim:0", "peak") == 72 * MIB
    expect(sim.locator('[data-field="blocks"]')).to_have_text("17")
    expect(page.locator("#torchlab-memory .tl-badge")).to_have_text("busy")
    curve = sim.locator(".tl-spark-line").get_attribute("d")
    assert curve is not None and curve.startswith("M")
    expect(sim.locator(".tl-axis-top")).to_have_text("72.0 MiB")
    screenshot(page, "sidebar-busy-light", pictures)

    signal(lab_server, "busy", "less")
    wait_until(lambda: bytes_of(page, "sim:0", "allocated") == 8 * MIB, "8 MiB again")
    assert notebook.status() == "busy"
    assert bytes_of(page, "sim:0", "peak") == 72 * MIB
    set_theme(page, dark=True)
    screenshot(page, "sidebar-busy-dark", pictures)
    page.set_viewport_size({"width": 768, "height": 800})
    screenshot(page, "sidebar-busy-dark-768", pictures)
    set_theme(page, dark=False)
    screenshot(page, "sidebar-busy-light-768", pictures)

    signal(lab_server, "busy", "end")
    notebook.wait_cell(1)
    assert notebook.output_text(1) == "ended\n"
    notebook.close()


def test_restart_switch_and_reload(
    page: Page, lab_server: LabServer, pictures: pathlib.Path
) -> None:
    allocate = (
        "import torchlab as torch\nx = torch.empty({mib} << 20, dtype=torch.uint8, device='sim')"
    )
    one = lab_server.write_notebook("one.ipynb", [LOAD, allocate.format(mib=3)])
    two = lab_server.write_notebook("two.ipynb", [LOAD, allocate.format(mib=5)])
    empty = page.locator("#torchlab-memory .tl-empty")

    open_lab(page, lab_server)
    open_panel(page)
    expect(empty).to_contain_text("No notebook is open")
    first = Notebook.open(page, lab_server, one)
    expect(empty).to_have_attribute("data-reason", "absent")
    expect(empty).to_contain_text("%load_ext torchlab.notebook")
    screenshot(page, "sidebar-empty-light", pictures)
    set_theme(page, dark=True)
    screenshot(page, "sidebar-empty-dark", pictures)
    set_theme(page, dark=False)

    empty.get_by_role("button").click()  # loads it without a cell
    expect(page.locator('#torchlab-memory [data-device="sim:0"]')).to_be_visible()
    first.run_cell(1)
    wait_until(lambda: bytes_of(page, "sim:0", "allocated") == 3 * MIB, "the first notebook's")

    second = Notebook.open(page, lab_server, two)
    expect(empty).to_have_attribute("data-reason", "absent")
    second.run_cell(0)
    second.run_cell(1)
    wait_until(lambda: bytes_of(page, "sim:0", "allocated") == 5 * MIB, "the second notebook's")
    first.activate()
    wait_until(lambda: bytes_of(page, "sim:0", "allocated") == 3 * MIB, "the first one's again")

    first.restart()
    expect(empty).to_have_attribute("data-reason", "restarted")
    screenshot(page, "sidebar-restarted", pictures)
    first.run_cell(0)
    wait_until(lambda: bytes_of(page, "sim:0", "allocated") == 0, "the restarted kernel's")
    second.activate()
    wait_until(lambda: bytes_of(page, "sim:0", "allocated") == 5 * MIB, "the second one's again")

    page.reload()  # the kernels go on; the new page finds their feeds
    open_lab(page, lab_server)
    second = Notebook.open(page, lab_server, two)
    open_panel(page)
    wait_until(lambda: bytes_of(page, "sim:0", "allocated") == 5 * MIB, "after the reload")

    second.close()
    execute(page, "torchlab:show-memory")
    wait_until(lambda: bytes_of(page, "sim:0", "allocated") == 0, "the notebook that is left")
    Notebook(page, one).close()
    expect(empty).to_contain_text("No notebook is open")

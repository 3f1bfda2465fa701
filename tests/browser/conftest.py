"""A JupyterLab server for the folder's tests, and a fresh page for each of them.

The tests' root decides whether these run at all: they need JupyterLab, Playwright and a Chromium.
"""

from __future__ import annotations

import pathlib
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, sync_playwright

from tests.browser.lab import CHROMIUM_FLAGS, LabServer
from torchlab.cli.environment import find_chromium


@pytest.fixture(scope="session")
def lab_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LabServer]:
    """One JupyterLab for all tests of the run."""
    with LabServer.start(tmp_path_factory.mktemp("lab")) as server:
        yield server


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """One Chromium for all tests of the run, the one that the machine has."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=find_chromium(), args=list(CHROMIUM_FLAGS)
        )
        yield browser
        browser.close()


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    """An empty page, 1280 by 800, that may speak with this machine only.

    An exception that nothing on the page caught fails the test.
    """
    context = browser.new_context(viewport={"width": 1280, "height": 800})
    context.set_default_timeout(30_000)
    page = context.new_page()
    uncaught: list[str] = []
    outside: list[str] = []
    page.on("pageerror", lambda error: uncaught.append(error.stack or str(error)))

    def is_outside(url: str) -> bool:
        return not url.startswith(("http://127.0.0.1:", "ws://127.0.0.1:", "data:", "blob:"))

    context.route(is_outside, lambda route: (outside.append(route.request.url), route.abort()))
    yield page
    context.close()
    assert not uncaught, f"uncaught on the page: {uncaught}"
    assert not outside, f"the page asked other machines: {outside}"


@pytest.fixture
def pictures(tmp_path: pathlib.Path) -> pathlib.Path:
    """Where screenshots go unless TORCHLAB_SCREENSHOTS names a folder."""
    return tmp_path / "screenshots"

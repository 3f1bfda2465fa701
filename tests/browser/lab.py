"""JupyterLab in a real browser, for tests: a server of its own, a page, notebooks on it.

    with LabServer.start(tmp_path) as server:
        path = server.write_notebook("a.ipynb", ["import torchlab as torch", "torch.ones(3)"])
        notebook = Notebook.open(page, server, path)
        notebook.run_cell(0)
        assert notebook.output_text(0) == ""

The server listens on a free port of this machine only, with a token, and knows nothing of the
user: home, settings, workspaces, kernels and IPython's profile lie in the given folder. The kernels
import the torchlab that the test imported, and the page loads the extension that lies beside it.

Pages are driven through JupyterLab's own application object (`expose_app_in_browser`): the "idle"
light alone comes before a notebook can run, now and then.
"""

from __future__ import annotations

import contextlib
import json
import os
import pathlib
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from playwright.sync_api import Page

import torchlab

PACKAGE = pathlib.Path(torchlab.__file__).resolve().parent
IMPORT_ROOT = pathlib.Path(torchlab.__file__).absolute().parent.parent

CHROMIUM_FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--force-color-profile=srgb",
)

Predicate = Callable[[], object]


def wait_until(condition: Predicate, what: str, seconds: float = 30.0) -> Any:
    """Ask until `condition()` is true and return what it said; AssertionError naming `what`."""
    end = time.monotonic() + seconds
    while True:
        found = condition()
        if found:
            return found
        assert time.monotonic() < end, f"waited {seconds:g} s in vain for: {what}"
        time.sleep(0.05)


def _free_port() -> int:
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port: int = s.getsockname()[1]
        return port


def _environment(home: pathlib.Path) -> dict[str, str]:
    """This process's environment without anything of the user's Jupyter, with an empty home."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("JUPYTER", "IPYTHON"))}
    share = home / "share" / "jupyter"
    extension = PACKAGE / "labextension"
    if extension.is_dir():
        target = share / "labextensions" / "torchlab-jupyterlab"
        shutil.copytree(extension, target)
    inherited = [p for p in os.environ.get("PYTHONPATH", "").split(os.pathsep) if p]
    return {
        **kept,
        "HOME": str(home),
        "USERPROFILE": str(home),
        "XDG_CACHE_HOME": str(home / "cache"),
        "PYTHONPATH": os.pathsep.join([str(IMPORT_ROOT), *inherited]),
        "JUPYTER_PATH": str(share),
        "JUPYTER_CONFIG_DIR": str(home / "config"),
        "JUPYTER_DATA_DIR": str(home / "data"),
        "JUPYTER_RUNTIME_DIR": str(home / "runtime"),
        "JUPYTERLAB_SETTINGS_DIR": str(home / "settings"),
        "JUPYTERLAB_WORKSPACES_DIR": str(home / "workspaces"),
        "IPYTHONDIR": str(home / "ipython"),
        "JUPYTER_PLATFORM_DIRS": "1",
    }


def _ask_no_questions(settings: pathlib.Path) -> None:
    """Without this JupyterLab asks in a corner of the page whether it may fetch news."""
    folder = settings / "@jupyterlab" / "apputils-extension"
    folder.mkdir(parents=True)
    text = json.dumps({"fetchNews": "false", "checkForUpdates": False})
    (folder / "notification.jupyterlab-settings").write_text(text, encoding="utf-8")


@dataclass
class LabServer:
    """A running JupyterLab: its address, its token and the folder its notebooks lie in."""

    address: str
    token: str
    root: pathlib.Path
    log: pathlib.Path
    process: subprocess.Popen[bytes]

    @classmethod
    @contextlib.contextmanager
    def start(cls, folder: pathlib.Path, seconds: float = 60.0) -> Iterator[LabServer]:
        """Start a server with everything it keeps in `folder` (empty) and stop it at the end."""
        home, root = folder / "home", folder / "notebooks"
        home.mkdir(parents=True)
        root.mkdir()
        _ask_no_questions(home / "settings")
        port, token = _free_port(), secrets.token_hex(16)
        command = [
            sys.executable,
            "-m",
            "jupyterlab",
            "--no-browser",
            "--ServerApp.ip=127.0.0.1",
            f"--ServerApp.port={port}",
            "--ServerApp.port_retries=0",
            f"--IdentityProvider.token={token}",
            f"--ServerApp.root_dir={root}",
            "--ServerApp.allow_root=True",
            "--LabApp.expose_app_in_browser=True",
            "--LabApp.extension_manager=readonly",
            "--LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate",
        ]
        log = folder / "server.log"
        with log.open("wb") as out:
            process = subprocess.Popen(
                command,
                cwd=root,
                env=_environment(home),
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
                start_new_session=os.name == "posix",
            )
        server = cls(f"http://127.0.0.1:{port}", token, root, log, process)
        try:
            wait_until(server._answers, f"the server (its log: {log})", seconds)
            yield server
        finally:
            server.stop()

    def _answers(self) -> bool:
        assert self.process.poll() is None, self.log.read_text(encoding="utf-8", errors="replace")
        try:
            with urllib.request.urlopen(f"{self.address}/api/status?token={self.token}", timeout=2):
                return True
        except (urllib.error.URLError, OSError):
            return False

    def stop(self) -> None:
        """End the server and with it its kernels; after ten seconds by force."""
        self.process.terminate()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            if os.name == "posix":
                os.killpg(self.process.pid, signal.SIGKILL)
            self.process.kill()
            self.process.wait(10)

    @property
    def url(self) -> str:
        """The page's address, with the token; it opens with no notebook and no layout kept."""
        return f"{self.address}/lab?reset&token={self.token}"

    def write_notebook(self, name: str, cells: Sequence[str]) -> str:
        """Write a notebook of code cells into the server's folder; returns its path there."""
        content = {
            "nbformat": 4,
            "nbformat_minor": 5,
            "metadata": {
                "kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}
            },
            "cells": [
                {
                    "id": f"cell-{i}",
                    "cell_type": "code",
                    "metadata": {},
                    "execution_count": None,
                    "outputs": [],
                    "source": source,
                }
                for i, source in enumerate(cells)
            ],
        }
        (self.root / name).write_text(json.dumps(content), encoding="utf-8")
        return name


_FIND = """
const find = path => {
  for (const widget of window.jupyterapp.shell.widgets('main')) {
    if (widget.context && widget.context.path === path) { return widget; }
  }
  throw new Error('this notebook is not open: ' + path);
};
"""


def open_lab(page: Page, server: LabServer) -> None:
    """Load JupyterLab on the page, or do nothing if it is there."""
    if not page.url.startswith(server.address):
        page.goto(server.url)
    page.wait_for_function("() => window.jupyterapp !== undefined", timeout=60_000)
    page.evaluate("async () => { await window.jupyterapp.restored; }")


def execute(page: Page, command: str, **args: Any) -> None:
    """Execute one of JupyterLab's commands and wait for it."""
    page.evaluate(
        "async ([command, args]) => { await window.jupyterapp.commands.execute(command, args); }",
        [command, args],
    )


def set_theme(page: Page, dark: bool) -> None:
    """Switch to JupyterLab's own light or dark theme, and wait for the end of the splash screen
    (a second switch during the first one's makes JupyterLab remove it twice)."""
    execute(page, "apputils:change-theme", theme="JupyterLab Dark" if dark else "JupyterLab Light")
    page.wait_for_function(
        "light => document.body.dataset.jpThemeLight === light", arg="false" if dark else "true"
    )
    page.wait_for_selector("#jupyterlab-splash", state="detached")


def screenshot(page: Page, name: str, folder: pathlib.Path) -> pathlib.Path:
    """Keep a picture of the page: `name`.png in TORCHLAB_SCREENSHOTS if set, else in `folder`."""
    kept = pathlib.Path(os.environ.get("TORCHLAB_SCREENSHOTS") or folder)
    kept.mkdir(parents=True, exist_ok=True)
    path = kept / f"{name}.png"
    page.screenshot(path=path, animations="disabled")
    return path


@dataclass
class Notebook:
    """A notebook that is open on a page. Cells count from 0, over all kinds of cells."""

    page: Page
    path: str

    @classmethod
    def open(cls, page: Page, server: LabServer, path: str) -> Notebook:
        """Open it (or bring it to the front) and wait until its kernel can run cells."""
        open_lab(page, server)
        execute(page, "docmanager:open", path=path, factory="Notebook")
        notebook = cls(page, path)
        notebook.activate()
        notebook.wait_ready()
        return notebook

    def _js(self, body: str, argument: Any = None) -> Any:
        return self.page.evaluate(
            f"async ([path, argument]) => {{ {_FIND} const panel = find(path); {body} }}",
            [self.path, argument],
        )

    def activate(self) -> None:
        """Make it the active notebook."""
        self._js("window.jupyterapp.shell.activateById(panel.id);")

    def wait_ready(self) -> None:
        """Wait until the document is loaded and the kernel answers; a wedged kernel is restarted.

        Now and then (one start in about twenty here, with ipykernel 7.3 and JupyterLab 4.6, in any
        notebook) a kernel never answers on its shell channel when the page asks it for a subshell
        (the widget manager's comm does) just as it starts. Only a restart helps.
        """
        self._js(
            """await panel.context.ready; await panel.sessionContext.ready; await panel.revealed;
            await panel.sessionContext.session.kernel.info;"""
        )
        for _ in range(4):
            with contextlib.suppress(AssertionError):
                # Twice: the widget manager's messages follow the first answer.
                wait_until(self._answers, "an answer", 8.0)
                wait_until(self._answers, "a second answer", 8.0)
                self.wait_idle(8.0)
                return
            self._js("await panel.sessionContext.restartKernel();")
        raise AssertionError(f"the kernel of {self.path} does not answer, also after restarts")

    def _answers(self) -> bool:
        """Whether the kernel answers a request within two seconds. The light "idle" alone may still
        be the old kernel's after a restart, and what is sent then is lost."""
        answered: bool = self._js("""const kernel = panel.sessionContext.session?.kernel;
            if (!kernel || kernel.connectionStatus !== 'connected') { return false; }
            const later = new Promise(resolve => setTimeout(() => resolve(null), 2000));
            return Boolean(await Promise.race([
                kernel.requestKernelInfo().catch(() => null), later]));""")
        return answered

    def start_cell(self, index: int) -> None:
        """Run a cell and return at once; the cell may be busy for long."""
        self._js(
            """window.jupyterapp.shell.activateById(panel.id);
            panel.content.activeCellIndex = argument;
            panel.content.deselectAll();
            void window.jupyterapp.commands.execute('notebook:run-cell');""",
            index,
        )

    def wait_cell(self, index: int, seconds: float = 60.0) -> None:
        """Wait until a cell that was started has ended (with or without an error)."""
        wait_until(
            lambda: (
                self._js("return panel.content.widgets[argument].model.executionState", index)
                == "idle"
                and self.status() == "idle"
            ),
            f"the end of cell {index} of {self.path}",
            seconds,
        )

    def run_cell(self, index: int, seconds: float = 60.0) -> None:
        """Run a cell to its end; AssertionError if it raises, with its traceback's last line."""
        self.start_cell(index)
        self.wait_cell(index, seconds)
        errors = [o for o in self.outputs(index) if o["output_type"] == "error"]
        assert not errors, f"cell {index}: {errors[0]['ename']}: {errors[0]['evalue']}"

    def run_all(self, seconds: float = 120.0) -> None:
        """Run all cells and wait for the last; AssertionError if one raises."""
        self.activate()
        execute_all = "void window.jupyterapp.commands.execute('notebook:run-all-cells');"
        self._js(execute_all)
        last = self._js("return panel.content.widgets.map(c => c.model.type).lastIndexOf('code')")
        wait_until(
            lambda: (
                self._js(
                    """const cell = panel.content.widgets[argument].model;
                return cell.executionCount !== null && cell.executionState === 'idle'""",
                    last,
                )
                or self.first_error()
            ),
            f"the end of {self.path}",
            seconds,
        )
        assert self.first_error() is None, self.first_error()

    def first_error(self) -> str | None:
        """The first error among the outputs, as "cell 3: ValueError: …"."""
        for index in range(self._js("return panel.content.widgets.length")):
            for output in self.outputs(index):
                if output["output_type"] == "error":
                    return f"cell {index}: {output['ename']}: {output['evalue']}"
        return None

    def outputs(self, index: int) -> list[dict[str, Any]]:
        """A cell's outputs as nbformat has them."""
        found: list[dict[str, Any]] = self._js(
            "return panel.content.widgets[argument].model.sharedModel.toJSON().outputs ?? []", index
        )
        return found

    def output_text(self, index: int) -> str:
        """What a cell printed, and the text of its results."""
        parts = []
        for output in self.outputs(index):
            text = output.get("text") or output.get("data", {}).get("text/plain", "")
            parts.append("".join(text))
        return "".join(parts)

    def status(self) -> str:
        """The kernel's status: idle, busy, restarting …"""
        found: str = self._js("return panel.sessionContext.session?.kernel?.status ?? 'unknown'")
        return found

    def wait_idle(self, seconds: float = 60.0) -> None:
        """Wait until the kernel has nothing to do."""
        wait_until(lambda: self.status() == "idle", f"an idle kernel of {self.path}", seconds)

    def restart(self) -> None:
        """Restart the kernel without asking, and wait until it can run cells again."""
        self._js("await panel.sessionContext.restartKernel();")
        self.wait_ready()

    def close(self) -> None:
        """Close it without saving and shut its kernel down."""
        self._js("""await panel.sessionContext.shutdown();
            panel.context.model.dirty = false; panel.dispose();""")

"""A progress bar: ipywidgets in a notebook that has them, else a line of text now and then."""

from __future__ import annotations

import importlib.util
import sys
import time
from collections.abc import Iterable, Iterator, Sized
from typing import Any, TextIO

from torchlab._core.lazy import lazy
from torchlab.viz.recorders.common import in_notebook

_ipywidgets = lazy("ipywidgets", "pip install 'torchlab[lab]'")
_display = lazy("IPython.display", "pip install 'torchlab[lab]'")


class Progress:
    """Counts towards `total` (None: unknown). Use `progress(iterable)` for loops."""

    def __init__(
        self, total: int | None = None, description: str = "", file: TextIO | None = None
    ) -> None:
        self.total, self.description = total, description
        self.count = 0
        self.note = ""
        self._file = file
        self._start = time.monotonic()
        self._next = 0.0
        self._tenth = -1
        self._bar: Any = None
        self._label: Any = None
        if file is None and in_notebook() and importlib.util.find_spec("ipywidgets") is not None:
            self._bar = _ipywidgets.IntProgress(
                0, 0, total or 1, description=description, style={"description_width": "initial"}
            )
            self._label = _ipywidgets.Label()
            _display.display(_ipywidgets.HBox([self._bar, self._label]))

    def text(self) -> str:
        """`epoch 1: 30/60 (50%) 2.0s loss 0.31`."""
        head = f"{self.description}: " if self.description else ""
        of = f"/{self.total} ({100 * self.count // self.total}%)" if self.total else ""
        note = f" {self.note}" if self.note else ""
        return f"{head}{self.count}{of} {time.monotonic() - self._start:.1f}s{note}"

    def update(self, n: int = 1, note: str | None = None) -> None:
        """Count `n` more; `note` stands behind the numbers."""
        self.count += n
        if note is not None:
            self.note = note
        done = self.total is not None and self.count >= self.total
        if self._bar is not None:
            now = time.monotonic()
            if done or now >= self._next:
                self._next = now + 0.1
                self._draw()
            return
        tenth = 10 * self.count // self.total if self.total else self.count.bit_length()
        if done or tenth > self._tenth:
            self._tenth = tenth
            print(self.text(), file=self._file or sys.stdout, flush=True)

    def _draw(self) -> None:
        self._bar.value = self.count if self.total else 1
        self._label.value = self.text().removeprefix(f"{self.description}: ")

    def close(self, failed: bool = False) -> None:
        """Show the last state; a failed or unfinished run is shown as such."""
        if self._bar is not None:
            self._draw()
            self._bar.bar_style = "danger" if failed else "success"

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, kind: Any, *exc: object) -> None:
        self.close(kind is not None)


def progress(
    iterable: Iterable[Any], description: str = "", total: int | None = None
) -> Iterator[Any]:
    """Go through `iterable` with a bar; `total` is its length where it has one."""
    if total is None and isinstance(iterable, Sized):
        total = len(iterable)
    with Progress(total, description) as bar:
        for item in iterable:
            yield item
            bar.update()

"""Curves while training: one figure, redrawn in place at most ten times a second, bounded
memory."""

from __future__ import annotations

import io
import math
import time
from collections.abc import Mapping
from typing import Any

from torchlab._core.lazy import lazy
from torchlab.viz import palette
from torchlab.viz.recorders.common import in_notebook

_figure = lazy("matplotlib.figure", "pip install 'torchlab[lab]'")
_display = lazy("IPython.display", "pip install 'torchlab[lab]'")


class Series:
    """A bounded history: buckets of `every` successive values with their mean, least and greatest.

    When there are more than `most` buckets (one more if that is odd), neighbours are merged in
    pairs and `every` doubles, so that any number of values fits and no peak is lost.
    """

    def __init__(self, most: int = 1000) -> None:
        if most < 2:
            raise ValueError(f"Series: most must be at least 2, got {most}")
        self.most = most
        self.every = 1
        self.count = 0
        self.last = math.nan
        self.buckets: list[tuple[float, float, float, float]] = []  # step, mean, least, greatest
        self._open: list[tuple[float, float]] = []

    def add(self, step: float, value: float) -> None:
        """Append one value."""
        self.count += 1
        self.last = value
        self._open.append((step, value))
        if len(self._open) < self.every:
            return
        self.buckets.append(self._bucket())
        self._open = []
        if len(self.buckets) > self.most and len(self.buckets) % 2 == 0:
            pairs = zip(self.buckets[::2], self.buckets[1::2], strict=True)
            self.buckets = [
                (b[0], (a[1] + b[1]) / 2, min(a[2], b[2]), max(a[3], b[3])) for a, b in pairs
            ]
            self.every *= 2

    def _bucket(self) -> tuple[float, float, float, float]:
        values = [v for _, v in self._open]
        return self._open[-1][0], sum(values) / len(values), min(values), max(values)

    def points(self) -> list[tuple[float, float, float, float]]:
        """All buckets, the one that is still open last."""
        return self.buckets + ([self._bucket()] if self._open else [])


class LossCurve:
    """A live plot of losses and other numbers.

    >>> curve = LossCurve()          # doctest: +SKIP
    >>> curve.add(train=0.7)         # one step
    >>> curve.add(step=100, test=0.9)

    It shows itself in a notebook at the first `add` and is redrawn in place; elsewhere it only
    collects. `close()` (or the end of a `with` block) draws the last state.

    Args:
        title, ylabel: texts.
        log: a logarithmic y axis.
        interval: least seconds between two drawings.
        most: how many points a curve keeps (see `Series`).
    """

    def __init__(
        self,
        title: str = "",
        ylabel: str = "loss",
        *,
        log: bool = False,
        interval: float = 0.1,
        most: int = 1000,
    ) -> None:
        self.title, self.ylabel, self.log = title, ylabel, log
        self.series: dict[str, Series] = {}
        self.drawn = 0
        self._interval = interval
        self._most = most
        self._next = 0.0
        self._step = 0.0
        self._figure: Any = None
        self._handle: Any = None

    def add(self, step: float | None = None, **values: float) -> None:
        """Append a value to each named curve at `step` (default: one after the last).

        Values may be anything that `float()` takes, a tensor of one element too.
        """
        self._step = self._step + 1 if step is None else float(step)
        for name, value in values.items():
            self.series.setdefault(name, Series(self._most)).add(self._step, float(value))
        now = time.monotonic()
        if now >= self._next and in_notebook():
            self._show()
            # drawing may take at most a third of the time
            self._next = time.monotonic() + max(self._interval, 2 * (time.monotonic() - now))

    def figure(self) -> Any:
        """The figure, drawn as it is now; always the same object."""
        if self._figure is None:
            self._figure = _figure.Figure(figsize=(6.4, 3.0), dpi=110, layout="constrained")
        fig = self._figure
        fig.clear()
        ax = fig.add_subplot()
        c = palette.ink("light")
        colours = [c[n] for n in ("op-line", "h4", "leaf-line", "run", "accent", "group-line")]
        for k, (name, series) in enumerate(self.series.items()):
            points = series.points()
            steps = [p[0] for p in points]
            colour = colours[k % len(colours)]
            ax.plot(
                steps,
                [p[1] for p in points],
                color=colour,
                lw=1.6,
                label=f"{name} {series.last:.4g}",
            )
            if series.every > 1:
                ax.fill_between(
                    steps,
                    [p[2] for p in points],
                    [p[3] for p in points],
                    color=colour,
                    alpha=0.18,
                    lw=0,
                )
        if self.log:
            ax.set_yscale("log")
        ax.set_xlabel("step")
        ax.set_ylabel(self.ylabel)
        ax.set_title(self.title, fontsize=11)
        ax.grid(True, color=c["line"], lw=0.6)
        ax.spines[["top", "right"]].set_visible(False)
        if self.series:
            ax.legend(frameon=False, fontsize=9)
        self.drawn += 1
        return fig

    def png(self) -> bytes:
        """The curve as a PNG."""
        buffer = io.BytesIO()
        self.figure().savefig(buffer, format="png")
        return buffer.getvalue()

    def _show(self) -> None:
        if self._handle is None:
            self._handle = _display.display(self, display_id=True)
        else:
            self._handle.update(self)

    def close(self) -> None:
        """Draw the last state in place."""
        if self._handle is not None:
            self._handle.update(self)

    def __enter__(self) -> LossCurve:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> Mapping[str, Any]:
        return {"image/png": self.png(), "text/plain": repr(self)}

    def __repr__(self) -> str:
        counts = ", ".join(f"{name} ({s.count})" for name, s in self.series.items())
        return f"<LossCurve: {counts or 'empty'}>"

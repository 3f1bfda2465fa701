"""The laboratory's pictures: the autograd graph, a recorded backward, strides, memory, fusion and
data loading.

Data flows one way: *recorders* listen to events, *snapshots* are plain data, *views* draw them as
SVG, *widgets* show the drawing in a notebook. Importing this package loads none of the widget
libraries; they come when a widget is asked for.
"""

from __future__ import annotations

from typing import Any

from torchlab._core.lazy import lazy

_FACES = {
    "autograd_graph": "torchlab.viz.recorders.autograd",
    "live_autograd": "torchlab.viz.recorders.autograd",
    "AutogradRecorder": "torchlab.viz.recorders.autograd",
    "record_backward": "torchlab.viz.recorders.backward",
    "BackwardRecorder": "torchlab.viz.recorders.backward",
    "Playback": "torchlab.viz.playback",
    "record_loading": "torchlab.viz.recorders.loader",
    "LoaderRecorder": "torchlab.viz.recorders.loader",
    "Loading": "torchlab.viz.loading",
    "why_none": "torchlab.viz.reasons",
    "changed_in_place": "torchlab.viz.reasons",
    "stride_explorer": "torchlab.viz.recorders.strides",
    "memory": "torchlab.viz.recorders.memory",
    "live_memory": "torchlab.viz.recorders.memory",
    "MemoryRecorder": "torchlab.viz.recorders.memory",
    "fusion": "torchlab.viz.recorders.fusion",
    "LossCurve": "torchlab.viz.curves",
    "progress": "torchlab.viz.progress_bar",
    "Picture": "torchlab.viz.pictures",
    "picture": "torchlab.viz.pictures",
    "read_html": "torchlab.viz.pictures",
}
_MODULES = {name: lazy(name) for name in _FACES.values()}

__all__ = sorted(_FACES)


def __getattr__(name: str) -> Any:
    if name not in _FACES:
        raise AttributeError(f"module 'torchlab.viz' has no attribute {name!r}")
    return getattr(_MODULES[_FACES[name]], name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})

"""The pictures as anywidgets: state in Python, a small renderer in JavaScript.

This module needs anywidget when it is imported; the rest of the laboratory reaches it lazily.

A page sends commands as custom messages, never by changing a trait (some kernels lose later trait
changes of a widget that a busy cell writes to). Callbacks may run while a cell runs: they set
flags.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import anywidget
import traitlets

from torchlab.viz import capsule
from torchlab.viz.pictures import PICTURES, Picture
from torchlab.viz.widgets.throttle import Throttle


class LiveWidget(anywidget.AnyWidget):  # type: ignore[misc]
    """A picture that follows `update(snapshot)`, at most about twenty times a second."""

    kind = ""
    state = traitlets.Dict().tag(sync=True)

    def __init__(self, interval: float = 0.05, **traits: Any) -> None:
        super().__init__(**traits)
        self._throttle = Throttle(self._publish, interval)
        self._selected: list[Callable[[str], None]] = []
        self.picture: Picture | None = None
        self.published = 0
        self.on_msg(self._receive)

    def update(self, snapshot: Mapping[str, Any] | Callable[[], Mapping[str, Any]]) -> None:
        """Show a new snapshot, or the one that a function gives when there is time to draw it."""
        self._throttle.put(snapshot)

    def flush(self) -> None:
        """Draw the newest snapshot now."""
        self._throttle.flush()

    def on_select(self, callback: Callable[[str], None]) -> None:
        """Call `callback(id)` when the user chooses a part."""
        self._selected.append(callback)

    def close(self) -> None:
        """Draw what waits, then close the view."""
        self._throttle.flush()
        super().close()

    def _publish(self, snapshot: Mapping[str, Any]) -> None:
        self.picture = PICTURES[self.kind](snapshot)
        self.state = capsule.finite(self.picture.drawing("css").state(self.kind))
        self.published += 1

    def _receive(self, _: Any, message: Any, buffers: Any) -> None:
        if isinstance(message, dict) and message.get("type") == "select":
            for callback in self._selected:
                callback(str(message.get("id", "")))


def _class(name: str, kind: str, doc: str) -> type[LiveWidget]:
    """A widget class of one kind; its renderer and style are read from the package."""
    members = {
        "__doc__": doc,
        "__module__": __name__,
        "kind": kind,
        "_esm": capsule.module_source(kind),
        "_css": capsule.style_source(),
    }
    return type(name, (LiveWidget,), members)


AutogradWidget = _class("AutogradWidget", "autograd", "The autograd graph, live.")
BackwardWidget = _class("BackwardWidget", "backward", "A recorded backward, played.")
StrideWidget = _class("StrideWidget", "strides", "The stride explorer, live.")
MemoryWidget = _class("MemoryWidget", "memory", "The allocator, live.")
FusionWidget = _class("FusionWidget", "fusion", "Fusion groups and generated source, live.")
LoaderWidget = _class("LoaderWidget", "loader", "Data loading over time, live.")

CLASSES: dict[str, type[LiveWidget]] = {
    w.kind: w
    for w in (
        AutogradWidget,
        BackwardWidget,
        StrideWidget,
        MemoryWidget,
        FusionWidget,
        LoaderWidget,
    )
}

"""Pictures: what the laboratory's functions return; a snapshot that shows itself in many ways."""

from __future__ import annotations

import base64
import pathlib
from collections.abc import Callable, Mapping
from typing import Any, cast

from torchlab._core.lazy import lazy
from torchlab.viz import capsule
from torchlab.viz.loading import Loading
from torchlab.viz.playback import Playback
from torchlab.viz.views import autograd as autograd_view
from torchlab.viz.views import backward as backward_view
from torchlab.viz.views import digraphs
from torchlab.viz.views import fusion as fusion_view
from torchlab.viz.views import loader as loader_view
from torchlab.viz.views import memory as memory_view
from torchlab.viz.views import strides as strides_view
from torchlab.viz.views.common import Details, Drawing, static_svg

_widgets = lazy("torchlab.viz.widgets.live", "pip install 'torchlab[lab]'")
_display = lazy("IPython.display", "pip install 'torchlab[lab]'")


class Picture:
    """A drawn snapshot.

    In a notebook it shows as an SVG that any viewer can display; `widget()` is the same picture
    with details on click, `to_html()` the same as an offline page.
    """

    kind = ""
    _draw: Callable[..., Drawing]

    def __init__(self, snapshot: Mapping[str, Any]) -> None:
        self.snapshot = snapshot
        self._drawings: dict[str, Drawing] = {}

    def drawing(self, theme: str = "light") -> Drawing:
        """The panels and details, in colours for `"light"`, `"dark"` or `"css"` (variables)."""
        if theme not in self._drawings:
            self._drawings[theme] = type(self)._draw(self.snapshot, theme)
        return self._drawings[theme]

    def to_svg(self, theme: str = "light") -> str:
        """The picture as one SVG document with explicit colours and its own background."""
        return static_svg(self.drawing(theme), theme)

    @property
    def svg(self) -> str:
        """`to_svg("light")`."""
        return self.to_svg()

    @property
    def details(self) -> dict[str, Details]:
        """What a click on each part shows, by the part's id."""
        return self.drawing().details

    def to_html(self, path: str | pathlib.Path | None = None) -> str:
        """The interactive picture as an HTML page that needs no network; written to `path` if
        given."""
        page = capsule.page(self.drawing("css").state(self.kind), dict(self.snapshot))
        if path is not None:
            pathlib.Path(path).write_text(page, encoding="utf-8")
        return page

    def widget(self) -> Any:
        """The interactive picture as a Jupyter widget (needs anywidget)."""
        widget = _widgets.CLASSES[self.kind]()
        widget.update(self.snapshot)
        widget.flush()
        return widget

    def show(self) -> Any:
        """Display the widget, and beside it the static picture for viewers that run no widgets (it
        is hidden while the widget is alive). Returns the widget."""
        widget = self.widget()
        _display.display(widget)
        _display.display(StaticPicture(self))
        return widget

    def _repr_svg_(self) -> str:
        return self.svg

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        """The SVG, and for untrusted notebooks (which show no bare SVG) the same as an image."""
        return {"image/svg+xml": self.svg, "text/html": self.image(), "text/plain": repr(self)}

    def image(self) -> str:
        """The static picture as an `<img>` with everything in its address."""
        data = base64.b64encode(self.svg.encode()).decode()
        title = (
            self.drawing().title.replace("&", "&amp;").replace('"', "&quot;").replace("<", "&lt;")
        )
        return (
            f'<img class="tlviz-static" alt="{title}" style="max-width:100%" '
            f'src="data:image/svg+xml;base64,{data}">'
        )

    def __repr__(self) -> str:
        drawing = self.drawing()
        return f"<{drawing.title}: {drawing.subtitle}>"


class StaticPicture:
    """The second display of a live picture; it can be replaced in place."""

    def __init__(self, picture: Picture) -> None:
        self.picture = picture

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        return {"text/html": self.picture.image(), "text/plain": repr(self.picture)}


class AutogradPicture(Picture):
    """The graph that backward will walk."""

    kind = "autograd"
    _draw = staticmethod(autograd_view.draw)

    def digraph(self) -> Any:
        """A `graphviz.Digraph` of it (needs the Python package graphviz; `dot` only to render)."""
        return digraphs.autograd_digraph(cast(Any, self.snapshot))


class BackwardPicture(Picture):
    """A recorded backward; its widget and its page play it."""

    kind = "backward"
    _draw = staticmethod(backward_view.draw)

    @property
    def playback(self) -> Playback:
        """The recording as data that can be stepped forwards and backwards."""
        return Playback(self.snapshot)


class StridePicture(Picture):
    """Storage, strides and views of a tensor."""

    kind = "strides"
    _draw = staticmethod(strides_view.draw)


class MemoryPicture(Picture):
    """The state of a caching allocator and how it came about."""

    kind = "memory"
    _draw = staticmethod(memory_view.draw)


class FusionPicture(Picture):
    """What a compiled function was fused into."""

    kind = "fusion"
    _draw = staticmethod(fusion_view.draw)

    def digraph(self) -> Any:
        """A `graphviz.Digraph` of it (needs the Python package graphviz; `dot` only to render)."""
        return digraphs.fusion_digraph(cast(Any, self.snapshot))


class LoaderPicture(Picture):
    """What data loaders did over time; its widget and its page can be zoomed and asked."""

    kind = "loader"
    _draw = staticmethod(loader_view.draw)

    @property
    def loading(self) -> Loading:
        """The figures behind it, and the verdict."""
        return Loading(self.snapshot)


PICTURES: dict[str, type[Picture]] = {
    p.kind: p
    for p in (
        AutogradPicture,
        BackwardPicture,
        StridePicture,
        MemoryPicture,
        FusionPicture,
        LoaderPicture,
    )
}


def picture(snapshot: Mapping[str, Any]) -> Picture:
    """The picture of any snapshot.

    Raises:
        ValueError: an unknown kind.
    """
    kind = snapshot.get("kind")
    if kind not in PICTURES:
        raise ValueError(f"no picture of kind {kind!r}; there are {', '.join(sorted(PICTURES))}")
    return PICTURES[kind](snapshot)


def read_html(path: str | pathlib.Path) -> Picture:
    """The picture inside a page that `Picture.to_html` wrote."""
    return picture(capsule.read(pathlib.Path(path).read_text(encoding="utf-8")))

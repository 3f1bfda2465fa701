"""What all recorders share: the user's line, names of tensors, and the life of a live picture."""

from __future__ import annotations

import linecache
import sys
import threading
from collections.abc import Callable, Iterable, Mapping
from types import FrameType
from typing import Any, Self

import numpy as np

from torchlab._core.events import Subscription, Topic
from torchlab._core.lazy import lazy
from torchlab._core.tensor import Tensor
from torchlab.viz.pictures import Picture, StaticPicture, picture
from torchlab.viz.snapshots.common import Source

_widgets = lazy("torchlab.viz.widgets.live", "pip install 'torchlab[lab]'")
_display = lazy("IPython.display", "pip install 'torchlab[lab]'")


def _internal(frame: FrameType) -> bool:
    name = frame.f_globals.get("__name__", "")
    if name in ("torchlab", "weakref") or name.startswith("torchlab."):  # weakref: a storage's end
        return True
    return frame.f_code.co_filename.startswith("<torchlab")


def user_frame() -> FrameType | None:
    """The innermost frame of the calling thread that is not torchlab's own."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and _internal(frame):
        frame = frame.f_back
    return frame


def user_source() -> Source | None:
    """The user's line that is running. A notebook's cell is called so: its file name is random."""
    frame = user_frame()
    if frame is None:
        return None
    file = frame.f_code.co_filename
    code = linecache.getline(file, frame.f_lineno).strip()
    if "ipykernel_" in file or file.startswith("<ipython-input"):
        file = "cell"
    return {"file": file, "line": frame.f_lineno, "code": code}


Named = Mapping[str, Any] | Iterable[tuple[str, Any]] | Any | None


def named_tensors(names: Named) -> dict[str, Tensor]:
    """The tensors in a module (`named_parameters`, `named_buffers`), a mapping (a module's
    `globals()` too: what is not a tensor is left out), pairs (name, tensor), or a function that
    gives one of these each time it is asked."""
    if names is None:
        return {}
    if callable(names) and not hasattr(names, "named_parameters"):
        names = names()
    if hasattr(names, "named_parameters"):
        pairs = [
            *names.named_parameters(),
            *(names.named_buffers() if hasattr(names, "named_buffers") else ()),
        ]
    else:
        pairs = list(names.items() if isinstance(names, Mapping) else names)
    found: dict[str, Tensor] = {}
    for name, value in pairs:
        if isinstance(value, Tensor):
            found[str(name)] = value
        elif hasattr(value, "named_parameters"):
            found.update((f"{name}.{n}", t) for n, t in named_tensors(value).items())
    return found


def dtype_name(dtype: Any) -> str:
    """`torch.float32` as `float32`."""
    return str(dtype).removeprefix("torch.")


def array_of(tensor: Any) -> Any:
    """The values of any tensor as a strided array: a sparse one's are those that it has, a lazily
    conjugated one's are worked out. None where there is no memory (meta)."""
    if tensor._k.device.type == "meta":
        return None
    if tensor._exotic:
        if not tensor.strided:
            return array_of((tensor.coalesce() if tensor.is_sparse else tensor).values())
        tensor = tensor.plain()
    return tensor._a


def norm(tensor: Any) -> float | str | None:
    """The 2-norm in float64, as the text 'nan' or 'inf' where JSON has no number; None where there
    are no values."""
    array = array_of(tensor)
    if array is None:
        return None
    kind = "complex128" if tensor._k.dtype.is_complex else "float64"
    if isinstance(array, np.ndarray):
        value = float(np.linalg.norm(array.astype(kind).ravel()))
    else:
        value = float((abs(array.astype(kind)) ** 2).sum()) ** 0.5
    return value if np.isfinite(value) else str(value)


def in_notebook() -> bool:
    """Whether a kernel runs this, which can show a widget."""
    shell = sys.modules.get("IPython")
    instance = shell.get_ipython() if shell is not None else None
    return instance is not None and hasattr(instance, "kernel")


class LiveRecorder:
    """Records while it is started (or inside `with`); `show()` draws it live in a notebook.

    Listeners take `self._lock` only to change plain data and call `_changed()` after they let go of
    it.
    """

    kind = ""

    def __init__(self, interval: float = 0.05) -> None:
        self._lock = threading.RLock()
        self._subscriptions: list[Subscription] = []
        self._interval = interval
        self._static: Any = None
        self.widget: Any = None

    def _listeners(self) -> list[tuple[Topic, Callable[..., None]]]:
        """The topics to listen to, and with what."""
        return []

    def snapshot(self) -> Mapping[str, Any]:
        """What has been recorded, as plain data."""
        return {}

    @property
    def picture(self) -> Picture:
        """The present state as a picture."""
        return picture(self.snapshot())

    def start(self) -> Self:
        """Listen from now on."""
        if not self._subscriptions:
            self._subscriptions = [
                topic.subscribe(listener) for topic, listener in self._listeners()
            ]
        return self

    def stop(self) -> None:
        """Stop listening; the last state is shown."""
        for subscription in self._subscriptions:
            subscription.close()
        self._subscriptions = []
        if self.widget is not None:
            self.widget.update(self.snapshot())
            self.widget.flush()
            if self._static is not None:
                self._static.update(StaticPicture(self.picture))

    def show(self) -> Any:
        """Display the live widget, and beside it a static picture for viewers without widgets."""
        self.widget = _widgets.CLASSES[self.kind](interval=self._interval)
        self.widget.update(self.snapshot())
        _display.display(self.widget)
        self._static = _display.display(StaticPicture(self.picture), display_id=True)
        return self.widget

    def _changed(self) -> None:
        if self.widget is not None:
            self.widget.update(self.snapshot)

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *exc: object) -> None:
        self.stop()

"""`torch.torch_version`: the version as a text that compares as a version.

    torch.__version__ >= "2.1", torch.__version__ >= (2, 1)

It is the version of the PyTorch whose names and meanings these are, for programs choose by it what
they call; behind the `+` stands torchlab's own, as a build of PyTorch's says there how it was made.

Source: https://packaging.python.org/specifications/version-specifiers/
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from torchlab import _version

__all__ = ["TorchVersion"]

_TEXT = re.compile(
    r"v?(?P<release>\d+(?:\.\d+)*)"
    r"(?:[-_.]?(?P<pre>a|b|rc|alpha|beta|c)[-_.]?(?P<pre_number>\d*))?"
    r"(?:[-_.]?post[-_.]?(?P<post>\d*))?"
    r"(?:[-_.]?dev[-_.]?(?P<dev>\d*))?"
    r"(?:\+(?P<local>[a-z0-9]+(?:[-_.][a-z0-9]+)*))?",
    re.IGNORECASE,
)
_PRE = {"alpha": "a", "beta": "b", "c": "rc"}
_BEFORE, _AFTER = (-1,), (1,)


def _key(text: str) -> Any:
    """What versions are ordered by; None for a text that is none."""
    found = _TEXT.fullmatch(text.strip())
    if found is None:
        return None
    release = tuple(int(n) for n in found["release"].split("."))
    while len(release) > 1 and not release[-1]:
        release = release[:-1]
    pre, post, dev, local = found["pre"], found["post"], found["dev"], found["local"]
    if pre is not None:
        name = pre.lower()
        first: Any = (0, _PRE.get(name, name), int(found["pre_number"] or 0))
    else:  # 2.0.dev1 comes before 2.0a1
        first = _BEFORE if post is None and dev is not None else _AFTER
    return (
        release,
        first,
        _BEFORE if post is None else (0, int(post or 0)),
        _AFTER if dev is None else (0, int(dev or 0)),
        _BEFORE if local is None else (0, *_local(local)),
    )


def _local(text: str) -> list[tuple[int, int, str]]:
    parts = re.split("[-_.]", text.lower())
    return [(1, int(p), "") if p.isdigit() else (0, 0, p) for p in parts]


def _other(given: Any) -> Any:
    if isinstance(given, str):
        return given
    if isinstance(given, Iterable):
        return ".".join(str(part) for part in given)
    return NotImplemented


class TorchVersion(str):
    """A version. It compares with texts and tuples; with a text that is no version, as texts do,
    and so for `!=` in any case."""

    __slots__ = ()

    def _against(self, other: Any, name: str) -> Any:
        text = _other(other)
        if text is NotImplemented:
            return NotImplemented
        mine, theirs = _key(self), _key(text)
        if mine is None or theirs is None:
            return getattr(str, name)(self, text)
        return getattr(mine, name)(theirs)

    def __eq__(self, other: object) -> Any:
        return self._against(other, "__eq__")

    def __lt__(self, other: Any) -> Any:
        return self._against(other, "__lt__")

    def __le__(self, other: Any) -> Any:
        return self._against(other, "__le__")

    def __gt__(self, other: Any) -> Any:
        return self._against(other, "__gt__")

    def __ge__(self, other: Any) -> Any:
        return self._against(other, "__ge__")

    __hash__ = str.__hash__


__version__ = TorchVersion(f"{_version.PYTORCH}+torchlab{_version.__version__}")

"""The installed distribution that a library finds under an alias's name."""

from __future__ import annotations

import importlib.metadata
import os
import pathlib
from typing import Any


class StandIn(importlib.metadata.Distribution):
    """`importlib.metadata.distribution("torch")` where torchlab is torch: a name and a version.

    Source: https://docs.python.org/3/library/importlib.metadata.html#extending-the-search-algorithm
    """

    def __init__(self, name: str, version: str) -> None:
        self._texts = {
            "METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n",
            "top_level.txt": f"{name}\n",
        }

    def read_text(self, filename: Any) -> str | None:
        """The text of a metadata file; None for those that there are not."""
        return self._texts.get(str(filename))

    def locate_file(self, path: str | os.PathLike[str]) -> Any:
        """Where the file `path` of the distribution is: beside the package."""
        return pathlib.Path(__file__).parent.parent / path

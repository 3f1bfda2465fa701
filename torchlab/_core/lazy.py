"""Heavy third-party modules, imported at their first use: `linalg = lazy("scipy.linalg")`."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from types import ModuleType
from typing import Any

WHEN_LOADED: list[Callable[[str], None]] = []
"""Called with the name of every module that a stand-in has imported."""


class LazyModule(ModuleType):
    """Stands for a module until an attribute is read; then it imports it.

    `needs` names the extra to install; it goes into the error's text when the module is missing.
    """

    def __init__(self, name: str, needs: str = "") -> None:
        super().__init__(name)
        self.__dict__["_needs"] = needs

    def __getattr__(self, attribute: str) -> Any:
        try:
            module = importlib.import_module(self.__name__)
        except ModuleNotFoundError as e:
            if e.name and not self.__name__.startswith(e.name):
                raise
            remedy = self.__dict__["_needs"] or f"pip install {self.__name__.partition('.')[0]}"
            raise ModuleNotFoundError(
                f"torchlab needs the module '{self.__name__}' here; it is not installed ({remedy})",
                name=self.__name__,
            ) from e
        if "_module" not in self.__dict__:
            self.__dict__["_module"] = module
            for told in WHEN_LOADED:
                told(self.__name__)
        value = getattr(module, attribute)
        self.__dict__[attribute] = value
        return value


def lazy(name: str, needs: str = "") -> Any:
    """A stand-in for the module `name` that imports it when an attribute is first read."""
    return LazyModule(name, needs)

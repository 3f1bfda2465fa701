"""`torchlab.backends`: what the numerical libraries below can, and their switches.

Programs written for PyTorch set switches of libraries that are not used here (cuDNN, TF32). They
can be set, give back what was set, and change nothing: torchlab computes what they would allow to
be less exact as exactly as without them.

Source: https://docs.pytorch.org/docs/2.13/backends.html
"""

from __future__ import annotations

import contextlib
import importlib
import pkgutil
from collections.abc import Iterator
from typing import Any


@contextlib.contextmanager
def __allow_nonbracketed_mutation() -> Iterator[None]:
    """Inside, switches may be set; they may be outside, too."""
    yield


def __getattr__(name: str) -> Any:
    if any(m.name == name for m in pkgutil.iter_modules(__path__)):
        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(
        f"module 'torchlab.backends' has no attribute '{name}'"
        + ("" if name.startswith("_") else ": that part of torch.backends is missing from torchlab")
    )


def __dir__() -> list[str]:
    return sorted({m.name for m in pkgutil.iter_modules(__path__) if m.name[:1] != "_"})

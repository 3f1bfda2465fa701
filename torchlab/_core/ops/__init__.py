"""The operators, one family a file. A family never imports another: it calls `aten.<op>`.

A new family is a new file here and nothing else: every module of this package is loaded with
torchlab.
"""

from __future__ import annotations

import pkgutil

FAMILIES = tuple(f"{__name__}.{m.name}" for m in pkgutil.iter_modules(__path__))

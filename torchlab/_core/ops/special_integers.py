"""Greatest common divisor and least common multiple.

Source of the semantics: https://docs.pytorch.org/docs/2.13/generated/torch.gcd.html
"""

from __future__ import annotations

from typing import Any

import numpy as np

from torchlab._core.dispatch.op import binary
from torchlab._core.ops._special import integral


def _declare(name: str, ufunc: Any, doc: str) -> None:
    binary(
        f"{name}(Tensor self, Tensor other) -> Tensor",
        lambda xp, a, b, out=None: ufunc(a, b, out=out),
        promote=integral(f"{name}_cpu"),
        numbers=(),
        doc=doc,
    )


_declare("gcd", np.gcd, "The greatest common divisor of two integers; never negative.")
_declare("lcm", np.lcm, "The least common multiple of two integers; never negative.")

"""`assert_allclose`, which `assert_close` has replaced.

Source: https://docs.pytorch.org/docs/2.13/testing.html
"""

from __future__ import annotations

import warnings
from typing import Any

from torchlab._core.dispatch.registry import aten
from torchlab._core.tensor import Tensor
from torchlab.testing.comparison import assert_close

TOLERANCES = {"float16": (1e-3, 1e-3), "float32": (1e-4, 1e-5), "float64": (1e-5, 1e-8)}
"""(rtol, atol) by dtype; all other types must be equal."""


def assert_allclose(
    actual: Any,
    expected: Any,
    rtol: float | None = None,
    atol: float | None = None,
    equal_nan: bool = True,
    msg: str = "",
) -> None:
    """Deprecated: `assert_close` with wider tolerances that does not compare dtypes. Raises
    AssertionError where it does, and ValueError if only one of rtol and atol is given."""
    warnings.warn(
        "`torch.testing.assert_allclose()` is deprecated since 1.12 and will be removed in a future"
        " release. Please use `torch.testing.assert_close()` instead.",
        FutureWarning,
        stacklevel=2,
    )
    if not isinstance(actual, Tensor):
        actual = aten.tensor(actual)
    if not isinstance(expected, Tensor):
        expected = aten.tensor(expected, dtype=actual.dtype)
    if rtol is None and atol is None:
        known = [TOLERANCES.get(t._k.dtype.name, (0.0, 0.0)) for t in (actual, expected)]
        rtol, atol = max(r for r, _ in known), max(a for _, a in known)
    assert_close(
        actual,
        expected,
        rtol=rtol,
        atol=atol,
        equal_nan=equal_nan,
        check_dtype=False,
        check_stride=False,
        msg=msg or None,
    )

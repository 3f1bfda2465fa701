"""Comparing tensors in tests, and making tensors to test with.

Source: https://docs.pytorch.org/docs/2.13/testing.html
"""

from __future__ import annotations

from torchlab.testing.allclose import assert_allclose
from torchlab.testing.comparison import assert_close
from torchlab.testing.creation import make_tensor
from torchlab.testing.file_check import FileCheck

__all__ = ["FileCheck", "assert_allclose", "assert_close", "make_tensor"]

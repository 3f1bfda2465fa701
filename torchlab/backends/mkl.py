"""`torchlab.backends.mkl`: whether matrix products are Intel MKL's.

Source: https://docs.pytorch.org/docs/2.13/backends.html#torch-backends-mkl
"""

from torchlab._core import inspection
from torchlab._core.backends import mkl


def is_available() -> bool:
    """Whether MKL computes matrix products: it is NumPy's BLAS, or installed beside it."""
    return mkl.library() is not None or inspection.has_mkl()

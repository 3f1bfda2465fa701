"""`torchlab.backends.openmp`: whether generated kernels use OpenMP.

Source: https://docs.pytorch.org/docs/2.13/backends.html#torch-backends-openmp
"""

from torchlab._core import inspection


def is_available() -> bool:
    """Whether there is a C++ compiler that has OpenMP."""
    return inspection.has_openmp()

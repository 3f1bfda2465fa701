"""`torchlab.version`: which version this is, and what it was built with (nothing: it is Python).

Source: https://docs.pytorch.org/docs/2.13/torch.html
"""

from torchlab import _version
from torchlab.torch_version import __version__

__all__ = ["__version__", "cuda", "debug", "git_version", "hip", "rocm", "xpu"]

debug: bool = False
# As in PyTorch's builds for the CPU: no version of CUDA is built in. CuPy brings its own.
cuda: str | None = None
hip: str | None = None
rocm: str | None = None
xpu: str | None = None
git_version: str = "v" + _version.__version__
"""The tag of the release; a package of plain Python is not stamped with a commit."""

"""The release of torchvision whose interface `torchlab.vision` has: programs ask for it.

Source: https://docs.pytorch.org/vision/0.28/
"""

__version__ = "0.28.0"

__all__ = ["__version__"]

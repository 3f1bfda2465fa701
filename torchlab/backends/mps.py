"""`torchlab.backends.mps`: Apple's GPUs, which torchlab does not reach.

Source: https://docs.pytorch.org/docs/2.13/backends.html#torch-backends-mps
"""


def is_built() -> bool:
    """Whether this is a build for Apple's GPUs: no."""
    return False


def is_available() -> bool:
    """Whether there is an Apple GPU that can be used: no."""
    return False

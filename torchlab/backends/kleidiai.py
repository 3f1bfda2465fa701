"""`torchlab.backends.kleidiai`: Arm's KleidiAI, a library that torchlab does not use.

Source: https://docs.pytorch.org/docs/2.13/backends.html
"""


def is_available() -> bool:
    """Whether it is used: no."""
    return False

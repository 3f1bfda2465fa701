"""`torchlab.backends.mha`: the fast path of attention layers in evaluation.

PyTorch has a second way to compute them, with the same results. torchlab has one; the switch is
kept and changes nothing.

Source: https://docs.pytorch.org/docs/2.13/backends.html
"""

_fastpath_enabled = True


def get_fastpath_enabled() -> bool:
    """What `set_fastpath_enabled` has set; True at first."""
    return _fastpath_enabled


def set_fastpath_enabled(value: bool) -> None:
    """Allow the fast path, or not."""
    global _fastpath_enabled
    _fastpath_enabled = value

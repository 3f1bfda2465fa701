"""`torchlab.backends.mkldnn`: oneDNN, with which convolutions are computed where it is installed
(`pip install 'torchlab[fast]'`).

Source: https://docs.pytorch.org/docs/2.13/backends.html#torch-backends-mkldnn
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

from torchlab._core.backends import onednn
from torchlab.backends import _flags


def is_available() -> bool:
    """Whether oneDNN is installed and not switched off by TORCHLAB_ONEDNN=0."""
    return onednn.library() is not None


def set_flags(
    _enabled: bool | None = None,
    _deterministic: bool | None = None,
    _allow_tf32: bool | None = None,
) -> tuple[Any, ...]:
    """Set switches (None leaves one as it is) and return what they were."""
    names = ("enabled", "deterministic", "allow_tf32")
    values = dict(zip(names, (_enabled, _deterministic, _allow_tf32), strict=True))
    return _flags.set_all(_module, values)


def flags(
    enabled: bool = False, deterministic: bool = False, allow_tf32: bool = True
) -> AbstractContextManager[None]:
    """A context in which the switches have these values."""
    return _flags.kept(
        _module, {"enabled": enabled, "deterministic": deterministic, "allow_tf32": allow_tf32}
    )


class MkldnnModule(_flags.Switches):
    """The module, with its switches."""

    @property
    def enabled(self) -> bool:
        """Whether convolutions may go to oneDNN. Setting it works in the whole process."""
        return onednn.enabled()

    @enabled.setter
    def enabled(self, value: bool) -> None:
        if type(value) is not bool:
            raise RuntimeError(
                f"torch.backends.mkldnn.enabled expects a bool, but got {type(value).__name__}"
            )
        onednn.enable(value)

    deterministic = _flags.switch(
        "deterministic", False, bool, "Whether only repeatable ways: all of them are."
    )
    allow_tf32 = _flags.switch(
        "allow_tf32", None, (bool, type(None)), "Whether float32 may be rounded to TF32: never."
    )


_module = _flags.become(__name__, MkldnnModule)

"""Which type operations on TVTensors return.

Source: https://docs.pytorch.org/vision/0.28/generated/torchvision.tv_tensors.set_return_type.html
"""

from __future__ import annotations

from types import TracebackType

_keeps = False


def keeps_type() -> bool:
    """Whether operations return TVTensors."""
    return _keeps


class _Choice:
    """Puts the earlier choice back when the block ends."""

    def __init__(self, before: bool) -> None:
        self.before = before

    def __enter__(self) -> None:
        pass

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        _set(self.before)


def _set(keeps: bool) -> None:
    global _keeps
    _keeps = keeps


def set_return_type(return_type: str) -> _Choice:
    """Operations on TVTensors return "Tensor"s (as they do by default) or "TVTensor"s.

    It holds from now on, or in a `with` block. Transforms always return what they were given.
    """
    name = return_type.lower()
    if name not in ("tensor", "tvtensor"):
        raise ValueError(f"return_type must be 'TVTensor' or 'Tensor', got {return_type}")
    before = _keeps
    _set(name == "tvtensor")
    return _Choice(before)

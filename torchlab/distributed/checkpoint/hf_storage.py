"""Readers and writers of checkpoints in pieces, in Hugging Face's layout: refused.

Source: https://docs.pytorch.org/docs/2.13/distributed.checkpoint.html
"""

from __future__ import annotations

from typing import Any, NoReturn

__all__ = ["HuggingFaceStorageReader", "HuggingFaceStorageWriter"]


def _refuse(what: str) -> NoReturn:
    raise RuntimeError(
        f"{what}: torchlab runs a program as one process, which writes no checkpoints in pieces;"
        " use safetensors.torch.save_file and load_file"
    )


class HuggingFaceStorageReader:
    """RuntimeError when one is made."""

    def __init__(self, path: Any, *args: Any, **kwargs: Any) -> None:
        _refuse("HuggingFaceStorageReader")


class HuggingFaceStorageWriter:
    """RuntimeError when one is made."""

    def __init__(self, path: Any, *args: Any, **kwargs: Any) -> None:
        _refuse("HuggingFaceStorageWriter")

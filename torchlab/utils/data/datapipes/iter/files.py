"""Files: their names, the open files, their contents."""

from __future__ import annotations

import fnmatch
import os
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from torchlab.utils.data.datapipes._decorators import functional_datapipe
from torchlab.utils.data.datapipes.datapipe import IterDataPipe
from torchlab.utils.data.datapipes.iter.steps import IterableWrapper


def _listed(root: str, masks: Sequence[str], recursive: bool, abspath: bool) -> Iterator[str]:
    for folder, folders, files in os.walk(os.path.abspath(root) if abspath else root):
        folders.sort()
        for name in sorted(files):
            if not masks or any(fnmatch.fnmatch(name, mask) for mask in masks):
                yield os.path.join(folder, name)
        if not recursive:
            return


def _sized(pipe: Any, length: int) -> int:
    if length == -1:
        raise TypeError(f"{type(pipe).__name__} instance doesn't have valid length")
    return length


@functional_datapipe("list_files")
class FileListerIterDataPipe(IterDataPipe[str]):
    """The paths of the files in a folder, in several, or in those that a pipe gives. masks: only
    names that fit one of them; recursive: folders in them, too."""

    def __init__(
        self,
        root: Any = ".",
        masks: Any = "",
        *,
        recursive: bool = False,
        abspath: bool = False,
        non_deterministic: bool = False,
        length: int = -1,
    ) -> None:
        if isinstance(root, str):
            root = [root]
        if not isinstance(root, IterDataPipe):
            root = IterableWrapper(root)
        self.datapipe = root
        self.masks = [masks] if isinstance(masks, str) and masks else list(masks)
        self.recursive = recursive
        self.abspath = abspath
        self.non_deterministic = non_deterministic
        self.length = length

    def __iter__(self) -> Iterator[str]:
        for folder in self.datapipe:
            yield from _listed(folder, self.masks, self.recursive, self.abspath)

    def __len__(self) -> int:
        return _sized(self, self.length)


@functional_datapipe("open_files")
class FileOpenerIterDataPipe(IterDataPipe[Any]):
    """Pairs of a path and the open file."""

    def __init__(
        self,
        datapipe: Iterable[str],
        mode: str = "r",
        encoding: str | None = None,
        length: int = -1,
    ) -> None:
        if mode not in ("b", "t", "rb", "rt", "r"):
            raise ValueError(f"Invalid mode {mode}")
        if "b" in mode and encoding is not None:
            raise ValueError("binary mode doesn't take an encoding argument")
        self.datapipe = datapipe
        self.mode = mode if "r" in mode else "r" + mode
        self.encoding = encoding
        self.length = length

    def __iter__(self) -> Iterator[Any]:
        for path in self.datapipe:
            yield path, open(path, self.mode, encoding=self.encoding)

    def __len__(self) -> int:
        return _sized(self, self.length)


@functional_datapipe("read_from_stream")
class StreamReaderIterDataPipe(IterDataPipe[Any]):
    """Pairs of a path and what is in the open file: `chunk` bytes at a time, None: all. The file is
    closed then."""

    def __init__(self, datapipe: IterDataPipe[Any], chunk: int | None = None) -> None:
        self.datapipe = datapipe
        self.chunk = chunk

    def __iter__(self) -> Iterator[Any]:
        for path, stream in self.datapipe:
            with stream:
                if self.chunk is None:
                    yield path, stream.read()
                    continue
                while data := stream.read(self.chunk):
                    yield path, data


FileLister, FileOpener = FileListerIterDataPipe, FileOpenerIterDataPipe
StreamReader = StreamReaderIterDataPipe

"""Data pipes to iterate over."""

from __future__ import annotations

from torchlab.utils.data.datapipes.iter.branching import Demultiplexer, Forker
from torchlab.utils.data.datapipes.iter.combining import Concater, Multiplexer, Zipper
from torchlab.utils.data.datapipes.iter.files import FileLister, FileOpener, StreamReader
from torchlab.utils.data.datapipes.iter.grouping import Batcher, Grouper, UnBatcher
from torchlab.utils.data.datapipes.iter.order import Sampler, ShardingFilter, Shuffler
from torchlab.utils.data.datapipes.iter.steps import Collator, Filter, IterableWrapper, Mapper

__all__ = [
    "Batcher", "Collator", "Concater", "Demultiplexer", "FileLister", "FileOpener", "Filter",
    "Forker", "Grouper", "IterableWrapper", "Mapper", "Multiplexer", "Sampler", "ShardingFilter",
    "Shuffler", "StreamReader", "UnBatcher", "Zipper",
]  # fmt: skip

"""A source, and steps that take one sample at a time."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from torchlab.utils.data.collate import default_collate
from torchlab.utils.data.datapipes._common import check_columns, need_length, warn_of_local
from torchlab.utils.data.datapipes._decorators import functional_datapipe
from torchlab.utils.data.datapipes.datapipe import IterDataPipe


class IterableWrapperIterDataPipe(IterDataPipe[Any]):
    """The elements of any iterable, copied first so that every pass sees the same ones
    (`deepcopy`)."""

    def __init__(self, iterable: Iterable[Any], deepcopy: bool = True) -> None:
        self.iterable = iterable
        self.deepcopy = deepcopy

    def __iter__(self) -> Iterator[Any]:
        source = self.iterable
        if self.deepcopy:
            try:
                source = copy.deepcopy(self.iterable)
            except TypeError:  # generators, open files
                warnings.warn(
                    "The input iterable can not be deepcopied, please be aware of in-place"
                    " modification would affect source data.",
                    stacklevel=2,
                )
        yield from source

    def __len__(self) -> int:
        return need_length(self, self.iterable)


@functional_datapipe("map")
class MapperIterDataPipe(IterDataPipe[Any]):
    """`fn` of every sample; or of its columns `input_col`, the result put in place of the (first)
    one, or into `output_col` (-1: at the end)."""

    def __init__(
        self,
        datapipe: IterDataPipe[Any],
        fn: Callable[..., Any],
        input_col: Any = None,
        output_col: Any = None,
    ) -> None:
        warn_of_local(fn)
        if input_col is None and output_col is not None:
            raise ValueError("`output_col` must be None when `input_col` is None.")
        if isinstance(output_col, (list, tuple)):
            if len(output_col) > 1:
                raise ValueError("`output_col` must be a single-element list or tuple")
            output_col = output_col[0]
        self.datapipe = datapipe
        self.fn = fn
        self.input_col = input_col
        self.output_col = output_col
        check_columns(fn, input_col)

    def __iter__(self) -> Iterator[Any]:
        for sample in self.datapipe:
            yield self._apply(sample)

    def _apply(self, sample: Any) -> Any:
        if self.input_col is None:
            return self.fn(sample)
        columns = self.input_col
        if isinstance(columns, (list, tuple)):
            result = self.fn(*(sample[c] for c in columns))
        else:
            result = self.fn(sample[columns])
        row = list(sample) if isinstance(sample, tuple) else copy.copy(sample)
        if self.output_col is None:
            if isinstance(columns, (list, tuple)):
                row[columns[0]] = result
                for c in sorted(columns[1:], reverse=True):
                    del row[c]
            else:
                row[columns] = result
        elif self.output_col == -1 and not isinstance(row, dict):
            row.append(result)
        else:
            row[self.output_col] = result
        return tuple(row) if isinstance(sample, tuple) else row

    def __len__(self) -> int:
        return need_length(self, self.datapipe)


@functional_datapipe("collate")
class CollatorIterDataPipe(MapperIterDataPipe):
    """Every batch collated, by default with `default_collate`. conversion: a function, or a dict of
    functions by column (of batches of dicts)."""

    def __init__(
        self,
        datapipe: IterDataPipe[Any],
        conversion: Any = default_collate,
        collate_fn: Callable[..., Any] | None = None,
    ) -> None:
        if collate_fn is not None:
            conversion = collate_fn
        if not callable(conversion):
            by_column = dict(conversion)

            def conversion(batch: Any) -> Any:
                return {
                    c: by_column.get(c, default_collate)([sample[c] for sample in batch])
                    for c in batch[0]
                }

        IterDataPipe.__init__(self)
        self.datapipe, self.fn = datapipe, conversion
        self.input_col = self.output_col = None


@functional_datapipe("filter")
class FilterIterDataPipe(IterDataPipe[Any]):
    """The samples for which `filter_fn` (of the sample, or of its columns `input_col`) is true."""

    def __init__(
        self, datapipe: IterDataPipe[Any], filter_fn: Callable[..., Any], input_col: Any = None
    ) -> None:
        warn_of_local(filter_fn)
        self.datapipe = datapipe
        self.filter_fn = filter_fn
        self.input_col = input_col
        check_columns(filter_fn, input_col)

    def __iter__(self) -> Iterator[Any]:
        for sample in self.datapipe:
            columns = self.input_col
            if columns is None:
                wanted = self.filter_fn(sample)
            elif isinstance(columns, (list, tuple)):
                wanted = self.filter_fn(*(sample[c] for c in columns))
            else:
                wanted = self.filter_fn(sample[columns])
            if not isinstance(wanted, bool):
                raise ValueError(
                    "Boolean output is required for `filter_fn` of FilterIterDataPipe, got",
                    type(wanted),
                )
            if wanted:
                yield sample


IterableWrapper, Mapper = IterableWrapperIterDataPipe, MapperIterDataPipe
Collator, Filter = CollatorIterDataPipe, FilterIterDataPipe

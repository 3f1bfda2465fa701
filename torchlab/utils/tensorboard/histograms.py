"""Histograms and curves of precision over recall, in the form TensorBoard draws."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
from tensorboard.compat.proto.summary_pb2 import HistogramProto

_LEAST = 1e-7  # a count that keeps divisions by none finite


@functools.cache
def default_edges() -> list[float]:
    """TensorFlow's: from 1e-12 on, each a tenth farther from 0, on both sides of it."""
    edges = []
    edge = 1e-12
    while edge < 1e20:
        edges.append(edge)
        edge *= 1.1
    return [-e for e in reversed(edges)] + [0.0] + edges


def histogram(values: np.ndarray, bins: Any, max_bins: int | None = None) -> HistogramProto:
    """The message for `values`; `bins` as numpy.histogram takes them. With `max_bins`, neighbours
    are joined until there are about as few. ValueError for no values."""
    if values.size == 0:
        raise ValueError("The input has no element.")
    values = values.reshape(-1)
    counts, edges = np.histogram(values, bins=bins)
    if max_bins is not None and len(counts) > max_bins:
        step = len(counts) // max_bins
        missing = -len(counts) % step
        counts = np.append(counts, np.zeros(missing, counts.dtype)).reshape(-1, step).sum(1)
        edges = np.append(edges[:-1:step], edges[-1])
    # The bins between the first and the last that has something, and an empty one before them.
    filled = np.flatnonzero(counts)
    if not filled.size:
        raise ValueError("The histogram is empty, please file a bug report.")
    first, last = int(filled[0]), int(filled[-1]) + 1
    counts = counts[first - 1 : last] if first > 0 else np.concatenate([[0], counts[:last]])
    return HistogramProto(
        min=values.min(), max=values.max(), num=len(values), sum=values.sum(),
        sum_squares=values.dot(values), bucket_limit=edges[first : last + 1].tolist(),
        bucket=counts.tolist(),
    )  # fmt: skip


def precision_recall(
    labels: np.ndarray, predictions: np.ndarray, thresholds: int, weights: Any = None
) -> np.ndarray:
    """(6, thresholds): true and false positives, true and false negatives, precision and recall,
    where `predictions` (0 to 1) at or above each threshold count as positive."""
    weights = 1.0 if weights is None else weights
    truth = labels.astype(np.float64)
    bins = np.int32(np.floor(predictions * (thresholds - 1)))

    def at_or_above(amounts: Any) -> np.ndarray:
        per_bin, _ = np.histogram(bins, bins=thresholds, range=(0, thresholds - 1), weights=amounts)
        return np.cumsum(per_bin[::-1])[::-1]

    true, false = at_or_above(truth * weights), at_or_above((1.0 - truth) * weights)
    missed = true[0] - true
    precision = true / np.maximum(_LEAST, true + false)
    recall = true / np.maximum(_LEAST, true + missed)
    return np.stack((true, false, false[0] - false, missed, precision, recall))


__all__ = ["default_edges", "histogram", "precision_recall"]

"""The queue of nodes that are ready, in exactly PyTorch's order.

Nodes leave by number, the newest first. Leaves all have the same number, and which of several goes
first depends on how PyTorch's queue, a binary heap of C++'s standard library, moves its entries.
Where hooks of leaves (or somebody who watches) could tell, these two functions stand in for
Python's own heap, which is quicker.

Entries are `(-number, counter, node)`; only the first is compared.
"""

from __future__ import annotations

from typing import Any


def push(heap: list[Any], entry: Any) -> None:
    """As `std::push_heap`: up past every parent that must leave later."""
    heap.append(entry)
    _rise(heap, len(heap) - 1, entry)


def _rise(heap: list[Any], hole: int, entry: Any) -> None:
    key = entry[0]
    while hole > 0:
        parent = (hole - 1) // 2
        if heap[parent][0] <= key:
            break
        heap[hole] = heap[parent]
        hole = parent
    heap[hole] = entry


def pop(heap: list[Any]) -> Any:
    """As `std::pop_heap`: the hole sinks to the bottom, the last entry rises from there."""
    last = heap.pop()
    if not heap:
        return last
    first = heap[0]
    n = len(heap)
    hole = child = 0
    while child < (n - 1) // 2:
        child = 2 * (child + 1)
        if heap[child][0] > heap[child - 1][0]:
            child -= 1
        heap[hole] = heap[child]
        hole = child
    if n % 2 == 0 and child == (n - 2) // 2:
        child = 2 * (child + 1)
        heap[hole] = heap[child - 1]
        hole = child - 1
    _rise(heap, hole, last)
    return first


__all__ = ["pop", "push"]

"""`BlockMask`: which blocks of a matrix of scores are needed, for `flex_attention`.

Blocks have BLOCK_SIZE = (rows of queries, columns of keys) scores. A block is left out, partial
(the mask is asked for each score) or full (every score counts). For a row of blocks
`kv_num_blocks` says how many are partial and `kv_indices` lists them first, in order; `full_…` the
same for full ones; `q_…` the same for columns.

Source: https://docs.pytorch.org/docs/2.13/nn.attention.flex_attention.html
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any

from torchlab._core.dispatch.registry import aten
from torchlab._core.dtype import bool_, int32
from torchlab._core.tensor import Tensor

DEFAULT_BLOCK = 128
MaskMod = Callable[[Tensor, Tensor, Tensor, Tensor], Tensor]


def noop_mask(batch: Tensor, head: Tensor, token_q: Tensor, token_kv: Tensor) -> Tensor:
    """The mask under which every score counts."""
    return aten.new_ones(batch, (), dtype=bool_)


def listed(dense: Tensor) -> tuple[Tensor, Tensor]:
    """(…, rows, columns) of 0 and 1 → how many are 1 in each row, and the columns with these
    first."""
    count = aten.sum(dense, -1)
    order = aten.argsort(aten.to(dense, int32), dim=-1, descending=True, stable=True)
    return aten.to(count, int32), aten.to(order, int32)


def dense_of(count: Tensor, order: Tensor) -> Tensor:
    """The matrix of 0 and 1 that `listed` took apart."""
    places = aten.arange(order.shape[-1], device=order.device)
    chosen = aten.to(places < aten.unsqueeze(count, -1), int32)
    return aten.scatter(aten.zeros_like(order), -1, order.long(), chosen)


def _blocks(mask: Tensor, rows: int, columns: int) -> Tensor:
    """(…, M, N) of bools → how many are true in each block, (…, blocks of M, blocks of N)."""
    m, n = mask.shape[-2:]
    padded = aten.constant_pad_nd(mask, [0, -n % columns, 0, -m % rows], 0)
    m, n = padded.shape[-2:]
    parts = aten.reshape(padded, (*mask.shape[:-2], m // rows, rows, n // columns, columns))
    return aten.sum(parts, [-3, -1])


def convert_mask_to_blocks(
    mask: Tensor, rows: int = DEFAULT_BLOCK, columns: int = DEFAULT_BLOCK, separate: bool = False
) -> tuple[Tensor, Tensor | None]:
    """(…, M, N) of bools → the partial blocks as 0 and 1, and the full ones, which are not
    separate (None) by default."""
    count = _blocks(mask, rows, columns)
    some = aten.gt(count, 0)
    if not separate:
        return aten.to(some, int32), None
    full = aten.eq(count, rows * columns)
    return aten.to(aten.logical_and(some, aten.logical_not(full)), int32), aten.to(full, int32)


class BlockMask:
    """Which blocks of scores are needed. Made by `create_block_mask` or `from_kv_blocks`; indexing
    by [batch, head, row of blocks] takes parts.

    seq_lengths: (queries, keys). *_num_blocks: int32 of (B, H, rows). *_indices: int32 of
    (B, H, rows, columns). mask_mod: whether a score counts.
    """

    __module__ = "torchlab.nn.attention.flex_attention"

    def __init__(
        self,
        seq_lengths: tuple[int, int],
        kv_num_blocks: Tensor,
        kv_indices: Tensor,
        full_kv_num_blocks: Tensor | None,
        full_kv_indices: Tensor | None,
        q_num_blocks: Tensor | None,
        q_indices: Tensor | None,
        full_q_num_blocks: Tensor | None,
        full_q_indices: Tensor | None,
        BLOCK_SIZE: tuple[int, int] = (DEFAULT_BLOCK, DEFAULT_BLOCK),
        mask_mod: MaskMod = noop_mask,
    ) -> None:
        if kv_indices.ndim < 2:
            raise RuntimeError("BlockMask must have at least 2 dimensions")
        if (full_kv_num_blocks is None) != (full_kv_indices is None):
            raise AssertionError(
                "full_kv_num_blocks and full_kv_indices must be both provided or omitted"
            )
        if (full_q_num_blocks is None) != (full_q_indices is None):
            raise AssertionError(
                "full_q_num_blocks and full_q_indices must be both provided or omitted"
            )
        self.seq_lengths = seq_lengths
        self.kv_num_blocks = kv_num_blocks
        self.kv_indices = kv_indices
        self.full_kv_num_blocks = full_kv_num_blocks
        self.full_kv_indices = full_kv_indices
        self.q_num_blocks = q_num_blocks
        self.q_indices = q_indices
        self.full_q_num_blocks = full_q_num_blocks
        self.full_q_indices = full_q_indices
        self.BLOCK_SIZE = BLOCK_SIZE
        self.mask_mod = mask_mod

    @classmethod
    def from_kv_blocks(
        cls,
        kv_num_blocks: Tensor,
        kv_indices: Tensor,
        full_kv_num_blocks: Tensor | None = None,
        full_kv_indices: Tensor | None = None,
        BLOCK_SIZE: int | tuple[int, int] = DEFAULT_BLOCK,
        mask_mod: MaskMod | None = None,
        seq_lengths: tuple[int, int] | None = None,
        compute_q_blocks: bool = True,
    ) -> BlockMask:
        """The mask with these rows of blocks; the columns follow. seq_lengths: by default, as many
        as the blocks have."""
        if kv_indices.ndim < 2:
            raise RuntimeError("BlockMask must have at least 2 dimensions")
        if (full_kv_num_blocks is None) != (full_kv_indices is None):
            raise AssertionError(
                "full_kv_num_blocks and full_kv_indices must be both provided or omitted"
            )
        size = (BLOCK_SIZE, BLOCK_SIZE) if isinstance(BLOCK_SIZE, int) else BLOCK_SIZE
        columns: list[Any] = [None] * 4
        if compute_q_blocks:
            columns[:2] = listed(aten.transpose(dense_of(kv_num_blocks, kv_indices), -2, -1))
            if full_kv_num_blocks is not None and full_kv_indices is not None:
                full = dense_of(full_kv_num_blocks, full_kv_indices)
                columns[2:] = listed(aten.transpose(full, -2, -1))
        if seq_lengths is None:
            m, n = kv_indices.shape[-2:]
            seq_lengths = (m * size[0], n * size[1])
        return cls(
            seq_lengths, kv_num_blocks, kv_indices, full_kv_num_blocks, full_kv_indices,
            columns[0], columns[1], columns[2], columns[3],
            size, noop_mask if mask_mod is None else mask_mod,
        )  # fmt: skip

    def _tensors(self) -> list[Any]:
        return [
            self.kv_num_blocks, self.kv_indices, self.full_kv_num_blocks, self.full_kv_indices,
            self.q_num_blocks, self.q_indices, self.full_q_num_blocks, self.full_q_indices,
        ]  # fmt: skip

    def as_tuple(self, flatten: bool = True) -> tuple[Any, ...]:
        """All it holds. The four None are orders of work, which GPUs have; `flatten` gives the two
        pairs of numbers as numbers."""
        lengths: Any = self.seq_lengths if flatten else (self.seq_lengths,)
        size: Any = self.BLOCK_SIZE if flatten else (self.BLOCK_SIZE,)
        return (*lengths, *self._tensors(), None, None, None, None, *size, self.mask_mod)

    @property
    def shape(self) -> tuple[int, ...]:
        """(B, H, queries, keys)."""
        return (*self.kv_indices.shape[:-2], *self.seq_lengths)

    def numel(self) -> int:
        """The number of scores, needed or not."""
        return math.prod(self.shape)

    def sparsity(self) -> float:
        """The part of the scores, in percent, that lies in no block; below zero where blocks reach
        over the edge."""
        blocks = int(self.kv_num_blocks.sum())
        if self.full_kv_num_blocks is not None:
            blocks += int(self.full_kv_num_blocks.sum())
        total = self.numel()
        return 100 * (total - blocks * self.BLOCK_SIZE[0] * self.BLOCK_SIZE[1]) / total

    def to_dense(self) -> Tensor:
        """int32 of (B, H, rows, columns): 1 for blocks that are needed."""
        dense = dense_of(self.kv_num_blocks, self.kv_indices)
        if self.full_kv_num_blocks is None or self.full_kv_indices is None:
            return dense
        full = dense_of(self.full_kv_num_blocks, self.full_kv_indices)
        return aten.bitwise_or(dense, full)

    def _rows(self, take: Callable[[Tensor], Tensor], lengths: tuple[int, int]) -> BlockMask:
        """The mask of what `take` leaves of each of the tensors about rows."""
        full = (self.full_kv_num_blocks, self.full_kv_indices)
        full_count, full_order = (None if x is None else take(x) for x in full)
        return BlockMask.from_kv_blocks(
            take(self.kv_num_blocks), take(self.kv_indices), full_count, full_order,
            self.BLOCK_SIZE, self.mask_mod, lengths, self.q_indices is not None,
        )  # fmt: skip

    def __getitem__(self, index: Any) -> BlockMask:
        """The part with these batches, heads and rows of blocks; numbers keep their dim."""
        index = index if isinstance(index, tuple) else (index,)
        kept = tuple(
            (slice(i, i + 1) if i != -1 else slice(i, None)) if isinstance(i, int) else i
            for i in index
        )
        return self._rows(lambda x: x[kept], self.seq_lengths)

    def _adjust(self, new_q_len: int, new_kv_len: int) -> BlockMask:
        """The upper left corner, of `new_q_len` queries and `new_kv_len` keys."""
        rows = -(-new_q_len // self.BLOCK_SIZE[0])
        columns = -(-new_kv_len // self.BLOCK_SIZE[1])

        def corner(count: Tensor | None, order: Tensor | None) -> tuple[Any, Any]:
            if count is None or order is None:
                return None, None
            return listed(dense_of(count, order)[..., :rows, :columns])

        return BlockMask.from_kv_blocks(
            *corner(self.kv_num_blocks, self.kv_indices),
            *corner(self.full_kv_num_blocks, self.full_kv_indices),
            self.BLOCK_SIZE,
            self.mask_mod,
            (new_q_len, new_kv_len),
            self.q_indices is not None,
        )

    def to(self, device: Any) -> BlockMask:
        """The mask with its tensors on `device`."""
        moved = (None if x is None else x.to(device) for x in self._tensors())
        of: dict[str, Any] = {"BLOCK_SIZE": self.BLOCK_SIZE, "mask_mod": self.mask_mod}
        given: tuple[Any, ...] = (self.seq_lengths, *moved)
        return BlockMask(*given, **of)

    def to_string(self, grid_size: int | tuple[int, int] = (20, 20), limit: int = 4) -> str:
        """A picture of the first `limit` batches and heads, of about `grid_size` characters: blocks
        that are needed are black, and grey where only some of those that share a character are."""
        height, width = (grid_size, grid_size) if isinstance(grid_size, int) else grid_size
        dense = self.to_dense()
        *outer, rows, columns = dense.shape
        tall = max(1, -(-rows // height))
        wide = max(1, -(-columns // width))
        pictures = []
        for at, index in enumerate(itertools.product(*(range(n) for n in outer))):
            if at == limit:
                pictures += [
                    "...",
                    "To print out more, set BlockMask.to_string(limit=N)",
                    "You can also index (BlockMask[batch, head]) to choose a specific batch or"
                    " head",
                ]
                break
            lines = [str(index)]
            for i in range(0, rows, tall):
                line = ""
                for j in range(0, columns, wide):
                    part = dense[(*index, slice(i, i + tall), slice(j, j + wide))].float()
                    needed = part.mean().item()
                    line += "██" if needed == 1 else "  " if needed == 0 else "░░"
                lines.append(line)
            pictures.append("\n".join(lines) + "\n")
        return "\n".join(pictures)

    def __str__(self) -> str:
        picture = self.to_string().strip()
        return f"BlockMask(shape={self.shape}, sparsity={self.sparsity():.2f}%, \n{picture}\n)"

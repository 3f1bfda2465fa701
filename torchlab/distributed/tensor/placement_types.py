"""How a tensor lies over the processes of a dimension of a mesh.

Source: https://docs.pytorch.org/docs/2.13/distributed.tensor.html#module-torch.distributed.tensor.placement_types
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Partial", "Placement", "Replicate", "Shard"]


class Placement:
    """One of the three ways; programs compare them and ask which one it is."""

    def is_shard(self, dim: int | None = None) -> bool:
        """Whether the tensor is cut, along `dim` if that is given."""
        return isinstance(self, Shard) and dim in (None, self.dim)

    def is_replicate(self) -> bool:
        """Whether every process has all of it."""
        return isinstance(self, Replicate)

    def is_partial(self, reduce_op: str | None = None) -> bool:
        """Whether the processes' parts are still to be put together, by `reduce_op` if given."""
        return isinstance(self, Partial) and reduce_op in (None, self.reduce_op)


@dataclass(frozen=True)
class Shard(Placement):
    """Cut along a dimension: every process has a piece."""

    dim: int

    def __str__(self) -> str:
        return f"S({self.dim})"


@dataclass(frozen=True)
class Replicate(Placement):
    """Every process has all of it."""

    def __str__(self) -> str:
        return "R"


@dataclass(frozen=True)
class Partial(Placement):
    """Every process has a term; `reduce_op` ("sum", "avg", "max" …) puts them together."""

    reduce_op: str = "sum"

    def __repr__(self) -> str:
        return f"Partial({self.reduce_op})"

    def __str__(self) -> str:
        return f"P({self.reduce_op})"


@dataclass(frozen=True)
class _StridedShard(Placement):
    """Cut along a dimension that another dimension of the mesh cuts, too: in `split_factor`
    pieces first."""

    dim: int
    split_factor: int = 1

    def __repr__(self) -> str:
        return f"_StridedShard(dim={self.dim}, sf={self.split_factor})"

    def __str__(self) -> str:
        return f"_S({self.dim}, {self.split_factor})"

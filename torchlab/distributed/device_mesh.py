"""Processes laid out in a grid: `init_device_mesh("cpu", (1, 1), mesh_dim_names=("dp", "tp"))`.

There is one process, so every dimension has size 1.

Source: https://docs.pytorch.org/docs/2.13/distributed.html#torch.distributed.device_mesh.DeviceMesh
"""

from __future__ import annotations

import math
from typing import Any

from torchlab._core.dispatch.registry import aten
from torchlab._core.dtype import int32
from torchlab._core.tensor import Tensor
from torchlab.distributed.groups import (
    ProcessGroup,
    get_rank,
    group_of,
    init_process_group,
    is_initialized,
)

__all__ = ["DeviceMesh", "init_device_mesh"]

_BOTH = "Optional kwarg `mesh_dim` needs to be specified when device_mesh.ndim > 1."
_ALL = (
    "If you want to get the list of all the ProcessGroups in the DeviceMesh, please use"
    " `get_all_groups()` instead."
)


class DeviceMesh:
    """A grid of processes on devices of one type. `mesh` has their ranks, (dims of the grid)."""

    def __init__(
        self,
        device_type: str,
        mesh: Any,
        *,
        mesh_dim_names: tuple[str, ...] | None = None,
    ) -> None:
        if not is_initialized():
            init_process_group()
        self.mesh: Tensor = aten.as_tensor(mesh, dtype=int32)
        self._device_type = device_type
        self._names = None if mesh_dim_names is None else tuple(mesh_dim_names)
        if self.mesh.numel() != 1 or self.mesh.item() != get_rank():
            raise RuntimeError(
                "Mesh should not be bigger than default world size 1, but found"
                f" {self.mesh.numel()} ranks!"
            )

    @property
    def device_type(self) -> str:
        """The type of the devices."""
        return self._device_type

    @property
    def mesh_dim_names(self) -> tuple[str, ...] | None:
        """The names of the dimensions, if they have any."""
        return self._names

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return self.mesh.ndim  # type: ignore[no-any-return, attr-defined]

    @property
    def shape(self) -> tuple[int, ...]:
        """The size of each dimension."""
        return tuple(self.mesh.shape)

    def size(self, mesh_dim: int | None = None) -> int:
        """The number of processes, or the size of one dimension."""
        return self.mesh.numel() if mesh_dim is None else self.shape[mesh_dim]

    def _number(self, mesh_dim: int | str | None, *more: str) -> int:
        if mesh_dim is None:
            if self.ndim > 1:
                raise RuntimeError(
                    f"Found the DeviceMesh have {self.ndim} dimensions", _BOTH, *more
                )
            return 0
        if isinstance(mesh_dim, str):
            if mesh_dim not in (self._names or ()):
                raise KeyError(
                    f"Mesh dimension '{mesh_dim}' does not exist.",
                    f"Available mesh dimensions are: mesh_dim_names={self._names}",
                )
            return self._names.index(mesh_dim)  # type: ignore[union-attr]
        return mesh_dim

    def get_group(self, mesh_dim: int | str | None = None) -> ProcessGroup:
        """The group of the processes along a dimension."""
        self._number(mesh_dim, _ALL)
        return group_of(None)

    def get_all_groups(self) -> list[ProcessGroup]:
        """The groups along all dimensions."""
        return [self.get_group(d) for d in range(self.ndim)]

    def get_rank(self) -> int:
        """This process's rank among all."""
        return get_rank()

    def get_local_rank(self, mesh_dim: int | str | None = None) -> int:
        """This process's place along a dimension."""
        self._number(mesh_dim)
        return 0

    def get_coordinate(self) -> tuple[int, ...]:
        """This process's place in the grid."""
        return (0,) * self.ndim

    def __getitem__(self, mesh_dim_names: str | tuple[str, ...]) -> DeviceMesh:
        """The grid along the dimensions of these names."""
        if self._names is None:
            raise RuntimeError("Cannot slice a DeviceMesh without mesh_dim_names!")
        names = (mesh_dim_names,) if isinstance(mesh_dim_names, str) else tuple(mesh_dim_names)
        if any(n not in self._names for n in names):
            raise KeyError(
                f"Invalid mesh_dim_names {names} specified. Valid mesh_dim_names are"
                f" {list(self._names)}."
            )
        if names == self._names:
            return self
        ranks = aten.reshape(self.mesh, (1,) * len(names))
        return DeviceMesh(self._device_type, ranks, mesh_dim_names=names)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, DeviceMesh):
            return NotImplemented
        return self._facts() == other._facts()

    def __hash__(self) -> int:
        return hash(self._facts())

    def _facts(self) -> tuple[Any, ...]:
        return self._device_type, self.shape, self._names

    def __repr__(self) -> str:
        names, stride = self._names, ", ".join(["()"] * self.ndim) + "," * (self.ndim == 1)
        if names is None:
            shown = str(self.shape)
        else:
            shown = f"({', '.join(f'{n}={s}' for n, s in zip(names, self.shape, strict=False))})"
        return f"DeviceMesh({shown}, '{self._device_type}', stride=({stride}))"


def init_device_mesh(
    device_type: str,
    mesh_shape: tuple[int, ...],
    *,
    mesh_dim_names: tuple[str, ...] | None = None,
    backend_override: Any = None,
) -> DeviceMesh:
    """A grid of all processes, which makes the default group if there is none.

    Raises:
        RuntimeError: the names do not fit the shape, the shape is not that of one process, or the
            type of the device has an index.
    """
    if mesh_dim_names is not None:
        if len(set(mesh_dim_names)) != len(mesh_dim_names):
            raise RuntimeError(
                "Each mesh_dim_name must be unique. "
                f"Found repeated mesh_dim_name in mesh_dim_names {mesh_dim_names}",
            )
        if len(mesh_shape) != len(mesh_dim_names):
            raise RuntimeError(
                "mesh_shape and mesh_dim_names should have same length! "
                f"Found len(mesh_dim_names): {len(mesh_dim_names)} and"
                f" len(mesh_shape):{len(mesh_shape)}.",
            )
    if not device_type.isalpha():
        raise RuntimeError(
            f"Device type with index is not supported but got {device_type}. ",
            "If you maintained a 'torch.device' object, it's recommended to pass in 'device.type'.",
        )
    ranks = aten.reshape(aten.arange(math.prod(mesh_shape), dtype=int32), tuple(mesh_shape))
    return DeviceMesh(device_type, ranks, mesh_dim_names=mesh_dim_names)

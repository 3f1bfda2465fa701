"""Tensors that lie on several processes, which there are none of where a program is one process:
programs ask whether a tensor is one, and none ever is."""

from __future__ import annotations

from typing import Any, NoReturn

from torchlab._core.tensor import Tensor

__all__ = ["DTensor", "distribute_module", "distribute_tensor"]


def _refuse(what: str) -> NoReturn:
    raise RuntimeError(
        f"{what}: torchlab runs a program as one process, so no tensor lies on several; leave the"
        " tensor or module as it is"
    )


class DTensor(Tensor):
    """A tensor that lies on the processes of a mesh. RuntimeError when one is made."""

    def __new__(cls, *args: Any, **kwargs: Any) -> DTensor:
        """Refused."""
        _refuse("DTensor")

    @staticmethod
    def from_local(*args: Any, **kwargs: Any) -> NoReturn:
        """Refused: a DTensor of each process's piece."""
        _refuse("DTensor.from_local")


def distribute_tensor(
    tensor: Tensor, device_mesh: Any = None, placements: Any = None, *, src_data_rank: Any = 0
) -> NoReturn:
    """Refused: the tensor, laid over a mesh."""
    _refuse("distribute_tensor")


def distribute_module(
    module: Any, device_mesh: Any = None, partition_fn: Any = None, input_fn: Any = None,
    output_fn: Any = None,
) -> NoReturn:  # fmt: skip
    """Refused: the module, with its parameters laid over a mesh."""
    _refuse("distribute_module")

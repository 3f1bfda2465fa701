"""Modules whose parameters lie in pieces on several processes, and the settings for them. A program
is one process here: programs ask whether a module is one, and none ever is.

Source: https://docs.pytorch.org/docs/2.13/fsdp.html
"""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import Any, NoReturn

from torchlab._core.dtype import dtype
from torchlab.nn.module import Module

__all__ = [
    "BackwardPrefetch", "CPUOffload", "CPUOffloadPolicy", "FSDPModule", "FullStateDictConfig",
    "FullyShardedDataParallel", "MixedPrecision", "MixedPrecisionPolicy", "OffloadPolicy",
    "ShardingStrategy", "StateDictConfig", "StateDictType", "fully_shard",
]  # fmt: skip


def _refuse(what: str) -> NoReturn:
    raise RuntimeError(
        f"{what}: torchlab runs a program as one process, which has all parameters; leave the"
        " module as it is, or use DistributedDataParallel, which a group of one process has"
    )


class FullyShardedDataParallel(Module):
    """A module in pieces. RuntimeError when one is made."""

    def __init__(self, module: Module, *args: Any, **kwargs: Any) -> None:
        _refuse("FullyShardedDataParallel")


class FSDPModule:
    """What `fully_shard` makes a module. RuntimeError when one is made."""

    def __new__(cls, *args: Any, **kwargs: Any) -> FSDPModule:
        """Refused."""
        _refuse("FSDPModule")


def fully_shard(module: Any, **options: Any) -> NoReturn:
    """Refused: the module, in pieces."""
    _refuse("fully_shard")


class ShardingStrategy(enum.Enum):
    """What lies in pieces."""

    FULL_SHARD = enum.auto()
    SHARD_GRAD_OP = enum.auto()
    NO_SHARD = enum.auto()
    HYBRID_SHARD = enum.auto()
    _HYBRID_SHARD_ZERO2 = enum.auto()


class BackwardPrefetch(enum.Enum):
    """When the next pieces are fetched."""

    BACKWARD_PRE = enum.auto()
    BACKWARD_POST = enum.auto()


class StateDictType(enum.Enum):
    """What a state dict holds."""

    FULL_STATE_DICT = enum.auto()
    LOCAL_STATE_DICT = enum.auto()
    SHARDED_STATE_DICT = enum.auto()


@dataclass
class StateDictConfig:
    """How a state dict is made."""

    offload_to_cpu: bool = False


@dataclass
class FullStateDictConfig(StateDictConfig):
    """How a whole one is made."""

    rank0_only: bool = False


@dataclass
class CPUOffload:
    """Whether parameters wait on the host."""

    offload_params: bool = False


@dataclass
class MixedPrecision:
    """The types of parameters, of what is sent, and of buffers."""

    param_dtype: dtype | None = None
    reduce_dtype: dtype | None = None
    buffer_dtype: dtype | None = None
    keep_low_precision_grads: bool = False
    cast_forward_inputs: bool = False
    cast_root_forward_inputs: bool = True
    _module_classes_to_ignore: Any = ()


@dataclass(frozen=True)
class MixedPrecisionPolicy:
    """The types of parameters, of what is sent, and of outputs."""

    param_dtype: dtype | None = None
    reduce_dtype: dtype | None = None
    output_dtype: dtype | None = None
    cast_forward_inputs: bool = True


@dataclass
class OffloadPolicy:
    """Nothing waits on the host."""


@dataclass
class CPUOffloadPolicy(OffloadPolicy):
    """Parameters, gradients and optimizers' states wait on the host."""

    pin_memory: bool = True

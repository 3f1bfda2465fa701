"""Groups of processes. torchlab has groups of one: a program written for several runs as one.

    init_process_group("gloo", rank=0, world_size=1, init_method="tcp://127.0.0.1:29500")

Source: https://docs.pytorch.org/docs/2.13/distributed.html#initialization
"""

from __future__ import annotations

import os
from datetime import timedelta
from typing import Any

_NOT_MADE = (
    "Default process group has not been initialized, please make sure to call init_process_group."
)


class ProcessGroup:
    """A group: here one process, whose rank is 0."""

    def __init__(self, backend: str) -> None:
        self.backend = backend

    def rank(self) -> int:
        """This process's rank in the group."""
        return 0

    def size(self) -> int:
        """The number of processes."""
        return 1

    def name(self) -> str:
        """The backend's name."""
        return self.backend


class _World:
    default: ProcessGroup | None = None


class _GroupMeta(type):
    @property
    def WORLD(cls) -> ProcessGroup | None:
        """The group of all processes, None before `init_process_group`."""
        return _World.default


class group(metaclass=_GroupMeta):
    """`group.WORLD` is the group of all processes."""


class GroupMember(metaclass=_GroupMeta):
    """`GroupMember.WORLD` is the group of all processes. NON_GROUP_MEMBER stands for a group in
    which this process is not."""

    NON_GROUP_MEMBER = -100


def _rank_not_in_group(group: Any) -> bool:
    """Whether that is a group without this process."""
    return group is not None and group == GroupMember.NON_GROUP_MEMBER


def group_of(wanted: ProcessGroup | None) -> ProcessGroup:
    """`wanted`, or the default group; ValueError if there is none."""
    found = _World.default if wanted is None else wanted
    if found is None:
        raise ValueError(_NOT_MADE)
    return found


def is_available() -> bool:
    """Whether there is this package: yes. Its groups have one process."""
    return True


def is_gloo_available() -> bool:
    """Whether the backend "gloo" can be named: yes."""
    return True


def is_nccl_available() -> bool:
    """Whether there is NVIDIA's NCCL: no."""
    return False


def is_mpi_available() -> bool:
    """Whether there is MPI: no."""
    return False


def is_torchelastic_launched() -> bool:
    """Whether torchrun started this process."""
    return os.environ.get("TORCHELASTIC_RUN_ID") is not None


def is_initialized() -> bool:
    """Whether `init_process_group` was called, and `destroy_process_group` was not."""
    return _World.default is not None


def _from_environment(name: str) -> int:
    text = os.environ.get(name)
    if text is None:
        raise ValueError(
            "Error initializing torch.distributed using env:// rendezvous: environment variable"
            f" {name} expected, but not set"
        )
    return int(text)


def init_process_group(
    backend: str | None = None,
    init_method: str | None = None,
    timeout: timedelta | None = None,
    world_size: int = -1,
    rank: int = -1,
    store: Any = None,
    group_name: str = "",
    pg_options: Any = None,
    device_id: Any = None,
) -> None:
    """Make the default group, of one process.

    backend: "gloo" or None. rank, world_size: 0 and 1; by default the environment's RANK and
        WORLD_SIZE. init_method, store: where processes would meet; not needed for one.

    Raises:
        ValueError: there is a group already, or rank and world_size are nowhere given.
        RuntimeError: the backend is "nccl", "mpi" or "ucc".
        NotImplementedError: world_size is not 1.
    """
    if _World.default is not None:
        raise ValueError("trying to initialize the default process group twice!")
    name = "gloo" if backend is None else str(backend).lower()
    if name in ("nccl", "mpi", "ucc", "xccl"):
        raise RuntimeError(f"Distributed package doesn't have {name.upper()} built in")
    if name not in ("gloo", "cpu:gloo"):
        raise AssertionError(f"Unknown backend type {name}")
    rank = _from_environment("RANK") if rank == -1 else rank
    world_size = _from_environment("WORLD_SIZE") if world_size == -1 else world_size
    if world_size != 1:
        raise NotImplementedError(
            f"init_process_group: world_size is {world_size}, and torchlab.distributed has groups"
            " of one process only"
        )
    if rank != 0:
        raise ValueError(f"init_process_group: rank {rank} is not in [0, {world_size})")
    _World.default = ProcessGroup("gloo")


def destroy_process_group(group: ProcessGroup | None = None) -> None:
    """Forget a group, by default the default one. AssertionError if there is none."""
    if group is None and _World.default is None:
        raise AssertionError("Process group cannot be None")
    if group is None or group is _World.default:
        _World.default = None


def new_group(ranks: Any = None, timeout: Any = None, backend: Any = None) -> ProcessGroup:
    """Another group of the same processes."""
    world = group_of(None)
    if ranks is not None and list(ranks) != [0]:
        raise ValueError(f"new_group: ranks {ranks} are not among [0]")
    return ProcessGroup(world.backend)


def get_rank(group: ProcessGroup | None = None) -> int:
    """This process's rank, -1 if it is not in the group. ValueError without a group."""
    if _rank_not_in_group(group):
        return -1
    return group_of(group).rank()


def get_world_size(group: ProcessGroup | None = None) -> int:
    """The number of processes, -1 if this one is not in the group. ValueError without a group."""
    if _rank_not_in_group(group):
        return -1
    return group_of(group).size()


def get_backend(group: ProcessGroup | None = None) -> str:
    """The backend's name. ValueError without a group."""
    return group_of(group).backend


def is_backend_available(backend: str) -> bool:
    """Whether such a backend can be named: only "gloo"."""
    return backend.lower() == "gloo"


def get_node_local_rank(fallback_rank: int | None = None) -> int:
    """This process's rank on its machine: the environment's LOCAL_RANK, or `fallback_rank`.
    RuntimeError if neither is given."""
    if "LOCAL_RANK" in os.environ:
        return int(os.environ["LOCAL_RANK"])
    if fallback_rank is not None:
        return int(fallback_rank)
    raise RuntimeError(
        "LOCAL_RANK is not in the environment. Consider passing fallback_rank to allow"
        " `get_node_local_rank` to work, assuming you are not running in a multi-device context and"
        " want the code to run locally instead."
    )


def get_global_rank(group: ProcessGroup, group_rank: int) -> int:
    """The rank among all processes of a group's process: all are in every group."""
    return group_rank


def get_group_rank(group: ProcessGroup, global_rank: int) -> int:
    """The rank in the group of one of all processes: all are in every group."""
    return global_rank


def get_process_group_ranks(group: ProcessGroup | None) -> list[int]:
    """The ranks of a group's processes."""
    return list(range(group_of(group).size()))

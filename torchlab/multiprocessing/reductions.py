"""How tensors and storages go from process to process: by a handle of their memory, not its bytes.

Everything that `multiprocessing` sends (queues, pipes, arguments of spawned processes) goes through
`ForkingPickler`, which asks the functions here. Tensors take themselves apart as for any pickle;
their storage is moved into shared memory, and what is sent of it is an open descriptor or a name,
see Note [Segments] in torchlab._core.memory.shared. Tensors on accelerators travel as copies.

Source: https://docs.pytorch.org/docs/2.13/multiprocessing.html
"""

from __future__ import annotations

import os
import warnings
from multiprocessing import reduction
from typing import Any

import numpy as np

from torchlab._core import sharing
from torchlab._core.memory import shared
from torchlab._core.memory.storage import Storage
from torchlab._core.tape import AccumulateGrad, Out, edge_of
from torchlab._core.tensor import Parameter, Tensor

__all__ = ["init_reductions", "reduce_storage", "reduce_tensor"]


def reduce_tensor(t: Tensor, allocate: sharing.Allocate = sharing.new_segment) -> Any:
    """What is sent of a tensor. `allocate` gives the segment if its memory is not shared yet.

    RuntimeError if it has a history: autograd ends at the process.
    """
    e = edge_of(t)
    if e is not None and type(e) is not AccumulateGrad:
        raise RuntimeError(
            "Cowardly refusing to serialize non-leaf tensor which requires_grad, since autograd"
            " does not support crossing process boundaries.  If you just want to transfer the data,"
            " call detach() on the tensor before serializing (e.g., putting it on the queue)."
        )
    _warn_of_hooks(e)
    if t._k.device.type == "cpu" and not t._exotic:
        sharing.share_tensor(t, allocate)
    return t.__reduce_ex__(2)


def _warn_of_hooks(e: Any) -> None:
    node = e.node if type(e) is Out else e
    hooks = getattr(node, "_hooks", None)
    if hooks is None:
        return
    for table in hooks.tensor.values():
        for hook in table.values():
            if not getattr(hook, "__torch_unserializable__", False):
                warnings.warn(
                    f"backward hook {hook!r} on tensor will not be serialized.  If this is"
                    " expected, you can decorate the function with"
                    " @torch.utils.hooks.unserializable_hook to suppress this warning",
                    stacklevel=4,
                )


def reduce_storage(s: Storage) -> Any:
    """What is sent of a storage: its segment's handle."""
    if not s.nbytes:
        return _empty, ()
    segment = sharing.share(s)
    segment.keep()
    if segment.name is not None:
        segment.send()
        return rebuild_named, (segment.name, segment.nbytes)
    return rebuild_descriptor, (reduction.DupFd(segment.fd), segment.nbytes)


def _empty() -> Storage:
    return Storage(np.empty(0, np.uint8))


def rebuild_descriptor(handle: Any, nbytes: int) -> Storage:
    """The storage of a segment whose descriptor has been sent."""
    fd = handle.detach()
    found = os.fstat(fd)
    used = []

    def make() -> Any:
        segment = shared.Segment(fd, nbytes)
        used.append(fd)  # the segment closes it now
        return segment

    try:
        return shared.arrived((found.st_dev, found.st_ino), make)
    finally:
        if not used:
            os.close(fd)


def open_descriptor(handle: Any, nbytes: int) -> Any:
    """The segment whose descriptor has been sent, for the first time."""
    fd = handle.detach()
    try:
        return shared.Segment(fd, nbytes)
    except BaseException:
        os.close(fd)
        raise


def open_named(name: str, nbytes: int) -> Any:
    """The segment whose name has been sent."""
    return shared.Named.open(name, nbytes)


def rebuild_named(name: str, nbytes: int) -> Storage:
    """The storage of a segment whose name has been sent."""
    segment = open_named(name, nbytes)
    return shared.arrived(segment.key, lambda: segment)


def init_reductions() -> None:
    """Let `multiprocessing` send tensors and storages as said above."""
    for cls in (Tensor, Parameter):
        reduction.ForkingPickler.register(cls, reduce_tensor)
    reduction.ForkingPickler.register(Storage, reduce_storage)

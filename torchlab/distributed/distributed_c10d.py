"""`torch.distributed.distributed_c10d`: where PyTorch keeps what `torch.distributed` has.

Source: https://docs.pytorch.org/docs/2.13/distributed.html
"""

from __future__ import annotations

import torchlab.distributed as _public
from torchlab.distributed import *  # noqa: F403
from torchlab.distributed.constants import default_pg_timeout
from torchlab.distributed.groups import ProcessGroup, _rank_not_in_group, group_of

__all__ = ["_get_default_group", "_rank_not_in_group", "default_pg_timeout", *_public.__all__]


def _get_default_group() -> ProcessGroup:
    """The group of all processes. ValueError if there is none."""
    return group_of(None)
